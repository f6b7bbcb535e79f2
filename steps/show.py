"""Show what is in an experiment folder: of a run its stages, models, error rates and the best; of a step its record.

Of a model's folder also what the model is; --unit shows the parameters of one of its units.

Example: steps/show.py exp/tidigits/ml_1 --unit one
"""

from dataclasses import dataclass
from pathlib import Path

from margo.runtime.step import Knobs, knob, main


@dataclass(frozen=True)
class Options(Knobs):
    folder: Path = knob(positional=True, help="folder of a run, or of a step in it; or a bare model.npz")
    unit: str = knob("", "show the parameters of this unit too")


def run(options: Options, step):
    from margo.errors import MargoError
    from margo.formats.atomic import read_npz
    from margo.formats.models import KIND, read_model
    from margo.formats.systems import read_systems
    from margo.report.overview import describe_run, is_run, missing_model, nothing_here
    from margo.runtime import record
    from margo.tasks.showing import describe_model, describe_record, describe_system, describe_unit

    model = options.folder if options.folder.is_file() else options.folder / "model.npz"
    held = record.of(options.folder)
    if is_run(options.folder):
        print(describe_run(options.folder))
        return
    if not options.folder.exists():
        raise missing_model(options.folder)
    if held is None and (record.unfinished(options.folder) or not model.is_file()):
        raise nothing_here(options.folder)
    if held is not None:
        print(describe_record(held))
    row = read_systems().of_folder(options.folder.resolve())
    if row and held and model.is_file():
        print(describe_system(row))
    if not model.is_file() or read_npz(model)[0].get("kind") != KIND:
        if options.unit:
            raise MargoError(f"{options.folder}: no HMMs here, which --unit is about")
        return
    hmms = read_model(model)
    print(describe_model(hmms))
    if options.unit:
        print(describe_unit(hmms, options.unit))


if __name__ == "__main__":
    main(__doc__, Options, run)

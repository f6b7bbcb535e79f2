"""Show what is in an experiment folder: a model, its training, or any step's record.

--htk FILE also writes the model as HTK's hmmdefs.

Example: steps/show.py exp/tidigits/ml_1 --unit one
"""

from dataclasses import dataclass
from pathlib import Path

from margo.runtime.step import main, option

TRAINERS = ("train_ml", "train_mce", "train_mmi", "train_mm", "train_lme")  # whose model.npz holds HMMs


@dataclass(frozen=True)
class Options:
    folder: Path = option(positional=True, help="folder of a step")
    unit: str = option("", help="show the parameters of this unit too")
    htk: Path | None = option(None, help="file to write the model to, in HTK's format")


def run(options: Options, step):
    from margo.errors import MargoError
    from margo.runtime import record
    from margo.tasks.showing import describe_model, describe_record, describe_unit

    made = record.of(options.folder)
    if made is None:
        raise MargoError(f"{options.folder}: no step ended well here (no step.json with status ok)")
    print(describe_record(made))
    if made["step"] not in TRAINERS:
        return
    from margo.formats.models import read_model

    hmms = read_model(options.folder / "model.npz")
    print(describe_model(hmms))
    if options.unit:
        print(describe_unit(hmms, options.unit))
    if options.htk:
        from margo.formats.htk import write_hmmdefs

        write_hmmdefs(options.htk, hmms)
        print(f"wrote {options.htk}")


if __name__ == "__main__":
    main(__doc__, Options, run)

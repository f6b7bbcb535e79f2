"""Write a model as HTK's files: definitions, list, dictionary, word network, HCopy's configuration. Prints their use.

All that the grammar adds to scores stands in the word network, so that HVite gives the scores that decode gives. Of a
model that import_htk made, what has not changed is given back byte for byte.

Example: steps/export_htk.py --model exp/tidigits/ml_1 --out exp/tidigits/htk/ml_1
"""

from dataclasses import dataclass
from pathlib import Path

from margo.runtime.step import Knobs, knob, main


@dataclass(frozen=True)
class Options(Knobs):
    model: Path = knob(help="folder of the model")
    out: Path = knob(help="folder to write")


def run(options: Options, step):
    from margo.errors import MargoError
    from margo.formats.models import read_model
    from margo.formats.reading import file_in
    from margo.tasks.htk_exchange import KEPT, export_model

    hmms = read_model(file_in(step.input(options.model, made_by="train_ml"), "model.npz"))
    try:
        print("\n".join(export_model(hmms, options.model / KEPT, step.output)))
    except MargoError as error:
        raise MargoError(f"{options.model}: {error}") from None


if __name__ == "__main__":
    main(__doc__, Options, run)

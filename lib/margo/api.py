"""What ``import margo`` offers to Python: a trained model to use, the results of a run, a training."""

import subprocess
import sys
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from margo.errors import MargoError
from margo.formats.systems import HOME, read_systems
from margo.knobs import flag

if TYPE_CHECKING:
    from pandas import DataFrame

    from margo.tasks.recognising import Recogniser

Place = str | PathLike[str]


def load(folder: Place, confidence_scale: float | None = None) -> "Recogniser":
    """The model in ``folder``, or a bare ``model.npz``, compiled for use."""
    from margo.report.overview import missing_model
    from margo.tasks.recognising import Recogniser

    if not Path(folder).is_file() and not (Path(folder) / "model.npz").is_file():
        raise missing_model(folder)
    return Recogniser(folder, confidence_scale)


def results(exp: Place) -> "DataFrame":
    """All error rates of a run as a pandas.DataFrame, a row a score (:data:`margo.report.overview.COLUMNS`)."""
    from margo.report.overview import COLUMNS, scored

    try:
        import pandas
    except ImportError:
        raise MargoError("margo.results needs pandas: pip install 'margo-speech[pandas]'") from None
    if not Path(exp).is_dir():
        raise MargoError(f"{exp}: no such folder")
    return pandas.DataFrame(scored(exp), columns=list(COLUMNS))


def train(data: Place, out: Place, criterion: str = "ml", **options) -> "Recogniser":
    """Train a system of conf/systems.toml on the feature folder ``data`` into ``out``, and load it.

    ``options`` are those of its step (``init``, ``dev``, ``iterations`` ...; ``margo train-ml --help``). What the step
    says goes to standard error and to ``out/step.log``; started again, it goes on where it was.
    """
    rows = read_systems().rows
    trained = [name for name, row in rows.items() if row.family == "hmm" and row.step]
    if criterion not in trained:
        raise MargoError(f"criterion is {criterion!r}, expected one of {', '.join(trained)}")
    words = [*rows[criterion].words, "--data", data, "--out", out]
    for key, value in options.items():
        words += [flag(key), *(value if isinstance(value, list | tuple) else [value])]
    words = [str(word).lower() if isinstance(word, bool) else str(word) for word in words]
    program = Path(rows[criterion].step)
    program = program if program.suffix else HOME / "steps" / f"{program}.py"
    said = f"{program.stem}: ended without a word"
    with subprocess.Popen([sys.executable, program, *words], stderr=subprocess.PIPE, text=True) as running:
        for said in running.stderr:
            print(said, end="", file=sys.stderr, flush=True)
    if running.returncode:
        raise MargoError(said.strip())
    return load(out)

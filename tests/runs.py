"""Every trainer, run in this process on small folders of features (:func:`contests.feature_folders`)."""

import json
import runpy
import sys
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from margo.estimate.lme.region import Lme, LmeOptions
from margo.estimate.mce import Mce, MceOptions
from margo.estimate.ml import Ml, MlOptions
from margo.estimate.mm import Mm, MmOptions
from margo.estimate.mmi import Mmi, MmiOptions
from margo.estimate.moves import PARAMETERS
from margo.runtime import record, trainer
from margo.runtime.step import Step
from margo.score.align import align
from margo.tasks import passes
from margo.tasks.training import ContestedOptions, StartOptions, TrainingOptions, first_model, train
from margo.tasks.tuning import fold_models


@dataclass(frozen=True)
class MlRun(MlOptions, StartOptions, TrainingOptions):
    pass


@dataclass(frozen=True)
class MceRun(MceOptions, ContestedOptions):
    pass


@dataclass(frozen=True)
class MmiRun(MmiOptions, TrainingOptions):
    pass


@dataclass(frozen=True)
class MmRun(MmOptions, ContestedOptions):
    pass


@dataclass(frozen=True)
class LmeRun(LmeOptions, ContestedOptions):
    also: tuple = ()


RUNS = {
    "ml": (Ml, MlRun, {"iterations": 4, "mixtures": 4, "init": "", "states": 2, "anneal": 2, "tolerance": 0}),
    "mce": (Mce, MceRun, {"iterations": 7, "refresh": 3, "check": 2, "parameters": PARAMETERS}),
    "mmi": (Mmi, MmiRun, {"iterations": 4, "check": 1, "boost": 0.0}),
    "mm": (Mm, MmRun, {"iterations": 5, "refresh": 2, "check": 2}),
    "lme": (Lme, LmeRun, {"epochs": 5, "patience": 0}),
}
PICKING = [name for name in RUNS if name != "ml"]


def go(folders, out, name, dev=True, stop_after=None, monkeypatch=None, **changes):
    """The lines of progress.jsonl and the record of a run, which is killed ``stop_after`` so many iterations."""
    criterion, options_of, settings = RUNS[name]
    settings = {"init": folders / "ml", "data": folders / "train", **settings, **changes}
    options = options_of(dev=folders / "dev" if dev else None, out=out, **settings)
    step = Step(f"train_{name}", options, [])
    step.say = step.log
    step.begin()
    more = (first_model, fold_models) if name == "ml" else ()
    if stop_after:
        advance = trainer.Training.advance

        def killed(self, iteration, state):
            if iteration > stop_after:
                raise KeyboardInterrupt
            return advance(self, iteration, state)

        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(trainer.Training, "advance", killed)
            train(criterion, options, step, *more)
        return None
    train(criterion, options, step, *more)
    step.finish()
    return [json.loads(line) for line in (out / "progress.jsonl").read_text().splitlines()], record.read(out)


def tried(reports) -> dict[int, int]:
    """Dev errors by steps taken."""
    return {report["iteration"] - 1: report["dev_errors"] + report["dev_wrong"]
            for report in reports if "dev_errors" in report}  # fmt: skip


def decoded_errors(hmms, data) -> dict[str, int]:
    """Word and string errors by a plain decoding."""
    rows = passes.decode(hmms, passes.OWN, data.items)
    errors = align([item.words for item in data.items], [words or () for _, words, _, _ in rows]).errors
    return {"dev_errors": int(errors.sum()), "dev_wrong": int((errors > 0).sum())}


def lists(root, folders, out, model="ml", data="train", n=5):
    """What steps/nbest.py leaves."""
    return run_step(root, "nbest", out, model=folders / model, data=folders / data, n=n)


def run_step(root, name, out, **options):
    """What ``steps/<name>.py`` leaves in ``out``, run in this process."""
    program = runpy.run_path(str(root / "steps" / f"{name}.py"), run_name=f"step_{name}")
    sys.modules[f"step_{name}"] = SimpleNamespace(**program)  # where workers find the class of its options
    step = Step(name, program["Options"](out=out, **options), [])
    step.say = step.log
    step.begin()
    program["run"](step.options, step)
    step.finish()
    return out

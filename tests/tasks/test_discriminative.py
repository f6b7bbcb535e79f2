"""Discriminative training on a small corpus of random features: the best model is kept, resuming changes nothing."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from contests import feature_folders, task
from margo.estimate import mmi
from margo.estimate.options import PARAMETERS, MceOptions, MmiOptions, MmOptions
from margo.formats.models import read_model
from margo.runtime.step import Parallel, Step, Trainer, option
from margo.tasks import discriminative


@dataclass(frozen=True)
class Run(Parallel, Trainer):
    data: Path = option(help="")
    dev: Path | None = option(None, help="")
    init: Path = option(help="")
    out: Path = option(help="")


@dataclass(frozen=True)
class MceRun(MceOptions, Run):
    pass


@dataclass(frozen=True)
class MmiRun(MmiOptions, Run):
    pass


@dataclass(frozen=True)
class MmRun(MmOptions, Run):
    pass


RUNS = {
    "mce": (discriminative.Mce, MceRun, {"iterations": 7, "refresh": 3, "check": 2, "parameters": PARAMETERS}),
    "mmi": (discriminative.Mmi, MmiRun, {"iterations": 3, "check": 1}),
    "mm": (discriminative.Mm, MmRun, {"iterations": 5, "refresh": 2, "check": 2}),
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return feature_folders(tmp_path_factory.mktemp("corpus"))


def go(folders, out, name, dev=True, stop_after=None, **changes):
    criterion, options_of, settings = RUNS[name]
    options = options_of(data=folders / "train", dev=folders / "dev" if dev else None, init=folders / "ml", out=out,
                         **{**settings, **changes})  # fmt: skip
    step = Step(f"train_{name}", options, [])
    step.say = step.log
    step.begin()
    if stop_after:
        advance = discriminative.Training.advance

        def killed(self, iteration, state):
            if iteration > stop_after:
                raise KeyboardInterrupt
            return advance(self, iteration, state)

        discriminative.Training.advance = killed
        try:
            with pytest.raises(KeyboardInterrupt):
                discriminative.train(name, criterion, options, step)
        finally:
            discriminative.Training.advance = advance
        return None
    discriminative.train(name, criterion, options, step)
    step.finish()
    return [json.loads(line) for line in (out / "progress.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("name", RUNS)
def test_the_best_model_on_dev_is_kept(folders, tmp_path, name):
    reports = go(folders, tmp_path / name, name)
    assert len(reports) == RUNS[name][2]["iterations"] + 1
    assert all({"objective", "train_errors", "frames", "seconds"} <= set(report) for report in reports)
    tried = {report["iteration"] - 1: report["dev_errors"] + report["dev_wrong"]
             for report in reports if "dev_errors" in report}  # fmt: skip
    hmms = read_model(tmp_path / name / "model.npz")
    assert hmms.meta["criterion"] == name and hmms.meta["iteration"] == min(tried, key=tried.get)
    assert min(tried.values()) < tried[0]
    assert reports[-1]["train_errors"] < reports[0]["train_errors"]


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("stop_after", [1, 2])
def test_resumed_runs_end_with_the_same_bytes(folders, tmp_path, name, stop_after):
    whole = go(folders, tmp_path / "whole", name)
    go(folders, tmp_path / "broken", name, stop_after=stop_after)
    resumed = go(folders, tmp_path / "broken", name)
    assert (tmp_path / "broken" / "model.npz").read_bytes() == (tmp_path / "whole" / "model.npz").read_bytes()
    for one, other in zip(whole, resumed, strict=True):
        assert {**one, "seconds": 0} == {**other, "seconds": 0}


def test_other_jobs_same_bytes(folders, tmp_path):
    go(folders, tmp_path / "one", "mce")
    go(folders, tmp_path / "two", "mce", nj=2)
    assert (tmp_path / "one" / "model.npz").read_bytes() == (tmp_path / "two" / "model.npz").read_bytes()


@pytest.mark.parametrize("name", RUNS)
def test_without_dev_the_objective_picks(folders, tmp_path, name):
    reports = go(folders, tmp_path / name, name, dev=False)
    refresh = RUNS[name][2].get("refresh", 1)
    values = {report["iteration"] - 1: report["objective"] for report in reports
              if (report["iteration"] - 1) % refresh == 0}  # fmt: skip
    best = min(values, key=values.get) if name == "mce" else max(values, key=values.get)
    assert read_model(tmp_path / name / "model.npz").meta["iteration"] == best
    assert not any("dev_errors" in report for report in reports)


def test_mmi_steps_more_carefully_once_the_objective_has_fallen():
    hmms, data = task(3, "loop", utterances=10)
    criterion = discriminative.Mmi(MmiOptions(), None, None)
    stats = mmi.accumulate(hmms, data)
    objective = stats.net.log_likelihood
    _, rose, free = criterion.update(hmms, stats, discriminative.Memory(objective=objective - 1))
    _, fell, careful = criterion.update(hmms, stats, discriminative.Memory(objective=objective + 1))
    assert (rose.caution, fell.caution) == (1.0, 2.0) and rose.objective == fell.objective == objective
    assert careful["moved"] < free["moved"]

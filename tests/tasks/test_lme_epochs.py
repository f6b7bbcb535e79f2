"""Epochs of large-margin training on a small corpus of random features."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from contests import feature_folders
from margo.errors import MargoError
from margo.estimate.lme.options import LmeOptions
from margo.runtime import epochs
from margo.runtime.step import Parallel, Step, Trainer, option
from margo.tasks import passes, speech
from margo.tasks.lme import LmeTraining


@dataclass(frozen=True)
class Options(LmeOptions, Parallel, Trainer):
    data: Path = option(help="")
    out: Path = option(help="")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return feature_folders(tmp_path_factory.mktemp("corpus"), blur=0.8)


def go(folders, out, dev=True, **settings):
    """``(last state, reports)``."""
    step = Step("train_lme", Options(data=folders / "train", out=out, **settings), [])
    step.say = step.log
    step.begin()
    data = speech.read(folders / "train")
    with step.place() as where:
        training = LmeTraining(
            step.options, passes.model_for(folders / "ml", data), data, speech.read(folders / "dev") if dev else None,
            where, step,
        )  # fmt: skip
        state, _ = epochs.train(step, training.start, training.advance, training.save, training.load)
    return state, [json.loads(line) for line in (out / "progress.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("method", ["auto", "gd"])
def test_margins_measured_anew_rise_in_every_epoch(folders, tmp_path, method):
    state, reports = go(folders, tmp_path, method=method)
    assert len(reports) == 5
    for report in reports:
        assert report["objective"] > report["before"] and report["radius"] > 0
        assert {"tokens", "margin_mean", "decode_seconds", "solve_seconds", "dev_errors", "dev_wrong"} <= set(report)
    for one, other in zip(reports, reports[1:]):  # all tokens, so that an epoch begins where the last one ended
        assert other["before"] == pytest.approx(one["objective"])
    assert reports[-1]["train_errors"] < reports[0]["train_errors"] + 5
    assert state.best_errors <= min(report["dev_errors"] + report["dev_wrong"] for report in reports)


def test_without_dev_the_fewest_train_errors_decide(folders, tmp_path):
    state, reports = go(folders, tmp_path, dev=False)
    assert state.best_errors <= min(report["train_errors"] for report in reports)
    assert "dev_errors" not in reports[0]


def test_hard_margin_of_all_tokens_ends_without_train_errors(tmp_path):
    """A few single words are separable: the hard margin finds means that recognise every one of them."""
    few = feature_folders(tmp_path, blur=1.5, train=12, longest=1)
    _, reports = go(few, tmp_path / "lme", hard=True, misrecognised=True, epochs=8)
    assert reports[0]["before"] < 0
    assert all(report["objective"] > report["before"] for report in reports)
    assert reports[-1]["train_errors"] == 0 and reports[-1]["margin_min"] > 0


def test_no_token_to_start_from_is_told(folders, tmp_path):
    with pytest.raises(MargoError, match="no training token has a margin of 0 or more up to 1e-09.*raise --threshold"):
        go(folders, tmp_path, hard=True, threshold=1e-9)


@pytest.mark.parametrize(
    "name, value", [("radius", "0"), ("radius", "wide"), ("tokens", "0"), ("nu", 0.0), ("epochs", 0)]
)
def test_bad_options_say_what_to_give(name, value):
    with pytest.raises(ValueError, match=f"--{name} is .*: give "):
        LmeOptions(**{name: value})

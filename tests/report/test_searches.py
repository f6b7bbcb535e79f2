"""What a search of settings tried, chose and held fixed, as reports show it; and what all its models share."""

import json
from types import SimpleNamespace

import pytest

from margo.errors import MargoError
from margo.report.collect import fixed_settings, read_searches
from margo.report.columns import SEARCHES, table
from margo.runtime import record


def search(folder, errors, **asked):
    """A folder that tune left: trials with these errors, their setting being their number."""
    folder.mkdir(parents=True)
    trials = [{"number": n, "error": error, "settings": {"rate": 0.5 * n}} for n, error in enumerate(errors)]
    (folder / "trials.json").write_text(json.dumps(trials))
    options = {"trainer": "train_ebw", "space": ["rate=0:1"], "fixed": ["criterion=mm"], **asked}
    record.write(folder, "tune", [], SimpleNamespace(**options), {}, ["trials.json"], 1.0, {})


def test_the_setting_with_the_fewest_errors_is_told_the_first_of_equals(tmp_path):
    search(tmp_path / "gmm/tune/mm_2", [7.0, 4.25, 4.25])
    search(tmp_path / "tune/cl_1", [3.0])
    assert table(read_searches(tmp_path), SEARCHES) == [
        ["search", "chosen", "held out %", "tried", "of", "fixed"],
        ["gmm/mm_2", "rate 0.5", "4.25", "3", "rate=0:1", "criterion=mm"],
        ["cl_1", "rate 0", "3.00", "1", "rate=0:1", "criterion=mm"],
    ]


def test_gaussians_of_each_class_are_told(tmp_path):
    (tmp_path / "hybrid-ll_4").mkdir()
    chosen = {"components": {"zero": 3, "one": 1}, "dev_error": 2.5}
    (tmp_path / "hybrid-ll_4/chosen.json").write_text(json.dumps(chosen))
    options = SimpleNamespace(components=[1, 2, 3], covariance="full")
    record.write(tmp_path / "hybrid-ll_4", "choose_components", [], options, {}, ["chosen.json"], 1.0, {})
    row = ["hybrid-ll_4", "zero 3, one 1", "2.50", "3", "components=1,2,3", "covariance=full"]
    assert table(read_searches(tmp_path), SEARCHES)[1:] == [row]


def test_a_search_without_its_record_is_refused(tmp_path):
    search(tmp_path / "tune/cl_1", [3.0])
    (tmp_path / "tune/cl_1" / record.NAME).unlink()
    with pytest.raises(MargoError, match="trials.json: a search without a trial, or without step.json"):
        read_searches(tmp_path)


def test_settings_that_all_searched_models_share_are_fixed():
    def step(trainer, conf, **options):
        return {"step": trainer, "argv": ["--conf", conf], "options": {**options, "out": "x"}}

    steps = [step("train_hybrid", "EXP/tune/a/best.toml", rank=25, rate=0.1, margin=60),
             step("train_hybrid", "EXP/tune/b/best.toml", rank=25, rate=0.2, margin=60),
             step("train_hybrid", "conf/digits.toml", rank=5, rate=0.1, margin=60),  # nothing of it was searched
             step("train_gmm", "EXP/tune/c/best.toml", tied=False)]  # fmt: skip
    assert fixed_settings(steps) == {"train_hybrid": {"rank": 25, "margin": 60}, "train_gmm": {"tied": False}}

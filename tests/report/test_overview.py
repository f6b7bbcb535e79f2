"""A run at a glance: the best is chosen on dev, what was begun is told, a missing model names those that exist."""

import json

import pytest

from margo.errors import MargoError
from margo.formats.systems import models_in
from margo.report.overview import describe_run, is_run, missing_model, nothing_here, scored
from margo.runtime.step import Step


def score(exp, system, which, percent, **more):
    folder = exp / "decode" / system / which
    folder.mkdir(parents=True)
    name, _, mixtures = system.rpartition("_")
    held = {"system": name, "mixtures": int(mixtures), "set": which, "metric": "wer", "percent": percent,
            "errors": int(percent), "total": 100, "ci95": [percent - 1, percent + 1], **more}  # fmt: skip
    (folder / "score.json").write_text(json.dumps(held))


def finished(folder, step):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "step.log").write_text("")
    (folder / "step.json").write_text(json.dumps({"status": "ok", "step": step, "outputs": {}}))


@pytest.fixture
def exp(tmp_path):
    finished(tmp_path / "data", "tidigits_data")
    for name, step in (("ml_1", "train_ml"), ("ml_2", "train_ml"), ("mce_2", "train_mce")):
        finished(tmp_path / name, step)
        (tmp_path / name / "model.npz").write_bytes(b"")
    (tmp_path / "mmi_2").mkdir()
    (tmp_path / "mmi_2" / "step.log").write_text("begun")
    for system, dev, test in (("ml_1", 9, 4), ("ml_2", 7, 6), ("mce_2", 5, 8)):
        score(tmp_path, system, "dev", dev, ser={"percent": 20.0, "errors": 2, "total": 10, "ci95": [1.0, 40.0]})
        score(tmp_path, system, "test", test)
    return tmp_path


def test_the_best_is_chosen_on_dev(exp):
    text = describe_run(exp)
    assert text.splitlines()[-1] == "best       mce_2: 5.00 % on dev, 8.00 % on test"
    assert "done       0 data; 2 maximum likelihood (ml); 4 MCE (mce)\n" in text
    assert "unfinished mmi_2\n" in text and "models     mce_2 ml_1 ml_2\n" in text
    rows = scored(exp)
    assert [(row["system"], row["mixtures"], row["set"]) for row in rows][:3] == [
        ("ml", 1, "test"), ("ml", 2, "test"), ("mce", 2, "test")
    ]  # fmt: skip
    assert [row["ser"] for row in rows][-1] == 20.0 and rows[0]["ser"] is None and rows[0]["low"] == 3


def test_test_sets_choose_nothing(exp):
    for path in exp.glob("decode/*/dev/score.json"):
        path.unlink()
    assert "best" not in describe_run(exp) and "ml_1                        4.00\n" in describe_run(exp)
    score(exp, "ml_1", "train", 1)
    score(exp, "ml_2", "train", 0)
    assert describe_run(exp).splitlines()[-1] == "best       ml_2: 0.00 % on train, 6.00 % on test"


def test_a_run_is_told_from_a_step(exp):
    assert is_run(exp) and not is_run(exp / "ml_1") and not is_run(exp / "decode")


def test_runs_that_lie_below_are_named(exp):
    above = exp / "trials"
    for name in ("b", "a"):
        finished(above / name / "ml_1", "train_ml")
    assert not is_run(above) and str(nothing_here(above)).endswith(" of a step; runs in it: a b")
    assert "mmi_2: no step ended well here (no step.json with status ok), and no m" in str(nothing_here(exp / "mmi_2"))


def test_a_missing_model_names_those_that_exist(exp):
    assert models_in(exp) == ["mce_2", "ml_1", "ml_2"]
    assert str(missing_model(exp / "none" / "ml_4")).endswith("ml_4: no such folder")
    assert str(missing_model(exp / "ml_4")).endswith(f"ml_4: no model.npz; models in {exp}: mce_2 ml_1 ml_2")
    step = Step("decode", None, [])
    with pytest.raises(MargoError, match=r"\(no such folder\): run stage 2 first .*; models there: mce_2 ml_1 ml_2$"):
        step.input(exp / "ml_4", made_by="train_ml")

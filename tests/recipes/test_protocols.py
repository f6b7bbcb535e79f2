"""The protocol of [LJ07] through both recipes that have it: no dev set anywhere, and nothing that would need one."""

import json
import subprocess
import sys

import pytest

from margo.formats.models import read_model
from margo.model.grammar import weights_of

QUICK = """
[train_ml]
iterations = 2
[train_mce]
iterations = 2
refresh = 1
[train_lme]
epochs = 2
[sweep_radius]
epochs = 1
"""


@pytest.mark.slow
@pytest.mark.parametrize("name, trained, systems", [("tidigits", 160, "ml mce"), ("isolet", 108, "ml mce lme-sdp")])
def test_the_papers_protocol(root, tmp_path, name, trained, systems):
    corpus, exp, conf = tmp_path / "corpus", tmp_path / "exp", tmp_path / "quick.toml"
    conf.write_text(QUICK)
    make = [sys.executable, root / "local" / "mini_corpus.py", name, "--out", corpus, "--size", "tiny"]
    subprocess.run(make, check=True, capture_output=True)
    recipe = [root / "recipes" / name / "run.sh", "--protocol", "paper", "--corpus", corpus, "--exp", exp, "--mix", "2",
              "--criteria", systems, "--conf", conf, "--radii", "0.001 0.01", "--stop-stage", "9"]  # fmt: skip
    done = subprocess.run(recipe, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]

    sets = {path.name for place in ("data", "mfcc", "decode/*") for path in exp.glob(f"{place}/*/")}
    assert sets == {"train", "test"}
    rows = json.loads((exp / "results.json").read_text())["rows"]
    assert {(row["system"], row["mixtures"], row["set"]) for row in rows} == {
        (system, 2, which) for system in systems.split() for which in ("train", "test")
    }
    records = {system: json.loads((exp / f"{system}_2" / "step.json").read_text()) for system in systems.split()}
    assert all(record["options"]["dev"] is None for record in records.values())
    progress = [json.loads(line) for line in (exp / "mce_2" / "progress.jsonl").read_text().splitlines()]
    losses = [line["objective"] for line in progress]
    assert len(losses) == 3 and records["mce"]["chosen"] == losses.index(min(losses))
    if name == "tidigits":  # folds of the training speakers chose the penalty, all that follows keeps it
        assert json.loads((exp / "ml_2" / "grammar.json").read_text())["chosen_on"] == "5 folds of train"
        weights = [weights_of(read_model(exp / model / "model.npz")) for model in ("ml_2", "mce_2")]
        assert weights[0] == weights[1] == records["ml"]["weights"]
    swept = json.loads((exp / "sweep" / "mce_2" / "sweep.json").read_text())
    assert swept["chosen_on"] == "train" and [*swept["best"]["accuracy"]] == ["train", "test"]
    assert [curve["radius"] for curve in swept["curves"]] == [0.001, 0.01]
    text = (exp / "RESULTS.md").read_text()
    assert "There is no development set: the training data" in text and "## Radius of LME's ball" in text
    assert f"| train | {trained} " in text and "| dev " not in text
    assert "--protocol paper" in text

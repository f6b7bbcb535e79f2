"""A criterion of one's own through a whole recipe: a class in a program, a row of a table; nothing else knows of it."""

import json
import shutil
import subprocess
import sys

import pytest

PROGRAM = '''"""Train HMMs by a hinge: push each utterance that is nearly lost away from its competitors."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from margo.estimate.contest import Contest, ContestOptions
from margo.estimate.moves import gradients, moved
from margo.knobs import knob
from margo.runtime.step import main
from margo.tasks.training import ContestedOptions, train


@dataclass(frozen=True)
class HingeOptions(ContestOptions):
    """The hinge."""

    margin: float = knob(1.0, "by which to win, in standard deviations of the measure", above=0)
    rate: float = knob(0.01, "longest step, in standard deviations", above=0)


class Hinge(Contest):
    name = "hinge"
    better = -1

    def measures_of(self, soft, rivals):
        return soft

    def value_of(self, measures, spread):
        lost = self.options.margin + measures / spread
        return np.maximum(lost, 0), (lost > 0) / spread

    def update(self, hmms, stats, memory, corpus=None):
        slopes = gradients(hmms, stats)["means"]
        return moved(hmms, {"means": -self.options.rate * slopes / np.abs(slopes).max()}), memory, {}


@dataclass(frozen=True)
class Options(HingeOptions, ContestedOptions):
    pass


if __name__ == "__main__":
    main(__doc__, Options, partial(train, Hinge))
'''
ROW = """
[system.hinge]
label = "the hinge"
what = "a hinge of the margin, descended by plain steps"
family = "hmm"
stage = 5
step = "programs/train_hinge.py"
start = "ml"
options = { iterations = 4, rate = 0.1 }
reads = ["nbest"]
"""


@pytest.mark.slow
def test_a_criterion_of_ones_own_through_the_speech_recipe(root, tmp_path):
    corpus, exp, table = tmp_path / "corpus", tmp_path / "exp", tmp_path / "mine.toml"
    (tmp_path / "programs").mkdir()
    (tmp_path / "programs" / "train_hinge.py").write_text(PROGRAM)
    table.write_text(ROW)
    subprocess.run([sys.executable, root / "local" / "mini_corpus.py", "tidigits", "--out", corpus, "--size", "tiny"],
                   check=True, capture_output=True)  # fmt: skip
    recipe = [root / "recipes" / "tidigits" / "run.sh", "--corpus", corpus, "--exp", exp, "--mix", "1",
              "--criteria", "ml hinge", "--systems", "mine.toml"]  # fmt: skip

    told = subprocess.run([*recipe, "--help"], capture_output=True, text=True, cwd=tmp_path).stdout
    assert "hinge" in told.partition("Systems of --criteria:")[2]

    done = subprocess.run(recipe, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "== tidigits: stage 5: MMI and MM (hinge)" in done.stderr
    record = json.loads((exp / "hinge_1" / "step.json").read_text())
    assert record["step"] == "train_hinge" and record["options"]["rate"] == 0.1
    assert str(exp / "nbest" / "ml_1") in record["inputs"]
    losses = [json.loads(line)["objective"] for line in (exp / "hinge_1" / "progress.jsonl").read_text().splitlines()]
    assert len(losses) == 5 and losses[-1] < losses[0]
    rows = {(row["system"], row["set"]): row for row in json.loads((exp / "results.json").read_text())["rows"]}
    assert rows.keys() == {(system, of) for system in ("ml", "hinge") for of in ("train", "dev", "test")}
    report = (exp / "RESULTS.md").read_text()
    assert "| hinge " in report and "a hinge of the margin, descended by plain steps" in report

    shutil.rmtree(exp / "hinge_1")
    done = subprocess.run([*recipe, "--stage", "7"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 1 and "hinge_1 is not complete (no such folder): run stage 5 first" in done.stderr

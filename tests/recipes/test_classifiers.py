"""The digits recipe on real digits, where they are there."""

import json
import subprocess

import pytest


def run_recipe(root, name, exp, *arguments):
    """Run ``recipes/name/run.sh``; its rows by system, mixtures and set."""
    command = [root / "recipes" / name / "run.sh", "--exp", exp, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    results = json.loads((exp / "results.json").read_text())
    return {(row["system"], row["mixtures"], row["set"]): row for row in results["rows"]}


@pytest.mark.slow
def test_real_digits(root, corpora, tmp_path):
    """USPS, one Gaussian a class, settings by folds of the training samples."""
    chosen = ["--mix", 1, "--criteria", "gmm-ml mm-smo hybrid-ll hybrid-ll-lm", "--corpus", corpora / "usps/usps.h5"]
    command = [root / "recipes" / "digits" / "run.sh", "--exp", tmp_path, *map(str, chosen), "--stop-stage", "12"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = run_recipe(root, "digits", tmp_path, *chosen, "--stage", 17)
    error = {system: rows[system, 1, "test"]["percent"] for system in ("gmm-ml", "mm-smo", "hybrid-ll", "hybrid-ll-lm")}
    assert abs(error["gmm-ml"] - 5.78) < 0.5
    assert error["mm-smo"] <= 5.5
    assert error["hybrid-ll-lm"] < error["hybrid-ll"] - 0.3

"""The classifiers' recipes as they are run: spirals whole, digits small, and real digits where they are there."""

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
def test_spirals(root, tmp_path):
    """[PW10] Table 1: both criteria near the Bayes accuracy of 86.9, far above maximum likelihood; means of 3 draws."""
    rows = run_recipe(root, "spirals", tmp_path)
    right = {system: 100 - rows[system, 12, "test"]["percent"] for system in ("gmm-ml", "gmm-cl", "gmm-mm")}
    assert len(rows["gmm-ml", 12, "test"]["runs"]) == 3 and rows["gmm-ml", 12, "test"]["total"] == 3 * 40000
    assert right["gmm-cl"] >= max(85.0, right["gmm-ml"] + 3.5)
    assert right["gmm-mm"] >= max(85.2, right["gmm-ml"] + 3.5)
    assert "Decision regions of" in (tmp_path / "report.html").read_text()


@pytest.mark.slow
def test_embedded_digits(root, tmp_path):
    """Every stage on scikit-learn's digits, and the files that its plots and tables are made of."""
    systems = ["gmm-ml", "mm-smo", "hybrid-ll", "hybrid-ll-lm"]
    rows = run_recipe(root, "digits", tmp_path, "--mix", 1, "--criteria", " ".join(systems), "--epochs", 5,
                      "--labels", 100, "--references", "knn")  # fmt: skip
    assert {(system, 1, "test") for system in [*systems, "knn"]} <= set(rows)
    assert all(rows[system, 1, "test"]["percent"] < 5 for system in systems)
    assert json.loads((tmp_path / "mm-smo_1/progress.jsonl").read_text().splitlines()[-1])["gap"] <= 0.008
    curves = json.loads((tmp_path / "missing/missing.json").read_text())["curves"]
    assert set(curves) == {"hybrid-ll_1", "lambda_0", "lambda_0.1", "lambda_0.5", "lambda_0.9"}
    few = json.loads((tmp_path / "labels/labels.json").read_text())[0]
    assert sum(few["semi_supervised"]) < sum(few["supervised"])
    report = (tmp_path / "report.html").read_text()
    assert "Error with missing features" in report and "Error with few labels" in report


@pytest.mark.slow
def test_real_digits(root, corpora, tmp_path):
    """USPS, one Gaussian a class, settings by folds of the training samples."""
    chosen = ["--mix", 1, "--criteria", "gmm-ml mm-smo hybrid-ll hybrid-ll-lm", "--corpus", corpora / "usps/usps.h5"]
    command = [root / "recipes" / "digits" / "run.sh", "--exp", tmp_path, *map(str, chosen), "--stop-stage", "12"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = run_recipe(root, "digits", tmp_path, *chosen, "--stage", 16)
    error = {system: rows[system, 1, "test"]["percent"] for system in ("gmm-ml", "mm-smo", "hybrid-ll", "hybrid-ll-lm")}
    assert abs(error["gmm-ml"] - 5.78) < 0.5
    assert error["mm-smo"] <= 5.5
    assert error["hybrid-ll-lm"] < error["hybrid-ll"] - 0.3

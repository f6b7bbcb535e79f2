"""The classifiers' steps as commands, on small tables: from data to scores, interrupted and resumed, and refusals."""

import json
import subprocess
import sys

import numpy as np
import pytest

from margo.formats.tables import read_table


def step(root, name, *arguments, code=0):
    folder = "steps" if (root / "steps" / f"{name}.py").exists() else "local"
    command = [sys.executable, str(root / folder / f"{name}.py"), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    return done.stderr


@pytest.fixture(scope="module")
def spirals(tmp_path_factory):
    from pathlib import Path

    root = Path(__file__).resolve().parents[2]
    exp = tmp_path_factory.mktemp("spirals")
    step(root, "spirals_data", "--out", exp / "data", "--draws", 1, "--train", 400, "--test", 1000)
    step(root, "train_gmm", "--data", exp / "data/0", "--mixtures", 12, "--out", exp / "gmm-ml_12")
    return exp


@pytest.mark.slow
def test_from_data_to_scores_and_plots(root, spirals):
    step(root, "train_ebw", "--data", spirals / "data/0", "--init", spirals / "gmm-ml_12", "--criterion", "cl",
         "--iterations", 40, "--out", spirals / "gmm-cl_12")  # fmt: skip
    errors = {}
    for system in ("gmm-ml", "gmm-cl"):
        model = spirals / f"{system}_12"
        step(root, "test_gmm", "--model", model, "--data", spirals / "data/0", "--system", system,
             "--out", spirals / "test" / model.name)  # fmt: skip
        score = json.loads((spirals / "test" / model.name / "test" / "score.json").read_text())
        assert (score["system"], score["mixtures"], score["metric"], score["total"]) == (system, 12, "err", 2000)
        errors[system] = score["percent"]
    assert errors["gmm-cl"] < errors["gmm-ml"]
    step(root, "plot_boundary", "--model", spirals / "gmm-cl_12", "--data", spirals / "data/0", "--cells", 20,
         "--out", spirals / "boundary")  # fmt: skip
    plot = json.loads((spirals / "boundary/plots.json").read_text())[0]
    assert np.shape(plot["region"]["values"]) == (20, 20)


def test_an_interrupted_trainer_goes_on_to_the_same_bytes(root, spirals):
    common = ["--data", spirals / "data/0", "--init", spirals / "gmm-ml_12", "--epochs", 3, "--batch", 50]
    step(root, "train_hybrid", *common, "--out", spirals / "whole")
    code = (
        "import runpy, sys, os; from margo.classify import hybrid; real = hybrid.advance\n"
        "def stop(state, layout, x, y, options, epoch, *rest):\n"
        "    if epoch == 3: os._exit(9)\n"
        "    return real(state, layout, x, y, options, epoch, *rest)\n"
        "hybrid.advance = stop; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    command = [sys.executable, "-c", code, root / "steps/train_hybrid.py", *common, "--out", spirals / "cut"]
    killed = subprocess.run([str(part) for part in command], capture_output=True)
    assert killed.returncode == 9 and not (spirals / "cut/model.npz").exists()
    assert "resuming after iteration 2" in step(root, "train_hybrid", *common, "--out", spirals / "cut")
    assert (spirals / "cut/model.npz").read_bytes() == (spirals / "whole/model.npz").read_bytes()


@pytest.mark.slow
def test_search_is_resumed_and_its_best_is_a_configuration(root, spirals):
    data = spirals / "searched"
    data.mkdir()
    (data / "train.npz").write_bytes((spirals / "data/0/train.npz").read_bytes())
    (data / "dev.npz").write_bytes((spirals / "data/0/test.npz").read_bytes())
    space = ["--trainer", "train_gmm", "--data", data, "--space", "mixtures=1,12", "--out", spirals / "tune"]
    assert "trial 0" in step(root, "tune", *space, "--trials", 1)
    second = step(root, "tune", *space, "--trials", 9)
    assert "going on after 1 trials" in second and "trial 0" not in second
    assert len(json.loads((spirals / "tune/trials.json").read_text())) == 2
    assert "mixtures = 12" in (spirals / "tune/best.toml").read_text()
    step(root, "train_gmm", "--conf", spirals / "tune/best.toml", "--data", data, "--out", spirals / "tuned")
    faults = step(root, "tune", "--trainer", "train_gmm", "--data", data, "--space", "depth=1", "ridge=a,b",
                  "--out", spirals / "no", code=1)  # fmt: skip
    assert "2 faults" in faults and "has no option depth" in faults


def test_every_fold_trains_on_every_class():
    from margo.tasks.tuning_classifiers import assign_folds

    y = np.repeat([0, 1, 2], [1, 2, 400])
    for seed in range(20):
        fold = assign_folds(y, 4, np.random.default_rng(seed))
        assert fold[0] == -1 and set(fold[y == 2]) == {0, 1, 2, 3}
        assert all({*y[fold != n]} == {0, 1, 2} for n in range(4))


def test_a_table_with_gaps_goes_through(root, tmp_path):
    rng = np.random.default_rng(0)
    lines = ["a,b,c,class"]
    for n in range(120):
        values = rng.normal(size=3) + 3.0 * (n % 2)
        cells = ["" if rng.random() < 0.1 else f"{value:.3f}" for value in values]
        lines.append(",".join([*cells, "roof" if n % 2 else "water"]))
    (tmp_path / "pixels.csv").write_text("\n".join(lines) + "\n")
    said = step(root, "digits_data", "--corpus", tmp_path / "pixels.csv", "--out", tmp_path / "data")
    assert "it has missing values" in said
    assert read_table(tmp_path / "data/pca/test.npz").names == ("roof", "water")
    assert json.loads((tmp_path / "data/corpus.json").read_text()) == {"corpus": "pixels", "synthetic": False}
    step(root, "train_gmm", "--data", tmp_path / "data/pca", "--covariance", "full", "--out", tmp_path / "ml")
    step(root, "sweep_missing", "--model", tmp_path / "ml", "--data", tmp_path / "data/pca", "--fractions", 0, 0.4,
         "--out", tmp_path / "missing")  # fmt: skip
    curve = json.loads((tmp_path / "missing/missing.json").read_text())["curves"]["ml"]
    assert curve[0]["error"] < 20


def test_refusals_are_one_line(root, spirals, tmp_path):
    said = step(root, "train_ebw", "--data", tmp_path, "--init", tmp_path, "--out", tmp_path / "x", code=1)
    assert "train.npz: no such file: run the data stage first" in said
    said = step(root, "train_ebw", "--data", spirals / "data/0", "--init", tmp_path, "--out", tmp_path / "x", code=1)
    assert "is not complete" in said
    said = step(root, "train_gmm", "--data", tmp_path, "--out", tmp_path / "x", "--mixtures", 0, code=2)
    assert "--mixtures is 0, expected at least 1" in said

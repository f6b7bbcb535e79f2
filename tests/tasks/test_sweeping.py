"""Curves over settings, progress and missing values; components a class; pictures of samples."""

import json
import struct
import zlib
from base64 import b64decode
from types import SimpleNamespace

import numpy as np
import pytest

from margo.classify import gmm, hybrid
from margo.classify.gmm import GmmOptions
from margo.classify.hybrid import HybridOptions
from margo.errors import MargoError
from margo.formats.plots import picture_address, plot_faults
from margo.formats.tables import Table
from margo.tasks import peers, preparing, sweeping, tuning_classifiers
from margo.tasks.tuning_classifiers import choose_columns, choose_components


def table(seed=0, N=60, D=4, classes=3):
    rng = np.random.default_rng(seed)
    y = np.arange(N * classes) % classes
    return Table(rng.normal(size=(len(y), D)) + 1.5 * y[:, None], y, tuple("abc"[:classes]))


STEP = SimpleNamespace(progress=lambda values, what: values, say=lambda text: None)


def test_gaps_are_the_same_for_all_and_bands_are_deviations():
    data, seen = table(), {"one": [], "two": []}
    deciders = {name: lambda x, name=name: seen[name].append(x) or np.zeros(len(x), int) for name in seen}
    options = SimpleNamespace(samples=30, fractions=(0.0, 0.5), repeats=4, seed=1)
    found, plots = sweeping.missing_curves(deciders, data, options, STEP)
    for a, b in zip(seen["one"], seen["two"]):
        np.testing.assert_array_equal(a, b)
    assert [np.isnan(x).sum(axis=1).tolist() for x in seen["one"][1:]] == [[0] * 30] * 4 + [[2] * 30] * 4
    assert found["samples"] == 30 and found["curves"]["one"][1]["sd"] == 0.0
    assert plot_faults(plots) == [] and "sd" in plots[0]["series"][0] and "sd" not in plots[1]["series"][0]


def test_references_fill_gaps_with_training_means():
    train, dev = table(0), table(1)
    decide = peers.imputing("knn", train, dev, 0, 100)
    x = dev.x[:5].copy()
    filled = x.copy()
    x[:, 1], filled[:, 1] = np.nan, train.x[:, 1].mean()
    np.testing.assert_array_equal(decide(x), decide(filled))
    classifier, _, count = peers.fitted("mlp", train, dev, 0, 100)
    assert peers.parameters(classifier, 4) == 4 * 100 + 100 + 100 * 3 + 3 and count == 360


def test_components_of_each_class_err_least_together():
    """No other single change errs less; a class whose samples are two clumps takes two Gaussians."""
    rng = np.random.default_rng(0)
    y, good = rng.integers(0, 4, 80), [0, 1, 2, 0]
    joint = rng.normal(size=(3, 80, 4))
    for c in range(4):  # each class is told best by another
        joint[good[c], y == c, c] += 2.0
    chosen, error = choose_columns(joint, y)
    wrong = [(joint[which, :, np.arange(4)].argmax(axis=0) != y).mean()
             for c in range(4) for n in range(3) for which in [[*chosen[:c], n, *chosen[c + 1 :]]]]  # fmt: skip
    assert error == min(wrong) and error < min((joint[n].argmax(axis=1) != y).mean() for n in range(3))
    clump = np.repeat([[-4.0], [4.0]], 100, axis=0) + 0.3 * rng.normal(size=(200, 1))
    x = np.concatenate([4 * rng.normal(size=(200, 1)), clump])  # alike in mean and spread
    clumps = Table(x, np.repeat([0, 1], 200), ("a", "b"))
    options = SimpleNamespace(**vars(GmmOptions()), components=(1, 2), seed=0)
    model, counts, _ = choose_components(clumps, clumps, options)
    assert counts[1] == 2 and model.pool.sizes.tolist() == counts
    np.testing.assert_allclose(np.add.reduceat(np.exp(model.pool.log_weights), model.pool.offsets[:-1]), 1.0)


@pytest.mark.parametrize("covariance", ["full", "diagonal", "dplr"])
def test_drawn_samples_have_the_class_moments(covariance):
    data = table(N=100)
    model, _ = gmm.fit(data.x, data.y, GmmOptions(mixtures=2, covariance=covariance, rank=1), np.random.default_rng(0))
    drawn = gmm.draw(model, 1, 40000, np.random.default_rng(1))
    pool = model.pool.take([1])
    weights = np.exp(pool.log_weights)
    mean = weights @ pool.means
    second = np.einsum("k,kde->de", weights, pool.covariances.dense() + pool.means[:, :, None] * pool.means[:, None])
    np.testing.assert_allclose(drawn.mean(axis=0), mean, atol=0.06)
    np.testing.assert_allclose(np.cov(drawn.T), second - np.outer(mean, mean), atol=0.12)


def test_more_labels_than_samples_are_left_out_and_said_to_be():
    """[R18] Table 2 has 25,000 labels, USPS 6076 samples; the paper's curve stands beside ours where it is whole."""
    said, few, many = [], "supervised (ll-lm)", "semi-supervised (ll-lm)"
    figures = {(few, 12): 9.0, (few, 60): 5.0, (many, 12): 4.0}
    options = SimpleNamespace(**vars(HybridOptions(rank=1, epochs=1, precision=False)), labels=(12, 60, 100), draws=1,
                              objectives=("ll-lm",), start_ridge=0.3, seed=0)  # fmt: skip
    step = SimpleNamespace(say=said.append)
    rows, [plot] = sweeping.label_curves(table(N=20), table(1, N=20), options, step, lambda *key: figures.get(key))
    assert [row["labels"] for row in rows] == [12, 60] and plot_faults([plot]) == []
    assert said[0] == plot["note"] == "100 labels left out: there are 60 training samples."
    assert [line["name"] for line in plot["series"]] == [few, many, f"{few}, the paper"]
    assert plot["series"][2]["y"] == [9.0, 5.0]
    options.labels = (100,)
    with pytest.raises(MargoError, match="100 labels asked for; expected 60 .the samples. or fewer"):
        sweeping.label_curves(table(N=20), table(1, N=20), options, step)


@pytest.mark.parametrize("folds", [1, 4])
def test_a_search_without_folds_scores_the_epoch_that_dev_likes_best(tmp_path, monkeypatch, folds):
    """[R18] 4.2.1: as its training does; with folds the last epoch, as the training on all samples ends with it."""
    train, dev, settings = table(N=20), table(1, N=20), {"rank": 1, "precision": False, "epochs": 8, "rate": 0.3}
    start, _ = gmm.fit(train.x, train.y, GmmOptions(covariance="full"), np.random.default_rng(0))
    _, reports = hybrid.fit(start, train.x, train.y, HybridOptions(**settings), 0, (dev.x, dev.y))
    errors = [report["validation_error"] for report in reports]
    assert min(errors) < errors[-1]
    monkeypatch.setattr(tuning_classifiers, "folds_of", lambda options, step: [(train, dev)])
    monkeypatch.setattr(tuning_classifiers, "starts_of", lambda options, folds, step: [start])
    fixed = [f"{name}={str(value).lower()}" for name, value in settings.items() if name != "rate"]
    options = SimpleNamespace(trainer="train_hybrid", space=["rate=0.3"], fixed=fixed, folds=folds, seed=0, trials=1,
                              out=tmp_path)  # fmt: skip
    step = SimpleNamespace(out=tmp_path, inputs={}, say=lambda text: None, output=tmp_path.joinpath)
    tuning_classifiers.search(options, step)
    [trial] = json.loads((tmp_path / "trials.json").read_text())
    assert trial["error"] == pytest.approx(min(errors) if folds == 1 else errors[-1])


def test_a_picture_is_a_png_of_its_pixels():
    grey = np.arange(12, dtype=np.uint8).reshape(3, 4)
    held = b64decode(picture_address(grey).partition(",")[2])
    assert held[:8] == b"\x89PNG\r\n\x1a\n" and struct.unpack(">II", held[16:24]) == (4, 3)
    at = held.index(b"IDAT")
    lines = zlib.decompress(held[at + 4 : at + 4 + struct.unpack(">I", held[at - 4 : at])[0]])
    assert lines == b"".join(b"\0" + row.tobytes() for row in grey)


def test_progress_of_every_iteration_is_drawn(tmp_path):
    lines = [{"iteration": 10, "objective": 0.0, "each": {"objective": [*range(10)], "wrong": [5] * 10}},
             {"iteration": 13, "objective": 0.0, "each": {"objective": [20, 21, 22], "wrong": [4] * 3}}]  # fmt: skip
    (tmp_path / "progress.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    [plot] = sweeping.progress_plots([tmp_path], "iteration", ("objective", "wrong"), 100)
    assert plot["series"][0]["x"] == [*range(1, 14)] and plot["series"][0]["y"] == [*range(10), 20, 21, 22]
    assert [one["name"] for one in plot["series"]] == ["objective", "wrong"]
    with pytest.raises(MargoError, match="tells no cpu_seconds"):
        sweeping.progress_plots([tmp_path], "cpu_seconds", ("objective",), 100)


def test_remade_images_are_turned_or_on_noise():
    images = np.zeros((4, 64))
    images[:, 3::8] = 1.0  # an upright line
    tables = {"train": Table(images, np.zeros(4, int), ("0",))}
    turned = preparing.remade(tables, "rot", np.random.default_rng(0))["train"].x
    assert len(np.unique(turned.round(3), axis=0)) == 4 and (turned.sum(axis=1) > 4).all()
    noisy = preparing.remade(tables, "back-rand", np.random.default_rng(0))["train"].x
    assert (noisy >= images).all() and noisy[images == 0].std() > 0.25
    with pytest.raises(MargoError, match="needs square images"):
        preparing.remade({"train": Table(np.zeros((2, 10)), np.zeros(2, int), ("0",))}, "rot", np.random.default_rng(0))


def test_a_test_file_beside_a_table(tmp_path):
    (tmp_path / "train.csv").write_text("a,b,class\n" + "".join(f"{n},{n % 3},{'xyz'[n % 3]}\n" for n in range(30)))
    (tmp_path / "test.csv").write_text("a,b,class\n1,2,z\n3,4,x\n5,6,\n")
    name, tables = preparing.load(str(tmp_path / "train.csv"), "", str(tmp_path / "test.csv"))
    assert (name, tables["test"].y.tolist(), tables["test"].names) == ("train", [2, 0, -1], ("x", "y", "z"))
    (tmp_path / "test.csv").write_text("a,class\n1,w\n")
    with pytest.raises(MargoError, match="1 features, classes w; .* has 2, and x, y, z"):
        preparing.load(str(tmp_path / "train.csv"), "", str(tmp_path / "test.csv"))


def test_a_race_is_told_in_multiples_of_the_seconds_of_the_one_that_proves_a_bound(tmp_path):
    """The bound is 100; what comes after 20 times SMO's 2 seconds is not told."""
    lines = {"smo": [{"iteration": 1, "objective": -104.0, "dual": 90.0, "cpu_seconds": 1.0},
                     {"iteration": 2, "objective": -101.0, "dual": 100.0, "cpu_seconds": 2.0}],
             "grad": [{"iteration": 1, "objective": -300.0, "cpu_seconds": 3.0},
                      {"iteration": 2, "objective": -110.0, "cpu_seconds": 9.0},
                      {"iteration": 3, "objective": -102.0, "cpu_seconds": 41.0}]}  # fmt: skip
    for name, told in lines.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "progress.jsonl").write_text("".join(json.dumps(line) + "\n" for line in told))
    plot = sweeping.race_table([tmp_path / "smo", tmp_path / "grad"])
    assert plot_faults([plot]) == [] and plot["columns"][2:] == ["1 x", "2 x", "5 x", "10 x", "20 x"]
    assert plot["cells"] == [["smo", "2.0", *["1.00"] * 5], ["grad", "41.0", "inf", "200.00", *["10.00"] * 3]]
    with pytest.raises(MargoError, match="0 of grad have a dual"):
        sweeping.race_table([tmp_path / "grad"])

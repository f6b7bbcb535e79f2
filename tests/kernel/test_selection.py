"""Systems for many classes: features of kernels against scikit-learn, pairs' spaces against their own, the grid."""

import types
from dataclasses import replace

import numpy as np
import pytest
from sklearn.svm import SVC

from margo.errors import MargoError
from margo.kernel.metric import measure
from margo.kernel.scorespace import fit_mixtures, score
from margo.kernel.selection import (
    SCHEMES,
    Setting,
    centre_groups,
    choose,
    classify,
    decide_binary,
    decide_start,
    families,
    grid,
    is_sound,
    kernel_features,
    pair_scores,
    plurality,
    questioner,
    rank,
)
from margo.kernel.svm import solve_binary
from margo.tasks.mixture_kernels import classify_left_out


def samples(rng, n=120, classes=4, spread=0.3):
    y = np.tile(np.arange(classes), n // classes)
    return rng.normal(size=(n, 3)) * spread + 3 * np.eye(classes)[y][:, :3], y


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width, starts", [(0.0, 1), (1.0, 2)])
def test_every_scheme_separates_separable_classes(scheme, width, starts):
    x, y = samples(np.random.default_rng(3))
    made = classify(x[:80], y[:80], x[80:], [Setting(1 + (starts > 1), scheme=scheme, width=width)], starts, 0, 7)[0]
    assert (made == y[80:]).mean() > 0.95


@pytest.mark.parametrize("scheme, space", [("joint", "ll"), ("pairs", "llr"), ("pairs", "llr-mean")])
def test_training_changes_decisions(scheme, space):
    rng = np.random.default_rng(4)
    x, y = samples(rng, spread=1.0)
    pool = fit_mixtures(x, y, 1, rng)
    setting = Setting(1, space=space, scheme=scheme)
    plain, trained = decide_start(x, y, x, pool, [setting, replace(setting, iterations=5)], None)
    assert plain.shape == trained.shape == (120, 4 if scheme == "joint" else 6)
    assert 0 < np.abs(plain - trained).max() < 10


@pytest.mark.parametrize("space", ["llr", "llr-mean", "llr-mean-var"])
def test_a_pairs_space_is_cut_from_that_of_all_classes(space):
    rng = np.random.default_rng(5)
    x, y = samples(rng)
    pool = fit_mixtures(x, y, 2, rng)
    cut = pair_scores(score(pool, x, space.replace("llr", "ll"))[0], 1, 3, 4)
    np.testing.assert_allclose(cut, score(pool.take([1, 3]), x, space)[0], rtol=1e-12, atol=1e-12)


def test_kernel_features_are_the_kernel():
    rng = np.random.default_rng(6)
    phi = rng.normal(size=(50, 4)) * [1, 5, 0.1, 3] + 2
    z = measure(phi[:40]).factor(phi)
    gaussian = np.exp(-((z[:, None] - z[:40]) ** 2).sum(2) / (2 * 4 * 0.7**2))
    made = kernel_features(phi, 40, 0.7)
    np.testing.assert_allclose(made @ made[:40].T, gaussian, atol=1e-3)
    wide = rng.normal(size=(50, 90))
    z, made = measure(wide[:40]).factor(wide), kernel_features(wide, 40, 0.0)
    assert made.shape[1] <= 40
    np.testing.assert_allclose(made @ made[:40].T, z @ z[:40].T, atol=1e-8)


def test_pairwise_decisions_are_scikit_learns():
    rng = np.random.default_rng(7)
    x, y = samples(rng, spread=1.5)
    pool = fit_mixtures(x, y, 1, rng)
    setting = Setting(1, scheme="pairs", width=1.0, cost=2.0)
    ours = decide_start(x[:90], y[:90], x[90:], pool, [setting], None)[0][:, 0]
    phi = score(pool, x, "ll")[0]
    z = measure(phi[:90]).factor(phi)
    own = y[:90] <= 1
    peer = SVC(C=2.0, gamma=1 / (2 * z.shape[1]), tol=1e-6).fit(z[:90][own], y[:90][own])
    np.testing.assert_allclose(ours, -peer.decision_function(z[90:]), atol=0.02)


def left_out(x, y, groups, settings):
    step = types.SimpleNamespace(progress=lambda done, *rest: done)
    return classify_left_out((x, y, groups), settings, 1, 0, None, step)


def test_a_group_is_classified_by_systems_of_the_others():
    rng = np.random.default_rng(8)
    y = np.tile(np.arange(3), 40)
    groups = np.repeat(np.arange(4), 30)
    x = rng.normal(size=(120, 2)) * 0.7 + 1.5 * np.eye(3)[y][:, :2] + 3 * rng.normal(size=(4, 2))[groups]
    settings = [Setting(m, cost=cost) for m in (2, 1) for cost in (0.1, 1.0)]
    raw = left_out(x, y, groups, settings)
    for number, setting in enumerate(settings):
        own = groups == 2
        np.testing.assert_array_equal(raw[number, own], classify(x[~own], y[~own], x[own], [setting], 1, 0)[0])
    other = np.where(groups == 2, (y + 1) % 3, y)  # its own labels do not matter to a group
    np.testing.assert_array_equal(left_out(x, other, groups, settings)[:, groups == 2], raw[:, groups == 2])
    centred = left_out(centre_groups(x, groups), y, groups, settings)
    assert (centred != y).mean() < 0.6 * (raw != y).mean()


def test_plurality_and_its_ties():
    made = np.array([[0, 1, 2, 3], [1, 1, 0, 2], [1, 0, 1, 2], [0, 2, 2, 3]])
    assert plurality(made, 4).tolist() == [0, 1, 2, 3]
    assert plurality(made[1:], 4).tolist() == [1, 1, 0, 2]


def test_lucky_systems_do_not_choose_themselves():
    """Systems that guess, each right in a group of its own: leading a ranking on some groups says nothing of others."""
    rng = np.random.default_rng(9)
    y, groups = np.tile(np.arange(4), 60), np.repeat(np.arange(6), 40)
    good = np.where(rng.random((8, 240)) < 0.55, y, rng.integers(0, 4, (8, 240)))
    lucky = rng.integers(0, 4, (6, 240))
    for g in range(6):
        lucky[g, groups != g] = np.where(rng.random(200) < 0.75, y[groups != g], rng.integers(0, 4, 200))
    made = np.concatenate([lucky, good])
    settings = [Setting(1, cost=1.0 + n) for n in range(14)]
    chosen, errors = choose(settings, made, y, groups, (1, 14, 99))
    assert list(errors) == [1, 14] and errors[14] < errors[1] and len(chosen) == 14
    nested = 0
    for g in range(6):
        own = groups == g
        nested += int((made[(made[:, ~own] != y[~own]).sum(1).argmin(), own] != y[own]).sum())
    assert errors[1] == nested > (made != y).sum(1).min()


def test_the_simpler_of_equals_comes_first():
    settings = [Setting(2), Setting(1, tied=False), Setting(1, width=1.0), Setting(1), Setting(1, space="ll-mean")]
    assert rank(settings, np.array([5, 5, 5, 5, 4])) == [4, 3, 2, 1, 0]
    assert [len(family) for family in families(settings)] == [1, 3, 1]


def test_a_grid_holds_every_sound_combination_once():
    values = ((1, 3), ("tied", "own"), (0.01, 0.1), ("ll", "llr", "ll-mean"), SCHEMES, (0.0, 1.0), (1.0, 10.0), (0, 5))
    made = grid(*values)
    assert len(set(made)) == len(made) and all(map(is_sound, made))
    # a family: ll 5 schemes x 2 kernels x 2 costs, llr 1 x 2, ll-mean 2 x 2; one Gaussian: also 3 kinds trained
    assert [len(family) for family in families(made)] == [29, 29, 29, 26, 26, 26]
    with pytest.raises(MargoError, match="no such system"):
        classify(np.zeros((4, 2)), np.arange(4) % 2, np.zeros((1, 2)), [Setting(space="llr", scheme="rest")], 1, 0)


@pytest.mark.parametrize("columns", [3, 60])
def test_questions_are_those_of_machines_alone_and_asked_once(columns, monkeypatch):
    """Of few features (interior point) and many (SMO from the kernel given); a complement is the same machine."""
    from margo.kernel import selection

    rng = np.random.default_rng(12)
    y, asked = np.tile(np.arange(3), 20), []
    rows = rng.normal(size=(90, columns))
    rows[:60, :3] += np.eye(3)[y]
    monkeypatch.setattr(selection, "solve_binary", lambda *a, **k: asked.append(1) or solve_binary(*a, **k))
    code = np.array([[1, -1, -1, 1], [-1, 1, -1, -1], [-1, -1, 1, -1]])
    ask = questioner(rows, y, 1.0)
    alone = np.stack([decide_binary(rows, question[y], 1.0) for question in code.T], axis=1)
    asked.clear()
    np.testing.assert_allclose(ask(code), alone, atol=1e-4)
    np.testing.assert_allclose(ask(-code), -alone, atol=1e-4)
    assert len(asked) == 3

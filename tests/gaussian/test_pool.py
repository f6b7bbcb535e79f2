"""Pools refuse what is wrong with them, and the compiled likelihoods are the textbook's."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from margo.errors import MargoError
from margo.gaussian.covariances import Diagonal, Full
from margo.gaussian.likelihood import (
    batches,
    evaluate,
    log_likelihoods,
    log_likelihoods_of_many,
    scorer,
)
from margo.gaussian.pool import GaussianPool
from oracles import log_gaussians, path_components, random_hmms


def pool_of(**changes) -> GaussianPool:
    parts = {
        "means": np.zeros((3, 2)),
        "covariances": np.ones((3, 2)),
        "log_weights": np.log([0.25, 0.75, 1.0]),
        "offsets": np.array([0, 2, 3]),
    }
    return GaussianPool(**{**parts, **changes})


def with_value(array, place, value):
    array = np.array(array, float)
    array[place] = value
    return array


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"covariances": with_value(np.ones((3, 2)), (1, 0), 0.0)}, "state 0, component 1, dimension 0: variance 0.0"),
        ({"covariances": with_value(np.ones((3, 2)), (2, 1), np.nan)}, "state 1, component 0, dim.* 1: variance nan"),
        ({"covariances": with_value(np.ones((3, 2)), (2, 1), -2)}, "variance -2.0, not a positive number"),
        ({"means": with_value(np.zeros((3, 2)), (0, 1), np.inf)}, "state 0, component 0, dimension 1: mean inf"),
        ({"log_weights": np.log([0.25, 0.5, 1.0])}, "state 0: weights sum to 0.75"),
        ({"log_weights": np.array([np.nan, 0, 0])}, "state 0, component 0: log weight nan"),
        ({"covariances": np.ones((2, 2))}, r"variances have shape \(2, 2\)"),
        ({"log_weights": np.zeros(2)}, "log_weights have shape"),
        ({"offsets": np.array([0, 3, 3])}, "state 1 has no Gaussian"),
        ({"offsets": np.array([0, 2])}, "offsets do not run from 0 to 3"),
        ({"means": np.zeros(3)}, "means have shape"),
    ],
)
def test_a_bad_pool_is_refused_and_its_place_named(changes, said):
    with pytest.raises(MargoError, match=said):
        pool_of(**changes)


def test_all_faults_are_told_at_once():
    with pytest.raises(MargoError, match="2 faults") as caught:
        variances = with_value(np.ones((3, 2)), (1, 0), 0.0)
        pool_of(covariances=variances, means=with_value(np.zeros((3, 2)), (2, 0), np.nan))
    assert "state 0, component 1" in str(caught.value) and "state 1, component 0" in str(caught.value)


def test_batches_are_runs_of_at_most_so_many_frames():
    lengths = [5, 3, 9, 1, 1, 0, 7]
    runs = [lengths[run] for run in batches(lengths, 8)]
    assert runs == [[5, 3], [9], [1, 1, 0], [7]] and list(batches([], 8)) == []


def test_some_states_of_a_pool():
    pool = pool_of(means=np.arange(6.0).reshape(3, 2))
    part = pool.take([1, 0])
    assert part.offsets.tolist() == [0, 1, 3] and part.means[:, 0].tolist() == [4, 0, 2]
    np.testing.assert_array_equal(part.log_weights, pool.log_weights[[2, 0, 1]])


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-10), (np.float32, 2e-4)])
def test_likelihoods_of_a_ragged_pool(dtype, tolerance):
    rng = np.random.default_rng(2)
    hmms = random_hmms(rng, words=4, mixtures=7, dimension=13)
    x = rng.normal(3, 2, (300, 13)).astype(np.float32)
    states = np.array([5, 0, 7])
    expected = log_gaussians(hmms.pool, x.astype(float))
    compiled = scorer(hmms.pool, states, dtype)
    found = log_likelihoods(compiled, x)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, expected[:, states], atol=tolerance, rtol=1e-6)
    whole = evaluate(compiled, x)
    np.testing.assert_array_equal(whole.log_likelihoods, found)
    for column, state in enumerate(states):
        size = hmms.pool.sizes[state]
        assert compiled.gaussians[:size, column].tolist() == [*range(*hmms.pool.offsets[state : state + 2])]
        components = path_components(hmms.pool, x, np.full(len(x), state))[:, :size]
        shares = whole.shares[:, :size, column] / whole.totals[:, column, None]
        np.testing.assert_allclose(shares, np.exp(components - expected[:, state, None]), atol=5 * tolerance)
        assert (compiled.gaussians[size:, column] == -1).all() and (whole.shares[:, size:, column] < 1e-37).all()
    parts = [x[:1], x[1:200], x[200:200], x[200:]]
    np.testing.assert_allclose(
        np.concatenate(list(log_likelihoods_of_many(compiled, parts, batch=64))), found, atol=tolerance
    )


def test_single_precision_is_good_enough_for_sharp_speech_like_models():
    """Means far from zero, variances over five decades: still under a thousandth of a nat a frame."""
    rng = np.random.default_rng(3)
    spread = 10 ** rng.uniform(-2.5, 2, 39)
    means = 40 * rng.normal(size=39) + spread * rng.normal(size=(64, 39))
    pool = GaussianPool(
        means, (0.3 * spread) ** 2 * rng.uniform(0.5, 2, (64, 39)), np.full(64, -np.log(8)), np.arange(0, 65, 8)
    )
    x = pool.means[rng.integers(0, 64, 500)] + np.sqrt(pool.variances[0]) * rng.normal(size=(500, 39))
    single = log_likelihoods(scorer(pool), x.astype(np.float32)).max(axis=1)
    double = log_likelihoods(scorer(pool, dtype=np.float64), x.astype(np.float32)).max(axis=1)
    assert np.abs(single - double).max() < 1e-3


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_missing_values_are_integrated_out(dtype):
    rng = np.random.default_rng(4)
    hmms = random_hmms(rng, mixtures=3, dimension=3)
    x = rng.normal(size=(20, 3))
    x[rng.random(x.shape) < 0.4] = np.nan
    x[0] = np.nan  # nothing observed: every state explains it fully
    found = log_likelihoods(scorer(hmms.pool, dtype=dtype), x)
    np.testing.assert_allclose(found, log_gaussians(hmms.pool, x), atol=1e-10 if dtype == np.float64 else 1e-4)
    np.testing.assert_allclose(found[0], 0, atol=1e-5)


def test_dead_components_do_not_count():
    pool = pool_of(log_weights=np.array([-np.inf, 0.0, 0.0]), means=np.array([[0, 0], [5, 5], [1, 1.0]]))
    alone = pool_of(log_weights=np.array([0.0, -np.inf, 0.0]), means=np.array([[5, 5], [0, 0], [1, 1.0]]))
    x = np.random.default_rng(0).normal(size=(9, 2))
    one, other = (log_likelihoods(scorer(p, dtype=np.float64), x) for p in (pool, alone))
    np.testing.assert_allclose(one, other, atol=1e-12)


def test_frames_of_the_wrong_width_are_refused():
    with pytest.raises(ValueError, match=r"expects \[T, 2\]"):
        log_likelihoods(scorer(pool_of()), np.zeros((4, 3)))


def full_pool(rng, dimension=5, sizes=(2, 1, 3)) -> GaussianPool:
    """Correlated Gaussians, ragged states."""
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    root = rng.normal(size=(offsets[-1], dimension, dimension))
    weights = np.concatenate([rng.dirichlet(np.ones(size)) for size in sizes])
    matrices = root @ root.transpose(0, 2, 1) + 0.2 * np.eye(dimension)
    return GaussianPool(rng.normal(2, 2, (offsets[-1], dimension)), matrices, np.log(weights), offsets)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("missing", [False, True])
def test_likelihoods_of_full_covariances_are_the_textbooks_in_any_precision(dtype, missing):
    rng = np.random.default_rng(6)
    pool = full_pool(rng)
    x = rng.normal(2, 3, (40, 5))
    if missing:
        x[rng.random(x.shape) < 0.3] = np.nan
    states = np.array([2, 0])
    compiled = scorer(pool, states, dtype)
    scores = log_likelihoods(compiled, x)
    np.testing.assert_allclose(scores, log_gaussians(pool, x)[:, states], atol=1e-9)
    if not missing:
        whole = evaluate(compiled, x)
        np.testing.assert_array_equal(whole.log_likelihoods, scores)
        shares = whole.shares[:, :3, 0] / whole.totals[:, 0, None]
        components = path_components(pool, x, np.full(40, 2))
        np.testing.assert_allclose(shares, np.exp(components - log_gaussians(pool, x)[:, [2]]), atol=1e-9)


def test_full_covariances_that_are_diagonal_score_as_diagonal_ones():
    rng = np.random.default_rng(7)
    diagonal = random_hmms(rng, mixtures=3, dimension=4).pool
    full = GaussianPool(diagonal.means, diagonal.covariances.dense(), diagonal.log_weights, diagonal.offsets)
    assert full.covariances.kind == "full"
    x = rng.normal(size=(30, 4))
    one, other = (log_likelihoods(scorer(pool, dtype=np.float64), x) for pool in (diagonal, full))
    np.testing.assert_allclose(one, other, atol=1e-10)


def test_sharply_correlated_dimensions_keep_their_digits():
    """Dimensions that differ by a thousandth of their spread, far from the origin: in float32 nothing would be left."""
    rng = np.random.default_rng(8)
    common = rng.normal(0, 10, (200, 1))
    x = 100 + common + 0.01 * rng.normal(size=(200, 4))
    pool = GaussianPool([x.mean(0)], [np.cov(x.T)], [0.0], [0, 1])
    want = [multivariate_normal(pool.means[0], pool.covariances.matrices[0]).logpdf(frame) for frame in x]
    np.testing.assert_allclose(log_likelihoods(scorer(pool), x)[:, 0], want, atol=1e-8)


def test_a_matrix_that_is_no_covariance_is_named():
    matrices = np.tile(np.eye(2), (3, 1, 1))
    matrices[2] = [[1.0, 2.0], [2.0, 1.0]]
    with pytest.raises(MargoError, match="state 1, component 0, dimension 0: variance -1.0"):
        pool_of(covariances=matrices)
    matrices[1, 0, 1] = np.nan
    with pytest.raises(MargoError, match="state 0, component 1, dimension 0: variance nan"):
        pool_of(covariances=matrices)
    with pytest.raises(MargoError, match="a word kernel needs diagonal covariances, the model has full ones"):
        full_pool(np.random.default_rng(0)).require("diagonal", "a word kernel")


@pytest.mark.parametrize("full", [False, True])
def test_usual_is_what_a_states_own_frames_have(full):
    """One Gaussian: the mean over many draws. Two far apart, of unequal weights: the same, within what draws tell."""
    rng = np.random.default_rng(0)
    means, variances = rng.normal(0, 1, (3, 4)), rng.uniform(0.5, 2, (3, 4))
    means[2] += 100
    covariances = Full(np.stack([np.diag(each) + 0.2 for each in variances])) if full else Diagonal(variances)
    pool = GaussianPool(means, covariances, np.log([1.0, 0.3, 0.7]), np.array([0, 1, 3]))
    dense = covariances.dense()
    first, *second = (rng.multivariate_normal(means[k], dense[k], n) for k, n in ((0, 20000), (1, 6000), (2, 14000)))
    for state, x in enumerate((first, np.concatenate(second))):
        own = log_likelihoods(scorer(pool, [state], np.float64), x)[:, 0]
        assert own.mean() == pytest.approx(pool.usual[state], abs=5 * own.std() / np.sqrt(len(own)))

"""Baum-Welch with full covariances: statistics by brute force, the law of EM, diagonal as a special case, a peer."""

from dataclasses import replace

import numpy as np
import pytest

from margo.estimate.ml import MlOptions, accumulate, update
from margo.gaussian.likelihood import log_likelihoods, scorer
from margo.gaussian.pool import GaussianPool
from margo.model.graph import align_graph
from margo.model.hmm import HmmSet, Unit, flat_start, whole_words
from margo.search.forward_backward import posteriors
from oracles import log_gaussians, path_components, random_hmms


def full(hmms: HmmSet, rng=None) -> HmmSet:
    """``hmms`` with full covariances, correlated where there is a generator."""
    matrices = hmms.pool.covariances.dense()
    if rng is not None:
        roots = 0.5 * rng.normal(size=matrices.shape)
        matrices = matrices + roots @ roots.transpose(0, 2, 1)
    return hmms.with_pool(replace(hmms.pool, covariances=matrices))


def problem(seed, mixtures=2, dimension=3, n=5):
    rng = np.random.default_rng(seed)
    hmms = random_hmms(rng, words=2, mixtures=mixtures, dimension=dimension)
    utterances = []
    for i in range(n):
        words = [hmms.words[w] for w in rng.integers(0, 2, rng.integers(1, 4))]
        mixing = np.eye(dimension) + 0.5 * rng.normal(size=(dimension, dimension))
        utterances.append((f"u{i}", rng.normal(0, 2, (int(rng.integers(15, 30)), dimension)) @ mixing, words))
    return rng, hmms, utterances


def test_statistics_are_sums_of_outer_products():
    rng, hmms, utterances = problem(0)
    hmms = full(hmms, rng)
    stats = accumulate(hmms, utterances)
    pool = hmms.pool
    occupancy, first, second = np.zeros(pool.n_gaussians), np.zeros(pool.means.shape), np.zeros(pool.covariances.shape)
    for _, x, words in utterances:
        graph = align_graph(hmms, words)
        states = posteriors(graph, log_gaussians(pool, x)[:, graph.states]).occupancies
        for column, state in enumerate(graph.states):
            components = path_components(pool, x, np.full(len(x), state))
            shares = np.exp(components - np.logaddexp.reduce(components, axis=1)[:, None])
            for m in range(pool.sizes[state]):
                k, w, y = pool.offsets[state] + m, states[:, column] * shares[:, m], x - pool.centre
                occupancy[k] += w.sum()
                first[k] += w @ y
                second[k] += np.einsum("t,ti,tj->ij", w, y, y)
    np.testing.assert_allclose(stats.occupancy, occupancy, atol=1e-9)
    np.testing.assert_allclose(stats.first, first, atol=1e-8)
    np.testing.assert_allclose(stats.second, second, atol=1e-8)


def objectives(seed, tying="none", spoil=lambda hmms: hmms) -> np.ndarray:
    """Of twelve iterations, each model spoiled."""
    _, hmms, utterances = problem(seed)
    hmms, values = replace(full(hmms), variance_floor=np.full(3, 1e-4)), []
    options = MlOptions(covariance="full", tie_variances=tying, dead_weight=0.0)
    for _ in range(12):
        hmms, report = update(hmms, accumulate(hmms, utterances, options), options)
        hmms = spoil(hmms)
        values.append(report["objective"])
    return np.array(values)


@pytest.mark.parametrize("tying", ["none", "state", "global"])
@pytest.mark.parametrize("seed", range(3))
def test_the_likelihood_rises_at_every_iteration(seed, tying):
    values = objectives(seed, tying)
    assert (np.diff(values) >= -1e-9).all() and values[-1] > values[0] + 0.1


def test_the_law_is_seen_to_break():
    def forget(hmms):  # correlations
        return hmms.with_pool(replace(hmms.pool, covariances=hmms.pool.covariances.dense() * np.eye(3)))

    def widen(hmms):
        return hmms.with_pool(replace(hmms.pool, covariances=1.5 * hmms.pool.covariances.matrices))

    for spoil in (forget, widen):
        values = objectives(0, spoil=spoil)
        assert (np.diff(values) < -1e-9).any() or values[-1] < objectives(0)[-1] - 0.1


def test_one_pass_from_a_diagonal_model_has_its_variances_on_the_diagonal():
    _, hmms, utterances = problem(2)
    hmms = replace(hmms, variance_floor=np.full(3, 1e-6))
    options = MlOptions(double=True)
    one, _ = update(hmms, accumulate(hmms, utterances, options), options)
    other, _ = update(full(hmms), accumulate(full(hmms), utterances, options), options)
    np.testing.assert_allclose(other.pool.variances, one.pool.variances, rtol=1e-6)
    np.testing.assert_allclose(other.pool.means, one.pool.means, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(other.log_transitions, one.log_transitions, atol=1e-9)
    assert np.abs(other.pool.covariances.matrices - other.pool.covariances.dense() * np.eye(3)).max() > 0.1


def test_few_frames_are_floored_into_a_sound_model():
    rng = np.random.default_rng(3)
    hmms = full(flat_start(whole_words("a"), 2, np.zeros(6), np.ones(6), variance_floor=np.full(6, 0.01)))
    x = rng.normal(size=(5, 6))
    for _ in range(4):
        hmms, report = update(hmms, accumulate(hmms, [("u", x, ["a"])]))
    assert report["floored"] > 0 and np.linalg.eigvalsh(hmms.pool.covariances.matrices).min() >= 0.01 - 1e-12


def test_hmmlearn_gives_the_same_likelihoods_and_takes_the_same_steps():
    """A full-covariance GaussianHMM; a constant exit probability makes its open end ours."""
    hmmlearn = pytest.importorskip("hmmlearn.hmm")
    rng = np.random.default_rng(4)
    n, d, leave = 3, 2, 0.1
    peer = hmmlearn.GaussianHMM(n, "full", min_covar=0.0, n_iter=1, params="mc", init_params="", covars_prior=0.0,
                                covars_weight=0.0, means_weight=0.0)  # fmt: skip
    peer.startprob_, peer.transmat_ = rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(n), n)
    roots = rng.normal(size=(n, d, d))
    peer.means_, peer.covars_ = rng.normal(0, 2, (n, d)), roots @ roots.transpose(0, 2, 1) + 0.3 * np.eye(d)
    peer.n_features = d
    x = rng.normal(0, 2, (60, d))
    a = np.zeros((n + 2, n + 2))
    a[0, 1:-1], a[1:-1, 1:-1], a[1:-1, -1] = peer.startprob_, peer.transmat_ * (1 - leave), leave
    with np.errstate(divide="ignore"):
        unit = Unit("a", np.arange(n), np.log(a))
    hmms = HmmSet(GaussianPool(peer.means_, peer.covars_, np.zeros(n), np.arange(n + 1)), (unit,), {"a": ("a",)})
    offset = (len(x) - 1) * np.log(1 - leave) + np.log(leave)
    for _ in range(3):
        graph = align_graph(hmms, ["a"])
        found = posteriors(graph, log_likelihoods(scorer(hmms.pool, graph.states), x))
        assert found.log_likelihood[0] - offset == pytest.approx(peer.score(x), rel=1e-9)
        np.testing.assert_allclose(found.occupancies, peer.predict_proba(x), atol=1e-8)
        peer.fit(x)
        updated, _ = update(hmms, accumulate(hmms, [("u", x, ["a"])]))
        hmms = hmms.with_pool(updated.pool)
        np.testing.assert_allclose(hmms.pool.means, peer.means_, atol=1e-8)
        np.testing.assert_allclose(hmms.pool.covariances.matrices, peer.covars_, atol=1e-8)

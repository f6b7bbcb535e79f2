"""Score-spaces of hidden Markov models against enumeration of paths, the printed (46) and finite differences."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

from margo.errors import MargoError
from margo.gaussian.pool import GaussianPool
from margo.kernel import hmm_scorespace
from margo.kernel.chain import chain_of, make_chain, occupy
from margo.kernel.hmm_scorespace import Frames, WordModel
from margo.kernel.metric import METRICS, measure, score_gradient
from margo.kernel.scorespace import SPACES
from margo.model.graph import align_graph
from margo.model.hmm import flat_start, whole_words
from margo.search.forward_backward import posteriors
from oracles import forgetting, kernel_energy, numeric

WHOLE = [*SPACES, "ll-mean-weight", "fisher-weight", "llr-mean-var-weight"]


def make_model(rng, states=3, mixtures=2, dims=2, fixed=0) -> WordModel:
    """Left to right with skips; with ``fixed`` a silent node before it and, of the same state, behind it."""
    extra = 2 if fixed else 0
    size = states + extra
    transitions = np.triu(rng.uniform(0.2, 1, (size, size))) * (np.tri(size, k=2) > 0)
    final = np.zeros(size)
    final[-2:] = 0.3
    total = transitions.sum(1) + final
    initial = np.zeros(size)
    initial[:2] = 0.5
    state = np.r_[states, np.arange(states), states] if fixed else np.arange(states)
    log_weights = np.log(rng.dirichlet(np.full(mixtures, 3.0), states)).ravel()
    means, variances = rng.normal(size=(states * mixtures, dims)), rng.uniform(0.6, 1.8, (states * mixtures, dims))
    chain = make_chain(state, transitions / total[:, None], initial, final / total)
    return WordModel(chain, GaussianPool(means, variances, log_weights, np.arange(states + 1) * mixtures))


def make_frames(rng, lengths=(5, 4, 7), dims=2, fixed=0) -> Frames:
    bounds = np.concatenate([[0], np.cumsum(lengths)])
    return Frames(rng.normal(size=(bounds[-1], dims)), bounds, rng.normal(size=(bounds[-1], fixed)) - 3)


def paths(model: WordModel, x, fixed):
    """All ``(log probability, [(state, component or -1) of each frame])`` of one utterance."""
    chain, column = model.chain, model.chain.column
    dense = np.full((len(column) + 2,) * 2, -np.inf)
    dense[chain.source, chain.destination] = chain.log_prob
    states = len(model.pool.offsets) - 1
    choices = [
        [(node, k) for node, s in enumerate(column)
         for k in (range(model.pool.offsets[s], model.pool.offsets[s + 1]) if s < states else [-1])]
    ]  # fmt: skip
    log_p = model.pool.log_weights + norm.logpdf(x[:, None], model.pool.means, np.sqrt(model.pool.variances)).sum(-1)
    found = []
    for path in itertools.product(*choices * len(x)):
        value = dense[chain.start, path[0][0]] + dense[path[-1][0], chain.end]
        value += sum(dense[a[0], b[0]] for a, b in itertools.pairwise(path))
        if value > -np.inf:
            value += sum(log_p[t, k] if k >= 0 else fixed[t, column[node] - states]
                         for t, (node, k) in enumerate(path))  # fmt: skip
            found.append((value, [k for _, k in path]))
    return found


def relative(a, b) -> float:
    return float(np.abs(a - b).max() / np.abs(b).max())


@pytest.mark.parametrize("fixed", [0, 1])
def test_likelihood_and_derivatives_against_all_paths(fixed):
    rng = np.random.default_rng(1)
    model, frames = make_model(rng, states=2, fixed=fixed), make_frames(rng, (3, 4), fixed=fixed)
    phi, _ = hmm_scorespace.score([model], frames, "ll-mean-var", per_frame=False)
    size = model.pool.means.size
    for i in range(2):
        rows = slice(frames.bounds[i], frames.bounds[i + 1])
        x = frames.x[rows]
        found = paths(model, x, frames.fixed[rows])
        total = logsumexp([value for value, _ in found])
        assert phi[i, 0] == pytest.approx(total, rel=1e-12)
        by_mean, by_variance = np.zeros_like(model.pool.means), np.zeros_like(model.pool.means)
        for value, path in found:
            for t, k in enumerate(path):
                if k >= 0:
                    e = (x[t] - model.pool.means[k]) / model.pool.variances[k]
                    by_mean[k] += np.exp(value - total) * e
                    by_variance[k] += np.exp(value - total) * 0.5 * (e**2 - 1 / model.pool.variances[k])
        np.testing.assert_allclose(phi[i, 1 : 1 + size], by_mean.ravel(), atol=1e-12)
        np.testing.assert_allclose(phi[i, 1 + size :], by_variance.ravel(), atol=1e-12)


@pytest.mark.parametrize("fixed, per_frame", [(0, False), (1, True)])
@pytest.mark.parametrize("space", WHOLE)
def test_pullback_against_finite_differences(space, fixed, per_frame):
    rng = np.random.default_rng(2)
    models = [make_model(rng, fixed=fixed), make_model(rng, states=2, mixtures=1, fixed=fixed)]
    models = models[:1] if space.startswith("fisher1") else models
    frames = make_frames(rng, fixed=fixed)
    phi, pullback = hmm_scorespace.score(models, frames, space, per_frame=per_frame)
    weights = rng.normal(size=phi.shape)

    def total(vector):
        moved = hmm_scorespace.from_vector(vector, models)
        return float((weights * hmm_scorespace.score(moved, frames, space, per_frame=per_frame)[0]).sum())

    def by_vector(gradients):
        return hmm_scorespace.gradient_to_vector(models, models, gradients)

    expected = numeric(total, hmm_scorespace.to_vector(models, models))
    assert relative(by_vector(pullback(weights)), expected) < 1e-6
    for kind, fewer in forgetting(space, [model.pool.n_gaussians for model in models], 2, weights):
        assert relative(by_vector(pullback(fewer)), expected) > 1e-3, kind  # the deliberate mistake, for every kind
    if "-" in space or "fisher" in space:  # and another: frames that know nothing of each other
        alone = hmm_scorespace.score(models, frames, space, 0, per_frame)[1]
        assert relative(by_vector(alone(weights)), expected) > 1e-3


@pytest.mark.parametrize("kind", METRICS)
@pytest.mark.parametrize("space", WHOLE)
def test_gradient_of_the_objective_with_the_metric_moving(space, kind):
    rng = np.random.default_rng(3)
    models = [make_model(rng, states=2), make_model(rng, states=2, mixtures=1)]
    models = models[:1] if space.startswith("fisher1") else models
    frames = make_frames(rng, rng.integers(3, 8, 12))
    coefficients = rng.normal(size=(12, 1))
    blocks = hmm_scorespace.blocks(models, space)

    def objective(vector):
        phi, _ = hmm_scorespace.score(hmm_scorespace.from_vector(vector, models), frames, space)
        return -0.5 * kernel_energy(phi, coefficients, measure(phi, kind, blocks, 1e-2))

    phi, pullback = hmm_scorespace.score(models, frames, space)
    metric = measure(phi, kind, blocks, 1e-2)
    expected = numeric(objective, hmm_scorespace.to_vector(models, models))
    for right, made in ((True, metric), (False, replace(metric, free=not metric.free))):
        gradients = pullback(score_gradient(phi, coefficients, made))
        analytic = hmm_scorespace.gradient_to_vector(models, models, gradients)
        assert relative(analytic, expected) < 1e-6 if right else relative(analytic, expected) > 1e-3


def test_weights_scores_are_derivatives_by_logits():
    rng = np.random.default_rng(13)
    model, frames = make_model(rng), make_frames(rng)
    phi, _ = hmm_scorespace.score([model], frames, "ll-weight", per_frame=False)

    def likelihood(logits, i):
        whole = logits.reshape(3, 2)
        pool = replace(model.pool, log_weights=(whole - logsumexp(whole, axis=1, keepdims=True)).ravel())
        return hmm_scorespace.score([replace(model, pool=pool)], frames, "ll", per_frame=False)[0][i, 0]

    for i in range(frames.count):
        assert relative(phi[i, 1:], numeric(lambda v, i=i: likelihood(v, i), model.pool.log_weights)) < 1e-6


def test_sharp_models_have_the_gradient_of_every_path():
    """Densities hundreds of nats apart: what is left out as negligible changes nothing that can be seen."""
    rng = np.random.default_rng(14)
    models = [make_model(rng, fixed=1), make_model(rng, states=2, fixed=1)]
    models = [replace(model, pool=replace(model.pool, covariances=0.01 * model.pool.variances)) for model in models]
    frames = make_frames(rng, (9, 12, 7), fixed=1)
    phi, pullback = hmm_scorespace.score(models, frames, "llr-mean-var")
    weights = rng.normal(size=phi.shape)

    def total(vector):
        moved = hmm_scorespace.from_vector(vector, models)
        return float((weights * hmm_scorespace.score(moved, frames, "llr-mean-var")[0]).sum())

    analytic = hmm_scorespace.gradient_to_vector(models, models, pullback(weights))
    assert relative(analytic, numeric(total, hmm_scorespace.to_vector(models, models))) < 1e-5


def second_derivatives(model, x, window):
    """[L04] (46) as printed, by the joint posteriors of every pair of frames at most ``window`` apart."""
    n, dims = model.pool.means.shape
    found = paths(model, x, np.zeros((len(x), 0)))
    weights = np.exp(np.array([value for value, _ in found]) - logsumexp([value for value, _ in found]))
    indicator = np.array([np.eye(n)[path] for _, path in found])  # [paths, T, K]
    gamma = np.einsum("p,ptk->tk", weights, indicator)
    joint = np.einsum("p,ptj,puk->tjuk", weights, indicator, indicator)
    e = (x[:, None] - model.pool.means) / model.pool.variances
    hessian = np.zeros((n, dims, n, dims))
    for t, u in itertools.product(range(len(x)), repeat=2):
        if abs(t - u) <= window:
            covariance = joint[t, :, u] - np.outer(gamma[t], gamma[u])
            hessian += np.einsum("jk,ja,kb->jakb", covariance, e[t], e[u])
    for k in range(n):
        hessian[k, :, k] -= np.diag(gamma[:, k].sum() / model.pool.variances[k])
    return hessian.reshape(n * dims, n * dims)


def hessian_of(model, frames, window):
    """Second derivatives by means, one product with a unit vector at a time."""
    size = model.pool.means.size
    _, pullback = hmm_scorespace.score([model], frames, "ll-mean", window, per_frame=False)
    rows = []
    for unit in np.eye(size):
        d_phi = np.concatenate([[0.0], unit])[None]
        rows.append(pullback(d_phi)[0][0].ravel())
    return np.array(rows)


def test_second_derivatives_are_the_printed_ones_for_every_window():
    rng = np.random.default_rng(4)
    model, frames = make_model(rng, states=2), make_frames(rng, (5,))
    exact = second_derivatives(model, frames.x, 5)
    np.testing.assert_allclose(hessian_of(model, frames, None), exact, atol=1e-12)
    distances = []
    for window in range(5):
        ours = hessian_of(model, frames, window)
        np.testing.assert_allclose(ours, second_derivatives(model, frames.x, window), atol=1e-12)
        distances.append(np.abs(ours - exact).max())
    assert distances[0] > 1e-2 and distances[-1] < 1e-12


def test_window_tends_to_the_exact_second_derivative():
    rng = np.random.default_rng(5)
    model, frames = make_model(rng, states=4, mixtures=2), make_frames(rng, (40,))
    exact = hessian_of(model, frames, None)
    far = [np.abs(hessian_of(model, frames, window) - exact).max() for window in (0, 5, 10, 20, 39)]
    assert far[-1] < 1e-10 and far[3] < far[2] < far[1] < far[0]


def test_chain_of_a_graph_has_the_engine_s_posteriors():
    rng = np.random.default_rng(6)
    hmms = flat_start(whole_words(["a", "b"]), 4, np.zeros(2), np.ones(2), silence="sil", silence_states=2, skip=0.1)
    graph = align_graph(hmms, ["b"])
    scores = rng.normal(size=(23, len(graph.states))) * 3
    bounds = np.array([0, 9, 23])
    theirs = posteriors(graph, scores, bounds)
    ours = occupy(chain_of(graph), scores, bounds)
    np.testing.assert_allclose(ours.log_likelihoods, theirs.log_likelihood, rtol=1e-12)
    states = np.zeros(scores.shape)
    np.add.at(states, (np.repeat(np.arange(23), np.diff(ours.starts)), graph.arcs.column[ours.node]), ours.gamma)
    np.testing.assert_allclose(states, theirs.occupancies, atol=1e-12)


def test_word_model_scores_like_the_engine():
    from margo.gaussian.likelihood import log_likelihoods, scorer

    rng = np.random.default_rng(7)
    hmms = flat_start(whole_words(["a", "b"]), 3, np.zeros(2), np.ones(2), silence="sil", silence_states=2)
    pool = hmms.pool
    hmms = hmms.with_pool(type(pool)(rng.normal(size=pool.means.shape), pool.variances, pool.log_weights, pool.offsets))
    x, bounds = rng.normal(size=(20, 2)), np.array([0, 8, 20])
    fixed = log_likelihoods(scorer(hmms.pool, hmm_scorespace.silence_states(hmms), dtype=np.float64), x)
    model = hmm_scorespace.word_model(hmms, "b")
    phi, _ = hmm_scorespace.score([model], Frames(x, bounds, fixed), "ll", per_frame=False)
    graph = align_graph(hmms, ["b"])
    whole = log_likelihoods(scorer(hmms.pool, graph.states, dtype=np.float64), x)
    np.testing.assert_allclose(phi[:, 0], posteriors(graph, whole, bounds).log_likelihood, rtol=1e-10)


def test_too_short_an_utterance_is_named():
    rng = np.random.default_rng(8)
    model = make_model(rng, states=6)
    with pytest.raises(MargoError, match=r"utterance number 1 \(1 frames\) has no path"):
        hmm_scorespace.score([model], make_frames(rng, (8, 1)), "ll")

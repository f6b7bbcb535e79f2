"""Score-spaces of mixtures: values against scipy, every derivative against finite differences."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

from margo.errors import MargoError
from margo.gaussian.mixtures import log_mixtures
from margo.gaussian.pool import GaussianPool
from margo.kernel import scorespace
from margo.kernel.descent import decision
from margo.kernel.metric import METRICS, measure, score_gradient
from margo.kernel.scorespace import SPACES, by_class, fit_mixtures, from_vector, moving_scores, to_vector
from margo.kernel.svm import solve_binary
from oracles import forgetting, kernel_energy, numeric

WHOLE = [*SPACES, "llr-mean-weight", "llr-second", "ll-mean-var-weight-second", "fisher-weight",
         "fisher1-weight-second"]  # fmt: skip


def make_pool(rng, classes=2, mixtures=3, dims=2) -> GaussianPool:
    weights = rng.dirichlet(np.full(mixtures, 4.0), classes).ravel()
    shape = (classes * mixtures, dims)
    return GaussianPool(
        rng.normal(size=shape), rng.uniform(0.5, 2.0, size=shape), np.log(weights), np.arange(classes + 1) * mixtures
    )


def relative(a, b) -> float:
    return float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-12))


def test_log_likelihoods_against_scipy():
    rng = np.random.default_rng(1)
    pool, x = make_pool(rng), rng.normal(size=(7, 2))
    per_component = norm.logpdf(x[:, None], pool.means, np.sqrt(pool.variances)).sum(-1) + pool.log_weights
    expected = logsumexp(per_component.reshape(7, 2, 3), axis=2)
    np.testing.assert_allclose(log_mixtures(pool, x), expected, rtol=1e-12)


def test_scores_are_the_derivatives_of_the_likelihoods():
    rng = np.random.default_rng(2)
    pool, x = make_pool(rng), rng.normal(size=(5, 2))
    phi, _ = scorespace.score(pool, x, "llr-mean-var")
    log_lik = log_mixtures(pool, x)
    np.testing.assert_allclose(phi[:, 0], log_lik[:, 0] - log_lik[:, 1], rtol=1e-12)
    size = pool.means.size // 2
    for c in range(2):
        for kind, (name, array) in enumerate((("means", pool.means), ("covariances", pool.variances))):
            values = by_class(pool, array)

            def likelihoods(flat, c=c, name=name, values=values):
                moved = values.copy()
                moved[c] = flat.reshape(moved[c].shape)
                changed = replace(pool, **{name: moved.reshape(pool.means.shape)})
                return log_mixtures(changed, x)[:, c]

            for i in range(len(x)):
                expected = numeric(lambda flat, i=i: likelihoods(flat)[i], values[c].ravel())
                first = 1 + (2 * c + kind) * size
                assert relative(phi[i, first : first + size], expected) < 1e-6


def of(space: str) -> dict:
    """As many models as the space needs."""
    return {"classes": 1 if space.startswith("fisher1") else 2}


def test_weights_and_second_derivatives_are_those_of_the_likelihoods():
    rng = np.random.default_rng(12)
    pool, x = make_pool(rng, classes=1), rng.normal(size=(4, 2))
    phi, _ = scorespace.score(pool, x, "ll-weight-second")
    for i in range(len(x)):

        def likelihood(logits, i=i):
            return log_mixtures(replace(pool, log_weights=logits - logsumexp(logits)), x)[i, 0]

        assert relative(phi[i, 1:4], numeric(likelihood, pool.log_weights)) < 1e-6
        for k in range(6):  # a mean's own second derivative: that of its first one

            def first(value, i=i, k=k):
                means = pool.means.copy()
                means.flat[k] = value[0]
                return scorespace.score(replace(pool, means=means), x, "ll-mean")[0][i, 1 + k]

            assert relative(phi[i, [4 + k]], numeric(first, pool.means.flat[[k]])) < 1e-6


@pytest.mark.parametrize("space", WHOLE)
def test_pullback_is_the_transposed_derivative_of_the_scores(space):
    rng = np.random.default_rng(3)
    pool, x = make_pool(rng, **of(space)), rng.normal(size=(6, 2))
    weights = rng.normal(size=scorespace.score(pool, x, space)[0].shape)
    start = replace(make_pool(rng, **of(space)), log_weights=pool.log_weights)

    def total(vector):
        return float((weights * scorespace.score(from_vector(vector, start), x, space)[0]).sum())

    vector = to_vector(pool, start)
    pullback = moving_scores(x, space, start)(vector)[1]
    expected = numeric(total, vector)
    assert relative(pullback(weights), expected) < 1e-6
    for kind, fewer in forgetting(space, pool.sizes, 2, weights):  # the deliberate mistake, for every kind of score
        assert relative(pullback(fewer), expected) > 1e-3, kind


@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("kind", METRICS)
@pytest.mark.parametrize("space", WHOLE)
def test_gradient_of_the_objective_moves_the_metric_too(space, kind, columns):
    """[L04] (36)-(40): the kernel's gradient with G recomputed from the scores at every point."""
    rng = np.random.default_rng(4)
    pool, x = make_pool(rng, mixtures=2, **of(space)), rng.normal(size=(30, 2))
    coefficients = rng.normal(size=(len(x), columns))
    block = scorespace.blocks(space, pool.sizes, 2)

    def objective(vector):
        phi, _ = scorespace.score(from_vector(vector, pool), x, space)
        return -0.5 * kernel_energy(phi, coefficients, measure(phi, kind, block, 1e-3))

    phi, by_vector = moving_scores(x, space, pool)(to_vector(pool, pool))
    metric = measure(phi, kind, block, 1e-3)  # weights of two components are each other's opposites: G is singular
    analytic = by_vector(score_gradient(phi, coefficients, metric))
    expected = numeric(objective, to_vector(pool, pool))
    assert relative(analytic, expected) < 1e-6
    # the deliberate mistake: without the metric's own part, or with one where G stays, the gradient is another
    wrong = score_gradient(phi, coefficients, replace(metric, free=kind == "none"))
    assert relative(by_vector(wrong), expected) > 1e-3


def test_metric_is_the_covariance_within_blocks():
    rng = np.random.default_rng(5)
    phi = rng.normal(size=(40, 5)) @ rng.normal(size=(5, 5))
    covariance = np.cov(phi.T, bias=True)
    blocks = np.array([0, 1, 1, 2, 2])
    inside = blocks[:, None] == blocks
    s = rng.normal(size=(5, 2))
    np.testing.assert_allclose(measure(phi).solve(s), s / np.diag(covariance)[:, None], rtol=1e-12)
    expected = np.linalg.solve(np.where(inside, covariance, 0), s)
    metric = measure(phi, "block", blocks)
    np.testing.assert_allclose(metric.solve(s), expected, rtol=1e-5)
    z, centred = metric.factor(phi), phi - phi.mean(0)
    np.testing.assert_allclose(z @ z.T, centred @ metric.solve(centred.T), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(measure(phi, "full", ridge=0.0).solve(s), np.linalg.solve(covariance, s), rtol=1e-5)
    stiff = covariance + np.diag(0.5 * np.diag(covariance))
    np.testing.assert_allclose(measure(phi, "full", ridge=0.5).solve(s), np.linalg.solve(stiff, s), rtol=1e-9)


@pytest.mark.parametrize("kind", METRICS)
def test_scores_of_a_gaussian_that_no_sample_comes_near_do_not_decide(kind):
    """Its posteriors are e^-200: divided by their deviation they would outweigh all else where a later sample is near
    it, with weights that no file holds."""
    rng = np.random.default_rng(15)
    pool, x = make_pool(rng, mixtures=2), rng.normal(size=(30, 2))
    far = np.array([20.0, 0.0])
    means = pool.means.copy()
    means[0] = far
    pool = replace(pool, means=means)
    phi = scorespace.score(pool, x, "llr-mean")[0]
    assert 0 < phi[:, 1:3].std(0).max() < 1e-40
    signs = np.where(np.arange(30) % 2, 1, -1)
    metric = measure(phi, kind, scorespace.blocks("llr-mean", pool.sizes, 2))
    weights, bias = decision(phi, metric, solve_binary(metric.factor(phi), signs))
    assert np.abs(weights[1:3]).max() < 1e-20 < np.abs(weights[3:]).max() < 1e3
    near = scorespace.score(pool, far[None], "llr-mean")[0]
    assert np.abs(near @ weights + bias).max() < 1e4


def test_features_are_selected_by_fisher_ratio():
    rng = np.random.default_rng(6)
    y = np.repeat([0, 1], 50)
    phi = rng.normal(size=(100, 6))
    phi[:, 1] += 3 * y
    phi[:, 4] -= 2 * y
    assert scorespace.select_features(phi, y, 2).tolist() == [1, 4]
    one = phi[:, 1]
    within = 50 * one[y == 0].var() + 50 * one[y == 1].var()
    between = 50 * sum((one[y == c].mean() - one.mean()) ** 2 for c in (0, 1))
    assert scorespace.fisher_ratios(phi, y)[1] == pytest.approx(between / within)


def test_blocks_match_the_layout_of_the_scores():
    rng = np.random.default_rng(7)
    for space in WHOLE:
        pool, x = make_pool(rng, **of(space)), rng.normal(size=(3, 2))
        phi, _ = scorespace.score(pool, x, space)
        assert len(scorespace.blocks(space, pool.sizes, 2)) == phi.shape[1]
    assert scorespace.blocks("llr-mean-weight", [2, 2], 2).tolist() == [0, 1, 1, 2, 2, 3, 4, 5, 5, 6, 6, 7, 8]


def test_unknown_space_and_wrong_class_count_are_named():
    pool = make_pool(np.random.default_rng(0), classes=3)
    with pytest.raises(MargoError, match="expected one of"):
        scorespace.score(pool, np.zeros((1, 2)), "llr-weights")
    with pytest.raises(MargoError, match="needs 2 models, found 3"):
        scorespace.score(pool, np.zeros((1, 2)), "llr")


def test_em_never_lowers_the_likelihood_and_ties_variances():
    rng = np.random.default_rng(8)
    x, y = rng.normal(size=(120, 3)), rng.integers(0, 2, 120)
    x[y == 1] += rng.choice([-3, 3], (np.sum(y == 1), 1))
    for tied in (False, True):
        values = []
        for iterations in range(1, 15):
            pool = fit_mixtures(x, y, 2, np.random.default_rng(9), tied=tied, iterations=iterations, tolerance=0)
            values.append(log_mixtures(pool, x)[np.arange(120), y].mean())
        assert (np.diff(values) >= -1e-10).all() and values[-1] > values[0]
        assert (np.ptp(pool.variances, axis=0).max() == 0) == tied
    np.testing.assert_allclose(np.exp(by_class(pool, pool.log_weights)).sum(1), 1)

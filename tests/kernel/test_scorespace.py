"""Score-spaces of mixtures: values against scipy, every derivative against finite differences."""

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

from margo.errors import MargoError
from margo.kernel import gmm, scorespace
from margo.kernel.metric import kernel_energy, measure, score_gradient
from margo.kernel.options import SPACES


def make_bank(rng, classes=2, mixtures=3, dims=2) -> gmm.Bank:
    weights = rng.dirichlet(np.full(mixtures, 4.0), classes)
    return gmm.Bank(
        np.log(weights),
        rng.normal(size=(classes, mixtures, dims)),
        rng.uniform(0.5, 2.0, size=(classes, mixtures, dims)),
    )


def numeric(function, vector, step=1e-5) -> np.ndarray:
    """Central differences with one Richardson extrapolation: error O(step^4)."""
    gradient = np.empty_like(vector)
    for k in range(len(vector)):
        slopes = []
        for h in (step, 2 * step):
            up, down = vector.copy(), vector.copy()
            up[k] += h
            down[k] -= h
            slopes.append((function(up) - function(down)) / (2 * h))
        gradient[k] = (4 * slopes[0] - slopes[1]) / 3
    return gradient


def relative(a, b) -> float:
    return float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-12))


def test_log_likelihoods_against_scipy():
    rng = np.random.default_rng(1)
    bank, x = make_bank(rng), rng.normal(size=(7, 2))
    per_component = norm.logpdf(x[:, None, None], bank.means, np.sqrt(bank.variances)).sum(-1)
    expected = logsumexp(per_component + bank.log_weights, axis=2)
    np.testing.assert_allclose(gmm.log_likelihoods(bank, x), expected, rtol=1e-12)


def test_scores_are_the_derivatives_of_the_likelihoods():
    rng = np.random.default_rng(2)
    bank, x = make_bank(rng), rng.normal(size=(5, 2))
    phi, _ = scorespace.score(bank, x, "llr-mean-var")
    log_lik = gmm.log_likelihoods(bank, x)
    np.testing.assert_allclose(phi[:, 0], log_lik[:, 0] - log_lik[:, 1], rtol=1e-12)
    size = bank.means[0].size
    for c in range(2):
        for kind, name in enumerate(("means", "variances")):
            values = getattr(bank, name)

            def likelihoods(flat, c=c, name=name, values=values):
                moved = values.copy()
                moved[c] = flat.reshape(moved[c].shape)
                changed = gmm.Bank(**{**vars(bank), name: moved})
                return gmm.log_likelihoods(changed, x)[:, c]

            for i in range(len(x)):
                expected = numeric(lambda flat, i=i: likelihoods(flat)[i], values[c].ravel())
                first = 1 + (2 * c + kind) * size
                assert relative(phi[i, first : first + size], expected) < 1e-6


@pytest.mark.parametrize("space", SPACES)
def test_pullback_is_the_transposed_derivative_of_the_scores(space):
    rng = np.random.default_rng(3)
    bank, x = make_bank(rng), rng.normal(size=(6, 2))
    phi, pullback = scorespace.score(bank, x, space)
    weights = rng.normal(size=phi.shape)
    start = make_bank(rng)

    def total(vector):
        return float((weights * scorespace.score(gmm.from_vector(vector, start_of), x, space)[0]).sum())

    start_of = gmm.Bank(bank.log_weights, start.means, start.variances)
    vector = gmm.to_vector(bank, start_of)
    analytic = gmm.gradient_to_vector(bank, start_of, *pullback(weights))
    assert relative(analytic, numeric(total, vector)) < 1e-6


@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("kind", ["none", "diagonal", "block"])
@pytest.mark.parametrize("space", ["llr", "llr-mean", "llr-mean-var"])
def test_gradient_of_the_objective_moves_the_metric_too(space, kind, columns):
    """[L04] (36)-(40): the kernel's gradient with G recomputed from the scores at every point."""
    rng = np.random.default_rng(4)
    bank, x = make_bank(rng, mixtures=2), rng.normal(size=(20, 2))
    coefficients = rng.normal(size=(len(x), columns))
    block = scorespace.blocks(space, 2, 2, 2)

    def objective(vector):
        phi, _ = scorespace.score(gmm.from_vector(vector, bank), x, space)
        return -0.5 * kernel_energy(phi, coefficients, measure(phi, kind, block))

    phi, pullback = scorespace.score(bank, x, space)
    metric = measure(phi, kind, block)
    analytic = gmm.gradient_to_vector(bank, bank, *pullback(score_gradient(phi, coefficients, metric)))
    expected = numeric(objective, gmm.to_vector(bank, bank))
    assert relative(analytic, expected) < 1e-6
    if kind != "none":  # the test can fail: without the metric's own part the gradient is another
        frozen = score_gradient(phi, coefficients, type(metric)(**{**vars(metric), "free": False}))
        assert relative(gmm.gradient_to_vector(bank, bank, *pullback(frozen)), expected) > 1e-3


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
    bank, x = make_bank(rng), rng.normal(size=(3, 2))
    for space in SPACES:
        phi, _ = scorespace.score(bank, x, space)
        assert len(scorespace.blocks(space, 2, 3, 2)) == phi.shape[1]


def test_unknown_space_and_wrong_class_count_are_named():
    bank = make_bank(np.random.default_rng(0), classes=3)
    with pytest.raises(MargoError, match="expected one of"):
        scorespace.score(bank, np.zeros((1, 2)), "llr-weights")
    with pytest.raises(MargoError, match="needs 2 classes, found 3"):
        scorespace.score(bank, np.zeros((1, 2)), "llr")


def test_em_never_lowers_the_likelihood_and_ties_variances():
    rng = np.random.default_rng(8)
    x, y = rng.normal(size=(120, 3)), rng.integers(0, 2, 120)
    x[y == 1] += rng.choice([-3, 3], (np.sum(y == 1), 1))
    for tied in (False, True):
        values = []
        for iterations in range(1, 15):
            bank = gmm.fit(x, y, 2, 2, np.random.default_rng(9), tied=tied, iterations=iterations, tolerance=0)
            values.append(gmm.log_likelihoods(bank, x)[np.arange(120), y].mean())
        assert (np.diff(values) >= -1e-10).all() and values[-1] > values[0]
        assert (np.ptp(bank.variances, axis=(0, 1)).max() == 0) == tied
    np.testing.assert_allclose(np.exp(bank.log_weights).sum(1), 1)

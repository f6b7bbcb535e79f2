"""EM: the likelihood rises, known mixtures are found, missing values and degenerate data are dealt with."""

import numpy as np
import pytest
from sklearn.mixture import GaussianMixture

from margo.classify import gmm
from margo.classify.gmm import GmmOptions, log_joint
from margo.errors import MargoError
from margo.gaussian import em
from margo.gaussian.covariances import FITTED
from margo.gaussian.mixtures import log_mixtures


def two_classes(seed=0, N=300, D=4):
    rng = np.random.default_rng(seed)
    mix = rng.normal(size=(D, D))
    x = np.concatenate([rng.normal(size=(N, D)) @ mix, rng.normal(size=(N, D)) + 2.0])
    x[: N // 2] += 3.0
    return x, np.repeat([0, 1], N)


@pytest.mark.parametrize("covariance", FITTED)
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_likelihood_rises_at_every_iteration(covariance, tied, missing):
    x, y = two_classes()
    rng = np.random.default_rng(1)
    x[rng.random(x.shape) < missing] = np.nan
    options = GmmOptions(mixtures=2, covariance=covariance, tied=tied, rank=2, ridge=0.0, iterations=25, tolerance=0.0)
    pool = em.start(x, y, options, 0.0, rng)
    assert pool.covariances.kind == covariance
    last = -np.inf
    for _ in range(25):
        updated, objective = em.iterate(pool, x, y, options, 0.0)
        assert objective >= last - 1e-10
        np.testing.assert_allclose(objective, log_mixtures(pool, x)[np.arange(len(y)), y].mean())
        last, pool = objective, updated
    if tied:
        assert np.ptp(pool.covariances.dense(), axis=0).max() == 0


def test_one_full_gaussian_is_the_sample_moments():
    x, y = two_classes()
    model, _ = gmm.fit(x, y, GmmOptions(covariance="full", ridge=0.0), np.random.default_rng(0))
    for c in range(2):
        np.testing.assert_allclose(model.pool.means[c], x[y == c].mean(0))
        np.testing.assert_allclose(model.pool.covariances.dense()[c], np.cov(x[y == c].T, bias=True), atol=1e-10)
    np.testing.assert_allclose(np.exp(model.log_priors), 0.5)


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_as_likely_as_scikit_learns(covariance):
    x, y = two_classes()
    options = GmmOptions(mixtures=3, covariance=covariance, ridge=0.0, restarts=4, iterations=300, tolerance=1e-9)
    model, reports = gmm.fit(x, y, options, np.random.default_rng(0))
    kind = {"diagonal": "diag", "full": "full"}[covariance]
    peer = sum(
        GaussianMixture(3, covariance_type=kind, n_init=4, tol=1e-9, max_iter=300, reg_covar=0, random_state=0)
        .fit(x[y == c]).score(x[y == c]) for c in range(2)
    ) / 2  # fmt: skip
    assert log_joint(model, x)[np.arange(len(y)), y].mean() - np.log(0.5) > peer - 0.02
    assert reports[-1]["objective"] >= reports[0]["objective"]


def test_same_seed_same_model():
    x, y = two_classes()
    a, b = (gmm.fit(x, y, GmmOptions(mixtures=3), np.random.default_rng(5))[0] for _ in range(2))
    assert np.array_equal(a.pool.means, b.pool.means) and np.array_equal(a.pool.variances, b.pool.variances)


def test_missing_values_cost_little():
    """Trained on data with a fifth missing, the moments stay near those of the complete data."""
    x, y = two_classes(N=3000)
    holes = x.copy()
    holes[np.random.default_rng(0).random(x.shape) < 0.2] = np.nan
    whole, _ = gmm.fit(x, y, GmmOptions(covariance="full"), np.random.default_rng(0))
    partial, _ = gmm.fit(holes, y, GmmOptions(covariance="full", iterations=50), np.random.default_rng(0))
    # Class 0 is a mixture, not one Gaussian, so only class 1 is sure to be recovered.
    np.testing.assert_allclose(partial.pool.means[1], whole.pool.means[1], atol=0.1)
    np.testing.assert_allclose(*(model.pool.covariances.dense()[1] for model in (partial, whole)), atol=0.15)


@pytest.mark.parametrize("covariance", FITTED)
def test_degenerate_data_give_a_sound_model(covariance):
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=(1, 3)), np.tile(rng.normal(size=(1, 3)), (20, 1)), rng.normal(size=(30, 3))])
    x[:, 1] = 7.0  # constant feature; class 0 has one sample, class 1 twenty copies of one
    y = np.repeat([0, 1, 2], [1, 20, 30])
    model, _ = gmm.fit(x, y, GmmOptions(mixtures=4, covariance=covariance, rank=2), rng)
    assert list(model.pool.sizes) == [1, 1, 4]
    assert np.isfinite(log_joint(model, x)).all()
    assert (np.linalg.eigvalsh(model.pool.covariances.dense()) > 0).all()


def test_hopeless_data_are_refused():
    options, rng = GmmOptions(ridge=0.0), np.random.default_rng(0)
    with pytest.raises(MargoError, match="all 2 features are constant"):
        gmm.fit(np.ones((4, 2)), [0, 0, 1, 1], options, rng)
    x = rng.normal(size=(8, 2))
    x[:, 1] = 3.0
    with pytest.raises(MargoError, match="feature 1 is constant.*--ridge"):
        gmm.fit(x, [0, 0, 0, 0, 1, 1, 1, 1], options, rng)
    with pytest.raises(MargoError, match="2 samples have no label"):
        gmm.fit(x, [0, 0, -1, 0, 1, 1, -1, 1], options, rng)
    x = np.repeat(rng.normal(size=(2, 2)), 4, axis=0)
    with pytest.raises(MargoError, match="of class 0 has no spread"):
        gmm.fit(x, [0, 0, 0, 0, 1, 1, 1, 1], options, rng)


@pytest.mark.parametrize("bad", [{"mixtures": 0}, {"ridge": -1.0}, {"rank": 0}, {"restarts": 0}])
def test_bad_options_are_refused(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        GmmOptions(**bad)


@pytest.mark.parametrize("covariance", FITTED)
def test_data_far_from_the_origin_lose_no_digits(covariance):
    """Sums about the origin would leave variances of 1 with an error of 1e10 * 1e-16 * N."""
    x, y = two_classes()
    options = GmmOptions(mixtures=2, covariance=covariance, rank=2, iterations=5)
    near, far = (gmm.fit(x + offset, y, options, np.random.default_rng(0))[0].pool for offset in (0.0, 1e5))
    np.testing.assert_allclose(far.means - 1e5, near.means, atol=1e-6)
    np.testing.assert_allclose(far.covariances.dense(), near.covariances.dense(), rtol=1e-5, atol=1e-6)


def test_variances_are_floored():
    x, y = two_classes()
    x[y == 0, 1] *= 1e-4
    least = 0.1 * x.var(0)
    model, _ = gmm.fit(x, y, GmmOptions(mixtures=2, ridge=0.0, floor=0.1), np.random.default_rng(0))
    assert (model.pool.variances >= least).all() and (model.pool.variances[:2, 1] == least[1]).all()
    free, _ = gmm.fit(x, y, GmmOptions(mixtures=2, ridge=0.0), np.random.default_rng(0))
    assert (free.pool.variances[:2, 1] < least[1]).all()


def test_a_broad_start_keeps_all_components_and_names_a_class_too_small():
    x, y = two_classes()
    x[y == 0] = x[0]  # one distinct sample
    pool = em.start(x, y, em.EmOptions(mixtures=3, start="broad"), 0.0, np.random.default_rng(0))
    assert pool.sizes.tolist() == [3, 3]
    np.testing.assert_allclose(pool.variances, np.tile(x.var(0), (6, 1)))
    with pytest.raises(MargoError, match="class 1 has 2 samples, too few for 3 Gaussians"):
        em.start(x[:302], y[:302], em.EmOptions(mixtures=3, start="broad"), 0.0, np.random.default_rng(0))

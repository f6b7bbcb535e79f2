"""EM: the likelihood rises, known mixtures are found, missing values and degenerate data are dealt with."""

import numpy as np
import pytest
from sklearn.mixture import GaussianMixture

from margo.classify import em
from margo.classify.gmm import covariances, log_joint
from margo.classify.options import COVARIANCES, EmOptions
from margo.errors import MargoError


def two_classes(seed=0, N=300, D=4):
    rng = np.random.default_rng(seed)
    mix = rng.normal(size=(D, D))
    x = np.concatenate([rng.normal(size=(N, D)) @ mix, rng.normal(size=(N, D)) + 2.0])
    x[: N // 2] += 3.0
    return x, np.repeat([0, 1], N)


@pytest.mark.parametrize("covariance", COVARIANCES)
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_likelihood_rises_at_every_iteration(covariance, tied, missing):
    x, y = two_classes()
    rng = np.random.default_rng(1)
    x[rng.random(x.shape) < missing] = np.nan
    options = EmOptions(mixtures=2, covariance=covariance, tied=tied, rank=2, ridge=0.0, iterations=25, tolerance=0.0)
    model = em.start(x, y, options, 0.0, rng)
    if covariance == "dplr":
        assert model.kind == "dplr"
    last = -np.inf
    for _ in range(25):
        updated, objective = em.iterate(model, x, y, options, 0.0)
        assert objective >= last - 1e-10
        np.testing.assert_allclose(objective, log_joint(model, x)[np.arange(len(y)), y].mean())
        last, model = objective, updated
    if tied:
        assert np.ptp(covariances(model), axis=0).max() == 0


def test_one_full_gaussian_is_the_sample_moments():
    x, y = two_classes()
    model, _ = em.fit(x, y, EmOptions(covariance="full", ridge=0.0), np.random.default_rng(0))
    for c in range(2):
        np.testing.assert_allclose(model.means[c], x[y == c].mean(0))
        np.testing.assert_allclose(model.factor[c], np.cov(x[y == c].T, bias=True), atol=1e-10)
    np.testing.assert_allclose(np.exp(model.log_priors), 0.5)


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_as_likely_as_scikit_learns(covariance):
    x, y = two_classes()
    options = EmOptions(mixtures=3, covariance=covariance, ridge=0.0, restarts=4, iterations=300, tolerance=1e-9)
    model, reports = em.fit(x, y, options, np.random.default_rng(0))
    kind = {"diagonal": "diag", "full": "full"}[covariance]
    peer = sum(
        GaussianMixture(3, covariance_type=kind, n_init=4, tol=1e-9, max_iter=300, reg_covar=0, random_state=0)
        .fit(x[y == c]).score(x[y == c]) for c in range(2)
    ) / 2  # fmt: skip
    assert log_joint(model, x)[np.arange(len(y)), y].mean() - np.log(0.5) > peer - 0.02
    assert reports[-1]["objective"] >= reports[0]["objective"]


def test_same_seed_same_model():
    x, y = two_classes()
    a, b = (em.fit(x, y, EmOptions(mixtures=3), np.random.default_rng(5))[0] for _ in range(2))
    assert np.array_equal(a.means, b.means) and np.array_equal(a.diagonal, b.diagonal)


def test_missing_values_cost_little():
    """Trained on data with a fifth missing, the moments stay near those of the complete data."""
    x, y = two_classes(N=3000)
    holes = x.copy()
    holes[np.random.default_rng(0).random(x.shape) < 0.2] = np.nan
    whole, _ = em.fit(x, y, EmOptions(covariance="full"), np.random.default_rng(0))
    partial, _ = em.fit(holes, y, EmOptions(covariance="full", iterations=50), np.random.default_rng(0))
    # Class 0 is a mixture, not one Gaussian, so only class 1 is sure to be recovered.
    np.testing.assert_allclose(partial.means[1], whole.means[1], atol=0.1)
    np.testing.assert_allclose(partial.factor[1], whole.factor[1], atol=0.15)


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_degenerate_data_give_a_sound_model(covariance):
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=(1, 3)), np.tile(rng.normal(size=(1, 3)), (20, 1)), rng.normal(size=(30, 3))])
    x[:, 1] = 7.0  # constant feature; class 0 has one sample, class 1 twenty copies of one
    y = np.repeat([0, 1, 2], [1, 20, 30])
    model, _ = em.fit(x, y, EmOptions(mixtures=4, covariance=covariance, rank=2), rng)
    assert list(np.diff(model.offsets)) == [1, 1, 4]
    assert np.isfinite(log_joint(model, x)).all()
    assert (np.linalg.eigvalsh(covariances(model)) > 0).all()


def test_hopeless_data_are_refused():
    options, rng = EmOptions(ridge=0.0), np.random.default_rng(0)
    with pytest.raises(MargoError, match="all 2 features are constant"):
        em.fit(np.ones((4, 2)), [0, 0, 1, 1], options, rng)
    x = rng.normal(size=(8, 2))
    x[:, 1] = 3.0
    with pytest.raises(MargoError, match="feature 1 is constant.*--ridge"):
        em.fit(x, [0, 0, 0, 0, 1, 1, 1, 1], options, rng)
    with pytest.raises(MargoError, match="2 samples have no label"):
        em.fit(x, [0, 0, -1, 0, 1, 1, -1, 1], options, rng)
    x = np.repeat(rng.normal(size=(2, 2)), 4, axis=0)
    with pytest.raises(MargoError, match="of class 0 has no spread"):
        em.fit(x, [0, 0, 0, 0, 1, 1, 1, 1], options, rng)


@pytest.mark.parametrize("bad", [{"mixtures": 0}, {"ridge": -1.0}, {"rank": 0}, {"restarts": 0}])
def test_bad_options_are_refused(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        EmOptions(**bad)

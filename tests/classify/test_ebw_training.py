"""EBW training of classifiers: derivatives, monotone criterion, spirals, missing values, degenerate data."""

from dataclasses import replace

import numpy as np
import pytest

from margo.classify import ebw_training as ebw
from margo.classify import gmm
from margo.classify.ebw_training import EbwOptions
from margo.classify.gmm import GmmOptions, log_joint
from margo.classify.spirals import spirals
from margo.errors import MargoError
from margo.gaussian.ebw import smooth_hinge


def case(seed=0, classes=3, N=40, D=2, mixtures=2):
    rng = np.random.default_rng(seed)
    x = np.concatenate([rng.normal(c, 1.0 + 0.5 * c, (N, D)) for c in range(classes)])
    y = np.repeat(np.arange(classes), N)
    model, _ = gmm.fit(x, y, GmmOptions(mixtures=mixtures), rng)
    return model, x, y


@pytest.mark.parametrize("criterion", ["cl", "mm"])
@pytest.mark.parametrize("exponent", [0.5, 2.0])
def test_signed_posteriors_are_the_derivative_of_the_criterion(criterion, exponent):
    """d objective / d mu_k = sum (num - den) (x - mu) / v, by central differences; the same for the variances."""
    model, x, y = case()
    options = EbwOptions(criterion=criterion, exponent=exponent, sharpness=3.0)
    _, (numerator, denominator), _ = ebw.posteriors(model, x, y, options)
    signed = numerator - denominator
    variances = model.pool.variances
    delta = x[:, None] - model.pool.means
    by_mean = np.einsum("nk,nkd->kd", signed, delta / variances)
    by_variance = np.einsum("nk,nkd->kd", signed, 0.5 * (delta**2 / variances - 1.0) / variances)
    step = 1e-5
    for name, value, want in (("means", model.pool.means, by_mean), ("covariances", variances, by_variance)):
        for k, d in np.ndindex(want.shape):
            shifted = []
            for sign in (1, -1):
                moved = value.copy()
                moved[k, d] += sign * step
                other = replace(model, pool=replace(model.pool, **{name: moved}))
                shifted.append(ebw.expectation(other, x, y, options).objective)
            assert (shifted[0] - shifted[1]) / (2 * step) == pytest.approx(want[k, d], rel=1e-4, abs=1e-5)


def test_chunks_add_up(monkeypatch):
    model, x, y = case()
    whole = ebw.expectation(model, x, y, EbwOptions())
    monkeypatch.setattr(ebw, "CHUNK_ENTRIES", 50)
    parts = ebw.expectation(model, x, y, EbwOptions())
    assert parts.margins == whole.margins
    for side in ("numerator", "denominator"):
        for name in ("occupancy", "first", "second"):
            a, b = (getattr(getattr(one, side), name) for one in (whole, parts))
            np.testing.assert_allclose(a, b, atol=1e-9)


def test_margin_of_many_classes_tends_to_the_minimum():
    model, x, y = case(classes=4)
    joint = log_joint(model, x)
    rows = np.arange(len(y))
    others = joint.copy()
    others[rows, y] = -np.inf
    log_y = joint[rows, y] - others.max(axis=1)
    log_h, _ = smooth_hinge(log_y)
    objective = ebw.expectation(model, x, y, EbwOptions(exponent=1.0, sharpness=1e4)).objective
    assert objective == pytest.approx(log_h.sum(), abs=1e-2)


@pytest.mark.parametrize("criterion", ["cl", "mm"])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_backtracking_never_lowers_the_criterion(criterion, missing):
    model, x, y = case(N=100)
    x[np.random.default_rng(0).random(x.shape) < missing] = np.nan
    x[np.isnan(x).all(axis=1), 0] = 0.0
    options = EbwOptions(criterion=criterion, factor=1.5, backtrack=True, iterations=30)
    first = ebw.begin(model, x, y, options).best_objective / len(x)
    best, reports = ebw.fit(model, x, y, options)
    objectives = [first] + [report["objective"] for report in reports]
    assert (np.diff(objectives) >= 0).all() and objectives[-1] > objectives[0]
    assert ebw.expectation(best, x, y, options).objective / len(x) == pytest.approx(objectives[-1])


def test_without_backtracking_it_can_fall_and_the_best_is_kept():
    """The twin: small F makes the criterion fall, and what comes back is still the best iterate."""
    model, x, y = case(N=100)
    options = EbwOptions(criterion="cl", factor=1.01, iterations=40, tolerance=0.0)
    first = ebw.begin(model, x, y, options).best_objective / len(x)
    best, reports = ebw.fit(model, x, y, options)
    objectives = [first] + [report["objective"] for report in reports]
    assert (np.diff(objectives) < 0).any()
    assert ebw.expectation(best, x, y, options).objective / len(x) == pytest.approx(max(objectives))


def test_weights_and_priors_stay_distributions():
    model, x, y = case()
    best, _ = ebw.fit(model, x, y, EbwOptions(iterations=10))
    assert np.exp(best.log_priors).sum() == pytest.approx(1.0)
    np.testing.assert_allclose(np.add.reduceat(np.exp(best.pool.log_weights), best.pool.offsets[:-1]), 1.0)


def test_spirals():
    rng = np.random.default_rng(0)
    x, y = spirals(rng, 1000)
    test_x, test_y = spirals(rng, 5000)
    ml, _ = gmm.fit(x, y, GmmOptions(mixtures=12, restarts=2), rng)
    accuracy = {"ml": 100 * (log_joint(ml, test_x).argmax(1) == test_y).mean()}
    for criterion in ("cl", "mm"):
        model, _ = ebw.fit(ml, x, y, EbwOptions(criterion=criterion, iterations=60))
        accuracy[criterion] = 100 * (log_joint(model, test_x).argmax(1) == test_y).mean()
    assert min(accuracy["cl"], accuracy["mm"]) > accuracy["ml"] + 2.0


@pytest.mark.parametrize("criterion", ["cl", "mm"])
def test_degenerate_data_give_a_sound_model(criterion):
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=(1, 3)), np.tile(rng.normal(size=(1, 3)), (20, 1)), rng.normal(size=(30, 3))])
    x[:, 1] = 7.0
    y = np.repeat([0, 1, 2], [1, 20, 30])
    model, _ = gmm.fit(x, y, GmmOptions(mixtures=3), rng)
    best, _ = ebw.fit(model, x, y, EbwOptions(criterion=criterion, iterations=50))
    assert np.isfinite(log_joint(best, x)).all()
    assert (best.pool.variances > 0).all()
    assert (log_joint(best, x).argmax(1) == y).mean() > 0.8


def test_duplicate_samples_with_opposite_labels():
    rng = np.random.default_rng(0)
    x = np.repeat(rng.normal(size=(10, 2)), 2, axis=0)
    y = np.tile([0, 1], 10)
    model, _ = gmm.fit(x, y, GmmOptions(mixtures=2), rng)
    for criterion in ("cl", "mm"):
        best, _ = ebw.fit(model, x, y, EbwOptions(criterion=criterion, iterations=30))
        assert np.isfinite(log_joint(best, x)).all()


def test_wrong_starts_and_labels_are_refused():
    model, x, y = case()
    full, _ = gmm.fit(x, y, GmmOptions(covariance="full"), np.random.default_rng(0))
    with pytest.raises(MargoError, match="needs diagonal covariances, the start has full"):
        ebw.fit(full, x, y, EbwOptions())
    with pytest.raises(MargoError, match="a label from 0 to 2"):
        ebw.fit(model, x, np.where(np.arange(len(y)) == 5, -1, y), EbwOptions())
    with pytest.raises(ValueError, match="--factor"):
        EbwOptions(factor=0.5)


def test_far_samples_stay_finite():
    model, x, y = case()
    x = np.concatenate([x, [[1e4, -1e4]]])
    best, _ = ebw.fit(model, x, np.append(y, 1), EbwOptions(criterion="cl", iterations=10))
    assert np.isfinite(log_joint(best, x)).all()

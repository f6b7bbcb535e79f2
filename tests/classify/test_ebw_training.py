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
    _, gamma, (numerator, denominator), _ = ebw.posteriors(model, x, y, options)
    signed = gamma * (numerator - denominator)[:, model.pool.owners]
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
    assert parts.margins.tolist() == whole.margins.tolist()
    for name in ("numerator", "denominator"):
        np.testing.assert_allclose(getattr(parts, name), getattr(whole, name), atol=1e-9)
    for name in ("occupancy", "first", "second"):
        np.testing.assert_allclose(getattr(parts.net, name), getattr(whole.net, name), atol=1e-9)


def test_doubled_D_is_a_power_of_two_above_the_bound():
    """[PW10] Algorithm 1: doubled from 1 until all is sound, so that F = 1 works too."""
    model, x, y = case()
    state = ebw.begin(model, x, y, EbwOptions(factor=1, doubling=True))
    bound = ebw.smallest_D(model.pool.variances, state.now.net.about(model.pool.means)).max()
    _, report, _ = ebw.iterate(state, x, y, EbwOptions(factor=1, doubling=True))
    assert np.log2(report["D"]) == int(np.log2(report["D"])) and bound < report["D"] <= 2 * bound
    with pytest.raises(ValueError, match="--factor 1 needs --doubling"):
        EbwOptions(factor=1)


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


@pytest.mark.parametrize("criterion", ["cl", "mm"])
def test_weights_and_priors_move_as_printed(criterion):
    """[PW10] (4) with Merialdo's (8), sample by sample and loop by loop as in Algorithm 1, from p(x, c) alone."""
    model, x, y = case(classes=3)
    options = EbwOptions(criterion=criterion, exponent=0.7, sharpness=2.0)
    now = ebw.expectation(model, x, y, options)
    D = 2.0 * max(1.0, ebw.smallest_D(model.pool.variances, now.net.about(model.pool.means)).max())
    got = ebw.update(model, now, D, np.zeros(2))
    joint, log_k = log_joint(model, x), ebw.log_components(model.pool, x)
    K, C, owners = model.pool.n_gaussians, 3, model.pool.owners
    up, down = np.zeros(K), np.zeros(K)
    for n in range(len(x)):
        p = np.exp(joint[n])
        rival = np.where(np.arange(C) == y[n], 0.0, p**2.0)
        d = (p[y[n]] / rival.sum() ** 0.5) ** 0.7
        s = {0: 0.7 * d / (d + 0.5), 1: 0.7 * (2 - d) / (2 - d / 2), 2: 0.0}[0 if d <= 1 else 1 if d < 2 else 2]
        r = rival / rival.sum()
        if criterion == "cl":
            s, r = 1.0, p / p.sum()
        for k in range(K):
            gamma = np.exp(log_k[n, k]) / np.exp(log_k[n, owners == owners[k]]).sum()
            up[k] += s * gamma * (owners[k] == y[n])
            down[k] += s * gamma * r[owners[k]]
    weights, priors = np.exp(model.pool.log_weights), np.exp(model.log_priors)
    up_c, down_c = (np.array([side[owners == c].sum() for c in range(C)]) for side in (up, down))
    moved = weights * (up / up_c[owners] - down / down_c[owners] + D)
    np.testing.assert_allclose(np.exp(got.pool.log_weights), moved / np.array(
        [moved[owners == c].sum() for c in range(C)])[owners], rtol=1e-9)  # fmt: skip
    turned = priors * (up_c / up_c.sum() - down_c / down_c.sum() + D)
    np.testing.assert_allclose(np.exp(got.log_priors), turned / turned.sum(), rtol=1e-9)
    assert np.abs(np.exp(got.pool.log_weights) - weights).max() > 1e-4  # and they do move
    assert np.abs(np.exp(got.log_priors) - priors).max() > 1e-5


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
    with pytest.raises(MargoError, match="needs diagonal covariances, the model has full"):
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

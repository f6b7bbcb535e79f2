"""The EBW update against its definition, its limits, and a function it must increase."""

import numpy as np
import pytest

from margo.errors import MargoError
from margo.gaussian.ebw import ebw_update, smallest_D, smooth_hinge, smoothing_constants
from margo.gaussian.moments import Moments


def random_case(seed, K=4, D=3, N=30, offset=0.0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(N, D)) + offset
    up, down = rng.gamma(1.0, size=(2, N, K))
    means = x[:K] + 0.3 * rng.normal(size=(K, D))
    variances = rng.uniform(0.3, 2.0, size=(K, D))
    return means, variances, sums(x, up) - sums(x, down)


def sums(x, w) -> Moments:
    """About the origin, as the paper prints them."""
    return Moments(np.zeros(x.shape[1]), w.sum(0), w.T @ x, w.T @ x**2)


def bound_of(means, variances, moments):
    return smallest_D(variances, moments.about(means))


def updated(means, variances, moments, D):
    return ebw_update(means, variances, moments.about(means), D)


def printed_update(means, variances, moments, D):
    """[PW10] (9) as printed, with D per Gaussian."""
    n, first, second = moments.occupancy, moments.first, moments.second
    total = (n + D)[:, None]
    mean = (first + D[:, None] * means) / total
    return mean, (second + D[:, None] * (variances + means**2)) / total - mean**2


@pytest.mark.parametrize("seed", range(5))
def test_update_is_the_printed_formula(seed):
    case = random_case(seed)
    D = 2.0 * bound_of(*case) + 0.1
    for ours, printed in zip(updated(*case, D), printed_update(*case, D)):
        np.testing.assert_allclose(ours, printed, rtol=1e-10)


@pytest.mark.parametrize("seed", range(40))
def test_smallest_D_is_the_exact_bound(seed):
    case = random_case(seed)
    bound = bound_of(*case)
    n = case[2].occupancy

    def sound(D):
        _, variances = printed_update(*case, D)
        return (variances > 0).all(axis=1) & (n + D > 0)

    for factor in (1.0 + 1e-6, 1.5, 10.0, 1e4):
        assert sound(bound * factor + 1e-9).all()
    tight = bound > 1e-6
    assert tight.any()
    assert not sound(bound * (1.0 - 1e-6))[tight].any()


def test_positive_variances_alone_would_accept_a_negative_denominator():
    """The rule of [PW10] (all variances positive) is not enough; ours is stricter exactly there."""
    fooled = 0
    for seed in range(300):
        case = random_case(seed, D=1)
        n = case[2].occupancy
        for D in np.linspace(0.0, 3.0, 30):
            _, variances = printed_update(*case, np.full(4, D) + 1e-12)
            negative = n + D < 0
            fooled += int((negative & (variances > 0).all(axis=1)).sum())
            assert (bound_of(*case)[negative] >= D).all()
    assert fooled > 0


def test_too_small_D_is_named():
    case = random_case(3)
    D = bound_of(*case)
    k = int(np.argmax(D))
    D = 2.0 * D + 1.0
    D[k] = 0.4 * bound_of(*case)[k]
    with pytest.raises(MargoError, match=f"Gaussian {k}: denominator"):
        updated(*case, D)


def test_infinite_D_and_no_statistics_leave_the_model():
    means, variances, moments = random_case(1)
    still = updated(means, variances, moments, 1e14)
    np.testing.assert_allclose(still[0], means, atol=1e-10)
    same = updated(means, variances, moments - moments, 0.0)
    assert np.array_equal(same[0], means) and np.array_equal(same[1], variances)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("size", [1e-130, 1e-160, 1e-249, 1e-310, 1e-322])
def test_statistics_next_to_nothing_never_fail(seed, size):
    """As where every sample is won by far, and the weights of the margin underflow."""
    means, variances, moments = random_case(seed)
    net = tuple(size * part for part in moments.about(means))
    D = smoothing_constants(variances, net, size * np.ones(len(means)), 2.0)
    moved, spread = ebw_update(means, variances, net, D)
    assert (spread > 0).all() and np.isfinite(moved).all()
    if size < 1e-150:
        np.testing.assert_allclose(moved, means)
        np.testing.assert_allclose(spread, variances)


def test_without_denominator_and_D_it_is_maximum_likelihood():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 2)) + 1000.0
    means, variances = updated(x[:1], np.ones((1, 2)), sums(x, np.ones((50, 1))), 0.0)
    np.testing.assert_allclose(means[0], x.mean(0), rtol=1e-12)
    np.testing.assert_allclose(variances[0], x.var(0), rtol=1e-6)


def test_smooth_hinge_is_continuous_and_its_slope_is_the_derivative():
    log_y = np.linspace(-3.0, 1.5, 2001)
    log_h, slope = smooth_hinge(log_y)
    assert np.abs(np.diff(log_h)).max() < 0.01
    middle = (log_h[2:] - log_h[:-2]) / (log_y[2:] - log_y[:-2])
    np.testing.assert_allclose(slope[1:-1], middle, atol=2e-3)
    np.testing.assert_allclose(np.exp(log_h[log_y > np.log(2.0)]), 2.0)


def test_large_D_raises_a_rational_criterion():
    """Two classes, one Gaussian each: with 10 times the bound the conditional likelihood rises, start after start."""
    risen = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        x = np.concatenate([rng.normal(0, 1, (40, 2)), rng.normal(1, 1.5, (40, 2))])
        y = np.repeat([0, 1], 40)
        means, variances = x[[0, 40]], rng.uniform(0.5, 2.0, (2, 2))

        def posteriors(means, variances, x=x):
            log = -0.5 * (((x[:, None] - means) ** 2 / variances) + np.log(variances)).sum(-1)
            return np.exp(log - np.logaddexp.reduce(log, axis=1)[:, None])

        def criterion(means, variances, x=x, y=y):
            return np.log(posteriors(means, variances, x)[np.arange(80), y]).sum()

        w = posteriors(means, variances)
        case = means, variances, sums(x, np.eye(2)[y] - w)
        D = 10.0 * bound_of(*case).max()
        risen += criterion(*updated(*case, D)) > criterion(means, variances)
    assert risen >= 29

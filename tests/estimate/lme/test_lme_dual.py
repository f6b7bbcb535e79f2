"""The pieces of the dual: gradient and Hessian by finite differences, products, projection, the best nu."""

from dataclasses import replace

import numpy as np
import pytest

from lme_instances import draw_odd
from margo.estimate import lme
from margo.estimate.lme.certificate import best_level, dual_value, onto_simplex, upper_bound
from margo.estimate.lme.dual import phi
from margo.estimate.lme.layout import SMALL, Curvature, arrange, in_problem_units, pull, push


@pytest.fixture(scope="module")
def problem():
    return draw_odd(np.random.default_rng(3), 12, 7, 3, 2.0)


def simplex_point(n, seed=0):
    return np.random.default_rng(seed).dirichlet(np.ones(n))


def phi_by_definition(problem, weights, nu):
    """d0 . lambda + nu r^2 + sum_k |b_k|^2 / (4 a_k), entry by entry."""
    b, a = np.zeros((problem.n_gaussians, problem.dimension)), np.full(problem.n_gaussians, float(nu))
    for m, k, count, gradient in zip(problem.pair, problem.gaussian, problem.counts, problem.gradients):
        b[k] += weights[m] * gradient
        a[k] += 0.5 * weights[m] * count
    return problem.margins @ weights + nu * problem.radius2 + ((b**2).sum(axis=1) / (4 * a)).sum()


def test_phi_in_layout_units_is_phi(problem):
    layout, weights = arrange(problem), simplex_point(12)
    nu = 20.0
    value, _, _, _ = phi(layout, weights, nu * problem.radius2 / layout.unit)
    assert layout.origin + layout.unit * value == pytest.approx(phi_by_definition(problem, weights, nu), rel=1e-12)


def test_gradient_of_phi_is_the_margins_and_the_room_in_the_ball(problem):
    layout, weights, nu = arrange(problem), simplex_point(12), 1.3
    _, gradient, w, _ = phi(layout, weights, nu)
    step = 1e-6
    for m in range(13):
        ends = []
        for sign in (1, -1):
            moved, raised = weights.copy(), nu
            if m < 12:
                moved[m] += sign * step
            else:
                raised += sign * step
            ends.append(phi(layout, moved, raised)[0])
        assert (ends[0] - ends[1]) / (2 * step) == pytest.approx(gradient[m], rel=1e-6, abs=1e-8)
    shift = np.zeros((problem.n_gaussians, problem.dimension))
    shift[layout.used] = layout.radius * w
    np.testing.assert_allclose(
        layout.origin + layout.unit * gradient[:12], lme.margins(problem, shift, np.zeros(len(shift))), rtol=1e-10
    )
    assert gradient[12] == pytest.approx(1 - (shift**2).sum() / problem.radius2)


@pytest.mark.parametrize("singly", [False, True])
def test_curvature_is_the_hessian_of_phi(problem, singly, monkeypatch):
    if singly:
        monkeypatch.setattr("margo.estimate.lme.layout.SMALL", 0)
    layout, weights, nu = arrange(problem), simplex_point(12), 1.3
    _, _, w, a = phi(layout, weights, nu)
    curvature = Curvature(layout)
    assert bool(len(curvature.large)) == singly
    hessian = curvature(1 / (2 * a), w)
    step = 1e-5
    numeric = np.empty((13, 13))
    for m in range(13):
        change = step * np.eye(13)[m]
        above = phi(layout, weights + change[:12], nu + change[12])[1]
        below = phi(layout, weights - change[:12], nu - change[12])[1]
        numeric[m] = (above - below) / (2 * step)
    np.testing.assert_allclose(hessian, numeric, rtol=1e-6, atol=1e-8 * np.abs(hessian).max())
    assert SMALL > 0


def test_the_extra_column_of_the_curvature(problem):
    """c n n' t^2 more, and its border: what the conic method adds to the Hessian."""
    layout = arrange(problem)
    u = len(layout.used)
    t = np.random.default_rng(0).uniform(0.1, 1, u)
    without, with_it = (Curvature(layout)(np.ones(u), np.zeros((u, 3)), extra) for extra in (None, t))
    rows = np.zeros((13, u))
    np.add.at(rows, (layout.pair, layout.slot), -layout.counts * t[layout.slot])
    rows[12] = -2 * t
    np.testing.assert_allclose(with_it - without, rows @ rows.T, atol=1e-10 * np.abs(with_it).max())


def test_repeated_entries_add_up(problem):
    doubled = replace(
        problem,
        pair=np.r_[problem.pair, problem.pair],
        gaussian=np.r_[problem.gaussian, problem.gaussian],
        counts=np.r_[problem.counts / 4, 3 * problem.counts / 4],
        gradients=np.r_[problem.gradients / 4, 3 * problem.gradients / 4],
    )
    once, twice = lme.solve(problem), lme.solve(doubled)
    assert twice.gap <= 1e-6
    assert twice.rho == pytest.approx(once.rho, abs=2e-6 * max(1, abs(once.rho)))


def test_pull_and_push_are_transposes(problem):
    layout = arrange(problem)
    rng = np.random.default_rng(5)
    weights, w, q = rng.normal(size=12), rng.normal(size=(len(layout.used), 3)), rng.normal(size=len(layout.used))
    b, half = pull(layout, weights)
    assert weights @ push(layout, w, q) == pytest.approx((b * w).sum() - half @ q, rel=1e-10)


def test_points_are_shrunk_into_the_ball(problem):
    layout = arrange(problem)
    w = np.random.default_rng(0).normal(size=(len(layout.used), 3))
    q = (w**2).sum(axis=1)
    q[0] += 2
    shift, augmentation = in_problem_units(layout, w, q)
    assert (shift**2).sum() + augmentation.sum() == pytest.approx(problem.radius2, rel=1e-12)
    assert np.flatnonzero(augmentation > 1e-12).tolist() == [layout.used[0]]


@pytest.mark.parametrize("cap", [None, 0.5, 0.11, 0.1])
def test_projection_is_the_nearest_point(cap):
    """Against the quadratic program's optimality conditions: y - x is constant inside, larger at the cap, less at 0."""
    rng = np.random.default_rng(0)
    for scale in (1e-3, 0.1, 10.0):
        y = scale * rng.normal(size=10)
        y[3] = y[4]
        x = onto_simplex(y, cap)
        top = 1.0 if cap is None else cap
        assert x.sum() == pytest.approx(1, abs=1e-14)
        assert x.min() >= 0
        assert x.max() <= top * (1 + 1e-14)
        if cap == 0.1:
            np.testing.assert_allclose(x, 0.1)
            continue
        inside = (x > 1e-12) & (x < top - 1e-12)
        tau = (y - x)[inside].mean() if inside.any() else 0.5 * ((y - x)[x >= top - 1e-12].min() + y[x <= 1e-12].max())
        np.testing.assert_allclose((y - x)[inside], tau, atol=1e-12)
        assert (y[x <= 1e-12] <= tau + 1e-12).all()
        assert ((y - x)[x >= top - 1e-12] >= tau - 1e-12).all()


def test_best_nu_against_a_grid():
    rng = np.random.default_rng(0)
    for trial in range(20):
        b, half = rng.normal(size=(4, 2)), rng.normal(size=4)
        if trial % 4 == 0:
            half = np.abs(half) + 5  # the ball does not bind: nu = 0
        if trial % 4 == 1:
            b[np.argmin(half)] = 0
        value, nu = dual_value(b, half, 2.0)
        floor = max(0.0, -half.min())
        grid = floor + np.r_[np.logspace(-9, 2, 4000), nu - floor + 1e-12]
        with np.errstate(divide="ignore"):
            values = 2.0 * grid + ((b**2).sum(axis=1) / (4 * (grid[:, None] + half))).sum(axis=1)
        assert nu >= floor
        assert value <= values.min() + 1e-9
        assert value >= values.min() - 1e-4
        if trial % 4 == 0:
            assert nu == 0


def test_best_level_against_all_levels():
    rng = np.random.default_rng(0)
    for n in (1, 2, 7, 30):
        values = rng.normal(size=n)
        assert best_level(values, None) == (values.min(), values.min())
        for nu in (1.0, 0.5, 0.33, 1 / n):
            soft = 1 / (nu * n)
            objectives = [v - soft * np.maximum(v - values, 0).sum() for v in values]
            assert best_level(values, soft)[1] == pytest.approx(max(objectives), abs=1e-12)


def test_every_feasible_multiplier_bounds_every_feasible_point(problem):
    """Weak duality, from the entries: what makes a certificate of the pair of them."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        shift = rng.normal(size=(problem.n_gaussians, problem.dimension))
        width = rng.exponential(size=problem.n_gaussians) * rng.integers(0, 2, problem.n_gaussians)
        shrink = np.sqrt(problem.radius2 / ((shift**2).sum() + width.sum()))
        margins = lme.margins(problem, shrink * shift, shrink**2 * width)
        assert margins.min() <= upper_bound(problem, rng.dirichlet(np.full(12, 0.3))) + 1e-9

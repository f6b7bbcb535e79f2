"""Primal-dual interior point on the dual program itself: N + 1 variables, the means eliminated.

    minimise  phi = d0 . lambda + nu r^2 + sum_k |b_k|^2 / (4 a_k)     sum lambda = 1, 0 <= lambda (<= C), nu >= 0

with b_k = sum_m lambda_m g_mk, a_k = nu + 1/2 sum_m lambda_m n_mk. At any point w_k = b_k / (2 a_k) and the gradient of
phi is (margins at u0 + w, r^2 - |w|^2). phi is smooth only where every a_k > 0: where the optimum has a_k = 0 (v_k > 0,
the relaxation not tight) the method gives up early and conic.py takes over.
"""

from dataclasses import dataclass

import numpy as np

from margo.estimate.lme.certificate import dual_value
from margo.estimate.lme.layout import Curvature, Layout, pull, pull_counts, push
from margo.estimate.lme.newton import Bordered, expand, fold, room_for

ITERATIONS = 60
BACKOFF = 0.99  # of the way to the nearest bound on lambda, nu and their multipliers
CURVED = 0.9  # of the way to a_k = 0, where phi has a pole
FLAT = 1e-7  # a_k below this fraction of nu: not tight
PATIENCE = 8  # iterations without halving the gap


@dataclass(frozen=True, eq=False)
class Fixed:
    """What pairs outside the layout contribute, their multipliers being held: b [U, D], half [U], sum of lambda."""

    b: np.ndarray
    half: np.ndarray
    mass: float


def phi(layout: Layout, weights: np.ndarray, nu: float, fixed: Fixed | None = None):
    """phi (without the held pairs' d0 . lambda), its gradient [N + 1], w [U, D] and a [U], in units of the layout."""
    b, half = pull(layout, weights)
    if fixed is not None:
        b, half = b + fixed.b, half + fixed.half
    a = half + nu
    w = b / (2 * a)[:, None]
    squares = np.einsum("kd,kd->k", w, w)
    value = layout.start @ weights + nu + a @ squares
    return value, np.r_[layout.start + push(layout, w, squares), 1 - squares.sum()], w, a


def solve_dual(layout: Layout, best, tolerance: float, fixed: Fixed | None = None, enough: float = 0.0) -> str:
    """Offer iterates (w, q, lambda) to ``best``; returns why the method gave up, "" when its gap is small enough.

    With pairs held in ``fixed`` the gap of the whole cannot close; then ``enough`` says how closely to solve the part.
    """
    n, soft = layout.n_pairs, layout.soft
    mass = 1.0 if fixed is None else 1 - fixed.mass
    curvature = Curvature(layout)
    x, y, rho = _start(layout, mass, fixed)
    mark, since = np.inf, 0
    for _ in range(ITERATIONS):
        weights, nu = x[:n], x[-1]
        _, gradient, w, a = phi(layout, weights, nu, fixed)
        best.offer(w, np.einsum("kd,kd->k", w, w), weights)
        if best.gap <= tolerance:
            return ""
        if a.min() < FLAT * nu:
            return "the relaxation is not tight"
        if best.gap <= 0.5 * mark:
            mark, since = best.gap, 0
        since += 1
        mu = x @ y / len(x)
        if since > PATIENCE and not enough:
            return "it stalled"
        matrix = curvature(1 / (2 * a), w)
        matrix.flat[:: n + 2] += fold(y / x, n, 1)
        try:
            system = Bordered(matrix)
        except np.linalg.LinAlgError:
            return "its Newton matrix is singular"
        stationary = gradient - fold(y, n, -1)
        stationary[:n] -= rho
        if x @ y + np.abs(stationary).max() <= enough:
            return "the pairs held are in the way"

        def step(residual, system=system, stationary=stationary, x=x, y=y):
            """Newton's step to stationarity, sum lambda = mass, and x dy + y dx = residual."""
            change, drho = system(fold(residual / x, n, -1) - stationary, mass - x[:n].sum())
            dx = expand(change, soft)
            da = pull_counts(layout, change[:n]) + change[n]
            return dx, (residual - y * dx) / x, -drho, da

        dx, dy, _, da = step(-x * y)
        longest = min(1.0, room_for(x, dx), room_for(y, dy), CURVED * room_for(a, da))
        dx, dy, drho, da = step((1 - longest) ** 3 * mu - x * y - dx * dy)
        length = min(1.0, BACKOFF * room_for(x, dx), BACKOFF * room_for(y, dy), CURVED * room_for(a, da))
        if not length > 1e-8:
            return "no step is left"
        x, y, rho = x + length * dx, y + length * dy, rho + length * drho
    return "it ran out of iterations"


def solve_forced(layout: Layout, best) -> None:
    """C = 1 / N leaves one lambda: nu and w follow, and what the ball has left over widens a Gaussian with a_k = 0."""
    weights = np.full(layout.n_pairs, 1 / layout.n_pairs)
    b, half = pull(layout, weights)
    nu = best.offer_dual(weights, b, half)
    a = half + nu
    w = b / np.where(a > 0, 2 * a, np.inf)[:, None]
    q = np.einsum("kd,kd->k", w, w)
    if nu > 0:
        q[np.argmin(a)] += max(0.0, 1 - q.sum())
    best.offer_primal(w, q)


def _start(layout: Layout, mass: float, fixed: Fixed | None) -> tuple[np.ndarray, np.ndarray, float]:
    """x = (lambda, C - lambda, nu) with lambda uniform, its multipliers y, and rho; the middle part only when soft."""
    n, soft = layout.n_pairs, layout.soft
    weights = np.full(n, mass / n)
    b, half = pull(layout, weights)
    if fixed is not None:
        b, half = b + fixed.b, half + fixed.half
    nu = max(2 * dual_value(b, half, 1.0)[1], 1e-6)
    _, gradient, _, _ = phi(layout, weights, nu, fixed)
    values = gradient[:n]
    spread = max(values.std(), 1e-3 * nu, 1e-9)
    rho = values.min() - spread
    ball = max(gradient[n], 0.1)
    if soft is None:
        return np.r_[weights, nu], np.r_[values - rho, ball], rho
    high = np.full(n, spread)
    return np.r_[weights, soft - weights, nu], np.r_[values - rho + high, high, ball], rho

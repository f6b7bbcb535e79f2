"""Primal-dual interior point on the dual program itself: N + 1 variables, the means eliminated.

    minimise  phi = d0 . lambda + nu r^2 + sum_k |b_k|^2 / (4 a_k)     sum lambda = 1, 0 <= lambda (<= C), nu >= 0

with b_k = sum_m lambda_m g_mk, a_k = nu + 1/2 sum_m lambda_m n_mk. At any point w_k = b_k / (2 a_k) and the gradient of
phi is (margins at u0 + w, r^2 - |w|^2). phi is smooth only where every a_k > 0: where the optimum has a_k = 0 (v_k > 0,
the relaxation not tight) the method gives up early and conic.py takes over.
"""

import numpy as np

from margo.estimate.lme.certificate import dual_value
from margo.estimate.lme.layout import Curvature, Layout, pull, push
from margo.estimate.lme.newton import Bordered
from margo.estimate.lme.progress import Best

ITERATIONS = 60
BACKOFF = 0.99  # of the way to the nearest bound on lambda, nu and their multipliers
CURVED = 0.9  # of the way to a_k = 0, where phi has a pole
FLAT = 1e-7  # a_k below this fraction of nu: not tight
PATIENCE = 8  # iterations without halving the gap


def phi(layout: Layout, weights: np.ndarray, nu: float) -> tuple[float, np.ndarray, np.ndarray]:
    """The dual objective, its gradient [N + 1] in (lambda, nu), and w [U, D], in the units of the layout."""
    b, half = pull(layout, weights)
    a = half + nu
    w = b / (2 * a)[:, None]
    squares = np.einsum("kd,kd->k", w, w)
    value = layout.start @ weights + nu + a @ squares
    return value, np.r_[layout.start + push(layout, w, squares), 1 - squares.sum()], w


def solve_dual(layout: Layout, best: Best, tolerance: float) -> str:
    """Offer iterates to ``best``; returns why the method gave up, "" when the gap is within ``tolerance``."""
    n, soft = layout.n_pairs, layout.soft
    curvature = Curvature(layout)
    weights = np.full(n, 1 / n)
    b, half = pull(layout, weights)
    _, nu = dual_value(b, half, 1.0)
    nu = max(2 * nu, 1e-6)
    _, gradient, w = phi(layout, weights, nu)
    spread = max(gradient[:n].std(), 1e-3 * nu, 1e-9)
    rho = gradient[:n].min() - spread
    # multipliers of lambda >= 0, lambda <= C, nu >= 0
    low = gradient[:n] - rho
    high = np.zeros(n) if soft is None else np.full(n, spread)
    low = low + high
    ball = max(gradient[n], 0.1)
    room = np.ones(n) if soft is None else soft - weights
    degree = n * (1 if soft is None else 2) + 1
    mark, since = np.inf, 0
    for _ in range(ITERATIONS):
        squares = np.einsum("kd,kd->k", w, w)
        best.offer(w, squares, weights)
        if best.gap <= tolerance:
            return ""
        a = pull(layout, weights)[1] + nu
        if a.min() < FLAT * nu:
            return "the relaxation is not tight"
        if best.gap <= 0.5 * mark:
            mark, since = best.gap, 0
        since += 1
        if since > PATIENCE:
            return "it stalled"
        matrix = curvature(1 / (2 * a), w)
        diagonal = low / weights + (0 if soft is None else high / room)
        matrix.flat[:: n + 2] += np.r_[diagonal, ball / nu]
        try:
            system = Bordered(matrix)
        except np.linalg.LinAlgError:
            return "its Newton matrix is singular"
        stationary = np.r_[gradient[:n] - low + high - rho, gradient[n] - ball]

        def step(r_low, r_high, r_ball, system=system, stationary=stationary):
            right = -stationary + np.r_[r_low / weights - (0 if soft is None else r_high / room), r_ball / nu]
            change, drho = system(right, 1 - weights.sum())
            dw, dnu = change[:n], change[n]
            dhigh = np.zeros(n) if soft is None else (r_high + high * dw) / room
            return dw, dnu, -drho, (r_low - low * dw) / weights, dhigh, (r_ball - ball * dnu) / nu

        def longest(d, fraction):
            dw, dnu, _, dlow, dhigh, dball = d
            bounds = [_room(weights, dw), _room(low, dlow), _room(nu, dnu), _room(ball, dball)]
            if soft is not None:
                bounds += [_room(room, -dw), _room(high, dhigh)]
            da = pull(layout, dw)[1] + dnu
            return min(1.0, fraction * min(bounds), CURVED * _room(a, da))

        mu = (low @ weights + (0 if soft is None else high @ room) + ball * nu) / degree
        d = step(-low * weights, -high * room, -ball * nu)
        sigma = (1 - longest(d, 1.0)) ** 3
        target = sigma * mu
        d = step(target - low * weights - d[0] * d[3], target - high * room + d[0] * d[4],
                 target - ball * nu - d[1] * d[5])
        alpha = longest(d, BACKOFF)
        if not alpha > 1e-8:
            return "no step is left"
        weights, nu, rho = weights + alpha * d[0], nu + alpha * d[1], rho + alpha * d[2]
        low, high, ball = low + alpha * d[3], high + alpha * d[4], ball + alpha * d[5]
        if soft is not None:
            room = room - alpha * d[0]
        _, gradient, w = phi(layout, weights, nu)
    return "it ran out of iterations"


def _room(x, dx) -> float:
    """The longest step along dx that keeps x non-negative."""
    x, dx = np.atleast_1d(x), np.atleast_1d(dx)
    falling = dx < 0
    return float((-x[falling] / dx[falling]).min()) if falling.any() else np.inf

"""Support vector machines in an explicit space: two classes, and all classes at once in two ways.

Both solve the dual for samples ``z`` [N, P] under the inner product. In many dimensions they start from the
multipliers of the last solution where there is one: after a small change of the scores only a few have to move
([L04] 5.5). In few dimensions an interior point needs no start, and its time does not grow with the cost.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit


@dataclass(frozen=True)
class Machine:
    """A solved dual: decision of sample z is ``z @ weights + bias``."""

    coefficients: np.ndarray  # [N, M]: alpha_i y_i (M = 1), or one column per class
    weights: np.ndarray  # [P, M]
    bias: np.ndarray  # [M]
    objective: float  # value of the dual, W of [L04] (11)
    violation: float  # what is left: relative duality gap (interior point) or largest violation of the KKT conditions
    epochs: int = 0  # passes over the samples that an all-in-one machine took


@njit(cache=True, inline="always")
def _may_grow(sign, alpha, cost):
    """Whether alpha y may grow; with the other sign, whether it may fall."""
    return alpha < cost if sign > 0 else alpha > 0


@njit(cache=True)
def _extremes(y, f, alpha, cost):
    """``(up, largest, down, smallest)`` rise y - f of the samples whose alpha y may grow, and whose may fall."""
    up, best, down, worst = -1, -np.inf, -1, np.inf
    for i in range(len(y)):
        rise = y[i] - f[i]
        if rise > best and _may_grow(y[i], alpha[i], cost):
            up, best = i, rise
        if rise < worst and _may_grow(-y[i], alpha[i], cost):
            down, worst = i, rise
    return up, best, down, worst


@njit(cache=True)
def _smo(kernel, y, cost, alpha, tolerance, max_steps):
    """Sequential minimal optimisation, second-order choice of pairs; ``alpha`` [N] is changed in place.

    Keeps ``f = kernel @ (alpha y)``, so that the dual gradient of alpha_i is ``1 - y_i f_i``: a step costs O(N).
    Returns (bias, violation).
    """
    n = len(y)
    f = kernel @ (alpha * y)
    violation = np.inf
    for _ in range(max_steps):
        up, best, down, worst = _extremes(y, f, alpha, cost)
        violation = best - worst
        if violation < tolerance:
            break
        gain_best = -1.0
        for i in range(n):
            slope = best - (y[i] - f[i])
            if slope > 0 and _may_grow(-y[i], alpha[i], cost):
                gain = slope * slope / max(kernel[up, up] + kernel[i, i] - 2.0 * kernel[up, i], 1e-12)
                if gain > gain_best:
                    down, gain_best = i, gain
        curve = max(kernel[up, up] + kernel[down, down] - 2.0 * kernel[up, down], 1e-12)
        step = (best - (y[down] - f[down])) / curve
        step = min(step, cost - alpha[up] if y[up] > 0 else alpha[up])
        step = min(step, alpha[down] if y[down] > 0 else cost - alpha[down])
        alpha[up] = min(max(alpha[up] + y[up] * step, 0.0), cost)
        alpha[down] = min(max(alpha[down] - y[down] * step, 0.0), cost)
        for i in range(n):
            f[i] += step * (kernel[up, i] - kernel[down, i])
    f = kernel @ (alpha * y)
    _, low, _, high = _extremes(y, f, alpha, cost)
    on_margin = (y - f)[(alpha > 0.0) & (alpha < cost)]
    bias = on_margin.mean() if len(on_margin) else 0.5 * (low + high)
    return bias, violation


@njit(cache=True)
def _factor(matrix):
    """Cholesky factor in the lower triangle, in place; False when the matrix is not positive definite."""
    for a in range(len(matrix)):
        for b in range(a + 1):
            total = matrix[a, b]
            for k in range(b):
                total -= matrix[a, k] * matrix[b, k]
            if a > b:
                matrix[a, b] = total / matrix[b, b]
            elif total > 0.0:
                matrix[a, a] = np.sqrt(total)
            else:
                return False
    return True


@njit(cache=True)
def _newton_solve(d, theta, factor, rhs, out):
    """``out = (diag(theta) + d d')^-1 rhs`` by Woodbury, with the factor of ``I + d' diag(theta)^-1 d``."""
    n, dims = d.shape
    inner = np.zeros(dims)
    for i in range(n):
        share = rhs[i] / theta[i]
        for a in range(dims):
            inner[a] += d[i, a] * share
    for a in range(dims):
        for k in range(a):
            inner[a] -= factor[a, k] * inner[k]
        inner[a] /= factor[a, a]
    for a in range(dims - 1, -1, -1):
        for k in range(a + 1, dims):
            inner[a] -= factor[k, a] * inner[k]
        inner[a] /= factor[a, a]
    for i in range(n):
        total = rhs[i]
        for a in range(dims):
            total -= d[i, a] * inner[a]
        out[i] = total / theta[i]


class Point(NamedTuple):
    """Where the interior point stands, all [N]: alpha, room = cost - alpha (kept apart: near the bound the difference
    would be rounding alone), the multipliers s of alpha >= 0 and t of alpha <= cost; what a Newton step is made of."""

    alpha: np.ndarray
    room: np.ndarray
    s: np.ndarray
    t: np.ndarray
    residual: np.ndarray
    theta: np.ndarray
    target_s: np.ndarray
    target_t: np.ndarray
    step_s: np.ndarray
    step_t: np.ndarray
    step_alpha: np.ndarray


@njit(cache=True)
def _inside(y, cost):
    """The first point, as far inside the box as sum alpha y = 0 allows."""
    n, positive, new = len(y), (y > 0).sum(), np.empty((7, len(y)))
    alpha = 0.5 * cost * min(positive, n - positive) / np.where(y > 0, positive, n - positive)
    return Point(alpha, cost - alpha, np.ones(n), np.ones(n), new[0], new[1], new[2], new[3], new[4], new[5], new[6])


@njit(cache=True, error_model="numpy")
def _newton_system(d, y, cost, b, at, inner):
    """Residuals and the Newton matrix ``diag(theta) + d d'`` at a point, the latter as ``inner = d' diag(theta)^-1 d``;
    returns (relative gap, sum alpha y, complementarity)."""
    n, dims = d.shape
    w = np.zeros(dims)
    total, balance, complementarity = 0.0, 0.0, 0.0
    for i in range(n):
        total += at.alpha[i]
        balance += y[i] * at.alpha[i]
        complementarity += at.s[i] * at.alpha[i] + at.t[i] * at.room[i]
        for a in range(dims):
            w[a] += d[i, a] * at.alpha[i]
    objective = total - 0.5 * (w * w).sum()
    worst = abs(balance) / cost
    inner[:] = 0.0
    for i in range(n):
        f = b * y[i] - 1.0
        for a in range(dims):
            f += d[i, a] * w[a]
        at.residual[i] = f - at.s[i] + at.t[i]
        worst = max(worst, abs(at.residual[i]))
        at.theta[i] = at.s[i] / at.alpha[i] + at.t[i] / at.room[i]
        for a in range(dims):
            share = d[i, a] / at.theta[i]
            for k in range(a + 1):
                inner[a, k] += share * d[i, k]
    return max(complementarity / (1.0 + abs(objective)), worst), balance, complementarity


@njit(cache=True, error_model="numpy")
def _find_step(at, er, ey, step_b):
    """Steps of alpha and both multipliers towards their targets; returns how far they may go, times 1 / 0.995."""
    length = 1.0 / 0.995
    for i in range(len(er)):
        move = at.step_alpha[i] = er[i] - step_b * ey[i]
        at.step_s[i] = (at.target_s[i] - at.s[i] * move) / at.alpha[i] - at.s[i]
        at.step_t[i] = (at.target_t[i] + at.t[i] * move) / at.room[i] - at.t[i]
        if move < 0.0:
            length = min(length, -at.alpha[i] / move)
        elif move > 0.0:
            length = min(length, at.room[i] / move)
        if at.step_s[i] < 0.0:
            length = min(length, -at.s[i] / at.step_s[i])
        if at.step_t[i] < 0.0:
            length = min(length, -at.t[i] / at.step_t[i])
    return length


@njit(cache=True, error_model="numpy")
def _aim(at, complementarity, length):
    """Targets of the second phase: centred by how far the first would have gone, and curved (Mehrotra)."""
    n, reach = len(at.alpha), min(length, 1.0)
    after = 0.0
    for i in range(n):
        after += (at.s[i] + reach * at.step_s[i]) * (at.alpha[i] + reach * at.step_alpha[i])
        after += (at.t[i] + reach * at.step_t[i]) * (at.room[i] - reach * at.step_alpha[i])
    centre = complementarity / (2 * n) * (after / complementarity) ** 3
    for i in range(n):
        at.target_s[i] = centre - at.step_s[i] * at.step_alpha[i]
        at.target_t[i] = centre + at.step_t[i] * at.step_alpha[i]


@njit(cache=True, error_model="numpy")
def _interior(d, y, cost, tolerance, max_steps):
    """Primal-dual interior point with predictor and corrector for few dimensions: N P^2 a step, about 15 steps.

    Rows of ``d`` [N, P] are y_i z_i. Solves ``d w - 1 + b y = s - t``, w = d' alpha, with multipliers s of
    alpha >= 0 and t of alpha <= cost; the Newton matrix is diagonal plus rank P. Returns (alpha, bias, relative gap).
    """
    n, dims = d.shape
    at = _inside(y, cost)
    best, rhs, ey, er = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    inner = np.empty((dims, dims))
    b, best_b, gap = 0.0, 0.0, np.inf
    for _ in range(max_steps):
        now, balance, complementarity = _newton_system(d, y, cost, b, at, inner)
        if now < gap:
            gap, best_b = now, b
            best[:] = at.alpha
        if gap < tolerance:
            break
        for a in range(dims):
            inner[a, a] += 1.0
        if not (np.isfinite(now) and _factor(inner)):
            break
        _newton_solve(d, at.theta, inner, y, ey)
        yey = (y * ey).sum()
        at.target_s[:] = 0.0
        at.target_t[:] = 0.0
        length, step_b = 1.0, 0.0
        for phase in range(2):  # straight for the solution, then with the targets that this gives
            for i in range(n):
                rhs[i] = at.target_s[i] / at.alpha[i] - at.s[i] - at.target_t[i] / at.room[i] + at.t[i] - at.residual[i]
            _newton_solve(d, at.theta, inner, rhs, er)
            step_b = ((y * er).sum() + balance) / yey
            length = _find_step(at, er, ey, step_b)
            if phase == 0:
                _aim(at, complementarity, length)
        length = min(1.0, 0.995 * length)
        for i in range(n):
            at.alpha[i] += length * at.step_alpha[i]
            at.room[i] -= length * at.step_alpha[i]
            at.s[i] += length * at.step_s[i]
            at.t[i] += length * at.step_t[i]
        b += length * step_b
    return best, best_b, gap


def solve_binary(z, y, cost=1.0, start=None, tolerance=None, max_steps=1_000_000, kernel=None) -> Machine:
    """Soft-margin machine of samples ``z`` [N, P] with signs ``y`` in {-1, +1} ([L04] (11)).

    With few features for the samples there are, by an interior point (to a relative gap of 1e-9); else by SMO (to a
    violation of 1e-5), from ``start``, the coefficients [N, 1] of an earlier solution on the same samples with the
    same cost. ``tolerance`` replaces either bound; ``kernel`` [N, N] is z z' where the caller has it.
    """
    y, few = np.asarray(y, float), 4 * z.shape[1] <= len(z)
    if few:
        bound = tolerance or 1e-9
        alpha, bias, violation = _interior(np.ascontiguousarray(z * y[:, None]), y, cost, bound, 100)
        alpha = np.clip(alpha, 0.0, cost)
    if not few or violation >= 1e3 * bound:  # rounding may stop the interior point short
        alpha = np.zeros(len(z)) if few or start is None else np.clip(start[:, 0] * y, 0.0, cost)
        bias, violation = _smo(z @ z.T if kernel is None else kernel, y, cost, alpha, tolerance or 1e-5, max_steps)
    w = z.T @ (alpha * y)
    value = alpha.sum() - 0.5 * (w * w).sum()
    return Machine((alpha * y)[:, None], w[:, None], np.array([bias]), float(value), float(violation))


@njit(cache=True)
def _crammer_singer(z, y, cost, tau, order, tolerance, max_epochs):
    """Dual ascent over samples; ``tau`` [N, C] is changed in place (rows sum to 0, tau_iy <= cost, others <= 0).

    One sample's problem is ``min 1/2 k |t|^2 + sum_c t_c (f_c - k tau_c) + t_c (c != y)``, whose solution is a
    projection on a simplex: ``t_c = min(cost [c = y], (theta - v_c) / k)`` with theta from sorting. Samples that had
    nothing to gain rest until those that had are solved; only a pass over all of them ends it.
    """
    n, dims = z.shape
    classes = tau.shape[1]
    w = z.T @ tau
    norms = (z * z).sum(axis=1)
    awake = np.ones(n, np.bool_)
    whole = True
    violation = np.inf
    g, v, knees = np.empty(classes), np.empty(classes), np.empty(classes)
    for epoch in range(max_epochs):
        violation = 0.0
        for i in order[epoch % len(order)]:
            k = norms[i]
            if k < 1e-12 or not awake[i]:
                continue
            own = y[i]
            g[:] = 1.0
            g[own] = 0.0
            for a in range(dims):
                for c in range(classes):
                    g[c] += z[i, a] * w[a, c]
            peak, low = -np.inf, np.inf
            for c in range(classes):
                peak = max(peak, g[c])
                if tau[i, c] < (cost if c == own else 0.0):
                    low = min(low, g[c])
                v[c] = g[c] - k * tau[i, c]
            gap = peak - low
            violation = max(violation, gap)
            awake[i] = gap >= 0.1 * tolerance
            if not awake[i]:
                continue
            # sum_c min(cap_c, (theta - v_c) / k) = 0: piecewise linear in theta with knees v_c + k cap_c, ascending
            for c in range(classes):
                knee = v[c] + (k * cost if c == own else 0.0)
                place = c
                while place > 0 and knees[place - 1] > knee:
                    knees[place] = knees[place - 1]
                    place -= 1
                knees[place] = knee
            theta = 0.0
            for m in range(classes):
                total = 0.0
                free = 0
                for c in range(classes):
                    cap = cost if c == own else 0.0
                    total += min(cap, (knees[m] - v[c]) / k)
                    free += v[c] + k * cap >= knees[m]
                if total >= 0.0:
                    theta = knees[m] - total * k / free
                    break
            for c in range(classes):
                new = min(cost if c == own else 0.0, (theta - v[c]) / k)
                change = new - tau[i, c]
                if change != 0.0:
                    tau[i, c] = new
                    for a in range(dims):
                        w[a, c] += z[i, a] * change
        if violation < tolerance:
            if whole:
                break
            awake[:] = True
            whole = True
        else:
            whole = False
    w = z.T @ tau
    gain = 0.0
    for i in range(n):
        gain += tau[i, y[i]]
    return w, gain - 0.5 * (w * w).sum(), violation, epoch + 1


@njit(cache=True)
def _weston_watkins(z, y, cost, alpha, order, tolerance, max_epochs):
    """Dual ascent of [L04] (17) by one multiplier at a time; ``alpha`` [N, C] in [0, cost] is changed in place.

    Sample i with rival m gains ``2 - (f_y - f_m)`` a unit, and the curve is ``2 |z_i|^2``. Samples that had nothing to
    gain rest until those that had are solved; only a pass over all of them ends it.
    """
    n, dims = z.shape
    classes = alpha.shape[1]
    w = z.T @ against(alpha, y)
    norms = (z * z).sum(axis=1)
    awake, whole, violation = np.ones(n, np.bool_), True, np.inf
    f = np.empty(classes)
    for epoch in range(max_epochs):
        violation = 0.0
        for i in order[epoch % len(order)]:
            own, k = y[i], norms[i]
            if k < 1e-12 or not awake[i]:
                continue
            f[:] = 0.0
            for a in range(dims):
                for c in range(classes):
                    f[c] += z[i, a] * w[a, c]
            worst, moved = 0.0, 0.0
            for m in range(classes):
                if m == own:
                    continue
                gain = 2.0 - (f[own] - f[m])
                if (gain > 0.0 and alpha[i, m] < cost) or (gain < 0.0 and alpha[i, m] > 0.0):
                    worst = max(worst, abs(gain))
                    new = min(cost, max(0.0, alpha[i, m] + gain / (2.0 * k)))
                    change = new - alpha[i, m]
                    alpha[i, m] = new
                    f[own] += k * change
                    f[m] -= k * change
                    moved += change
                    for a in range(dims):
                        w[a, m] -= z[i, a] * change
            for a in range(dims):
                w[a, own] += z[i, a] * moved
            violation = max(violation, worst)
            awake[i] = worst >= 0.1 * tolerance
        if violation < tolerance:
            if whole:
                break
            awake[:] = True
            whole = True
        else:
            whole = False
    w = z.T @ against(alpha, y)
    return w, 2.0 * alpha.sum() - 0.5 * (w * w).sum(), violation, epoch + 1


@njit(cache=True)
def against(alpha, y):
    """Coefficients [N, C] of multipliers [N, C] of each sample's rivals: a sample pulls its own class by their sum."""
    coefficients = -alpha
    for i in range(len(y)):
        coefficients[i, y[i]] = alpha[i].sum() - alpha[i, y[i]]
    return coefficients


def from_pairs(machines, y, n_classes: int) -> np.ndarray:
    """Multipliers [N, C] of every sample against each rival, from the pairs' machines, given as
    ``{(a, b): coefficients}`` of the samples of a and b in order: the start of Hill that [L04] 3.4 tells of."""
    alpha = np.zeros((len(y), n_classes))
    for (a, b), coefficients in machines.items():
        own = np.flatnonzero((y == a) | (y == b))
        alpha[own, np.where(y[own] == a, b, a)] = np.abs(coefficients[:, 0])
    return alpha


def solve_all(z, y, cost=1.0, start=None, tolerance=1e-3, max_epochs=1000, seed=0, bias=True, kind="joint") -> Machine:
    """All-in-one machine on ``z`` [N, P] with classes ``y`` [N], ``0 .. C-1``.

    ``joint`` is Crammer and Singer's, one slack a sample: ``max sum_i tau_iy - 1/2 |sum_i z_i tau_i'|^2``; ``each`` is
    [L04] (17), of Weston and Watkins, one slack for every rival and a margin of 2. The bias is the weight of a constant
    feature, so it is regularised with the rest. The order of samples in an epoch is a permutation drawn from ``seed``:
    a solution depends on its arguments alone. ``start`` is the coefficients [N, C] of an earlier solution on the same
    samples and cost, or :func:`from_pairs` made into coefficients by :func:`against`.
    """
    y = np.asarray(y)
    n_classes = int(y.max()) + 1
    z = np.hstack([z, np.ones((len(z), 1))]) if bias else np.ascontiguousarray(z, float)
    tau = np.zeros((len(z), n_classes)) if start is None else start.copy()
    own = np.arange(len(z)), y
    rng = np.random.default_rng(seed)
    order = np.stack([rng.permutation(len(z)) for _ in range(16)])
    if kind == "joint":
        tau *= np.minimum(1.0, cost / np.maximum(tau[own], np.finfo(float).tiny))[:, None]  # of pairs: too much in all
        w, objective, violation, epochs = _crammer_singer(z, y, cost, tau, order, tolerance, max_epochs)
    else:
        alpha = np.clip(-tau, 0.0, cost)
        alpha[own] = 0.0
        w, objective, violation, epochs = _weston_watkins(z, y, cost, alpha, order, tolerance, max_epochs)
        tau = against(alpha, y)
    w, constant = (w[:-1], w[-1]) if bias else (w, np.zeros(n_classes))
    return Machine(tau, w, constant, float(objective), float(violation), epochs)

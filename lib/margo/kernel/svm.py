"""Support vector machines in an explicit space: two classes (SMO) and all classes at once (Crammer and Singer).

Both solve the dual for samples ``z`` [N, P] under the inner product, from the multipliers of the last solution where
there are any: after a small change of the scores only a few pairs have to move ([L04] 5.5).
"""

from dataclasses import dataclass

import numpy as np
from numba import njit


@dataclass(frozen=True)
class Machine:
    """A solved dual: decision of sample z is ``z @ weights + bias``."""

    coefficients: np.ndarray
    """[N, M]: alpha_i y_i (M = 1), or one column per class"""
    weights: np.ndarray
    """[P, M]"""
    bias: np.ndarray
    """[M]"""
    objective: float
    """Value of the dual, W of [L04] (11)"""
    violation: float
    """Largest violation of the KKT conditions left"""


@njit(cache=True)
def _smo(z, y, cost, alpha, tolerance, max_steps):
    """Sequential minimal optimisation, second-order choice of pairs; ``alpha`` [N] is changed in place.

    Keeps ``f = z @ w`` so that the dual gradient of alpha_i is ``1 - y_i f_i``.
    """
    n, dims = z.shape
    w = z.T @ (alpha * y)
    f = z @ w
    norms = np.empty(n)
    for i in range(n):
        norms[i] = (z[i] * z[i]).sum()
    violation = np.inf
    for _ in range(max_steps):
        up, best = -1, -np.inf
        down, worst = -1, np.inf
        for i in range(n):
            rise = y[i] - f[i]
            if (rise > best) and ((y[i] > 0 and alpha[i] < cost) or (y[i] < 0 and alpha[i] > 0)):
                up, best = i, rise
            if (rise < worst) and ((y[i] > 0 and alpha[i] > 0) or (y[i] < 0 and alpha[i] < cost)):
                down, worst = i, rise
        violation = best - worst
        if violation < tolerance:
            break
        column = z @ z[up]
        gain_best = -1.0
        for i in range(n):
            if (y[i] > 0 and alpha[i] > 0) or (y[i] < 0 and alpha[i] < cost):
                slope = best - (y[i] - f[i])
                if slope > 0:
                    curve = max(norms[up] + norms[i] - 2.0 * column[i], 1e-12)
                    gain = slope * slope / curve
                    if gain > gain_best:
                        down, gain_best = i, gain
        curve = max(norms[up] + norms[down] - 2.0 * column[down], 1e-12)
        step = (best - (y[down] - f[down])) / curve
        step = min(step, cost - alpha[up] if y[up] > 0 else alpha[up])
        step = min(step, alpha[down] if y[down] > 0 else cost - alpha[down])
        alpha[up] = min(max(alpha[up] + y[up] * step, 0.0), cost)
        alpha[down] = min(max(alpha[down] - y[down] * step, 0.0), cost)
        direction = step * (z[up] - z[down])
        w += direction
        f += z @ direction
    w = z.T @ (alpha * y)
    f = z @ w
    low, high, on_margin, count = -np.inf, np.inf, 0.0, 0
    for i in range(n):
        rise = y[i] - f[i]
        if 0.0 < alpha[i] < cost:
            on_margin += rise
            count += 1
        if (y[i] > 0 and alpha[i] < cost) or (y[i] < 0 and alpha[i] > 0):
            low = max(low, rise)
        if (y[i] > 0 and alpha[i] > 0) or (y[i] < 0 and alpha[i] < cost):
            high = min(high, rise)
    bias = on_margin / count if count else 0.5 * (low + high)
    return w, bias, alpha.sum() - 0.5 * (w * w).sum(), violation


def solve_binary(z, y, cost=1.0, start=None, tolerance=1e-4, max_steps=1_000_000) -> Machine:
    """Soft-margin machine of samples ``z`` [N, P] with signs ``y`` in {-1, +1} ([L04] (11)).

    ``start`` is the coefficients [N, 1] of an earlier solution on the same samples with the same cost.
    """
    y = np.asarray(y, float)
    alpha = np.zeros(len(z)) if start is None else np.clip(start[:, 0] * y, 0.0, cost)
    w, bias, objective, violation = _smo(np.ascontiguousarray(z), y, cost, alpha, tolerance, max_steps)
    return Machine((alpha * y)[:, None], w[:, None], np.array([bias]), float(objective), float(violation))


@njit(cache=True)
def _crammer_singer(z, y, cost, tau, order, tolerance, max_epochs):
    """Dual ascent over samples; ``tau`` [N, C] is changed in place (rows sum to 0, tau_iy <= cost, others <= 0).

    One sample's problem is ``min 1/2 k |t|^2 + sum_c t_c (f_c - k tau_c) + t_c (c != y)``, whose solution is a
    projection on a simplex: ``t_c = min(cost [c = y], (theta - v_c) / k)`` with theta from sorting.
    """
    n, dims = z.shape
    classes = tau.shape[1]
    w = z.T @ tau
    violation = np.inf
    caps = np.empty(classes)
    v = np.empty(classes)
    change = np.empty(classes)
    for epoch in range(max_epochs):
        violation = 0.0
        for i in order[epoch % len(order)]:
            k = (z[i] * z[i]).sum()
            if k < 1e-12:
                continue
            f = z[i] @ w
            peak, low = -np.inf, np.inf
            for c in range(classes):
                caps[c] = cost if c == y[i] else 0.0
                g = f[c] + (0.0 if c == y[i] else 1.0)
                peak = max(peak, g)
                if tau[i, c] < caps[c]:
                    low = min(low, g)
                v[c] = g - k * tau[i, c]
            gap = peak - low
            violation = max(violation, gap)
            if gap < 0.1 * tolerance:
                continue
            # sum_c min(caps_c, (theta - v_c) / k) = 0: piecewise linear in theta with knees v_c + k caps_c
            knees = np.sort(v + k * caps)
            theta = 0.0
            for m in range(classes):
                # the m classes with the lowest knees are at their caps
                knee = knees[m]
                total = 0.0
                for c in range(classes):
                    total += min(caps[c], (knee - v[c]) / k)
                if total >= 0.0:
                    slope = 0.0
                    for c in range(classes):
                        if v[c] + k * caps[c] >= knee:
                            slope += 1.0 / k
                    theta = knee - total / slope
                    break
            for c in range(classes):
                new = min(caps[c], (theta - v[c]) / k)
                change[c] = new - tau[i, c]
                tau[i, c] = new
            for a in range(dims):
                for c in range(classes):
                    w[a, c] += z[i, a] * change[c]
        if violation < tolerance:
            break
    w = z.T @ tau
    gain = 0.0
    for i in range(n):
        gain += tau[i, y[i]]
    return w, gain - 0.5 * (w * w).sum(), violation


def solve_all(z, y, n_classes, cost=1.0, start=None, tolerance=1e-3, max_epochs=1000, seed=0) -> Machine:
    """All-in-one machine of Crammer and Singer on ``z`` [N, P] with classes ``y`` [N], no bias.

    ``max sum_i tau_iy - 1/2 |sum_i tau_i z_i'|^2``; append a constant column to ``z`` for a (regularised) bias. The
    order of samples in an epoch is a permutation drawn from ``seed``, so a solution depends on its arguments alone.
    """
    z = np.ascontiguousarray(z, float)
    tau = np.zeros((len(z), n_classes)) if start is None else start.copy()
    rng = np.random.default_rng(seed)
    order = np.stack([rng.permutation(len(z)) for _ in range(16)])
    w, objective, violation = _crammer_singer(z, np.asarray(y), cost, tau, order, tolerance, max_epochs)
    return Machine(tau, w, np.zeros(n_classes), float(objective), float(violation))

"""The proof that comes with every solution: a feasible objective from below, a dual value from above."""

import numpy as np

from margo.estimate.lme.problem import Problem, margins


def best_level(values: np.ndarray, soft: float | None) -> tuple[float, float]:
    """The rho that maximises rho - C sum_m max(0, rho - values_m), and that maximum; the smallest value when hard.

    The slope of the objective in rho is 1 - C #{values < rho}: it turns at the value with 1/C others below it.
    """
    if soft is None:
        level = float(values.min())
        return level, level
    below = min(int(np.floor(1 / soft + 1e-9)), len(values) - 1)
    level = float(np.partition(values, below)[below])
    return level, level - soft * float(np.maximum(level - values, 0).sum())


def lightest(costs: np.ndarray, cap: float | None) -> np.ndarray:
    """The lambda [N] with sum 1 and 0 <= lambda <= cap that minimises costs . lambda: full on the smallest costs."""
    cap = 1.0 if cap is None else min(cap, 1.0)
    weights = np.empty(len(costs))
    weights[np.argsort(costs, kind="stable")] = np.clip(1 - cap * np.arange(len(costs)), 0, cap)
    return weights


def onto_simplex(point: np.ndarray, cap: float | None) -> np.ndarray:
    """The nearest lambda [N] to ``point`` with sum 1 and 0 <= lambda <= cap.

    It is clip(point - tau, 0, cap) for one tau. The sum falls with tau and is linear between the breakpoints
    point - cap, where a component leaves its cap, and point, where it reaches zero.
    """
    n = len(point)
    if cap is not None and cap * n <= 1:
        return np.full(n, 1 / n)
    cap = 1.0 if cap is None else min(cap, 1.0)  # the sum is 1, so a cap of 1 is none
    breaks = np.concatenate([point - cap, point])
    order = np.argsort(breaks)
    breaks = breaks[order]
    slope = np.cumsum(np.where(order < n, np.int8(-1), np.int8(1)), dtype=np.int32)[:-1]
    del order  # of very many pairs each array counts
    total = np.diff(breaks, prepend=breaks[:1])
    total[1:] *= slope
    np.cumsum(total, out=total)
    total += n * cap
    piece = min(max(int(2 * n - np.searchsorted(total[::-1], 1.0, side="right")), 1), 2 * n - 1)
    tau = breaks[piece] - (total[piece] - 1) / min(slope[piece - 1], -1)
    return _exact(np.clip(point - tau, 0, cap), cap)


def _exact(weights: np.ndarray, cap: float) -> np.ndarray:
    """Remove what rounding left of sum - 1, without leaving the box."""
    for _ in range(3):
        short = 1 - weights.sum()
        room = cap - weights if short > 0 else weights
        weights = weights + short * (room / room.sum()) if room.sum() > 0 else weights
    return weights


def dual_value(b: np.ndarray, half: np.ndarray, radius2: float, guess: float = 0.0) -> tuple[float, float]:
    """min over nu of nu r^2 + sum_k |b_k|^2 / (4 a_k), a_k = nu + half_k >= 0, nu >= 0; returns (minimum, nu).

    The derivative r^2 - sum_k |b_k|^2 / (4 a_k^2) rises with nu. In the reciprocal of the norm, 1 / |w(nu)| is nearly
    linear in nu, so Newton's method on r^-1 - |w|^-1 needs a handful of steps from any nu left of the root; bisection
    guards it.
    """
    squares = np.einsum("kd,kd->k", b, b) / 4
    floor = max(0.0, float(-half.min())) if len(half) else 0.0
    live = squares > 0
    if not live.any():
        return floor * radius2, floor
    squares, offset = squares[live], half[live] + floor  # a_k = offset_k + (nu - floor), offset_k >= 0
    radius = np.sqrt(radius2)
    low, high = 0.0, float(np.sqrt(squares.sum())) / radius
    if offset.min() > 0 and (squares / offset**2).sum() <= radius2:
        return floor * radius2 + float((squares / offset).sum()), floor
    nu = min(max(guess - floor, 0.0), high)
    if not low < nu < high:
        nu = high
    for _ in range(100):
        a = offset + nu
        terms = squares / (a * a)
        norm2 = terms.sum()
        if norm2 > radius2:
            low = nu
        else:
            high = nu
        norm = np.sqrt(norm2)
        step = norm2 / (terms / a).sum() * (norm - radius) / radius
        trial = nu + step
        if not low < trial < high:
            trial = 0.5 * (low + high)
        if abs(trial - nu) <= 1e-15 * trial or high - low <= 1e-15 * high:
            break
        nu = trial
    nu = max(nu, 1e-300)
    return float((floor + nu) * radius2 + (squares / (offset + nu)).sum()), floor + nu


def scale_of(problem: Problem, objective: float) -> float:
    """What a gap is measured against: the objective, or 1 where it is smaller, or the problem's own size if below 1.

    Its size is the largest start margin or the most the ball lets a margin change to first order.
    """
    size = max(np.abs(problem.margins).max(), np.sqrt(problem.radius2) * problem.steepest)
    return max(abs(objective), min(1.0, size)) or 1.0


def upper_bound(problem: Problem, multipliers: np.ndarray) -> float:
    """phi at these multipliers (made feasible by the caller) and the best nu, straight from the entries."""
    from margo.estimate.lme.sums import add_at, add_rows

    b, half = np.zeros((problem.n_gaussians, problem.dimension)), np.zeros(problem.n_gaussians)
    for pair, gaussian, counts, gradients in problem.blocks():
        weights = multipliers[pair]
        add_at(half, gaussian, weights * counts)
        add_rows(b, gaussian, weights, gradients)
    value, _ = dual_value(b, 0.5 * half, problem.radius2)
    return float(problem.margins @ multipliers) + value


def certify(problem: Problem, shift: np.ndarray, augmentation: np.ndarray, multipliers: np.ndarray) -> dict:
    """rho, objective, bound and gap of a feasible point and feasible multipliers, recomputed from the entries."""
    rho, objective = best_level(margins(problem, shift, augmentation), problem.soft)
    bound = upper_bound(problem, multipliers)
    gap = (bound - objective) / scale_of(problem, objective)
    return {"rho": rho, "objective": objective, "bound": bound, "gap": gap}

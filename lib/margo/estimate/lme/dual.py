"""Primal-dual interior point on the dual program itself: N + 1 variables, the means eliminated.

    minimise  phi = d0 . lambda + nu r^2 + sum_k |b_k|^2 / (4 a_k)     sum lambda = 1, 0 <= lambda (<= C), nu >= 0

with b_k = sum_m lambda_m g_mk, a_k = nu + 1/2 sum_m lambda_m n_mk. At any point w_k = b_k / (2 a_k) and the gradient of
phi is (margins at u0 + w, r^2 - |w|^2). phi is smooth only where every a_k > 0: where the optimum has a_k = 0 (v_k > 0,
the relaxation not tight) the method gives up early and conic.py takes over.
"""

import numpy as np

from margo.estimate.lme.certificate import dual_value
from margo.estimate.lme.layout import Curvature, Layout, pull, pull_counts, push
from margo.estimate.lme.newton import follow_path, room_for

ITERATIONS = 60
CURVED = 0.9  # of the way to a_k = 0, where phi has a pole
FLAT = 1e-7  # a_k below this fraction of nu: not tight
PATIENCE = 8  # iterations without halving the gap


def solve_dual(layout: Layout, best, tolerance: float, held=(0.0, 0.0), mass: float = 1.0, enough: float = 0.0) -> str:
    """Offer iterates to ``best``; returns why the method gave up, "" when its gap is at most ``tolerance``.

    Pairs outside the layout may have their multipliers held: ``held`` is what they add to (b [U, D], half [U]), and
    ``mass`` what they leave of the sum of lambda. Then the gap of the whole cannot close; ``enough`` says how closely
    to solve the part.
    """
    return follow_path(_Smooth(layout, held, enough), layout, best, tolerance, ITERATIONS, mass)


def phi(layout: Layout, weights: np.ndarray, nu: float, held=(0.0, 0.0)):
    """phi (without the held pairs' d0 . lambda), its gradient [N + 1], w [U, D] and a [U], in units of the layout."""
    b, half = (own + other for own, other in zip(pull(layout, weights), held))
    a = half + nu
    w = b / (2 * a)[:, None]
    squares = np.einsum("kd,kd->k", w, w)
    value = layout.start @ weights + nu + a @ squares
    return value, np.r_[layout.start + push(layout, w, squares), 1 - squares.sum()], w, a


class _Smooth:
    """phi as a cone of :func:`follow_path`: nothing of its own but the pole at a_k = 0."""

    product, degree = 0.0, 0

    def __init__(self, layout: Layout, held, enough: float):
        self.layout, self.held, self.enough = layout, held, enough
        self.hessian = Curvature(layout)
        self.mark, self.since = np.inf, 0

    def start(self, weights):
        b, half = (own + other for own, other in zip(pull(self.layout, weights), self.held))
        nu = max(2 * dual_value(b, half, 1.0)[1], 1e-6)
        return nu, max(1e-3 * nu, 1e-9)

    def visit(self, weights, nu):
        self.nu = nu
        _, gradient, self.w, self.a = phi(self.layout, weights, nu, self.held)
        return self.w, np.einsum("kd,kd->k", self.w, self.w), gradient

    def halt(self, best, left):
        if self.a.min() < FLAT * self.nu:
            return "the relaxation is not tight"
        if best.gap <= 0.5 * self.mark:
            self.mark, self.since = best.gap, 0
        self.since += 1
        if self.since > PATIENCE and not self.enough:
            return "it stalled"
        return "the pairs held are in the way" if left <= self.enough else ""

    def curvature(self):
        return self.hessian(1 / (2 * self.a), self.w)

    def aim(self, target, step):
        return 0.0

    def follow(self, change):
        return pull_counts(self.layout, change[:-1]) + change[-1]

    def room(self, step, part):
        return CURVED * room_for(self.a, step)

    def move(self, length, step):
        pass  # w and a follow from lambda and nu


def means_of(b: np.ndarray, a: np.ndarray) -> np.ndarray:
    """w_k = b_k / (2 a_k), and 0 where a_k = 0 (b_k is zero there too, nu being the best)."""
    return b / np.where(a > 0, 2 * a, np.inf)[:, None]


def solve_forced(layout: Layout, best) -> None:
    """C = 1 / N leaves one lambda: nu and w follow, and what the ball has left over widens a Gaussian with a_k = 0."""
    weights = np.full(layout.n_pairs, 1 / layout.n_pairs)
    b, half = pull(layout, weights)
    nu = best.offer_dual(weights, b, half)
    w = means_of(b, half + nu)
    q = np.einsum("kd,kd->k", w, w)
    if nu > 0:
        q[np.argmin(half + nu)] += max(0.0, 1 - q.sum())
    best.offer_primal(w, q)

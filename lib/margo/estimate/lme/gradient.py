"""For very many pairs: accelerated projected gradient on the dual, then Newton's method on the undecided pairs alone.

Most multipliers end at a bound: 0 for pairs with a margin above rho, C for those below. The first phase is Nesterov's
accelerated gradient with restart in lambda, nu minimised out exactly; a pass costs O(E D) and there is no N x N matrix.
The step is found by the exact Bregman distance of phi, sum_k a'_k |w'_k - w_k|^2, which is free of cancellation. When
the gap stops falling, the pairs whose margin is nearest to rho are handed to the interior point of dual.py with all
other multipliers held at their bounds, and pairs that then lie on the wrong side of rho join in the next round.

Of hundreds of thousands of pairs a part says nearly what all say: its solution is where the first phase starts.
"""

from dataclasses import replace

import numpy as np

from margo.estimate.lme.certificate import best_level, dual_value, lightest, onto_simplex
from margo.estimate.lme.dual import means_of, solve_dual
from margo.estimate.lme.layout import Layout, pull, push
from margo.estimate.lme.progress import Best

ITERATIONS = 1000
PATIENCE = 60  # iterations in which the gap must have halved
BACKTRACKS = 40
CHECK = 10  # iterations between looks at the averaged primal point
ROUNDS = 12
UNDECIDED = 1500  # multipliers off their bounds after the first phase, beyond which the second is not tried
MANY, PART = 200_000, 20_000  # pairs from which on a part is solved first, and pairs of that
WORKING = 800  # pairs in the interior point at first; later rounds may have twice as many


def solve_gradient(layout: Layout, best: Best, tolerance: float) -> str:
    """Offer points to ``best``; returns why its gap is not within ``tolerance``, "" when it is."""
    lipschitz = _begin(layout, best, tolerance) if layout.n_pairs > MANY else 1.0
    if best.gap > tolerance:
        _accelerate(layout, best, tolerance, lipschitz)
    if best.gap > tolerance:
        _polish(layout, best, tolerance)
    return "" if best.gap <= tolerance else "too many pairs are undecided"


def _begin(layout: Layout, best: Best, tolerance: float) -> float:
    """Offer the means that are best for every so many-th pair, and the multipliers that all margins have there; returns
    a constant for :func:`_accelerate`, which grows with the number of pairs."""
    keep = np.zeros(layout.n_pairs, bool)
    keep[:: layout.n_pairs // PART] = True
    share = np.count_nonzero(keep) / layout.n_pairs
    part = replace(_sub(layout, keep), soft=None if layout.soft is None else layout.soft / share)
    found = Best(part, best.scale)
    lipschitz = _accelerate(part, found, 0.1 * tolerance)
    values = layout.start + push(layout, found.shift, found.width)
    best.offer_margins(found.shift, found.width, values)
    weights = lightest(values, layout.soft)
    best.offer_dual(weights, *pull(layout, weights))
    return lipschitz / share


def _accelerate(layout: Layout, best: Best, tolerance: float, lipschitz: float = 1.0) -> float:
    """Nesterov's method with restart, of which the last constant is returned; primal points are w(lambda) and the
    average of (w, |w|^2) since the restart.

    Margins are linear in (w, q), so an average of points is again a point, widened by their spread (v > 0): that is
    what converges when the relaxation is not tight.
    """
    x = best.multipliers
    b_x, half_x = pull(layout, x)
    y, b_y, half_y = x, b_x, half_x
    momentum, total = 1.0, 0.0
    mean_w = mean_q = 0.0
    mark, since = np.inf, 0
    for iteration in range(1, ITERATIONS + 1):
        _, nu = dual_value(b_y, half_y, 1.0, best.nu)
        w = means_of(b_y, half_y + nu)
        q = np.einsum("kd,kd->k", w, w)
        values = layout.start + push(layout, w, q)
        if q.sum() <= 1 + 1e-12:
            best.offer_margins(w, q, values)
        total += momentum
        mean_w, mean_q = mean_w + (momentum / total) * (w - mean_w), mean_q + (momentum / total) * (q - mean_q)
        lipschitz *= 0.7
        for _ in range(BACKTRACKS):
            new = onto_simplex(y - values / lipschitz, layout.soft)
            b_new, half_new = pull(layout, new)
            nu_new = best.offer_dual(new, b_new, half_new)
            apart = means_of(b_new, half_new + nu_new) - w
            distance = (half_new + nu_new) @ np.einsum("kd,kd->k", apart, apart)
            if distance <= 0.5 * lipschitz * ((new - y) @ (new - y)):
                break
            lipschitz *= 2
        else:  # lambda no longer moves within rounding
            break
        if iteration % CHECK == 0:
            best.offer_primal(mean_w, mean_q)
            if best.gap <= 0.5 * mark:
                mark, since = best.gap, iteration
            elif iteration - since >= PATIENCE:
                break
        if best.gap <= tolerance:
            break
        if (y - new) @ (new - x) > 0:  # the momentum points uphill
            momentum, total = 1.0, 0.0
            y, b_y, half_y = new, b_new, half_new
        else:
            following = 0.5 * (1 + np.sqrt(1 + 4 * momentum**2))
            beta = (momentum - 1) / following
            momentum = following
            y, b_y, half_y = new + beta * (new - x), b_new + beta * (b_new - b_x), half_new + beta * (half_new - half_x)
        x, b_x, half_x = new, b_new, half_new
    return lipschitz


class _Part:
    """Stands in for ``best`` inside the interior point: completes its multipliers by the held ones."""

    def __init__(self, best: Best, free: np.ndarray, held: np.ndarray):
        self.best, self.free, self.held = best, free, held

    def offer(self, w, q, weights):
        whole = self.held.copy()
        whole[self.free] = weights
        self.point = w, q, whole
        self.best.offer(w, q, whole)

    @property
    def gap(self):
        return self.best.gap


def _polish(layout: Layout, best: Best, tolerance: float) -> None:
    """Rounds of the interior point on the pairs near rho, the others held at 0 or C."""
    n, cap = layout.n_pairs, layout.soft
    values = layout.start + push(layout, best.shift, best.width)
    rho, _ = best_level(values, cap)
    free = np.zeros(n, bool)
    free[np.argsort(np.abs(values - rho))[:WORKING]] = True
    undecided = (best.multipliers > 0) & (best.multipliers < (1.0 if cap is None else cap))
    if np.count_nonzero(undecided) > UNDECIDED:
        return
    held = np.where(free | (values >= rho), 0.0, cap or 0.0)
    for _ in range(ROUNDS):
        mass = held.sum()
        if mass >= 1 or (cap is not None and 1 - mass >= cap * np.count_nonzero(free)):
            return
        part = _Part(best, free, held)
        enough = 0.1 * tolerance * best.scale
        solve_dual(_sub(layout, free), part, tolerance, pull(layout, held), 1 - mass, enough)
        if best.gap <= tolerance:
            return
        w, q, weights = part.point
        values = layout.start + push(layout, w, q)
        rho, _ = best_level(values[free], cap if cap is None else cap / (1 - mass))
        wrong = np.where(held > 0, values - rho, rho - values)
        wrong[free] = 0
        joining = np.argsort(-wrong)[:WORKING]
        joining = joining[wrong[joining] > 0]
        if not len(joining):
            return
        # those that came to rest at a bound, on its right side, are held there
        at_zero = (weights < 1e-6 * weights.max()) & (values > rho)
        at_cap = (weights > (1 - 1e-6) * (np.inf if cap is None else cap)) & (values < rho)
        leaving = free & (at_zero | at_cap)
        if np.count_nonzero(free) + len(joining) <= 2 * WORKING:
            leaving[:] = False
        free = free & ~leaving
        held = np.where(leaving & (values < rho), cap or 0.0, np.where(free, 0.0, held))
        free[joining] = True
        held[joining] = 0.0
        if np.count_nonzero(free) > 2 * WORKING:
            return


def _sub(layout: Layout, keep: np.ndarray) -> Layout:
    """The layout of the pairs in ``keep`` alone, over the same Gaussians."""
    number = np.cumsum(keep) - 1
    found, sizes = [], np.zeros(len(layout.used), np.int64)
    for slots, bounds, which, pair, counts, gradients in layout.read():
        chosen = keep[pair]
        sizes[slots] += np.bincount(which[chosen], minlength=len(bounds) - 1)
        found.append((number[pair[chosen]], counts[chosen], gradients[chosen]))
    pair, counts, gradients = (np.concatenate(parts) for parts in zip(*found))
    return replace(layout, start=layout.start[keep], pair=pair, counts=counts, gradients=gradients,
                   offsets=np.concatenate([[0], np.cumsum(sizes)]))  # fmt: skip

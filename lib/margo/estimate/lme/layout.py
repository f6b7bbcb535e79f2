"""The entries sorted by Gaussian and scaled to a unit ball: what every solver multiplies with.

Inside the solvers the ball has radius 1 and margins are counted from ``origin`` in multiples of ``unit``:

    w = r w'    q = r^2 q'    g' = r g / unit    n' = r^2 n / unit    d0' = (d0 - origin) / unit    nu' = r^2 nu / unit

so that one set of step rules serves every radius and every length of utterance. C and lambda are unchanged. Only the
U Gaussians that some entry touches are kept; the others stay where they are.
"""

from dataclasses import dataclass

import numpy as np

from margo.estimate.lme.certificate import best_level, steepest
from margo.estimate.lme.problem import Problem

SMALL = 64  # Gaussians touched by at most this many pairs are multiplied together, larger ones singly


@dataclass(frozen=True, eq=False)
class Layout:
    """E' entries in order of (Gaussian, pair), none repeated; see the module's first lines for the scaling."""

    start: np.ndarray  # [N] d0'
    used: np.ndarray  # [U] the k of each kept Gaussian
    offsets: np.ndarray  # [U + 1] its entries
    pair: np.ndarray  # [E']
    slot: np.ndarray  # [E'] index into used
    counts: np.ndarray  # [E'] n'
    gradients: np.ndarray  # [E', D] g'
    soft: float | None
    origin: float
    unit: float
    radius: float
    n_gaussians: int

    @property
    def n_pairs(self) -> int:
        return len(self.start)

    @property
    def scattered(self) -> bool:
        """Whether the Gaussians have so few entries each that one product over all is faster than one for each."""
        return len(self.pair) < SMALL * len(self.used)


def arrange(problem: Problem, dtype=np.float64) -> Layout:
    """Sort, merge and scale the entries of ``problem``; ``dtype`` is that of the gradients."""
    order = np.lexsort((problem.pair, problem.gaussian))
    pair, gaussian = problem.pair[order], problem.gaussian[order]
    first = np.flatnonzero(np.r_[True, (np.diff(pair) != 0) | (np.diff(gaussian) != 0)]) if len(order) else order
    counts = problem.counts[order]
    radius = np.sqrt(problem.radius2)
    unit = radius * steepest(problem) or np.ptp(problem.margins) or 1.0
    gradients = problem.gradients.astype(dtype, copy=False)[order]
    gradients *= dtype(radius / unit)
    if len(first) < len(order):
        counts, gradients = np.add.reduceat(counts, first), np.add.reduceat(gradients, first)
        pair, gaussian = pair[first], gaussian[first]
    used, offsets = np.unique(gaussian, return_index=True)
    offsets = np.r_[offsets, len(gaussian)]
    origin, _ = best_level(problem.margins, problem.soft)
    slot = np.repeat(np.arange(len(used)), np.diff(offsets))
    return Layout((problem.margins - origin) / unit, used, offsets, pair, slot, counts * (problem.radius2 / unit),
                  gradients, problem.soft, origin, unit, radius, problem.n_gaussians)  # fmt: skip


def pull(layout: Layout, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """b_k = sum_m lambda_m g_mk [U, D] and 1/2 sum_m lambda_m n_mk [U], for weights lambda [N]."""
    of_entry = weights[layout.pair].astype(layout.gradients.dtype, copy=False)
    if layout.scattered:
        from scipy.sparse import csr_array

        selection = csr_array((of_entry, np.arange(len(of_entry)), layout.offsets), (len(layout.used), len(of_entry)))
        b = selection @ layout.gradients
    else:
        b = np.empty((len(layout.used), layout.gradients.shape[1]), layout.gradients.dtype)
        bounds = layout.offsets.tolist()
        for k, (i, j) in enumerate(zip(bounds, bounds[1:])):
            np.dot(of_entry[i:j], layout.gradients[i:j], out=b[k])
    return b.astype(np.float64, copy=False), pull_counts(layout, weights)


def pull_counts(layout: Layout, weights: np.ndarray) -> np.ndarray:
    """1/2 sum_m lambda_m n_mk [U]."""
    return 0.5 * np.bincount(layout.slot, weights[layout.pair] * layout.counts, len(layout.used))


def push(layout: Layout, shift: np.ndarray, width: np.ndarray) -> np.ndarray:
    """sum_k g_mk . w_k - 1/2 n_mk q_k [N], for w [U, D] and q [U]: the change of every margin."""
    shift = shift.astype(layout.gradients.dtype, copy=False)
    if layout.scattered:
        gains = np.einsum("ed,ed->e", layout.gradients, shift[layout.slot])
    else:
        gains = np.empty(len(layout.pair), layout.gradients.dtype)
        bounds = layout.offsets.tolist()
        for k, (i, j) in enumerate(zip(bounds, bounds[1:])):
            np.dot(layout.gradients[i:j], shift[k], out=gains[i:j])
    return np.bincount(layout.pair, gains - 0.5 * layout.counts * width[layout.slot], layout.n_pairs)


def in_problem_units(layout: Layout, shift: np.ndarray, width: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Shift [K, D] and augmentation [K] of the problem from w' and q' of the layout, shrunk into the ball.

    Shrinking w by s and q by s^2 keeps an augmentation of zero at zero.
    """
    squares = np.einsum("kd,kd->k", shift, shift)
    extra = np.maximum(width - squares, 0)
    total = squares.sum() + extra.sum()
    shrink = min(1.0, 1 / np.sqrt(total)) if total > 0 else 1.0
    whole = np.zeros((layout.n_gaussians, shift.shape[1]))
    whole[layout.used] = (shrink * layout.radius) * shift
    augmentation = np.zeros(layout.n_gaussians)
    augmentation[layout.used] = (shrink * layout.radius) ** 2 * extra
    return whole, augmentation


class Curvature:
    """sum_k c_k J_k J_k' [N + 1, N + 1], rows of J_k: (g_mk - n_mk w_k, -n_mk t_k), and (-2 w_k, -2 t_k) for nu.

    With c_k = 1 / (2 a_k) and t = 0 this is the Hessian of the dual objective; the conic method brings its own c, w
    and t. Cost: sum_k N_k^2 D, N_k the pairs that touch k; where the pairs are put is worked out once.
    """

    def __init__(self, layout: Layout):
        self.layout = layout
        sizes = np.diff(layout.offsets)
        small = sizes <= SMALL
        self.stacks, targets, n = [], [], layout.n_pairs  # entries [n, size] of Gaussians touched by equally many pairs
        for size in np.unique(sizes[small]):
            entries = layout.offsets[np.flatnonzero(small & (sizes == size))][:, None] + np.arange(size)
            rows = layout.pair[entries]
            self.stacks.append(entries)
            targets.append((rows[:, :, None] * n + rows[:, None, :]).ravel())
        self.targets = np.concatenate(targets) if targets else np.empty(0, np.int64)
        self.large = np.flatnonzero(~small)

    def __call__(self, weight: np.ndarray, shift: np.ndarray, extra: np.ndarray | None = None) -> np.ndarray:
        layout, n, root = self.layout, self.layout.n_pairs, np.sqrt(weight)
        centre = shift if extra is None else np.column_stack([shift, extra])
        j = layout.counts[:, None] * -centre[layout.slot]
        j[:, : shift.shape[1]] += layout.gradients
        j *= root[layout.slot][:, None]
        pieces = []
        for entries in self.stacks:
            block = j[entries]
            pieces.append(np.matmul(block, block.transpose(0, 2, 1)).ravel())
        out = np.zeros((n + 1, n + 1))
        if pieces:
            out[:n, :n] = np.bincount(self.targets, np.concatenate(pieces), n * n).reshape(n, n)
        for k in self.large:
            own = slice(layout.offsets[k], layout.offsets[k + 1])
            block, rows = j[own], layout.pair[own]
            out[rows[:, None], rows] += block @ block.T
        scaled = (-2 * root)[:, None] * centre
        out[n, :n] = out[:n, n] = np.bincount(layout.pair, np.einsum("ed,ed->e", j, scaled[layout.slot]), n)
        out[n, n] = np.einsum("kd,kd->", scaled, scaled)
        return out

"""The entries sorted by Gaussian and scaled to a unit ball: what every solver multiplies with.

Inside the solvers the ball has radius 1 and margins are counted from ``origin`` in multiples of ``unit``:

    w = r w'    q = r^2 q'    g' = r g / unit    n' = r^2 n / unit    d0' = (d0 - origin) / unit    nu' = r^2 nu / unit

so that one set of step rules serves every radius and every length of utterance. C and lambda are unchanged. Only the
U Gaussians that some entry touches are kept; the others stay where they are.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from margo.estimate.lme.certificate import best_level
from margo.estimate.lme.problem import Problem

SMALL = 64  # Gaussians touched by at most this many pairs are multiplied together, larger ones singly
RUN = 1 << 13  # entries that are multiplied before the next are looked at: 3 MB of them, where they are in a file


@dataclass(frozen=True, eq=False)
class Layout:
    """E' entries in order of (Gaussian, pair), none repeated; see the module's first lines for the scaling.

    pair, counts and gradients may be those of :class:`margo.estimate.lme.problem.Problem` that are not in memory.
    """

    start: np.ndarray  # [N] d0'
    used: np.ndarray  # [U] the k of each kept Gaussian
    offsets: np.ndarray  # [U + 1] its entries
    pair: np.ndarray  # [E']
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

    @cached_property
    def slot(self) -> np.ndarray:
        """Index into used, [E']."""
        return np.repeat(np.arange(len(self.used)), np.diff(self.offsets))

    @property
    def scattered(self) -> bool:
        """Whether the Gaussians have so few entries each that one product over all is faster than one for each."""
        return len(self.pair) < SMALL * len(self.used)

    @cached_property
    def runs(self) -> list[tuple[int, np.ndarray]]:
        """``(first Gaussian, bounds of its entries and of those after it)``: as many as RUN allows, or part of one."""
        runs, k = [], 0
        while k < len(self.used):
            last = max(int(np.searchsorted(self.offsets, self.offsets[k] + RUN, side="right")) - 1, k + 1)
            edges = self.offsets[k : last + 1]
            if last == k + 1:
                pieces = np.append(np.arange(edges[0], edges[1], RUN), edges[1])
                runs += [(k, piece) for piece in zip(pieces, pieces[1:])]
            else:
                runs.append((k, edges))
            k = last
        return runs

    def held(self) -> "Layout":
        """The same in memory, as methods need it that see all entries at once."""
        return replace(self, pair=self.pair[:], counts=self.counts[:], gradients=self.gradients[:])

    def read(self) -> Iterator[tuple]:
        """Run after run, ``(slots [n], bounds [n + 1], which [e], pair [e], counts [e], gradients [e, D])``: the
        Gaussians of a run, where their entries begin, and of each entry which of the n it belongs to."""
        for k, edges in self.runs:
            place, bounds = slice(edges[0], edges[-1]), np.asarray(edges) - edges[0]
            which = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
            slots = slice(k, k + len(bounds) - 1)
            yield slots, bounds.tolist(), which, self.pair[place], self.counts[place], self.gradients[place]


def arrange(problem: Problem, dtype=np.float64) -> Layout:
    """Sort, merge and scale the entries of ``problem``; ``dtype`` is that of the gradients."""
    radius = np.sqrt(problem.radius2)
    unit = radius * problem.steepest or np.ptp(problem.margins) or 1.0
    scales = problem.radius2 / unit, dtype(radius / unit)
    used, offsets, pair, counts, gradients = (_stored if problem.stored else _sorted)(problem, dtype, *scales)
    origin, _ = best_level(problem.margins, problem.soft)
    layout = Layout((problem.margins - origin) / unit, used, offsets, pair, counts, gradients, problem.soft, origin,
                    unit, radius, problem.n_gaussians)  # fmt: skip
    return layout.held() if layout.scattered else layout


def _sorted(problem: Problem, dtype, of_counts: float, of_gradients) -> tuple:
    """``(used, offsets, pair, counts, gradients)`` of entries in any order, in memory."""
    order = np.lexsort((problem.pair, problem.gaussian))
    pair, gaussian = problem.pair[order], problem.gaussian[order]
    first = np.flatnonzero(np.r_[True, (np.diff(pair) != 0) | (np.diff(gaussian) != 0)]) if len(order) else order
    counts = problem.counts[order].astype(np.float64, copy=False)
    gradients = problem.gradients[order].astype(dtype, copy=False)
    gradients *= of_gradients
    if len(first) < len(order):
        counts, gradients = np.add.reduceat(counts, first), np.add.reduceat(gradients, first)
        pair, gaussian = pair[first], gaussian[first]
    used, offsets = np.unique(gaussian, return_index=True)
    return used, np.r_[offsets, len(gaussian)], pair, counts * of_counts, gradients


def _stored(problem: Problem, dtype, of_counts: float, of_gradients) -> tuple:
    """The same of entries that come pair by pair, none repeated: block by block each goes to its Gaussian's place."""
    sizes = np.zeros(problem.n_gaussians, np.int64)
    for place in _places(problem):
        sizes += np.bincount(problem.gaussian[place], minlength=problem.n_gaussians)
    used = np.flatnonzero(sizes)
    offsets = np.concatenate([[0], np.cumsum(sizes[used])])
    where = np.concatenate([[0], np.cumsum(sizes)[:-1]])  # the next entry of each Gaussian goes there
    like = problem.gradients.like
    pairs, counts, gradients = like((), np.int32), like((), np.float64), like((problem.dimension,), dtype)
    for rows in (pairs, counts, gradients):  # room for all of them
        rows[int(offsets[-1]) - 1 :] = np.zeros((1, *rows.shape[1:]), rows.dtype)
    for place in _places(problem):
        gaussian = problem.gaussian[place]
        order = np.argsort(gaussian, kind="stable")
        pair, count, gradient = problem.pair[place], problem.counts[place] * of_counts, problem.gradients[place]
        found, first = np.unique(gaussian[order], return_index=True)
        for k, own in zip(found, np.split(order, first[1:])):
            at = int(where[k])
            pairs[at:], counts[at:] = pair[own], count[own]
            gradients[at:] = gradient[own].astype(dtype, copy=False) * of_gradients
            where[k] += len(own)
    return used, offsets, pairs, counts, gradients


def _places(problem: Problem) -> list[slice]:
    step = 4 * RUN  # the more at a time, the fewer pieces are written
    return [slice(start, start + step) for start in range(0, len(problem.gradients), step)]


def pull(layout: Layout, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """b_k = sum_m lambda_m g_mk [U, D] and 1/2 sum_m lambda_m n_mk [U], for weights lambda [N]."""
    dtype = layout.gradients.dtype
    if layout.scattered:
        from scipy.sparse import csr_array

        of_entry = weights[layout.pair].astype(dtype, copy=False)
        selection = csr_array((of_entry, np.arange(len(of_entry)), layout.offsets), (len(layout.used), len(of_entry)))
        return (selection @ layout.gradients).astype(np.float64, copy=False), pull_counts(layout, weights)
    b, half = np.zeros((len(layout.used), layout.gradients.shape[1]), dtype), np.zeros(len(layout.used))
    for slots, bounds, which, pair, counts, gradients in layout.read():
        of_entry = weights[pair]
        half[slots] += np.bincount(which, of_entry * counts, len(bounds) - 1)
        of_entry = of_entry.astype(dtype, copy=False)
        for k, i, j in zip(range(slots.start, slots.stop), bounds, bounds[1:]):
            b[k] += of_entry[i:j] @ gradients[i:j]
    return b.astype(np.float64, copy=False), 0.5 * half


def pull_counts(layout: Layout, weights: np.ndarray) -> np.ndarray:
    """1/2 sum_m lambda_m n_mk [U]."""
    half = np.zeros(len(layout.used))
    for slots, bounds, which, pair, counts, _ in layout.read():
        half[slots] += np.bincount(which, weights[pair] * counts, len(bounds) - 1)
    return 0.5 * half


def push(layout: Layout, shift: np.ndarray, width: np.ndarray) -> np.ndarray:
    """sum_k g_mk . w_k - 1/2 n_mk q_k [N], for w [U, D] and q [U]: the change of every margin."""
    from margo.estimate.lme.sums import add_at

    shift, change = shift.astype(layout.gradients.dtype, copy=False), np.zeros(layout.n_pairs)
    for slots, bounds, which, pair, counts, gradients in layout.read():
        if layout.scattered:
            gains = np.einsum("ed,ed->e", gradients, shift[slots][which])
        else:
            gains = np.empty(len(pair), shift.dtype)
            for k, i, j in zip(range(slots.start, slots.stop), bounds, bounds[1:]):
                np.dot(gradients[i:j], shift[k], out=gains[i:j])
        add_at(change, pair, gains - 0.5 * counts * width[slots][which])
    return change


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

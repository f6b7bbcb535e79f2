"""The large-margin program as arrays, its solution, and the margins of any point recomputed from the entries.

A pair m sets a training token against one of its competitors. Its two Viterbi paths meet Gaussian k in n_mk frames
(reference minus competitor), and its margin in the normalised means u_k = mu_k / sigma_k, moved by w_k and widened
by v_k >= 0, is

    margin_m = d0_m + sum_k g_mk . w_k - 1/2 sum_k n_mk (|w_k|^2 + v_k)            [LJ07] (9), (56)

with the ball sum_k |w_k|^2 + v_k <= r^2 ([LJ07] (33), (52)).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from margo.errors import refuse

CHUNK = 1 << 12  # entries that are looked at together


@dataclass(frozen=True, eq=False)
class Problem:
    """Maximise rho subject to margin_m >= rho for every pair, inside the ball; see the module's first lines.

    Entries may be arrays, or whatever has a shape, a type, and slices that are arrays (:mod:`margo.formats.scratch`):
    there may be more of them than memory holds, so that they are gone through in blocks. Those of ``like(columns,
    dtype)`` have room for others of their kind; they come pair by pair, none repeated.
    """

    margins: np.ndarray  # [N] d0, the margins at the start
    pair: np.ndarray  # [E] m of each non-zero (m, k) entry; entries may come in any order, repeated ones add up
    gaussian: np.ndarray  # [E] k of each entry
    counts: np.ndarray  # [E] n_mk; over a pair of paths of the same length they sum to zero, which nothing relies on
    gradients: np.ndarray  # [E, D] g_mk, the gradient of margin m with respect to u_k at the start
    n_gaussians: int  # K, touched by an entry or not
    radius2: float  # r^2 > 0
    soft: float | None = None  # C: maximise rho - C sum_m max(0, rho - margin_m) instead; None for the hard margin

    def __post_init__(self):
        object.__setattr__(self, "margins", np.asarray(self.margins, dtype=np.float64))
        for name in ("pair", "gaussian", "counts", "gradients"):
            if not self.stored:
                object.__setattr__(self, name, _array(getattr(self, name), name in ("counts", "gradients")))
        faults = _index_faults(self)
        if not faults:
            object.__setattr__(self, "n_gaussians", int(self.n_gaussians))
            faults = _shape_faults(self) or _value_faults(self)
        refuse(faults, "the large-margin problem cannot be solved as given")
        object.__setattr__(self, "radius2", float(self.radius2))
        object.__setattr__(self, "soft", None if self.soft is None else float(self.soft))

    @property
    def n_pairs(self) -> int:
        return len(self.margins)

    @property
    def dimension(self) -> int:
        return self.gradients.shape[1]

    @property
    def stored(self) -> bool:
        """Whether the entries are somewhere else than in memory."""
        return hasattr(self.gradients, "like")

    def blocks(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
        """``(pair, gaussian, counts, gradients)`` of some entries after the other, the last two in float64."""
        for start in range(0, len(self.gradients), CHUNK):
            place = slice(start, start + CHUNK)
            yield (self.pair[place], self.gaussian[place], self.counts[place].astype(np.float64, copy=False),
                   self.gradients[place].astype(np.float64, copy=False))  # fmt: skip

    def whole(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """All entries in double precision, for solvers that need them at once."""
        kinds = {"pair": np.int64, "gaussian": np.int64, "counts": np.float64, "gradients": np.float64}
        return tuple(getattr(self, name)[:].astype(kind, copy=False) for name, kind in kinds.items())

    def unbalanced(self) -> int:
        """Number of pairs whose counts do not sum to zero, as those of two paths of equal length do."""
        from margo.estimate.lme.sums import add_at

        total, size = np.zeros(self.n_pairs), np.zeros(self.n_pairs)
        for pair, _, counts, _ in self.blocks():
            add_at(total, pair, counts)
            add_at(size, pair, np.abs(counts))
        return int(np.count_nonzero(np.abs(total) > 1e-9 * size))

    @cached_property
    def steepest(self) -> float:
        """The largest norm of a pair's whole gradient (of its entries, should some be repeated)."""
        from margo.estimate.lme.sums import add_at

        squares = np.zeros(self.n_pairs)
        for pair, _, _, gradients in self.blocks():
            add_at(squares, pair, np.einsum("ed,ed->e", gradients, gradients))
        return float(np.sqrt(squares.max()))


@dataclass(frozen=True, eq=False)
class Solution:
    """A feasible point with a proof of how far it can be from the optimum."""

    rho: float  # the margin reached: the smallest one, or with a soft margin the level the slacks are counted from
    shift: np.ndarray  # [K, D] w_k; the new normalised means are u_k + w_k
    augmentation: np.ndarray  # [K] v_k; all zero: the relaxation is tight, and rho is optimal for the means alone
    multipliers: np.ndarray  # [N] lambda_m >= 0, sum 1 (and at most C): how much each pair holds rho down
    gap: float  # (bound - objective) / scale, recomputed from the three above; see certificate.py
    method: str  # what ran last: dual, conic, gradient, socp or sdp
    seconds: float  # CPU time
    objective: float  # rho, less C times the sum of slacks
    bound: float  # no feasible point has an objective above it
    solver: str = "margo"  # the program that did the work, or the one cvxpy called
    notes: tuple[str, ...] = ()  # what the caller should know: fallbacks, choice of a solver, unbalanced pairs


def margins(problem: Problem, shift: np.ndarray, augmentation: np.ndarray) -> np.ndarray:
    """Margins [N] at u0 + shift [K, D], widened by augmentation [K], straight from the entries. [LJ07] (58)"""
    from margo.estimate.lme.sums import add_at

    width = np.einsum("kd,kd->k", shift, shift) + augmentation
    change = np.zeros(problem.n_pairs)
    for pair, gaussian, counts, gradients in problem.blocks():
        add_at(change, pair, -0.5 * counts * width[gaussian] + np.einsum("ed,ed->e", gradients, shift[gaussian]))
    return problem.margins + change


def _array(values, real: bool) -> np.ndarray:
    """``values`` as they are if they are float32, int32, or not numbers of their kind; else in double precision."""
    values = np.asarray(values)
    if values.dtype in (np.float32, np.int32) and real == (values.dtype.kind == "f"):
        return values
    return values.astype(np.float64 if real else np.int64, copy=False) if real or values.dtype.kind in "iu" else values


def _index_faults(problem: Problem) -> list[str]:
    """What is wrong with the integers."""
    faults = [f"{name} has type {values.dtype}; give integers" for name in ("pair", "gaussian")
              if len((values := getattr(problem, name)).shape) and len(values)
              and not np.issubdtype(values.dtype, np.integer)]  # fmt: skip
    if not np.issubdtype(np.asarray(problem.n_gaussians).dtype, np.integer) or np.ndim(problem.n_gaussians):
        faults.append(f"n_gaussians is {problem.n_gaussians!r}; give one integer")
    return faults


def _shape_faults(problem: Problem) -> list[str]:
    dimensions = {"margins": 1, "pair": 1, "gaussian": 1, "counts": 1, "gradients": 2}
    faults = [f"{name} has shape {shape}; it must have {ndim} dimension{'s' * (ndim > 1)}"
              for name, ndim in dimensions.items() if len(shape := getattr(problem, name).shape) != ndim]  # fmt: skip
    if faults:
        return faults
    sizes = {name: len(getattr(problem, name)) for name in ("pair", "gaussian", "counts", "gradients")}
    if len(set(sizes.values())) > 1:
        faults.append(f"entries differ in number: {sizes}; each entry needs a pair, a Gaussian, a count and a gradient")
    if not problem.n_pairs:
        faults.append("there are no pairs; keep at least one token and one competitor (more tokens, a larger gamma)")
    if problem.n_gaussians < 1:
        faults.append(f"n_gaussians is {problem.n_gaussians}; it must be at least 1")
    if not problem.dimension:
        faults.append("gradients have no columns; the feature dimension must be at least 1")
    return faults


def _value_faults(problem: Problem) -> list[str]:
    faults = []
    for name, end in (("pair", problem.n_pairs), ("gaussian", problem.n_gaussians)):
        least, most = _range(getattr(problem, name))
        if least < 0 or most >= end:
            faults.append(f"{name} runs from {least} to {most}; it must lie in 0 to {end - 1}")
    for name in ("margins", "counts", "gradients"):
        bad, first = _bad(getattr(problem, name))
        if bad:
            faults.append(f"{name} has {bad} values that are not finite, the first at {first}: drop its pair")
    if not _positive(problem.radius2):
        faults.append(f"radius2 is {problem.radius2}; give a squared radius above 0")
    if problem.soft is not None and not _positive(problem.soft):
        faults.append(f"soft is {problem.soft}; give C above 0, or None for the hard margin")
    elif problem.soft is not None and problem.soft * problem.n_pairs < 1 - 1e-9:
        faults.append(f"soft is {problem.soft:g} for {problem.n_pairs} pairs, so rho is unbounded; C must be at least "
                      f"1 / pairs = {1 / problem.n_pairs:g} (nu at most 1 in C = 1 / (nu x pairs))")  # fmt: skip
    return faults


def _range(values) -> tuple[int, int]:
    """The least and the largest."""
    ends = [(int(block.min()), int(block.max())) for _, block in _blocks(values)]
    return min((least for least, _ in ends), default=0), max((most for _, most in ends), default=-1)


def _bad(values) -> tuple[int, int]:
    """How many rows are not finite, and the first of them."""
    count, first = 0, -1
    for start, block in _blocks(values):
        if not np.isfinite(block.sum(dtype=np.float64)):  # the sum first: no temporary as large as the block
            bad = np.flatnonzero(~np.isfinite(block).reshape(len(block), -1).all(axis=1))
            first = start + int(bad[0]) if len(bad) and not count else first
            count += len(bad)
    return count, first


def _blocks(values):
    return ((start, values[start : start + CHUNK]) for start in range(0, len(values), CHUNK))


def _positive(value) -> bool:
    """Whether ``value`` is one finite number above zero."""
    number = np.asarray(value)
    return number.ndim == 0 and number.dtype.kind in "iuf" and bool(np.isfinite(number)) and bool(number > 0)

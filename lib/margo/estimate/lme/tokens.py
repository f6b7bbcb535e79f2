"""From Viterbi paths to the pairs of the large-margin program, and the choice of support tokens.

A token is a training utterance, a pair sets it against one competitor. Along the two paths of a pair every frame is
scored by the best Gaussian of its state; frames where both paths use the same Gaussian cancel and are left out, which
is what makes the program sparse.
"""

from dataclasses import dataclass, replace

import numpy as np
from numba import njit

from margo.errors import MargoError
from margo.estimate.lme.problem import Problem
from margo.estimate.paths import Paths, Slots, slots
from margo.model.hmm import HmmSet

ENTRIES = ("gaussian", "counts", "gradients")
WIDER = np.sqrt(0.5) / 2
"""log sigma for a unit of the program's coordinates. With sqrt(1/2) a Gaussian's Fisher information were 1 in all of
them, and - 1/2 n_mk |w|^2, exact for means, the curvature to expect; at half that pace models hold better for speakers
that they were not trained on."""
BLOCK = 1024  # pairs whose entries are looked at together, where those of all are not in memory


@dataclass(frozen=True, eq=False)
class Pairs:
    """M pairs of N tokens; ``a += b`` puts those of b behind those of a.

    margins [M] (log score of the reference's path minus the competitor's), token int [M], frames int [N];
    entry_start int [M + 1], gaussian int32 [E], counts [E] (n_mk) and gradients float32 [E, D], or [E, 2 D] where
    variances move too (g_mk): the entries of pair m are ``entry_start[m]:entry_start[m + 1]``. Entries may be in a
    file, as those of a :class:`margo.estimate.lme.problem.Problem`. dropped as in Stats.
    """

    margins: np.ndarray
    token: np.ndarray
    frames: np.ndarray
    entry_start: np.ndarray
    gaussian: np.ndarray
    counts: np.ndarray
    gradients: np.ndarray
    dropped: tuple[tuple[str, str], ...] = ()

    def __iadd__(self, other: "Pairs") -> "Pairs":
        """Those of ``other`` behind them, in the arrays of ``self``, which is not to be used any more; entries go where
        :meth:`none` has room for them."""
        whole = {"token": other.token + len(self.frames), "entry_start": other.entry_start[1:] + self.entry_start[-1]}
        arrays = {}
        for name in ("margins", "token", "frames", "entry_start", *ENTRIES):
            held, more = getattr(self, name), whole.get(name, getattr(other, name))
            if isinstance(held, np.ndarray):
                held = held if held.flags.owndata else held.copy()
                before = len(held)
                held.resize((before + len(more), *held.shape[1:]), refcheck=False)
                held[before:] = more
            else:
                held.append(more)
            arrays[name] = held
        return Pairs(**arrays, dropped=self.dropped + other.dropped)

    @classmethod
    def none(cls, dimension: int, rows) -> "Pairs":
        """No pairs yet; ``rows(columns, dtype)`` has room for their entries (:class:`margo.formats.scratch.Rows`)."""
        nothing = np.empty(0, np.int64)
        return cls(np.empty(0), nothing, nothing.copy(), np.zeros(1, np.int64), rows((), np.int32), rows(),
                   rows((dimension,), np.float32))  # fmt: skip

    def settled(self) -> "Pairs":
        """The same; entries that are all in memory after all are plain arrays."""
        rows = {name: getattr(self, name) for name in ENTRIES}
        if any(getattr(each, "file", None) for each in rows.values()):
            return self
        return replace(self, **{name: each[:] for name, each in rows.items()})

    @property
    def token_margins(self) -> np.ndarray:
        """Smallest margin of each token, d(X_i) of [LJ07] (3), [N]."""
        smallest = np.full(len(self.frames), np.inf)
        np.minimum.at(smallest, self.token, self.margins)
        return smallest

    def select(self, tokens: np.ndarray) -> "Pairs":
        """The pairs of some tokens (bool [N]); tokens keep their numbers. Those of all are not copied."""
        chosen = tokens[self.token]
        if chosen.all():
            return self
        sizes = np.diff(self.entry_start)[chosen]
        return replace(
            self,
            margins=self.margins[chosen],
            token=self.token[chosen],
            entry_start=np.concatenate([[0], np.cumsum(sizes)]),
            **{name: self.some(getattr(self, name), chosen) for name in ENTRIES},
        ).settled()

    def some(self, entries, chosen: np.ndarray):
        """Those of ``entries`` [E, ...] that belong to ``chosen`` pairs (bool [M])."""
        if isinstance(entries, np.ndarray):
            return entries[np.repeat(chosen, np.diff(self.entry_start))]
        found = entries.like(entries.shape[1:], entries.dtype)
        for first in range(0, len(chosen), BLOCK):
            ends = self.entry_start[first : first + BLOCK + 1]
            found.append(entries[ends[0] : ends[-1]][np.repeat(chosen[first : first + BLOCK], np.diff(ends))])
        return found


@dataclass(frozen=True, eq=False)
class Owners:
    """The pair of each entry, int32 [E], where pair m has ``start[m]:start[m + 1]``; worked out slice by slice."""

    start: np.ndarray
    dtype = np.dtype(np.int32)

    @property
    def shape(self) -> tuple[int]:
        return (int(self.start[-1]),)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, place: slice) -> np.ndarray:
        first, last, _ = place.indices(len(self))
        low = np.searchsorted(self.start, first, side="right") - 1
        high = np.searchsorted(self.start, last)
        edges = np.clip(self.start[low : high + 1], first, last)
        return np.repeat(np.arange(low, high, dtype=np.int32), np.diff(edges))


def make_pairs(hmms: HmmSet, x: np.ndarray, paths: Paths, per_frame: bool = False, variances: bool = False) -> Pairs:
    """Pairs of the paths of a chunk whose concatenated frames are ``x`` [T, D]; see :class:`Pairs`.

    ``per_frame`` divides margins, counts and gradients by the token's number of frames. With ``variances`` the
    gradients go on with those by log sigma in units of ``WIDER``: of z = (x - mu) / sigma the sums of (z^2 - 1) WIDER.
    """
    places = slots(paths)
    gaussians, logs = best_of_slots(hmms, x, places)
    deviations = np.sqrt(hmms.pool.variances)
    frames = np.diff(paths.bounds)
    pairs = int(paths.first[-1]) - paths.n_utterances
    margins, token, sizes = np.empty(pairs), np.empty(pairs, np.int64), np.empty(pairs, np.int64)
    mark = np.full(hmms.pool.n_gaussians, -1)
    _margins(paths.first, places.path_start, places.slot, paths.constants, gaussians, logs, mark, margins, token, sizes)
    entry_start = np.concatenate([[0], np.cumsum(sizes)])
    gaussian = np.empty(entry_start[-1], np.int32)
    counts = np.zeros(entry_start[-1])
    gradients = np.zeros((entry_start[-1], (1 + variances) * hmms.pool.dimension))
    _entries(paths.first, (places.path_start, places.slot, places.frame), gaussians, x, hmms.pool.means, deviations,
             mark, (entry_start, gaussian, counts, gradients))  # fmt: skip
    if variances and hmms.meta.get("augmented"):
        gradients[:, -1] = 0.0  # the dimension that the program has added keeps its variance of 1
    if per_frame:
        scale = 1 / frames[token]
        margins *= scale
        counts *= np.repeat(scale, sizes)
        gradients *= np.repeat(scale, sizes)[:, None]
    return Pairs(margins, token, frames, entry_start, gaussian, counts, gradients.astype(np.float32), paths.dropped)


def best_of_slots(hmms: HmmSet, x: np.ndarray, places: Slots) -> tuple[np.ndarray, np.ndarray]:
    """The best Gaussian of each (frame, state) and its log w N, [J] each; the first of equals."""
    pool = hmms.pool
    gaussians, logs = np.empty(len(places.state), np.int64), np.empty(len(places.state))
    constants = pool.log_weights - 0.5 * np.log(2 * np.pi * pool.variances).sum(axis=1)
    _best(x, places.frame, places.state, pool.means, 1 / pool.variances, constants, pool.offsets, gaussians, logs)
    return gaussians, logs


def choose_tokens(margins: np.ndarray, number: int | None, threshold: float | None, recognised: bool) -> np.ndarray:
    """Support tokens, bool [N], from each token's margin.

    ``number``: that many with the smallest margins (None: all); ``threshold``: only margins up to it. With
    ``recognised``, tokens that are misrecognised (negative margins) are left out, as [LJ07] (4) does.
    """
    allowed = np.isfinite(margins)
    if recognised:
        allowed &= margins >= 0
    if threshold is not None:
        allowed &= margins <= threshold
    if not allowed.any():
        what = "a margin of 0 or more" if recognised else "a margin"
        bound = f" up to {threshold:g}" if threshold is not None else ""
        raise MargoError(
            f"no training token has {what}{bound}: start from a better model (--init), raise --threshold"
            + (", give --misrecognised, or leave out --hard" if recognised else "")
        )
    if number is not None and number < allowed.sum():
        order = np.argsort(np.where(allowed, margins, np.inf), kind="stable")
        allowed = np.zeros(len(margins), bool)
        allowed[order[:number]] = True
    return allowed


def make_problem(pairs: Pairs, n_gaussians: int, radius2: float, nu: float | None) -> Problem:
    """The program of chosen pairs; ``nu`` None for the hard margin, else C = 1 / (nu M)."""
    number = len(pairs.margins)
    return Problem(
        margins=pairs.margins,
        pair=Owners(pairs.entry_start)[:] if isinstance(pairs.gradients, np.ndarray) else Owners(pairs.entry_start),
        gaussian=pairs.gaussian,
        counts=pairs.counts,
        gradients=pairs.gradients,
        n_gaussians=n_gaussians,
        radius2=radius2,
        soft=None if nu is None else max(1.0, 1 / nu) / number,
    )


def value_of(margins: np.ndarray, nu: float | None) -> float:
    """What the program maximises, of given margins: the smallest, or ``max_rho rho - C sum max(0, rho - margin)``,
    which is the mean of the worst share ``nu`` of them."""
    ordered = np.sort(margins)
    if nu is None:
        return float(ordered[0])
    mass = nu * len(ordered)
    whole = int(mass)
    total = ordered[:whole].sum() + (mass - whole) * (ordered[whole] if whole < len(ordered) else 0.0)
    return float(total / mass)


@njit(cache=True, fastmath={"reassoc", "contract"})
def _best(x, frame, state, means, precisions, constants, offsets, gaussians, logs):
    for j in range(len(frame)):
        best, choice = -np.inf, offsets[state[j]]
        for k in range(offsets[state[j]], offsets[state[j] + 1]):
            distance = 0.0
            for d in range(means.shape[1]):
                gap = x[frame[j], d] - means[k, d]
                distance += gap * gap * precisions[k, d]
            value = constants[k] - 0.5 * distance
            if value > best:
                best, choice = value, k
        gaussians[j], logs[j] = choice, best


@njit(cache=True)
def _margins(first, path_start, slot, constants, gaussians, logs, mark, margins, token, sizes):
    """Margin, token and number of distinct Gaussians of every pair; ``mark`` is scratch of -1."""
    pair = 0
    for utterance in range(len(first) - 1):
        reference = first[utterance]
        for path in range(reference + 1, first[utterance + 1]):
            margin, size = constants[reference] - constants[path], 0
            for place in range(path_start[path + 1] - path_start[path]):
                mine, other = slot[path_start[reference] + place], slot[path_start[path] + place]
                if gaussians[mine] == gaussians[other]:
                    continue
                margin += logs[mine] - logs[other]
                for k in (gaussians[mine], gaussians[other]):
                    if mark[k] != pair:
                        mark[k] = pair
                        size += 1
            margins[pair], token[pair], sizes[pair] = margin, utterance, size
            pair += 1
    mark[:] = -1


@njit(cache=True)
def _entries(first, places, gaussians, x, means, deviations, mark, entries):
    """n_mk and g_mk of every pair: frames of the reference count 1, those of the competitor -1."""
    path_start, slot, frame = places
    entry_start, gaussian, counts, gradients = entries
    pair, dimension = 0, means.shape[1]
    widened = gradients.shape[1] > dimension
    for utterance in range(len(first) - 1):
        reference = first[utterance]
        for path in range(reference + 1, first[utterance + 1]):
            begin = used = entry_start[pair]
            for place in range(path_start[path + 1] - path_start[path]):
                mine, other = slot[path_start[reference] + place], slot[path_start[path] + place]
                if gaussians[mine] == gaussians[other]:
                    continue
                for sign, which in ((1.0, mine), (-1.0, other)):
                    k = gaussians[which]
                    if mark[k] < begin:
                        mark[k] = used
                        gaussian[used] = k
                        used += 1
                    entry = mark[k]
                    counts[entry] += sign
                    for d in range(dimension):
                        z = (x[frame[which], d] - means[k, d]) / deviations[k, d]
                        gradients[entry, d] += sign * z
                        if widened:
                            gradients[entry, dimension + d] += sign * (z * z - 1) * WIDER
            pair += 1

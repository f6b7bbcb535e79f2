"""The best path through any number of frames, in memory that hardly grows with them.

A search keeps the arc into every node of every row. Where these would be too many (an hour and the thousands of words
said in it), the scores of some rows are kept instead, and from these, last part first, the arcs are found again: the
same path, in two or three times the time.

A forced alignment is faster still: its nodes stand in the order in which they are passed, and those which a path can be
in at some frame, within a wide beam of the best, are few and move along. It is made four times as wide until the path
is no better for it; where it never is, everything is searched.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from margo.model.graph import Arcs, compile_arcs
from margo.search.best import move, trace

CELLS = 1 << 24  # nodes times rows whose arcs are kept at once, 64 MB
KEPT = 128  # rows whose scores are kept at once, of each depth
NOWHERE = np.empty((0, 0), np.int32)
ROWS = 512  # between one choice of the nodes that a path can be in and the next
SLACK = 64  # frames that a path may be ahead of what its node says
BEAM, WIDEST, WIDER = 4000.0, 64000.0, 4.0  # nats, the first beam and the last; the factor between one and the next


def best_arcs(arcs: Arcs, scores: np.ndarray) -> tuple[float, np.ndarray]:
    """``(score, arcs)`` of the best path through ``scores`` [T, S'], float64; -inf and none where there is no path."""
    nodes, frames = len(arcs.arc_start) - 1, len(scores)
    if frames * nodes > CELLS and arcs.ahead.any():
        found = along(arcs, scores)
        if found:
            return found
    waiting, parts, node, score = [(0, frames, np.full(nodes, -np.inf))], [], arcs.end, None
    while waiting:
        first, last, values = waiting.pop()  # frames of a part, and the values [n] before it
        if (last - first) * nodes > CELLS and last - first > 1:
            length = max(-(-(last - first) // KEPT), min(CELLS // nodes, last - first - 1), 1)
            for cut in range(first, last, length):
                waiting.append((cut, min(cut + length, last), values.copy()))
                if cut + length < last or score is None:
                    move(arcs, scores[cut : cut + length], cut, frames, values, NOWHERE, False)
            score = values[arcs.end] if score is None else score
        else:
            back = np.empty((last - first + 1, nodes), np.int32)
            move(arcs, scores[first:last], first, frames, values, back, True)
            score = values[arcs.end] if score is None else score
            if score > -np.inf:
                taken, node = trace(arcs, back, node, first == 0)
                parts.append(taken)
        if not score > -np.inf:
            return -np.inf, np.empty(0, np.int64)
    return float(score), np.concatenate(parts[::-1])


class Reach(NamedTuple):
    """Emitting nodes ``first .. last - 1`` and null nodes ``null .. end - 1`` (counted from the first null node) of a
    chain, as a graph of their own; ``number``: which of the chain's arcs its arcs are."""

    first: int
    last: int
    null: int
    end: int
    arcs: Arcs
    number: np.ndarray

    @property
    def shift(self) -> int:
        """What a null node's number is here, less its count."""
        return self.last - self.first - self.null

    def moved(self, values: np.ndarray, other: "Reach") -> np.ndarray:
        """``values`` of the nodes here for those of ``other``; -inf of nodes that are not here."""
        result = np.full(other.end + other.shift, -np.inf)
        for low, high, mine, theirs in (
            (max(self.first, other.first), min(self.last, other.last), -self.first, -other.first),
            (max(self.null, other.null), min(self.end, other.end), self.shift, other.shift),
        ):
            if low < high:
                result[low + theirs : high + theirs] = values[low + mine : high + mine]
        return result


def along(arcs: Arcs, scores: np.ndarray) -> tuple[float, np.ndarray] | None:
    """:func:`best_arcs` of a chain; None where no beam is known to be wide enough."""
    found, beam, positions = None, BEAM, _positions(arcs.arc_start, arcs.source, len(arcs.column))
    while beam <= WIDEST:
        before, found = found, within(arcs, scores, beam, positions)
        if found and before and found[0] == before[0]:
            return found
        beam *= WIDER
    return None


def within(arcs: Arcs, scores: np.ndarray, beam: float, positions: np.ndarray) -> tuple[float, np.ndarray] | None:
    """Score and arcs of the best path that is never further than ``beam`` under the best; None where it is lost."""
    emitting, frames = len(arcs.column), len(scores)
    between, reach = (0, 0), reachable(arcs, positions, 0, 0)
    values, blocks = np.full(reach.end + reach.shift, -np.inf), []
    for first in range(0, frames, ROWS):
        if first:
            active = np.flatnonzero(values[: reach.last - reach.first] > values.max() - beam)
            if not len(active):
                return None
            between = reach.first + int(active[0]), reach.first + int(active[-1])
            after = reachable(arcs, positions, *between)
            values, reach = reach.moved(values, after), after
        blocks.append((first, between, values.copy()))  # and not the graph, which is many times as large
        move(reach.arcs, scores[first : first + ROWS], first, frames, values, NOWHERE, False)
    ended = arcs.end - emitting < reach.end
    score = values[arcs.end - emitting + reach.shift] if ended else -np.inf
    if not score > -np.inf:
        return None
    parts, node = [], arcs.end
    for first, between, values in reversed(blocks):
        reach = reachable(arcs, positions, *between)
        node = node - reach.first if node < emitting else node - emitting + reach.shift
        back = np.empty((min(ROWS, frames - first) + 1, len(values)), np.int32)
        move(reach.arcs, scores[first : first + ROWS], first, frames, values, back, True)
        taken, node = trace(reach.arcs, back, node, first == 0)
        node = node + reach.first if node < reach.last - reach.first else node - reach.shift + emitting
        parts.append(reach.number[taken])
    return float(score), np.concatenate(parts[::-1])


def reachable(arcs: Arcs, positions: np.ndarray, lowest: int, highest: int) -> Reach:
    """The nodes that paths which are in emitting nodes ``lowest`` to ``highest`` can be in for the next ROWS frames."""
    emitting = len(arcs.column)
    last = int(np.searchsorted(arcs.ahead, arcs.ahead[highest] + ROWS + SLACK, "right"))
    null, end = int(np.searchsorted(positions, lowest, "left")), int(np.searchsorted(positions, last, "right"))
    number = np.concatenate([np.arange(arcs.arc_start[lowest], arcs.arc_start[last]),
                             np.arange(arcs.arc_start[emitting + null], arcs.arc_start[emitting + end])])  # fmt: skip
    source, destination = arcs.source[number], arcs.destination[number]
    here = (source >= lowest) & (source < last) | (source >= emitting + null) & (source < emitting + end)
    number, ends = number[here], np.array([source[here], destination[here]])
    ends = np.where(ends < emitting, ends - lowest, ends - emitting + last - lowest - null)
    start = last - lowest  # the first null node: of the first frame, the chain's start; later on nothing begins
    own = compile_arcs(ends, arcs.log_prob[number], arcs.column[lowest:last], start, start + end - null - 1)
    return Reach(int(lowest), last, null, end, own, number)


@njit(cache=True)
def _positions(arc_start, source, emitting):
    """How many emitting nodes of a chain lie before each of its null nodes, ascending."""
    positions = np.zeros(len(arc_start) - 1 - emitting, np.int64)
    for null in range(len(positions)):
        for arc in range(arc_start[emitting + null], arc_start[emitting + null + 1]):
            before = source[arc] + 1 if source[arc] < emitting else positions[source[arc] - emitting]
            positions[null] = max(positions[null], before)
    return positions

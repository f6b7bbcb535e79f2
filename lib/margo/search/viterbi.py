"""The best path through a graph. Of equal paths the one over the first arc wins at every node."""

from dataclasses import dataclass

import numpy as np
from numba import njit

from margo.errors import MargoError
from margo.model.graph import Graph
from margo.search.band import band, window
from margo.search.forward_backward import checked


@dataclass(frozen=True)
class Segment:
    """A word or unit from frame ``start`` up to, not including, ``end``; ``index`` into the set's words or units."""

    index: int
    start: int
    end: int


@dataclass(frozen=True, eq=False)
class Path:
    """A way through a graph."""

    score: float
    nodes: np.ndarray  # int [T] emitting node of each frame
    states: np.ndarray  # int [T] its pool state
    words: tuple[Segment, ...]
    units: tuple[Segment, ...]  # silence is a unit, not a word
    word_names: tuple[str, ...]


def viterbi(graph: Graph, log_likelihoods: np.ndarray, beam: float = np.inf) -> Path | None:
    """Best path for ``log_likelihoods`` [T, S'] (columns: ``graph.states``).

    ``beam``: nodes further than this under the best of their frame are given up (off by default, and then exact).
    None when no path has exactly T frames, or none that the beam left.
    """
    scores = checked(graph, log_likelihoods)
    back = np.empty((len(scores) + 1, graph.n_nodes), np.int32)
    score = best_path(graph.arcs, scores, beam, back)
    if not score > -np.inf:
        return None
    nodes, marks = _read(graph.arcs, trace(graph.arcs, back), len(scores))
    words, units = _segments(graph, nodes, marks.tolist())
    names = tuple(graph.words[segment.index] for segment in words)
    return Path(score, nodes, graph.states[graph.arcs.column[nodes]], words, units, names)


def viterbi_score(graph: Graph, log_likelihoods: np.ndarray) -> float:
    """Score of the best path alone; -inf when there is none."""
    return best_score(graph.arcs, checked(graph, log_likelihoods))


def best_scores(graph: Graph, log_likelihoods: np.ndarray, bounds: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Scores [N] of the best paths of the ``wanted`` (bool [N]) of some utterances, rows ``bounds[i]:bounds[i + 1]``.

    As :func:`viterbi_score` of each, -inf where there is no path, NaN where it was not wanted.
    """
    best = np.full(len(bounds) - 1, np.nan)
    _best_each(graph.arcs, log_likelihoods, bounds, wanted, best)
    return best


def align(graph: Graph, log_likelihoods: np.ndarray) -> Path:
    """As :func:`viterbi` on a forced-alignment graph; an utterance too short for its words is an error."""
    path = viterbi(graph, log_likelihoods)
    if path is None:
        raise MargoError(f"{len(log_likelihoods)} frames are too few for the transcript's model")
    return path


def _segments(graph: Graph, nodes: np.ndarray, marks: list):
    """Words and units between the rows at which they were entered; a word ends before the silence behind it."""
    words, frames = [], len(nodes)
    silent = np.flatnonzero(graph.node_word[nodes] < 0)
    word_marks = [(row, word) for row, word, _ in marks if word >= 0]
    unit_marks = [(row, unit) for row, _, unit in marks if unit >= 0]
    for (row, word), (following, _) in zip(word_marks, [*word_marks[1:], (frames, -1)]):
        pause = np.searchsorted(silent, row)
        end = min(following, int(silent[pause])) if pause < len(silent) else following
        words.append(Segment(word, row, end))
    units = zip(unit_marks, [*unit_marks[1:], (frames, -1)])
    return tuple(words), tuple(Segment(unit, row, following) for (row, unit), (following, _) in units)


@njit(cache=True)
def best_path(arcs, scores, beam, back):
    """Score of the best path; ``back`` [T + 1, n] receives the best arc into every node that a path can be in."""
    return _best(arcs, scores, beam, back, True)


@njit(cache=True)
def best_score(arcs, scores):
    """The score alone, in less time."""
    return _best(arcs, scores, np.inf, np.empty((0, 0), np.int32), False)


@njit(cache=True, inline="always")
def _best(arcs, scores, beam, back, pointers):
    arc_start, source, destination, log_prob, column = arcs[:5]
    stay_arc, step_arc, rest, ahead, behind = arcs[-7:-2]
    emitting, nodes, frames = len(column), len(arc_start) - 1, len(scores)
    stay, step = band(log_prob, stay_arc, -np.inf), band(log_prob, step_arc, -np.inf)
    now, before = np.full(nodes, -np.inf), np.full(nodes, -np.inf)
    arc_into = np.empty(nodes, np.int32)
    low = high = stale = 0
    for row in range(frames + 1):
        if pointers:
            arc_into = back[row]
        if row:
            now, before = before, now
            last_low = low
            low, high = window(ahead, behind, row, frames, low, high)
            now[stale:low] = -np.inf  # left from two rows ago
            stale = last_low
            if low == 0 and high > 0:
                now[0] = before[0] + stay[0]
                if pointers:
                    arc_into[0] = stay_arc[0]
            one = max(low, 1)
            if high > one:
                _stay_or_step(stay[one:high], step[one:high], before[one - 1 : high], now[one:high], stay_arc[one:high],
                              step_arc[one:high], arc_into[one:high], pointers)  # fmt: skip
            for arc in rest:
                node = destination[arc]
                if low <= node < high:
                    value = before[source[arc]] + log_prob[arc]
                    if value > now[node] or (pointers and value == now[node] and arc < arc_into[node]):
                        now[node] = value
                        if pointers:
                            arc_into[node] = arc
            frame, inside, columns = scores[row - 1], now[low:high], column[low:high]
            for node in range(len(inside)):
                inside[node] += frame[columns[node]]
            if beam < np.inf:
                top = -np.inf
                for node in range(low, high):
                    top = max(top, now[node])
                for node in range(low, high):
                    if now[node] < top - beam:
                        now[node] = -np.inf
        for node in range(emitting, nodes):
            best, choice = 0.0 if row == 0 and node == arcs.start else -np.inf, -1
            for arc in range(arc_start[node], arc_start[node + 1]):
                value = now[source[arc]] + log_prob[arc]
                if value > best:
                    best, choice = value, arc
            now[node] = best
            if pointers:
                arc_into[node] = choice
    return now[arcs.end]


@njit(cache=True, inline="always")
def _stay_or_step(stay, step, before, now, stay_arc, step_arc, arc_into, pointers):
    """Some nodes in a row from those and the one before them in the row ``before``, as vectors."""
    for node in range(len(now)):
        stays, steps = before[node + 1] + stay[node], before[node] + step[node]
        now[node] = stays if stays > steps else steps
        if pointers:
            arc_into[node] = stay_arc[node] if stays > steps else step_arc[node]


@njit(cache=True)
def _best_each(arcs, scores, bounds, wanted, best):
    for i in range(len(best)):
        if wanted[i]:
            best[i] = best_score(arcs, scores[bounds[i] : bounds[i + 1]])


@njit(cache=True)
def trace(arcs, back):
    """The arcs of the best path, from the start to the end."""
    path, emitting = np.empty(0, np.int64), len(arcs.column)
    count = 0
    for fill in range(2):  # count, then write
        if fill:
            path = np.empty(count, np.int64)
        row, node = len(back) - 1, arcs.end
        while row > 0 or node != arcs.start:
            arc = back[row, node]
            if node < emitting:
                row -= 1
            if fill:
                count -= 1
                path[count] = arc
            else:
                count += 1
            node = arcs.source[arc]
    return path


@njit(cache=True)
def _read(arcs, path, frames):
    """``(nodes, marks)`` of a path's arcs: emitting node of each frame; row, word and unit of each that is entered."""
    nodes, marks = np.empty(frames, np.int64), np.empty((len(path), 3), np.int64)
    row = count = 0
    for arc in path:
        if arcs.word[arc] >= 0 or arcs.unit[arc] >= 0:
            marks[count, 0], marks[count, 1], marks[count, 2] = row, arcs.word[arc], arcs.unit[arc]
            count += 1
        if arcs.destination[arc] < len(arcs.column):
            nodes[row] = arcs.destination[arc]
            row += 1
    return nodes, marks[:count]

"""The best path through a graph. Of equal paths the one over the first arc wins at every node."""

from dataclasses import dataclass

import numpy as np
from numba import njit

from margo.errors import MargoError
from margo.model.graph import Graph
from margo.search.forward_backward import checked
from margo.search.network import Network


@dataclass(frozen=True)
class Segment:
    """A word or unit from frame ``start`` up to, not including, ``end``; ``index`` into the set's words or units."""

    index: int
    start: int
    end: int


@dataclass(frozen=True, eq=False)
class Path:
    """score; nodes int [T] (emitting node of each frame); states int [T] (pool state of each frame); words and units
    as segments (silence is a unit, not a word); strings by ``graph.words``."""

    score: float
    nodes: np.ndarray
    states: np.ndarray
    words: tuple[Segment, ...]
    units: tuple[Segment, ...]
    word_names: tuple[str, ...]


def viterbi(graph: Graph, log_likelihoods: np.ndarray, beam: float = np.inf) -> Path | None:
    """Best path for ``log_likelihoods`` [T, S'] (columns: ``graph.states``).

    ``beam``: nodes further than this under the best of their frame are given up (off by default, and then exact).
    None when no path has exactly T frames, or none that the beam left.
    """
    score, back = _search(graph, log_likelihoods, beam)
    if not score > -np.inf:
        return None
    nodes = np.empty(len(back) - 1, np.int64)
    marks = _trace(graph.source, graph.word, graph.unit, graph.n_emitting, graph.start, graph.end, back, nodes)
    words, units = _segments(graph, nodes, marks.tolist())
    names = tuple(graph.words[segment.index] for segment in words)
    return Path(score, nodes, graph.states[graph.state[nodes]], words, units, names)


def viterbi_score(graph: Graph, log_likelihoods: np.ndarray) -> float:
    """Score of the best path alone; -inf when there is none."""
    return _search(graph, log_likelihoods, np.inf)[0]


def best_scores(net: Network, log_likelihoods: np.ndarray, bounds: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Scores [N] of the best paths of the ``wanted`` (bool [N]) of some utterances, rows ``bounds[i]:bounds[i + 1]``.

    As :func:`viterbi_score` of each, -inf where there is no path, NaN where it was not wanted; without the paths this
    takes a fraction of the time.
    """
    best = np.full(len(bounds) - 1, np.nan)
    with np.errstate(divide="ignore"):
        log_prob, log_stay, log_step = np.log(net.prob), np.log(net.stay), np.log(net.step)
    _best_each(net.arc_start, net.source, net.destination, log_prob, net.column, net.start, net.end, log_stay, log_step,
               net.rest, log_likelihoods, bounds, wanted, best)  # fmt: skip
    return best


def align(graph: Graph, log_likelihoods: np.ndarray) -> Path:
    """As :func:`viterbi` on a forced-alignment graph; an utterance too short for its words is an error."""
    path = viterbi(graph, log_likelihoods)
    if path is None:
        raise MargoError(f"{len(log_likelihoods)} frames are too few for the transcript's model")
    return path


def _search(graph: Graph, log_likelihoods: np.ndarray, beam: float) -> tuple[float, np.ndarray]:
    scores = checked(graph, log_likelihoods)
    back = np.empty((len(scores) + 1, graph.n_nodes), np.int32)
    score = _viterbi(
        graph.arc_start, graph.source, graph.log_prob, graph.state, graph.start, graph.end, scores, beam, back
    )
    return float(score), back


def _segments(graph: Graph, nodes: np.ndarray, marks: list):
    """Words and units between the rows at which they were entered; a word ends before the silence behind it."""
    words, units, frames = [], [], len(nodes)
    silent = np.flatnonzero(graph.node_word[nodes] < 0)
    word_marks = [(row, word) for row, word, _ in marks if word >= 0]
    unit_marks = [(row, unit) for row, _, unit in marks if unit >= 0]
    for (row, word), (following, _) in zip(word_marks, [*word_marks[1:], (frames, -1)]):
        pause = np.searchsorted(silent, row)
        end = min(following, int(silent[pause])) if pause < len(silent) else following
        words.append(Segment(word, row, end))
    for (row, unit), (following, _) in zip(unit_marks, [*unit_marks[1:], (frames, -1)]):
        units.append(Segment(unit, row, following))
    return tuple(words), tuple(units)


@njit(cache=True)
def _viterbi(arc_start, source, log_prob, state, start, end, scores, beam, back):
    """Score of the best path; ``back`` [T + 1, n] receives the best arc into every node, -1 where there is none."""
    emitting, nodes = len(state), len(arc_start) - 1
    now, before = np.full(nodes, -np.inf), np.full(nodes, -np.inf)
    back[0] = -1
    for row in range(len(scores) + 1):
        best_of_row = -np.inf
        if row:
            now, before = before, now
            for node in range(emitting):
                best, choice = -np.inf, -1
                for arc in range(arc_start[node], arc_start[node + 1]):
                    value = before[source[arc]] + log_prob[arc]
                    if value > best:
                        best, choice = value, arc
                best += scores[row - 1, state[node]]
                now[node], back[row, node] = best, choice
                best_of_row = max(best_of_row, best)
            if beam < np.inf:
                for node in range(emitting):
                    if now[node] < best_of_row - beam:
                        now[node] = -np.inf
        for node in range(emitting, nodes):
            best, choice = -np.inf, -1
            if row == 0 and node == start:
                best = 0.0
            for arc in range(arc_start[node], arc_start[node + 1]):
                value = now[source[arc]] + log_prob[arc]
                if value > best:
                    best, choice = value, arc
            now[node], back[row, node] = best, choice
    return now[end]


@njit(cache=True)
def _trace(source, word, unit, emitting, start, end, back, path):
    """Follow ``back`` from the end: fills ``path`` [T]; returns marks int [n, 3]: row, word and unit entered there."""
    marks = np.empty((0, 3), np.int64)
    count = 0
    for fill in range(2):  # count, then write
        if fill:
            marks = np.empty((count, 3), np.int64)
        row, node = len(back) - 1, end
        while row > 0 or node != start:
            arc = back[row, node]
            if node < emitting:
                row -= 1
                path[row] = node
            if word[arc] >= 0 or unit[arc] >= 0:
                if fill:
                    count -= 1
                    marks[count, 0], marks[count, 1], marks[count, 2] = row, word[arc], unit[arc]
                else:
                    count += 1
            node = source[arc]
    return marks


@njit(cache=True)
def _best_each(
    arc_start, source, destination, log_prob, column, start, end, log_stay, log_step, rest, scores, bounds, wanted, best
):  # fmt: skip
    emitting, nodes = len(column), len(arc_start) - 1
    now, before = np.empty(nodes), np.empty(nodes)
    for utterance in range(len(best)):
        if not wanted[utterance]:
            continue
        now[:] = -np.inf
        for row in range(bounds[utterance + 1] - bounds[utterance] + 1):
            if row:
                now, before = before, now
                frame = scores[bounds[utterance] + row - 1]
                now[0] = before[0] + log_stay[0]
                for node in range(1, emitting):
                    stay, step = before[node] + log_stay[node], before[node - 1] + log_step[node]
                    now[node] = stay if stay > step else step
                for arc in rest:
                    value = before[source[arc]] + log_prob[arc]
                    if value > now[destination[arc]]:
                        now[destination[arc]] = value
                for node in range(emitting):
                    now[node] += frame[column[node]]
            for node in range(emitting, nodes):
                value = 0.0 if row == 0 and node == start else -np.inf
                for arc in range(arc_start[node], arc_start[node + 1]):
                    value = max(value, now[source[arc]] + log_prob[arc])
                now[node] = value
        best[utterance] = now[end]

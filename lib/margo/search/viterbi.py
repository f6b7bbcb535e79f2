"""The best path through a graph. Of equal paths the one over the first arc wins at every node."""

from dataclasses import dataclass

import numpy as np
from numba import njit

from margo.errors import MargoError
from margo.model.graph import OPEN, Graph
from margo.search.best import best_score
from margo.search.forward_backward import checked
from margo.search.lengths import best_arcs
from margo.search.pruned import pruned_arcs


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


def viterbi(graph: Graph, log_likelihoods: np.ndarray, beam: float = np.inf, most: int = 0) -> Path | None:
    """Best path for ``log_likelihoods`` [T, S'] (columns: ``graph.states``); exact unless one of these says otherwise.

    ``beam``: nodes further than this under the best of their frame are given up, and all but the ``most`` best (0: none
    of these). None when no path has exactly T frames, or none that was left.
    """
    scores = checked(graph, log_likelihoods)
    exact = beam == np.inf and not most
    score, taken = best_arcs(graph.arcs, scores) if exact else pruned_arcs(graph.arcs, scores, beam, most)[:2]
    if not score > -np.inf:
        return None
    nodes, marks = _read(graph.arcs, taken, len(scores))
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
    """Words and units between the rows at which they were entered; a word ends before the silence behind it. In a tree
    a word is entered before it is named."""
    words, frames = [], len(nodes)
    silent = np.flatnonzero(graph.node_word[nodes] == -1)
    word_marks, begun = [], None
    for row, word, _ in marks:
        if word >= 0:
            word_marks.append((row if begun is None else begun, word))
        begun = row if word == OPEN else None if word >= 0 else begun
    unit_marks = [(row, unit) for row, _, unit in marks if unit >= 0]
    for (row, word), (following, _) in zip(word_marks, [*word_marks[1:], (frames, -1)]):
        pause = np.searchsorted(silent, row)
        end = min(following, int(silent[pause])) if pause < len(silent) else following
        words.append(Segment(word, row, end))
    units = zip(unit_marks, [*unit_marks[1:], (frames, -1)])
    return tuple(words), tuple(Segment(unit, row, following) for (row, unit), (following, _) in units)


@njit(cache=True)
def _best_each(arcs, scores, bounds, wanted, best):
    for i in range(len(best)):
        if wanted[i]:
            best[i] = best_score(arcs, scores[bounds[i] : bounds[i + 1]])


@njit(cache=True)
def _read(arcs, path, frames):
    """``(nodes, marks)`` of a path's arcs: emitting node of each frame; row, word and unit of each that is entered."""
    nodes, marks = np.empty(frames, np.int64), np.empty((len(path), 3), np.int64)
    row = count = 0
    for arc in path:
        if arcs.word[arc] != -1 or arcs.unit[arc] >= 0:
            marks[count, 0], marks[count, 1], marks[count, 2] = row, arcs.word[arc], arcs.unit[arc]
            count += 1
        if arcs.destination[arc] < len(arcs.column):
            nodes[row] = arcs.destination[arc]
            row += 1
    return nodes, marks[:count]

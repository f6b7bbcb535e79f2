"""Forced alignment of many word strings with the same frames.

The same paths as :func:`margo.search.viterbi.align` finds on :func:`margo.model.graph.align_graph`, all in one call:
competing strings are many and short-lived.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit

from margo.model.graph import chain_arcs, columns_of, string_links
from margo.model.hmm import HmmSet
from margo.search.viterbi import best_path, trace


@dataclass(frozen=True, eq=False)
class Alignments:
    """Best paths of P strings through T frames."""

    scores: np.ndarray  # [P] -inf where the frames are too few
    states: np.ndarray  # int32 [P, T]
    constants: np.ndarray  # [P] sum of the log transitions
    transitions: list[np.ndarray]  # for each string the indices of those taken


def align_strings(hmms: HmmSet, strings, log_likelihoods: np.ndarray, columns: np.ndarray) -> Alignments:
    """Best path of each of ``strings`` (tuples of word indices) through ``log_likelihoods`` [T, S'].

    ``columns`` int [S']: the pool states that the columns stand for (``graph.states``).
    """
    words, start = np.array([word for string in strings for word in string]), np.cumsum([0, *map(len, strings)])
    frames, paths = len(log_likelihoods), len(strings)
    scores, constants, states = np.empty(paths), np.zeros(paths), np.zeros((paths, frames), np.int32)
    likelihoods = np.ascontiguousarray(log_likelihoods, np.float64)
    places = columns_of(hmms, columns)
    taken, ends = _align(hmms.unit_arcs, places, words, start, likelihoods, scores, constants, states)
    return Alignments(scores, columns.astype(np.int32)[states], constants, np.split(taken, ends[:-1]))


@njit(cache=True)
def _align(table, columns, words, start, likelihoods, scores, constants, states):
    """Fills scores, constants and states (here columns); returns the transitions of all strings in a row, and where
    each string's end."""
    taken, count, ends = np.empty(len(scores) * (len(likelihoods) + 64), np.int32), 0, np.empty(len(scores), np.int64)
    for string in range(len(scores)):
        arcs = chain_arcs(table, columns, string_links(table, words[start[string] : start[string + 1]]))
        back = np.empty((len(likelihoods) + 1, len(arcs.arc_start) - 1), np.int32)
        scores[string] = best_path(arcs, likelihoods, np.inf, back)
        path = trace(arcs, back)[::-1] if scores[string] > -np.inf else np.empty(0, np.int64)[::-1]
        if count + len(path) > len(taken):
            taken = np.concatenate((taken, np.empty(len(taken) + len(path), np.int32)))
        row = len(likelihoods)
        for arc in path:
            if arcs.destination[arc] < len(arcs.column):
                row -= 1
                states[string, row] = arcs.column[arcs.destination[arc]]
            if arcs.transition[arc] >= 0:
                constants[string] += arcs.log_prob[arc]
                taken[count] = arcs.transition[arc]
                count += 1
        ends[string] = count
    return taken[:count], ends

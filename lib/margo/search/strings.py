"""Forced alignment of many word strings with the same frames.

The same paths as :func:`margo.search.viterbi.align` finds on :func:`margo.model.graph.align_graph`, all in one call:
competing strings are many and short-lived.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numba import njit

from margo.model.graph import chain_arcs, columns_of, string_chain
from margo.model.hmm import HmmSet
from margo.search.best import best_path, trace
from margo.search.lengths import CELLS, best_arcs


@dataclass(frozen=True, eq=False)
class Alignments:
    """Best paths of P strings through T frames."""

    scores: np.ndarray  # [P] -inf where the frames are too few
    states: np.ndarray  # int32 [P, T]
    constants: np.ndarray  # [P] sum of the log transitions, and log probabilities of pronunciations
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
    if most_nodes(hmms.unit_arcs, words, start) * frames <= CELLS:
        taken, ends = _align(hmms.unit_arcs, places, words, start, likelihoods, scores, constants, states)
    else:
        taken, ends = _align_long(hmms.unit_arcs, places, strings, likelihoods, scores, constants, states)
    transitions = [taken[first:last] for first, last in pairwise((0, *ends.tolist()))]
    return Alignments(scores, columns.astype(np.int32)[states], constants, transitions)


@njit(cache=True)
def most_nodes(table, words, start):
    """Nodes of the largest graph of the strings ``words[start[p]:start[p + 1]]``, at most."""
    largest, most = (table.state_start[1:] - table.state_start[:-1]).max() + 1, 0
    for string in range(len(start) - 1):
        own = words[start[string] : start[string + 1]]
        if table.crossing.size:
            links = len(string_chain(table, own)[0])
        else:
            links = 1 + len(own)  # silences, and null nodes where pronunciations part and meet
            for word in own:
                first, last = table.word_start[word], table.word_start[word + 1]
                links += table.way_start[last] - table.way_start[first] + last - first
        most = max(most, 1 + largest * links)
    return most


def _align_long(table, columns, strings, likelihoods, scores, constants, states):
    """As :func:`_align`, one string at a time by searches for long ones."""
    taken = []
    for string, words in enumerate(strings):
        arcs = chain_arcs(table, columns, string_chain(table, np.array(words)))
        scores[string], path = best_arcs(arcs, likelihoods)
        moved = np.empty(len(path), np.int32)
        constants[string], count = _follow(arcs, path, states[string], moved)
        taken.append(moved[:count])
    return np.concatenate(taken), np.cumsum([len(one) for one in taken])


@njit(cache=True)
def _follow(arcs, path, columns, taken):
    """Columns of a path's frames into ``columns`` [T], its transitions, last first, into ``taken``; the sum of its
    arcs' log probabilities (transitions, pronunciations), and how many transitions."""
    row, count, constant = len(columns), 0, 0.0
    for arc in path[::-1]:
        if arcs.destination[arc] < len(arcs.column):
            row -= 1
            columns[row] = arcs.column[arcs.destination[arc]]
        constant += arcs.log_prob[arc]
        if arcs.transition[arc] >= 0:
            taken[count] = arcs.transition[arc]
            count += 1
    return constant, count


@njit(cache=True)
def _align(table, columns, words, start, likelihoods, scores, constants, states):
    """Fills scores, constants and states (here columns); returns the transitions of all strings in a row, and where
    each string's end."""
    taken, count, ends = np.empty(len(scores) * (len(likelihoods) + 64), np.int32), 0, np.empty(len(scores), np.int64)
    for string in range(len(scores)):
        arcs = chain_arcs(table, columns, string_chain(table, words[start[string] : start[string + 1]]))
        back = np.empty((len(likelihoods) + 1, len(arcs.arc_start) - 1), np.int32)
        scores[string] = best_path(arcs, likelihoods, back)
        path = trace(arcs, back, arcs.end, True)[0] if scores[string] > -np.inf else np.empty(0, np.int64)
        if count + len(path) > len(taken):
            taken = np.concatenate((taken, np.empty(len(taken) + len(path), np.int32)))
        constants[string], more = _follow(arcs, path, states[string], taken[count:])
        count += more
        ends[string] = count
    return taken[:count], ends

"""The N best word strings of a graph, exactly: distinct strings, each with the score of its own best path.

Every node carries up to N tokens with distinct histories. A history is a node of a trie of words, made once for each
(parent, word), so that comparing two is comparing two integers; silence leaves it unchanged.

What makes it fast is pruning that loses nothing. A backward Viterbi pass comes first and gives the exact score of the
best completion of every token. Wherever the best path enters a word, every other word it could have entered there,
followed by its best completion, is one more string; these differ from one another (they leave the best string at
different places or by different words), so the N-th best of their scores is a bound that the N best strings reach,
and a token that cannot complete to it is dropped.

That pass keeps a number for every node and frame. Where these would be too many (thousands of words), only the part of
the graph is searched that lies within a wide beam: the strings are those of that part.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit

from margo.model.graph import Graph
from margo.search.band import back_over_frame, back_over_nulls, band
from margo.search.forward_backward import checked
from margo.search.pruned import narrowed

CELLS = 1 << 26  # nodes times frames that are searched exactly: half a gigabyte


@dataclass(frozen=True)
class Hypothesis:
    """A string as word indices and as names, with the log score of its best path."""

    words: tuple[int, ...]
    names: tuple[str, ...]
    score: float


class Tokens(NamedTuple):
    """Of each node its tokens, best first: score, history [n, N], count [n]."""

    score: np.ndarray
    history: np.ndarray
    count: np.ndarray


class Trie(NamedTuple):
    """Histories: parent and last word of each; slots of a hash table; size [1], of which node 0 is the empty one."""

    parents: np.ndarray
    words: np.ndarray
    slots: np.ndarray
    size: np.ndarray


def nbest(graph: Graph, log_likelihoods: np.ndarray, n: int = 5) -> list[Hypothesis]:
    """Up to ``n`` best distinct word strings, best first; all there are if fewer, none if no path fits."""
    scores = checked(graph, log_likelihoods)
    if len(scores) * graph.n_nodes > CELLS:
        graph = narrowed(graph, scores)
    completions = np.empty((len(scores) + 1, graph.n_nodes))
    _completions(graph.arcs, scores, completions)
    best = completions[0, graph.arcs.start]
    if not best > -np.inf:
        return []
    rivals = np.sort(_rivals(graph.arcs, scores, completions))[::-1]
    # The passes add the same numbers in different order: a little slack keeps what lies on the bound.
    bound = -np.inf if n > len(rivals) + 1 else [best, *rivals][n - 1] - 1e-9 * (1 + abs(best))
    room = 4096
    while True:
        trie = Trie(np.zeros(room, np.int64), np.full(room, -1), np.full(4 * room, -1), np.ones(1, np.int64))
        values, histories = _tokens(graph.arcs, scores, completions, bound, n, trie)
        if len(values):
            break
        room *= 4  # the trie was full
    return [_hypothesis(graph, history, score, trie) for history, score in zip(histories, values)]


def _hypothesis(graph: Graph, history: int, score: float, trie: Trie) -> Hypothesis:
    string = []
    while history > 0:
        string.append(int(trie.words[history]))
        history = trie.parents[history]
    string.reverse()
    return Hypothesis(tuple(string), tuple(graph.words[word] for word in string), float(score))


@njit(cache=True)
def _completions(arcs, scores, best):
    """best [T + 1, n]: score of the best path from each node, its own frame excluded, to the end."""
    arc_start, source, destination, log_prob, column = arcs[:5]
    emitting, frames, rest = len(column), len(scores), arcs.rest
    stay, step = band(log_prob, arcs.stay_arc, -np.inf), band(log_prob, arcs.step_arc, -np.inf)
    onward = np.empty(emitting)
    best[frames] = -np.inf
    best[frames, arcs.end] = 0.0
    for back in range(frames + 1):
        row = frames - back
        if back:
            for node in range(emitting):
                onward[node] = best[row + 1, node] + scores[row, column[node]]
            back_over_frame(source, destination, log_prob, rest, stay, step, onward, best[row], True)
        back_over_nulls(arc_start, source, log_prob, emitting, best[row], True)


@njit(cache=True)
def _rivals(arcs, scores, completions):
    """Scores of the strings that follow the best path up to some word and enter another word instead."""
    rivals, place = np.empty(256), np.full(arcs.word.max() + 1, -1)
    count = 0
    row, node, so_far = 0, arcs.start, 0.0
    while row < len(scores) or node != arcs.end:
        top, choice = -np.inf, -1
        for position in range(arcs.out_start[node], arcs.out_start[node + 1]):
            arc = arcs.out_arc[position]
            value = _onward(arcs, arc, scores, completions, row)
            if value > top:
                top, choice = value, arc
        first = count
        for position in range(arcs.out_start[node], arcs.out_start[node + 1]):
            arc = arcs.out_arc[position]
            word = arcs.word[arc]
            if word >= 0 and arcs.word[choice] >= 0 and word != arcs.word[choice]:
                value = _onward(arcs, arc, scores, completions, row)
                if first <= place[word] < count:  # it can be entered twice, and that may be the same string
                    rivals[place[word]] = max(rivals[place[word]], so_far + value)
                elif value > -np.inf:
                    if count == len(rivals):
                        rivals = np.concatenate((rivals, np.empty(count)))
                    rivals[count], place[word] = so_far + value, count
                    count += 1
        node = arcs.destination[choice]
        so_far += arcs.log_prob[choice]
        if node < len(arcs.column):
            so_far += scores[row, arcs.column[node]]
            row += 1
    return rivals[:count]


@njit(cache=True)
def _onward(arcs, arc, scores, completions, row):
    """Score of an arc and the best completion behind it."""
    target = arcs.destination[arc]
    if target >= len(arcs.column):
        return arcs.log_prob[arc] + completions[row, target]
    if row == len(scores):
        return -np.inf
    return arcs.log_prob[arc] + scores[row, arcs.column[target]] + completions[row + 1, target]


@njit(cache=True)
def _tokens(arcs, scores, completions, bound, n, trie):
    """Token passing; returns (scores, histories) at the end, both empty if the trie had too little room."""
    emitting, nodes = len(arcs.column), len(arcs.arc_start) - 1
    now = Tokens(np.empty((nodes, n)), np.empty((nodes, n), np.int64), np.zeros(nodes, np.int64))
    before = Tokens(np.empty((nodes, n)), np.empty((nodes, n), np.int64), np.zeros(nodes, np.int64))
    own = np.zeros(nodes)
    for row in range(len(scores) + 1):
        now, before = before, now
        now.count[:] = 0
        if row == 0:
            now.count[arcs.start], now.score[arcs.start, 0], now.history[arcs.start, 0] = 1, 0.0, 0
        else:
            for node in range(emitting):
                own[node] = scores[row - 1, arcs.column[node]]
            _advance(arcs, 0, emitting, own, completions[row], bound, before, now, trie)
        _advance(arcs, emitting, nodes, own, completions[row], bound, now, now, trie)
        if trie.size[0] == len(trie.parents):
            return now.score[0, :0], now.history[0, :0]
    count = now.count[arcs.end]
    return now.score[arcs.end, :count], now.history[arcs.end, :count]


@njit(cache=True)
def _advance(arcs, first, last, own, ahead, bound, origins, tokens, trie):
    """Move tokens over the arcs into nodes ``first .. last - 1``; lists are descending. Stops when the trie is full."""
    arc_start, source, _, log_prob = arcs[:4]
    arc_word, (score, history, count), (parents, words, slots, size) = arcs.word, tokens, trie
    from_score, from_history, from_count = origins
    room, mask = score.shape[1], len(slots) - 1
    for node in range(first, last):
        for arc in range(arc_start[node], arc_start[node + 1]):
            origin, word = source[arc], arc_word[arc]
            for i in range(from_count[origin]):
                value = from_score[origin, i] + log_prob[arc] + own[node]
                if not value + ahead[node] >= bound:
                    break  # and so would the tokens behind it
                if count[node] == room and value <= score[node, room - 1]:
                    break
                past = from_history[origin, i]
                if word >= 0:
                    slot = (past * 1000003 + word * 7919 + (past >> 7)) & mask
                    while slots[slot] >= 0 and not (parents[slots[slot]] == past and words[slots[slot]] == word):
                        slot = (slot + 1) & mask
                    if slots[slot] < 0:
                        if size[0] == len(parents):
                            return
                        slots[slot], parents[size[0]], words[size[0]] = size[0], past, word
                        size[0] += 1
                    past = slots[slot]
                count[node] = _insert(score, history, node, count[node], value, past)


@njit(cache=True)
def _insert(score, history, node, count, value, past):
    """Put a token into a descending list, keeping one token a history; returns the new length."""
    place = count
    for i in range(count):
        if history[node, i] == past:
            if score[node, i] >= value:
                return count
            place = i  # the worse token of the same history gives up its place
            break
    if place == count:
        if count == score.shape[1]:
            place = count - 1
        else:
            count += 1
    while place > 0 and score[node, place - 1] < value:
        score[node, place], history[node, place] = score[node, place - 1], history[node, place - 1]
        place -= 1
    score[node, place], history[node, place] = value, past
    return count

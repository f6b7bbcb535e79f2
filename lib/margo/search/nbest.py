"""The N best word strings of a graph, exactly: distinct strings, each with the score of its own best path.

Every node carries up to N tokens with distinct histories. A history is a node of a trie of words, made once for each
(parent, word), so that comparing two is comparing two integers; silence leaves it unchanged.

What makes it fast is pruning that loses nothing. A backward Viterbi pass comes first and gives the exact score of the
best completion of every token. Wherever the best path enters a word, every other word it could have entered there,
followed by its best completion, is one more string; these differ from one another (they leave the best string at
different places or by different words), so the N-th best of their scores is a bound that the N best strings reach,
and a token that cannot complete to it is dropped.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit

from margo.model.graph import Graph
from margo.search.forward_backward import checked


@dataclass(frozen=True)
class Hypothesis:
    """A string as word indices and as names, with the log score of its best path."""

    words: tuple[int, ...]
    names: tuple[str, ...]
    score: float


def nbest(graph: Graph, log_likelihoods: np.ndarray, n: int = 5) -> list[Hypothesis]:
    """Up to ``n`` best distinct word strings, best first; all there are if fewer, none if no path fits."""
    scores = checked(graph, log_likelihoods)
    completions = np.empty((len(scores) + 1, graph.n_nodes))
    _completions(
        graph.out_start, graph.out_arc, graph.destination, graph.log_prob, graph.state, graph.end, scores, completions
    )
    best = completions[0, graph.start]
    if not best > -np.inf:
        return []
    rivals = _rivals(
        graph.out_start, graph.out_arc, graph.destination, graph.log_prob, graph.word, graph.state, graph.start,
        graph.end, scores, completions,
    )  # fmt: skip
    rivals = np.sort(rivals)[::-1]
    # The passes add the same numbers in different order: a little slack keeps what lies on the bound.
    bound = -np.inf if n > len(rivals) + 1 else [best, *rivals][n - 1] - 1e-9 * (1 + abs(best))
    room = 4096
    while True:
        parents, words = np.zeros(room, np.int64), np.full(room, -1)
        found, histories = _tokens(
            graph.arc_start, graph.source, graph.log_prob, graph.word, graph.state, graph.start, graph.end,
            scores, completions, bound, n, parents, words, np.full(4 * room, -1),
        )  # fmt: skip
        if len(found):
            break
        room *= 4  # the trie was full
    return [_hypothesis(graph, history, score, parents, words) for history, score in zip(histories, found)]


def _hypothesis(graph: Graph, history: int, score: float, parents: np.ndarray, words: np.ndarray) -> Hypothesis:
    string = []
    while history > 0:
        string.append(int(words[history]))
        history = parents[history]
    string.reverse()
    return Hypothesis(tuple(string), tuple(graph.words[word] for word in string), float(score))


@njit(cache=True)
def _completions(out_start, out_arc, destination, log_prob, state, end, scores, best):
    """best [T + 1, n]: score of the best path from each node, its own frame excluded, to the end."""
    emitting, nodes = len(state), len(out_start) - 1
    frames = len(scores)
    onward = np.full(nodes, -np.inf)  # what an arc into each node leads to
    for step in range(frames + 1):
        row = frames - step
        if step:
            for node in range(emitting):
                onward[node] = best[row + 1, node] + scores[row, state[node]]
        for back in range(nodes):
            node = nodes - 1 - back
            top = 0.0 if step == 0 and node == end else -np.inf
            for position in range(out_start[node], out_start[node + 1]):
                arc = out_arc[position]
                top = max(top, log_prob[arc] + onward[destination[arc]])
            best[row, node] = top
            if node >= emitting:
                onward[node] = top


@njit(cache=True)
def _rivals(out_start, out_arc, destination, log_prob, word, state, start, end, scores, completions):
    """Scores of the strings that follow the best path up to some word and enter another word instead."""
    emitting, frames = len(state), len(scores)
    found = np.empty(256)
    count = 0
    row, node, so_far = 0, start, 0.0
    while row < frames or node != end:
        top, choice = -np.inf, -1
        for position in range(out_start[node], out_start[node + 1]):
            arc = out_arc[position]
            value = _onward(arc, destination, log_prob, state, emitting, scores, completions, row)
            if value > top:
                top, choice = value, arc
        for position in range(out_start[node], out_start[node + 1]):
            arc = out_arc[position]
            if word[arc] >= 0 and word[choice] >= 0 and word[arc] != word[choice]:
                value = _onward(arc, destination, log_prob, state, emitting, scores, completions, row)
                if value > -np.inf:
                    if count == len(found):
                        found = np.concatenate((found, np.empty(count)))
                    found[count] = so_far + value
                    count += 1
        node = destination[choice]
        so_far += log_prob[choice]
        if node < emitting:
            so_far += scores[row, state[node]]
            row += 1
    return found[:count]


@njit(cache=True)
def _onward(arc, destination, log_prob, state, emitting, scores, completions, row):
    """Score of an arc and the best completion behind it."""
    target = destination[arc]
    if target >= emitting:
        return log_prob[arc] + completions[row, target]
    if row == len(scores):
        return -np.inf
    return log_prob[arc] + scores[row, state[target]] + completions[row + 1, target]


@njit(cache=True)
def _tokens(
    arc_start, source, log_prob, word, state, start, end, scores, completions, bound, n, parents, words, table
):  # fmt: skip
    """Token passing; returns (scores, histories) at the end, both empty if the trie had too little room."""
    emitting, nodes, frames = len(state), len(arc_start) - 1, len(scores)
    score, before_score = np.empty((nodes, n)), np.empty((nodes, n))
    history, before_history = np.empty((nodes, n), np.int64), np.empty((nodes, n), np.int64)
    count, before_count = np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
    own = np.zeros(nodes)
    size = 1  # of the trie; its node 0 is the empty history
    for row in range(frames + 1):
        score, before_score = before_score, score
        history, before_history = before_history, history
        count, before_count = before_count, count
        count[:] = 0
        if row == 0:
            count[start], score[start, 0], history[start, 0] = 1, 0.0, 0
        else:
            for node in range(emitting):
                own[node] = scores[row - 1, state[node]]
            size = _advance(
                0, emitting, arc_start, source, log_prob, word, own, completions[row], bound,
                before_score, before_history, before_count, score, history, count, parents, words, table, size,
            )  # fmt: skip
        size = _advance(
            emitting, nodes, arc_start, source, log_prob, word, own, completions[row], bound,
            score, history, count, score, history, count, parents, words, table, size,
        )  # fmt: skip
        if size == len(parents):
            return score[0, :0], history[0, :0]
    return score[end, : count[end]], history[end, : count[end]]


@njit(cache=True)
def _advance(
    first, last, arc_start, source, log_prob, word, own, ahead, bound,
    from_score, from_history, from_count, score, history, count, parents, words, table, size,
):  # fmt: skip
    """Move tokens over the arcs into nodes ``first .. last - 1``; lists are descending. Returns the trie's size."""
    room, mask = score.shape[1], len(table) - 1
    for node in range(first, last):
        for arc in range(arc_start[node], arc_start[node + 1]):
            origin = source[arc]
            for i in range(from_count[origin]):
                value = from_score[origin, i] + log_prob[arc] + own[node]
                if not value + ahead[node] >= bound:
                    break  # and so would the tokens behind it
                if count[node] == room and value <= score[node, room - 1]:
                    break
                past = from_history[origin, i]
                if word[arc] >= 0:
                    slot = (past * 1000003 + word[arc] * 7919 + (past >> 7)) & mask
                    while table[slot] >= 0 and not (parents[table[slot]] == past and words[table[slot]] == word[arc]):
                        slot = (slot + 1) & mask
                    if table[slot] < 0:
                        if size == len(parents):
                            return size
                        table[slot], parents[size], words[size] = size, past, word[arc]
                        size += 1
                    past = table[slot]
                count[node] = _insert(score, history, node, count[node], value, past)
    return size


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

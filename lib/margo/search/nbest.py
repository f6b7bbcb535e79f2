"""The N best word strings of a graph, exactly: distinct strings, each with the score of its own best path.

Every node carries up to N tokens with distinct histories. A history is a node of a trie of words, made once for each
(parent, word), so that comparing two is comparing two integers; silence leaves it unchanged. A backward Viterbi pass
comes first: it gives the exact score of the best completion of every token, so a token that cannot come within
``margin`` of the best string is dropped at once. If N strings lie within the margin no dropped token belonged to
them; otherwise the margin is widened and the pass repeated, so the result does not depend on it.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit

from margo.model.graph import Graph
from margo.search.forward_backward import _scores

FIRST_MARGIN = 64.0  # nats; only a matter of speed
WIDEN = 4.0


@dataclass(frozen=True)
class Hypothesis:
    """A string as word indices and as names, with the log score of its best path."""

    words: tuple[int, ...]
    names: tuple[str, ...]
    score: float


def nbest(graph: Graph, log_likelihoods: np.ndarray, n: int = 5) -> list[Hypothesis]:
    """Up to ``n`` best distinct word strings, best first; all there are if fewer, none if no path fits."""
    scores = _scores(graph, log_likelihoods)
    completions = np.empty((len(scores) + 1, graph.n_nodes))
    _completions(
        graph.out_start, graph.out_arc, graph.destination, graph.log_prob, graph.state, graph.end, scores, completions
    )
    best = completions[0, graph.start]
    if not best > -np.inf:
        return []
    slack = 1e-9 * (1 + abs(best))  # the two passes add the same numbers in different order
    margin = FIRST_MARGIN
    while True:
        found, histories, parents, words, dropped = _tokens(
            graph.arc_start, graph.source, graph.log_prob, graph.word, graph.state, graph.start, graph.end,
            scores, completions, best - margin - slack, n,
        )  # fmt: skip
        if not dropped or (len(found) == n and found[-1] >= best - margin):
            return [_hypothesis(graph, history, score, parents, words) for history, score in zip(histories, found)]
        margin = margin * WIDEN if margin < 1e5 else np.inf


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
def _tokens(arc_start, source, log_prob, word, state, start, end, scores, completions, threshold, n):
    """Token passing; returns (scores, histories) at the end, the trie (parents, words), and whether any was dropped."""
    emitting, nodes, frames = len(state), len(arc_start) - 1, len(scores)
    score, before_score = np.empty((nodes, n)), np.empty((nodes, n))
    history, before_history = np.empty((nodes, n), np.int64), np.empty((nodes, n), np.int64)
    count, before_count = np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
    parents, words = np.zeros(1024, np.int64), np.full(1024, -1, np.int64)
    table = np.full(4096, -1, np.int64)
    size = 1  # trie node 0 is the empty history
    dropped = False
    for row in range(frames + 1):
        score, before_score = before_score, score
        history, before_history = before_history, history
        count, before_count = before_count, count
        for node in range(nodes):
            count[node] = 0
            if node < emitting and row == 0:
                continue
            if node == start:
                if row == 0:
                    count[node], score[node, 0], history[node, 0] = 1, 0.0, 0
                continue
            own = scores[row - 1, state[node]] if node < emitting else 0.0
            ahead = completions[row, node]
            for arc in range(arc_start[node], arc_start[node + 1]):
                origin = source[arc]
                if node < emitting:
                    tokens, origin_score, origin_history = before_count[origin], before_score, before_history
                else:
                    tokens, origin_score, origin_history = count[origin], score, history
                for i in range(tokens):
                    value = origin_score[origin, i] + log_prob[arc] + own
                    if not value + ahead >= threshold:
                        dropped = dropped or value + ahead > -np.inf
                        break  # the tokens behind are worse
                    if count[node] == n and value <= score[node, n - 1]:
                        break
                    past = origin_history[origin, i]
                    if word[arc] >= 0:
                        if 2 * size >= len(parents):
                            parents, words, table = _grow(parents, words, size)
                        slot = _find(table, parents, words, past, word[arc])
                        if table[slot] < 0:
                            table[slot] = size
                            parents[size], words[size] = past, word[arc]
                            size += 1
                        past = table[slot]
                    count[node] = _insert(score[node], history[node], count[node], value, past)
    return score[end, : count[end]], history[end, : count[end]], parents, words, dropped


@njit(cache=True)
def _insert(scores, histories, count, value, past):
    """Put a token into a descending list, keeping one token a history; returns the new length."""
    place = count
    for i in range(count):
        if histories[i] == past:
            if scores[i] >= value:
                return count
            place = i  # the worse token of the same history gives up its place
            break
    if place == count:
        if count == len(scores):
            place = count - 1
        else:
            count += 1
    while place > 0 and scores[place - 1] < value:
        scores[place], histories[place] = scores[place - 1], histories[place - 1]
        place -= 1
    scores[place], histories[place] = value, past
    return count


@njit(cache=True)
def _find(table, parents, words, parent, word):
    """Slot of (parent, word) in the open-addressed table: its own, or the free one where it belongs."""
    mask = len(table) - 1
    slot = (parent * 1000003 + word * 7919 + (parent >> 7)) & mask
    while table[slot] >= 0 and not (parents[table[slot]] == parent and words[table[slot]] == word):
        slot = (slot + 1) & mask
    return slot


@njit(cache=True)
def _grow(parents, words, size):
    """Twice the room, and a table four times the trie's length for it."""
    more_parents, more_words = np.zeros(2 * len(parents), np.int64), np.full(2 * len(words), -1, np.int64)
    more_parents[:size], more_words[:size] = parents[:size], words[:size]
    table = np.full(4 * len(more_parents), -1, np.int64)
    for node in range(1, size):
        table[_find(table, more_parents, more_words, more_parents[node], more_words[node])] = node
    return more_parents, more_words, table

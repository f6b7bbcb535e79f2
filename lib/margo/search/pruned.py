"""The best path through a large graph, where only the nodes near the best of their frame are followed.

Nodes further than a beam under the best are given up, and of the others all but the best so many (histogram pruning);
without either the search is exact. What is followed is a list, so that time goes with its length and not with the
graph's size. A token remembers the arc into a node and the token that it came from; tokens that lead nowhere are
dropped from time to time, so that memory hardly grows with the frames.
"""

import numpy as np
from numba import njit

from margo.model.graph import Graph, compile_arcs

BEAM, ACTIVE = 200.0, 7000  # for large vocabularies; nats: Kaldi has 13, of log-likelihoods times 1/12
ROOM = 1 << 18  # tokens at first


def narrowed(graph: Graph, scores: np.ndarray, beam: float = BEAM, most: int = ACTIVE) -> Graph:
    """The part of ``graph`` that a search with these limits follows in ``scores`` [T, S'], at whatever frame; all of it
    where they leave no path."""
    arcs = graph.arcs
    score, _, seen = pruned_arcs(arcs, scores, beam, most)
    if not score > -np.inf:
        return graph
    kept = np.flatnonzero(seen[arcs.source] & seen[arcs.destination])
    number, emitting = np.cumsum(seen) - 1, seen[: graph.n_emitting]
    ends = number[np.array([arcs.source[kept], arcs.destination[kept]])]
    labels = np.array([arcs.transition[kept], arcs.word[kept], arcs.unit[kept]])
    own = compile_arcs(ends, arcs.log_prob[kept], arcs.column[emitting], number[arcs.start], number[arcs.end], labels)
    return Graph(own, graph.states, graph.node_word[emitting], graph.words)


@njit(cache=True)
def pruned_arcs(arcs, scores, beam, most):
    """``(score, arcs, seen)`` of the best path that stays within ``beam`` of the best and among the ``most`` best
    emitting nodes of each frame (0: all); -inf and none where there is none. Of equal paths the one over the first arc
    wins. seen bool [n]: nodes that were followed at some frame."""
    nodes, emitting, frames = len(arcs.arc_start) - 1, len(arcs.column), len(scores)
    now, before = np.full(nodes, -np.inf), np.full(nodes, -np.inf)
    token, last_token = np.full(nodes, -1), np.full(nodes, -1)
    arc_into, listed, count = np.full(nodes, -1), np.empty(nodes, np.int64), 0
    taken, back, size = np.empty(ROOM, np.int64), np.empty(ROOM, np.int64), 0
    followed, seen = listed[:0], np.zeros(nodes, np.bool_)
    for row in range(frames + 1):
        least = -np.inf
        if row == 0:
            now[arcs.start] = 0.0
        else:
            now, before = before, now
            token, last_token = last_token, token
            followed = listed[:count].copy()
            count = _onward(arcs, followed, before, now, arc_into, listed, frames - row)
            before[followed] = -np.inf
            least = _score(scores[row - 1], arcs.column, listed[:count], now, beam, most)
            if row == frames:
                least = -np.inf  # what ends counts, however far it is under what does not
        if size + nodes > len(taken):
            size = _collect(taken, back, size, last_token, followed)
            if 2 * (size + nodes) > len(taken):
                more = np.empty(len(taken) + nodes, np.int64)
                taken, back = np.concatenate((taken, more)), np.concatenate((back, more))
        kept = 0
        for node in listed[:count]:
            if now[node] < least or now[node] == -np.inf:
                now[node] = -np.inf
                continue
            taken[size], back[size], token[node] = arc_into[node], last_token[arcs.source[arc_into[node]]], size
            listed[kept], kept, size = node, kept + 1, size + 1
        count = kept
        for node in listed[:kept]:
            _over_nulls(arcs, node, emitting, now, arc_into)
        for node in range(emitting, nodes):  # in an order in which all that leads to a node comes before it
            if now[node] == -np.inf or now[node] < least:
                now[node] = -np.inf
                continue
            arc = arc_into[node]
            taken[size], back[size], token[node] = arc, -1 if arc < 0 else token[arcs.source[arc]], size
            listed[count], count, size = node, count + 1, size + 1
            _over_nulls(arcs, node, emitting, now, arc_into)
        seen[listed[:count]] = True
    if not now[arcs.end] > -np.inf:
        return -np.inf, taken[:0], seen
    return now[arcs.end], _way_back(taken, back, token[arcs.end]), seen


@njit(cache=True, inline="always")
def _better(value, arc, node, values, arc_into):
    """Take an arc into ``node`` if it is better than what leads there; of equals the first arc."""
    if value > values[node] or value == values[node] and value > -np.inf and arc < arc_into[node]:
        values[node], arc_into[node] = value, arc


@njit(cache=True)
def _onward(arcs, followed, before, now, arc_into, listed, left):
    """From nodes over a frame, to emitting nodes that can end in the frames ``left``; lists these, returns how many."""
    count, emitting = 0, len(arcs.column)
    for source in followed:
        for place in range(arcs.out_start[source], arcs.out_start[source + 1]):
            arc = arcs.out_arc[place]
            node = arcs.destination[arc]
            if node >= emitting or arcs.behind[node] > left or arcs.log_prob[arc] == -np.inf:
                continue
            if now[node] == -np.inf:
                listed[count] = node
                count += 1
            _better(before[source] + arcs.log_prob[arc], arc, node, now, arc_into)
    return count


@njit(cache=True)
def _score(frame, column, listed, values, beam, most):
    """Add a frame's scores to the ``values`` of ``listed`` nodes; returns the least value that is followed."""
    reached, top = np.empty(len(listed)), -np.inf
    for place, node in enumerate(listed):
        values[node] += frame[column[node]]
        reached[place] = values[node]
        top = max(top, values[node])
    least = top - beam if beam < np.inf else -np.inf
    if 0 < most < len(reached):
        least = max(least, np.partition(reached, len(reached) - most)[len(reached) - most])
    return least


@njit(cache=True)
def _over_nulls(arcs, source, emitting, values, arc_into):
    """From a node to the null nodes behind it."""
    for place in range(arcs.out_start[source], arcs.out_start[source + 1]):
        arc = arcs.out_arc[place]
        if arcs.destination[arc] >= emitting:
            _better(values[source] + arcs.log_prob[arc], arc, arcs.destination[arc], values, arc_into)


@njit(cache=True)
def _collect(taken, back, size, token, held):
    """Keep the tokens that those of the ``held`` nodes come from, and number them anew; returns how many."""
    place = np.full(size, -1)
    for node in held:
        place[token[node]] = 0
    for here in range(size - 1, -1, -1):
        if place[here] >= 0 and back[here] >= 0:
            place[back[here]] = 0
    count = 0
    for here in range(size):
        if place[here] >= 0:
            place[here], taken[count] = count, taken[here]
            back[count] = place[back[here]] if back[here] >= 0 else -1
            count += 1
    for node in held:
        token[node] = place[token[node]]
    return count


@njit(cache=True)
def _way_back(taken, back, token):
    """Arcs of the path that ends in a token."""
    length, here = 0, token
    while back[here] >= 0:
        length, here = length + 1, back[here]
    path = np.empty(length, np.int64)
    while back[token] >= 0:
        length -= 1
        path[length], token = taken[token], back[token]
    return path

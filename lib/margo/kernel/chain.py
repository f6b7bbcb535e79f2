"""One word's hidden Markov model without null nodes: its posterior chain, and how that answers to its emissions.

Given the frames, the node sequence is a Markov chain that goes from node j at frame t to node k at frame t + 1 with
probability ``a_jk b_k(t+1) beta_k(t+1) / beta_j(t)``. The joint posterior of two nodes at two frames, which the second
derivatives need ([L04] (46), (53)), is a product of these matrices; what follows never forms it.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from margo.errors import MargoError
from margo.model.graph import Arcs, Graph, compile_arcs
from margo.search.forward_backward import NEGLIGIBLE

LEAST = float(np.exp(NEGLIGIBLE))
REACH = 1.5 * NEGLIGIBLE  # of the best path: so far below, all paths through a node together have less than LEAST


def make_chain(column, transitions, initial, final) -> Arcs:
    """Arcs whose only null nodes are start and end, behind E emitting ones, from probabilities: transitions [E, E],
    initial [E], final [E] (what leaves the last frame)."""
    whole = np.block([[transitions, np.zeros((len(initial), 1)), final[:, None]], [initial, 0, 0], [0 * initial, 0, 0]])
    destination, source = np.nonzero(whole.T)
    log_prob = np.log(whole[source, destination])
    return compile_arcs(np.array([source, destination]), log_prob, column, len(initial), len(initial) + 1)


def chain_of(graph: Graph) -> Arcs:
    """The chain of a graph: null nodes are summed out, ``A + A_en (1 - A_nn)^-1 A_ne``."""
    arcs, size, emitting = graph.arcs, graph.n_nodes, graph.n_emitting
    whole = np.zeros((size, size))
    np.add.at(whole, (arcs.source, arcs.destination), np.exp(arcs.log_prob))
    through = np.linalg.inv(np.eye(size - emitting) - whole[emitting:, emitting:])
    leave = whole[:emitting, emitting:] @ through
    enter = through @ whole[emitting:, :emitting]
    transitions = whole[:emitting, :emitting] + leave @ whole[emitting:, :emitting]
    return make_chain(arcs.column, transitions, enter[arcs.start - emitting], leave[:, arcs.end - emitting])


class Occupancy(NamedTuple):
    """Posteriors of several utterances on one chain: of each frame the few nodes that have some of it, as flat lists.

    Visits m are of one node at one frame, in the order of frames; moves e lead from one visit to another a frame later.
    """

    log_likelihoods: np.ndarray  # [N]
    bounds: np.ndarray  # [N + 1]: frames of each utterance
    starts: np.ndarray  # [T + 1]: visits of frame t are starts[t]:starts[t + 1]
    node: np.ndarray  # [M]
    gamma: np.ndarray  # [M]: posterior of the node at its frame
    out: np.ndarray  # [M + 1]: moves of visit m are out[m]:out[m + 1]
    target: np.ndarray  # [L]: visit that a move leads to
    prob: np.ndarray  # [L]: its probability given all frames and where it starts

    def response(self, rates: np.ndarray, window: int | None = None) -> np.ndarray:
        """``cov(1[visit m], sum_t rates[visit of frame t])`` over other frames t, [M].

        This is how the posteriors change when every log emission changes by ``rates`` [M], less the part of the frame's
        own rates, which mixtures need component by component ([L04] (75)). Exact in O(L) by default; with ``window`` c
        only frames at most c away count, as [L04] 5.4 approximates, in O(c L).
        """
        return _response_exact(self, rates) if window is None else _response_windowed(self, rates, window)


@njit(cache=True)
def _response_exact(visits, rates):
    gamma, out, target, prob = visits.gamma, visits.out, visits.target, visits.prob
    past, ahead, response = np.zeros(len(gamma)), np.empty(len(gamma)), np.empty(len(gamma))
    for i in range(len(visits.bounds) - 1):
        low, high = visits.starts[visits.bounds[i]], visits.starts[visits.bounds[i + 1]]
        mean = 0.0
        for m in range(low, high):
            mean += gamma[m] * rates[m]
        for m in range(low, high):
            response[m] = past[m] - gamma[m] * mean
            value = past[m] + gamma[m] * rates[m]
            for e in range(out[m], out[m + 1]):
                past[target[e]] += value * prob[e]
        for m in range(high - 1, low - 1, -1):
            value = 0.0
            for e in range(out[m], out[m + 1]):
                value += prob[e] * ahead[target[e]]
            response[m] += gamma[m] * value
            ahead[m] = value + rates[m]
    return response


@njit(cache=True)
def _response_windowed(visits, rates, window):
    gamma, starts, out, target, prob = visits.gamma, visits.starts, visits.out, visits.target, visits.prob
    now, response = np.zeros(len(gamma)), np.zeros(len(gamma))
    for i in range(len(visits.bounds) - 1):
        first, last = visits.bounds[i], visits.bounds[i + 1]
        for t in range(first, last):
            begin, end = max(first, t - window), min(last, t + window + 1)
            mean = 0.0
            for m in range(starts[t], starts[t + 1]):
                now[m] = gamma[m] * rates[m]
                mean += now[m]
            for m in range(starts[begin], starts[end]):
                response[m] -= gamma[m] * mean
            for m in range(starts[t], starts[end - 1]):
                for e in range(out[m], out[m + 1]):
                    now[target[e]] += now[m] * prob[e]
            for m in range(starts[t + 1], starts[end]):
                response[m] += now[m]
            for m in range(starts[t], starts[t + 1]):
                now[m] = rates[m]
            for m in range(starts[t] - 1, starts[begin] - 1, -1):
                value = 0.0
                for e in range(out[m], out[m + 1]):
                    value += prob[e] * now[target[e]]
                response[m] += gamma[m] * value
                now[m] = value
            now[starts[begin] : starts[end]] = 0.0
    return response


@njit(cache=True)
def _band(chain):
    """``(stay [E], step [E], rest)`` of the arcs between emitting nodes: log probabilities of those from the node
    itself and from the one before, -inf without one, and the numbers of the few others."""
    stay, step = np.full(len(chain.column), -np.inf), np.full(len(chain.column), -np.inf)
    for k in range(len(chain.column)):
        if chain.stay_arc[k] >= 0:
            stay[k] = chain.log_prob[chain.stay_arc[k]]
        if chain.step_arc[k] >= 0:
            step[k] = chain.log_prob[chain.step_arc[k]]
    return stay, step, chain.rest[chain.source[chain.rest] < len(chain.column)]


@njit(cache=True)
def _look_behind(chain, band, scores, behind):
    """Fills ``behind`` [T, E] with the score of the best path up to each node at each frame of one utterance, the
    frame's own of ``scores`` [T, E] included; returns that of the best path of all."""
    stay, step, rest = band
    behind[0] = -np.inf
    for place in range(chain.out_start[chain.start], chain.out_start[chain.start + 1]):
        arc = chain.out_arc[place]
        behind[0, chain.destination[arc]] = chain.log_prob[arc]
    for t in range(len(scores)):
        now = behind[t]
        if t > 0:
            before = behind[t - 1]
            now[0] = before[0] + stay[0]
            for k in range(1, len(stay)):
                now[k] = max(before[k] + stay[k], before[k - 1] + step[k])
            for arc in rest:
                k = chain.destination[arc]
                now[k] = max(now[k], before[chain.source[arc]] + chain.log_prob[arc])
        for k in range(len(stay)):
            now[k] += scores[t, k]
    best = -np.inf
    for arc in range(chain.arc_start[chain.end], chain.arc_start[chain.end + 1]):
        best = max(best, behind[len(scores) - 1, chain.source[arc]] + chain.log_prob[arc])
    return best


@njit(cache=True, inline="always")
def _share_out(chain, k, after, best, moves):
    """The log probability of all behind node ``k``, whose best arc has ``best``, by what lies ``after`` its arcs; what
    each of them has of it goes to ``moves``. What is e^-40 of the best counts as nothing."""
    low, high, total = chain.out_start[k], chain.out_start[k + 1], 0.0
    for place in range(low, high):
        arc = chain.out_arc[place]
        gap = chain.log_prob[arc] + after[chain.destination[arc]] - best
        moves[place] = 1.0 if gap == 0.0 else np.exp(gap) if gap > NEGLIGIBLE else 0.0
        total += moves[place]
    for place in range(low, high):
        moves[place] /= total
    return best + np.log(total) if total > 1.0 else best


@njit(cache=True, error_model="numpy")
def _look_ahead(chain, scores, limit, behind, ahead, moves):
    """Fills ``ahead`` [T, nodes] with the log probability of each frame and all behind it, given its node, of one
    utterance's ``scores`` [T, E], and ``moves`` [T, arcs] with the probability of every arc out of the node, in
    ``out_arc``'s order, given all frames.

    Nodes that no path of at least ``limit`` goes through, as ``behind`` tells, are left out, ``ahead`` -inf and
    ``moves`` as they were: most of them.
    """
    last, emitting, count = len(scores) - 1, len(chain.column), 0
    kept, reached = np.empty(emitting, np.int64), np.empty(emitting, np.int64)  # nodes of frames t + 1 and t
    ahead[last] = -np.inf
    for arc in range(chain.arc_start[chain.end], chain.arc_start[chain.end + 1]):
        k = chain.source[arc]
        if behind[last, k] + chain.log_prob[arc] >= limit:
            ahead[last, k] = chain.log_prob[arc] + scores[last, k]
            kept[count] = k
            count += 1
    for t in range(last - 1, -1, -1):
        now, after, found = ahead[t], ahead[t + 1], 0
        now[:] = -np.inf
        for j in kept[:count]:
            for arc in range(chain.arc_start[j], chain.arc_start[j + 1]):
                k, value = chain.source[arc], chain.log_prob[arc] + after[j]
                if k < emitting and value > now[k] and behind[t, k] + value >= limit:
                    if now[k] == -np.inf:
                        reached[found] = k
                        found += 1
                    now[k] = value
        for k in reached[:found]:
            now[k] = scores[t, k] + _share_out(chain, k, after, now[k], moves[t])
        kept, reached, count = reached, kept, found


@njit(cache=True, error_model="numpy")
def _occupy(chain, scores, bounds):
    """The parts of an :class:`Occupancy` in their order; an utterance without a path has a log-likelihood of -inf.

    What is e^-40 of a frame counts as nothing, so that a frame has few visits, and no number is too small to be fast.
    """
    to, places, nodes = chain.destination[chain.out_arc], chain.out_start, len(chain.column)
    most = len(scores) * nodes, len(scores) * len(to)  # room that is never touched costs nothing
    node, gamma, out = np.empty(most[0], np.int64), np.empty(most[0]), np.empty(most[0] + 1, np.int64)
    target, prob = np.empty(most[1], np.int64), np.empty(most[1])
    out[0] = 0
    totals, starts = np.empty(len(bounds) - 1), np.empty(len(scores) + 1, np.int64)
    longest, band = np.diff(bounds).max(), _band(chain)
    own, behind = np.empty((longest, nodes)), np.empty((longest, nodes))
    ahead, moves = np.empty((longest, nodes + 2)), np.empty((longest, len(to)))
    come, visit = np.zeros(nodes + 2), np.full(nodes + 2, -1)
    entry = np.empty(len(to))
    m, e = 0, 0
    for i in range(len(bounds) - 1):
        first, last = bounds[i], bounds[i + 1]
        for k in range(nodes):
            for t in range(last - first):
                own[t, k] = scores[first + t, chain.column[k]]
        limit = _look_behind(chain, band, own[: last - first], behind) + REACH
        _look_ahead(chain, own[: last - first], limit, behind, ahead, moves)
        # the posterior is a Markov chain: its forward pass is a product of probabilities, with nothing to underflow
        best = -np.inf
        for place in range(places[chain.start], places[chain.start + 1]):
            best = max(best, chain.log_prob[chain.out_arc[place]] + ahead[0, to[place]])
        totals[i] = _share_out(chain, chain.start, ahead[0], best, entry)
        low, high = nodes, 0  # nodes that the moves to a frame lead to are within low:high
        for place in range(places[chain.start], places[chain.start + 1]):
            come[to[place]] = entry[place]
            low, high = min(low, to[place]), max(high, to[place] + 1)
        for t in range(first, last):
            before, starts[t] = m if t == first else starts[t - 1], m
            for k in range(low, high):
                if come[k] >= LEAST:
                    node[m], gamma[m], visit[k] = k, come[k], m
                    m += 1
                come[k] = 0.0
            for source in range(before, starts[t]):
                for place in range(places[node[source]], places[node[source] + 1]):
                    share = moves[t - 1 - first, place]
                    if share > 0.0 and visit[to[place]] >= starts[t]:
                        target[e], prob[e] = visit[to[place]], share
                        e += 1
                out[source + 1] = e
            low, high = nodes, 0
            for source in range(starts[t], m):
                if t + 1 < last:
                    for place in range(places[node[source]], places[node[source] + 1]):
                        come[to[place]] += gamma[source] * moves[t - first, place]
                        low, high = min(low, to[place]), max(high, to[place] + 1)
                out[source + 1] = e
    starts[-1] = m
    return totals, bounds, starts, node[:m], gamma[:m], out[: m + 1], target[:e], prob[:e]


def occupy(chain: Arcs, scores: np.ndarray, bounds: np.ndarray) -> Occupancy:
    """Posteriors of utterances ``bounds[i]:bounds[i+1]`` given state log-likelihoods ``scores`` [T, S]."""
    found = Occupancy(*_occupy(chain, np.asfortranarray(scores), bounds))
    lost = np.flatnonzero(~np.isfinite(found.log_likelihoods))
    if len(lost):
        frames = bounds[lost[0] + 1] - bounds[lost[0]]
        raise MargoError(f"utterance number {lost[0]} ({frames} frames) has no path through a model; leave out "
                         "utterances with fewer frames than the model has states")  # fmt: skip
    return found

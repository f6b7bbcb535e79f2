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


@njit(cache=True, inline="always")
def _beta(log_prob, to, low, high, ahead):
    """``(best, total)`` of a node's arcs low:high by what lies ahead: its beta is best + log total; what is e^-40 of
    the best counts as nothing."""
    best, total = -np.inf, 0.0
    for arc in range(low, high):
        best = max(best, log_prob[arc] + ahead[to[arc]])
    if best > -np.inf:
        for arc in range(low, high):
            gap = log_prob[arc] + ahead[to[arc]] - best
            if gap > NEGLIGIBLE:
                total += 1.0 if gap == 0.0 else np.exp(gap)
    return best, total


@njit(cache=True)
def _look_ahead(chain, to, log_prob, scores, ahead):
    """Fills ``ahead`` [T, nodes] with the log probability of each frame and all behind it, given its node, of one
    utterance's ``scores`` [T, S]; start and end, where there is no frame, stay as they are. Returns beta of the start.
    """
    nodes, places = len(chain.column), chain.out_start
    ahead[-1, :nodes] = -np.inf
    for arc in range(chain.arc_start[chain.end], chain.arc_start[chain.end + 1]):
        k = chain.source[arc]
        ahead[-1, k] = chain.log_prob[arc] + scores[-1, chain.column[k]]
    for t in range(len(scores) - 2, -1, -1):
        for k in range(nodes):
            best, total = _beta(log_prob, to, places[k], places[k + 1], ahead[t + 1])
            ahead[t, k] = scores[t, chain.column[k]] + (best + np.log(total) if total > 1.0 else best)
    best, total = _beta(log_prob, to, places[chain.start], places[chain.start + 1], ahead[0])
    return best + np.log(total) if total > 1.0 else best


@njit(cache=True, error_model="numpy")
def _occupy(chain, scores, bounds):
    """The parts of an :class:`Occupancy` in their order; an utterance without a path has a log-likelihood of -inf.

    What is e^-40 of a frame counts as nothing, so that a frame has few visits, and no number is too small to be fast.
    """
    to, log_prob = chain.destination[chain.out_arc], chain.log_prob[chain.out_arc]
    nodes, places = len(chain.column), chain.out_start
    most = len(scores) * nodes, len(scores) * len(to)  # room that is never touched costs nothing
    node, gamma, out = np.empty(most[0], np.int64), np.empty(most[0]), np.zeros(most[0] + 1, np.int64)
    target, prob = np.empty(most[1], np.int64), np.empty(most[1])
    totals, starts = np.empty(len(bounds) - 1), np.empty(len(scores) + 1, np.int64)
    ahead = np.full((np.diff(bounds).max(), nodes + 2), -np.inf)
    moves, come, visit = np.empty(len(to)), np.zeros(nodes + 2), np.full(nodes + 2, -1)
    m, e = 0, 0
    for i in range(len(bounds) - 1):
        first, last = bounds[i], bounds[i + 1]
        totals[i] = _look_ahead(chain, to, log_prob, scores[first:last], ahead[: last - first])
        # the posterior is a Markov chain: its forward pass is a product of probabilities, with nothing to underflow
        for arc in range(places[chain.start], places[chain.start + 1]):
            come[to[arc]] = np.exp(log_prob[arc] + ahead[0, to[arc]] - totals[i])
        for t in range(first, last):
            before, starts[t] = m if t == first else starts[t - 1], m
            for k in range(nodes):
                visit[k] = -1
                if come[k] >= LEAST:
                    node[m], gamma[m], visit[k] = k, come[k], m
                    m += 1
                come[k] = 0.0
            for source in range(before, starts[t]):
                for arc in range(places[node[source]], places[node[source] + 1]):
                    if moves[arc] > 0.0 and visit[to[arc]] >= 0:
                        target[e], prob[e] = visit[to[arc]], moves[arc]
                        e += 1
                out[source + 1] = e
            for source in range(starts[t], m):
                low, high = places[node[source]], places[node[source] + 1]
                if t + 1 < last:
                    best, total = _beta(log_prob, to, low, high, ahead[t + 1 - first])
                    for arc in range(low, high):
                        gap = log_prob[arc] + ahead[t + 1 - first, to[arc]] - best
                        moves[arc] = (1.0 if gap == 0.0 else np.exp(gap) if gap > NEGLIGIBLE else 0.0) / total
                        come[to[arc]] += gamma[source] * moves[arc]
                out[source + 1] = e
    starts[-1] = m
    return totals, bounds, starts, node[:m], gamma[:m], out[: m + 1], target[:e], prob[:e]


def occupy(chain: Arcs, scores: np.ndarray, bounds: np.ndarray) -> Occupancy:
    """Posteriors of utterances ``bounds[i]:bounds[i+1]`` given state log-likelihoods ``scores`` [T, S]."""
    found = Occupancy(*_occupy(chain, np.ascontiguousarray(scores), bounds))
    lost = np.flatnonzero(~np.isfinite(found.log_likelihoods))
    if len(lost):
        frames = bounds[lost[0] + 1] - bounds[lost[0]]
        raise MargoError(f"utterance number {lost[0]} ({frames} frames) has no path through a model; leave out "
                         "utterances with fewer frames than the model has states")  # fmt: skip
    return found

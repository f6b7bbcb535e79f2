"""One word's hidden Markov model without null nodes: its posterior chain, and how that answers to its emissions.

Given the frames, the node sequence is a Markov chain that goes from node j at frame t to node k at frame t + 1 with
probability ``a_jk b_k(t+1) beta_k(t+1) / beta_j(t)``. The joint posterior of two nodes at two frames, which the second
derivatives need ([L04] (46), (53)), is a product of these matrices; what follows never forms it.
"""

from dataclasses import dataclass

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


@njit(cache=True, error_model="numpy")
def _posteriors(chain, scores, bounds, gamma, moves, totals):
    """``gamma`` [T, E] node posteriors, ``moves`` [T, A] probability of each arc (in the order of ``chain.out_arc``)
    into frame t given all frames and its source before (start at the first), ``totals`` [N].

    One pass back gives a node's beta and, from the same exponentials, where it goes; what is e^-40 of a node's best
    move, or of a frame, is zero, so that all that follows has few nodes a frame to look at, and no number too small to
    be fast.
    """
    to, log_prob, column = chain.destination[chain.out_arc], chain.log_prob[chain.out_arc], chain.column
    nodes, starts = len(column), chain.out_start
    ahead, beta = np.full(nodes + 2, -np.inf), np.empty(nodes + 2)  # ahead of start and end there is no frame
    for i in range(len(bounds) - 1):
        first, last = bounds[i], bounds[i + 1]
        beta[:] = -np.inf
        for arc in range(chain.arc_start[chain.end], chain.arc_start[chain.end + 1]):
            beta[chain.source[arc]] = chain.log_prob[arc]
        for t in range(last - 1, first - 1, -1):
            for k in range(nodes):
                ahead[k] = scores[t, column[k]] + beta[k]
            moved = moves[t]
            moved[:] = 0.0
            for j in range(nodes) if t > first else range(chain.start, chain.start + 1):
                best, total = -np.inf, 0.0
                low, high = starts[j], starts[j + 1]
                for arc in range(low, high):
                    best = max(best, log_prob[arc] + ahead[to[arc]])
                if best > -np.inf:
                    for arc in range(low, high):
                        gap = log_prob[arc] + ahead[to[arc]] - best
                        if gap > NEGLIGIBLE:
                            moved[arc] = 1.0 if gap == 0.0 else np.exp(gap)
                            total += moved[arc]
                    if total > 1.0:
                        for arc in range(low, high):
                            moved[arc] /= total
                        best += np.log(total)
                beta[j] = best
        totals[i] = beta[chain.start]
        # the posterior is a Markov chain: its forward pass is a product of probabilities, with nothing to underflow
        gamma[first] = 0.0
        for arc in range(starts[chain.start], starts[chain.start + 1]):
            if to[arc] < nodes:
                gamma[first, to[arc]] = moves[first, arc]
        for t in range(first + 1, last):
            _push(to, starts, moves[t], gamma[t - 1], gamma[t])
            for j in range(nodes):
                if gamma[t, j] < LEAST:
                    gamma[t, j] = 0.0


@njit(cache=True, inline="always")
def _push(to, starts, moves, values, out):
    """``out_k = sum_j values_j p(k at t | j at t-1)``."""
    out[:] = 0.0
    for j in range(len(values)):
        if values[j] != 0.0:
            for arc in range(starts[j], starts[j + 1]):
                if moves[arc] != 0.0:
                    out[to[arc]] += values[j] * moves[arc]


@njit(cache=True, inline="always")
def _pull(to, starts, gamma, moves, values, out):
    """``out_j = sum_k p(k at t | j at t-1) values_k`` of the nodes that ``gamma`` at t - 1 allows."""
    for j in range(len(gamma)):
        out[j] = 0.0
        if gamma[j] != 0.0:
            for arc in range(starts[j], starts[j + 1]):
                if moves[arc] != 0.0:
                    out[j] += moves[arc] * values[to[arc]]


@njit(cache=True)
def _response_exact(chain, gamma, moves, rates, bounds, response):
    nodes, to, starts = gamma.shape[1], chain.destination[chain.out_arc], chain.out_start
    past, next_past, ahead, here = np.empty(nodes), np.empty(nodes), np.empty(nodes), np.empty(nodes)
    for i in range(len(bounds) - 1):
        first, last = bounds[i], bounds[i + 1]
        mean = (gamma[first:last] * rates[first:last]).sum()
        past[:] = 0.0
        for t in range(first, last):
            for j in range(nodes):
                if gamma[t, j] != 0.0:
                    response[t, j] = past[j] - gamma[t, j] * mean
                    past[j] += gamma[t, j] * rates[t, j]
            if t < last - 1:
                _push(to, starts, moves[t + 1], past, next_past)
                past[:] = next_past
        here[:] = 0.0
        for t in range(last - 1, first - 1, -1):
            if t < last - 1:
                _pull(to, starts, gamma[t], moves[t + 1], ahead, here)
            for j in range(nodes):
                if gamma[t, j] != 0.0:
                    response[t, j] += gamma[t, j] * here[j]
                ahead[j] = here[j] + rates[t, j]


@njit(cache=True)
def _response_windowed(chain, gamma, moves, rates, bounds, window, response):
    nodes, to, starts = gamma.shape[1], chain.destination[chain.out_arc], chain.out_start
    now, after = np.empty(nodes), np.empty(nodes)
    for i in range(len(bounds) - 1):
        first, last = bounds[i], bounds[i + 1]
        for t in range(first, last):
            mean = 0.0
            for j in range(nodes):
                now[j] = gamma[t, j] * rates[t, j]
                mean += now[j]
            for tau in range(max(first, t - window), min(last, t + window + 1)):
                for j in range(nodes):
                    response[tau, j] -= gamma[tau, j] * mean
            for tau in range(t + 1, min(last, t + window + 1)):
                _push(to, starts, moves[tau], now, after)
                response[tau] += after
                now[:] = after
            now[:] = rates[t]
            for tau in range(t - 1, max(first, t - window) - 1, -1):
                _pull(to, starts, gamma[tau], moves[tau + 1], now, after)
                for j in range(nodes):
                    response[tau, j] += gamma[tau, j] * after[j]
                now[:] = after


@dataclass(frozen=True, eq=False)
class Occupancy:
    """Posteriors of several utterances on one chain."""

    chain: Arcs
    bounds: np.ndarray
    log_likelihoods: np.ndarray
    """[N]"""
    nodes: np.ndarray
    """gamma [T, E]"""
    moves: np.ndarray
    """[T, A]: probability of each arc, in the order of ``chain.out_arc``, into frame t given all frames and its source
    in the frame before"""

    def response(self, rates: np.ndarray, window: int | None = None) -> np.ndarray:
        """``cov(1[node k at tau], sum_t rates[t, node at t])`` over other frames t, [T, E].

        This is how the posteriors change when every log emission changes by ``rates`` [T, E], less the part of the
        frame's own rates, which mixtures need component by component ([L04] (75)). Exact in O(A T) by default; with
        ``window`` c only frames at most c away count, as [L04] 5.4 approximates, in O(A c T).
        """
        response = np.zeros_like(self.nodes)
        if window is None:
            _response_exact(self.chain, self.nodes, self.moves, rates, self.bounds, response)
        else:
            _response_windowed(self.chain, self.nodes, self.moves, rates, self.bounds, window, response)
        return response


def occupy(chain: Arcs, scores: np.ndarray, bounds: np.ndarray) -> Occupancy:
    """Posteriors of utterances ``bounds[i]:bounds[i+1]`` given state log-likelihoods ``scores`` [T, S]."""
    gamma = np.empty((len(scores), len(chain.column)))
    moves = np.empty((len(scores), len(chain.source)))
    totals = np.empty(len(bounds) - 1)
    _posteriors(chain, np.ascontiguousarray(scores), bounds, gamma, moves, totals)
    if not np.isfinite(totals).all():
        worst = int(np.flatnonzero(~np.isfinite(totals))[0])
        raise MargoError(f"utterance number {worst} ({bounds[worst + 1] - bounds[worst]} frames) has no path through a "
                         "model; leave out utterances with fewer frames than the model has states")  # fmt: skip
    return Occupancy(chain, bounds, totals, gamma, moves)

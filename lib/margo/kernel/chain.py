"""One word's hidden Markov model without null nodes: its posterior chain, and how that answers to its emissions.

Given the frames, the node sequence is a Markov chain that goes from node j at frame t to node k at frame t + 1 with
probability ``a_jk b_k(t+1) beta_k(t+1) / beta_j(t)``. The joint posterior of two nodes at two frames, which the second
derivatives need ([L04] (46), (53)), is a product of these matrices; what follows never forms it.
"""

from dataclasses import dataclass
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


@njit(cache=True, inline="always")
def _spread(log_prob, to, low, high, ahead, moves):
    """Where a node goes, ``moves`` of its arcs low:high, by what lies ahead; returns its beta. What is e^-40 of the
    best is zero."""
    best, total = -np.inf, 0.0
    for arc in range(low, high):
        best = max(best, log_prob[arc] + ahead[to[arc]])
    if best == -np.inf:
        return best
    for arc in range(low, high):
        gap = log_prob[arc] + ahead[to[arc]] - best
        moves[arc] = 1.0 if gap == 0.0 else np.exp(gap) if gap > NEGLIGIBLE else 0.0
        total += moves[arc]
    if total > 1.0:
        for arc in range(low, high):
            moves[arc] /= total
        best += np.log(total)
    return best


@njit(cache=True)
def _posteriors(chain, scores, bounds, gamma, band, moves, totals):
    """Fills ``gamma`` [T, E] with node posteriors, ``band`` [T, 2] with the first node of each frame that has some and
    the one behind the last, ``moves`` [T, A] (arcs in the order of ``chain.out_arc``) with the probability of each arc
    into frame t given all frames and its source before, of sources that have some, and ``totals`` [N].

    What is e^-40 of a frame counts as nothing, so that all that follows has few nodes a frame to look at, and no number
    too small to be fast.
    """
    to, log_prob, column = chain.destination[chain.out_arc], chain.log_prob[chain.out_arc], chain.column
    nodes, starts, start = len(column), chain.out_start, chain.start
    # log probability of a frame and all behind it; of start and end, where there is no frame, nothing
    ahead = np.full((np.diff(bounds).max(), nodes + 2), -np.inf)
    moved = np.empty(len(to))
    for i in range(len(bounds) - 1):
        first, last = bounds[i], bounds[i + 1]
        for k in range(nodes):
            ahead[last - first - 1, k] = -np.inf
        for arc in range(chain.arc_start[chain.end], chain.arc_start[chain.end + 1]):
            k = chain.source[arc]
            ahead[last - first - 1, k] = chain.log_prob[arc] + scores[last - 1, column[k]]
        for t in range(last - 2, first - 1, -1):
            here, behind = ahead[t - first], ahead[t + 1 - first]
            for k in range(nodes):
                beta = _spread(log_prob, to, starts[k], starts[k + 1], behind, moved)
                here[k] = scores[t, column[k]] + beta
        # the posterior is a Markov chain: its forward pass is a product of probabilities, with nothing to underflow
        gamma[first:last] = 0.0
        totals[i] = _spread(log_prob, to, starts[start], starts[start + 1], ahead[0], moves[first])
        if totals[i] == -np.inf:
            band[first:last] = 0
            continue
        for arc in range(starts[start], starts[start + 1]):
            gamma[first, to[arc]] = moves[first, arc]
        for t in range(first, last):
            low, high = nodes, 0
            for j in range(nodes):
                if gamma[t, j] < LEAST:
                    gamma[t, j] = 0.0
                else:
                    low, high = min(low, j), j + 1
                    if t + 1 < last:
                        _spread(log_prob, to, starts[j], starts[j + 1], ahead[t + 1 - first], moves[t + 1])
                        for arc in range(starts[j], starts[j + 1]):
                            if to[arc] < nodes:
                                gamma[t + 1, to[arc]] += gamma[t, j] * moves[t + 1, arc]
            band[t, 0], band[t, 1] = low, high


class Occupied(NamedTuple):
    """What the passes over an occupancy read, as the kernels take it; see :class:`Occupancy`."""

    gamma: np.ndarray  # [T, E]
    band: np.ndarray  # [T, 2]
    moves: np.ndarray  # [T, A]
    bounds: np.ndarray
    to: np.ndarray  # destinations of arcs, in the order of ``chain.out_arc``
    starts: np.ndarray  # where a node's arcs begin in that order


@njit(cache=True, inline="always")
def _push(occupied, t, values, out):
    """``out_k = sum_j values_j p(k at t | j at t-1)`` of the nodes that have some of both frames."""
    low, high = occupied.band[t - 1]
    out[:] = 0.0
    for j in range(low, high):
        if occupied.gamma[t - 1, j] != 0.0:
            for arc in range(occupied.starts[j], occupied.starts[j + 1]):
                move, k = occupied.moves[t, arc], occupied.to[arc]
                if move != 0.0 and occupied.gamma[t, k] != 0.0:
                    out[k] += values[j] * move


@njit(cache=True, inline="always")
def _pull(occupied, t, values, out):
    """``out_j = sum_k p(k at t+1 | j at t) values_k`` of the nodes that have some of both frames."""
    low, high = occupied.band[t]
    out[:] = 0.0
    for j in range(low, high):
        if occupied.gamma[t, j] != 0.0:
            for arc in range(occupied.starts[j], occupied.starts[j + 1]):
                move, k = occupied.moves[t + 1, arc], occupied.to[arc]
                if move != 0.0 and occupied.gamma[t + 1, k] != 0.0:
                    out[j] += move * values[k]


@njit(cache=True)
def _response_exact(occupied, rates, response):
    gamma, band, bounds = occupied.gamma, occupied.band, occupied.bounds
    nodes = gamma.shape[1]
    past, next_past, ahead, here = np.empty(nodes), np.empty(nodes), np.empty(nodes), np.empty(nodes)
    for i in range(len(bounds) - 1):
        first, last = bounds[i], bounds[i + 1]
        mean = 0.0
        for t in range(first, last):
            for j in range(band[t, 0], band[t, 1]):
                mean += gamma[t, j] * rates[t, j]
        past[:] = 0.0
        for t in range(first, last):
            for j in range(band[t, 0], band[t, 1]):
                response[t, j] = past[j] - gamma[t, j] * mean
                past[j] += gamma[t, j] * rates[t, j]
            if t < last - 1:
                _push(occupied, t + 1, past, next_past)
                past, next_past = next_past, past
        here[:] = 0.0
        for t in range(last - 1, first - 1, -1):
            if t < last - 1:
                _pull(occupied, t, ahead, here)
            for j in range(band[t, 0], band[t, 1]):
                response[t, j] += gamma[t, j] * here[j]
                ahead[j] = here[j] + rates[t, j]


@njit(cache=True)
def _response_windowed(occupied, rates, window, response):
    gamma, bounds = occupied.gamma, occupied.bounds
    nodes = gamma.shape[1]
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
                _push(occupied, tau, now, after)
                response[tau] += after
                now[:] = after
            now[:] = rates[t]
            for tau in range(t - 1, max(first, t - window) - 1, -1):
                _pull(occupied, tau, now, after)
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
    band: np.ndarray
    """[T, 2]: the first node that has some of a frame, and the one behind the last"""
    moves: np.ndarray
    """[T, A]: probability of each arc, in the order of ``chain.out_arc``, into frame t given all frames and its source
    in the frame before, for sources that have some of that frame"""

    def response(self, rates: np.ndarray, window: int | None = None) -> np.ndarray:
        """``cov(1[node k at tau], sum_t rates[t, node at t])`` over other frames t, [T, E].

        This is how the posteriors change when every log emission changes by ``rates`` [T, E], less the part of the
        frame's own rates, which mixtures need component by component ([L04] (75)). Exact in O(A T) by default; with
        ``window`` c only frames at most c away count, as [L04] 5.4 approximates, in O(A c T).
        """
        response, chain = np.zeros_like(self.nodes), self.chain
        to, starts = chain.destination[chain.out_arc], chain.out_start
        occupied = Occupied(self.nodes, self.band, self.moves, self.bounds, to, starts)
        if window is None:
            _response_exact(occupied, rates, response)
        else:
            _response_windowed(occupied, rates, window, response)
        return response


def occupy(chain: Arcs, scores: np.ndarray, bounds: np.ndarray) -> Occupancy:
    """Posteriors of utterances ``bounds[i]:bounds[i+1]`` given state log-likelihoods ``scores`` [T, S]."""
    gamma, band = np.empty((len(scores), len(chain.column))), np.empty((len(scores), 2), np.int64)
    moves, totals = np.empty((len(scores), len(chain.source))), np.empty(len(bounds) - 1)
    _posteriors(chain, np.ascontiguousarray(scores), bounds, gamma, band, moves, totals)
    if not np.isfinite(totals).all():
        worst = int(np.flatnonzero(~np.isfinite(totals))[0])
        raise MargoError(f"utterance number {worst} ({bounds[worst + 1] - bounds[worst]} frames) has no path through a "
                         "model; leave out utterances with fewer frames than the model has states")  # fmt: skip
    return Occupancy(chain, bounds, totals, gamma, band, moves)

"""One word's hidden Markov model without null nodes: its posterior chain, and how that answers to its emissions.

Given the frames, the node sequence is a Markov chain that goes from node j at frame t to node k at frame t + 1 with
probability ``a_jk b_k(t+1) beta_k(t+1) / beta_j(t)``. The joint posterior of two nodes at two frames, which the second
derivatives need ([L04] (46), (53)), is a product of these matrices; what follows never forms it.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit

from margo.errors import MargoError
from margo.model.graph import Graph


@dataclass(frozen=True, eq=False)
class Chain:
    """E emitting nodes, A arcs sorted by source.

    state int [E]: column of the state likelihoods; arc_start int [E + 1]; destination int [A]; log_prob [A];
    log_initial [E]; log_final [E].
    """

    state: np.ndarray
    arc_start: np.ndarray
    destination: np.ndarray
    log_prob: np.ndarray
    log_initial: np.ndarray
    log_final: np.ndarray


def make_chain(state, transitions, initial, final) -> Chain:
    """A chain from probabilities: transitions [E, E], initial [E], final [E] (what leaves the last frame)."""
    source, destination = np.nonzero(transitions)
    arc_start = np.concatenate([[0], np.cumsum(np.bincount(source, minlength=len(initial)))])
    with np.errstate(divide="ignore"):
        log_initial, log_final = np.log(initial), np.log(final)
    log_prob = np.log(transitions[source, destination])
    return Chain(np.asarray(state, np.int64), arc_start, destination, log_prob, log_initial, log_final)


def chain_of(graph: Graph) -> Chain:
    """The chain of a graph: null nodes are summed out, ``A + A_en (1 - A_nn)^-1 A_ne``."""
    size, emitting = graph.n_nodes, graph.n_emitting
    whole = np.zeros((size, size))
    np.add.at(whole, (graph.source, graph.destination), np.exp(graph.log_prob))
    through = np.linalg.inv(np.eye(size - emitting) - whole[emitting:, emitting:])
    leave = whole[:emitting, emitting:] @ through
    enter = through @ whole[emitting:, :emitting]
    start, end = graph.start - emitting, graph.end - emitting
    transitions = whole[:emitting, :emitting] + leave @ whole[emitting:, :emitting]
    return make_chain(graph.state, transitions, enter[start], leave[:, end])


@njit(cache=True)
def _posteriors(arc_start, destination, log_prob, log_initial, log_final, state, scores, bounds, gamma, moves, totals):
    """``gamma`` [T, E] node posteriors, ``moves`` [T, A] transition probabilities given the frames, ``totals`` [N]."""
    nodes = len(state)
    for i in range(len(bounds) - 1):
        first, last = bounds[i], bounds[i + 1]
        beta = np.full((last - first, nodes), -np.inf)
        for t in range(last - 1, first - 1, -1):
            row = t - first
            for j in range(nodes):
                if t == last - 1:
                    beta[row, j] = log_final[j]
                    continue
                best = -np.inf
                for arc in range(arc_start[j], arc_start[j + 1]):
                    k = destination[arc]
                    best = max(best, log_prob[arc] + scores[t + 1, state[k]] + beta[row + 1, k])
                if best == -np.inf:
                    continue
                total = 0.0
                for arc in range(arc_start[j], arc_start[j + 1]):
                    k = destination[arc]
                    moves[t, arc] = np.exp(log_prob[arc] + scores[t + 1, state[k]] + beta[row + 1, k] - best)
                    total += moves[t, arc]
                for arc in range(arc_start[j], arc_start[j + 1]):
                    moves[t, arc] /= total
                beta[row, j] = best + np.log(total)
        best = -np.inf
        for j in range(nodes):
            best = max(best, log_initial[j] + scores[first, state[j]] + beta[0, j])
        totals[i] = best
        if best == -np.inf:
            continue
        total = 0.0
        for j in range(nodes):
            gamma[first, j] = np.exp(log_initial[j] + scores[first, state[j]] + beta[0, j] - best)
            total += gamma[first, j]
        totals[i] = best + np.log(total)
        for j in range(nodes):
            gamma[first, j] /= total
        # the posterior is a Markov chain: its forward pass is a product of probabilities, with nothing to underflow
        for t in range(first, last - 1):
            for j in range(nodes):
                if gamma[t, j] > 0.0:
                    for arc in range(arc_start[j], arc_start[j + 1]):
                        gamma[t + 1, destination[arc]] += gamma[t, j] * moves[t, arc]


@njit(cache=True)
def _push(arc_start, destination, moves, values, out):
    """``out_k = sum_j values_j p(k at t+1 | j at t)``."""
    out[:] = 0.0
    for j in range(len(values)):
        if values[j] != 0.0:
            for arc in range(arc_start[j], arc_start[j + 1]):
                out[destination[arc]] += values[j] * moves[arc]


@njit(cache=True)
def _pull(arc_start, destination, moves, values, out):
    """``out_j = sum_k p(k at t+1 | j at t) values_k``."""
    for j in range(len(out)):
        total = 0.0
        for arc in range(arc_start[j], arc_start[j + 1]):
            total += moves[arc] * values[destination[arc]]
        out[j] = total


@njit(cache=True)
def _response_exact(arc_start, destination, gamma, moves, rates, bounds, response):
    nodes = gamma.shape[1]
    past, next_past, ahead, here = np.empty(nodes), np.empty(nodes), np.empty(nodes), np.empty(nodes)
    for i in range(len(bounds) - 1):
        first, last = bounds[i], bounds[i + 1]
        mean = (gamma[first:last] * rates[first:last]).sum()
        past[:] = 0.0
        for t in range(first, last):
            for j in range(nodes):
                response[t, j] = past[j] - gamma[t, j] * mean
                past[j] += gamma[t, j] * rates[t, j]
            if t < last - 1:
                _push(arc_start, destination, moves[t], past, next_past)
                past[:] = next_past
        here[:] = 0.0
        for t in range(last - 1, first - 1, -1):
            if t < last - 1:
                _pull(arc_start, destination, moves[t], ahead, here)
            for j in range(nodes):
                response[t, j] += gamma[t, j] * here[j]
                ahead[j] = here[j] + rates[t, j]


@njit(cache=True)
def _response_windowed(arc_start, destination, gamma, moves, rates, bounds, window, response):
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
                _push(arc_start, destination, moves[tau - 1], now, after)
                response[tau] += after
                now[:] = after
            now[:] = rates[t]
            for tau in range(t - 1, max(first, t - window) - 1, -1):
                _pull(arc_start, destination, moves[tau], now, after)
                for j in range(nodes):
                    response[tau, j] += gamma[tau, j] * after[j]
                now[:] = after


@dataclass(frozen=True, eq=False)
class Occupancy:
    """Posteriors of several utterances on one chain."""

    chain: Chain
    bounds: np.ndarray
    log_likelihoods: np.ndarray
    """[N]"""
    nodes: np.ndarray
    """gamma [T, E]"""
    moves: np.ndarray
    """[T, A]: probability of each arc given its source at t and all frames; zero at an utterance's last frame"""

    def response(self, rates: np.ndarray, window: int | None = None) -> np.ndarray:
        """``cov(1[node k at tau], sum_t rates[t, node at t])`` over other frames t, [T, E].

        This is how the posteriors change when every log emission changes by ``rates`` [T, E], less the part of the
        frame's own rates, which mixtures need component by component ([L04] (75)). Exact in O(A T) by default; with
        ``window`` c only frames at most c away count, as [L04] 5.4 approximates, in O(A c T).
        """
        response = np.zeros_like(self.nodes)
        arcs = (self.chain.arc_start, self.chain.destination)
        if window is None:
            _response_exact(*arcs, self.nodes, self.moves, rates, self.bounds, response)
        else:
            _response_windowed(*arcs, self.nodes, self.moves, rates, self.bounds, window, response)
        return response


def occupy(chain: Chain, scores: np.ndarray, bounds: np.ndarray) -> Occupancy:
    """Posteriors of utterances ``bounds[i]:bounds[i+1]`` given state log-likelihoods ``scores`` [T, S]."""
    gamma = np.zeros((len(scores), len(chain.state)))
    moves = np.zeros((len(scores), len(chain.destination)))
    totals = np.empty(len(bounds) - 1)
    _posteriors(
        chain.arc_start, chain.destination, chain.log_prob, chain.log_initial, chain.log_final, chain.state,
        np.ascontiguousarray(scores), bounds, gamma, moves, totals,
    )  # fmt: skip
    if not np.isfinite(totals).all():
        worst = int(np.flatnonzero(~np.isfinite(totals))[0])
        raise MargoError(f"utterance number {worst} ({bounds[worst + 1] - bounds[worst]} frames) has no path through a "
                         "model; leave out utterances with fewer frames than the model has states")  # fmt: skip
    return Occupancy(chain, bounds, totals, gamma, moves)

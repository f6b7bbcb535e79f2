"""Forward-backward over a graph, in the log domain.

Row r of a lattice [T + 1, n] stands for r frames consumed: an emitting node's value there includes its frame r - 1, and
null nodes of row r come behind the emitting ones. The log domain costs little here, since a term 40 nats under another
(4e-18 of it) is left out before its exponential is taken; a scaled linear domain would underflow on the sharp, long
left-to-right models this is for.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit

from margo.model.graph import Graph

NEGLIGIBLE = -40.0


@dataclass(frozen=True, eq=False)
class Posteriors:
    """log_likelihood [N] of each utterance (-inf: no path has exactly its number of frames; it then counts nowhere),
    occupancies float64 [T, L] (posterior of each label at each frame), arc_counts [A] (expected traversals)."""

    log_likelihood: np.ndarray
    occupancies: np.ndarray
    arc_counts: np.ndarray


def posteriors(
    graph: Graph,
    log_likelihoods: np.ndarray,
    bounds: np.ndarray | None = None,
    scale: float = 1.0,
    labels: np.ndarray | None = None,
    n_labels: int | None = None,
) -> Posteriors:
    """State occupancies and arc counts of one utterance, or of several that share a graph.

    ``log_likelihoods`` [T, S'] has a column for each of ``graph.states``; utterance i is rows ``bounds[i]:bounds[i+1]``
    (all of them by default). ``scale`` multiplies the log-likelihoods (kappa of MMI). Occupancies are summed by
    ``labels`` [E] of the emitting nodes: by default their state, L = S'; nodes with a negative label count nowhere.
    """
    scores = checked(graph, log_likelihoods)
    bounds = _bounds(bounds, len(scores))
    if labels is None:
        labels, n_labels = graph.state, len(graph.states)
    longest = int(np.diff(bounds).max(initial=0))
    alpha = np.empty((longest + 1, graph.n_nodes))
    occupancies = np.zeros((len(scores), n_labels))
    arc_counts = np.zeros(graph.n_arcs)
    totals = np.empty(len(bounds) - 1)
    _posteriors(
        graph.arc_start, graph.source, graph.log_prob, graph.out_start, graph.out_arc, graph.destination, graph.state,
        graph.start, graph.end, scores, bounds, scale, labels, alpha, occupancies, arc_counts, totals,
    )  # fmt: skip
    return Posteriors(totals, occupancies, arc_counts)


def forward(graph: Graph, log_likelihoods: np.ndarray, scale: float = 1.0) -> np.ndarray:
    """Log forward probabilities [T + 1, n]; the utterance's log-likelihood is ``[-1, graph.end]``."""
    scores = checked(graph, log_likelihoods)
    alpha = np.empty((len(scores) + 1, graph.n_nodes))
    _forward(graph.arc_start, graph.source, graph.log_prob, graph.state, graph.start, scores, scale, alpha)
    return alpha


def backward(graph: Graph, log_likelihoods: np.ndarray, scale: float = 1.0) -> np.ndarray:
    """Log backward probabilities [T + 1, n]; the utterance's log-likelihood is ``[0, graph.start]``."""
    scores = checked(graph, log_likelihoods)
    beta = np.empty((len(scores) + 1, graph.n_nodes))
    _backward(
        graph.out_start, graph.out_arc, graph.destination, graph.log_prob, graph.state, graph.end, scores, scale, beta
    )  # fmt: skip
    return beta


def checked(graph: Graph, log_likelihoods: np.ndarray) -> np.ndarray:
    """Likelihoods as the kernels want them, after a look at their shape."""
    scores = np.ascontiguousarray(log_likelihoods, np.float64)
    if scores.ndim != 2 or scores.shape[1] != len(graph.states):
        raise ValueError(f"log-likelihoods have shape {scores.shape}, the graph expects [T, {len(graph.states)}]")
    return scores


def _bounds(bounds, frames: int) -> np.ndarray:
    return np.array([0, frames]) if bounds is None else np.ascontiguousarray(bounds, np.int64)


@njit(cache=True, inline="always")
def _sum_terms(values, count, best):
    """log sum exp of ``values[:count]``, whose largest is ``best``."""
    total = 0.0
    for i in range(count):
        gap = values[i] - best
        if gap == 0.0:
            total += 1.0
        elif gap > NEGLIGIBLE:
            total += np.exp(gap)
    return best if total == 1.0 else best + np.log(total)


@njit(cache=True)
def _forward(arc_start, source, log_prob, state, start, scores, scale, alpha):
    emitting, nodes = len(state), len(arc_start) - 1
    values = np.empty(len(source))
    alpha[0, :emitting] = -np.inf
    for row in range(len(scores) + 1):
        for node in range(0 if row else emitting, nodes):
            before = row - 1 if node < emitting else row
            if row == 0 and node == start:
                alpha[row, node] = 0.0
                continue
            best = -np.inf
            count = 0
            for arc in range(arc_start[node], arc_start[node + 1]):
                value = alpha[before, source[arc]] + log_prob[arc]
                if value > -np.inf:
                    values[count] = value
                    count += 1
                    best = max(best, value)
            if count > 1:
                best = _sum_terms(values, count, best)
            if node < emitting:
                best += scale * scores[row - 1, state[node]]
            alpha[row, node] = best


@njit(cache=True)
def _backward_row(
    out_start, out_arc, destination, log_prob, state, end, following, scale, last, after, beta, alpha, values
):  # fmt: skip
    """Row of beta from the row ``after`` it, -inf where ``alpha`` is (no path comes there); ``values`` is scratch."""
    emitting, nodes = len(state), len(out_start) - 1
    for step in range(nodes):
        node = nodes - 1 - step
        if alpha[node] == -np.inf:
            beta[node] = -np.inf
            continue
        best = -np.inf
        count = 0
        if last and node == end:
            values[0] = best = 0.0
            count = 1
        for position in range(out_start[node], out_start[node + 1]):
            arc = out_arc[position]
            target = destination[arc]
            if target >= emitting:
                value = log_prob[arc] + beta[target]
            elif last:
                continue
            else:
                value = log_prob[arc] + scale * following[state[target]] + after[target]
            if value > -np.inf:
                values[count] = value
                count += 1
                best = max(best, value)
        beta[node] = _sum_terms(values, count, best) if count > 1 else best


@njit(cache=True)
def _backward(out_start, out_arc, destination, log_prob, state, end, scores, scale, beta):
    everywhere, values = np.zeros(beta.shape[1]), np.empty(len(out_arc) + 1)
    frames = len(scores)
    for step in range(frames + 1):
        row = frames - step
        following, after = scores[min(row, frames - 1)], beta[min(row + 1, frames)]  # not looked at in the last row
        _backward_row(
            out_start, out_arc, destination, log_prob, state, end, following, scale, step == 0, after, beta[row],
            everywhere, values,
        )  # fmt: skip


@njit(cache=True)
def _posteriors(
    arc_start, source, log_prob, out_start, out_arc, destination, state, start, end,
    all_scores, bounds, scale, labels, alpha, occupancies, arc_counts, totals,
):  # fmt: skip
    emitting, nodes = len(state), len(arc_start) - 1
    beta, after = np.empty(nodes), np.empty(nodes)
    nothing, values = np.empty(0), np.empty(len(source) + 1)
    for utterance in range(len(bounds) - 1):
        first, frames = bounds[utterance], bounds[utterance + 1] - bounds[utterance]
        scores = all_scores[first : first + frames]
        _forward(arc_start, source, log_prob, state, start, scores, scale, alpha[: frames + 1])
        total = alpha[frames, end]
        totals[utterance] = total
        if not total > -np.inf:
            continue
        for step in range(frames + 1):
            row = frames - step
            following = scores[row] if row < frames else nothing
            _backward_row(
                out_start, out_arc, destination, log_prob, state, end, following, scale, row == frames, after, beta,
                alpha[row], values,
            )  # fmt: skip
            for node in range(nodes):
                log_posterior = alpha[row, node] + beta[node] - total
                if not log_posterior > NEGLIGIBLE:
                    continue
                ahead = beta[node] - total
                before = row
                if node < emitting:
                    if labels[node] >= 0:
                        occupancies[first + row - 1, labels[node]] += np.exp(log_posterior)
                    ahead += scale * scores[row - 1, state[node]]
                    before = row - 1
                for arc in range(arc_start[node], arc_start[node + 1]):
                    value = alpha[before, source[arc]] + log_prob[arc] + ahead
                    if value > NEGLIGIBLE:
                        arc_counts[arc] += np.exp(value)
            beta, after = after, beta

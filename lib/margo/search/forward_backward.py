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
from margo.search.band import window

NEGLIGIBLE = -40.0


@dataclass(frozen=True, eq=False)
class Posteriors:
    """Of N utterances, T frames in all; one that no path fits counts nowhere."""

    log_likelihood: np.ndarray  # [N] -inf: no path has exactly its number of frames
    occupancies: np.ndarray  # [T, L] posterior of each label at each frame
    arc_counts: np.ndarray  # [A] expected traversals


def posteriors(
    graph: Graph, log_likelihoods: np.ndarray, bounds: np.ndarray | None = None, scale: float = 1.0,
    labels: np.ndarray | None = None, n_labels: int | None = None,
) -> Posteriors:  # fmt: skip
    """State occupancies and arc counts of one utterance, or of several that share a graph.

    ``log_likelihoods`` [T, S'] has a column for each of ``graph.states``; utterance i is rows ``bounds[i]:bounds[i+1]``
    (all of them by default). ``scale`` multiplies the log-likelihoods (kappa of MMI). Occupancies are summed by
    ``labels`` [E] of the emitting nodes: by default their state, L = S'; nodes with a negative label count nowhere.
    """
    scores = checked(graph, log_likelihoods)
    bounds = np.array([0, len(scores)]) if bounds is None else np.ascontiguousarray(bounds, np.int64)
    if labels is None:
        labels, n_labels = graph.arcs.column, len(graph.states)
    alpha = np.empty((int(np.diff(bounds).max(initial=0)) + 1, graph.n_nodes))
    occupancies, arc_counts = np.zeros((len(scores), n_labels)), np.zeros(graph.n_arcs)
    totals = np.empty(len(bounds) - 1)
    _posteriors(graph.arcs, scores, bounds, scale, labels, alpha, occupancies, arc_counts, totals)
    return Posteriors(totals, occupancies, arc_counts)


def checked(graph: Graph, log_likelihoods: np.ndarray) -> np.ndarray:
    """Likelihoods as the kernels want them, after a look at their shape."""
    scores = np.ascontiguousarray(log_likelihoods, np.float64)
    if scores.ndim != 2 or scores.shape[1] != len(graph.states):
        raise ValueError(f"log-likelihoods have shape {scores.shape}, the graph expects [T, {len(graph.states)}]")
    return scores


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
def forward_rows(arcs, scores, scale, alpha):
    """Fills ``alpha`` [T + 1, n] with log forward probabilities, the total at ``[-1, arcs.end]``; -inf where the graph
    says that no path can end in time."""
    arc_start, source, _, log_prob, column = arcs[:5]
    emitting, nodes, frames = len(column), len(arc_start) - 1, len(scores)
    values, ahead, behind = np.empty(len(source)), arcs.ahead, arcs.behind
    low = high = 0
    alpha[0, :emitting] = -np.inf
    for row in range(frames + 1):
        if row:
            low, high = window(ahead, behind, row, frames, low, high)
            alpha[row, :low] = alpha[row, high:emitting] = -np.inf
        for node in range(low if row else emitting, nodes):
            if high <= node < emitting:
                continue
            if row == 0 and node == arcs.start:
                alpha[row, node] = 0.0
                continue
            before = row - 1 if node < emitting else row
            best, count = -np.inf, 0
            for arc in range(arc_start[node], arc_start[node + 1]):
                value = alpha[before, source[arc]] + log_prob[arc]
                if value > -np.inf:
                    values[count] = value
                    count += 1
                    best = max(best, value)
            if count > 1:
                best = _sum_terms(values, count, best)
            if node < emitting:
                best += scale * scores[row - 1, column[node]]
            alpha[row, node] = best


@njit(cache=True)
def _backward_row(arcs, following, scale, last, after, beta, alpha, values):
    """Row of beta from the row ``after`` it, -inf where ``alpha`` is (no path comes there); ``values`` is scratch."""
    out_start, out_arc, end = arcs.out_start, arcs.out_arc, arcs.end
    destination, log_prob, column = arcs.destination, arcs.log_prob, arcs.column
    emitting, nodes = len(column), len(beta)
    for step in range(nodes):
        node = nodes - 1 - step
        if alpha[node] == -np.inf:
            beta[node] = -np.inf
            continue
        best, count = -np.inf, 0
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
                value = log_prob[arc] + scale * following[column[target]] + after[target]
            if value > -np.inf:
                values[count] = value
                count += 1
                best = max(best, value)
        beta[node] = _sum_terms(values, count, best) if count > 1 else best


@njit(cache=True)
def backward_rows(arcs, scores, scale, beta):
    """Fills ``beta`` [T + 1, n] with log backward probabilities, the total at ``[0, arcs.start]``."""
    everywhere, values = np.zeros(beta.shape[1]), np.empty(len(arcs.source) + 1)
    frames = len(scores)
    for step in range(frames + 1):
        row = frames - step
        following, after = scores[min(row, frames - 1)], beta[min(row + 1, frames)]  # not looked at in the last row
        _backward_row(arcs, following, scale, step == 0, after, beta[row], everywhere, values)


@njit(cache=True)
def _posteriors(arcs, all_scores, bounds, scale, labels, alpha, occupancies, arc_counts, totals):
    arc_start, source, _, log_prob, column = arcs[:5]
    emitting, nodes = len(column), len(arc_start) - 1
    beta, after = np.empty(nodes), np.empty(nodes)
    nothing, values = np.empty(0), np.empty(len(source) + 1)
    for utterance in range(len(bounds) - 1):
        first, frames = bounds[utterance], bounds[utterance + 1] - bounds[utterance]
        scores = all_scores[first : first + frames]
        forward_rows(arcs, scores, scale, alpha[: frames + 1])
        total = alpha[frames, arcs.end]
        totals[utterance] = total
        if not total > -np.inf:
            continue
        for step in range(frames + 1):
            row = frames - step
            following = scores[row] if row < frames else nothing
            _backward_row(arcs, following, scale, row == frames, after, beta, alpha[row], values)
            for node in range(nodes):
                log_posterior = alpha[row, node] + beta[node] - total
                if not log_posterior > NEGLIGIBLE:
                    continue
                ahead, before = beta[node] - total, row
                if node < emitting:
                    if labels[node] >= 0:
                        occupancies[first + row - 1, labels[node]] += np.exp(log_posterior)
                    ahead += scale * scores[row - 1, column[node]]
                    before = row - 1
                for arc in range(arc_start[node], arc_start[node + 1]):
                    value = alpha[before, source[arc]] + log_prob[arc] + ahead
                    if value > NEGLIGIBLE:
                        arc_counts[arc] += np.exp(value)
            beta, after = after, beta

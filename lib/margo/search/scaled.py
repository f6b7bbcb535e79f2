"""Forward-backward in the linear domain, rescaled at every frame: many times faster than the log domain, and as good
where likelihoods are flattened by a small acoustic scale, as in MMI.

Without the logarithm a path that falls some 700 nats behind the best of its frame is lost. If a lost path would have
mattered the two passes disagree on the total; utterances where they do are done again in the log domain by
:func:`margo.search.forward_backward.posteriors`, so results never depend on the domain.
"""

import numpy as np
from numba import njit

from margo.model.graph import Graph
from margo.search.band import back_over_frame, back_over_nulls, band
from margo.search.viterbi import viterbi_score

TINY = 1e-280  # forward probabilities under this, relative to their frame, are zero: no slow denormal numbers
AGREEMENT = 1e-6


def scaled_posteriors(
    graph: Graph,
    likelihoods: np.ndarray,
    bounds: np.ndarray,
    wanted: np.ndarray,
    occupancies: np.ndarray,
    counts: np.ndarray | None = None,
    labels: np.ndarray | None = None,
) -> np.ndarray:
    """Log totals [N] of the ``wanted`` (bool [N]) of some utterances, rows ``bounds[i]:bounds[i + 1]`` of the rest.

    Posteriors go into ``occupancies`` [T, L], summed by ``labels`` int [E] of the emitting nodes, all from 0 to L - 1
    (by default their columns, L = S'); expected traversals are added to ``counts`` [A] where given. ``likelihoods``
    [T, S'] are linear, scaled as suits each frame. A total is NaN where the linear domain lost a path that matters,
    -inf where there is no path: then the occupancies are zero, and nothing was counted. Of utterances that are not
    wanted, occupancies are not touched, and the total is NaN.
    """
    totals = np.full(len(bounds) - 1, np.nan)
    labels = graph.arcs.column if labels is None else np.ascontiguousarray(labels, np.int64)
    counts = np.empty(0) if counts is None else counts
    lost = _scaled_each(graph.arcs, likelihoods, bounds, wanted, labels, occupancies, counts, totals)
    for i in np.flatnonzero(wanted & np.isnan(totals)) if lost else ():
        if not viterbi_score(graph, np.zeros((bounds[i + 1] - bounds[i], likelihoods.shape[1]))) > -np.inf:
            totals[i] = -np.inf  # no path at all
    return totals


@njit(cache=True)
def _scaled_each(arcs, likelihoods, bounds, wanted, labels, occupancies, counts, totals):
    """Fills totals and occupancies; returns of how many there is no total."""
    longest = lost = 0
    for i in range(len(totals)):
        longest = max(longest, bounds[i + 1] - bounds[i] if wanted[i] else 0)
    alpha = np.zeros((longest + 1, len(arcs.arc_start) - 1))
    for i in range(len(totals)):
        if wanted[i]:
            own = occupancies[bounds[i] : bounds[i + 1]]
            totals[i] = _scaled(arcs, likelihoods[bounds[i] : bounds[i + 1]], labels, own, counts, alpha)
            if np.isnan(totals[i]):
                own[:] = 0.0
                lost += 1
    return lost


@njit(cache=True, fastmath={"reassoc", "contract"})  # sums over nodes in any order: as vectors
def _scaled(arcs, likelihoods, labels, occupancies, counts, alpha):
    """Log total, NaN where a path was lost or there is none; then nothing is added to ``counts`` [A or 0].

    ``alpha`` [T + 1 or more, n] is scratch, emitting nodes of its first row zero.
    """
    arc_start, source, destination, _, column, prob = arcs[:6]
    frames, emitting, nodes = len(likelihoods), len(column), len(arc_start) - 1
    stay, step, rest = band(prob, arcs.stay_arc, 0.0), band(prob, arcs.step_arc, 0.0), arcs.rest
    scale = np.ones(frames + 1)
    log_total = 0.0
    for row in range(frames + 1):
        now = alpha[row]
        if row:
            before, emit = alpha[row - 1], likelihoods[row - 1]
            now[0] = before[0] * stay[0]
            for node in range(1, emitting):
                now[node] = before[node] * stay[node] + before[node - 1] * step[node]
            for arc in rest:
                now[destination[arc]] += before[source[arc]] * prob[arc]
            total = 0.0
            for node in range(emitting):
                value = now[node] * emit[column[node]]
                now[node] = value
                total += value
            if not total > 0.0:
                return np.nan
            factor = 1.0 / total
            scale[row] = factor
            log_total += np.log(total)
            for node in range(emitting):
                value = now[node] * factor
                now[node] = value if value > TINY else 0.0
        for node in range(emitting, nodes):
            value = 1.0 if row == 0 and node == arcs.start else 0.0
            for arc in range(arc_start[node], arc_start[node + 1]):
                value += now[source[arc]] * prob[arc]
            now[node] = value
    if not alpha[frames, arcs.end] > 0.0:
        return np.nan
    beta, ahead = np.zeros(nodes), np.zeros(emitting)
    counted, tally, stayed, stepped = len(counts) > 0, np.zeros(len(counts)), np.zeros(emitting), np.zeros(emitting)
    beta[arcs.end] = 1.0 / alpha[frames, arcs.end]
    for back in range(frames + 1):
        row = frames - back
        now = alpha[row]
        back_over_nulls(arc_start, source, prob, emitting, beta, False)
        if counted:
            for arc in range(arc_start[emitting], len(source)):
                tally[arc] += now[source[arc]] * prob[arc] * beta[destination[arc]]
        if row == 0:
            break
        emit, factor, occupied = likelihoods[row - 1], scale[row], occupancies[row - 1]
        occupied[:] = 0.0
        for node in range(emitting):
            occupied[labels[node]] += now[node] * beta[node]
        for node in range(emitting):
            ahead[node] = beta[node] * emit[column[node]] * factor
        back_over_frame(source, destination, prob, rest, stay, step, ahead, beta, False)
        if counted:
            before = alpha[row - 1]
            for node in range(emitting):
                stayed[node] += before[node] * stay[node] * ahead[node]
            for node in range(1, emitting):
                stepped[node] += before[node - 1] * step[node] * ahead[node]
            for arc in rest:
                tally[arc] += before[source[arc]] * prob[arc] * ahead[destination[arc]]
    if not abs(beta[arcs.start] - 1.0) < AGREEMENT:
        return np.nan
    if counted:
        for arc in range(len(counts)):
            counts[arc] += tally[arc]
        for node in range(emitting):
            if arcs.stay_arc[node] >= 0:
                counts[arcs.stay_arc[node]] += stayed[node]
            if arcs.step_arc[node] >= 0:
                counts[arcs.step_arc[node]] += stepped[node]
    return log_total + np.log(alpha[frames, arcs.end])

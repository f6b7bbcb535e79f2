"""Forward-backward in the linear domain, rescaled at every frame: many times faster than the log domain, and as good
where likelihoods are flattened by a small acoustic scale, as in MMI.

Without the logarithm a path that falls some 700 nats behind the best of its frame is lost. If a lost path would have
mattered the two passes disagree on the total; utterances where they do are done again in the log domain by
:func:`margo.search.forward_backward.posteriors`, so results never depend on the domain.
"""

import numpy as np
from numba import njit

from margo.search.network import Network

TINY = 1e-280  # forward probabilities under this, relative to their frame, are zero: no slow denormal numbers
AGREEMENT = 1e-6


def scaled_posteriors(
    net: Network,
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
    _scaled_each(
        net.arc_start, net.source, net.destination, net.prob, net.column, net.start, net.end, net.stay, net.step,
        net.stay_arc, net.step_arc, net.rest, net.column if labels is None else np.ascontiguousarray(labels, np.int64),
        likelihoods, bounds, wanted, occupancies, np.empty(0) if counts is None else counts, counts is not None, totals,
    )  # fmt: skip
    return totals


@njit(cache=True)
def _scaled_each(
    arc_start, source, destination, prob, column, start, end, stay, step, stay_arc, step_arc, rest, labels, likelihoods,
    bounds, wanted, occupancies, counts, counted, totals,
):  # fmt: skip
    longest = 0
    for i in range(len(totals)):
        longest = max(longest, bounds[i + 1] - bounds[i] if wanted[i] else 0)
    alpha = np.zeros((longest + 1, len(arc_start) - 1))
    emission = np.empty((longest, len(column)))
    for i in range(len(totals)):
        if wanted[i]:
            own = occupancies[bounds[i] : bounds[i + 1]]
            totals[i] = _scaled(
                arc_start, source, destination, prob, column, start, end, stay, step, stay_arc, step_arc, rest, labels,
                likelihoods[bounds[i] : bounds[i + 1]], own, counts, counted, alpha, emission,
            )  # fmt: skip
            if not totals[i] > -np.inf:
                own[:] = 0.0


@njit(cache=True, fastmath={"reassoc", "contract"})  # sums over nodes in any order: as vectors
def _scaled(
    arc_start, source, destination, prob, column, start, end, stay, step, stay_arc, step_arc, rest, labels,
    likelihoods, occupancies, counts, wanted, alpha, emission,
):  # fmt: skip
    """Scratch: ``alpha`` [T + 1 or more, n], emitting nodes of the first row zero; ``emission`` [T or more, E]."""
    frames, emitting, nodes = len(likelihoods), len(column), len(arc_start) - 1
    scale = np.ones(frames + 1)
    log_total = 0.0
    for row in range(frames + 1):
        now = alpha[row]
        if row:
            before, emit = alpha[row - 1], emission[row - 1]
            for node in range(emitting):
                emit[node] = likelihoods[row - 1, column[node]]
            now[0] = before[0] * stay[0]
            for node in range(1, emitting):
                now[node] = before[node] * stay[node] + before[node - 1] * step[node]
            for arc in rest:
                now[destination[arc]] += before[source[arc]] * prob[arc]
            total = 0.0
            for node in range(emitting):
                value = now[node] * emit[node]
                now[node] = value
                total += value
            if not total > 0.0:
                return -np.inf if _short(arc_start, source, emitting, start, end, frames) else np.nan
            factor = 1.0 / total
            scale[row] = factor
            log_total += np.log(total)
            for node in range(emitting):
                value = now[node] * factor
                now[node] = value if value > TINY else 0.0
        for node in range(emitting, nodes):
            value = 1.0 if row == 0 and node == start else 0.0
            for arc in range(arc_start[node], arc_start[node + 1]):
                value += now[source[arc]] * prob[arc]
            now[node] = value
    if not alpha[frames, end] > 0.0:
        return -np.inf if _short(arc_start, source, emitting, start, end, frames) else np.nan
    beta, ahead = np.zeros(nodes), np.zeros(emitting)
    tally = np.zeros(len(source) if wanted else 0)
    beta[end] = 1.0 / alpha[frames, end]
    for back in range(frames + 1):
        row = frames - back
        for up in range(nodes - emitting):
            node = nodes - 1 - up
            if beta[node] == 0.0:
                continue
            for arc in range(arc_start[node], arc_start[node + 1]):
                beta[source[arc]] += prob[arc] * beta[node]
                if wanted:
                    tally[arc] += alpha[row, source[arc]] * prob[arc] * beta[node]
        if row == 0:
            break
        now, emit, factor = alpha[row], emission[row - 1], scale[row]
        occupied = occupancies[row - 1]
        occupied[:] = 0.0
        for node in range(emitting):
            occupied[labels[node]] += now[node] * beta[node]
        for node in range(emitting):
            ahead[node] = beta[node] * emit[node] * factor
        for node in range(emitting - 1):
            beta[node] = ahead[node] * stay[node] + ahead[node + 1] * step[node + 1]
        beta[emitting - 1] = ahead[emitting - 1] * stay[emitting - 1]
        for node in range(emitting, nodes):
            beta[node] = 0.0
        for arc in rest:
            beta[source[arc]] += ahead[destination[arc]] * prob[arc]
        if wanted:
            before = alpha[row - 1]
            for node in range(emitting):
                if stay_arc[node] >= 0:
                    tally[stay_arc[node]] += before[node] * stay[node] * ahead[node]
                if step_arc[node] >= 0:
                    tally[step_arc[node]] += before[node - 1] * step[node] * ahead[node]
            for arc in rest:
                tally[arc] += before[source[arc]] * prob[arc] * ahead[destination[arc]]
    if not abs(beta[start] - 1.0) < AGREEMENT:
        return np.nan
    if wanted:
        counts += tally
    return log_total + np.log(alpha[frames, end])


@njit(cache=True)
def _short(arc_start, source, emitting, start, end, frames):
    """Whether no path has exactly ``frames`` frames, whatever the likelihoods."""
    nodes = len(arc_start) - 1
    now, before = np.zeros(nodes, np.bool_), np.zeros(nodes, np.bool_)
    for row in range(frames + 1):
        now, before = before, now
        for node in range(nodes):
            reached = row == 0 and node == start
            origin = before if node < emitting else now
            for arc in range(arc_start[node], arc_start[node + 1]):
                reached = reached or origin[source[arc]]
            now[node] = reached and (row > 0 or node >= emitting)
    return not now[end]

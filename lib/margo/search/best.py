"""Kernels of the best path: scores and arcs of a row of nodes from those of the row before, and the way back."""

import numpy as np
from numba import njit

from margo.search.band import band, window


@njit(cache=True)
def best_path(arcs, scores, back):
    """Score of the best path; ``back`` [T + 1, n] receives the best arc into every node that a path can be in."""
    return _best(arcs, scores, 0, len(scores), np.full(len(arcs.arc_start) - 1, -np.inf), back, True)


@njit(cache=True)
def best_score(arcs, scores):
    """The score alone, in less time."""
    values = np.full(len(arcs.arc_start) - 1, -np.inf)
    return _best(arcs, scores, 0, len(scores), values, np.empty((0, 0), np.int32), False)


@njit(cache=True)
def move(arcs, scores, first, frames, values, back, pointers):
    """Takes ``values`` [n] after ``first`` of ``frames`` frames (-inf before all) on over ``scores``; with ``pointers``
    ``back`` is as in :func:`best_path`, but of the first row only where nothing came before it."""
    if pointers:
        _best(arcs, scores, first, frames, values, back, True)
    else:
        _best(arcs, scores, first, frames, values, back, False)


@njit(cache=True, inline="always")
def _best(arcs, scores, first, frames, values, back, pointers):
    arc_start, source, destination, log_prob, column = arcs[:5]
    stay_arc, step_arc, rest, ahead, behind = arcs[-7:-2]
    emitting, nodes = len(column), len(arc_start) - 1
    stay, step = band(log_prob, stay_arc, -np.inf), band(log_prob, step_arc, -np.inf)
    now, before = values, np.full(nodes, -np.inf)
    arc_into = np.empty(nodes, np.int32)
    low, high = window(ahead, behind, first, frames, 0, 0) if first else (0, 0)
    stale = low
    for row in range(first + (first > 0), first + len(scores) + 1):
        if pointers:
            arc_into = back[row - first]
        if row:
            now, before = before, now
            last_low = low
            low, high = window(ahead, behind, row, frames, low, high)
            now[stale:low] = -np.inf  # left from two rows ago
            stale = last_low
            if low == 0 and high > 0:
                now[0] = before[0] + stay[0]
                if pointers:
                    arc_into[0] = stay_arc[0]
            one = max(low, 1)
            if high > one:
                _stay_or_step(stay[one:high], step[one:high], before[one - 1 : high], now[one:high], stay_arc[one:high],
                              step_arc[one:high], arc_into[one:high], pointers)  # fmt: skip
            for arc in rest:
                node = destination[arc]
                if low <= node < high:
                    value = before[source[arc]] + log_prob[arc]
                    if value > now[node] or (pointers and value == now[node] and arc < arc_into[node]):
                        now[node] = value
                        if pointers:
                            arc_into[node] = arc
            frame, inside, columns = scores[row - 1 - first], now[low:high], column[low:high]
            for node in range(len(inside)):
                inside[node] += frame[columns[node]]
        for node in range(emitting, nodes):
            best, choice = 0.0 if row == 0 and node == arcs.start else -np.inf, -1
            for arc in range(arc_start[node], arc_start[node + 1]):
                value = now[source[arc]] + log_prob[arc]
                if value > best:
                    best, choice = value, arc
            now[node] = best
            if pointers:
                arc_into[node] = choice
    if len(scores) % 2:
        values[:] = now
    return now[arcs.end]


@njit(cache=True, inline="always")
def _stay_or_step(stay, step, before, now, stay_arc, step_arc, arc_into, pointers):
    """Some nodes in a row from those and the one before them in the row ``before``, as vectors."""
    for node in range(len(now)):
        stays, steps = before[node + 1] + stay[node], before[node] + step[node]
        now[node] = stays if stays > steps else steps
        if pointers:
            arc_into[node] = stay_arc[node] if stays > steps else step_arc[node]


@njit(cache=True)
def trace(arcs, back, node, whole):
    """``(arcs, node)``: the arcs of the best path to ``node`` in the last row of ``back``, and where they come from in
    the first one; from the start if ``whole``."""
    last = node
    path, emitting = np.empty(0, np.int64), len(arcs.column)
    count = 0
    for fill in range(2):  # count, then write
        if fill:
            path = np.empty(count, np.int64)
        row, node = len(back) - 1, last
        while row > 0 or whole and node != arcs.start:
            arc = back[row, node]
            if node < emitting:
                row -= 1
            if fill:
                count -= 1
                path[count] = arc
            else:
                count += 1
            node = arcs.source[arc]
    return path, node

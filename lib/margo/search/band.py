"""What recursions over :class:`margo.model.graph.Arcs` share, as numba functions that become part of their callers.

Where a sum of probabilities or a maximum of their logarithms will do, most arcs are done as two vectors (to stay, to
step on by one); sums of logarithms go arc by arc (:mod:`margo.search.forward_backward`).
"""

import numpy as np
from numba import njit


@njit(cache=True, inline="always")
def band(values, arc_of_node, nothing):
    """``values`` [A] of the arcs ``arc_of_node`` [E], ``nothing`` where there is none."""
    vector = np.full(len(arc_of_node), nothing)
    for node in range(len(vector)):
        if arc_of_node[node] >= 0:
            vector[node] = values[arc_of_node[node]]
    return vector


@njit(cache=True, inline="always")
def window(ahead, behind, row, frames, low, high):
    """``(low, high)`` after ``row`` of ``frames`` frames, from those of the row before (0, 0 at first): emitting nodes
    outside ``low .. high - 1`` cannot be reached by then, or cannot end in time."""
    while low < len(behind) and behind[low] > frames - row:
        low += 1
    while high < len(ahead) and ahead[high] <= row:
        high += 1
    return low, high


@njit(cache=True, inline="always")
def back_over_frame(source, destination, weights, rest, stay, step, onward, beta, best):
    """``beta`` [n] over arcs into emitting nodes, from what each of these leads to, ``onward`` [E].

    Weights [A], stay and step [E] are logarithms where the ``best`` path counts, probabilities where all do.
    """
    emitting = len(onward)
    if best:
        for node in range(emitting - 1):
            stays, steps = onward[node] + stay[node], onward[node + 1] + step[node + 1]
            beta[node] = stays if stays > steps else steps
        beta[emitting - 1] = onward[emitting - 1] + stay[emitting - 1]
    else:
        for node in range(emitting - 1):
            beta[node] = onward[node] * stay[node] + onward[node + 1] * step[node + 1]
        beta[emitting - 1] = onward[emitting - 1] * stay[emitting - 1]
    for node in range(emitting, len(beta)):
        beta[node] = -np.inf if best else 0.0
    for arc in rest:
        if best:
            beta[source[arc]] = max(beta[source[arc]], onward[destination[arc]] + weights[arc])
        else:
            beta[source[arc]] += onward[destination[arc]] * weights[arc]


@njit(cache=True, inline="always")
def back_over_nulls(arc_start, source, weights, emitting, beta, best):
    """The same over arcs into null nodes, within a row."""
    nodes = len(beta)
    for up in range(nodes - emitting):
        node = nodes - 1 - up
        if beta[node] == (-np.inf if best else 0.0):
            continue
        for arc in range(arc_start[node], arc_start[node + 1]):
            if best:
                beta[source[arc]] = max(beta[source[arc]], weights[arc] + beta[node])
            else:
                beta[source[arc]] += weights[arc] * beta[node]

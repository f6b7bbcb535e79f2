"""Forward-backward in the linear domain, rescaled at every frame: many times faster than the log domain, and as good
where likelihoods are flattened by a small acoustic scale, as in MMI.

Without the logarithm a path that falls some 700 nats behind the best of its frame is lost. If a lost path would have
mattered the two passes disagree on the total; utterances where they do are done again in the log domain by
:func:`margo.search.forward_backward.posteriors`, so results never depend on the domain.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit

from margo.model.graph import Graph
from margo.search.strings import StringTable, string_chain

TINY = 1e-280  # forward probabilities under this, relative to their frame, are zero: no slow denormal numbers
AGREEMENT = 1e-6


@dataclass(frozen=True, eq=False)
class Network:
    """What the kernel needs of a graph: arcs sorted by destination, emitting nodes first, null nodes in order.

    arc_start int [n + 1], source int [A], prob [A], column int [E], start, end; transition int [A] (-1: none). Most
    arcs into an emitting node come from itself or the one before: these are also two vectors, stay and step [E], with
    the numbers of their arcs (stay_arc, step_arc int [E], -1: none); other arcs into emitting nodes are listed in
    ``rest``.
    """

    arc_start: np.ndarray
    source: np.ndarray
    destination: np.ndarray
    prob: np.ndarray
    column: np.ndarray
    transition: np.ndarray
    start: int
    end: int
    stay: np.ndarray
    step: np.ndarray
    stay_arc: np.ndarray
    step_arc: np.ndarray
    rest: np.ndarray


def network(graph: Graph) -> Network:
    """The kernel's view of a graph; columns are those of ``graph.states``."""
    return _network(graph.arc_start, graph.source, np.exp(graph.log_prob), graph.state, graph.transition, graph.start,
                    graph.end)  # fmt: skip


def _network(arc_start, source, prob, column, transition, start: int, end: int) -> Network:
    emitting = len(column)
    destination = np.repeat(np.arange(len(arc_start) - 1), np.diff(arc_start))
    arcs = np.arange(arc_start[emitting])
    vectors = []
    for back in (0, 1):
        mine = arcs[source[arcs] == destination[arcs] - back]
        number, value = np.full(emitting, -1), np.zeros(emitting)
        number[destination[mine]] = mine
        value[destination[mine]] = prob[mine]
        vectors.append((value, number))
    (stay, stay_arc), (step, step_arc) = vectors
    listed = np.zeros(len(arcs), bool)
    listed[stay_arc[stay_arc >= 0]] = listed[step_arc[step_arc >= 0]] = True
    return Network(arc_start, source, destination, prob, column, transition, start, end, stay, step, stay_arc, step_arc,
                   arcs[~listed])  # fmt: skip


def string_network(table: StringTable, string) -> Network:
    """The chain of a string (tuple of word indices): :func:`margo.model.graph.align_graph` without its cost."""
    chain = np.array(string_chain(table, string), np.int64)
    begin, end = table.state_start[chain], table.state_start[chain + 1]
    nodes = int((end - begin).sum())
    arcs = int((table.arc_start[end + chain + 1] - table.arc_start[begin + chain]).sum())
    arcs += int((chain == table.silence).sum())
    arc_start, column = np.zeros(nodes + len(chain) + 2, np.int64), np.empty(nodes, np.int64)
    source, transition, prob = np.empty(arcs, np.int64), np.empty(arcs, np.int64), np.empty(arcs)
    _link(table.state_start, table.columns, table.arc_start, table.source, table.log_prob, table.transition,
          table.silence, chain, arc_start, source, prob, transition, column)  # fmt: skip
    return _network(arc_start, source, prob, column, transition, nodes, nodes + len(chain))


def scaled_posteriors(
    net: Network,
    likelihoods: np.ndarray,
    bounds: np.ndarray,
    wanted: np.ndarray,
    occupancies: np.ndarray,
    counts: np.ndarray | None = None,
) -> np.ndarray:
    """Log totals [N] of the ``wanted`` (bool [N]) of some utterances, rows ``bounds[i]:bounds[i + 1]`` of the rest.

    Posteriors are added to ``occupancies`` [T, S'], and expected traversals to ``counts`` [A] where given.
    ``likelihoods`` [T, S'] are linear, scaled as suits each frame. A total is NaN where the linear domain lost a path
    that matters, or the utterance was not wanted: then nothing was added; -inf where there is no path.
    """
    totals = np.full(len(bounds) - 1, np.nan)
    _scaled_each(
        net.arc_start, net.source, net.destination, net.prob, net.column, net.start, net.end, net.stay, net.step,
        net.stay_arc, net.step_arc, net.rest, likelihoods, bounds, wanted, occupancies,
        np.empty(0) if counts is None else counts, counts is not None, totals,
    )  # fmt: skip
    return totals


@njit(cache=True)
def _scaled_each(
    arc_start, source, destination, prob, column, start, end, stay, step, stay_arc, step_arc, rest, likelihoods, bounds,
    wanted, occupancies, counts, counted, totals,
):  # fmt: skip
    for i in range(len(totals)):
        if wanted[i]:
            totals[i] = _scaled(
                arc_start, source, destination, prob, column, start, end, stay, step, stay_arc, step_arc, rest,
                likelihoods[bounds[i] : bounds[i + 1]], occupancies[bounds[i] : bounds[i + 1]], counts, counted,
            )  # fmt: skip


@njit(cache=True)
def _link(
    state_start, columns, unit_arc_start, unit_source, log_prob, unit_transition, silence, chain, arc_start, source,
    prob, transition, column,
):  # fmt: skip
    """Arcs into the emitting nodes of all links, then into joints: joint 0 is the start, joint l lies behind link l."""
    nodes = len(column)
    node = arc = 0
    for link in range(len(chain)):
        unit, base = chain[link], node
        for j in range(state_start[unit + 1] - state_start[unit]):
            place = state_start[unit] + unit + j
            for a in range(unit_arc_start[place], unit_arc_start[place + 1]):
                source[arc] = nodes + link if unit_source[a] == 0 else base + unit_source[a] - 1
                prob[arc], transition[arc] = np.exp(log_prob[a]), unit_transition[a]
                arc += 1
            column[node] = columns[state_start[unit] + j]
            node += 1
            arc_start[node] = arc
    arc_start[nodes + 1] = arc
    base = 0
    for link in range(len(chain)):
        unit = chain[link]
        if unit == silence:
            source[arc], prob[arc], transition[arc] = nodes + link, 1.0, -1
            arc += 1
        place = state_start[unit + 1] + unit
        for a in range(unit_arc_start[place], unit_arc_start[place + 1]):
            source[arc] = nodes + link if unit_source[a] == 0 else base + unit_source[a] - 1
            prob[arc], transition[arc] = np.exp(log_prob[a]), unit_transition[a]
            arc += 1
        base += state_start[unit + 1] - state_start[unit]
        arc_start[nodes + link + 2] = arc


@njit(cache=True)
def _scaled(
    arc_start, source, destination, prob, column, start, end, stay, step, stay_arc, step_arc, rest, likelihoods,
    occupancies, counts, wanted,
):  # fmt: skip
    frames, emitting, nodes = len(likelihoods), len(column), len(arc_start) - 1
    alpha = np.zeros((frames + 1, nodes))
    scale = np.ones(frames + 1)
    log_total = 0.0
    for row in range(frames + 1):
        now = alpha[row]
        if row:
            before = alpha[row - 1]
            for node in range(emitting):
                now[node] = before[node] * stay[node]
            for node in range(1, emitting):
                now[node] += before[node - 1] * step[node]
            for arc in rest:
                now[destination[arc]] += before[source[arc]] * prob[arc]
            total = 0.0
            for node in range(emitting):
                now[node] *= likelihoods[row - 1, column[node]]
                total += now[node]
            if not total > 0.0:
                return -np.inf if _short(arc_start, source, emitting, start, end, frames) else np.nan
            scale[row] = 1.0 / total
            log_total += np.log(total)
            for node in range(emitting):
                value = now[node] * scale[row]
                now[node] = value if value > TINY else 0.0
        for node in range(emitting, nodes):
            value = 1.0 if row == 0 and node == start else 0.0
            for arc in range(arc_start[node], arc_start[node + 1]):
                value += now[source[arc]] * prob[arc]
            now[node] = value
    if not alpha[frames, end] > 0.0:
        return -np.inf if _short(arc_start, source, emitting, start, end, frames) else np.nan
    beta, ahead = np.zeros(nodes), np.zeros(emitting)
    gammas = np.zeros((frames, occupancies.shape[1]))
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
        for node in range(emitting):
            gammas[row - 1, column[node]] += alpha[row, node] * beta[node]
            ahead[node] = beta[node] * likelihoods[row - 1, column[node]] * scale[row]
        for node in range(emitting):
            beta[node] = ahead[node] * stay[node]
        for node in range(emitting, nodes):
            beta[node] = 0.0
        for node in range(1, emitting):
            beta[node - 1] += ahead[node] * step[node]
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
    occupancies += gammas
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

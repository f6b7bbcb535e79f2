"""A graph as the vectorised kernels see it: forward-backward in the linear domain, and scores of best paths."""

from dataclasses import dataclass

import numpy as np
from numba import njit

from margo.model.graph import Graph
from margo.search.strings import StringTable, string_chain


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

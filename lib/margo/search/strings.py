"""Forced alignment of many word strings with the same frames, without compiling a graph for each.

A string's model is a chain of units, silence optional at both ends and between words: the best path through it is
found by a kernel that walks the chain, with the result that :func:`margo.search.viterbi.align` has on
:func:`margo.model.graph.align_graph`. Competing strings are many and short-lived, and compiling their graphs would cost
more than searching them.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit

from margo.model.hmm import HmmSet


@dataclass(frozen=True, eq=False)
class StringTable:
    """The units of a set as flat arrays.

    state_start int [U + 1], states int32 [E], columns int32 [E]: pool state of each emitting state and its column in
    the likelihoods; arc_start int [E + U + 1]: arcs into each emitting state, and behind those of unit u (place
    ``state_start[u + 1] + u``) into its exit; source int32 [A] (0 the unit's entry, i its i-th state), log_prob [A],
    transition int32 [A]. ahead, behind int32 [E]: fewest frames from the unit's entry to a state, its own included, and
    from there to the exit; fewest int32 [U]: through the unit. word_units: units of each word; silence: its unit or -1.
    """

    state_start: np.ndarray
    states: np.ndarray
    columns: np.ndarray
    arc_start: np.ndarray
    source: np.ndarray
    log_prob: np.ndarray
    transition: np.ndarray
    ahead: np.ndarray
    behind: np.ndarray
    fewest: np.ndarray
    word_units: tuple[tuple[int, ...], ...]
    silence: int


@dataclass(frozen=True, eq=False)
class Alignments:
    """scores [P] (-inf where the frames are too few), states int32 [P, T], constants [P] (sum of the log transitions),
    transitions: for each string the indices of those taken."""

    scores: np.ndarray
    states: np.ndarray
    constants: np.ndarray
    transitions: list[np.ndarray]


def string_table(hmms: HmmSet, columns: np.ndarray) -> StringTable:
    """``columns`` int [S']: the pool states that the columns of the likelihoods stand for (``graph.states``)."""
    column_of = np.full(hmms.pool.n_states, -1)
    column_of[columns] = np.arange(len(columns))
    sources, logs, indices, counts, lengths = [], [], [], [], []
    for unit, offset in zip(hmms.units, hmms.transition_offsets):
        size = unit.n_states + 2
        for column in range(1, size):
            rows = np.flatnonzero(unit.log_transitions[:, column] > -np.inf)
            sources.append(rows)
            logs.append(unit.log_transitions[rows, column])
            indices.append(offset + rows * size + column)
            counts.append(len(rows))
        lengths.append(_fewest_frames(unit.log_transitions > -np.inf))
    states = np.concatenate([unit.states for unit in hmms.units])
    return StringTable(
        state_start=np.concatenate([[0], np.cumsum([unit.n_states for unit in hmms.units])]).astype(np.int64),
        states=states.astype(np.int32),
        columns=column_of[states].astype(np.int32),
        arc_start=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        source=np.concatenate(sources).astype(np.int32),
        log_prob=np.concatenate(logs),
        transition=np.concatenate(indices).astype(np.int32),
        ahead=np.concatenate([ahead for ahead, _, _ in lengths]).astype(np.int32),
        behind=np.concatenate([behind for _, behind, _ in lengths]).astype(np.int32),
        fewest=np.array([fewest for _, _, fewest in lengths], np.int32),
        word_units=tuple(tuple(hmms.unit_index[name] for name in names) for names in hmms.lexicon.values()),
        silence=-1 if hmms.silence is None else hmms.unit_index[hmms.silence],
    )


def _fewest_frames(possible: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """``(ahead[N], behind[N], fewest)`` of a unit with ``possible`` transitions bool [N + 2, N + 2]."""
    size = len(possible)
    never = size + 1
    costs = np.where(possible, 1, never)  # an arc into a state takes its frame,
    costs[:, -1] = np.where(possible[:, -1], 0, never)  # into the exit none
    ahead, behind = np.full(size, never), np.full(size, never)
    ahead[0] = behind[-1] = 0
    for _ in range(size):
        ahead = np.minimum(ahead, (ahead[:, None] + costs).min(axis=0))
        behind = np.minimum(behind, (costs + behind).min(axis=1))
    return ahead[1:-1], behind[1:-1], int(ahead[-1])


def align_strings(table: StringTable, strings, log_likelihoods: np.ndarray) -> Alignments:
    """Best path of each of ``strings`` (tuples of word indices) through ``log_likelihoods`` [T, S']."""
    chains = [string_chain(table, string) for string in strings]
    start = np.concatenate([[0], np.cumsum([len(chain) for chain in chains])]).astype(np.int64)
    units = np.concatenate(chains).astype(np.int64)
    frames, paths = len(log_likelihoods), len(strings)
    states = np.empty((paths, frames), np.int32)
    scores, constants = np.empty(paths), np.empty(paths)
    longest = int(max(np.diff(start)))
    taken, counts = np.empty((paths, frames + 2 * longest + 1), np.int32), np.zeros(paths, np.int64)
    _align(table.state_start, table.states, table.columns, table.arc_start, table.source, table.log_prob,
           table.transition, table.ahead, table.behind, table.fewest, table.silence, start, units,
           np.ascontiguousarray(log_likelihoods, np.float64), scores, states, constants, taken, counts)  # fmt: skip
    return Alignments(scores, states, constants, [row[:count] for row, count in zip(taken, counts)])


def string_chain(table: StringTable, string) -> list[int]:
    """Units of a string's model in order, optional silences included."""
    chain = [table.silence] if table.silence >= 0 else []
    for word in string:
        chain += table.word_units[word]
        chain += [table.silence] if table.silence >= 0 else []
    return chain


@njit(cache=True)
def _align(
    state_start, unit_states, columns, arc_start, source, log_prob, transition, ahead, behind, fewest, silence, start,
    units, likelihoods, scores, states, constants, taken, counts,
):  # fmt: skip
    """A link is one unit of a chain; joint l is the null place before link l. ``silence`` links may be skipped.

    Nodes are passed over at frames where no path from the start can be in them, or none from them can end in time.
    """
    frames = len(likelihoods)
    for path in range(len(start) - 1):
        chain = units[start[path] : start[path + 1]]
        links = len(chain)
        node_start = np.zeros(links + 1, np.int64)
        needed = np.zeros(links + 1, np.int64)  # frames before each joint, at the least
        for link in range(links):
            node_start[link + 1] = node_start[link] + state_start[chain[link] + 1] - state_start[chain[link]]
            needed[link + 1] = needed[link] + (0 if chain[link] == silence else fewest[chain[link]])
        nodes = node_start[links]
        now, before = np.full(nodes, -np.inf), np.full(nodes, -np.inf)
        joint, joint_before = np.full(links + 1, -np.inf), np.full(links + 1, -np.inf)
        back = np.empty((frames + 1, nodes), np.int32)  # best arc into a node
        joint_back = np.full((frames + 1, links + 1), -1, np.int32)  # best exit arc into a joint, -1: link skipped
        for row in range(frames + 1):
            now, before = before, now
            joint, joint_before = joint_before, joint
            joint[0] = 0.0 if row == 0 else -np.inf
            for link in range(links):
                unit, base = chain[link], node_start[link]
                first = state_start[unit] + unit  # place of the unit's arcs
                spent, left = row - needed[link], frames - row - (needed[links] - needed[link + 1])
                for j in range(node_start[link + 1] - base if row else 0):
                    if ahead[state_start[unit] + j] > spent or behind[state_start[unit] + j] > left:
                        now[base + j] = -np.inf
                        continue
                    best, choice = -np.inf, -1
                    for arc in range(arc_start[first + j], arc_start[first + j + 1]):
                        value = joint_before[link] if source[arc] == 0 else before[base + source[arc] - 1]
                        value += log_prob[arc]
                        if value > best:
                            best, choice = value, arc
                    now[base + j] = best + likelihoods[row - 1, columns[state_start[unit] + j]]
                    back[row, base + j] = choice
                best, choice = joint[link] if unit == silence else -np.inf, -1
                leave = state_start[unit + 1] + unit
                for arc in range(arc_start[leave], arc_start[leave + 1]):
                    value = joint[link] if source[arc] == 0 else now[base + source[arc] - 1]
                    value += log_prob[arc]
                    if value > best:
                        best, choice = value, arc
                joint[link + 1], joint_back[row, link + 1] = best, choice
        scores[path] = joint[links]
        constants[path] = 0.0
        if not joint[links] > -np.inf:
            continue
        row, link, place = frames, links, 0  # place 0: at joint ``link``; i: in state i of link ``link``
        while row > 0 or link > 0 or place > 0:
            if place == 0:
                arc = joint_back[row, link]
                link -= 1
                if arc < 0:
                    continue
            else:
                node = node_start[link] + place - 1
                arc = back[row, node]
                row -= 1
                states[path, row] = unit_states[state_start[chain[link]] + place - 1]
            constants[path] += log_prob[arc]
            taken[path, counts[path]] = transition[arc]
            counts[path] += 1
            place = source[arc]

"""The chain of a string whose units know their neighbours in the words before and behind."""

from typing import NamedTuple

import numpy as np
from numba import njit


class Sheet(NamedTuple):
    """A chain that is being written: arrays of :func:`margo.model.graph.string_chain`, and how much of them is."""

    links: np.ndarray
    passes: np.ndarray
    log_probs: np.ndarray
    written: np.ndarray  # links, passes


@njit(cache=True)
def neighbour_chain(table, string):
    """:func:`margo.model.graph.string_chain` of units that are ``table.crossing[left, phone, right]``.

    Between two words there is a null node, a gate, for each last phone of the former with each first phone of the
    latter: a word's first unit comes from the gates of its first phone, and it has a last unit for every gate that it
    leads to. Beside silence, and at both ends, the neighbour is the edge.
    """
    edge, pause = table.crossing.shape[1], table.silence >= 0
    size, crossings, most = _room(table, string)
    passes, log_probs = np.empty((crossings, 2), np.int64), np.zeros(crossings)
    sheet = Sheet(np.full((size, 5), -1), passes, log_probs, np.zeros(2, np.int64))
    outs, rights = np.empty((0, 3), np.int64), np.empty(most, np.int64)
    for place in range(len(string) + 1):
        last, before = place == len(string), 0
        if place > 0 and (pause or last):  # where silence may begin, or the end is
            before = _node(sheet)
            for out in outs[outs[:, 1] == edge]:
                _pass(sheet, out[2])
        after = before
        if pause:
            after = _unit(sheet, table.silence, -1, -1, before, min(place, len(string) - 1))
            if place == 0 or last:
                _pass(sheet, before)
        if last:
            break
        gates = _gates(sheet, table, string[place], outs, after if pause or place == 0 else -1, most)
        count = 0
        if pause or place + 1 == len(string):
            rights[0], count = edge, 1
        if place + 1 < len(string):
            for way in range(table.word_start[string[place + 1]], table.word_start[string[place + 1] + 1]):
                first = _phone(table, way, 0)
                if not (rights[:count] == first).any():
                    rights[count], count = first, count + 1
        outs = _word(sheet, table, string[place], place, gates, rights[:count], most)
    n_links, n_passes = sheet.written
    return sheet.links[:n_links], passes[:n_passes], log_probs[:n_passes]


@njit(cache=True)
def _gates(sheet, table, word, outs, quiet, most):
    """Gates int [G, 3] (neighbour to the left, first phone, null node) of a word behind ``outs``, the last units of the
    word before (their phone, neighbour to the right, null node), and behind null node ``quiet`` (-1: none), an edge."""
    gates, count = np.empty((most, 3), np.int64), 0
    for way in range(table.word_start[word], table.word_start[word + 1]):
        first = _phone(table, way, 0)
        if (gates[:count, 1] == first).any():
            continue
        known = count
        if quiet >= 0:
            gates[count] = table.crossing.shape[1], first, _node(sheet)
            _pass(sheet, quiet)
            count += 1
        leading = outs[outs[:, 1] == first]
        for left in leading[:, 0]:
            if (gates[known:count, 0] == left).any():
                continue
            gates[count] = left, first, _node(sheet)
            for out in leading[leading[:, 0] == left]:
                _pass(sheet, out[2])
            count += 1
    return gates[:count]


@njit(cache=True)
def _word(sheet, table, word, place, gates, rights, most):
    """A word in all its pronunciations behind ``gates``, before each of the neighbours ``rights``; its last units int
    [O, 3] (their phone, neighbour to the right, null node)."""
    outs, heads, count = np.empty((most, 3), np.int64), np.empty(len(gates), np.int64), 0
    for way in range(table.word_start[word], table.word_start[word + 1]):
        phones = table.phone[table.way_units[table.way_start[way] : table.way_start[way + 1]]]
        n_heads = 0
        for gate in gates[gates[:, 1] == phones[0]]:
            here = gate[2]
            if table.way_log_prob[way] != 0.0:
                fork = _node(sheet)
                _pass(sheet, here, table.way_log_prob[way])
                here = fork
            if len(phones) > 1:
                heads[n_heads] = _unit(sheet, table.crossing[gate[0], phones[0], phones[1]], word, word, here, place)
                n_heads += 1
            else:
                units = table.crossing[gate[0], phones[0]]
                count = _last(sheet, units, rights, (word, word, here, place), outs, count, phones[0])
        if len(phones) == 1:
            continue
        here = heads[0]
        if n_heads > 1:
            here = _node(sheet)
            for head in heads[:n_heads]:
                _pass(sheet, head)
        for i in range(1, len(phones) - 1):
            here = _unit(sheet, table.crossing[phones[i - 1], phones[i], phones[i + 1]], -1, word, here, place)
        units = table.crossing[phones[-2], phones[-1]]
        count = _last(sheet, units, rights, (-1, word, here, place), outs, count, phones[-1])
    return outs[:count]


@njit(cache=True)
def _last(sheet, units, rights, labels, outs, count, phone):
    """A link for each different one of the ``units`` [P + 1] by their neighbours ``rights``, with ``labels`` (word that
    is entered, its own word, null node it comes from, place); adds to ``outs`` and returns how many there are."""
    entered, word, here, place = labels
    known = count
    for right in rights:
        node = -1
        for out in outs[known:count]:
            if units[out[1]] == units[right]:
                node = out[2]
        outs[count] = phone, right, node if node >= 0 else _unit(sheet, units[right], entered, word, here, place)
        count += 1
    return count


@njit(cache=True)
def _node(sheet):
    """A null node that no unit leads to."""
    sheet.written[0] += 1
    return sheet.written[0]


@njit(cache=True)
def _unit(sheet, unit, entered, word, here, place):
    """A unit behind null node ``here``; the one that it leads to."""
    sheet.links[sheet.written[0]] = unit, entered, word, here, place
    return _node(sheet)


@njit(cache=True)
def _pass(sheet, here, log_prob=0.0):
    """An arc from null node ``here`` to the newest one."""
    sheet.passes[sheet.written[1]] = here, sheet.written[0]
    sheet.log_probs[sheet.written[1]] = log_prob
    sheet.written[1] += 1


@njit(cache=True)
def _phone(table, way, place):
    return table.phone[table.way_units[table.way_start[way] + place]]


@njit(cache=True)
def _room(table, string):
    """How many links and passes a string needs, and gates or last units a word, at most."""
    size, crossings, most = 4, 4, 4
    ways = np.ones(len(string) + 2, np.int64)  # of each word, and of the edges
    for place, word in enumerate(string):
        ways[place + 1] = table.word_start[word + 1] - table.word_start[word]
    for place, word in enumerate(string):
        lefts, own, rights = ways[place] + 1, ways[place + 1], ways[place + 2] + 1
        units = table.way_start[table.word_start[word + 1]] - table.way_start[table.word_start[word]]
        size += 3 * own * lefts + own * lefts * rights + units + own * (1 + rights) + 2
        crossings += 3 * own * lefts + 2 * own * lefts * rights + 3
        most = max(most, own * lefts * rights)
    return size, crossings, most

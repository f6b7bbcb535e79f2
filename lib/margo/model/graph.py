"""Search graphs as flat arrays, compiled from an HmmSet.

Nodes 0 .. E-1 emit one frame each time they are entered; the null nodes behind them emit nothing and are numbered so
that every null-to-null arc goes upwards. A unit's entry and exit stay null nodes, so each arc stands for at most one
transition parameter. Time is counted in frames consumed: an arc into an emitting node takes one, an arc into a null
node none.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit

from margo.errors import MargoError
from margo.model.automaton import END, Automaton
from margo.model.hmm import HmmSet
from margo.model.neighbours import neighbour_chain

OPEN = -2  # a word of which only the beginning is known, in a tree of words


class Arcs(NamedTuple):
    """A graph as the kernels take it, n nodes, E of them emitting, A arcs sorted by destination.

    Within a destination arcs keep their order of creation: where searches meet equals, the first arc wins. Most arcs
    into an emitting node come from itself or the one before. ahead and behind are monotone, 0 where nothing is known.
    """

    arc_start: np.ndarray  # int [n + 1] arcs into each node
    source: np.ndarray  # int [A]
    destination: np.ndarray  # int [A]
    log_prob: np.ndarray  # [A]
    column: np.ndarray  # int [E] of the state likelihoods
    prob: np.ndarray  # [A] exp(log_prob)
    transition: np.ndarray  # int [A] index into ``HmmSet.log_transitions``, or -1
    word: np.ndarray  # int [A] entered by that arc, or -1; OPEN: one is entered that a later arc will name
    unit: np.ndarray  # int [A] likewise
    out_start: np.ndarray  # int [n + 1] arcs out of each node,
    out_arc: np.ndarray  # int [A] as numbers
    stay_arc: np.ndarray  # int32 [E] the arc from the node itself, or -1
    step_arc: np.ndarray  # int32 [E] the arc from the node before, or -1
    rest: np.ndarray  # int the other arcs into emitting nodes
    ahead: np.ndarray  # int [E] no node from this one on is reached with fewer frames (its own included),
    behind: np.ndarray  # int [E] no path from any node up to this one ends with fewer frames more
    start: int
    end: int


@dataclass(frozen=True, eq=False)
class Graph:
    """Arcs with what their columns and words stand for."""

    arcs: Arcs
    states: np.ndarray  # int [S'] pool states: the columns of the likelihoods the graph is searched with
    node_word: np.ndarray  # int [E] word each emitting node belongs to, -1 for silence, OPEN: not known yet
    words: tuple[str, ...]  # names

    @property
    def n_emitting(self) -> int:
        return len(self.arcs.column)

    @property
    def n_nodes(self) -> int:
        return len(self.arcs.arc_start) - 1

    @property
    def n_arcs(self) -> int:
        return len(self.arcs.source)

    def transition_counts(self, arc_counts: np.ndarray, n_transitions: int) -> np.ndarray:
        """Sum expected arc counts [A] into transition parameters [P]."""
        used = self.arcs.transition >= 0
        return np.bincount(self.arcs.transition[used], arc_counts[used], n_transitions)


def compile_arcs(ends, log_prob, column, start: int, end: int, labels=None) -> Arcs:
    """Arcs from ``ends`` int [2, A] (sources and destinations, these ascending), log_prob [A], column [E].

    ``labels`` int [3, A]: transition, word and unit of each arc, all -1 by default.
    """
    source, destination = np.ascontiguousarray(ends, np.int64)
    n_nodes = 1 + max(start, end, int(ends.max()))
    labels = np.full((3, len(source)), -1) if labels is None else np.ascontiguousarray(labels, np.int64)
    arc_start = np.concatenate([[0], np.cumsum(np.bincount(destination, minlength=n_nodes))])
    column, nothing = np.ascontiguousarray(column, np.int64), np.zeros(len(column), np.int64)
    out_start, out_arc, *band = _index(source, destination, len(column), n_nodes)
    return Arcs(arc_start, source, destination, log_prob, column, np.exp(log_prob), *labels, out_start, out_arc, *band,
                nothing, nothing, int(start), int(end))  # fmt: skip


@njit(cache=True)
def _index(source, destination, emitting, nodes):
    """``(out_start, out_arc, stay_arc, step_arc, rest)`` of :class:`Arcs`."""
    out_start, out_arc = np.zeros(nodes + 1, np.int64), np.empty(len(source), np.int64)
    stay_arc, step_arc = np.full(emitting, -1, np.int32), np.full(emitting, -1, np.int32)
    rest, others = np.empty(len(source), np.int64), 0
    for arc in range(len(source)):
        out_start[source[arc] + 1] += 1
        node = destination[arc]
        if node >= emitting:
            continue
        if source[arc] == node and stay_arc[node] < 0:
            stay_arc[node] = arc
        elif source[arc] == node - 1 and step_arc[node] < 0 and stay_arc[node] < 0:  # searches try it before the stay
            step_arc[node] = arc
        else:
            rest[others] = arc
            others += 1
    for node in range(nodes):
        out_start[node + 1] += out_start[node]
    place = out_start.copy()
    for arc in range(len(source)):
        out_arc[place[source[arc]]] = arc
        place[source[arc]] += 1
    return out_start, out_arc, stay_arc, step_arc, rest[:others].copy()


def align_graph(hmms: HmmSet, words, states: np.ndarray | None = None) -> Graph:
    """Forced alignment: the words in order, each in any of its pronunciations, silence optional at both ends and
    between words.

    ``states`` int [S']: pool states that the columns stand for, where it is not those of the graph alone.
    """
    hmms.check_words(words)
    table = hmms.unit_arcs
    chain = string_chain(table, np.array([hmms.word_index[word] for word in words]))
    units, _, owners, _, _ = chain[0][chain[0][:, 0] >= 0].T
    if states is None:
        states = np.unique(np.concatenate([hmms.units[unit].states for unit in set(units.tolist())]))
    owner = np.repeat(owners, table.state_start[units + 1] - table.state_start[units])
    return Graph(chain_arcs(table, columns_of(hmms, states), chain), states, owner, hmms.words)


def columns_of(hmms: HmmSet, states: np.ndarray) -> np.ndarray:
    """Place of each pool state among ``states``, -1: not among them."""
    columns = np.full(hmms.pool.n_states, -1)
    columns[states] = np.arange(len(states))
    return columns


@njit(cache=True)
def string_chain(table, string):
    """``(links, passes, log_probs)`` of a string (word indices), from its start, null node 0, to its end.

    links int [L, 5]: unit that leads to null node l + 1, or -1 (none does), word that is entered with it or -1, word
    that it belongs to or -1 (silence), null node that it comes from, and place of its word in the string (silence: of
    the word behind it, the last one of the last word). passes int [J, 2], log_probs [J]: arcs from null node to null
    node, by destination: silence is passed over, pronunciations part and meet again.
    """
    if table.crossing.size:
        return neighbour_chain(table, string)
    pauses = 0 if table.silence < 0 else len(string) + 1
    size, crossings = pauses, pauses
    for word in string:
        first, last = table.word_start[word], table.word_start[word + 1]
        size += table.way_start[last] - table.way_start[first]
        if last - first > 1 or table.way_log_prob[first] != 0.0:
            size += last - first + 1
            crossings += 2 * (last - first)
    links, passes = np.full((size, 5), -1), np.empty((crossings, 2), np.int64)
    log_probs, link, crossing = np.zeros(crossings), 0, 0
    for place in range(len(string) + 1):
        if pauses:
            links[link, 0], links[link, 3], links[link, 4] = table.silence, link, min(place, len(string) - 1)
            passes[crossing] = link, link + 1
            link, crossing = link + 1, crossing + 1
        if place == len(string):
            break
        word = string[place]
        first, last = table.word_start[word], table.word_start[word + 1]
        parts, fork = last - first > 1 or table.way_log_prob[first] != 0.0, link
        ends = np.empty(last - first, np.int64)
        for way in range(first, last):
            if parts:  # a null node of its own, behind the fork
                passes[crossing], log_probs[crossing] = (fork, link + 1), table.way_log_prob[way]
                link, crossing = link + 1, crossing + 1
            links[link, 1] = word
            for i in range(table.way_start[way], table.way_start[way + 1]):
                links[link, 0], links[link, 2], links[link, 3] = table.way_units[i], word, link
                links[link, 4] = place
                link += 1
            ends[way - first] = link
        if parts:
            for end in ends:
                passes[crossing] = end, link + 1
                crossing += 1
            link += 1
    return links, passes, log_probs


@njit(cache=True)
def _spans(table, chain):
    """``(ahead, behind)`` [L + 1]: fewest frames from the start to each null node of a chain, and from there to its
    end."""
    links, passes, _ = chain
    never = 1 << 40
    ahead, behind = np.full(len(links) + 1, never), np.full(len(links) + 1, never)
    ahead[0] = behind[len(links)] = 0
    crossing = 0
    for link in range(len(links)):
        unit = links[link, 0]
        if unit >= 0:
            ahead[link + 1] = ahead[links[link, 3]] + table.fewest[unit]
        while crossing < len(passes) and passes[crossing, 1] == link + 1:
            ahead[link + 1] = min(ahead[link + 1], ahead[passes[crossing, 0]])
            crossing += 1
    for back in range(len(links)):
        link = len(links) - 1 - back
        while crossing > 0 and passes[crossing - 1, 1] == link + 1:
            crossing -= 1
            behind[passes[crossing, 0]] = min(behind[passes[crossing, 0]], behind[link + 1])
        if links[link, 0] >= 0:
            source = links[link, 3]
            behind[source] = min(behind[source], behind[link + 1] + table.fewest[links[link, 0]])
    return ahead, behind


@njit(cache=True)
def chain_arcs(table, columns, chain):
    """Arcs of a chain of units (:func:`string_chain`); null nodes stand in its order.

    No path is lost by ``ahead`` and ``behind``.
    """
    links, passes, log_probs = chain
    spent, left = _spans(table, chain)
    nodes, size = 0, len(passes)
    for link in range(len(links)):
        unit = links[link, 0]
        if unit >= 0:
            first, last = table.state_start[unit], table.state_start[unit + 1]
            nodes += last - first
            size += table.arc_start[last + unit + 1] - table.arc_start[first + unit]
    source, destination = np.empty(size, np.int64), np.empty(size, np.int64)
    log_prob, transition = np.zeros(size), np.full(size, -1)
    word, unit_entered = np.full(size, -1), np.full(size, -1)
    arc_start = np.zeros(nodes + len(links) + 2, np.int64)
    column, ahead, behind = np.empty(nodes, np.int64), np.empty(nodes, np.int64), np.empty(nodes, np.int64)
    arc = crossing = 0
    for nulls in range(2):  # arcs into the emitting nodes of all links, then into what lies behind them
        node = 0
        arc_start[nodes + 1] = arc  # none into the start
        for link in range(len(links)):
            unit, base = links[link, 0], node
            while nulls and crossing < len(passes) and passes[crossing, 1] == link + 1:  # these come first
                source[arc], destination[arc] = nodes + passes[crossing, 0], nodes + link + 1
                log_prob[arc] = log_probs[crossing]
                arc, crossing = arc + 1, crossing + 1
            if nulls:
                arc_start[nodes + link + 2] = arc
            if unit < 0:
                continue
            first, last = table.state_start[unit], table.state_start[unit + 1]
            node += last - first
            for state in range(last if nulls else first, last + nulls):
                target = nodes + link + 1 if nulls else base + state - first
                for a in range(table.arc_start[state + unit], table.arc_start[state + unit + 1]):
                    source[arc], destination[arc] = base + table.source[a], target
                    if table.source[a] < 0:
                        source[arc], word[arc], unit_entered[arc] = nodes + links[link, 3], links[link, 1], unit
                    log_prob[arc], transition[arc] = table.log_prob[a], table.transition[a]
                    arc += 1
                arc_start[target + 1] = arc
                if not nulls:
                    column[target] = columns[table.states[state]]
                    ahead[target] = spent[links[link, 3]] + table.ahead[state]
                    behind[target] = left[link + 1] + table.behind[state]
    for node in range(1, nodes):
        behind[node] = min(behind[node], behind[node - 1])
        ahead[nodes - 1 - node] = min(ahead[nodes - 1 - node], ahead[nodes - node])
    out_start, out_arc, stay_arc, step_arc, rest = _index(source, destination, nodes, nodes + len(links) + 1)
    return Arcs(arc_start, source, destination, log_prob, column, np.exp(log_prob), transition, word, unit_entered,
                out_start, out_arc, stay_arc, step_arc, rest, ahead, behind, nodes, nodes + len(links))  # fmt: skip


def isolated_graph(hmms: HmmSet) -> Graph:
    """Exactly one of the words, with optional silence around it."""
    build = Builder(hmms)
    hub, tail = build.optional_silence(build.start), build.null()
    for word in range(len(hmms.words)):
        build.arc(build.word_behind(hub, word), tail)
    return build.finish(build.optional_silence(tail))


def loop_graph(hmms: HmmSet, insertion_penalty: float = 0.0) -> Graph:
    """One or more words in any order; ``insertion_penalty`` is added to the score for every word."""
    build = Builder(hmms)
    hub, tail = build.null(), build.null()
    build.arc(build.optional_silence(build.start), hub)
    for word in range(len(hmms.words)):
        build.arc(build.word_behind(hub, word, insertion_penalty), tail)
    tail = build.optional_silence(tail)
    build.arc(tail, hub)
    return build.finish(tail)


def bigram_graph(hmms: HmmSet, log_bigram: np.ndarray, scale: float = 1.0, insertion_penalty: float = 0.0) -> Graph:
    """One or more words under a bigram.

    ``log_bigram`` [V + 1, V + 1]: row v is the previous word and row V the start; column v the next word and column V
    the end. Each word costs ``scale * log_bigram + insertion_penalty``, the end no penalty; -inf forbids.
    """
    size = len(hmms.words) + 1
    log_bigram = np.asarray(log_bigram, np.float64)
    if log_bigram.shape != (size, size):
        raise MargoError(f"bigram has shape {log_bigram.shape}, the model's words ask for {(size, size)}")
    if np.isnan(log_bigram).any():
        raise MargoError("bigram holds NaN")
    build = Builder(hmms)
    copies = [build.word(word) for word in range(size - 1)]
    final = build.null()
    for row, tail in enumerate([*(copy[1] for copy in copies), build.start]):
        tail = build.optional_silence(tail)
        for word in np.flatnonzero(log_bigram[row, :-1] > -np.inf).tolist():
            build.enter(tail, copies[word], word, scale * log_bigram[row, word] + insertion_penalty)
        if row < size - 1 and log_bigram[row, -1] > -np.inf:
            build.arc(tail, final, scale * log_bigram[row, -1])
    return build.finish(final)


def automaton_graph(hmms: HmmSet, automaton: Automaton, scale: float = 1.0, insertion_penalty: float = 0.0) -> Graph:
    """One or more words as an automaton has it (a back-off n-gram, rules): a copy of a word for each state that it
    leads to. Each word costs ``scale * log_prob + insertion_penalty``, ways without words and the end no penalty."""
    build = Builder(hmms)
    before = [build.null() for _ in range(automaton.states)]
    states, final, copies = [build.optional_silence(node) for node in before], build.null(), {}
    build.arc(build.start, before[automaton.start])
    for source, name, destination, log_prob in automaton.ways:
        if name is None or name == END:
            build.arc(states[source], final if name else states[destination], scale * log_prob)
            continue
        word = hmms.word_index[name]
        if (word, destination) not in copies:
            copies[word, destination] = build.word(word)
            build.arc(copies[word, destination][1], before[destination])
        build.enter(states[source], copies[word, destination], word, scale * log_prob + insertion_penalty)
    return build.finish(final)


class Builder:
    """Collects copies of units and the arcs between them; :meth:`finish` makes arrays of all at once.

    Null nodes are negative numbers until then.
    """

    def __init__(self, hmms: HmmSet):
        self.hmms = hmms
        self.copies: list[tuple] = []  # unit, word, first emitting node, entry, exit
        self.arcs: list[tuple] = []  # source, destination, log_prob, transition (none), word, unit
        self.emitting = 0
        self.nulls = 0
        self.start = self.null()

    def null(self) -> int:
        self.nulls += 1
        return -self.nulls

    def arc(self, source: int, destination: int, log_prob: float = 0.0, word: int = -1, unit: int = -1) -> None:
        self.arcs.append((source, destination, log_prob, -1, word, unit))

    def unit(self, unit_index: int, word: int) -> tuple[int, int]:
        """A copy of a unit for ``word`` (-1: none); returns its entry and exit."""
        entry, exit_ = self.null(), self.null()
        self.copies.append((unit_index, word, self.emitting, entry, exit_))
        self.emitting += self.hmms.units[unit_index].n_states
        return entry, exit_

    def word(self, word: int) -> tuple[int, int, int]:
        """A copy of a word; returns entry, exit, and the unit that is entered there, -1 where pronunciations part.

        The arc into it is :meth:`enter`'s: one a word, so that ways to leave a node are different words.
        """
        ways = self.hmms.lexicon[self.hmms.words[word]]
        if len(ways) == 1 and ways[0].log_prob == 0:
            return self.way(ways[0].units, word)
        fork, meeting = self.null(), self.null()
        for way in ways:
            entry, tail, unit = self.way(way.units, word)
            self.arc(fork, entry, way.log_prob, unit=unit)
            self.arc(tail, meeting)
        return fork, meeting, -1

    def way(self, names, word: int) -> tuple[int, int, int]:
        """Copies of units in a row for ``word``; entry, exit and the first unit."""
        first, *others = (self.hmms.unit_index[name] for name in names)
        entry, here = self.unit(first, word)
        for unit_index in others:
            head, tail = self.unit(unit_index, word)
            self.arc(here, head, unit=unit_index)
            here = tail
        return entry, here, first

    def enter(self, here: int, copy: tuple[int, int, int], word: int, log_prob: float) -> None:
        """An arc from ``here`` into a word's copy."""
        self.arc(here, copy[0], log_prob, word, copy[2])

    def word_behind(self, here: int, word: int, log_prob: float = 0.0) -> int:
        copy = self.word(word)
        self.enter(here, copy, word, log_prob)
        return copy[1]

    def optional_silence(self, here: int) -> int:
        """Silence or nothing behind ``here``; without a silence unit just ``here``."""
        if self.hmms.silence is None:
            return here
        index = self.hmms.unit_index[self.hmms.silence]
        entry, tail = self.unit(index, -1)
        after = self.null()
        self.arc(here, after)
        self.arc(here, entry, unit=index)
        self.arc(tail, after)
        return after

    def finish(self, last: int) -> Graph:
        end = self.null()
        self.arc(last, end)
        table = self.hmms.unit_arcs
        unit, word, base, entry, exit_ = np.array(self.copies, np.int64).T
        begin, stop = table.state_start[unit], table.state_start[unit + 1]
        first = table.arc_start[begin + unit]
        inner, copy = _runs(first, table.arc_start[stop + unit + 1] - first)
        states, owner = _runs(begin, stop - begin)
        outer = np.array(self.arcs, np.float64).T
        source = np.where(table.source[inner] < 0, entry[copy], base[copy] + table.source[inner])
        destination = np.where(table.destination[inner] < 0, exit_[copy], base[copy] + table.destination[inner])
        ends = np.concatenate([[source, destination], outer[:2].astype(np.int64)], axis=1)
        order = _null_order(ends, self.nulls)
        # Null nodes were numbered -1, -2 ...: as indices these count from behind, hence the reversal.
        number = np.concatenate([np.arange(self.emitting), self.emitting + order[::-1]])
        nowhere = np.full(len(inner), -1)
        labels = np.concatenate([[table.transition[inner], nowhere, nowhere], outer[3:].astype(np.int64)], axis=1)
        log_prob = np.concatenate([table.log_prob[inner], outer[2]])
        by_destination = np.argsort(number[ends[1]], kind="stable")
        used = np.unique(table.states[states])
        column = columns_of(self.hmms, used)[table.states[states]]
        arcs = compile_arcs(number[ends][:, by_destination], log_prob[by_destination], column, number[self.start],
                            number[end], labels[:, by_destination])  # fmt: skip
        return Graph(arcs, used, word[owner], self.hmms.words)


def _runs(starts: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``starts[i] ... starts[i] + lengths[i] - 1`` for all i in a row, and the i of each."""
    owner = np.repeat(np.arange(len(lengths)), lengths)
    return np.arange(len(owner)) - (np.cumsum(lengths) - lengths - starts)[owner], owner


def _null_order(ends: np.ndarray, nulls: int) -> np.ndarray:
    """Place of each null node (in order of creation) such that null-to-null arcs go upwards, int [nulls]."""
    sources, destinations = -1 - ends[:, (ends < 0).all(axis=0)]
    if (sources < destinations).all():
        return np.arange(nulls)
    waiting = np.bincount(destinations, minlength=nulls)
    by_source = np.argsort(sources, kind="stable")
    first = np.concatenate([[0], np.cumsum(np.bincount(sources, minlength=nulls))])
    place = _upwards(waiting, first, destinations[by_source])
    if (place < 0).any():
        raise MargoError("graph: a loop can be run through without a frame (a word of tee models only)")
    return place


@njit(cache=True)
def _upwards(waiting, first, followers):
    """Place of each node behind all that lead to it, -1 of nodes in a ring; ``waiting``: how many do."""
    place, ready = np.full(len(waiting), -1), np.empty(len(waiting), np.int64)
    count = 0
    for node in range(len(waiting)):
        if waiting[node] == 0:
            ready[count] = node
            count += 1
    position = 0
    while position < count:
        node = ready[position]
        place[node] = position
        position += 1
        for follower in followers[first[node] : first[node + 1]]:
            waiting[follower] -= 1
            if waiting[follower] == 0:
                ready[count] = follower
                count += 1
    return place

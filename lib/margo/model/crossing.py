"""Recognition graphs of units that know their neighbours in the words before and behind: one static graph, exact.

Behind each state of a grammar there is a null node, a gate, for every phone that may come before it with every phone
that may come behind it. A word has a first unit for each class of neighbours to the left, a last unit for each to the
right, and is entered from the gates of its first phone. Beside silence the neighbour is the edge, as it is at both ends
of an utterance; so the last phone of a word decides whether a pause follows, and the first one knows of it.
"""

from collections import defaultdict

import numpy as np

from margo.model.automaton import END, Automaton
from margo.model.graph import Builder, Graph
from margo.model.hmm import HmmSet


def crossing_graph(hmms: HmmSet, automaton: Automaton, scale: float = 1.0, insertion_penalty: float = 0.0) -> Graph:
    """One or more words as an automaton has it, under units by their neighbours in all words (``hmms.crossing``); what
    words, ways without words and the end cost is as in :func:`margo.model.graph.automaton_graph`."""
    return CrossingBuilder(hmms, automaton).built(scale, insertion_penalty)


class CrossingBuilder(Builder):
    """Gates by state of the automaton, phone before and phone behind; a copy of a word for each state that it leads to.

    Where nothing is to come (the phone behind is the edge) what came before makes no difference: one gate for all.
    """

    def __init__(self, hmms: HmmSet, automaton: Automaton):
        super().__init__(hmms)
        self.table, self.edge, self.automaton = hmms.crossing, hmms.crossing.shape[1], automaton
        phone, index = hmms.unit_arcs.phone, hmms.unit_index
        self.ways = {word: [(phone[[index[name] for name in way.units]].tolist(), way.log_prob) for way in ways]
                     for word, ways in hmms.lexicon.items()}  # fmt: skip
        self.lefts, self.rights = self.neighbours()
        self.gates: dict[tuple[int, int, int], int] = {}
        self.pauses: dict[int, int] = {}

    def neighbours(self) -> tuple[list[set[int]], list[set[int]]]:
        """Phones that may come before each state, and behind it; the edge among them."""
        lefts, rights = ([set() for _ in range(self.automaton.states)] for _ in range(2))
        lefts[self.automaton.start].add(self.edge)
        silent = []
        for source, name, destination, _ in self.automaton.ways:
            if name is None:
                silent.append((source, destination))
            elif name == END:
                rights[source].add(self.edge)
            else:
                rights[source] |= {phones[0] for phones, _ in self.ways[name]}
                lefts[destination] |= {phones[-1] for phones, _ in self.ways[name]}
                if self.hmms.silence is not None:
                    lefts[destination].add(self.edge)
        sizes = None
        while sizes != (sizes := [*map(len, lefts), *map(len, rights)]):
            for source, destination in silent:
                lefts[destination] |= lefts[source]
                rights[source] |= rights[destination]
        return lefts, rights

    def gate(self, state: int, left: int, right: int) -> int:
        key = (state, self.edge if right == self.edge else left, right)
        if key not in self.gates:
            self.gates[key] = self.null()
        return self.gates[key]

    def open(self, here: int, state: int) -> None:
        """All gates of a state behind ``here``, where an edge lies before them."""
        for right in sorted(self.rights[state]):
            self.arc(here, self.gate(state, self.edge, right))

    def pause(self, state: int) -> int:
        """The null node behind words that nothing follows at once: silence does, or the end."""
        if state not in self.pauses:
            here = self.pauses[state] = self.null()
            if self.edge in self.rights[state]:
                self.arc(here, self.gate(state, self.edge, self.edge))
            if self.hmms.silence is not None:
                index = self.hmms.unit_index[self.hmms.silence]
                entry, tail = self.unit(index, -1)
                self.arc(here, entry, unit=index)
                self.open(tail, state)
        return self.pauses[state]

    def built(self, scale: float, insertion_penalty: float) -> Graph:
        final, before = self.null(), defaultdict(set)
        self.open(self.optional_silence(self.start), self.automaton.start)
        for source, name, destination, _ in self.automaton.ways:
            before[name, destination] |= self.lefts[source]
        copies = {}
        for source, name, destination, log_prob in self.automaton.ways:
            log_prob *= scale
            if name == END:
                self.arc(self.gate(source, self.edge, self.edge), final, log_prob)
            elif name is None:
                for right in sorted(self.rights[destination]):
                    for left in sorted(self.lefts[source]) if right != self.edge else [self.edge]:
                        self.arc(self.gate(source, left, right), self.gate(destination, left, right), log_prob)
            else:
                word = self.hmms.word_index[name]
                if (name, destination) not in copies:
                    copies[name, destination] = self.copy(word, destination, sorted(before[name, destination]))
                for left in sorted(self.lefts[source]):
                    for first, own, entry, unit in copies[name, destination][left]:
                        here = self.gate(source, left, first)
                        self.arc(here, entry, log_prob + insertion_penalty + own, word, unit)
        return self.finish(final)

    def copy(self, word: int, state: int, lefts: list[int]) -> dict[int, list[tuple]]:
        """A copy of a word that leads to ``state``; for each neighbour to the left the ways into it: first phone, log
        probability, entry and the unit that is entered there, -1 where several are."""
        rights = sorted(self.rights[state] | ({self.edge} if self.hmms.silence is not None else set()))
        ways_in = {left: [] for left in lefts}
        for phones, log_prob in self.ways[self.hmms.words[word]]:
            if len(phones) == 1:
                entries = self.single(word, phones[0], state, lefts, rights)
            else:
                entries = self.row(word, phones, state, lefts, rights)
            for left, (entry, unit) in zip(lefts, entries):
                ways_in[left].append((phones[0], log_prob, entry, unit))
        return ways_in

    def row(self, word: int, phones: list[int], state: int, lefts: list[int], rights: list[int]) -> list[tuple]:
        """Entry and first unit for each of ``lefts``, of several phones."""
        heads, here = {}, self.null()
        for unit in dict.fromkeys(self.table[lefts, phones[0], phones[1]].tolist()):
            entry, tail = self.unit(unit, word)
            self.arc(tail, here)
            heads[unit] = entry, unit
        for triple in zip(phones, phones[1:], phones[2:]):
            here = self.behind(here, int(self.table[triple]), word)
        self.last(here, word, phones[-1], self.table[phones[-2], phones[-1]], state, rights)
        return [heads[unit] for unit in self.table[lefts, phones[0], phones[1]].tolist()]

    def single(self, word: int, phone: int, state: int, lefts: list[int], rights: list[int]) -> list[tuple]:
        """The same of one phone, whose unit both neighbours decide: a fork for each class of those to the left."""
        forks, rows = {}, [tuple(self.table[left, phone, rights].tolist()) for left in lefts]
        for left, units in zip(lefts, rows):
            if units not in forks:
                forks[units] = self.null()
                self.last(forks[units], word, phone, self.table[left, phone], state, rights)
        return [(forks[units], -1) for units in rows]

    def behind(self, here: int, unit: int, word: int) -> int:
        """The null node behind a unit that stands behind ``here``."""
        entry, tail = self.unit(unit, word)
        self.arc(here, entry, unit=unit)
        return tail

    def last(self, here: int, word: int, phone: int, units: np.ndarray, state: int, rights: list[int]) -> None:
        """Behind ``here`` each different one of the ``units`` [P + 1] by neighbours to the right, up to their gates."""
        for unit in dict.fromkeys(units[rights].tolist()):
            tail = self.behind(here, unit, word)
            for right in rights:
                if units[right] == unit:
                    self.arc(tail, self.pause(state) if right == self.edge else self.gate(state, phone, right))

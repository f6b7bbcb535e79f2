"""One static graph for many words: they begin in a prefix tree, and share what they begin with.

Behind each state of a grammar the words that may follow stand in a tree of their units. As soon as only one word is
left, the way leads into the word's own row of units, which all states share that the word leads to the same state from.
What the grammar adds for a word is on the way as early as it is known: each arc has the best that is to come, less
what the arcs before it have had. A path's score is that of the flat graph, and so is the best path.
"""

from collections.abc import Iterable
from functools import partial
from itertools import groupby
from typing import NamedTuple

from margo.model.automaton import END, Automaton
from margo.model.graph import OPEN, Builder, Graph
from margo.model.hmm import HmmSet


class Entry(NamedTuple):
    """A way of saying a word: its units (indices), the word, the null node behind it, what its grammar adds."""

    units: tuple[int, ...]
    word: int
    meeting: int
    log_prob: float


class TreeBuilder(Builder):
    """Collects trees of words, and the rows of units that they end in."""

    def __init__(self, hmms: HmmSet):
        super().__init__(hmms)
        self.rows: dict[tuple, list] = {}  # by units, word and meeting: entry of each unit, None before the first
        self.ways = [[(tuple(hmms.unit_index[name] for name in way.units), way.log_prob) for way in hmms.lexicon[word]]
                     for word in hmms.words]  # fmt: skip

    def tree(self, here: int, words: Iterable[tuple[int, int, float]]) -> None:
        """Behind ``here`` each ``(word, meeting, log_prob)``, in all its pronunciations, up to its meeting."""
        entries = sorted(Entry(units, word, meeting, log_prob + own)
                         for word, meeting, log_prob in words for units, own in self.ways[word])  # fmt: skip
        waiting = [(entries, 0, here, 0.0)]  # entries that share so many units, where these end, what they have had
        while waiting:
            entries, depth, here, had = waiting.pop()
            ended = [entry for entry in entries if len(entry.units) == depth]  # these come first
            for entry in ended:
                self.arc(here, entry.meeting, entry.log_prob - had, entry.word)
            for unit, group in groupby(entries[len(ended) :], partial(_unit, depth)):
                group = [*group]
                if len(group) == 1:
                    (entry,) = group
                    self.arc(here, self.row(entry, depth), entry.log_prob - had, entry.word, unit)
                else:
                    best = max(entry.log_prob for entry in group)
                    head, tail = self.unit(unit, OPEN)
                    self.arc(here, head, best - had, -1 if depth else OPEN, unit)
                    waiting.append((group, depth + 1, tail, best))

    def row(self, entry: Entry, depth: int) -> int:
        """The entry of unit ``depth`` of a word's own units; those that are not there yet are made, from behind."""
        heads = self.rows.setdefault(entry[:3], [None] * len(entry.units))
        for place in reversed(range(depth, len(heads))):
            if heads[place] is None:
                heads[place], tail = self.unit(entry.units[place], entry.word)
                if place + 1 == len(heads):
                    self.arc(tail, entry.meeting)
                else:
                    self.arc(tail, heads[place + 1], unit=entry.units[place + 1])
        return heads[depth]


def _unit(depth: int, entry: Entry) -> int:
    return entry.units[depth]


def loop_tree(hmms: HmmSet, insertion_penalty: float = 0.0) -> Graph:
    """:func:`margo.model.graph.loop_graph`, its words in a tree."""
    build = TreeBuilder(hmms)
    hub, tail = build.null(), build.null()
    build.arc(build.optional_silence(build.start), hub)
    build.tree(hub, ((word, tail, insertion_penalty) for word in range(len(hmms.words))))
    tail = build.optional_silence(tail)
    build.arc(tail, hub)
    return build.finish(tail)


def automaton_tree(hmms: HmmSet, automaton: Automaton, scale: float = 1.0, insertion_penalty: float = 0.0) -> Graph:
    """:func:`margo.model.graph.automaton_graph`, the words behind each state of the automaton in a tree."""
    build = TreeBuilder(hmms)
    before = [build.null() for _ in range(automaton.states)]
    states, final = [build.optional_silence(node) for node in before], build.null()
    build.arc(build.start, before[automaton.start])
    words: list[list] = [[] for _ in states]
    for source, name, destination, log_prob in automaton.ways:
        if name is None or name == END:
            build.arc(states[source], final if name else states[destination], scale * log_prob)
        else:
            word = (hmms.word_index[name], before[destination], scale * log_prob + insertion_penalty)
            words[source].append(word)
    for state, behind in zip(states, words):
        build.tree(state, behind)
    return build.finish(final)

"""Finite automata over words: what an n-gram or a grammar of rules allows, as graphs are made of it.

Rules are expressions of tuples: ``("word", w)``, ``("all", e, e ...)`` one behind the other, ``("any", e, e ...)`` one
of them, ``("some", e)`` once or more. What may be absent is any of itself and of ``NOTHING``.
"""

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from margo.errors import MargoError

END = "</s>"
NOTHING = ("all",)
LARGEST = 50_000  # states of an automaton of rules


class Way(NamedTuple):
    """An arc between states (numbers) over a word, END, or None (no word)."""

    source: int
    word: str | None
    destination: int
    log_prob: float


@dataclass(frozen=True, eq=False)
class Automaton:
    """Strings of words are ways from ``start`` over END."""

    states: int
    start: int
    ways: list[Way]

    @cached_property
    def leaving(self) -> dict[int, list[Way]]:
        table = defaultdict(list)
        for way in self.ways:
            table[way.source].append(way)
        return table

    def string_score(self, words: Sequence[str]) -> float:
        """What the string's best way adds up to; -inf where there is none."""
        scores = {self.start: 0.0}
        for word in (*words, END):
            after: dict[int, float] = {}
            for source, score in scores.items():
                self._spread(source, score, word, after)
            scores = after
        return max(scores.values(), default=-np.inf)

    def _spread(self, source: int, score: float, word: str, after: dict) -> None:
        """Into ``after`` the best score of each state that ``word`` leads to from ``source``."""
        waiting = [(source, score)]
        while waiting:
            here, value = waiting.pop()
            for way in self.leaving[here]:
                if way.word is None:
                    waiting.append((way.destination, value + way.log_prob))
                elif way.word == word:
                    after[way.destination] = max(after.get(way.destination, -np.inf), value + way.log_prob)


def of_rules(rules: tuple) -> Automaton:
    """The smallest automaton of an expression's strings, each worth 0, in which no two ways from a state have the same
    word; the string without words is left out."""
    silent: dict[int, list[int]] = defaultdict(list)
    over: dict[int, list[tuple[str, int]]] = defaultdict(list)
    first, last = _thompson(rules, silent, over)
    table, final = _determined(first, last, silent, over)
    table, final = _smallest(table, final)
    if 0 in final:  # a start that cannot end
        table.append(dict(table[0]))
        start = len(table) - 1
    else:
        start = 0
    if not table[start]:
        raise MargoError("no string of words is possible")
    ways = [Way(source, word, destination, 0.0) for source, row in enumerate(table)
            for word, destination in sorted(row.items())]  # fmt: skip
    return Automaton(len(table), start, ways + [Way(state, END, state, 0.0) for state in sorted(final)])


def _thompson(rules: tuple, silent: dict, over: dict) -> tuple[int, int]:
    """Thompson's automaton of an expression, into ``silent`` and ``over``: its first and last state."""
    states = iter(range(1 << 60))

    def build(expression) -> tuple[int, int]:
        kind, *parts = expression
        first, last = next(states), next(states)
        if kind == "word":
            over[first].append((parts[0], last))
        elif kind == "all":
            here = first
            for part in parts:
                head, tail = build(part)
                silent[here].append(head)
                here = tail
            silent[here].append(last)
        else:
            for head, tail in map(build, parts):
                silent[first].append(head)
                silent[tail].append(last)
                if kind == "some":
                    silent[tail].append(head)
        return first, last

    return build(rules)


def _determined(first: int, last: int, silent: dict, over: dict) -> tuple[list[dict[str, int]], set[int]]:
    """``(next state by word of each state, those that may end)``; state 0 is the start."""

    def closed(states) -> frozenset[int]:
        found, waiting = {*states}, [*states]
        while waiting:
            for state in silent[waiting.pop()]:
                if state not in found:
                    found.add(state)
                    waiting.append(state)
        return frozenset(found)

    number = {closed([first]): 0}
    waiting, table, final = deque(number), [], set()
    while waiting:
        here = waiting.popleft()
        if last in here:
            final.add(len(table))
        reached = defaultdict(set)
        for state in sorted(here):
            for word, there in over[state]:
                reached[word].add(there)
        row = {}
        for word, there in sorted(reached.items()):
            there = closed(there)
            if there not in number:
                number[there] = len(number)
                waiting.append(there)
            row[word] = number[there]
        table.append(row)
        if len(number) > LARGEST:
            raise MargoError(f"more than {LARGEST} states, expected rules that need fewer")
    return table, final


def _smallest(table: list[dict[str, int]], final: set[int]) -> tuple[list[dict[str, int]], set[int]]:
    """The same without states that cannot be told apart (Moore); the start stays state 0."""
    block = [int(state in final) for state in range(len(table))]
    count = 0
    while len({*block}) > count:
        count = len({*block})
        seen: dict[tuple, int] = {}
        block = [seen.setdefault((own, *((word, block[there]) for word, there in row.items())), len(seen))
                 for own, row in zip(block, table)]  # fmt: skip
    rows: dict[int, dict] = {}
    for own, row in zip(block, table):
        rows.setdefault(own, {word: block[there] for word, there in row.items()})
    return [rows[number] for number in range(len(rows))], {block[state] for state in final}

"""Back-off n-grams of words: what they say of a word behind others, estimates from transcripts, and the automaton.

``log P(w | h) = log_probs[h + w]`` where there is one, else ``log_backoffs[h]`` (0 where there is none) plus that of
the shorter history. Strings begin with ``<s>`` and end with ``</s>``.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from margo.errors import MargoError

START, END = "<s>", "</s>"
UNKNOWN = ("<UNK>", "<unk>")  # stands for every word that a model does not name
EXACT = 200_000  # arcs of an automaton that has all words behind each history
NEVER = -200.0  # natural log; ARPA files say -99 (of base 10) where they mean none


class Way(NamedTuple):
    """An arc of the automaton: between states (places in ``histories``), over a word, END, or None (backing off)."""

    source: int
    word: str | None
    destination: int
    log_prob: float


@dataclass(frozen=True, eq=False)
class Ngram:
    """log_probs: natural, by n-gram (tuple of words); log_backoffs by history."""

    order: int
    log_probs: dict[tuple[str, ...], float]
    log_backoffs: dict[tuple[str, ...], float]

    def log_prob(self, history: Sequence[str], word: str) -> float:
        """Of ``word`` behind ``history`` (its last order - 1 words count)."""
        known = (word,) in self.log_probs
        if not known:
            word = next((name for name in UNKNOWN if (name,) in self.log_probs), word)
        history, backed = tuple(history)[-(self.order - 1) :] if self.order > 1 else (), 0.0
        while history and (*history, word) not in self.log_probs:
            backed += self.log_backoffs.get(history, 0.0)
            history = history[1:]
        total = backed + self.log_probs.get((*history, word), -np.inf)
        return total if total > NEVER else -np.inf

    def pairs(self, words: Sequence[str]) -> np.ndarray:
        """``log P(w | v)`` [V + 1, V + 1] as :func:`margo.model.graph.bigram_graph` takes it; exact up to order 2."""
        if self.order > 2:
            raise MargoError(f"a table of pairs holds 2-grams at most, the model is of order {self.order}")
        after, before = [*words, END], [*words, START]
        return np.array([[self.log_prob((v,), w) for w in after] for v in before])

    def over(self, words: Sequence[str]) -> "Ngram":
        """The model with an entry for each of ``words``, where one that it does not name is its unknown word, and
        nothing else."""
        named = {*words, START, END}
        kept = {key: value for key, value in self.log_probs.items() if named.issuperset(key)}
        kept |= {(word,): self.log_prob((), word) for word in (*words, END)}
        backoffs = {key: value for key, value in self.log_backoffs.items() if named.issuperset(key)}
        return Ngram(self.order, kept, backoffs)

    @cached_property
    def histories(self) -> list[tuple[str, ...]]:
        """States: the empty history, START, and those that n-grams continue."""
        own = {key[:-1] for key in self.log_probs} | {(START,)} if self.order > 1 else set()
        return [(), (START,), *sorted(own - {(), (START,)})]

    @cached_property
    def ways(self) -> list[Way]:
        """The automaton: every word behind every state, exactly; where these are more than ``EXACT``, n-grams that are
        there, and backing off to the others. That leads past n-grams too, and the better way counts, which can be one
        that no longer knows a word (an approximation, the usual one). START does not back off and cannot end."""
        index = {history: number for number, history in enumerate(self.histories)}
        words = [key[0] for key in self.log_probs if len(key) == 1 and key[0] != START]
        exact = len(index) * len(words) <= EXACT
        ways = []
        for history, number in index.items():
            everything = exact or history in ((), (START,))
            for word in words if everything else self._continued[history]:
                value = self.log_prob(history, word)
                if value > -np.inf and (history, word) != ((START,), END):
                    ways.append(Way(number, word, 0 if word == END else self._state((*history, word), index), value))
            if not everything:
                ways.append(Way(number, None, self._state(history[1:], index), self._backed(history, index)))
        return ways

    @property
    def backs_off(self) -> bool:
        """Whether the automaton leaves words to shorter histories."""
        return any(way.word is None for way in self.ways)

    @cached_property
    def _continued(self) -> dict[tuple[str, ...], list[str]]:
        """Words that n-grams have behind each history."""
        table = defaultdict(list)
        for key in sorted(self.log_probs):
            if key[-1] != START:
                table[key[:-1]].append(key[-1])
        return table

    def _state(self, history: tuple, index: dict) -> int:
        """The longest ending of a history that is a state."""
        history = history[-(self.order - 1) :] if self.order > 1 else ()
        while history not in index:
            history = history[1:]
        return index[history]

    def _backed(self, history: tuple, index: dict) -> float:
        """Sum of the backoffs from a history to the next shorter one that is a state."""
        total = self.log_backoffs.get(history, 0.0)
        while (history := history[1:]) not in index:
            total += self.log_backoffs.get(history, 0.0)
        return total

    @cached_property
    def _leaving(self) -> dict[int, list[Way]]:
        table = defaultdict(list)
        for way in self.ways:
            table[way.source].append(way)
        return table

    def string_score(self, words: Sequence[str]) -> float:
        """Log probability of a string's best way through the automaton; -inf where there is none."""
        scores = {1: 0.0}
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
            for way in self._leaving[here]:
                if way.word is None:
                    waiting.append((way.destination, value + way.log_prob))
                elif way.word == word:
                    after[way.destination] = max(after.get(way.destination, -np.inf), value + way.log_prob)


def witten_bell(strings: Iterable[Sequence[str]], words: Sequence[str], order: int = 2) -> Ngram:
    """An n-gram of ``order`` over ``words`` from strings, interpolated after Witten and Bell (1991).

    ``P(w | h) = (c(h w) + n(h) P(w | h')) / (c(h) + n(h))``, n(h) the number of different words seen behind h, h' the
    history without its first word; below all, the V words and the end are as likely. Sums to 1 behind every history.
    """
    counts: dict[tuple, Counter] = defaultdict(Counter)
    for string in strings:
        padded = (START, *string, END)
        for place in range(1, len(padded)):
            for length in range(min(order, place + 1)):
                counts[padded[place - length : place]][padded[place]] += 1
    probs: dict[tuple, float] = {}
    backoffs: dict[tuple, float] = {}

    def probability(history, word):
        while history and (*history, word) not in probs:
            if history in backoffs:
                return backoffs[history] * probability(history[1:], word)
            history = history[1:]
        return probs[*history, word]

    base = [*dict.fromkeys(words), END]
    seen, total = counts[()], sum(counts[()].values())
    if unknown := sorted({*seen} - {*base}):
        raise MargoError(f"n-gram: not among its words: {' '.join(unknown[:10])}")
    kinds = max(len(seen), 1)
    for word in base:
        probs[word,] = (seen[word] + kinds / len(base)) / (total + kinds)
    for history in sorted((key for key in counts if key), key=lambda key: (len(key), key)):
        behind = counts[history]
        total, kinds = sum(behind.values()), len(behind)
        backoffs[history] = kinds / (total + kinds)
        for word, count in behind.items():
            probs[*history, word] = (count + kinds * probability(history[1:], word)) / (total + kinds)
    return Ngram(order, {key: float(np.log(value)) for key, value in probs.items()},
                 {key: float(np.log(value)) for key, value in backoffs.items()})  # fmt: skip

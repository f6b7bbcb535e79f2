"""Back-off n-grams of words: what they say of a word behind others, estimates from transcripts, and the automaton.

``log P(w | h) = log_probs[h + w]`` where there is one, else ``log_backoffs[h]`` (0 where there is none) plus that of
the shorter history. Strings begin with ``<s>`` and end with ``</s>``.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from margo.errors import MargoError
from margo.model.automaton import END, Automaton, Way

START = "<s>"
UNKNOWN = ("<UNK>", "<unk>")  # stands for every word that a model does not name
EXACT = 200_000  # arcs of an automaton that has all words behind each history
NEVER = -200.0  # natural log; ARPA files say -99 (of base 10) where they mean none


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
    def automaton(self) -> Automaton:
        """With ``histories`` as states: every word behind every state, exactly; where these are more than ``EXACT``,
        n-grams that are there, and backing off to the others. That leads past n-grams too, and the better way counts,
        which can be one that no longer knows a word (an approximation, the usual one). START does not back off and
        cannot end."""
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
        return Automaton(len(index), 1, ways)

    @property
    def backs_off(self) -> bool:
        """Whether the automaton leaves words to shorter histories."""
        return any(way.word is None for way in self.automaton.ways)

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


def perplexity(ngram: Ngram, strings: Iterable[Sequence[str]]) -> tuple[float, int, int]:
    """``(perplexity, words and ends that it is of, words without probability, which are left out)`` of strings."""
    total, count, unknown = 0.0, 0, 0
    for string in strings:
        padded = (START, *string, END)
        values = [ngram.log_prob(padded[:place], padded[place]) for place in range(1, len(padded))]
        known = [value for value in values if value > -np.inf]
        total, count, unknown = total + sum(known), count + len(known), unknown + len(values) - len(known)
    return float(np.exp(-total / max(count, 1))), count, unknown


def witten_bell(strings: Iterable[Sequence[str]], words: Sequence[str], order: int = 2) -> Ngram:
    """An n-gram of ``order`` over ``words`` from strings, interpolated after Witten and Bell (1991).

    ``P(w | h) = (c(h w) + n(h) P(w | h')) / (c(h) + n(h))``, n(h) the number of different words seen behind h, h' the
    history without its first word; below all, the V words and the end are as likely. Sums to 1 behind every history.
    """

    def shares(_, behind: Counter) -> tuple[float, float, float]:
        total = behind.total() + len(behind)
        return 0.0, len(behind) / total, total

    return _interpolated(seen_behind(strings, order), words, order, shares)


def kneser_ney(strings: Iterable[Sequence[str]], words: Sequence[str], order: int = 2) -> Ngram:
    """An n-gram of ``order`` over ``words`` from strings, interpolated after Kneser and Ney (1995).

    ``P(w | h) = max(c(h w) - d, 0) / c(h) + d n(h) / c(h) P(w | h')``, where c of all but the longest n-grams, and of
    those that begin with the start, is the number of different words seen before them; ``d = n1 / (n1 + 2 n2)`` of each
    length, from the numbers of n-grams with c = 1 and 2. Below all, the V words and the end are as likely.
    """
    seen = seen_behind(strings, order)
    whole = {history for history in seen if len(history) == order - 1 or history[:1] == (START,)}
    counts = {history: behind if history in whole else Counter() for history, behind in seen.items()}
    for history, behind in seen.items():
        if history and history[1:] not in whole:
            counts[history[1:]].update(behind.keys())
    held = [[value for key, behind in counts.items() if len(key) == length for value in behind.values()]
            for length in range(order)]  # fmt: skip
    discounts = [_discount(values) for values in held]

    def shares(length: int, behind: Counter) -> tuple[float, float, float]:
        return discounts[length], discounts[length] * len(behind) / behind.total(), behind.total()

    return _interpolated(counts, words, order, shares)


SMOOTHINGS = {"witten-bell": witten_bell, "kneser-ney": kneser_ney}


def seen_behind(strings: Iterable[Sequence[str]], order: int) -> dict[tuple[str, ...], Counter]:
    """How often each word was seen behind each history of less than ``order`` words; the empty one is always there."""
    counts: dict[tuple, Counter] = defaultdict(Counter, {(): Counter()})
    for string in strings:
        padded = (START, *string, END)
        for place in range(1, len(padded)):
            for length in range(min(order, place + 1)):
                counts[padded[place - length : place]][padded[place]] += 1
    return counts


def _discount(counts: Iterable[int]) -> float:
    """Ney, Essen and Kneser's, from the numbers of counts of 1 and 2; one half where there are none of 1, or only."""
    held = Counter(counts)
    once, twice = held[1], held[2]
    return once / (once + 2 * twice) if once and twice else 0.5


def _interpolated(counts: dict, words: Sequence[str], order: int, shares) -> Ngram:
    """``P(w | h) = (c(h w) - d) / total + rest P(w | h')`` with ``(d, rest, total) = shares(length of h, counts
    behind h)``, from the shortest histories on; below all, ``words`` and the end are as likely."""
    base = [*dict.fromkeys(words), END]
    if unknown := sorted({*counts[()]} - {*base}):
        raise MargoError(f"n-gram: not among its words: {' '.join(unknown[:10])}")
    if not counts[()]:
        counts = {(): Counter(base)}  # nothing was said
    probs: dict[tuple, float] = {}
    backoffs: dict[tuple, float] = {}

    def probability(history, word):
        while history and (*history, word) not in probs:
            if history in backoffs:
                return backoffs[history] * probability(history[1:], word)
            history = history[1:]
        return probs[*history, word]

    for history in sorted(counts, key=lambda key: (len(key), key)):
        behind = counts[history]
        discount, rest, total = shares(len(history), behind)
        for word in behind if history else base:
            lower = probability(history[1:], word) if history else 1 / len(base)
            probs[*history, word] = max(behind[word] - discount, 0.0) / total + rest * lower
        if history:
            backoffs[history] = rest
    return Ngram(order, {key: float(np.log(value)) for key, value in probs.items()},
                 {key: float(np.log(value)) for key, value in backoffs.items()})  # fmt: skip

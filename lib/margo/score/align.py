"""Edit alignment of hypotheses with references, all utterances in one call.

Costs and ties are those of NIST's sclite, so that totals, and insertions, deletions and substitutions one by one, equal
its own: an insertion or deletion costs 3, a substitution 4, and the alignment taken is the one of least total cost.
Of several with that cost, the one found by walking back from the ends of both strings and preferring, at every step, a
match or substitution over an insertion, and an insertion over a deletion.

The rule matters for totals: three substitutions cost as much as two insertions and two deletions. kaldialign's
``sclite_mode`` has the same costs but takes the latter, and unit costs may count four errors where sclite counts five;
neither reproduces sclite's totals, so that kaldialign serves the tests as a second opinion on the cost alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numba import njit

GAP_COST, SUBSTITUTION_COST = 3, 4
NOTHING = -1  # in place of the symbol that an insertion or a deletion lacks


@dataclass(frozen=True)
class Alignments:
    """Alignments of N utterances, E aligned places in all.

    ``reference[E]`` and ``hypothesis[E]`` index ``symbols``; ``NOTHING`` marks an insertion or a deletion. Utterance n
    has the places ``offsets[n]:offsets[n + 1]``.
    """

    symbols: tuple[str, ...]
    reference: np.ndarray
    hypothesis: np.ndarray
    offsets: np.ndarray

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def correct(self) -> np.ndarray:
        """Correct symbols of each utterance, int64[N]; likewise the next three."""
        return self._per_utterance(self.reference == self.hypothesis)

    @cached_property
    def insertions(self) -> np.ndarray:
        return self._per_utterance(self.reference == NOTHING)

    @cached_property
    def deletions(self) -> np.ndarray:
        return self._per_utterance(self.hypothesis == NOTHING)

    @cached_property
    def substitutions(self) -> np.ndarray:
        return np.diff(self.offsets) - self.correct - self.insertions - self.deletions

    @cached_property
    def errors(self) -> np.ndarray:
        return self.insertions + self.deletions + self.substitutions

    @cached_property
    def lengths(self) -> np.ndarray:
        """Reference lengths, int64[N]."""
        return self.correct + self.substitutions + self.deletions

    def pairs(self, utterance: int) -> list[tuple[str | None, str | None]]:
        """``(reference, hypothesis)`` symbols of one utterance, None where there is none."""
        places = slice(self.offsets[utterance], self.offsets[utterance + 1])
        names = (*self.symbols, None)  # NOTHING is -1: the last
        return [(names[r], names[h]) for r, h in zip(self.reference[places], self.hypothesis[places])]

    def _per_utterance(self, marks: np.ndarray) -> np.ndarray:
        return np.diff(np.concatenate([[0], np.cumsum(marks)])[self.offsets])


def align(references: Sequence[Sequence[str]], hypotheses: Sequence[Sequence[str]]) -> Alignments:
    """Align N references with N hypotheses; see the module for costs and ties.

    >>> align(["a b c".split()], ["a x b".split()]).pairs(0)
    [('a', 'a'), (None, 'x'), ('b', 'b'), ('c', None)]
    """
    if len(references) != len(hypotheses):
        raise ValueError(f"{len(references)} references but {len(hypotheses)} hypotheses")
    symbols = tuple(sorted({symbol for strings in (references, hypotheses) for string in strings for symbol in string}))
    index = {symbol: number for number, symbol in enumerate(symbols)}
    flat, starts = zip(*(_flatten(strings, index) for strings in (references, hypotheses)))
    capacity = starts[0] + starts[1]  # an alignment has at most as many places as both strings together
    aligned = np.full((2, capacity[-1]), NOTHING, np.int32)
    places = _align_all(flat[0], starts[0], flat[1], starts[1], aligned[0], aligned[1])
    used = np.repeat(capacity[1:] - places, places) + _ranges(places)  # each is written at the end of its room
    offsets = np.concatenate([[0], np.cumsum(places)])
    return Alignments(symbols, aligned[0, used], aligned[1, used], offsets)


def _flatten(strings, index) -> tuple[np.ndarray, np.ndarray]:
    flat = np.fromiter((index[symbol] for string in strings for symbol in string), np.int32)
    starts = np.zeros(len(strings) + 1, np.int64)
    np.cumsum([len(string) for string in strings], out=starts[1:])
    return flat, starts


def _ranges(lengths: np.ndarray) -> np.ndarray:
    """``0 1 .. lengths[0]-1, 0 1 .. lengths[1]-1, ...``"""
    ends = np.cumsum(lengths)
    return np.arange(lengths.sum()) - np.repeat(ends - lengths, lengths)


@njit(cache=True)
def _align_all(reference, reference_starts, hypothesis, hypothesis_starts, out_reference, out_hypothesis):
    """Fill each utterance's room from its end, walking back; return the places used, int64[N]."""
    n_utterances = len(reference_starts) - 1
    places = np.zeros(n_utterances, np.int64)
    for n in range(n_utterances):
        ref = reference[reference_starts[n] : reference_starts[n + 1]]
        hyp = hypothesis[hypothesis_starts[n] : hypothesis_starts[n + 1]]
        cost = np.empty((len(ref) + 1, len(hyp) + 1), np.int64)
        cost[:, 0] = GAP_COST * np.arange(len(ref) + 1)
        cost[0, :] = GAP_COST * np.arange(len(hyp) + 1)
        for i in range(1, len(ref) + 1):
            for j in range(1, len(hyp) + 1):
                change = 0 if ref[i - 1] == hyp[j - 1] else SUBSTITUTION_COST
                gap = min(cost[i - 1, j], cost[i, j - 1]) + GAP_COST
                cost[i, j] = min(cost[i - 1, j - 1] + change, gap)
        i, j = len(ref), len(hyp)
        end = reference_starts[n + 1] + hypothesis_starts[n + 1]
        while i > 0 or j > 0:
            places[n] += 1
            place = end - places[n]
            diagonal = False
            if i > 0 and j > 0:
                change = 0 if ref[i - 1] == hyp[j - 1] else SUBSTITUTION_COST
                diagonal = cost[i, j] == cost[i - 1, j - 1] + change
            if diagonal:
                i, j = i - 1, j - 1
                out_reference[place], out_hypothesis[place] = ref[i], hyp[j]
            elif j > 0 and cost[i, j] == cost[i, j - 1] + GAP_COST:
                j -= 1
                out_hypothesis[place] = hyp[j]
            else:
                i -= 1
                out_reference[place] = ref[i]
    return places

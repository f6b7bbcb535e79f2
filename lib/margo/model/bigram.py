"""Bigrams of words from transcripts, smoothed so that every string stays possible."""

from collections.abc import Iterable, Sequence

import numpy as np

from margo.errors import MargoError


def bigram_counts(strings: Iterable[Sequence[str]], words: Sequence[str]) -> np.ndarray:
    """How often each word follows each other, int [V + 1, V + 1]; row V is a string's start, column V its end."""
    index = {word: number for number, word in enumerate(words)}
    boundary = len(index)
    counts = np.zeros((boundary + 1, boundary + 1), np.int64)
    for string in strings:
        unknown = sorted({word for word in string if word not in index})
        if unknown:
            raise MargoError(f"bigram: not among its words: {' '.join(unknown)}")
        numbers = [index[word] for word in string]
        np.add.at(counts, ([boundary, *numbers], [*numbers, boundary]), 1)
    return counts


def log_bigram(counts: np.ndarray) -> np.ndarray:
    """Log probabilities [V + 1, V + 1] by absolute discounting, interpolated with the unigram.

    ``P(w | v) = max(c(v, w) - d, 0) / c(v) + d n(v) / c(v) P(w)`` with n(v) the number of different followers of v and
    ``d = n1 / (n1 + 2 n2)`` from the numbers of pairs seen once and twice (Ney, Essen and Kneser, 1994). The unigram
    has one added to each count, and is all there is for a v that was never seen. Rows sum to 1.
    """
    counts = np.asarray(counts, np.float64)
    unigram = (counts.sum(axis=0) + 1) / (counts.sum() + len(counts))
    once, twice = (counts == 1).sum(), (counts == 2).sum()
    discount = once / (once + 2 * twice) if once else 0.5
    totals = counts.sum(axis=1, keepdims=True)
    followers = (counts > 0).sum(axis=1, keepdims=True)
    seen = np.where(totals > 0, totals, 1.0)
    kept = np.maximum(counts - discount, 0.0) / seen
    freed = np.where(totals > 0, discount * followers / seen, 1.0)
    return np.log(kept + freed * unigram)

"""Error rates with their intervals, per speaker and per symbol, from alignments."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from margo.score.align import NOTHING, Alignments, align
from margo.score.interval import REPLICATES, Rate, bootstrap_interval


@dataclass(frozen=True)
class Scored:
    """What N hypotheses are worth.

    ``symbols`` is the rate over reference symbols (of words: WER; of phones: PER), ``strings`` the rate over
    utterances with any error (SER).
    """

    alignments: Alignments
    symbols: Rate
    strings: Rate


def score(
    references: Sequence[Sequence[str]], hypotheses: Sequence[Sequence[str]], generator: np.random.Generator,
    groups: Sequence[str] | None = None, replicates: int = REPLICATES,
) -> Scored:  # fmt: skip
    """Word (or phone) and string error rates; ``groups[N]`` names speakers to draw whole for the intervals.

    Classification is the case of one symbol on either side: then both rates are the classification error.
    """
    alignments = align(references, hypotheses)
    if not alignments.lengths.sum():
        raise ValueError("no reference symbols: a rate needs at least one")
    groups = None if groups is None else np.asarray(groups)
    wrong = (alignments.errors > 0).astype(np.int64)
    rates = [
        Rate(int(errors.sum()), int(totals.sum()), bootstrap_interval(errors, totals, generator, groups, replicates))
        for errors, totals in ((alignments.errors, alignments.lengths), (wrong, np.ones_like(wrong)))
    ]
    return Scored(alignments, *rates)


def confusion_counts(alignments: Alignments) -> np.ndarray:
    """How often each reference symbol (row) was taken for each hypothesised one (column), int64[V + 1, V + 1].

    Rows and columns follow ``alignments.symbols``; the last row counts insertions, the last column deletions.
    """
    size = len(alignments.symbols) + 1
    sides = (alignments.reference, alignments.hypothesis)
    rows, columns = (np.where(side == NOTHING, size - 1, side) for side in sides)
    return np.bincount(rows.astype(np.int64) * size + columns, minlength=size * size).reshape(size, size)


def confusion_shares(counts: np.ndarray) -> np.ndarray:
    """Per cent [V, V + 1] of each reference symbol recognised as each symbol, or (last column) as nothing.

    ``counts`` [V + 1, V + 1] are :func:`confusion_counts`; a symbol that never occurs has zeros.
    """
    said = np.asarray(counts, float)[:-1]
    return 100 * said / np.maximum(said.sum(axis=1, keepdims=True), 1)


def by_speaker(alignments: Alignments, speakers: Sequence[str]) -> dict[str, dict[str, int]]:
    """For each speaker, sorted: utterances, words, correct, substitutions, deletions, insertions, errors, wrong."""
    names, inverse = np.unique(np.asarray(speakers), return_inverse=True)
    columns = {"utterances": np.ones(len(alignments), np.int64), "words": alignments.lengths}
    counts = ("correct", "substitutions", "deletions", "insertions", "errors")
    columns |= {key: getattr(alignments, key) for key in counts} | {"wrong": alignments.errors > 0}
    sums = {key: np.bincount(inverse, weights=values, minlength=len(names)) for key, values in columns.items()}
    return {str(name): {key: int(values[row]) for key, values in sums.items()} for row, name in enumerate(names)}

"""How far the boundaries of an alignment lie from those of hand labels, whether that is as far as it says, and what is
systematic in it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from margo.errors import MargoError

TOLERANCES = (0.010, 0.020, 0.030, 0.050)  # seconds
TOUCHING = 0.002  # labels further apart than this have something left out between them; files hold milliseconds


@dataclass(frozen=True)
class Boundary:
    """Between the symbols ``left`` and ``right``: aligned minus labelled time, and the aligned time, in seconds."""

    left: str
    right: str
    error: float
    at: float


def boundary_errors(labels: Sequence[tuple], aligned: Sequence[tuple]) -> list[Boundary]:
    """The boundaries between neighbours, both sides as ``(start, end, symbol)``.

    Both must have the same symbols. Where something was left out of the labels between two neighbours there is no one
    time to compare with, and the boundary is not counted.
    """
    if [label[2] for label in labels] != [segment[2] for segment in aligned]:
        raise MargoError("the alignment's symbols are not those of the labels")
    return [
        Boundary(before[2], label[2], segment[0] - label[0], segment[0])
        for before, label, segment in zip(labels, labels[1:], aligned[1:])
        if label[0] - before[1] < TOUCHING
    ]


def boundary_score(errors: np.ndarray, tolerances: Sequence[float] = TOLERANCES) -> dict:
    """``errors`` [n] in seconds summed up: their number (boundaries), mean and median absolute error, mean signed error
    (bias, positive: late), and the share within each tolerance; one exactly as far off is within it."""
    if not len(errors):
        raise MargoError("no boundaries to score")
    far = np.abs(errors)
    within = {float(limit): float((far <= limit + 1e-9).mean()) for limit in tolerances}
    return {"boundaries": len(far), "mean": float(far.mean()), "median": float(np.median(far)),
            "bias": float(np.mean(errors)), "within": within}  # fmt: skip


def shares_within(errors: np.ndarray, deviations: np.ndarray, times: Sequence[float] = (1.0, 2.0)) -> list[float]:
    """Share of ``errors`` [n] that lie within so many times the deviation [n] that was stated for each."""
    return [float((np.abs(errors) <= limit * deviations).mean()) for limit in times]


NORMAL = (0.6827, 0.9545)  # of a normal distribution within one deviation and within two
PRIOR = 30.0  # boundaries that what holds for all of them counts for beside those of a pair of classes


@dataclass(frozen=True)
class Correction:
    """Of all boundaries, and of those between two classes ("left right"), how late they are in seconds; and by what
    stated deviations are to be multiplied. ``classes``: that of each symbol; one that has none is its own."""

    late: float
    pairs: Mapping[str, float]
    factor: float
    classes: Mapping[str, str]

    def pair(self, left: str, right: str) -> str:
        return f"{self.classes.get(left, left)} {self.classes.get(right, right)}"

    def lateness(self, left: str, right: str) -> float:
        return self.pairs.get(self.pair(left, right), self.late)


def learn_correction(found: Sequence[Boundary], deviations: np.ndarray, classes: Mapping[str, str]) -> Correction:
    """What is systematic in boundaries whose deviations [n] were stated.

    A pair's lateness is its boundaries' mean error with PRIOR more that have the mean of all. The factor makes as many
    lie within one deviation and within two as of a normal distribution; where both cannot be, neither is further off.
    """
    if not found:
        raise MargoError("no boundaries to learn from")
    plain = Correction(0.0, {}, 1.0, classes)
    groups: dict[str, list[float]] = {}
    for each in found:
        groups.setdefault(plain.pair(each.left, each.right), []).append(each.error)
    late = float(np.mean([each.error for each in found]))
    pairs = {pair: float((sum(errors) + PRIOR * late) / (len(errors) + PRIOR)) for pair, errors in groups.items()}
    rest = np.array([each.error - pairs[plain.pair(each.left, each.right)] for each in found])
    deviations = np.maximum(deviations, 1e-4)
    ends = [np.quantile(np.abs(rest) / deviations, share) / n for n, share in enumerate(NORMAL, 1)]
    tried = np.linspace(min(ends), max(ends), 101)
    faults = [np.abs(np.subtract(shares_within(rest, factor * deviations), NORMAL)).max() for factor in tried]
    return Correction(late, dict(sorted(pairs.items())), float(tried[int(np.argmin(faults))]), dict(classes))

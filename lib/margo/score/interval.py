"""Error rates and their confidence intervals."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

REPLICATES = 10000
LEVEL = 0.95


@dataclass(frozen=True)
class Rate:
    """``errors`` in ``total`` trials, and the 95 % interval of the percentage."""

    errors: int
    total: int
    ci95: tuple[float, float]

    @property
    def percent(self) -> float:
        return 100 * self.errors / self.total


def group_sums(values: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Sums of ``values[N]`` over utterances with the same ``groups[N]`` (any labels), one a label, labels sorted."""
    _, inverse = np.unique(groups, return_inverse=True)
    return np.bincount(inverse, weights=values)


def resampled_sums(values: np.ndarray, generator: np.random.Generator, replicates: int) -> np.ndarray:
    """Sums over ``replicates`` bootstrap samples of the rows of ``values[N, C]``; float64[replicates, C].

    Drawing N rows of N with replacement gives each *distinct* row a multinomial count. Error counts have few distinct
    values, so that a replicate costs their number rather than N, with exactly the same distribution.
    """
    distinct, counts = np.unique(values, axis=0, return_counts=True)
    draws = generator.multinomial(len(values), counts / counts.sum(), size=replicates)
    return draws @ distinct.astype(np.float64)


def bootstrap_interval(
    errors: np.ndarray, totals: np.ndarray, generator: np.random.Generator, groups: np.ndarray | None = None,
    replicates: int = REPLICATES, level: float = LEVEL,
) -> tuple[float, float]:  # fmt: skip
    """Percentile bootstrap interval of ``100 sum(errors) / sum(totals)`` (Bisani and Ney 2004).

    Utterances are drawn with replacement, or whole speakers where ``groups[N]`` names them: utterances of one speaker
    fail together, so that the latter is wider, and the honest one for few speakers. Without a single error, or with
    nothing else, every replicate is the same; then the other end is the exact binomial bound for as many trials as
    there are units.
    """
    if groups is not None:
        errors, totals = group_sums(errors, groups), group_sums(totals, groups)
    errors, totals, tail = np.asarray(errors), np.asarray(totals), (1 - level) / 2
    reach = 100 * (1 - tail ** (1 / len(errors)))
    if not errors.any():
        return 0.0, reach
    if np.array_equal(errors, totals):
        return 100 - reach, 100.0
    sums = resampled_sums(np.column_stack([errors, totals]), generator, replicates)
    sums = sums[sums[:, 1] > 0]
    low, high = np.quantile(100 * sums[:, 0] / sums[:, 1], [tail, 1 - tail])
    return float(low), float(high)


def mean_interval(values: np.ndarray, level: float = LEVEL) -> tuple[float, float]:
    """Student's interval for the mean of repeated runs (seeds, starts); it says nothing about the test set's size."""
    from scipy.special import stdtrit

    values = np.asarray(values, np.float64)
    mean = values.mean()
    if len(values) < 2:
        return float(mean), float(mean)
    reach = stdtrit(len(values) - 1, (1 + level) / 2) * values.std(ddof=1) / np.sqrt(len(values))
    return float(mean - reach), float(mean + reach)


def pooled_rate(rates: Sequence[Rate]) -> Rate:
    """The row of several runs on one test set: errors and trials summed, so that the percentage is the runs' mean;
    the interval is :func:`mean_interval`'s."""
    errors, totals, percents = zip(*((rate.errors, rate.total, rate.percent) for rate in rates))
    return Rate(sum(errors), sum(totals), mean_interval(percents))

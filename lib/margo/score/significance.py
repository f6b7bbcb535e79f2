"""Is one system better than another on the same utterances? Two-sided tests, A against B."""

from dataclasses import dataclass

import numpy as np

from margo.score.interval import LEVEL, REPLICATES, group_sums, resampled_sums


@dataclass(frozen=True)
class Comparison:
    """All tests of A against B; ``difference`` is A's rate minus B's in points: positive where B is better."""

    units: int  # utterances, or speakers
    differ: int  # units with different error counts
    a_better: int
    b_better: int
    only_a_wrong: int  # utterances that only A gets wrong, and only B
    only_b_wrong: int
    difference: float
    difference_ci95: tuple[float, float]
    p_b_better: float  # share of bootstrap samples in which B makes fewer errors, ties halved
    p_matched_pairs: float
    p_sign: float
    p_mcnemar: float


def compare(
    errors_a: np.ndarray, errors_b: np.ndarray, totals: np.ndarray, generator: np.random.Generator,
    groups: np.ndarray | None = None, replicates: int = REPLICATES,
) -> Comparison:  # fmt: skip
    """Tests on the error counts ``[N]`` of two systems; ``groups[N]`` sums them by speaker first, but for McNemar's."""
    only_a, only_b = int(np.sum((errors_a > 0) & (errors_b == 0))), int(np.sum((errors_b > 0) & (errors_a == 0)))
    if groups is not None:
        errors_a, errors_b, totals = (group_sums(values, groups) for values in (errors_a, errors_b, totals))
    gains = np.asarray(errors_a, np.float64) - errors_b
    a_better, b_better = int(np.sum(gains < 0)), int(np.sum(gains > 0))
    sums = resampled_sums(np.column_stack([gains, totals]), generator, replicates)
    sums = sums[sums[:, 1] > 0]
    low, high = np.quantile(100 * sums[:, 0] / sums[:, 1], [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Comparison(
        units=len(gains),
        differ=a_better + b_better,
        a_better=a_better,
        b_better=b_better,
        only_a_wrong=only_a,
        only_b_wrong=only_b,
        difference=float(100 * gains.sum() / np.sum(totals)),
        difference_ci95=(float(low), float(high)),
        p_b_better=float(np.mean(sums[:, 0] > 0) + np.mean(sums[:, 0] == 0) / 2),
        p_matched_pairs=matched_pairs(gains),
        p_sign=binomial_test(a_better, b_better),
        p_mcnemar=binomial_test(only_a, only_b),
    )


def matched_pairs(gains: np.ndarray) -> float:
    """Matched-pairs test on differences of error counts per segment (Gillick and Cox 1989, MAPSSWE).

    Segments are utterances (or speakers), which are independent without looking for stretches that both systems get
    right. Student's distribution in place of the normal one: it matters for speakers, who are few. Where every segment
    differs by the same amount the variance says nothing, and the sign test answers.
    """
    from scipy.special import stdtr

    n, mean = len(gains), float(np.mean(gains))
    if mean == 0:
        return 1.0
    deviation = float(np.std(gains, ddof=1)) if n > 1 else 0.0
    if deviation == 0:
        return binomial_test(int(np.sum(gains < 0)), int(np.sum(gains > 0)))
    return float(2 * stdtr(n - 1, -abs(mean) / (deviation / np.sqrt(n))))


def binomial_test(first: int, second: int) -> float:
    """Exact two-sided p of ``first`` against ``second`` being tosses of a fair coin.

    McNemar's test on utterances that only one system gets wrong; the sign test on utterances where one has fewer
    errors. Exact, hence never below its nominal level.
    """
    from scipy.special import bdtr

    tosses = first + second
    return min(1.0, float(2 * bdtr(min(first, second), tosses, 0.5))) if tosses else 1.0

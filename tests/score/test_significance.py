"""Laws of the tests: level under the null, power, symmetry, agreement with scipy."""

import numpy as np
import pytest
from scipy import stats

from margo.score.significance import binomial_test, compare, matched_pairs


def two_systems(generator, rate_a, rate_b, n=300):
    """Error counts of two systems that share their difficult utterances."""
    totals = generator.integers(1, 8, n)
    hard = generator.beta(2, 2, n) * 2
    return generator.binomial(totals, rate_a * hard), generator.binomial(totals, rate_b * hard), totals


def test_p_values_are_uniform_under_the_null():
    generator = np.random.default_rng(0)
    found = [compare(*two_systems(generator, 0.1, 0.1), generator, replicates=200) for _ in range(600)]
    assert stats.kstest([c.p_matched_pairs for c in found], "uniform").pvalue > 0.01
    for exact in ("p_sign", "p_mcnemar"):
        p = np.array([getattr(c, exact) for c in found])
        for level in (0.05, 0.2, 0.5):
            assert np.mean(p <= level) <= level + 0.03
    assert 0.92 <= np.mean([c.difference_ci95[0] <= 0 <= c.difference_ci95[1] for c in found]) <= 0.98
    assert np.mean([c.p_b_better for c in found]) == pytest.approx(0.5, abs=0.04)


def test_a_real_difference_is_found():
    generator = np.random.default_rng(1)
    found = [compare(*two_systems(generator, 0.2, 0.12), generator, replicates=200) for _ in range(50)]
    assert np.mean([c.p_matched_pairs < 0.05 for c in found]) > 0.9
    assert all(c.difference > 0 and c.p_b_better > 0.9 for c in found)


def test_swapping_the_systems_mirrors_the_result():
    a, b, totals = two_systems(np.random.default_rng(2), 0.2, 0.15)
    there, back = (compare(*pair, totals, np.random.default_rng(0)) for pair in ((a, b), (b, a)))
    assert there.difference == -back.difference
    assert (there.a_better, there.only_a_wrong) == (back.b_better, back.only_b_wrong)
    for key in ("p_matched_pairs", "p_sign", "p_mcnemar"):
        assert getattr(there, key) == pytest.approx(getattr(back, key))


def test_agrees_with_scipy():
    generator = np.random.default_rng(3)
    gains = generator.integers(-2, 4, 60)
    assert matched_pairs(gains) == pytest.approx(stats.ttest_1samp(gains, 0).pvalue)
    for first, second in ((3, 9), (0, 6), (5, 5), (40, 61)):
        assert binomial_test(first, second) == pytest.approx(stats.binomtest(first, first + second).pvalue)


def test_equal_systems_and_edge_cases():
    errors = np.array([0, 1, 2, 0])
    same = compare(errors, errors, np.full(4, 3), np.random.default_rng(0))
    assert (same.differ, same.difference, same.p_b_better) == (0, 0, 0.5)
    assert same.p_matched_pairs == same.p_sign == same.p_mcnemar == 1
    assert matched_pairs(np.ones(6)) == pytest.approx(2 * 0.5**6)  # no variance: the sign test answers
    assert matched_pairs(np.array([2.0])) == 1


def test_speakers_are_the_units_when_asked():
    a, b = np.array([1, 1, 0, 0]), np.array([0, 0, 0, 1])
    found = compare(a, b, np.ones(4), np.random.default_rng(0), np.array(["x", "x", "y", "y"]))
    assert (found.units, found.a_better, found.b_better) == (2, 1, 1)
    assert (found.only_a_wrong, found.only_b_wrong) == (2, 1)  # McNemar counts utterances

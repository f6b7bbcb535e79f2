"""Laws of intervals: coverage, agreement with plain resampling, grouping."""

import numpy as np
import pytest

from margo.score.interval import bootstrap_interval, group_sums, mean_interval, resampled_sums


def plain_resampling(values, generator, replicates):
    draws = generator.integers(0, len(values), (replicates, len(values)))
    return values[draws].sum(axis=1)


def test_multinomial_counts_have_the_distribution_of_plain_resampling():
    generator = np.random.default_rng(0)
    totals = generator.integers(1, 8, 300)
    values = np.column_stack([generator.binomial(totals, 0.1), totals])
    fast, plain = resampled_sums(values, generator, 20000), plain_resampling(values, generator, 4000)
    assert fast.mean(axis=0) == pytest.approx(plain.mean(axis=0), rel=0.01)
    assert np.cov(fast.T) == pytest.approx(np.cov(plain.T), rel=0.1)


def test_interval_covers_the_true_rate_as_often_as_it_says():
    generator = np.random.default_rng(1)
    covered = 0
    for _ in range(400):
        totals = generator.integers(1, 8, 250)
        low, high = bootstrap_interval(generator.binomial(totals, 0.12), totals, generator, replicates=800)
        covered += low <= 12 <= high
    assert 0.91 <= covered / 400 <= 0.98


def test_drawing_speakers_covers_where_drawing_utterances_does_not():
    generator = np.random.default_rng(2)
    covered = {"utterance": 0, "speaker": 0}
    speakers = np.repeat(np.arange(30), 40)
    for _ in range(200):
        errors = generator.binomial(1, generator.beta(1, 9, 30)[speakers])  # speakers differ: true rate 10 %
        for unit, groups in (("utterance", None), ("speaker", speakers)):
            low, high = bootstrap_interval(errors, np.ones_like(errors), generator, groups, replicates=400)
            covered[unit] += low <= 10 <= high
    assert covered["speaker"] >= 0.86 * 200
    assert covered["utterance"] < 0.7 * 200


def test_a_group_of_one_each_changes_nothing():
    errors, totals = np.array([0, 1, 2, 0, 3]), np.array([4, 5, 6, 7, 8])
    one = bootstrap_interval(errors, totals, np.random.default_rng(0))
    other = bootstrap_interval(errors, totals, np.random.default_rng(0), np.arange(5))
    assert one == other
    assert list(group_sums(errors, np.array(list("bbaab")))) == [2, 4]


def test_no_errors_still_leaves_room_above():
    low, high = bootstrap_interval(np.zeros(100), np.ones(100), np.random.default_rng(0))
    assert low == 0
    assert (1 - high / 100) ** 100 == pytest.approx(0.025)  # the rate at which 100 trials all succeed with 2.5 %
    mirrored = bootstrap_interval(np.ones(100), np.ones(100), np.random.default_rng(0))
    assert mirrored == pytest.approx((100 - high, 100))


def test_mean_interval_covers_and_a_single_run_has_no_width():
    generator = np.random.default_rng(3)
    intervals = [mean_interval(generator.normal(5, 2, 4)) for _ in range(1000)]
    assert 0.93 <= np.mean([low <= 5 <= high for low, high in intervals]) <= 0.97
    assert mean_interval([7.5]) == (7.5, 7.5)

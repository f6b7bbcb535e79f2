"""Boundary errors on cases done by hand."""

import numpy as np
import pytest

from margo.errors import MargoError
from margo.score.boundaries import (
    PRIOR,
    Boundary,
    boundary_errors,
    boundary_score,
    learn_correction,
    shares_within,
)

LABELS = [(0.0, 0.1, "sil"), (0.1, 0.25, "aa"), (0.27, 0.4, "t"), (0.4, 0.5, "sil")]  # something left out before t
ALIGNED = [(0.0, 0.115, "sil"), (0.115, 0.26, "aa"), (0.26, 0.37, "t"), (0.37, 0.5, "sil")]


def test_errors_are_aligned_minus_labelled_where_labels_touch():
    first, second = boundary_errors(LABELS, ALIGNED)
    assert (first.left, first.right, second.left, second.right) == ("sil", "aa", "t", "sil")
    np.testing.assert_allclose([first.error, second.error], [0.015, -0.03], atol=1e-12)
    assert (first.at, second.at) == (0.115, 0.37)


def test_labels_in_milliseconds_still_touch():
    """A CTM file rounds start and duration, so that an end may miss the next start by a millisecond."""
    labels = [(0.0, 0.101, "a"), (0.1, 0.2, "b"), (0.201, 0.3, "c")]
    assert len(boundary_errors(labels, labels)) == 2


def test_other_symbols_are_refused():
    with pytest.raises(MargoError, match="symbols"):
        boundary_errors(LABELS, ALIGNED[:-1])
    with pytest.raises(MargoError, match="symbols"):
        boundary_errors(LABELS, [*ALIGNED[:-1], (0.37, 0.5, "aa")])


def test_summary():
    score = boundary_score(np.array([0.010, -0.020, 0.0201, -0.050, 0.0]))
    assert score["within"] == {0.010: 0.4, 0.020: 0.6, 0.030: 0.8, 0.050: 1.0}
    assert score["boundaries"] == 5
    assert score["mean"] == pytest.approx(0.10010 / 5) and score["median"] == pytest.approx(0.020)
    assert score["bias"] == pytest.approx(-0.0399 / 5)
    with pytest.raises(MargoError, match="no boundaries"):
        boundary_score(np.empty(0))


def test_shares_within_stated_deviations():
    assert shares_within(np.array([0.01, -0.02, 0.03, 0.0]), np.array([0.01, 0.015, 0.01, 0.001])) == [0.5, 0.75]


def made(seed, many, late, spread):
    """Boundaries between two classes of symbols, late by pair, with deviations stated ``spread`` times too small."""
    rng = np.random.default_rng(seed)
    pairs = [("a", "x"), ("x", "b")]
    deviations = rng.uniform(0.004, 0.02, many)
    errors = [late[n % 2] + rng.normal() * deviations[n] * spread for n in range(many)]
    return [Boundary(*pairs[n % 2], error, 0.0) for n, error in enumerate(errors)], deviations


def test_what_is_systematic_is_learnt():
    """By pair of classes, drawn to the mean of all where few are seen; then as many lie within as deviations say."""
    late, classes = (0.012, -0.004), {"a": "vowel", "b": "vowel", "x": "stop"}
    found, deviations = made(0, 4000, late, 1.7)
    correction = learn_correction(found, deviations, classes)
    assert [*correction.pairs] == ["stop vowel", "vowel stop"]
    assert correction.lateness("a", "x") == correction.lateness("b", "x") == pytest.approx(late[0], abs=0.002)
    assert correction.lateness("x", "a") == pytest.approx(late[1], abs=0.002)
    assert correction.lateness("x", "q") == correction.late == pytest.approx(0.004, abs=0.001)
    assert correction.factor == pytest.approx(1.7, abs=0.05)
    others, stated = made(1, 4000, late, 1.7)
    rest = np.array([each.error - correction.lateness(each.left, each.right) for each in others])
    assert shares_within(rest, stated * correction.factor) == pytest.approx([0.683, 0.954], abs=0.02)
    few = learn_correction([*found, Boundary("a", "b", 0.1, 0.0)], np.append(deviations, 0.01), classes)
    assert few.lateness("a", "b") == pytest.approx((0.1 + PRIOR * few.late) / (1 + PRIOR))
    with pytest.raises(MargoError, match="no boundaries"):
        learn_correction([], np.empty(0), {})

"""Ticks and axes of the report's plots."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from margo.runtime.svg import Axis, axis, log_ticks, number, ticks


@given(low=st.floats(-1e6, 1e6), span=st.floats(1e-3, 1e6))
def test_ticks_are_even_few_and_inside(low, span):
    found = ticks(low, low + span)
    gaps = [b - a for a, b in zip(found, found[1:])]
    assert 2 <= len(found) <= 7
    assert low - 1e-5 * span <= found[0] and found[-1] <= low + span * (1 + 1e-5)
    assert max(gaps) == pytest.approx(min(gaps), rel=1e-3)


def test_log_axis_places_powers_evenly():
    found = Axis(1, 1000, 0, 300, log=True)
    assert [found(value) for value in found.ticks()] == [0, 100, 200, 300]
    assert log_ticks(2, 7) == [2, 3, 4, 5, 6, 7]


def test_axes_hold_their_values_and_zero_where_asked():
    held = axis([3.0, 9.0], 0, 100)
    assert held.low < 3 and held.high > 9
    assert axis([3.0, 9.0], 0, 100, zero=True).low == 0
    assert axis([5.0, 5.0], 0, 100).high > axis([5.0, 5.0], 0, 100).low
    assert math.isfinite(axis([0.0], 0, 100)(0.0))
    assert axis([-1.0, 10.0], 0, 100, log=True).low > 0


def test_numbers_use_a_minus_sign():
    assert number(-0.25) == "\u22120.25" and number(1e-9) == "1e\u221209"

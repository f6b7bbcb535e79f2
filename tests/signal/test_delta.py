"""Regression deltas against the formula, frame by frame."""

import numpy as np
import pytest

from margo.signal.delta import add_deltas


def slope(x, t, window):
    """One frame of the regression; indices outside are those of the nearest frame."""
    at = [x[min(max(t + j, 0), len(x) - 1)] for j in range(-window, window + 1)]
    steps = range(1, window + 1)
    return sum(j * (at[window + j] - at[window - j]) for j in steps) / (2 * sum(j * j for j in steps))


def kaldi_slope(x, t, order, window):
    """Derivative by the filter convolved with itself, reaching out to repeated statics."""
    taps = np.arange(-window, window + 1) / sum(j * j for j in range(-window, window + 1))
    kernel = np.ones(1)
    for _ in range(order):
        kernel = np.convolve(kernel, taps)
    reach = len(kernel) // 2
    return sum(kernel[reach + i] * x[min(max(t + i, 0), len(x) - 1)] for i in range(-reach, reach + 1))


@pytest.mark.parametrize("frames", [1, 2, 3, 30])
@pytest.mark.parametrize("window", [1, 2, 3])
def test_deltas_of_deltas(frames, window):
    x = np.random.default_rng(frames).standard_normal((frames, 4))
    first = np.array([slope(x, t, window) for t in range(frames)])
    second = np.array([slope(first, t, window) for t in range(frames)])
    assert np.allclose(add_deltas(x, 2, window), np.hstack([x, first, second]), atol=1e-12)
    assert np.array_equal(add_deltas(x, 0, window), x)


@pytest.mark.parametrize("frames", [1, 3, 30])
@pytest.mark.parametrize("order", [1, 2, 3])
def test_edges_repeated_once(frames, order):
    x = np.random.default_rng(order).standard_normal((frames, 3))
    expected = [x, *(np.array([kaldi_slope(x, t, k, 2) for t in range(frames)]) for k in range(1, order + 1))]
    assert np.allclose(add_deltas(x, order, 2, repeat_once=True), np.hstack(expected), atol=1e-12)


def test_conventions_differ_at_the_edges_only():
    x = np.random.default_rng(0).standard_normal((20, 2))
    differ = np.abs(add_deltas(x, 2, 2) - add_deltas(x, 2, 2, repeat_once=True)).max(axis=1) > 1e-12
    assert differ[0] and differ[-1] and not differ[4:-4].any()


def test_a_line_has_its_slope_and_no_curvature():
    x = np.arange(20.0)[:, None] * 3
    assert np.allclose(add_deltas(x, 2, 2)[4:-4, 1:], [3.0, 0.0])


def test_float32_stays_float32():
    assert add_deltas(np.zeros((5, 2), np.float32), 2, 2).dtype == np.float32

"""Normalisation: moments of what comes out, additivity, columns that do not vary."""

import numpy as np
import pytest

from margo.signal.cmvn import accumulate, normalise


@pytest.fixture
def x():
    noise = np.random.default_rng(0).standard_normal((200, 5))
    return (noise * [1, 2, 30, 0.1, 5] + [0, 9, -40, 3, 1]).astype(np.float32)


def test_mean_and_variance(x):
    stats = accumulate(x)
    both = normalise(x, stats, True, True).astype(np.float64)
    assert np.abs(both.mean(axis=0)).max() < 1e-5 and np.abs(both.std(axis=0) - 1).max() < 1e-5
    shifted = normalise(x, stats, True, False).astype(np.float64)
    assert np.abs(shifted.mean(axis=0)).max() < 1e-5 and np.allclose(shifted.std(axis=0), x.std(axis=0), rtol=1e-4)
    scaled = normalise(x, stats, False, True)
    assert np.allclose(scaled, x / x.std(axis=0), rtol=1e-4) and scaled.dtype == np.float32
    assert np.array_equal(normalise(x, stats, False, False), x)


def test_statistics_add(x):
    parts = accumulate(x[:30]) + accumulate(x[30:])
    whole = accumulate(x)
    assert parts.frames == whole.frames == 200
    assert np.allclose(parts.total, whole.total) and np.allclose(parts.squares, whole.squares)


def test_a_constant_column_is_centred_and_not_scaled(x):
    x[:, 2] = 7.3
    out = normalise(x, accumulate(x), True, True)
    assert np.isfinite(out).all() and np.abs(out[:, 2]).max() < 1e-5
    one = normalise(x[:1], accumulate(x[:1]), True, True)
    assert np.abs(one).max() < 1e-5

"""Recordings converted like text: told from others, and restored to what they were."""

import numpy as np
import pytest

from margo.signal.line_ends import LEAST, lost_before, restore, was_converted


def speech(rng, seconds=3.0, rate=16000):
    """Loud vowels: harmonics of a gliding pitch, louder and softer, with a little noise; int16."""
    t = np.arange(int(seconds * rate)) / rate
    phase = 2 * np.pi * np.cumsum(120 + 30 * np.sin(2 * np.pi * 0.7 * t)) / rate
    wave = sum(np.sin(k * phase + k) / k for k in range(1, 12))
    loud = 4000 * (0.1 + np.sin(np.pi * 2.5 * t) ** 2)
    return np.round(loud * wave + rng.normal(0, 20, len(t))).astype("<i2")


def convert(samples):
    """What a transfer as text does to a file; whole samples of what is left, and the bytes lost."""
    before = samples.tobytes()
    after = before.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return np.frombuffer(after[: len(after) // 2 * 2], "<i2"), len(before) - len(after)


@pytest.mark.parametrize("seed", range(6))
def test_restored(seed):
    samples = speech(np.random.default_rng(seed))
    broken, lost = convert(samples)
    assert lost >= 1 and was_converted(broken) and not was_converted(samples)
    again, found = restore(broken)
    assert found == lost
    length = min(len(again), len(samples))
    assert length >= len(samples) - 1
    error = np.abs(again[:length].astype(int) - samples[:length])
    assert np.mean(error > 3) < 2e-3, "3 is a low byte 13 that became 10"
    damage = np.abs(broken[:length].astype(int) - samples[: len(broken)][:length])
    assert np.mean(damage[: len(error)] > 3) > 0.01


def test_nothing_lost():
    """Only line feeds: samples stay as they are, but for high bytes that neighbours contradict."""
    samples = speech(np.random.default_rng(0))
    content = samples.view(np.uint8)
    assert lost_before(content) == []
    high = samples >> 8 == 13
    assert high.sum() > 100
    broken = np.where(high, samples - 768, samples).astype("<i2")
    again, found = restore(broken)
    assert found == 0 and np.mean(again == samples) > 0.999


def test_quiet_or_short_is_not_taken_for_converted():
    assert not was_converted(np.zeros(1000, dtype="<i2"))
    assert not was_converted(np.full(LEAST - 1, 10, dtype="<i2"))
    assert was_converted(np.full(LEAST, 10, dtype="<i2"))

"""Speech made different: what each change promises, measured on its outcome."""

import numpy as np
import pytest

from margo.errors import MargoError
from margo.signal import perturb

RATE = 8000


def tone(hertz, seconds=1.0):
    return (3000 * np.sin(2 * np.pi * hertz * np.arange(round(seconds * RATE)) / RATE)).astype(np.float32)


def peak_of(samples):
    """Hz at which a sound is strongest."""
    return np.argmax(np.abs(np.fft.rfft(samples * np.hanning(len(samples))))) * RATE / len(samples)


def power(samples):
    return np.mean(np.square(samples, dtype=np.float64))


@pytest.mark.parametrize("factor", [0.8, 1.25])
def test_speed_changes_length_and_pitch_alike(factor):
    faster = perturb.fast(tone(500), RATE, factor)
    assert len(faster) == round(RATE / factor) and peak_of(faster) == pytest.approx(500 * factor, rel=0.01)


def test_pitch_changes_and_length_does_not():
    pytest.importorskip("librosa")
    higher = perturb.pitched(tone(500), RATE, 12)
    assert len(higher) == RATE and peak_of(higher) == pytest.approx(1000, rel=0.02)


@pytest.mark.parametrize("decibels", [-5.0, 0.0, 20.0])
def test_noise_is_as_loud_as_was_asked(decibels):
    speech, noise = tone(500), perturb.pink(RATE, np.random.default_rng(0))
    added = perturb.noisy(speech, decibels, noise).astype(np.float64) - speech
    assert 10 * np.log10(power(speech) / power(added)) == pytest.approx(decibels, abs=0.01)
    with pytest.raises(MargoError, match="digital silence"):
        perturb.noisy(np.zeros(100, np.float32), decibels, noise[:100])


def test_pink_noise_has_as_much_power_in_each_octave():
    spectrum = np.abs(np.fft.rfft(perturb.pink(1 << 18, np.random.default_rng(0)))) ** 2
    octaves = [spectrum[1 << n : 1 << (n + 1)].sum() for n in range(8, 17)]
    assert max(octaves) / min(octaves) < 1.3


def test_a_piece_of_noise_goes_round():
    assert sorted({*perturb.piece_of(np.arange(5), 20, np.random.default_rng(0))}) == [0, 1, 2, 3, 4]


def test_a_room_decays_as_was_asked_and_is_as_loud():
    click, rng = np.zeros(RATE, np.float32), np.random.default_rng(0)
    click[100] = 1000
    heard = perturb.in_a_room(click, RATE, 0.5, 0.0, rng).astype(np.float64)
    assert len(heard) == RATE and power(heard) == pytest.approx(power(click), rel=1e-3)
    assert np.abs(heard[:100]).max() < 1e-9
    tail = heard[101:]
    assert heard[100] ** 2 == pytest.approx(np.sum(tail**2), rel=0.01)  # 0 dB of direct sound over the room's
    left = 10 * np.log10(np.cumsum(tail[::-1] ** 2)[::-1])  # what is still to come: falls by 60 dB in half a second
    assert left[0] - left[round(0.25 * RATE)] == pytest.approx(30, abs=2)

"""Outlines and spectrograms of recordings."""

import numpy as np
import pytest

from margo.signal.pictures import RANGE, envelope, spectrogram


def test_the_outline_holds_every_sample():
    rng = np.random.default_rng(0)
    for size in (1, 5, 899, 900, 12345):
        samples = np.round(3000 * rng.standard_normal(size)).astype(np.float32)
        found = envelope(samples, 900)
        assert len(found) == min(size, 900) and found.dtype == np.int16
        assert found[:, 0].min() == samples.min() and found[:, 1].max() == samples.max()
        assert (found[:, 0] <= found[:, 1]).all()
    assert envelope(np.array([1e6, -1e6], np.float32), 1).tolist() == [[-32768, 32767]]


@pytest.mark.parametrize("rate", [8000, 16000, 44100])
@pytest.mark.parametrize("pitch", [500.0, 2000.0])
def test_a_tone_is_a_line_at_its_pitch(rate, pitch):
    time = np.arange(rate) / rate
    shades = spectrogram((3000 * np.sin(2 * np.pi * pitch * time)).astype(np.float32), rate, 100, 96)
    assert shades.shape == (96, 100) and shades.max() == 255
    loudest = shades[:, 10:90].argmax(axis=0)
    assert np.abs((loudest + 0.5) / 96 * rate / 2 - pitch).max() < rate / 2 / 96 + 50  # a row, and a bin


def test_shades_are_decibels_and_silence_is_blank():
    rate, time = 8000, np.arange(4000) / 8000
    tones = [np.sin(2 * np.pi * 1000 * time) * level for level in (10000, 100)]  # 40 dB apart
    shades = spectrogram(np.concatenate(tones).astype(np.float32), rate, 40, 64)
    loud, soft = shades[:, 10].max(), shades[:, 30].max()
    assert int(loud) - int(soft) == pytest.approx(255 * 40 / RANGE, abs=3)
    assert not spectrogram(np.zeros(4000, np.float32), rate, 40, 64).any()
    assert spectrogram(np.ones(3, np.float32), rate, 40, 64).shape[0] == 64

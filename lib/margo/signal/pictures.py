"""What a recording looks like: its waveform's outline and its spectrogram, in as many columns as a picture has."""

import numpy as np
from scipy.fft import rfft

WINDOW, SHIFT = 0.02, 0.004  # seconds: as wide as formants need, so that harmonics of low voices blur
RANGE = 55.0  # dB under the loudest that are told apart
EMPHASIS = 0.97  # speech falls by 6 dB an octave


def envelope(samples: np.ndarray, columns: int) -> np.ndarray:
    """Least and largest sample of each of ``columns`` parts (of each sample, where there are fewer), int16 [C, 2]."""
    starts = _starts(len(samples), columns)
    ends = [np.minimum.reduceat(samples, starts), np.maximum.reduceat(samples, starts)]
    return np.clip(np.stack(ends, axis=1), -32768, 32767).round().astype(np.int16)


def spectrogram(samples: np.ndarray, rate: int, columns: int, rows: int) -> np.ndarray:
    """Loudness by time and frequency, uint8 [rows, C]: 255 the loudest, 0 what is ``RANGE`` dB under it or less.

    Row 0 is the lowest frequency, the last half the sample rate; a row holds the largest of the powers that fall into
    it. There are ``columns`` columns at most, each the mean of the frames in it.
    """
    window, shift = max(int(WINDOW * rate), 2), max(int(SHIFT * rate), 1)
    emphasised = np.append(samples[:1], samples[1:] - EMPHASIS * samples[:-1]).astype(np.float32)
    padded = np.pad(emphasised, (window // 2, window - window // 2))
    size = 1 << max(int(np.ceil(np.log2(window))), int(np.ceil(np.log2(2 * rows))))
    frames = np.lib.stride_tricks.sliding_window_view(padded, window)[::shift]
    starts = _starts(len(frames), columns)
    power = np.empty((len(frames), rows), np.float32)
    edges = np.linspace(0, size // 2, rows + 1).astype(int)[:-1]
    taper = np.hanning(window).astype(np.float32)
    for first in range(0, len(frames), 1024):
        spectra = np.abs(rfft(frames[first : first + 1024] * taper, size)) ** 2
        power[first : first + 1024] = np.maximum.reduceat(spectra, edges, axis=1)
    widths = np.diff(starts, append=len(frames))
    power = np.add.reduceat(power, starts) / widths[:, None]
    decibels = 10 * np.log10(np.maximum(power, 1e-9))
    shades = 255 * (1 + (decibels - decibels.max()) / RANGE) if power.max() > 0 else np.zeros(power.shape)
    return np.clip(shades, 0, 255).round().astype(np.uint8).T


def _starts(size: int, columns: int) -> np.ndarray:
    """Where each of at most ``columns`` parts of ``size`` things begins."""
    columns = min(size, columns)
    return np.arange(columns) * size // columns

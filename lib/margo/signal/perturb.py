"""Speech made different: speed, pitch, noise, a room. Samples [N] are float32 scaled as 16-bit integers; random numbers
come from a generator that is given."""

import numpy as np

from margo.errors import MargoError

DECAY = 3 * np.log(10)  # 60 dB, as a power of e, of an amplitude


def fast(samples: np.ndarray, rate: int, factor: float) -> np.ndarray:
    """``factor`` times as fast, tempo and pitch alike, as a tape would be: N / factor samples."""
    import soxr

    return soxr.resample(samples, rate * factor, rate).astype(np.float32)


def pitched(samples: np.ndarray, rate: int, semitones: float) -> np.ndarray:
    """Higher or lower by ``semitones``, and as long as before."""
    import librosa

    return librosa.effects.pitch_shift(samples.astype(np.float32), sr=rate, n_steps=semitones)


def noisy(samples: np.ndarray, decibels: float, noise: np.ndarray) -> np.ndarray:
    """With ``noise`` [N] added, so that 10 log10(power of the samples / power of the noise) is ``decibels``."""
    power, other = np.mean(np.square(samples, dtype=np.float64)), np.mean(np.square(noise, dtype=np.float64))
    if not power or not other:
        raise MargoError("digital silence, of which there is no ratio to noise")
    return samples + (noise * np.sqrt(power / other / 10 ** (decibels / 10))).astype(np.float32)


def pink(size: int, generator: np.random.Generator) -> np.ndarray:
    """Noise [size] with as much power in each octave."""
    spectrum = np.fft.rfft(generator.standard_normal(size))
    return np.fft.irfft(spectrum / np.sqrt(np.maximum(np.arange(len(spectrum)), 1)), size)


def piece_of(noise: np.ndarray, size: int, generator: np.random.Generator) -> np.ndarray:
    """``size`` samples of a recording of noise, from a place drawn at random, round and round where it is shorter."""
    return noise[(generator.integers(len(noise)) + np.arange(size)) % len(noise)]


def in_a_room(samples: np.ndarray, rate: int, seconds: float, direct: float, generator) -> np.ndarray:
    """As in a room whose sound falls by 60 dB in ``seconds``; ``direct`` is the ratio in dB of what comes straight to
    what the walls give back. The response is an impulse and a tail of noise that decays; as many samples, as loud."""
    from scipy.signal import fftconvolve

    times = np.arange(1, max(round(seconds * rate), 2)) / rate
    tail = generator.standard_normal(len(times)) * np.exp(-DECAY * times / seconds)
    tail *= np.sqrt(10 ** (-direct / 10) / np.sum(tail**2))
    wet = fftconvolve(samples.astype(np.float64), np.concatenate([[1.0], tail]))[: len(samples)]
    power = np.mean(wet**2)
    return (wet * np.sqrt(np.mean(np.square(samples, dtype=np.float64)) / power if power else 1.0)).astype(np.float32)

"""MFCC and filter banks equal to HTK's and to Kaldi's, computed for a batch of frames at a time.

Samples are float32 scaled as 16-bit integers. Frames overlap in memory as a strided view; a batch of them is windowed
into a zero-padded buffer that stays in cache, transformed by one real FFT call and mapped to channels by one product.
What becomes of a frame depends on nothing but that frame, to the bit: neither on its batch nor on its place there.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.fft import rfft

from margo.errors import MargoError
from margo.signal.cmvn import CmvnStats, accumulate, normalise
from margo.signal.delta import add_deltas
from margo.signal.front_end import MfccOptions
from margo.signal.rows import row_products, used_rows

BATCH = 384  # frames; the padded frames and their spectra then stay in cache
AT_ONCE = 16  # frames that a processor transforms side by side, at most: a multiple of it, so that all are done alike
# HTK's floor of 1.0 hides the rounding of float32; Kaldi's channels reach down to where it shows.
PRECISION = {"htk": np.float32, "kaldi": np.float64}
EPSILON = float(np.finfo(np.float32).eps)  # floor of energies, and Kaldi's floor of channels


def frame_sizes(options: MfccOptions, rate: int) -> tuple[int, int]:
    """Samples in a window and in a shift; fractions are dropped, as HTK and Kaldi do."""
    sizes = [int(rate * ms / 1000.0 + 1e-6) for ms in (options.window_ms, options.shift_ms)]
    if min(sizes) < 1:
        raise MargoError(f"window {options.window_ms} ms, shift {options.shift_ms} ms: less than a sample at {rate} Hz")
    return sizes[0], sizes[1]


def mel(hertz):
    """Mel scale of both toolkits: 1127 ln(1 + f / 700)."""
    return 1127.0 * np.log1p(np.asarray(hertz, np.float64) / 700.0)


def from_mel(mels):
    return 700.0 * np.expm1(np.asarray(mels, np.float64) / 1127.0)


KNEE = 0.85  # part of half the sample rate up to which a warp is linear; so high lies the larger of both frequencies


def warped(hertz: np.ndarray, warp: float, nyquist: float) -> np.ndarray:
    """Frequencies of a speaker whose resonances lie ``1 / warp`` times as high as others' where these would have them
    (vocal tract length): ``warp`` times theirs, above a knee in a straight line to half the sample rate."""
    if warp == 1.0:
        return hertz
    knee = KNEE * nyquist * min(1.0, 1.0 / warp)
    slope = (nyquist - warp * knee) / (nyquist - knee)
    return np.where(hertz <= knee, warp * hertz, warp * knee + slope * (hertz - knee))


def band(options: MfccOptions, nyquist: float) -> tuple[float, float]:
    """Edges of the filter bank in Hz."""
    low, high = options.low_freq, options.high_freq
    high = high if high > 0 else nyquist + high
    if not 0 <= low < high <= nyquist:
        raise MargoError(f"band {low:g} to {high:g} Hz does not lie within 0 to {nyquist:g} Hz, half the sample rate")
    return low, high


def centres(options: MfccOptions, rate: int) -> np.ndarray:
    """Centres of the triangles in Hz, equidistant in mel, [channels]."""
    low, high = band(options, rate / 2.0)
    return from_mel(np.linspace(mel(low), mel(high), options.channels + 2)[1:-1])


def mel_filters(options: MfccOptions, rate: int, fft_size: int, warp: float = 1.0) -> np.ndarray:
    """Triangles linear in mel over FFT bins, [fft_size / 2 + 1, channels]; bins are taken for :func:`warped` ones.

    Centres are equidistant in mel between the band's edges. HTK in addition leaves out the constant bin, and with
    band edges the bin nearest to each: its first bin is lo / width + 1.5 and its last hi / width - 0.5, truncated.
    """
    nyquist = rate / 2.0
    low, high = band(options, nyquist)
    edges = np.linspace(mel(low), mel(high), options.channels + 2)
    width = rate / fft_size
    bins = np.arange(fft_size // 2 + 1)
    position = mel(warped(bins * width, warp, nyquist))[:, None]
    left, centre, right = edges[:-2], edges[1:-1], edges[2:]
    weights = np.minimum((position - left) / (centre - left), (right - position) / (right - centre))
    first, last = 0, fft_size // 2 - 1
    if options.variant == "htk":
        first = max(1, int(low / width + 1.5)) if low > 0 else 1
        last = min(last, int(high / width + 0.5) - 1) if high < nyquist else last
    weights[(bins < first) | (bins > last)] = 0.0
    weights = np.maximum(weights, 0.0)
    empty = np.flatnonzero(weights.sum(axis=0) == 0)
    if len(empty):
        where = f"at {rate} Hz, band {low:g} to {high:g} Hz: use fewer channels or a longer window"
        raise MargoError(f"channel {empty[0] + 1} of {options.channels} holds no FFT bin {where}")
    return weights


def dct_matrix(options: MfccOptions, places: np.ndarray | None = None) -> np.ndarray:
    """Log channels to liftered cepstra c0 c1 ..., [channels, 1 + cepstra]; channels lie at ``places`` (0, 1, ...)."""
    n, channels = np.arange(1 + options.cepstra), options.channels
    places = np.arange(channels) if places is None else places
    matrix = np.sqrt(2.0 / channels) * np.cos(np.pi / channels * (places[:, None] + 0.5) * n)
    if options.variant == "kaldi":
        matrix[:, 0] = np.sqrt(1.0 / channels)
    if options.lifter:
        matrix *= 1.0 + 0.5 * options.lifter * np.sin(np.pi * n / options.lifter)
    return matrix


@dataclass(frozen=True)
class _Plan:
    """Constants of one set of options at one sample rate."""

    window: int
    shift: int
    fft_size: int
    taper: np.ndarray  # [window]
    filters: np.ndarray  # [fft_size / 2 + 1, channels]
    used_bins: np.ndarray  # [2, channels]
    dct: np.ndarray | None  # [channels, 1 + cepstra]


@lru_cache(maxsize=64)
def _plan(options: MfccOptions, rate: int, warp: float = 1.0) -> _Plan:
    if options.sample_rate not in (0, rate):
        raise MargoError(f"sample rate is {rate} Hz, expected {options.sample_rate} Hz")
    window, shift = frame_sizes(options, rate)
    fft_size = 1 << max(1, (window - 1).bit_length())
    taper = np.hamming(window) if options.variant == "htk" else np.hanning(window) ** 0.85
    precision = PRECISION[options.variant]
    dct = dct_matrix(options).astype(precision) if options.kind == "mfcc" else None
    filters = mel_filters(options, rate, fft_size, warp).astype(precision)
    return _Plan(window, shift, fft_size, taper.astype(precision), filters, used_rows(filters), dct)


def check_options(options: MfccOptions, rate: int) -> None:
    """Refuse options that cannot work at ``rate`` Hz, before any signal is met."""
    _plan(options, rate)


def checked_samples(samples: np.ndarray, rate: int, options: MfccOptions) -> np.ndarray:
    """``samples`` [N] in the precision that they are worked on; refused as :func:`static_features` says."""
    x, window = np.ascontiguousarray(samples, dtype=PRECISION[options.variant]), frame_sizes(options, rate)[0]
    if x.ndim != 1:
        raise MargoError(f"samples have shape {x.shape}, expected one channel")
    if len(x) < window:
        raise MargoError(f"{len(x)} samples, fewer than the {window} of one window at {rate} Hz")
    if not np.isfinite(x.sum()) and len(bad := np.flatnonzero(~np.isfinite(x))):
        raise MargoError(f"{len(bad)} of {len(x)} samples are not finite, the first is sample {bad[0]}")
    return x


def _frames(x: np.ndarray, plan: _Plan) -> np.ndarray:
    """Overlapping windows of x as a view [T, window]."""
    return np.lib.stride_tricks.sliding_window_view(x, plan.window)[:: plan.shift]


def _emphasise(x: np.ndarray, gain, out: np.ndarray, scratch: np.ndarray) -> None:
    """x[t] - a x[t-1] into ``out`` [N], but for its first entry, as differences + (1 - a) x[t-1]; ``gain`` is 1 - a.

    Differences of 16-bit samples are exact in float32, so that no rounding of the large low frequencies covers the
    small high ones.
    """
    np.subtract(x[1:], x[:-1], out=out[1:])
    np.multiply(x[:-1], gain, out=scratch[1:])
    out[1:] += scratch[1:]


def _spectral(x: np.ndarray, plan: _Plan, options: MfccOptions) -> tuple[np.ndarray, np.ndarray]:
    """Channel sums [T, channels] and frame energies [T] of samples x, in the precision of x."""
    all_frames = _frames(x, plan)
    count = len(all_frames)
    batch = min(BATCH, count)
    gain = x.dtype.type(1.0 - options.preemphasis)  # of a constant: of a frame's mean, and of its first sample
    channels = np.empty((count, options.channels), x.dtype)
    energies = np.ones(count, x.dtype)
    signal = np.zeros((batch - 1) * plan.shift + plan.window, x.dtype)  # pre-emphasised, as far as a batch needs
    scratch = np.empty_like(signal)
    emphasised = _frames(signal, plan)
    padded = np.zeros((-(-batch // AT_ONCE) * AT_ONCE, plan.fft_size), x.dtype)
    magnitudes = np.empty((batch, plan.fft_size // 2 + 1), x.dtype)
    for start in range(0, count, batch):
        frames = all_frames[start : start + batch]
        n = len(frames)
        rows, samples = slice(start, start + n), (n - 1) * plan.shift + plan.window
        tapered = padded[:n, : plan.window]
        _emphasise(x[start * plan.shift :][:samples], gain, signal[:samples], scratch[:samples])
        if options.zero_mean:
            means = frames.mean(axis=1, keepdims=True)
            np.subtract(emphasised[:n], gain * means, out=tapered)
            tapered[:, 0] = gain * (frames[:, 0] - means[:, 0])
            tapered *= plan.taper
        else:
            np.multiply(emphasised[:n], plan.taper, out=tapered)
            tapered[:, 0] = (gain * plan.taper[0]) * frames[:, 0]
        if options.energy == "E":
            measured = tapered if not options.raw_energy else frames - means if options.zero_mean else frames
            np.einsum("tw,tw->t", measured, measured, out=energies[rows])
        np.abs(rfft(padded[: -(-n // AT_ONCE) * AT_ONCE], axis=1)[:n], out=magnitudes[:n])
        if options.use_power:
            np.square(magnitudes[:n], out=magnitudes[:n])
        row_products(magnitudes[:n], plan.filters, plan.used_bins, channels[rows])
    return channels, energies


def _log_energy(energies: np.ndarray, starts: np.ndarray, lengths: np.ndarray, options: MfccOptions) -> np.ndarray:
    """Log energy [T], normalised per recording (T_i = ``lengths`` from ``starts`` on) where asked.

    A silent frame has log EPSILON, in both variants (HTK's -1e10 would swamp any model that saw it).
    """
    log_energy = np.log(np.maximum(energies, EPSILON))
    if options.normalise_energy:
        top = np.repeat(np.maximum.reduceat(log_energy, starts), lengths).astype(np.float64)
        floor = top - options.silence_floor_db * np.log(10.0) / 10.0
        log_energy = 1.0 - options.energy_scale * (top - np.maximum(log_energy, floor))
    return log_energy


def static_features(samples: np.ndarray, rate: int, options: MfccOptions) -> np.ndarray:
    """Features before normalisation and deltas: samples [N] at ``rate`` Hz -> float32 [T, D].

    Never NaN; an utterance shorter than a window, or with a sample that is not finite, is refused.
    """
    plan = _plan(options, int(rate))
    return _statics([checked_samples(samples, rate, options)], plan, options)[0]


def statics_of_many(
    signals: list[np.ndarray], rate: int, options: MfccOptions, warp: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """:func:`static_features` of many short recordings at once, one after the other [T, D], and how many frames are of
    each; frequencies are :func:`warped`. ``signals`` are such as :func:`checked_samples` returns."""
    return _statics(signals, _plan(options, int(rate), warp), options)


def _statics(signals: list[np.ndarray], plan: _Plan, options: MfccOptions) -> tuple[np.ndarray, np.ndarray]:
    lengths = np.array([(len(x) - plan.window) // plan.shift + 1 for x in signals])
    starts = np.cumsum(lengths) - lengths
    channels, energies = _spectral(signals[0], plan, options) if len(signals) == 1 else _together(
        signals, lengths, plan, options)  # fmt: skip
    if options.kind != "melspec":
        np.maximum(channels, 1.0 if options.variant == "htk" else EPSILON, out=channels)
        np.log(channels, out=channels)
    if options.kind == "mfcc":
        cepstra = np.empty((len(channels), plan.dct.shape[1]), channels.dtype)
        row_products(channels, plan.dct, used_rows(plan.dct), cepstra)
        body, extra = cepstra[:, 1:], cepstra[:, :1]
    else:
        body, extra = channels, None
    if options.energy == "none":
        return np.ascontiguousarray(body, np.float32), lengths
    if options.energy == "E":
        extra = _log_energy(energies, starts, lengths, options)[:, None]
    parts = [extra, body] if options.variant == "kaldi" else [body, extra]
    return np.concatenate(parts, axis=1, dtype=np.float32), lengths


def _together(signals: list[np.ndarray], lengths: np.ndarray, plan: _Plan, options: MfccOptions):
    """:func:`_spectral` of recordings as if they were one; frames in which two of them meet are left out.

    Each begins at a multiple of the shift, so that its frames are among those of the whole.
    """
    rows = np.array([-(-len(x) // plan.shift) for x in signals])
    first = np.cumsum(rows) - rows
    whole = np.zeros(rows.sum() * plan.shift + plan.window, signals[0].dtype)
    for x, row in zip(signals, first.tolist()):
        whole[row * plan.shift : row * plan.shift + len(x)] = x
    own = np.arange(lengths.sum()) + np.repeat(first - np.cumsum(lengths) + lengths, lengths)
    channels, energies = _spectral(whole, plan, options)
    return channels[own], energies[own]


def normalised_columns(options: MfccOptions) -> slice:
    """Static columns that mean and variance normalisation touches: HTK leaves the log energy alone."""
    return slice(0, -1 if options.variant == "htk" and options.energy == "E" else None)


def cmvn_stats(statics: np.ndarray, options: MfccOptions) -> CmvnStats:
    """Additive statistics of the columns to normalise; summed over a speaker's utterances for ``cmvn = "speaker"``."""
    return accumulate(statics[:, normalised_columns(options)])


def finish_features(
    statics: np.ndarray, options: MfccOptions, stats: CmvnStats | None = None, lengths: np.ndarray | None = None
) -> np.ndarray:
    """Normalise statics [T, D] and add derivatives, float32 [T, D (1 + deltas)].

    ``stats`` are the speaker's; without them an utterance is normalised by its own. Where nothing is normalised,
    ``lengths`` may say that these are recordings one after the other.
    """
    if options.cmvn != "none":
        columns = normalised_columns(options)
        stats = cmvn_stats(statics, options) if stats is None else stats
        statics = statics.copy()
        statics[:, columns] = normalise(statics[:, columns], stats, options.cmvn_mean, options.cmvn_variance)
    return add_deltas(statics, options.deltas, options.delta_window, options.variant == "kaldi", lengths)


def compute_features(samples: np.ndarray, rate: int, options: MfccOptions) -> np.ndarray:
    """Samples [N] -> finished features, float32 [T, D]; ``cmvn = "speaker"`` takes the utterance for the speaker."""
    return finish_features(static_features(samples, rate, options), options)

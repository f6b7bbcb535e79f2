"""Audio files: what is inside decides how they are read, not what they are called.

Samples come as float32 scaled as 16-bit integers; 16-bit PCM, mu-law and A-law are exact. NIST SPHERE is read here
(its header, the count it declares, embedded shorten through PyAV), everything else by libsndfile. A file that holds
fewer samples than its header promises is refused, not read in part, and so are formats that promise nothing.
"""

import subprocess
from dataclasses import dataclass
from io import BytesIO

import numpy as np

from margo.errors import MargoError
from margo.formats.atomic import atomic
from margo.formats.containers import plain_wave, shortfall
from margo.formats.reading import ALWAYS, open_file, read_small, reading, size_of
from margo.knobs import whole

# Formats that say how long they are, or of which libsndfile finds out.
FORMATS = {"WAV", "WAVEX", "RF64", "AIFF", "SVX", "AU", "CAF", "W64", "VOC", "OGG", "FLAC", "MP3", "RAW"}
# Subtypes of libsndfile whose values are 16-bit integers or fewer; all others are read as reals and scaled.
INTEGER = {"PCM_16", "PCM_S8", "PCM_U8", "ULAW", "ALAW"}
SPHERE_CODINGS = {"pcm": "pcm", "ulaw": "ULAW", "mu-law": "ULAW", "mulaw": "ULAW", "alaw": "ALAW", "a-law": "ALAW"}
BYTE_ORDERS = {"01": "LITTLE", "0123": "LITTLE", "012": "LITTLE", "10": "BIG", "3210": "BIG", "210": "BIG"}
LOWEST_RATE, HIGHEST_RATE = 1000, 1_000_000  # Hz
PACKED = 100  # samples that a byte may hold; codecs for speech come to 64
BLOCK = 1 << 20  # samples read at once
SMALL = 1 << 16  # bytes of a file that is read at once: of many short recordings, each call to the system counts
LARGEST_SAMPLE = 32767
OVERSHOOT = 0.5  # seconds a segment may end after its recording


@dataclass(frozen=True)
class AudioInfo:
    """What a file's header says."""

    sample_rate: int
    samples: int  # of each channel
    channels: int
    integer: bool  # and so certainly finite


@dataclass(frozen=True)
class _Sphere:
    """A SPHERE header: ``sample_count`` is per channel, None where it is not stated."""

    header_bytes: int
    sample_rate: int
    sample_count: int | None
    channels: int
    coding: str
    shorten: bool
    sample_bytes: int
    byte_order: str

    @property
    def subtype(self) -> str:
        return f"PCM_{8 * self.sample_bytes}" if self.coding == "pcm" else self.coding


def read_audio(source, *, offset: float = 0.0, duration: float | None = None, rate: int | None = None,
               channel: int | None = None, name: str = "") -> tuple[np.ndarray, int]:  # fmt: skip
    """``(samples float32 [N] scaled as 16-bit integers, sample rate)`` of ``source``, a path or the file's bytes.

    ``offset`` and ``duration`` in seconds cut a piece out (an end up to half a second past the recording's is taken
    for it); ``rate`` asks for resampling; ``channel`` (from 0) picks one of several. ``name`` stands in messages for
    a source that is bytes. Raises MargoError with the file's name and the reason.
    """
    name = name or ("audio" if isinstance(source, bytes) else str(source))
    with _open(source, name) as file, reading(name, "audio"):
        samples, found_rate = (_read_sphere if _is_sphere(file) else _read_sndfile)(file, name)
    if not samples.size:
        raise MargoError(f"{name}: holds no samples")
    samples = cut(_pick_channel(samples, channel, name), found_rate, offset, duration, name)
    _check_finite(samples, name)
    if rate and rate != found_rate:
        import soxr

        samples, found_rate = soxr.resample(samples, found_rate, rate).astype(np.float32), rate
        _check_finite(samples, name)  # what is nearly too large may be too large between the samples
    return samples, found_rate


def _check_finite(samples: np.ndarray, name: str) -> None:
    with np.errstate(over="ignore", invalid="ignore"):  # the sum first: of many short recordings each call counts
        surely = np.isfinite(samples.sum())
    if not surely and len(bad := np.flatnonzero(~np.isfinite(samples))):
        raise MargoError(f"{name}: {len(bad)} of {len(samples)} samples are NaN or infinite, the first is {bad[0]}")


def audio_info(source, name: str = "") -> AudioInfo:
    """Rate, samples and channels from the header, without decoding; refuses files shorter than it promises."""
    name = name or ("audio" if isinstance(source, bytes) else str(source))
    with _open(source, name) as file, reading(name, "audio"):
        if _is_sphere(file):
            header = _sphere_header(file, name)
            return AudioInfo(header.sample_rate, _sphere_samples(file, header, name), header.channels, True)
        if plain := plain_wave(file):
            rate, channels, unit, declared = plain
            if (found := size_of(file) - 44) < declared:
                raise _truncated(name, found // unit, declared // unit)
            _check_rate(rate, name)
            return AudioInfo(rate, declared // unit, channels, True)
        with _sound_file(file, name) as sound:
            real = sound.subtype in ("FLOAT", "DOUBLE")
            return AudioInfo(sound.samplerate, sound.frames, sound.channels, not real)


def run_pipe(command: str) -> bytes:
    """What a ``wav.scp`` command that ends in ``|`` writes; only for folders whose owner allowed pipes."""
    done = subprocess.run(command.rstrip().removesuffix("|"), shell=True, capture_output=True, check=False)
    if done.returncode:
        words = done.stderr.decode(errors="replace").strip().splitlines()
        raise MargoError(f"{command}: ended with status {done.returncode}" + (f" ({words[-1]})" if words else ""))
    return done.stdout


def _open(source, name: str):
    content = source if isinstance(source, bytes) else read_small(source, SMALL)
    if content is None:
        return open_file(source)
    if not content:
        raise MargoError(f"{name}: is empty (0 bytes)")
    return BytesIO(content)


def _is_sphere(file) -> bool:
    magic = file.read(7)
    file.seek(0)
    return magic == b"NIST_1A"


def _sphere_header(file, name: str) -> _Sphere:
    lines = file.read(16).split(b"\n")
    if len(lines) < 2 or not lines[1].strip().isdigit():
        raise MargoError(f"{name}: SPHERE header does not state its length")
    length = int(lines[1])
    header = file.read(min(length, size_of(file)))
    if len(header) < length or b"end_head" not in header:
        raise MargoError(f"{name}: SPHERE header is cut off ({len(header)} of {length} bytes)")
    lines = [line.split(maxsplit=2) for line in header.split(b"end_head")[0].decode("latin-1").splitlines()[2:]]
    fields = {parts[0]: parts[2].strip() for parts in lines if len(parts) == 3 and parts[1].startswith("-")}

    def number(key: str, default: int | None) -> int | None:
        try:
            return max(whole(fields[key]), 0) if key in fields else default
        except ValueError as error:
            raise MargoError(f"{name}: SPHERE header: {key} {error}") from None

    coding, *packing = fields.get("sample_coding", "pcm").lower().split(",")
    shorten = any("shorten" in each for each in packing)
    if coding not in SPHERE_CODINGS or (packing and not shorten):
        raise MargoError(f"{name}: SPHERE coding {fields['sample_coding']!r} is not supported")
    rate, size = number("sample_rate", None), number("sample_n_bytes", 2 if coding == "pcm" else 1)
    order = BYTE_ORDERS.get(fields.get("sample_byte_format", ""), "FILE")
    if rate is None:
        raise MargoError(f"{name}: SPHERE header: sample_rate is None, expected a number above 0")
    _check_rate(rate, name)
    if not shorten and (size not in (1, 2, 3, 4) or (size == 1) != (coding != "pcm")):
        raise MargoError(f"{name}: SPHERE samples of {size} bytes in coding {coding!r} are not supported")
    if not shorten and size > 1 and order == "FILE":
        found = fields.get("sample_byte_format", "missing")
        raise MargoError(f"{name}: SPHERE header: sample_byte_format is {found}, expected 01 or 10")
    channels = number("channel_count", 1)
    if not channels:
        raise MargoError(f"{name}: SPHERE header: channel_count is 0")
    return _Sphere(length, rate, number("sample_count", None), channels, SPHERE_CODINGS[coding], shorten, size, order)


def _sphere_samples(file, header: _Sphere, name: str) -> int:
    """Samples of each channel, once it is sure that they are all there (of shorten only decoding can tell)."""
    if header.shorten:
        if header.sample_count is None:
            raise MargoError(f"{name}: SPHERE header: sample_count is missing")
        return header.sample_count
    found = (size_of(file) - header.header_bytes) // (header.sample_bytes * header.channels)
    declared = found if header.sample_count is None else header.sample_count
    if found < declared:
        raise _truncated(name, found, declared)
    return declared


def _read_sphere(file, name: str) -> tuple[np.ndarray, int]:
    header = _sphere_header(file, name)
    count = _sphere_samples(file, header, name)
    if header.shorten:
        return _read_shorten(file, header, count, name), header.sample_rate
    file.seek(header.header_bytes)
    content = file.read(count * header.channels * header.sample_bytes)
    if header.subtype == "PCM_16":  # by far the most frequent
        kind = "<i2" if header.byte_order == "LITTLE" else ">i2"
        return np.frombuffer(content, kind).reshape(-1, header.channels).astype(np.float32), header.sample_rate
    raw = {"format": "RAW", "subtype": header.subtype, "endian": header.byte_order,
           "channels": header.channels, "samplerate": header.sample_rate}  # fmt: skip
    with _sound_file(BytesIO(content), name, **raw) as sound:
        return _decode(sound), header.sample_rate


def _read_shorten(file, header: _Sphere, count: int, name: str) -> np.ndarray:
    try:
        import av
    except ImportError:
        needed = "SPHERE with embedded shorten needs PyAV: pip install 'margo-speech[sphere]'"
        raise MargoError(f"{name}: {needed}") from None
    most = max(ALWAYS, PACKED * size_of(file))
    if count * header.channels > most:
        raise MargoError(f"{name}: declares {count} samples, expected at most {most} in a file of its size")
    with reading(name, "embedded shorten"), av.open(file, format="nistsphere") as container:
        blocks, held = [], 0
        for frame in container.decode(audio=0):
            blocks.append(frame.to_ndarray())
            held += blocks[-1].size
            if held > 2 * most:
                raise MargoError(f"{name}: holds more samples than a file of its size can")
    samples = np.concatenate(blocks, axis=1) if blocks else np.empty((header.channels, 0), np.int16)
    if samples.dtype != np.int16 or len(samples) != header.channels:
        raise MargoError(f"{name}: embedded shorten holds {len(samples)} channels of {samples.dtype}, "
                         f"expected {header.channels} of int16")  # fmt: skip
    if samples.shape[1] < count:
        raise _truncated(name, samples.shape[1], count)
    return samples[:, :count].T.astype(np.float32)


def _sound_file(file, name: str, **raw):
    """The open ``file`` as libsndfile sees it, once it is sure that it can hold what it declares."""
    import soundfile

    size = size_of(file)
    with reading(name):
        if words := "" if raw else shortfall(file, size):
            raise MargoError(words)
    file.seek(0)
    try:
        sound = soundfile.SoundFile(file, **raw)
    except (soundfile.SoundFileError, TypeError) as error:
        reason = getattr(error, "error_string", error)
        raise MargoError(f"{name}: not an audio file that can be read ({reason})") from None
    if sound.format not in FORMATS:
        raise MargoError(f"{name}: format {sound.format} does not say how long it is, expected WAV, FLAC, SPHERE ...")
    most = max(ALWAYS, PACKED * size)
    if sound.frames * sound.channels > most:
        raise MargoError(f"{name}: declares {sound.frames} samples, expected at most {most} in a file of {size} bytes")
    _check_rate(sound.samplerate, name)
    return sound


def _check_rate(rate: int, name: str) -> None:
    if not LOWEST_RATE <= rate <= HIGHEST_RATE:
        raise MargoError(f"{name}: sample rate is {rate} Hz, expected {LOWEST_RATE} to {HIGHEST_RATE}")


def _decode(sound) -> np.ndarray:
    """All samples [N, channels] as float32 in the scale of 16-bit integers."""
    kind = "int16" if sound.subtype in INTEGER else "float32" if sound.subtype == "FLOAT" else "float64"
    scale, blocks = 1 if kind == "int16" else np.dtype(kind).type(32768), [np.empty((0, sound.channels), np.float32)]
    with np.errstate(over="ignore", invalid="ignore"):  # what is no number is refused later
        while len(block := sound.read(BLOCK, dtype=kind, always_2d=True)):
            blocks.append((block * scale).astype(np.float32, copy=False))
    return np.concatenate(blocks) if len(blocks) != 2 else blocks[1]


def _read_sndfile(file, name: str) -> tuple[np.ndarray, int]:
    rate, channels, unit, declared = plain_wave(file) or (0, 0, 0, 0)
    if unit and unit == 2 * channels:  # 16-bit PCM: no need of libsndfile, and ten times as fast
        content = file.read(declared)
        if len(content) < declared:
            raise _truncated(name, len(content) // unit, declared // unit)
        _check_rate(rate, name)
        samples = np.frombuffer(content, "<i2", declared // unit * channels)
        return samples.reshape(-1, channels).astype(np.float32), rate
    import soundfile

    with _sound_file(file, name) as sound:
        try:
            samples = _decode(sound)
        except soundfile.SoundFileError as error:
            raise MargoError(f"{name}: cannot be decoded ({getattr(error, 'error_string', error)})") from None
        if len(samples) < sound.frames:
            raise _truncated(name, len(samples), sound.frames)
        return samples, sound.samplerate


def _truncated(name: str, found: int, declared: int) -> MargoError:
    return MargoError(f"{name}: truncated: {found} samples found, its header declares {declared}")


def _pick_channel(samples: np.ndarray, channel: int | None, name: str) -> np.ndarray:
    count = samples.shape[1]
    if channel is None and count > 1:
        raise MargoError(f"{name}: has {count} channels, expected one (--channel takes one of several, counted from 0)")
    if channel is not None and not 0 <= channel < count:
        raise MargoError(f"{name}: has no channel {channel}, its {count} are numbered from 0")
    return np.ascontiguousarray(samples[:, channel or 0])


def cut(samples: np.ndarray, rate: int, offset: float, duration: float | None, name: str) -> np.ndarray:
    """The piece of ``samples`` from ``offset`` on, ``duration`` seconds long or to the end."""
    first = round(offset * rate)
    last = len(samples) if duration is None else round((offset + duration) * rate)
    if not 0 <= first < min(last, len(samples)) or last > len(samples) + OVERSHOOT * rate:
        whole = len(samples) / rate
        raise MargoError(f"{name}: {offset:g} to {last / rate:g} s does not lie within the recording of {whole:g} s")
    return samples[first:last]


def read_recording(path_or_pipe: str, allow_pipes: bool = False, **how) -> tuple[np.ndarray, int]:
    """:func:`read_audio` of a ``wav.scp`` value: a path, or where allowed a command that ends in ``|``."""
    if not path_or_pipe.rstrip().endswith("|"):
        return read_audio(path_or_pipe, **how)
    if not allow_pipes:
        raise MargoError(f"{path_or_pipe}: commands are run with --allow-pipes true only")
    return read_audio(run_pipe(path_or_pipe), name=path_or_pipe, **how)


def write_wave(path, samples: np.ndarray, rate: int) -> None:
    """Samples [N] as a 16-bit wave file, whole or not at all; softer as a whole where the loudest would not fit."""
    import soundfile

    sound, loudest = BytesIO(), np.abs(samples.astype(np.float64)).max(initial=1.0)
    whole = np.round(samples * min(1.0, LARGEST_SAMPLE / loudest)).astype(np.int16)
    soundfile.write(sound, whole, rate, format="WAV")
    with atomic(path, "wb") as file:
        file.write(sound.getvalue())

"""Audio of every kind the corpora come in, made here byte by byte: good files exactly, bad ones refused by name."""

import io
import sys

import numpy as np
import pytest
import soundfile

from margo.errors import MargoError
from margo.formats import containers
from margo.formats.audio import audio_info, read_audio, read_recording

RATE = 16000


@pytest.fixture
def samples():
    """Integers over the whole 16-bit range, with both extremes."""
    x = np.round(12000 * np.sin(np.arange(3001) ** 1.3 / 50) + np.random.default_rng(0).normal(0, 2000, 3001))
    x[:2] = 32767, -32768
    return np.clip(x, -32768, 32767).astype(np.int16)


def sphere(content, count, *, length=1024, **fields):
    """A SPHERE file: ``fields`` change the header's, None leaves one out."""
    table = {"sample_count": count, "sample_rate": RATE, "channel_count": 1, "sample_n_bytes": 2,
             "sample_byte_format": "01", "sample_coding": "pcm", **fields}  # fmt: skip
    lines = ["NIST_1A", f"{length:7d}"]
    for key, value in table.items():
        if value is not None:
            lines.append(f"{key} -i {value}" if isinstance(value, int) else f"{key} -s{len(value)} {value}")
    return "\n".join([*lines, "end_head", ""]).encode().ljust(length) + content


def little(x):
    return x.astype("<i2").tobytes()


def riff(x, **how):
    file = io.BytesIO()
    soundfile.write(file, x, RATE, **{"format": "WAV", "subtype": "PCM_16", **how})
    return file.getvalue()


def noise(size):
    return np.random.default_rng(0).integers(-9000, 9000, size, dtype=np.int16)


def at_a_frame(content, number):
    """The first ``number`` frames of an MP3."""
    end = 0
    for _ in range(number):
        end += containers._mpeg_length(content[end : end + 4])
    return content[:end]


class Shorten:
    """A small encoder of shorten version 2: polynomial differences, Rice codes, no linear prediction."""

    DIFF, QUIT, BLOCKSIZE, ZERO = (0, 1, 2, 3), 4, 5, 8

    def __init__(self):
        self.bits = []

    def unsigned(self, value, k):
        """value // 2^k zeros, a one, k low bits."""
        self.bits += [0] * (value >> k) + [1] + [value >> i & 1 for i in reversed(range(k))]

    def signed(self, value, k):
        self.unsigned(value << 1 if value >= 0 else (~value << 1) | 1, k + 1)

    def number(self, value):
        """A header field: first the size of its Rice code."""
        size = value.bit_length()
        self.unsigned(size, 2)
        self.unsigned(value, size)

    def encode(self, x, block=256, order=None):
        """The bytes of ``x``; ``order`` None takes the best difference for each block."""
        for field in (5, 1, block, 0, 0, 0):  # little-endian 16 bit, channels, block, no prediction, no means, no skip
            self.number(field)
        history = [0, 0, 0]
        for start in range(0, len(x), block):
            part = [int(v) for v in x[start : start + block]]
            if len(part) < block:
                self.unsigned(self.BLOCKSIZE, 2)
                self.number(len(part))
            values = np.array(history + part)
            residuals = [np.diff(values, n)[3 - n :] for n in range(4)]
            best = min(range(4), key=lambda n: np.abs(residuals[n]).sum()) if order is None else order
            if order is None and not any(part):
                self.unsigned(self.ZERO, 2)
            else:
                k = max(0, int(np.abs(residuals[best]).mean()).bit_length() - 1)
                self.unsigned(self.DIFF[best], 2)
                self.unsigned(k, 3)
                for value in residuals[best]:
                    self.signed(int(value), k)
            history = (history + part)[-3:]
        self.unsigned(self.QUIT, 2)
        self.bits += [0] * (-len(self.bits) % 32)
        return b"ajkg\x02" + np.packbits(np.array(self.bits, np.uint8)).tobytes() + bytes(3)


def shorten_sphere(x, count=None, **how):
    return sphere(Shorten().encode(x, **how), len(x) if count is None else count,
                  sample_coding="pcm,embedded-shorten-v2.00")  # fmt: skip


def assert_exact(source, expected, rate=RATE):
    found, found_rate = read_audio(source)
    assert found.dtype == np.float32 and found_rate == rate
    assert np.array_equal(found, expected.astype(np.float32))
    assert audio_info(source).samples == len(expected) and audio_info(source).sample_rate == rate


# -- good files --------------------------------------------------------------------------------------------------------
def test_riff_and_flac(samples):
    assert_exact(riff(samples), samples)
    assert_exact(riff(samples, format="FLAC"), samples)
    assert_exact(riff(samples, format="WAV", endian="BIG"), samples)  # RIFX
    assert_exact(riff((samples // 256).astype(np.int16) * 256, subtype="PCM_U8"), samples // 256 * 256)


def test_reals_and_wide_integers_are_scaled_to_16_bits(samples):
    for subtype in ("FLOAT", "DOUBLE", "PCM_24", "PCM_32"):
        assert_exact(riff(samples / 32768.0, subtype=subtype), samples)


@pytest.mark.parametrize("order, kind", [("01", "<i2"), ("10", ">i2")])
def test_sphere_in_both_byte_orders(samples, order, kind):
    assert_exact(sphere(samples.astype(kind).tobytes(), len(samples), sample_byte_format=order), samples)


def test_sphere_headers_of_other_shapes(samples):
    assert_exact(sphere(little(samples), len(samples), length=2048), samples)
    assert_exact(sphere(little(samples), len(samples), sample_coding=None, channel_count=None), samples)
    assert_exact(sphere(little(samples), None), samples)
    assert_exact(sphere(little(samples) + b"trailing text", len(samples)), samples)
    assert_exact(sphere(little(samples), len(samples), sample_rate=8000), samples, rate=8000)


def test_sphere_of_three_byte_samples(samples):
    wide = np.zeros((len(samples), 3), np.uint8)
    wide[:, 1:] = samples.astype("<i2").view(np.uint8).reshape(-1, 2)
    assert_exact(sphere(wide.tobytes(), len(samples), sample_n_bytes=3, sample_byte_format="012"), samples)


def mu_law(code):
    """G.711: inverted bits, sign, 3 of segment, 4 of step."""
    code = ~code & 0xFF
    magnitude = ((((code & 15) << 3) + 132) << (code >> 4 & 7)) - 132
    return -magnitude if code & 128 else magnitude


def a_law(code):
    code ^= 0x55
    segment, step = code >> 4 & 7, (code & 15) << 4
    magnitude = step + 8 if segment == 0 else (step + 264) << (segment - 1)
    return magnitude if code & 128 else -magnitude


@pytest.mark.parametrize(
    "coding, decode", [("ulaw", mu_law), ("mu-law", mu_law), ("alaw", a_law)], ids=["ulaw", "mu-law", "alaw"]
)
def test_sphere_mu_law_and_a_law(coding, decode):
    codes = np.random.default_rng(1).permutation(np.arange(1024) % 256).astype(np.uint8)
    expected = np.array([decode(int(code)) for code in codes])
    assert len(set(expected)) >= 255
    fields = {"sample_coding": coding, "sample_n_bytes": 1, "sample_byte_format": "1"}
    assert_exact(sphere(codes.tobytes(), 1024, **fields), expected)


@pytest.mark.parametrize("subtype, decode", [("ULAW", mu_law), ("ALAW", a_law)])
def test_riff_mu_law_and_a_law(subtype, decode):
    every = np.array([decode(code) for code in range(256)], np.int16)
    assert_exact(riff(every, subtype=subtype), every)


@pytest.mark.parametrize("order", [None, 0, 1, 2, 3])
@pytest.mark.parametrize("count", [3001, 256, 1])
def test_sphere_with_embedded_shorten(samples, order, count):
    pytest.importorskip("av", reason="embedded shorten needs PyAV")
    quiet = (samples // 100).astype(np.int16)  # residuals of high order stay within 16 bits
    quiet[300:900] = 0
    assert_exact(shorten_sphere(quiet[:count], order=order), quiet[:count])
    if order in (None, 0, 1):
        assert_exact(shorten_sphere(samples[:count], order=order), samples[:count])


def test_the_shorten_encoder_compresses(samples):
    smooth = np.round(1000 * np.sin(np.arange(3000) / 40)).astype(np.int16)
    assert len(Shorten().encode(smooth)) < len(little(smooth)) / 2


def test_real_sphere_files(corpora):
    files = sorted((corpora / "sphere").glob("*.sph"))
    assert len(files) == 8
    for path in files:
        content = path.read_bytes()
        assert_exact(path, np.frombuffer(content, "<i2", offset=1024))
        fields = dict(line.split()[::2] for line in content[:1024].decode().split("end_head")[0].splitlines()[2:])
        found, rate = read_audio(path)
        assert len(found) == int(fields["sample_count"]) and rate == int(fields["sample_rate"])
        assert int(found.astype(int).sum()) % 65536 == int(fields["sample_checksum"])


def test_bytes_decide_not_the_name(tmp_path, samples):
    for name, content in [("a.wav", sphere(little(samples), len(samples))), ("b.sph", riff(samples)),
                          ("c", riff(samples, format="FLAC"))]:  # fmt: skip
        (tmp_path / name).write_bytes(content)
        assert_exact(tmp_path / name, samples)


def test_a_riff_from_a_pipe_has_no_length(samples):
    content = bytearray(riff(samples))
    at = content.index(b"data") + 4
    content[at : at + 4] = b"\xff\xff\xff\xff"
    found, _ = read_audio(bytes(content))
    assert np.array_equal(found, samples)


def test_the_header_alone_tells_what_libsndfile_tells(tmp_path, samples):
    for subtype in ("PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "ULAW"):
        for channels in (1, 2, 3):
            x = np.stack([samples / 32768] * channels, axis=1)
            soundfile.write(tmp_path / "a.wav", x, RATE, subtype=subtype)
            found, theirs = audio_info(tmp_path / "a.wav"), soundfile.info(tmp_path / "a.wav")
            assert (found.sample_rate, found.samples, found.channels) == (RATE, theirs.frames, theirs.channels)
            assert found.integer == (subtype != "FLOAT")


def test_pieces(samples):
    for source in (riff(samples), sphere(little(samples), len(samples))):
        found, _ = read_audio(source, offset=0.05, duration=0.1)
        assert np.array_equal(found, samples[800:2400])
        assert np.array_equal(read_audio(source, offset=0.1)[0], samples[1600:])
        assert np.array_equal(read_audio(source, offset=0.1, duration=0.2)[0], samples[1600:])  # cut at the end
        with pytest.raises(MargoError, match="0.1 to 5.1 s does not lie within the recording of 0.1875"):
            read_audio(source, offset=0.1, duration=5.0)
        for offset, duration in [(1.0, None), (-0.1, None), (0.1, 0.0)]:
            with pytest.raises(MargoError, match="does not lie within"):
                read_audio(source, offset=offset, duration=duration)


def test_channels(samples):
    two = np.stack([samples, samples[::-1]], axis=1)
    for content in (riff(two), sphere(little(two), len(two), channel_count=2)):
        with pytest.raises(MargoError, match="2 channels"):
            read_audio(content)
        assert np.array_equal(read_audio(content, channel=1)[0], samples[::-1])
        assert audio_info(content).channels == 2 and audio_info(content).samples == len(samples)
        with pytest.raises(MargoError, match="no channel 2"):
            read_audio(content, channel=2)


def test_resampling_keeps_a_tone():
    t = np.arange(RATE) / RATE
    tone = np.round(10000 * np.sin(2 * np.pi * 440 * t)).astype(np.int16)
    found, rate = read_audio(riff(tone), rate=8000)
    expected = 10000 * np.sin(2 * np.pi * 440 * np.arange(8000) / 8000)
    assert rate == 8000 and len(found) == 8000 and found.dtype == np.float32
    assert np.abs(found - expected)[200:-200].max() < 5
    assert np.array_equal(read_audio(riff(tone), rate=RATE)[0], tone)


# -- bad files ---------------------------------------------------------------------------------------------------------
BAD = {
    "empty": (b"", "is empty"),
    "not audio": (b"hello " * 50, "not an audio file"),
    "sphere truncated": (sphere(bytes(2000), 2001), "truncated: 1000 samples found, its header declares 2001"),
    "sphere big-endian truncated": (sphere(bytes(9), 5, sample_byte_format="10"), "truncated: 4 .* declares 5"),
    "sphere header only": (sphere(b"", 10), "truncated: 0 samples found, its header declares 10"),
    "sphere header cut": (sphere(b"", 10)[:300], "header is cut off \\(300 of 1024 bytes\\)"),
    "sphere without length": (b"NIST_1A\nxxxx\n" + bytes(100), "does not state its length"),
    "sphere without samples": (sphere(b"", 0), "holds no samples"),
    "sphere of unknown coding": (sphere(bytes(100), 50, sample_coding="celp"), "coding 'celp' is not supported"),
    "sphere of unknown packing": (
        sphere(bytes(100), 50, sample_coding="pcm,embedded-wavpack"),
        "'pcm,embedded-wavpack' is not supported",
    ),
    "sphere without byte order": (sphere(bytes(100), 50, sample_byte_format=None), "sample_byte_format is missing"),
    "sphere without rate": (sphere(bytes(100), 50, sample_rate=None), "sample_rate is None"),
    "sphere with a bad count": (sphere(bytes(100), "many"), "sample_count is 'many'"),
    "riff truncated": (riff(np.zeros(1000, np.int16))[:1044], "truncated: 500 samples found, its header declares 1000"),
    "rifx truncated": (riff(np.zeros(1000, np.int16), endian="BIG")[:1044], "truncated: 500 .* declares 1000"),
    "riff header only": (riff(np.zeros(1000, np.int16))[:36], "without a data chunk"),
    "riff without samples": (riff(np.zeros(0, np.int16)), "holds no samples"),
    "flac truncated": (riff(np.random.default_rng(0).integers(-9, 9, 20000, dtype=np.int16), format="FLAC")[:2000],
                       "cannot be decoded|truncated|not an audio file"),
    "mp3 truncated": (riff(noise(20000), format="MP3", subtype="MPEG_LAYER_III")[:3000], "truncated: "),
    "mp3 cut between frames": (at_a_frame(riff(noise(20000), format="MP3", subtype="MPEG_LAYER_III"), 9),
                               "truncated: 9 frames found, its header declares \\d+"),
    "nan": (riff(np.array([0.1, np.nan, np.inf, 0.0]), subtype="FLOAT"), "2 of 4 samples are NaN or infinite.* 1"),
}  # fmt: skip


@pytest.mark.parametrize("content, reason", BAD.values(), ids=BAD.keys())
def test_bad_files_are_refused_with_name_and_reason(tmp_path, content, reason):
    path = tmp_path / "some.wav"
    path.write_bytes(content)
    with pytest.raises(MargoError, match=f"some.wav: .*({reason})"):
        read_audio(path)
    if "trunc" in reason and b"fLaC" not in content[:4]:
        with pytest.raises(MargoError, match=f"some.wav: .*({reason})"):
            audio_info(path)


def test_bad_shorten_is_refused(samples):
    pytest.importorskip("av", reason="embedded shorten needs PyAV")
    quiet = (samples // 100).astype(np.int16)
    good = shorten_sphere(quiet)
    with pytest.raises(MargoError, match="a.sph: truncated: 3001 samples found, its header declares 4000"):
        read_audio(shorten_sphere(quiet, count=4000), name="a.sph")
    with pytest.raises(MargoError, match="a.sph: (truncated: \\d+ samples found|embedded shorten cannot be decoded)"):
        read_audio(good[: len(good) // 2], name="a.sph")
    with pytest.raises(MargoError, match="a.sph: "):
        read_audio(good[:1024] + b"ajkg" + bytes(200), name="a.sph")


def test_shorten_without_pyav_says_what_to_install(samples, monkeypatch):
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(MargoError, match=r"a.sph: .*margo-speech\[sphere\]"):
        read_audio(shorten_sphere(samples[:10] // 100), name="a.sph")


def test_a_missing_file_is_named(tmp_path):
    for function in (read_audio, audio_info):
        with pytest.raises(MargoError, match="no.wav: no such file"):
            function(tmp_path / "no.wav")


def test_pipes_only_where_allowed(tmp_path, samples):
    (tmp_path / "a.wav").write_bytes(riff(samples))
    command = f"cat {tmp_path / 'a.wav'} |"
    assert np.array_equal(read_recording(command, allow_pipes=True)[0], samples)
    assert np.array_equal(read_recording(str(tmp_path / "a.wav"))[0], samples)
    with pytest.raises(MargoError, match="with --allow-pipes true only"):
        read_recording(command)
    with pytest.raises(MargoError, match="status 3 .broken"):
        read_recording("echo broken >&2; exit 3 |", allow_pipes=True)
    with pytest.raises(MargoError, match="true .*is empty"):
        read_recording("true |", allow_pipes=True)

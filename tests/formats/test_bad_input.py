"""Bad files that once hung a reader, filled the memory, were read in part, ended a step or changed in silence."""

import contextlib
import gzip
import io
import json
import os
import resource
import struct
import subprocess
import sys
import time
import zipfile

import numpy as np
import pytest
import soundfile

from margo.errors import MargoError
from margo.formats import ctm, datadir, features, htk, plots, reading, samples, scores, tables, transcripts
from margo.formats.atomic import read_npz
from margo.formats.audio import audio_info, read_audio
from margo.formats.corpora import files_below
from margo.formats.kaldi_alignments import read_alignments
from margo.formats.textgrid import read_textgrid
from margo.runtime import options, record


@contextlib.contextmanager
def frugal(seconds=2.0, megabytes=300):
    """What runs within takes little time of the CPU, and cannot have much memory."""
    with open("/proc/self/statm") as file:
        held = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (held + (megabytes << 20), hard))
    began = time.process_time()
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    assert time.process_time() - began < seconds


def refused(read, path, *says):
    """The one message of ``read(path)``, which names the file and says what it should."""
    with pytest.raises(MargoError) as error, frugal():
        read(path)
    for each in (os.path.basename(path), *says):
        assert each in str(error.value), str(error.value)
    return str(error.value)


def wav(count=1000, rate=16000, kind="WAV", subtype="PCM_16"):
    file = io.BytesIO()
    x = np.round(9000 * np.sin(np.arange(count) / 7)).astype(np.int16)
    soundfile.write(file, x, rate, format=kind, subtype=subtype)
    return file.getvalue()


# -- bombs and hangs ---------------------------------------------------------------------------------------------------
def test_a_class_of_99999999_is_refused_at_once(tmp_path):
    (tmp_path / "s.csv").write_text("split,class,f0\ntrain,0,1\ntrain,99999999,2\ntest,0,1\n")
    refused(samples.read_samples, tmp_path / "s.csv", "line 3", "class is 99999999", "less than the number of rows")


def test_hdf5_that_declares_gigabytes_is_refused(tmp_path):
    import h5py

    with h5py.File(tmp_path / "u.h5", "w") as file:
        for group in ("train", "test"):
            file.create_dataset(f"{group}/data", (1_000_000, 1000), "f8", chunks=(1000, 1000), compression="gzip")
            file.create_dataset(f"{group}/target", data=np.arange(10))
    assert (tmp_path / "u.h5").stat().st_size < 100_000
    refused(tables.read_hdf5, tmp_path / "u.h5", "declares 16000000", "expected at most")


def test_idx_that_inflates_is_refused(tmp_path):
    content = b"\0\0\x08\x03" + struct.pack(">3I", 200_000, 28, 28) + bytes(200_000 * 784)
    with gzip.open(tmp_path / "i.gz", "wb", 1) as file:
        file.write(content)
    del content
    refused(lambda path: tables.read_idx(path, 3), tmp_path / "i.gz", "declares 156800000 bytes")


def test_idx_that_holds_more_than_it_declares_is_not_inflated(tmp_path):
    with gzip.open(tmp_path / "i.gz", "wb", 1) as file:
        file.write(b"\0\0\x08\x01" + struct.pack(">I", 10) + bytes(400 << 20))
    refused(lambda path: tables.read_idx(path, 1), tmp_path / "i.gz", "its header promises 10")


def test_an_archive_that_inflates_is_refused(tmp_path):
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": "<f8", "fortran_order": False, "shape": (1 << 26,)})
    packed = zipfile.ZipFile(tmp_path / "m.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1)
    with packed as file, file.open("x.npy", "w") as member:
        member.write(head.getvalue())
        for _ in range(64):
            member.write(bytes(8 << 20))
    assert (tmp_path / "m.npz").stat().st_size < 4 << 20
    refused(read_npz, tmp_path / "m.npz", "expected at most")


def test_an_array_of_another_size_than_its_member_is_refused(tmp_path):
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": "<f8", "fortran_order": False, "shape": (1 << 40,)})
    with zipfile.ZipFile(tmp_path / "m.npz", "w") as file:
        file.writestr("x.npy", head.getvalue() + bytes(64))
    refused(read_npz, tmp_path / "m.npz", "x.npy")


def test_mixtures_that_are_only_counted_take_no_memory(tmp_path):
    state = "<NUMMIXES> 100000 <MIXTURE> 1 1.0 <MEAN> 2 1 2 <VARIANCE> 2 1 1"
    states = "".join(f"<STATE> {n} {state}\n" for n in range(2, 90))
    (tmp_path / "mmf").write_text(f'~h "a" <BEGINHMM> <NUMSTATES> 91\n{states}')
    refused(htk.read_hmmdefs, tmp_path / "mmf", "mixtures, most of which are there")


@pytest.mark.parametrize("token", ["<", "<a", '"', '<"'])
def test_brackets_without_end_take_no_time(tmp_path, token):
    (tmp_path / "mmf").write_text(token * 100_000)
    refused(htk.read_hmmdefs, tmp_path / "mmf", "mmf:1: expected a macro")


def test_a_recording_of_one_hertz_is_refused(tmp_path):
    (tmp_path / "a.wav").write_bytes(wav(60_000, rate=1))
    refused(lambda path: read_audio(path, rate=16000), tmp_path / "a.wav", "sample rate is 1 Hz, expected 1000 to")
    refused(audio_info, tmp_path / "a.wav", "sample rate is 1 Hz")


def test_links_in_a_circle_are_walked_once(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name / "deep").mkdir(parents=True)
        (tmp_path / name / "deep" / f"{name}.wav").touch()
        for link, to in (("up", ".."), ("here", "."), ("other", tmp_path / "b" / "deep")):
            (tmp_path / name / "deep" / link).symlink_to(to)
    (tmp_path / "elsewhere").mkdir()
    with frugal():
        found = files_below(tmp_path, (".wav",))
    assert [parts for _, parts in found] == [("a", "deep", "a.wav"), ("b", "deep", "b.wav")]


def test_links_to_folders_outside_are_followed(tmp_path):
    (tmp_path / "disc").mkdir()
    (tmp_path / "disc" / "A.WAV").touch()
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "cd1").symlink_to(tmp_path / "disc")
    assert [parts for _, parts in files_below(tmp_path / "corpus", (".wav",))] == [("cd1", "a.wav")]


READERS = {
    "audio": read_audio, "info": audio_info, "npz": read_npz, "text": transcripts.read_transcripts, "ctm": ctm.read_ctm,
    "csv": tables.read_csv, "samples": samples.read_samples, "usps": tables.read_hdf5, "mlf": htk.read_mlf,
    "idx": lambda path: tables.read_idx(path, 3), "mmf": htk.read_hmmdefs, "htk": htk.read_parameters,
    "plots": plots.read_plots, "toml": reading.read_toml, "grid": read_textgrid, "nbest": transcripts.read_nbest,
    "ark": lambda path: features.read_matrix((str(path), 0)), "map": transcripts.read_symbol_map,
}  # fmt: skip


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_a_pipe_and_a_folder_are_refused_and_not_waited_for(tmp_path, read):
    os.mkfifo(tmp_path / "pipe")
    refused(read, tmp_path / "pipe", "is a pipe or device, expected a file")
    (tmp_path / "folder").mkdir()
    refused(read, tmp_path / "folder", "is a folder, expected a file")
    refused(read, tmp_path / "nothing", "no such file")


# -- audio that is not whole -------------------------------------------------------------------------------------------
KINDS = {"WAV": "PCM_16", "WAVEX": "PCM_16", "RF64": "PCM_16", "AIFF": "PCM_16", "AU": "PCM_16", "CAF": "PCM_16",
         "W64": "PCM_16", "VOC": "PCM_16", "OGG": "VORBIS", "FLAC": "PCM_16", "SVX": "PCM_16"}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("share", [0.99, 0.9, 0.5, 0.2])
def test_truncated_audio_is_refused_and_not_read_in_part(tmp_path, kind, share):
    whole = wav(20_000, kind=kind, subtype=KINDS[kind])
    (tmp_path / "a.wav").write_bytes(whole)
    found, rate = read_audio(tmp_path / "a.wav")
    assert len(found) == 20_000 and rate == 16000
    padding = 4000 if kind == "CAF" else 0  # libsndfile leaves room before the samples
    (tmp_path / "a.wav").write_bytes(whole[: padding + int(share * (len(whole) - padding))])
    refused(read_audio, tmp_path / "a.wav")


def test_an_ogg_without_its_last_page_is_refused(tmp_path):
    noise = np.random.default_rng(0).normal(0, 0.1, 160_000)
    soundfile.write(tmp_path / "a.ogg", noise, 16000, format="OGG", subtype="VORBIS")
    raw = (tmp_path / "a.ogg").read_bytes()
    assert len(read_audio(tmp_path / "a.ogg")[0]) == 160_000
    (tmp_path / "a.ogg").write_bytes(raw[: raw.rindex(b"OggS")])
    for read in (read_audio, audio_info):
        refused(read, tmp_path / "a.ogg", "truncated: its last page is not there")


@pytest.mark.parametrize("kind", ["AVR", "MAT4", "MAT5", "PAF", "PVF", "IRCAM", "MPC2K"])
def test_formats_that_do_not_say_how_long_they_are_are_refused(tmp_path, kind):
    (tmp_path / "a.wav").write_bytes(wav(kind=kind))
    refused(read_audio, tmp_path / "a.wav", f"format {kind} does not say how long it is")


def test_a_flac_that_declares_2_to_35_samples_is_refused(tmp_path):
    raw = bytearray(wav(kind="FLAC"))
    raw[21] |= 0x08  # the highest of the 36 bits of the count
    (tmp_path / "a.flac").write_bytes(raw)
    for read in (read_audio, audio_info):
        refused(read, tmp_path / "a.flac", "declares 34359739368 samples, expected at most")


@pytest.mark.parametrize("key", ["sample_count", "sample_rate", "channel_count", "sample_n_bytes"])
@pytest.mark.parametrize("number", ["²", "9" * 5000, "1_0", "-", "４"])
def test_odd_numbers_in_sphere_headers_are_refused(tmp_path, key, number):
    fields = {"sample_count": "100", "sample_rate": "16000", "channel_count": "1", "sample_n_bytes": "2", key: number}
    lines = ["NIST_1A", "   8192", "sample_byte_format -s2 01"]
    lines += [f"{name} -i {value}" for name, value in fields.items()]
    raw = "\n".join([*lines, "end_head", ""]).encode("latin-1", "ignore").ljust(8192) + bytes(200)
    if number == "４":
        raw = raw.replace(b"-i \n", b"-i \xef\xbc\x94\n")
    (tmp_path / "a.sph").write_bytes(raw)
    refused(read_audio, tmp_path / "a.sph", f"SPHERE header: {key} is ")


# -- text that is not text, numbers that are none, shapes that are others ----------------------------------------------
LATIN = b"a caf\xe9\n"
TEXTS = {
    "transcripts": (transcripts.read_transcripts, LATIN, "line 1: byte 0xe9 at column 6"),
    "csv": (tables.read_csv, b"a,label\n1,2\n" + LATIN, "line 3: byte 0xe9 at column 6"),
    "samples": (samples.read_samples, b"split,class,f0\n" + LATIN, "line 2: byte 0xe9 at column 6"),
    "mlf": (htk.read_mlf, b"#!MLF!#\n" + LATIN, "line 2: byte 0xe9 at column 6"),
    "ctm": (ctm.read_ctm, LATIN, "line 1: byte 0xe9 at column 6"),
    "conf": (reading.read_toml, b"[a]\nb = '\xc3\xa9\xe9'\n", "line 2: byte 0xe9 at column 7"),
    "plots": (plots.read_plots, b'[\n"\xe9"]', "line 2: byte 0xe9 at column 2"),
    "map": (transcripts.read_symbol_map, b"[map]\n" + LATIN, "line 2: byte 0xe9 at column 6"),
    "hmm": (htk.read_hmmdefs, b'~h "\xe9"', "line 1: byte 0xe9 at column 5"),
}


@pytest.mark.parametrize(("read", "raw", "says"), TEXTS.values(), ids=TEXTS)
def test_what_is_not_utf8_is_told_with_line_and_column(tmp_path, read, raw, says):
    (tmp_path / "file").write_bytes(raw)
    refused(read, tmp_path / "file", says)


@pytest.mark.parametrize(("read", "raw", "says"), [
    (transcripts.read_transcripts, b"u1 one\nu2 tw\0o\n", "2: byte 0x00 at column 6 is not text"),
    (tables.read_csv, b"a,label\n1,2\n3,\0\n", "line 3: byte 0x00 at column 3 is not text"),
    (ctm.read_ctm, b"u1 1 0 1 a\0\n", "line 1: byte 0x00 at column 11 is not text"),
    (transcripts.read_transcripts, b"u1 one\ru2 two\r", "1: a carriage return at column 7, expected line feeds"),
    (ctm.read_ctm, b"u1 1 0 1 a\ru1 1 1 1 b\n", "1: a carriage return at column 11"),
])  # fmt: skip
def test_what_is_no_text_and_lines_that_end_in_carriage_returns_are_told(tmp_path, read, raw, says):
    (tmp_path / "file").write_bytes(raw)
    refused(read, tmp_path / "file", says)


def odd_place(path, kind):
    """Something that is not a file, at ``path``."""
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(path.name if kind == "loop" else "nowhere")


@pytest.mark.parametrize("kind", ["folder", "pipe", "loop", "dangling"])
@pytest.mark.parametrize("name", ["segments", "spk2gender", "text"])
def test_what_has_the_name_of_a_table_and_is_no_file_is_not_passed_over(tmp_path, name, kind):
    """Without its segments a folder would be another one: whole recordings."""
    for table, raw in {"a.wav": wav(), "wav.scp": b"u1 a.wav\n", "text": b"u1 one\n", "utt2spk": b"u1 s1\n"}.items():
        (tmp_path / table).write_bytes(raw)
    datadir.read(tmp_path)
    (tmp_path / name).unlink(missing_ok=True)
    odd_place(tmp_path / name, kind)
    with pytest.raises(MargoError, match=f"{name}: "):
        datadir.read(tmp_path)


@pytest.mark.parametrize("kind", ["folder", "pipe", "loop", "dangling"])
def test_a_record_of_features_that_is_no_file_is_not_passed_over(tmp_path, kind):
    features.write_ark(tmp_path / "feats.ark", tmp_path / "feats.scp", [("u", np.ones((3, 2), np.float32))])
    assert features.read_options(tmp_path)["dimension"] == 2
    odd_place(tmp_path / "mfcc.json", kind)
    with pytest.raises(MargoError, match="mfcc.json: "):
        features.read_options(tmp_path)


ALIGNMENTS = {
    "bomb.gz": (gzip.compress(b"u1 " + b"7 " * 3_000_000), "more than 4194304 bytes in a packed file"),
    "cut.gz": (gzip.compress(b"u1 1 2\n" * 99)[:-9], "cannot be read as alignments"),
    "superscript.txt": ("u1 1 ²\n".encode(), "line 1: u1: expected transition-ids"),
    "long.txt": (b"u1 " + b"9" * 5000, "line 1: u1: expected transition-ids"),
    "latin.txt": (b"u1 1\nu\xe9 1\n", "line 2: byte 0xe9 at column 2"),
    "twice.txt": (b"u1 1\nu1 2\n", "line 2: u1 is there already"),
    "many.ark": (b"u1 \0B\4\xff\xff\xff\x7f", "byte 0: 2147483647 integers, expected 0 to 0"),
    "few.ark": (b"u1 \0B\4\xff\xff\xff\xff", "byte 0: -1 integers"),
    "eight.ark": (b"u1 \0B\4\1\0\0\0\x08\1\0\0\0", "numbers of another size"),
    "second.ark": (b"u1 \0B\4\0\0\0\0u2 \0BFM ", "byte 10: expected a name and a vector"),
}


@pytest.mark.parametrize("name", ALIGNMENTS)
def test_spoilt_alignments_of_kaldi_are_refused(tmp_path, name):
    raw, says = ALIGNMENTS[name]
    (tmp_path / name).write_bytes(raw)
    refused(read_alignments, tmp_path / name, says)


def test_what_is_not_utf8_in_score_folders_is_told(tmp_path):
    (tmp_path / "score").mkdir()
    (tmp_path / "score" / "per_utt").write_bytes(b"u ref \xff\n")
    with pytest.raises(MargoError, match="per_utt: cannot be read .line 1: byte 0xff at column 7"):
        scores.read_per_utt(tmp_path)
    (tmp_path / "score" / "per_utt").write_text("\n\nu\n")
    with pytest.raises(MargoError, match="per_utt:3: found 'u'"):
        scores.read_per_utt(tmp_path)


JSONS = ["[" * 100_000, '{"a":' * 2000, "[" * 80 + "]" * 80, "3", "null", '["a"]', '{"title": {}}', "[{}, 3]", "[[]]",
         "", '[{"title": "t", "kind": "line", "series": {"x": 1}}]', '[{"title": "t", "kind": "heatmap", "values": 3}]',
         '[{"title": "t", "kind": "line", "series": [3]}]', '[{"title": "t", "kind": "scatter", "region": []}]',
         '[{"title": "t", "kind": ["line"]}]', '[{"title": "t", "kind": "heatmap", "values": [[1]], "rows": 3}]',
         '[{"title": "t", "kind": "line", "series": [{"x": [1e999], "y": [1]}]}]', "[" + "9" * 5000 + "]",
         '[{"title": "\\ud800", "kind": "line"}]', '[{"title": "a", "title": "b"}]']  # fmt: skip


@pytest.mark.parametrize("text", JSONS, ids=range(len(JSONS)))
def test_wrong_and_deep_json_is_refused_by_every_reader_of_it(tmp_path, text):
    (tmp_path / "plots.json").write_text(text)
    refused(plots.read_plots, tmp_path / "plots.json")
    (tmp_path / "score.json").write_text(text)
    refused(scores.read_score, tmp_path / "score.json")
    (tmp_path / "mfcc.json").write_text(text)
    with pytest.raises(MargoError, match=r"mfcc\.json"):
        features.read_options(tmp_path)
    (tmp_path / "step.json").write_text(text)
    assert record.read(tmp_path) is None and record.of(tmp_path) is None
    (tmp_path / "n.jsonl").write_text(text)
    if text:
        refused(transcripts.read_nbest, tmp_path / "n.jsonl", "n.jsonl:1")


@pytest.mark.parametrize("change", [{"outputs": [3]}, {"outputs": {"a": 3}}, {"argv": 3}, {"options": []},
                                    {"status": {}}])  # fmt: skip
def test_a_record_of_another_shape_is_none(tmp_path, change):
    held = {"status": "ok", "step": "x", "argv": [], "options": {}, "inputs": {}, "outputs": {}, "seconds": 1.5}
    (tmp_path / "step.json").write_text(json.dumps(held))
    assert record.of(tmp_path) == held
    (tmp_path / "step.json").write_text(json.dumps(held | change))
    assert record.read(tmp_path) is None


def test_a_score_of_another_shape_is_refused(tmp_path):
    good = {"system": "ml", "mixtures": 8, "set": "test", "metric": "wer", "percent": 12.5, "errors": 1, "total": 8,
            "ci95": [0.5, 30.0]}  # fmt: skip
    (tmp_path / "score.json").write_text(json.dumps(good))
    assert scores.read_score(tmp_path) == good
    for key, value in [("mixtures", "8"), ("mixtures", 0), ("percent", None), ("ci95", [1]), ("ci95", 3), ("total", 0),
                       ("system", []), ("metric", "per"), ("errors", 1.5), ("ser", 3), ("runs", ["a"])]:  # fmt: skip
        (tmp_path / "score.json").write_text(json.dumps(good | {key: value}))
        refused(scores.read_score, tmp_path / "score.json")


@pytest.mark.parametrize("number", ["²", "9" * 5000, "1_000", "１２", "-3", "0x10"])
def test_odd_numbers_are_refused_in_lists_and_labels(tmp_path, number):
    (tmp_path / "feats.ark").touch()
    (tmp_path / "feats.scp").write_text(f"u feats.ark:{number}\n")
    with pytest.raises(MargoError, match=r"feats\.scp: line 1: .*expected archive:offset"):
        features.read_scp(tmp_path)
    assert reading.place_of(f"feats.ark:{number}") is None
    if number != "-3":
        (tmp_path / "a.ctm").write_text(f"u 1 0.5 {number} word\n")
        refused(ctm.read_ctm, tmp_path / "a.ctm", "line 1")
    (tmp_path / "mmf").write_text(f"~o <VECSIZE> {number}")
    refused(htk.read_hmmdefs, tmp_path / "mmf", "mmf:1: expected a number from 1")
    if number == "9" * 5000:
        (tmp_path / "a.mlf").write_text(f'#!MLF!#\n"a.lab"\n{number} 5 one\n')
        refused(htk.read_mlf, tmp_path / "a.mlf", "a.mlf:3", "expected a whole number")


@pytest.mark.parametrize("shape", [(-1, 3), (2**31 - 1, 3), (2**31 - 1, 2**31 - 1), (-1, -1), (3, -5), (10**6, 10**6)])
def test_archives_of_impossible_shapes_are_refused(tmp_path, shape):
    rows, columns = (np.array(n, "<i4").tobytes() for n in shape)
    for name, raw in {"float": b"\0BFM \4" + rows + b"\4" + columns, "double": b"\0BDM \4" + rows + b"\4" + columns,
                      "packed": b"\0BCM " + bytes(8) + rows + columns, "vector": b"\0B\4" + rows}.items():  # fmt: skip
        (tmp_path / f"{name}.ark").write_bytes(raw + bytes(64))
        read = features.read_vector if name == "vector" else features.read_matrix
        says = ["expected no number below 0"] if name == "float" and min(shape) < 0 else []
        refused(lambda path, read=read: read((str(path), 0)), tmp_path / f"{name}.ark", f"{name}.ark:0", *says)
    refused(lambda path: features.read_matrix((str(path), 10**17)), tmp_path / "float.ark", "the archive has 79 bytes")


def test_errors_of_decoders_are_told(tmp_path):
    import h5py

    with h5py.File(tmp_path / "u.h5", "w") as file:
        file["train"], file["test/data"], file["test/target"] = 3, np.array([b"x"]), 5
    refused(tables.read_hdf5, tmp_path / "u.h5", "train/data: not there", "test/data: expected an array of numbers")
    packed = bytearray(gzip.compress(b"\0\0\x08\x01" + struct.pack(">I", 9000) + os.urandom(9000)))
    packed[200:300] = bytes(100)
    (tmp_path / "i.gz").write_bytes(packed)
    refused(lambda path: tables.read_idx(path, 1), tmp_path / "i.gz", "cannot be read as idx")
    (tmp_path / "t.csv").write_text("a,label\n" + '"' + "x" * 200_000)
    refused(tables.read_csv, tmp_path / "t.csv", "cannot be read as CSV", "field limit")


# -- conversions in silence --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("cell", ["1e999", "-1e999", "1e300", "inf", "1_0", "１", "²"])
def test_numbers_too_large_or_odd_are_told_and_not_missing(tmp_path, cell):
    (tmp_path / "t.csv").write_text(f"a,label\n1,x\n{cell},y\nNaN,x\n")
    refused(tables.read_csv, tmp_path / "t.csv", "line 3: column a is ", "expected a number")
    (tmp_path / "s.csv").write_text(f"split,class,f0\ntrain,0,{cell}\ntest,0,1\n")
    refused(samples.read_samples, tmp_path / "s.csv", "line 2", "expected a number")


def test_doubles_that_are_infinite_as_floats_are_told(tmp_path):
    import kaldiio

    kaldiio.save_ark(str(tmp_path / "f.ark"), {"u": np.array([[1.0, 1e300]])})
    refused(lambda path: features.read_matrix((str(path), 2)), tmp_path / "f.ark", "1 values are not finite")
    soundfile.write(tmp_path / "a.wav", np.array([0.5, 1e200]), 16000, subtype="DOUBLE")
    refused(read_audio, tmp_path / "a.wav", "1 of 2 samples are NaN or infinite")


def test_an_utterance_that_a_ctm_would_hide_is_not_written(tmp_path):
    with pytest.raises(MargoError, match="a.ctm: cannot be written: ;;a: a line that begins with ;;"):
        ctm.write_ctm(tmp_path / "a.ctm", [ctm.TimedWord(";;a", 0.0, 1.0, "one"), ctm.TimedWord("b", 0.0, 1.0, "one")])
    assert not (tmp_path / "a.ctm").exists()


def test_a_word_of_three_stars_stays_a_word(tmp_path):
    (tmp_path / "score").mkdir()
    lines = ["u ref *** one ***", "u hyp *** two six", "u op C S I", "u #csid 1 1 1 0"]
    (tmp_path / "score" / "per_utt").write_text("\n".join(lines) + "\n")
    words, counts = scores.read_per_utt(tmp_path)["u"]
    assert words == ("***", "one") and counts.tolist() == [1, 1, 1, 0]


def test_hdf5_reads_no_other_file(tmp_path):
    import h5py

    (tmp_path / "secret").write_bytes(bytes(range(160)))
    outside = {
        "external": lambda file: file.create_dataset("train/data", (10, 2), "f8",
                                                     external=[(tmp_path / "secret", 0, 160)]),
        "link": lambda file: file.__setitem__("train/data", h5py.ExternalLink(str(tmp_path / "other.h5"), "/x")),
        "soft": lambda file: file.__setitem__("train/data", h5py.SoftLink("/test/data")),
    }  # fmt: skip
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["x"] = np.zeros((10, 2))
    for name, put in outside.items():
        with h5py.File(tmp_path / f"{name}.h5", "w") as file:
            file["test/data"], file["test/target"], file["train/target"] = np.zeros((10, 2)), *[np.arange(10)] * 2
            put(file)
        says = "its values are in other files" if name == "external" else "a link, expected the values themselves"
        refused(tables.read_hdf5, tmp_path / f"{name}.h5", f"train/data: {says}")


# -- configuration -----------------------------------------------------------------------------------------------------
CONFS = {
    "states = 12.9": "states is 12.9, expected a whole number",
    'update = "sometimes"': "update",
    "states = true": "states is True, expected a whole number",
    f"states = {'9' * 5000}": "cannot be read as TOML",
    "states = 99999999999999999999": "states is 99999999999999999999, expected a whole number",
    "states = [[3]]": "states is [3], expected a whole number",
    'data = "a\\u0000b"': "data is",
    "data = 3": "data is 3, expected a path",
    "tolerance = 1e999": "expected a number up to",
    "tolerance = nan": "expected a number",
    "a." * 20_000 + "a = 1": "a key of more than 64 parts",
    "x = " + "[" * 5000: "cannot be read as TOML",
}


@pytest.mark.parametrize(("text", "says"), CONFS.items(), ids=range(len(CONFS)))
def test_conf_converts_nothing_in_silence(tmp_path, root, text, says):
    import runpy

    (tmp_path / "c.toml").write_text(f"[train_mmi]\n{text}\n" if text.startswith("update") else f"[train_ml]\n{text}\n")
    name = "train_mmi" if text.startswith("update") else "train_ml"
    kind = runpy.run_path(str(root / "steps" / f"{name}.py"))["Options"]
    with frugal():
        values, faults = options.read_conf(tmp_path / "c.toml", name, kind, {})
    assert len(faults) == 1 and "c.toml" in faults[0] and says in faults[0], faults


COMMANDS = {
    "conf is a folder": (["steps/make_mfcc.py", "--data", "d", "--out", "o", "--conf", "."],
                         "is a folder, expected a file"),
    "conf is not text": (["steps/make_mfcc.py", "--data", "d", "--out", "o", "--conf", "latin"], "line 2: byte 0xe9"),
    "number of another script": (["steps/make_mfcc.py", "--data", "d", "--out", "o", "--channel", "²"],
                                 "--channel is '²'"),
    "tokens of another script": (["steps/train_lme.py", "--data", "d", "--init", "i", "--out", "o", "--tokens", "²"],
                                 "--tokens is ²"),
    "a name that is not UTF-8": (["steps/train_ml.py", "--data", b"\xff", "--out", "o"],
                                 r"--data is '\udcff', expected UTF-8"),
    "nothing to report": (["steps/report.py", "--exp", ".", "--recipe", "x"], "corpus.json: no such file"),
    "labels are binary": (["steps/compare_schemes.py", "--data", "latin", "--out", "o"], "latin: cannot be read"),
}  # fmt: skip


@pytest.mark.parametrize(("argv", "says"), COMMANDS.values(), ids=COMMANDS)
def test_command_lines_end_with_one_line_and_no_traceback(tmp_path, root, argv, says):
    (tmp_path / "latin").write_bytes(b"[make_mfcc]\n\xe9 = 1\n")
    command = [sys.executable, str(root / argv[0]), *argv[1:]]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode in (1, 2) and says in done.stderr, done.stderr
    assert "Traceback" not in done.stderr and "internal error" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


# -- and sound input stays fast ----------------------------------------------------------------------------------------
def test_a_large_folder_is_read_and_validated_fast(tmp_path):
    (tmp_path / "a.wav").write_bytes(wav())
    audio = str(tmp_path / "a.wav")
    rows = [datadir.Utterance(f"u{n:05d}", f"s{n % 50}", ("one", "two"), audio) for n in range(20_000)]
    datadir.write(tmp_path / "data", rows)
    with frugal(seconds=4, megabytes=200):  # a fifth of 100,000 in 10 s and 1 GB, with room for a busy machine
        assert len(datadir.read(tmp_path / "data")) == 20_000
        assert datadir.validate(tmp_path / "data") == []

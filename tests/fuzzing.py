"""Spoilt files for every reader: ``python tests/fuzzing.py SEED CASES [READER]`` prints what went wrong.

A case is right if the reader returns values that are finite, or raises a MargoError that names the file in a few short
lines, in at most two seconds of CPU time and within 500 MB for the whole program. The same seed makes the same cases.
"""

import gzip
import io
import json
import runpy
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
SECONDS, MEGABYTES = 2, 500
ODD = ["²", "１", "\u2028", "\xa0", "\x00", "\ufeff", "𝟙", "é", "\u202e", "\r", '"', "\\", "*", "***", ";;", "../", "|"]
ODD_BYTES = [*(text.encode() for text in ODD), b"\xff", b"\xc3", b"\xed\xa0\x80", b"\\ud800"]
NUMBERS = [
    "9" * 5000,
    "1e999",
    "-1e999",
    "1e300",
    "nan",
    "inf",
    "-1",
    "0",
    "99999999",
    "2147483648",
    "-2147483648",
    "4294967296",
    "9" * 19,
    "1_000",
    "0x10",
    "12.9",
    "1e-400",
    "²",
    "true",
    "null",
    "--5",
    "1e5",
]
BRACKETS = [
    "[" * 100_000,
    "{" * 500,
    '{"a":' * 5000,
    "<" * 100_000,
    "(" * 5000,
    "[" * 90 + "]" * 90,
    '"' * 9999,
    "a." * 20_000,
    "\n" * 50_000,
    "<a" * 20_000,
    "[[" * 300,
]
ODD_ARRAYS = [
    lambda x: x[:0],
    lambda x: x[..., None],
    np.ravel,
    np.transpose,
    np.negative,
    lambda x: x * 1e300,
    lambda x: x + 2**40,
    lambda x: np.full(x.shape, np.nan),
    lambda x: np.zeros((0, 0)),
    lambda x: x[::-1],
    lambda x: np.array([b"x"]),
    lambda x: np.concatenate([x, x]),
    lambda x: x.astype(complex),
    lambda x: x[1:],
    lambda x: np.full(x.shape, -1),
    lambda x: np.float64(3),
    lambda x: x.astype(str),
    lambda x: x.astype("f4"),
    lambda x: np.full(x.shape, -np.inf),
]
WORDS = (0, 1, -1, 2**15, 2**31 - 1, -(2**31), 2**32 - 1, 255, 2**62)


@dataclass(frozen=True)
class Case:
    """A sound file, in a folder with what else is needed, and how it is read."""

    files: dict[str, bytes]
    target: str
    read: Callable
    kind: str = "text"  # text, bytes, npz, gz
    loose: bool = False  # values may be missing or infinite


def spoil_text(raw: bytes, rng) -> bytes:
    choice = rng.integers(12)
    lines = raw.split(b"\n")
    at = int(rng.integers(len(lines)))
    tokens = lines[at].split(b" ")
    one, other = rng.integers(len(tokens), size=2)
    if choice < 3:
        return spoil_bytes(raw, rng)
    if choice == 3:
        place = int(rng.integers(len(raw) + 1))
        return raw[:place] + ODD_BYTES[rng.integers(len(ODD_BYTES))] * int(rng.choice([1, 1, 3])) + raw[place:]
    if choice in (4, 5):
        digits = [n for n, token in enumerate(tokens) if any(48 <= byte <= 57 for byte in token)] or [int(one)]
        tokens[digits[rng.integers(len(digits))]] = NUMBERS[rng.integers(len(NUMBERS))].encode()
    elif choice == 6:
        tokens[one] = b" ".join([tokens[one]] * int(rng.choice([2, 50, 5000])))
    elif choice == 7:
        tokens[one : one + int(rng.integers(2))] = [BRACKETS[rng.integers(len(BRACKETS))].encode()]
    elif choice == 8:
        tokens[one], tokens[other] = tokens[other], tokens[one]
    elif choice == 9:
        del tokens[one]
    elif choice == 10:
        place = int(rng.integers(len(lines)))
        lines[at], lines[place] = lines[place], lines[at]
        return b"\n".join(lines)
    else:
        return b"\n".join(lines[:at] + [lines[at]] * int(rng.choice([0, 2, 300])) + lines[at + 1 :])
    lines[at] = b" ".join(tokens)
    return b"\n".join(lines)


def spoil_bytes(raw: bytes, rng) -> bytes:
    spoilt, choice = bytearray(raw), rng.integers(7)
    near = min(len(raw), int(rng.choice([16, 64, 256, len(raw)])))  # headers are at the beginning
    place = int(rng.integers(max(near, 1)))
    if choice == 0:
        return raw[: int(rng.integers(len(raw) + 1))]
    if choice == 1:
        for each in rng.integers(max(near, 1), size=int(rng.choice([1, 2, 20]))):
            spoilt[each : each + 1] = bytes([rng.integers(256)])
    elif choice == 2:
        value, size = WORDS[rng.integers(len(WORDS))], int(rng.choice([2, 4, 8]))
        order = ("little", "big")[rng.integers(2)]
        spoilt[place : place + size] = (value % 256**size).to_bytes(size, order)
    elif choice == 3:
        spoilt[place:place] = rng.bytes(int(rng.choice([1, 4, 1000])))
    elif choice == 4:
        end = place + int(rng.integers(64))
        spoilt[place:end] = spoilt[place:end] * int(rng.choice([2, 100]))
    elif choice == 5:
        del spoilt[place : place + int(rng.choice([1, 4, 100]))]
    else:
        spoilt += rng.bytes(100)
    return bytes(spoilt)


def spoil_npz(raw: bytes, rng) -> bytes:
    """A sound archive of spoilt contents: its meta, or one of its arrays."""
    with np.load(io.BytesIO(raw)) as file:
        arrays = dict(file)
    name = sorted(arrays)[rng.integers(len(arrays))] if rng.integers(2) else "meta"
    array = arrays[name]
    if name == "meta":
        arrays[name] = np.frombuffer(spoil_text(array.tobytes(), rng), np.uint8)
    else:
        with suppress(Exception):  # not every change suits every array: then it stays sound
            arrays[name] = ODD_ARRAYS[rng.integers(len(ODD_ARRAYS))](array)
    if not rng.integers(8):
        del arrays[name]
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def spoilt(case: Case, rng) -> bytes:
    raw = case.files[case.target]
    if case.kind == "gz" and rng.integers(3):
        return gzip.compress(spoil_bytes(gzip.decompress(raw), rng), 1, mtime=0)
    if case.kind == "npz" and rng.integers(4):
        return spoil_npz(raw, rng)
    return (spoil_text if case.kind == "text" else spoil_bytes)(raw, rng)


def finite(value) -> bool:
    """Every number in ``value``, however deep, is one in float32 too."""
    if isinstance(value, np.ndarray):
        return value.dtype.kind not in "fc" or bool(np.isfinite(value.astype(np.float32)).all())
    if isinstance(value, float):
        return abs(value) <= 3.5e38
    if isinstance(value, dict):
        return all(finite(each) for pair in value.items() for each in pair)
    if isinstance(value, list | tuple | set):
        return all(map(finite, value))
    if is_dataclass(value) and not isinstance(value, type):
        return all(finite(getattr(value, field.name)) for field in fields(value))
    return True


# -- the readers -------------------------------------------------------------------------------------------------------
def packed(write, *args, **how) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / "x", *args, **how)
        return (Path(folder) / "x").read_bytes()


def stored(array) -> bytes:
    """What ``np.save`` writes."""
    held = io.BytesIO()
    np.save(held, array)
    return held.getvalue()


def audio_cases() -> dict[str, Case]:
    import soundfile

    from margo.formats.audio import audio_info, read_audio, read_recording

    x = np.round(8000 * np.sin(np.arange(1500) ** 1.1 / 9)).astype(np.int16)
    kinds = {
        "WAV": "PCM_16",
        "RF64": "PCM_16",
        "AIFF": "PCM_16",
        "AU": "ULAW",
        "CAF": "PCM_16",
        "W64": "PCM_16",
        "VOC": "PCM_16",
        "OGG": "VORBIS",
        "FLAC": "PCM_16",
        "SVX": "PCM_16",
        "WAVEX": "FLOAT",
        "MP3": "MPEG_LAYER_III",
    }
    files = {}
    for kind, subtype in kinds.items():
        file = io.BytesIO()
        soundfile.write(file, x, 16000, format=kind, subtype=subtype)
        files[f"read_audio {kind}"] = file.getvalue()
    head = (
        "NIST_1A\n   1024\nsample_count -i 1500\nsample_rate -i 16000\nchannel_count -i 1\nsample_n_bytes -i 2\n"
        "sample_byte_format -s2 01\nsample_coding -s3 pcm\nend_head\n"
    )
    files["read_audio SPHERE"] = head.encode().ljust(1024) + x.tobytes()
    cases = {
        name: Case({"a.wav": raw}, "a.wav", lambda f: read_audio(f / "a.wav", rate=8000), "bytes")
        for name, raw in files.items()
    }
    wav = {"a.wav": files["read_audio WAV"]}
    sphere = {"a.wav": files["read_audio SPHERE"]}
    return cases | {
        "audio_info": Case(wav, "a.wav", lambda f: vars(audio_info(f / "a.wav")), "bytes"),
        "read_recording": Case(sphere, "a.wav", lambda f: read_recording(str(f / "a.wav")), "text"),
    }


def table_cases() -> dict[str, Case]:
    import h5py
    from scipy.io import savemat

    from margo.formats import cubes, samples, tables

    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 255, (20, 4)) / 255, np.arange(20) % 10

    def hdf5(path, **how):
        with h5py.File(path, "w") as file:
            for group in ("train", "test"):
                file.create_dataset(f"{group}/data", data=x, **how)
                file.create_dataset(f"{group}/target", data=y)

    images = b"\0\0\x08\x03" + np.array([20, 2, 2], ">u4").tobytes() + bytes(80)
    labels = b"\0\0\x08\x01" + np.array([20], ">u4").tobytes() + y.astype(np.uint8).tobytes()
    mnist = {
        f"{part}-{what}-idx-ubyte.gz": gzip.compress(raw, mtime=0)
        for part in ("train", "t10k")
        for what, raw in (("images", images), ("labels", labels))
    }
    text = b"a,b,label\n" + b"".join(b"%d.5,%d,%d\n" % (n, n * n, n % 3) for n in range(12))
    rows = b"split,speaker,class,f0,f1\n" + b"".join(
        b"%s,s%d,%d,0.%d,2\n" % ((b"train", b"test")[n % 2], n, n // 2 % 2, n) for n in range(12)
    )
    mat = io.BytesIO()
    savemat(mat, {"cube": x.reshape(4, 5, 4)}, do_compression=True)
    lines = b"".join(b"0.%d 0.5 %d\n" % (n, n % 10) for n in range(12))
    table = packed(tables.write_table, tables.Table(x, y, tuple("0123456789")))
    return {
        "read_hdf5": Case({"u.h5": packed(hdf5)}, "u.h5", lambda f: tables.read_hdf5(f / "u.h5"), "bytes"),
        "read_hdf5 packed": Case(
            {"u.h5": packed(hdf5, compression="gzip")}, "u.h5", lambda f: tables.read_hdf5(f / "u.h5"), "bytes"
        ),
        "read_mnist": Case(mnist, "t10k-labels-idx-ubyte.gz", lambda f: tables.read_mnist(f), "gz"),
        "read_idx": Case(
            {"i.gz": gzip.compress(images, mtime=0)}, "i.gz", lambda f: tables.read_idx(f / "i.gz", 3), "gz"
        ),
        "read_csv": Case({"t.csv": text}, "t.csv", lambda f: tables.read_csv(f / "t.csv"), loose=True),
        "read_corpus": Case(
            {"t.tsv": text.replace(b",", b"\t")}, "t.tsv", lambda f: tables.read_corpus(f / "t.tsv"), loose=True
        ),
        "read_table": Case({"t.npz": table}, "t.npz", lambda f: tables.read_table(f / "t.npz"), "npz", loose=True),
        "read_array mat": Case({"c.mat": mat.getvalue()}, "c.mat", lambda f: cubes.read_array(f / "c.mat", 3), "bytes",
                               loose=True),
        "read_samples": Case({"s.csv": rows}, "s.csv", lambda f: samples.read_samples(f / "s.csv")),
        "read_amat": Case(
            {"a_train.amat": lines, "a_test.amat": lines}, "a_test.amat",
            lambda f: tables.read_amat([f / "a_train.amat", f / "a_test.amat"]),
        ),
        "read_cifar": Case(
            {name: bytes(2 * 3073) for names in tables.CIFAR.values() for name in names}, "data_batch_3.bin",
            lambda f: tables.read_cifar(f), "bytes",
        ),
        "read_array": Case({"a.npy": stored(x)}, "a.npy", lambda f: cubes.read_array(f / "a.npy", 2), "bytes",
                           loose=True),
        "read_cube": Case(
            {"c.npy": stored(x.reshape(4, 5, 4)), "l.npy": stored(y.reshape(4, 5))}, "l.npy",
            lambda f: cubes.read_cube(f / "c.npy", f / "l.npy"), "bytes",
        ),
    }  # fmt: skip


def model_cases() -> dict[str, Case]:
    from margo.classify.gmm import Classifier
    from margo.classify.maxmargin import MaxMargin
    from margo.formats import (
        arpa,
        atomic,
        classifiers,
        grammars,
        htk,
        htk_kinds,
        htk_net,
        jsgf,
        kaldi_models,
        lexicon,
        models,
        questions,
    )
    from margo.gaussian.pool import GaussianPool
    from margo.model.grammar import grammar
    from margo.model.hmm import HmmSet, Unit
    from margo.model.ngram import witten_bell
    from margo.signal.front_end import MfccOptions, describe

    means = np.arange(6.0).reshape(3, 2)
    pool = GaussianPool(means, np.ones((3, 2)), np.log([0.5, 0.5, 1.0]), np.array([0, 2, 3]))
    with np.errstate(divide="ignore"):
        log_a = np.log(np.array([[0, 1.0, 0], [0, 0.5, 0.5], [0, 0, 0]]))
    units = (Unit("one", np.array([0]), log_a), Unit("sil", np.array([1]), log_a))
    meta = {"grammar": grammar("bigram", -3.5, np.zeros((2, 2))), "features": {"dimension": 2}, "criterion": "ml"}
    hmms = HmmSet(pool, units, {"one": ("one",)}, "sil", np.full(2, 0.01), meta)
    full = Classifier(
        GaussianPool(means, np.tile(np.eye(2), (3, 1, 1)), np.log([0.5, 0.5, 1.0]), np.array([0, 2, 3])),
        np.log([0.5, 0.5]),
    )
    margin = MaxMargin(
        np.zeros(2), np.ones(2), np.array([0, 2, 3]), np.tile(np.eye(2), (3, 1, 1)), means, np.ones(3), full
    )
    parameters = (
        np.array([3, 100_000], ">i4").tobytes() + np.array([8, 9], ">i2").tobytes() + means.astype(">f4").tobytes()
    )
    mlf = b'#!MLF!#\n"*/a.lab"\n0 1000000 sil -3.5\n1000000 2000000 one\n.\n"*/b.lab"\none\ntwo\n.\n'
    archive = packed(atomic.write_npz, {"iteration": 3, "reports": [{"objective": 1.5}]}, {"x": means})

    def classifier(model):
        raw = packed(classifiers.write_classifier, model, ["a", "b"], "ml", mixtures=2)
        return Case({"m.npz": raw}, "m.npz", lambda f: classifiers.read_classifier(f / "m.npz"), "npz", loose=True)

    return {
        "read_model": Case(
            {"m.npz": packed(models.write_model, hmms)},
            "m.npz",
            lambda f: models.read_model(f / "m.npz"),
            "npz",
            loose=True,
        ),
        "read_classifier full": classifier(full),
        "read_classifier": classifier(margin),
        "read_npz": Case({"i.npz": archive}, "i.npz", lambda f: atomic.read_npz(f / "i.npz"), "npz", loose=True),
        "read_hmmdefs": Case(
            {"mmf": packed(htk.write_hmmdefs, hmms)}, "mmf", lambda f: htk.read_hmmdefs(f / "mmf"), loose=True
        ),
        "read_parameters": Case({"a.mfc": parameters}, "a.mfc", lambda f: htk.read_parameters(f / "a.mfc"), "bytes"),
        "read_mlf": Case({"a.mlf": mlf}, "a.mlf", lambda f: htk.read_mlf(f / "a.mlf")),
        "read_lexicon": Case(
            {"dict": packed(lexicon.write_lexicon, hmms.lexicon) + b"two [two] 0.5 t uw\nfour f\nfour(2) f r\n"},
            "dict",
            lambda f: lexicon.read_lexicon(f / "dict"),
        ),
        "read_arpa": Case(
            {"lm": packed(arpa.write_arpa, witten_bell([("one", "two"), ("two",)], ("one", "two"), 3))},
            "lm",
            lambda f: arpa.read_arpa(f / "lm"),
        ),
        "read_jsgf": Case(
            {"a.jsgf": b"#JSGF V1.0;\ngrammar g;\n<n> = one | two;\npublic <a> = <n>+ [one] (two one)*; // end\n"},
            "a.jsgf",
            lambda f: jsgf.read_jsgf(f / "a.jsgf", ("one", "two")),
        ),
        "read_grammar": Case(
            {"a.jsgf": b"#JSGF V1.0;\npublic <a> = one+ [two];\n"},
            "a.jsgf",
            lambda f: grammars.read_grammar(f / "a.jsgf", ("one", "two")),
        ),
        "read_questions": Case(
            {"questions.txt": b"a b\nc\n"},
            "questions.txt",
            lambda f: questions.read_questions(f / "questions.txt", "abc"),
        ),
        "read_net": Case(
            {"a.slf": b"base=10\n" + packed(htk_net.write_net, hmms)},
            "a.slf",
            lambda f: htk_net.read_net(f / "a.slf", hmms.words, {lexicon.SILENCE}),
        ),
        "read_hcopy": Case(
            {"hcopy.conf": packed(htk_kinds.write_hcopy, describe(MfccOptions(), 16000)) + b"SOURCERATE = 625\n"},
            "hcopy.conf",
            lambda f: htk_kinds.read_hcopy(f / "hcopy.conf"),
        ),
        "read_model_text": Case(
            {"final.mdl": packed(kaldi_models.write_model_text, hmms)},
            "final.mdl",
            lambda f: kaldi_models.read_model_text(f / "final.mdl", {1: "one", 2: "sil"}, silence="sil"),
            loose=True,
        ),
        "read_symbols": Case(
            {"phones.txt": b"<eps> 0\none 1\nsil 2\n"},
            "phones.txt",
            lambda f: kaldi_models.read_symbols(f / "phones.txt"),
        ),
    }


def read_alignments_in(name: str, folder: Path):
    from margo.formats.kaldi_alignments import read_alignments

    return read_alignments(folder / name)


def speech_cases() -> dict[str, Case]:
    import kaldiio

    from margo.formats import boundary_table, ctm, datadir, eaf, features, textgrid, transcripts
    from margo.signal.front_end import MfccOptions, describe

    x = np.arange(30, dtype=np.float32).reshape(10, 3)

    def ark(array, **how):
        return packed(lambda path: kaldiio.save_ark(str(path), {"u": array}, **how))

    def matrix(folder):
        return features.read_matrix((str(folder / "f.ark"), 2))

    tables = {
        "wav.scp": b"r1 a.wav\nr2 a.wav\n",
        "segments": b"u1 r1 0.0 0.5\nu2 r2 0.25 -1\n",
        "a.wav": b"RIFF",
        "text": b"u1 one two\nu2 three\n",
        "utt2spk": b"u1 s1\nu2 s2\n",
        "spk2utt": b"s1 u1\ns2 u2\n",
        "spk2gender": b"s1 m\ns2 f\n",
        "feats.scp": b"u1 f.ark:2\nu2 f.ark:2\n",
        "f.ark": ark(x),
    }
    tiers = {"words": [textgrid.Interval(0.1, 0.5, 'a"b'), textgrid.Interval(0.5, 1.0, "two")]}
    grid, elan = packed(textgrid.write_textgrid, 1.5, tiers), packed(eaf.write_eaf, "a.wav", tiers)
    nbest = b"".join(
        json.dumps(
            {"utt": f"u{n}", "ref": ["one"], "ref_score": -3.5, "hyps": [{"words": ["one", "two"], "score": -4.25}] * 2}
        ).encode()
        + b"\n"
        for n in range(3)
    )
    lines = b"u1 1 0.120 0.310 one 0.9876\nu1 1 0.430 0.2 two\n;; note\nu2 1 0 1 three 1.0\n"
    cases = {
        f"datadir.read {name}": Case(tables, name, lambda f: datadir.read(f).utterances) for name in datadir.TABLES
    }
    arks = {
        "": ark(x),
        " double": ark(x.astype(float)),
        **{f" packed {n}": ark(x, compression_method=n) for n in (2, 3, 5)},
    }
    sums = np.array([[30.0, 50, 10], [190, 350, 0]])
    stats = {"cmvn.scp": b"s1 c.ark:2\ns2 c.ark:2\n", "c.ark": ark(sums)}
    cases |= {
        f"read_cmvn {name}": Case(stats, name, features.read_cmvn, kind)
        for name, kind in (("cmvn.scp", "text"), ("c.ark", "bytes"))
    }
    ali = b"".join(name + ark(np.array([1, 2, 2, 4], np.int32))[2:] for name in (b"u1 ", b"u2 "))
    runs = b"".join(b"u%d 1 2 2 4\n" % n for n in range(40))
    cases |= {
        f"read_alignments {name}": Case({name: raw}, name, partial(read_alignments_in, name), kind)
        for name, raw, kind in (
            ("ali.ark", ali, "bytes"),
            ("ali.txt", runs, "text"),
            ("ali.gz", gzip.compress(runs, mtime=0), "gz"),
        )
    }
    cases |= {f"read_matrix{kind}": Case({"f.ark": raw}, "f.ark", matrix, "bytes") for kind, raw in arks.items()}
    return cases | {
        "read_vector": Case(
            {"a.ark": ark(np.arange(9, dtype=np.int32))},
            "a.ark",
            lambda f: features.read_vector((str(f / "a.ark"), 2)),
            "bytes",
        ),
        "read_scp": Case({"f.ark": ark(x), "feats.scp": b"u1 f.ark:2\nu2 f.ark:2\n"}, "feats.scp", features.read_scp),
        "read_options": Case(
            {"mfcc.json": json.dumps(describe(MfccOptions(), 16000), indent=1).encode()},
            "mfcc.json",
            features.read_options,
        ),
        "read_ctm": Case({"a.ctm": lines}, "a.ctm", lambda f: ctm.read_ctm(f / "a.ctm")),
        "read_boundaries": Case(
            {"a.csv": b"utterance,time,deviation,left,right,confidence\nu1,0.120,0.0043,a,b,0.9801\n"},
            "a.csv",
            lambda f: boundary_table.read_boundaries(f / "a.csv"),
        ),
        "read_correction": Case(
            {"correction.json": b'{"late": 0.001, "pairs": {"a b": -0.002}, "factor": 1.2, "classes": {"a": "vowel"}}'},
            "correction.json",
            boundary_table.read_correction,
        ),
        "read_eaf": Case({"a.eaf": elan}, "a.eaf", lambda f: eaf.read_eaf(f / "a.eaf")),
        "read_textgrid": Case({"a.TextGrid": grid}, "a.TextGrid", lambda f: textgrid.read_textgrid(f / "a.TextGrid")),
        "read_transcripts": Case({"hyp": tables["text"]}, "hyp", lambda f: transcripts.read_transcripts(f / "hyp")),
        "read_utt2spk": Case(
            {"utt2spk": tables["utt2spk"]}, "utt2spk", lambda f: transcripts.read_utt2spk(f / "utt2spk")
        ),
        "read_nbest": Case({"n.jsonl": nbest}, "n.jsonl", lambda f: transcripts.read_nbest(f / "n.jsonl")),
        "read_symbol_map": Case(
            {"m.toml": b'[map]\nix = "ih"\nq = ""\n'}, "m.toml", lambda f: transcripts.read_symbol_map(f / "m.toml")
        ),
    }


def run_cases() -> dict[str, Case]:
    from margo.errors import MargoError
    from margo.formats import paper, plots, scores, systems
    from margo.formats.atomic import write_npz
    from margo.report import collect
    from margo.runtime import epochs, options, record

    rate = {"percent": 12.5, "errors": 2, "total": 16, "ci95": [1.5, 20.25]}
    score = {"system": "ml", "mixtures": 8, "set": "test", "metric": "wer", **rate, "ser": rate, "seconds": 3.25}
    per_utt = b"u1 ref one *** two\nu1 hyp one six two\nu1 op  C   I   C\nu1 #csid 2 0 1 0\n"
    drawn = [
        {"title": "t", "kind": "line", "series": [{"name": "a", "x": [1, 2], "y": [0.5, 1.5]}]},
        {"title": "h", "kind": "heatmap", "values": [[1, 2], [3, 4]], "rows": ["a", "b"]},
    ]
    held = {
        "status": "ok",
        "step": "train_ml",
        "argv": ["--out", "x"],
        "options": {"states": 12},
        "inputs": {},
        "outputs": {"model.npz": "ab12"},
        "seconds": 3.5,
    }
    tried = {"insertion_penalty": -10.0, "errors": 3, "wrong": 2}
    weights = {"chosen_on": "dev", "words": 10, "strings": 5, "before": tried, "after": tried, "tried": [tried]}
    swept = {
        "chosen_on": "dev",
        "start": {"dev": 90.5},
        "best": {"radius": 0.01, "epoch": 3, "accuracy": {"dev": 91.5}},
        "curves": [{"radius": 0.01, "epoch": 3, "cost": 2.5, "accuracy": {"dev": [90.5, 91.5]}}],
    }
    state = {"iteration": 3, "reports": [{"objective": -3.5}], "done": False, "state": {"plain": {}},
             "identity": {"options": {"states": 3}, "inputs": {"data": ["ab"]}}}  # fmt: skip
    words = {"words": [{"word": "one", "tokens": 3, "median_ms": 250.0, "at_minimum": 0.25}]}
    conf = b"[train_ml]\nstates = 12\nmixtures = 8\n[make_mfcc]\nwindow_ms = 25.0\nshift_ms = 10.0\n"

    def text(value) -> bytes:
        return json.dumps(value, indent=1).encode()

    def configured(folder):
        kinds = {
            name: runpy.run_path(str(ROOT / "steps" / f"{name}.py"))["Options"] for name in ("train_ml", "make_mfcc")
        }
        values, faults = {}, set()
        for name, kind in kinds.items():
            more, wrong = options.read_conf(
                folder / "c.toml", name, kind, {each: ROOT / "steps" / f"{each}.py" for each in kinds}
            )
            values[name], faults = more, faults | set(wrong)
        if faults:
            raise MargoError("; ".join(sorted(faults)))
        return values

    def resumed(folder):
        meta, arrays = epochs.read_state(folder / "iter_003.npz")
        if not epochs.differences(meta["identity"], state["identity"]):  # the run goes on
            return meta["iteration"] + 1, [each["objective"] for each in meta["reports"]], meta["done"], meta["state"]

    def one(name, value, read, where="", **how):
        return Case({where + name: value if isinstance(value, bytes) else text(value)}, where + name, read, **how)

    shipped = (ROOT / "conf" / "systems.toml").read_bytes()
    figures = (ROOT / "conf" / "paper" / "isolet.toml").read_bytes()
    return {
        "read_score": one("score.json", score, scores.read_score),
        "read_per_utt": one("per_utt", per_utt, scores.read_per_utt, "score/"),
        "read_confusions": one(
            "confusion.csv", b"ref\\hyp,one,<eps>\none,3,1\n<eps>,2,0\n", scores.read_confusions, "score/"
        ),
        "read_plots": one("plots.json", drawn, lambda f: plots.read_plots(f / "plots.json")),
        "read_progress": one(
            "progress.jsonl",
            b'{"iteration": 1, "objective": -3.5}\n{"iteration": 2}\n',
            plots.read_progress,
            loose=True,
        ),
        "read_paper": one("p.toml", figures, lambda f: paper.read_paper(f / "p.toml")),
        "systems.read_table": one("s.toml", shipped, lambda f: systems.read_table(f / "s.toml")),
        "read_systems": one("s.toml", shipped, lambda f: systems.read_systems(f / "s.toml")),
        "conf": one("c.toml", conf, configured),
        "record.read": one("step.json", held, record.read),
        "read_state": one("iter_003.npz", packed(write_npz, state, {"x": np.ones(3)}), resumed, kind="npz", loose=True),
        "collect.read_corpus": one("corpus.json", {"corpus": "timit", "synthetic": True}, collect.read_corpus, "data/"),
        "read_weights": one("grammar.json", weights, collect.read_weights, "ml_8/"),
        "read_sweeps": one("sweep.json", swept, collect.read_sweeps, "ml_8/"),
        "read_durations": one("durations.json", words, collect.read_durations, "ali/ml_8/"),
        "read_steps": one("step.json", held, collect.read_steps, "ml_8/"),
    }


def task_cases() -> dict[str, Case]:
    """What tasks keep for themselves."""
    import kaldiio

    from margo.formats.atomic import write_npz
    from margo.gaussian.pool import GaussianPool
    from margo.kernel.pairs import PairSystem, to_arrays
    from margo.tasks import labels, mixture_kernels, speech, transforming, warping, word_kernels

    splicing = transforming.Splicing(2, 1, 1)
    prior = GaussianPool(np.arange(8.0).reshape(4, 2), np.ones((4, 2)), np.log(np.full(4, 0.5)), np.array([0, 2, 4]))
    system = to_arrays(PairSystem("llr", prior, [prior], np.ones((1, 1)), np.ones(1)))
    kernel = {"format": mixture_kernels.FORMAT, "space": "llr", "runs": 1, "files": 1, "mixtures": 2}
    arrays = {f"{stage}0_{name}": value for stage in ("initial", "final") for name, value in system.items()}
    words = {f"{stage}0_{part}": np.ones(3) for stage in ("initial", "final") for part in word_kernels.PARTS}
    line = b'{"run": 0, "pair": [0, 1], "objective": 1.5, "margin": 0.25, "support": 3}\n'
    x = packed(lambda path: kaldiio.save_ark(str(path), {"u1": np.ones((4, 3), np.float32)}))
    folder = {"text": b"u1 one two\n", "utt2spk": b"u1 s1\n", "feats.scp": b"u1 f.ark:3\n", "f.ark": x,
              "mfcc.json": b'{"variant": "given", "dimension": 3}'}  # fmt: skip
    npz = {
        "read_transform": (transforming.NAME, lambda path: transforming.write_transform(
            path, np.ones((2, 6)), splicing, {"variant": "given", "dimension": 2}), transforming.read_transform),
        "mixture_kernels.read_systems": ("model.npz", lambda path: write_npz(path, kernel, arrays),
                                         lambda place: len(mixture_kernels.read_systems(place)[1])),
        "read_pairs": ("kernels.npz", lambda path: write_npz(
            path, {"format": word_kernels.FORMAT, "space": "llr", "per_frame": True}, words),
            lambda place: word_kernels.read_pairs(place, 2)),
    }  # fmt: skip
    return {
        name: Case({target: packed(write)}, target, read, "npz") for name, (target, write, read) in npz.items()
    } | {
        "read_warps": Case({warping.NAME: b'{"warps": {"s1": 1.05, "s2": 0.9}}'}, warping.NAME, warping.read_warps),
        "read_lines": Case({"pairs.jsonl": 3 * line}, "pairs.jsonl", mixture_kernels.read_lines),
        "read_segments": Case({"a.ctm": b"u1 1 0.1 0.3 one\nu1 1 0.4 0.2 two\n"}, "a.ctm",
                              lambda place: labels.read_segments(place / "a.ctm")),
        **{f"speech.read {name}": Case(folder, name, lambda place: speech.load(speech.read(place).items), kind,
                                       loose=True)
           for name, kind in (("text", "text"), ("feats.scp", "text"), ("mfcc.json", "text"), ("f.ark", "bytes"))},
    }  # fmt: skip


def report_cases() -> dict[str, Case]:
    """A whole run, each of its files spoilt, and its report made."""
    from margo.report.collect import collect
    from margo.report.columns import results_csv
    from margo.report.page import page
    from margo.report.text import console, markdown

    single = {name.split()[0]: case for name, case in run_cases().items()}
    files = {"data/corpus.json": single["collect.read_corpus"], "ali/ml_8/durations.json": single["read_durations"],
             "paper.toml": single["read_paper"]}  # fmt: skip
    files = {name: case.files[case.target] for name, case in files.items()}
    files |= {"data/test/text": b"u1 one two\n", "data/test/utt2spk": b"u1 s1\n"}
    score = json.loads(single["read_score"].files["score.json"])
    for system in ("ml", "mce"):
        place = f"decode/{system}_8/test"
        files[f"{place}/score.json"] = json.dumps(score | {"system": system}).encode()
        files[f"{place}/score/per_utt"] = single["read_per_utt"].files["score/per_utt"]
        files[f"{place}/step.json"] = json.dumps(
            {"status": "ok", "outputs": {}, "options": {"model": f"x/{system}_8", "out": f"x/{place}"}}
        ).encode()
        for name in ("step.json", "progress.jsonl", "plots.json", "grammar.json", "sweep.json"):
            case = next(case for case in single.values() if Path(case.target).name == name)
            files[f"{system}_8/{name}"] = case.files[case.target]

    def made(folder):
        report = collect(folder, "x", folder / "paper.toml")
        json.dumps(report.results, allow_nan=False)
        for text in (results_csv(report.rows), markdown(report), page(report), console(report)):
            text.encode()

    return {f"report {name}": Case(files, name, made) for name in files}


def all_cases() -> dict[str, Case]:
    own = task_cases()
    return audio_cases() | table_cases() | model_cases() | speech_cases() | own | run_cases() | report_cases()


# -- running -----------------------------------------------------------------------------------------------------------
def outcome(case: Case, folder: Path) -> str:
    """What is wrong with reading ``case`` from ``folder``; empty where nothing is."""
    from margo.errors import MargoError

    try:
        value = case.read(folder)
    except MargoError as error:
        said = str(error)
        places = [Path(case.target).name, *(str(each) for each in Path(case.target).parents if len(each.parts) > 1)]
        if not any(place in said for place in places):
            return f"does not name the file: {said[:200]}"
        return f"says too much: {said[:200]} ({len(said)} letters)" if len(said) > 8000 else ""
    except BaseException:
        return traceback.format_exc()[-1500:]
    return "" if case.loose or finite(value) else f"returns what is not finite: {str(value)[:200]}"


def put(case: Case, folder: Path) -> None:
    for name, raw in case.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(raw)


def fuzz(seed: int, count: int, only: str = "") -> list[dict]:
    from margo.runtime.record import own_peak

    def late(*_):
        raise TimeoutError(f"more than {SECONDS} s")

    signal.signal(signal.SIGPROF, late)
    cases, wrong = {name: case for name, case in all_cases().items() if only in name}, []
    with tempfile.TemporaryDirectory() as top:
        for number, (name, case) in enumerate(cases.items()):
            put(case, Path(top) / str(number))
            try:
                case.read(Path(top) / str(number))
            except Exception:
                wrong.append({"case": f"{name} as it should be", "reason": traceback.format_exc()[-1500:]})
        for number in range(count):
            place = number % len(cases)
            name, case = list(cases.items())[place]
            raw = spoilt(case, np.random.default_rng([seed, number]))
            (Path(top) / str(place) / case.target).write_bytes(raw)
            before = own_peak()
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            reason = outcome(case, Path(top) / str(place))
            signal.setitimer(signal.ITIMER_PROF, 0)
            after = own_peak()
            if after > MEGABYTES and after > before:
                reason = reason or f"takes {after:.0f} MB, {before:.0f} before"
            if reason:
                wrong.append({"case": f"{name} {number}", "reason": reason, "file": repr(raw[:300])})
    return wrong


if __name__ == "__main__":
    sys.setrecursionlimit(1000)
    print(json.dumps(fuzz(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:]), indent=1))

"""Steps that use a trained model, on a tiny synthetic corpus taken through the ISOLET recipe once."""

import json
import shutil
import subprocess
import sys

import kaldiio
import numpy as np
import pytest
import soundfile

from margo.formats.ctm import read_ctm
from margo.formats.models import read_model
from margo.formats.textgrid import read_textgrid


@pytest.fixture(scope="module")
def exp(root, tmp_path_factory):
    folder = tmp_path_factory.mktemp("isolet")
    corpus = folder / "corpus"
    make = [sys.executable, root / "local" / "mini_corpus.py", "isolet", "--out", corpus, "--size", "tiny"]
    subprocess.run(make, check=True, capture_output=True)
    recipe = [root / "recipes" / "isolet" / "run.sh", "--corpus", corpus, "--exp", folder / "exp", "--mix", "1",
              "--criteria", "ml", "--stop-stage", "3"]  # fmt: skip
    subprocess.run(recipe, check=True, capture_output=True)
    return folder / "exp"


def step(root, name, *arguments):
    command = [sys.executable, root / "steps" / f"{name}.py", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


def wav_of(exp, which="test"):
    name, path = (exp / "data" / which / "wav.scp").read_text().splitlines()[0].split(maxsplit=1)
    return name, path


def test_recognise_prints_a_line_json_and_ctm(root, exp):
    _, path = wav_of(exp)
    plain = step(root, "recognise", "--model", exp / "ml_1", path)
    assert plain.returncode == 0 and plain.stdout.startswith(f"{path}: ")
    letter = plain.stdout.split(": ")[1].strip()
    assert letter in read_model(exp / "ml_1" / "model.npz").words
    found = json.loads(step(root, "recognise", "--model", exp / "ml_1", path, "--json").stdout)
    assert found["text"] == letter and 0 <= found["words"][0]["confidence"] <= 1
    fields = step(root, "recognise", "--model", exp / "ml_1", path, "--ctm").stdout.split()
    assert fields[4] == letter and len(fields) == 6


def test_recognise_names_every_file_it_cannot_read_and_goes_on(root, exp, tmp_path):
    _, path = wav_of(exp)
    bad = tmp_path / "bad.wav"
    bad.write_bytes(b"RIFF nothing")
    done = step(root, "recognise", "--model", exp / "ml_1", bad, path, tmp_path / "absent.wav")
    assert done.returncode == 1 and path in done.stdout
    assert "bad.wav" in done.stderr and "absent.wav" in done.stderr


def test_recognise_takes_switches_before_files_and_one_channel_of_several(root, exp, tmp_path):
    _, path = wav_of(exp)
    x, rate = soundfile.read(path, dtype="int16")
    stereo = tmp_path / "with some spaces.wav"
    soundfile.write(stereo, np.stack([np.zeros_like(x), x], axis=1), rate)
    done = step(root, "recognise", "--model", exp / "ml_1", stereo)
    assert done.returncode == 1 and f"{stereo}: has 2 channels, expected one (--channel" in done.stderr
    done = step(root, "recognise", "--model", exp / "ml_1", "--channel", 1, "--json", stereo)
    alone = step(root, "recognise", "--model", exp / "ml_1", "--json", path)
    assert json.loads(done.stdout) == {**json.loads(alone.stdout), "file": str(stereo)}
    done = step(root, "recognise", "--model", exp / "ml_1", "--channel", 1, "--ctm", stereo)
    assert done.returncode == 0 and len(done.stdout.split()) == 6 and done.stdout.startswith("with_some_spaces 1 ")


def test_recognise_reads_standard_input_and_hears_nothing_in_silence(root, exp, tmp_path):
    _, path = wav_of(exp)
    command = [sys.executable, root / "steps" / "recognise.py", "--model", exp / "ml_1"]
    with open(path, "rb") as file:
        piped = subprocess.run([*command, "-"], stdin=file, capture_output=True)
    plain = subprocess.run([*command, path], capture_output=True)
    assert piped.returncode == 0 and piped.stdout == plain.stdout.replace(path.encode(), b"-")
    soundfile.write(tmp_path / "quiet.wav", np.zeros(60 * 16000), 16000)
    done = step(root, "recognise", "--model", exp / "ml_1", tmp_path / "quiet.wav")
    assert done.returncode == 0 and done.stdout == f"{tmp_path / 'quiet.wav'}:\n"


def test_recognise_names_a_file_too_short_for_a_window_and_wrong_settings(root, exp, tmp_path):
    soundfile.write(tmp_path / "tiny.wav", np.zeros(20), 16000)
    done = step(root, "recognise", "--model", exp / "ml_1", tmp_path / "tiny.wav")
    assert done.returncode == 1 and f"{tmp_path / 'tiny.wav'}: 20 samples, fewer than" in done.stderr
    for wrong, says in ((["--scale", "0"], "--scale is 0.0"), (["--ctm", "--json"], "expected one of them")):
        done = step(root, "recognise", "--model", exp / "ml_1", *wrong, tmp_path / "tiny.wav")
        assert done.returncode == 2 and says in done.stderr and done.stderr.count("\n") == 1


def test_alignments_cover_every_frame_and_agree_with_each_other(root, exp, tmp_path):
    ark = dict(kaldiio.load_ark(str(exp / "ali" / "ml_1" / "ali.ark")))
    feats = dict(kaldiio.load_ark(str(exp / "mfcc" / "train" / "feats.ark")))
    assert ark.keys() == feats.keys()
    assert all(len(ark[name]) == len(feats[name]) and ark[name].dtype == np.int32 for name in ark)
    words = read_ctm(exp / "ali" / "ml_1" / "ali.ctm")
    text = dict(line.split() for line in (exp / "mfcc" / "train" / "text").read_text().splitlines())
    assert {row.utterance: row.word for row in words} == text
    assert all(0 <= row.confidence <= 1 for row in words)
    done = step(root, "align", "--model", exp / "ml_1", "--data", exp / "mfcc" / "dev", "--out", tmp_path / "ali",
                "--textgrid", "true")  # fmt: skip
    assert done.returncode == 0, done.stderr
    grid = sorted((tmp_path / "ali" / "textgrid").iterdir())[0]
    assert set(read_textgrid(grid)[1]) == {"words", "units"}


def test_decoding_tells_when_words_were_said(root, exp, tmp_path):
    """The same words and scores as without times; each word lies within its recording, and is in both files."""
    dev = exp / "mfcc" / "dev"
    for name, more in (("plain", ()), ("timed", ("--ctm", "true", "--textgrid", "true"))):
        done = step(root, "decode", "--model", exp / "ml_1", "--data", dev, "--out", tmp_path / name, *more)
        assert done.returncode == 0, done.stderr
    for file in ("hyp", "scores"):
        assert (tmp_path / "plain/dev" / file).read_text() == (tmp_path / "timed/dev" / file).read_text()
    rows = read_ctm(tmp_path / "timed/dev/hyp.ctm")
    hyp = dict(line.split() for line in (tmp_path / "plain/dev/hyp").read_text().splitlines())
    assert {row.utterance: row.word for row in rows} == hyp and all(0 <= row.confidence <= 1 for row in rows)
    for row in rows:
        length, tiers = read_textgrid(tmp_path / "timed/dev/textgrid" / f"{row.utterance}.TextGrid")
        (said,) = [interval for interval in tiers["words"] if interval.label]
        assert said.label == row.word and said.start == pytest.approx(row.start, abs=1e-3)
        assert said.end <= length + 1e-6 and said.end == pytest.approx(row.end, abs=2e-3)
    name, path = wav_of(exp, "dev")
    heard = json.loads(step(root, "recognise", "--model", exp / "ml_1", path, "--json", "true").stdout)["words"]
    sure = [(row.word, pytest.approx(row.confidence, abs=2e-3)) for row in rows if row.utterance == name]
    assert [(word["word"], word["confidence"]) for word in heard] == sure  # as sure as anywhere else


def test_nbest_lists_are_sorted_distinct_and_hold_the_reference_score(exp):
    rows = [json.loads(line) for line in (exp / "nbest" / "ml_1" / "nbest.jsonl").read_text().splitlines()]
    assert rows
    for row in rows:
        scores = [hypothesis["score"] for hypothesis in row["hyps"]]
        assert scores == sorted(scores, reverse=True) and len(row["hyps"]) == 5
        assert len({tuple(hypothesis["words"]) for hypothesis in row["hyps"]}) == 5
        same = [hypothesis["score"] for hypothesis in row["hyps"] if hypothesis["words"] == row["ref"]]
        assert not same or same[0] == pytest.approx(row["ref_score"], abs=1e-4)
        assert row["ref_score"] <= scores[0] + 1e-4


def test_a_model_refuses_features_made_otherwise_and_names_the_key(root, exp, tmp_path):
    other = tmp_path / "dev"
    shutil.copytree(exp / "mfcc" / "dev", other)
    record = json.loads((other / "mfcc.json").read_text())
    (other / "mfcc.json").write_text(json.dumps({**record, "lifter": 0.0}))
    (other / "step.json").unlink()  # else the edit itself is refused
    done = step(root, "decode", "--model", exp / "ml_1", "--data", other, "--out", tmp_path / "out")
    assert done.returncode == 1 and "lifter is 0.0, expected 22.0" in done.stderr


def test_show_tells_what_a_folder_holds(root, exp, tmp_path):
    done = step(root, "show", exp / "ml_1", "--unit", "B")
    assert done.returncode == 0, done.stderr
    assert "system     ML: maximum likelihood" in done.stdout
    assert "criterion  ml" in done.stdout and "unit B" in done.stdout
    assert step(root, "show", tmp_path).returncode == 1
    shutil.copy(exp / "ml_1" / "model.npz", tmp_path)  # anybody's
    for bare in (tmp_path, tmp_path / "model.npz"):
        done = step(root, "show", bare)
        assert done.returncode == 0 and done.stdout.startswith("criterion  ml\n"), done.stderr
    (tmp_path / "started.json").write_text("{}")
    assert step(root, "show", tmp_path).returncode == 1


def test_a_model_goes_to_htk_and_comes_back(root, exp, tmp_path):
    """Definitions, words, grammar and front end: what comes back decodes to the same words and scores."""
    out, back = tmp_path / "htk", tmp_path / "back"
    done = step(root, "export_htk", "--model", exp / "ml_1", "--out", out)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1].startswith("HVite -C config -H macros -H hmmdefs -S files.scp")
    assert "39<NULLD><MFCC_E_D_A><DIAGC>" in (out / "hmmdefs").read_text()
    record = json.loads((exp / "mfcc" / "dev" / "mfcc.json").read_text())
    done = step(root, "import_htk", "--hmmdefs", out / "macros", out / "hmmdefs", "--dict", out / "dict", "--net",
                out / "wdnet", "--hcopy", out / "hcopy.conf", "--sample-rate", record["sample_rate"], "--out",
                back)  # fmt: skip
    assert done.returncode == 0, done.stderr
    tables = []
    for number, model in enumerate((exp / "ml_1", back)):
        place = tmp_path / f"decode{number}"
        done = step(root, "decode", "--model", model, "--data", exp / "mfcc" / "dev", "--out", place)
        assert done.returncode == 0, done.stderr
        rows = [line.split() for line in (place / "dev" / "scores").read_text().splitlines()]
        tables.append(((place / "dev" / "hyp").read_text(), np.array([float(row[1]) for row in rows])))
    assert tables[0][0] == tables[1][0]
    np.testing.assert_allclose(tables[1][1], tables[0][1], rtol=1e-6)


def test_a_model_and_its_alignments_go_to_kaldi_and_come_back(root, exp, tmp_path):
    out, back = tmp_path / "kaldi", tmp_path / "back"
    done = step(root, "export_kaldi", "--model", exp / "ml_1", "--ali", exp / "ali" / "ml_1", "--out", out)
    assert done.returncode == 0, done.stderr
    done = step(root, "import_kaldi", "--mdl", out / "final.mdl", "--phones", out / "phones.txt", "--lexicon",
                out / "lexicon.txt", "--features", exp / "mfcc" / "dev", "--ali", out / "ali.scp", "--silence", "sil",
                "--out", back)  # fmt: skip
    assert done.returncode == 0, done.stderr
    ours, theirs = (dict(kaldiio.load_ark(str(place / "ali.ark"))) for place in (exp / "ali" / "ml_1", back / "ali"))
    assert ours.keys() == theirs.keys()
    assert all(np.array_equal(ours[name], theirs[name]) for name in ours)
    rows = [[line.split() for line in (place / "phones.ctm").read_text().splitlines()]
            for place in (exp / "ali" / "ml_1", back / "ali")]  # fmt: skip
    assert len(rows[0]) == len(rows[1])
    for ours, theirs in zip(*rows):  # ours are means over all paths
        assert (ours[0], ours[4]) == (theirs[0], theirs[4]) and abs(float(ours[2]) - float(theirs[2])) < 0.1
    done = step(root, "decode", "--model", back, "--data", exp / "mfcc" / "dev", "--out", tmp_path / "d")
    assert done.returncode == 0, done.stderr


def test_full_covariances_are_trained_decoded_aligned_and_refused_where_they_do_not_fit(root, exp, tmp_path):
    """Two components, so that they are split too; a model grown from it stays full, and cannot become diagonal."""
    train, test = exp / "mfcc" / "train", exp / "mfcc" / "test"
    full, asked = tmp_path / "full", ("--covariance", "full", "--iterations", 2)
    done = step(root, "train_ml", "--data", train, *asked, "--states", 3, "--mixtures", 2, "--out", full)
    assert done.returncode == 0, done.stderr
    pool = read_model(full / "model.npz").pool
    assert pool.covariances.kind == "full" and pool.sizes.max() == 2
    assert np.abs(pool.covariances.matrices * (1 - np.eye(pool.dimension))).max() > 0
    for name, more in (("decode", ()), ("align", ())):
        done = step(root, name, "--model", full, "--data", test, "--out", tmp_path / name, *more)
        assert done.returncode == 0, done.stderr
    assert step(root, "recognise", "--model", full, wav_of(exp)[1]).returncode == 0
    assert step(root, "show", full).returncode == 0
    done = step(root, "train_ml", "--data", train, "--init", full, "--out", tmp_path / "back")
    assert done.returncode == 1 and "--covariance is diagonal, the model of --init has full ones" in done.stderr
    for name in ("train_mce", "train_mmi", "train_mm", "train_lme", "train_word_kernel"):
        done = step(root, name, "--data", train, "--init", full, "--out", tmp_path / name)
        assert done.returncode == 1 and "needs diagonal covariances, the model has full ones" in done.stderr, name
    done = step(root, "export_htk", "--model", full, "--out", tmp_path / "htk")
    assert done.returncode == 1 and "an HTK file needs diagonal covariances" in done.stderr

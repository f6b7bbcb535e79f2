"""The embedded corpora: the same bytes twice, the real corpora's layouts and formats, labels that fit the sound."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import soundfile

from margo.formats.audio import read_audio
from margo.formats.transcripts import read_symbol_map

ROOT = Path(__file__).resolve().parents[2]
pytest.importorskip("espeakng_loader", reason="the embedded corpora's voice is not installed (margo-speech[corpora])")


def generate(corpus, out, *options):
    command = [sys.executable, str(ROOT / "local" / "mini_corpus.py"), corpus, "--out", str(out), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def contents(folder):
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.mark.parametrize("corpus", ["tidigits", "isolet", "timit", "an4"])
def test_two_generations_are_the_same_bytes(mini, tmp_path, corpus):
    """The second one with another number of processes."""
    done = generate(corpus, tmp_path / "again", "--size", "tiny", "--jobs", "1")
    assert done.returncode == 0, done.stderr
    assert contents(tmp_path / "again") == contents(mini[corpus])


def test_a_finished_corpus_is_kept_and_another_seed_replaces_it(mini, tmp_path):
    """What a killed generation left beside it goes with the next one."""
    out = tmp_path / "isolet"
    shutil.copytree(mini["isolet"], out)
    (tmp_path / "isolet.partial" / "isolet1").mkdir(parents=True)
    (tmp_path / "isolet.partial" / "isolet1" / "half.wav").touch()
    (out / "isolet1" / "extra").touch()
    assert generate("isolet", out, "--size", "tiny").returncode == 0
    assert (out / "isolet1" / "extra").exists()
    assert generate("isolet", out, "--size", "tiny", "--seed", "1").returncode == 0
    assert not (out / "isolet1" / "extra").exists() and not (tmp_path / "isolet.partial").exists()
    names, others = contents(mini["isolet"]), contents(out)
    assert names.keys() == others.keys()
    assert all(names[name] != others[name] for name in names)


def test_a_folder_without_the_marker_is_not_touched(tmp_path):
    other = tmp_path / "mine"
    other.mkdir()
    (other / "thesis.txt").write_text("only copy")
    done = generate("isolet", other, "--size", "tiny")
    assert done.returncode != 0 and "not replaced" in done.stderr
    assert (other / "thesis.txt").read_text() == "only copy"


def test_marker_counts_what_is_there(mini):
    for corpus, folder in mini.items():
        made = json.loads((folder / "margo-synthetic.json").read_text())
        audio = [path for path in folder.rglob("*") if path.suffix.lower() in (".wav", ".sph")]
        assert made["corpus"] == corpus and made["synthetic"] is True
        assert made["utterances"] == len(audio)
        assert made["speakers"] == len({path.parent for path in audio})


def test_full_plans_are_large_enough():
    """Enough speakers and tokens to tell systems apart; checked without synthesis, in the generator's own words."""
    code = """
import json, numpy, mini_corpus
count = {}
for name, plan in mini_corpus.PLANS.items():
    speakers = plan("full", numpy.random.default_rng(0))
    assert len({speaker.folder for speaker in speakers}) == len(speakers)
    for speaker in speakers:
        assert len(dict(speaker.prompts)) == len(speaker.prompts)
    count[name] = [len(speakers), sum(len(text.split()) for speaker in speakers for _, text in speaker.prompts)]
    for speaker in speakers * (name == "isolet"):
        part = speaker.folder.split("/")[0]
        count[part] = count.get(part, 0) + len(speaker.prompts)
print(json.dumps(count))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT / "local", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    count = json.loads(done.stdout)
    assert count["tidigits"][0] >= 90 and count["tidigits"][1] >= 15000
    assert count["isolet"][0] >= 150 and count["isolet5"] >= 3000 and count["isolet4"] >= 2500
    assert [count[f"isolet{part}"] for part in (1, 2, 3)] == [540] * 3  # the real ones: 30 speakers say 9 letters twice
    assert count["timit"][0] >= 130


def test_all_letters_are_another_corpus_of_the_same_speakers(mini, tmp_path):
    """In the place of the E-set's: asked for anew, it is made anew; the other corpora have no letters to choose."""
    out = tmp_path / "isolet"
    shutil.copytree(mini["isolet"], out)
    assert generate("isolet", out, "--size", "tiny", "--letters", "all").returncode == 0
    spoken = {folder: {path.name.split("-")[1] for path in folder.rglob("*.wav")} for folder in (out, mini["isolet"])}
    assert spoken[out] == {f"{letter}{n}" for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" for n in (1, 2)}
    assert spoken[mini["isolet"]] < spoken[out]
    assert {path.name for path in out.glob("*/*")} == {path.name for path in mini["isolet"].glob("*/*")}
    refused = generate("tidigits", tmp_path / "x", "--letters", "all")
    assert refused.returncode == 2 and "--letters all is for isolet, not for tidigits" in refused.stderr


def test_layouts_and_formats(mini):
    digit = next((mini["tidigits"] / "train" / "man").glob("*/1a.wav"))
    assert digit.read_bytes()[:16] == b"NIST_1A\n   1024\n"
    letter = next((mini["isolet"] / "isolet1").glob("*/*-B1-t.wav"))
    assert letter.read_bytes()[:4] == b"RIFF" and letter.name.startswith(letter.parent.name)
    sentence = next((mini["timit"] / "TRAIN" / "DR1").glob("*/SA1.WAV"))
    assert sentence.read_bytes()[:7] == b"NIST_1A"
    assert all(sentence.with_suffix(suffix).is_file() for suffix in (".PHN", ".WRD", ".TXT"))
    assert (mini["timit"] / "TEST" / "DR1" / "MDAB0").is_dir()
    for path, rate in ((digit, 20000), (letter, 16000), (sentence, 16000)):
        samples, found = read_audio(path)
        assert found == rate and 0.2 < len(samples) / rate < 10
        assert 500 < np.abs(samples).max() <= 32767


def test_letters_last_as_long_as_peoples(mini):
    """300 to 700 ms; files have 100 to 250 ms without speech on either side, 350 in the mean."""
    lengths = [soundfile.info(path).duration for path in mini["isolet"].rglob("*.wav")]
    assert len(lengths) == 288 and 0.35 < np.median(lengths) - 0.35 < 0.55
    assert np.percentile(lengths, 5) - 0.35 > 0.25 and np.percentile(lengths, 95) - 0.35 < 0.75


def test_timit_labels_tile_the_file_and_fit_the_sound(mini):
    """Symbols are TIMIT's, without gaps; vowels are louder than closures and silence in every sentence."""
    to48 = read_symbol_map(ROOT / "conf" / "timit_phones.toml", "to48")
    vowels = {"aa", "ae", "ah", "ao", "ay", "eh", "ey", "ih", "iy", "ow", "uw"}
    quiet = {"h#", "pau", "pcl", "tcl", "kcl"}
    seen, spoken_samples, phones = set(), 0, 0
    for path in sorted(mini["timit"].rglob("*.PHN")):
        samples, _ = read_audio(path.with_suffix(".WAV"))
        rows = [line.split() for line in path.read_text().splitlines()]
        labels = [(int(start), int(end), symbol) for start, end, symbol in rows]
        assert labels[0][0] == 0 and labels[-1][1] == len(samples)
        assert labels[0][2] == labels[-1][2] == "h#"
        assert all(a[1] == b[0] for a, b in zip(labels, labels[1:]))
        assert all(start < end for start, end, _ in labels)
        assert {symbol for _, _, symbol in labels} <= set(to48)
        seen |= {symbol for _, _, symbol in labels}
        sounding = [end - start for start, end, symbol in labels if symbol not in {"h#", "pau"}]
        spoken_samples, phones = spoken_samples + sum(sounding), phones + len(sounding)

        def power(symbols, labels=labels, samples=samples):
            return np.mean(np.concatenate([samples[a:b] ** 2 for a, b, symbol in labels if symbol in symbols]))

        assert power(vowels) > 10 * power(quiet)
        words = [line.split() for line in path.with_suffix(".WRD").read_text().splitlines()]
        spoken = path.with_suffix(".TXT").read_text().split(maxsplit=2)[2]
        assert [word for _, _, word in words] == spoken.lower().translate(str.maketrans("", "", ".,?")).split()
        assert all(int(a) < int(b) <= len(samples) for a, b, _ in words)
    assert len(seen) >= 45
    assert 12.5 < 16000 * phones / spoken_samples < 15  # a second; people of TIMIT 13.5


def test_ctrl_c_ends_it_with_one_line_and_no_corpus(as_from_a_terminal, tmp_path):
    command = [sys.executable, str(ROOT / "local" / "mini_corpus.py"), "tidigits", "--out", str(tmp_path / "out")]
    process = subprocess.Popen(command, preexec_fn=as_from_a_terminal, stderr=subprocess.PIPE, text=True)
    while not list((tmp_path / "out.partial").rglob("*.wav")):  # workers are at work
        assert process.poll() is None
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    assert process.communicate(timeout=30)[1] == "mini_corpus: interrupted\n"
    assert process.returncode == 130 and not (tmp_path / "out").exists()


def test_a_place_that_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "file").touch()
    for out, says in ((tmp_path / "file", "file: Not a directory"), (tmp_path / "file" / "in", "Not a directory")):
        done = generate("isolet", out, "--size", "tiny")
        assert done.returncode == 1 and says in done.stderr and done.stderr.count("\n") == 1

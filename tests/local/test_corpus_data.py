"""Raw corpora to data folders: the embedded ones, the real TIMIT sample, counts, and what is refused."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

from margo.formats import datadir
from margo.formats.ctm import read_ctm
from margo.formats.transcripts import read_symbol_map

ROOT = Path(__file__).resolve().parents[2]
DIGITS = {"z": "zero", "o": "oh", "1": "one", "2": "two", "3": "three", "4": "four", "5": "five", "6": "six",
          "7": "seven", "8": "eight", "9": "nine"}  # fmt: skip


def prepare(name, out, **options):
    arguments = [part for key, value in options.items() for part in (f"--{key.replace('_', '-')}", str(value))]
    command = [sys.executable, str(ROOT / "local" / f"{name}_data.py"), "--out", str(out), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def sets_of(out, names=("train", "dev", "test")):
    return {which: datadir.read(out / which) for which in names}


def check_sets(out, corpus):
    """Sound, disjoint in speakers, recorded, labelled synthetic."""
    sets = sets_of(out)
    for which in sets:
        assert datadir.validate(out / which) == []
    speakers = [set(data.by_speaker) for data in sets.values()]
    assert sum(map(len, speakers)) == len(set.union(*speakers))
    assert json.loads((out / "corpus.json").read_text()) == {"corpus": corpus, "synthetic": True}
    made = json.loads((out / "step.json").read_text())
    assert made["status"] == "ok" and "train/wav.scp" in made["outputs"]
    return sets


def test_tidigits(mini, tmp_path):
    done = prepare("tidigits", tmp_path / "data", corpus=mini["tidigits"])
    assert done.returncode == 0, done.stderr
    sets = check_sets(tmp_path / "data", "tidigits")
    assert {which: len(data.by_speaker) for which, data in sets.items()} == {"train": 8, "dev": 2, "test": 4}
    assert sets["train"].vocabulary == tuple(sorted(DIGITS.values()))
    for row in sets["train"]:
        assert row.words == tuple(DIGITS[digit] for digit in row.name.split("-")[2][:-1])
        assert Path(row.audio).name == row.name.split("-")[2] + ".wav"
    men = sorted(path.name for path in (mini["tidigits"] / "train" / "man").iterdir())
    assert f"man-{men[4]}" in sets["dev"].by_speaker  # the fifth man


def test_an4(mini, tmp_path):
    done = prepare("an4", tmp_path / "data", corpus=mini["an4"], dev_every=4)
    assert done.returncode == 0, done.stderr
    sets = check_sets(tmp_path / "data", "an4")
    assert {which: len(data.by_speaker) for which, data in sets.items()} == {"train": 8, "dev": 2, "test": 2}
    assert "ZERO Z IY R OW\n" in (tmp_path / "data" / "lexicon.txt").read_text()
    assert {*sets["train"].vocabulary} <= {*"ABCDEFGHIJKLMNOPQRSTUVWXYZ", *(word.upper() for word in DIGITS.values())}
    tests = []
    for fold in (1, 2, 3):
        done = prepare("an4", tmp_path / f"fold{fold}", corpus=mini["an4"], folds=3, fold=fold, dev_every=4)
        assert done.returncode == 0, done.stderr
        tests += datadir.read(tmp_path / f"fold{fold}" / "test").by_speaker
    assert len(tests) == len({*tests}) == 12  # every speaker is tested once
    broken = tmp_path / "broken"
    shutil.copytree(mini["an4"], broken)
    (broken / "margo-synthetic.json").unlink()
    lines = (broken / "etc" / "an4_test.transcription").read_text().splitlines()
    (broken / "etc" / "an4_test.transcription").write_text("\n".join(["YES (an1-x-b)", *lines[1:]]) + "\n")
    next((broken / "wav" / "an4test_clstk").rglob("*.sph")).unlink()
    done = prepare("an4", tmp_path / "refused", corpus=broken)
    for said in ("an4_test.transcription, line 1: 'YES (an1-x-b)'", "no recording", "training utterances: 80"):
        assert said in done.stderr and done.returncode == 1


def test_isolet(mini, tmp_path):
    done = prepare("isolet", tmp_path / "data", corpus=mini["isolet"])
    assert done.returncode == 0, done.stderr
    sets = check_sets(tmp_path / "data", "isolet")
    assert sets["train"].vocabulary == tuple("BCDEGPTVZ")
    assert {which: len(data) for which, data in sets.items()} == {"train": 8 * 18, "dev": 4 * 18, "test": 4 * 18}
    part5 = {path.name for path in (mini["isolet"] / "isolet5").iterdir()}
    assert set(sets["test"].by_speaker) == part5
    done = prepare("isolet", tmp_path / "some", corpus=mini["isolet"], letters="BD")
    assert done.returncode == 0, done.stderr
    sets = sets_of(tmp_path / "some")
    assert {which: len(data) for which, data in sets.items()} == {"train": 32, "dev": 16, "test": 16}


# -- the protocols of [LJ07]: no dev set -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, sizes", [("isolet", {"train": 12 * 9, "test": 4 * 18}), ("tidigits", {"train": 160, "test": 64})]
)
def test_the_papers_protocol_on_the_embedded_corpora(mini, tmp_path, name, sizes):
    """Speakers of train and dev are one set; nothing of test changes; of letters the first production trains."""
    for protocol in ("default", "paper"):
        done = prepare(name, tmp_path / protocol, corpus=mini[name], protocol=protocol)
        assert done.returncode == 0, done.stderr
    usual, paper = sets_of(tmp_path / "default"), sets_of(tmp_path / "paper", sizes)
    assert {which: len(data) for which, data in paper.items()} == sizes
    assert not (tmp_path / "paper" / "dev").exists()
    assert (tmp_path / "default/test/text").read_text() == (tmp_path / "paper/test/text").read_text()
    assert {*paper["train"].by_speaker} == {*usual["train"].by_speaker, *usual["dev"].by_speaker}
    names = {row.name for which in ("train", "dev") for row in usual[which]}
    assert {row.name for row in paper["train"]} == {each for each in names if name != "isolet" or each.endswith("1")}
    done = prepare(name, tmp_path / "default", corpus=mini[name], protocol="paper")
    assert done.returncode == 1 and f"{tmp_path / 'default/dev'}: of a run that had a dev set" in done.stderr
    assert prepare(name, tmp_path / "x", corpus=mini[name], protocol="papers").returncode == 2


def test_a_dev_set_that_is_not_made_has_no_size(mini, tmp_path):
    done = prepare("tidigits", tmp_path, corpus=mini["tidigits"], protocol="paper", dev_every=4)
    assert done.returncode == 2 and "--dev-every needs --protocol default" in done.stderr


@pytest.mark.slow
def test_the_papers_counts_on_corpora_of_the_real_size(tmp_path):
    """Names alone, as many as the real corpora have: 1080 and 540 letters, 8623 and 8700 strings."""
    isolet, tidigits = tmp_path / "isolet", tmp_path / "tidigits"
    for number in range(150):
        speaker = f"{'fm'[number % 2]}{chr(97 + number // 26)}{chr(97 + number % 26)}0"
        folder = isolet / f"isolet{1 + number // 30}" / speaker
        folder.mkdir(parents=True)
        for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ":
            for production in "12":
                (folder / f"{speaker}-{letter}{production}-t.wav").touch()
    for part, count in (("train", 8623), ("test", 8700)):
        for number in range(count):
            path = tidigits / part / ("man", "woman")[number % 2] / f"s{number // 2 % 55}" / f"{number:05d}a.wav"
            path = path.with_name(path.name.replace("0", "z"))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
    for name, corpus, sizes in (("isolet", isolet, [1080, 540]), ("tidigits", tidigits, [8623, 8700])):
        done = prepare(name, tmp_path / f"{name}-data", corpus=corpus, protocol="paper")
        assert done.returncode == 0, done.stderr
        lines = [(tmp_path / f"{name}-data" / which / "text").read_text().count("\n") for which in ("train", "test")]
        assert lines == sizes


def test_timit(mini, tmp_path):
    done = prepare("timit", tmp_path / "data", corpus=mini["timit"])
    assert done.returncode == 0, done.stderr
    sets = check_sets(tmp_path / "data", "timit")
    check_timit_labels(tmp_path / "data", sets)
    assert {which: len(data) for which, data in sets.items()} == {"train": 64, "dev": 32, "test": 32}
    assert set(sets["test"].by_speaker) == {"mdab0", "mwbt0", "felc0", "mtas1"}


def check_timit_labels(out, sets):
    to48, to39 = (read_symbol_map(ROOT / "conf" / "timit_phones.toml", name) for name in ("to48", "to39"))
    assert len(to48) == 61 and len(to39) == 48 and len(set(to39.values())) == 39
    assert set(to48.values()) == {*to39, ""}
    for which, data in sets.items():
        assert not any("-sa" in row.name for row in data)
        assert set(data.vocabulary) <= set(to39)
        phones: dict[str, list] = {}
        for row in read_ctm(out / which / "phones.ctm"):
            phones.setdefault(row.utterance, []).append(row)
        assert {name: tuple(row.word for row in rows) for name, rows in phones.items()} == {
            row.name: row.words for row in data
        }
        hand: dict[str, list] = {}
        for line in (out / which / "phn").read_text().splitlines():
            name, start, end, symbol = line.split()
            hand.setdefault(name, []).append((float(start), float(end), symbol))
        for row in data:
            kept = [(start, end) for start, end, symbol in hand[row.name] if to48[symbol]]
            times = [(timed.start, timed.end) for timed in phones[row.name]]
            assert np.allclose(kept, times, atol=2e-3)
            assert tuple(to48[symbol] for _, _, symbol in hand[row.name] if to48[symbol]) == row.words


def test_timit_sample(corpora, tmp_path):
    """The real one: no TRAIN and TEST, so refused without --partial and split by rule with it."""
    sample = corpora / "timit_sample"
    done = prepare("timit", tmp_path / "no", corpus=sample)
    assert done.returncode == 1 and "--partial true" in done.stderr
    assert not (tmp_path / "no" / "step.json").exists()
    done = prepare("timit", tmp_path / "data", corpus=sample, partial="true")
    assert done.returncode == 0, done.stderr
    sets = sets_of(tmp_path / "data")
    check_timit_labels(tmp_path / "data", sets)
    everyone = sorted(path.name.split("-")[1] for path in sample.iterdir() if path.name.startswith("dr"))
    speakers = {which: set(data.by_speaker) for which, data in sets.items()}
    assert len(speakers["train"]) == 9 and len(speakers["test"]) == 3 and speakers["dev"] == speakers["train"]
    assert sorted(speakers["train"] | speakers["test"]) == everyone
    assert {which: len(data) for which, data in sets.items()} == {"train": 63, "dev": 9, "test": 24}
    assert not {row.name for row in sets["dev"]} & {row.name for row in sets["train"]}
    assert {row.gender for row in sets["train"]} == {row.gender for row in sets["test"]} == {"f", "m"}
    assert json.loads((tmp_path / "data" / "corpus.json").read_text())["synthetic"] is False

    # Converted like text: a fifth or so begins, somewhere, to be noise at full scale.
    assert "96 recordings were converted like text" in done.stderr + done.stdout

    def loudest(path):
        samples = soundfile.read(path)[0]
        return np.sqrt(np.mean(samples[: len(samples) // 1600 * 1600].reshape(-1, 1600) ** 2, axis=1)).max()

    rows = [row for data in sets.values() for row in data]
    assert max(loudest(row.audio) for row in rows) < 0.15
    before = [loudest(next(sample.glob(f"*-{row.speaker}/{row.name.split('-')[1]}.wav"))) for row in rows]
    assert sum(level > 0.4 for level in before) > 15


def bare_sample(folder, speakers, sentences=8):
    """A sample without TRAIN and TEST: noise and three labels for each sentence of the given speakers."""
    rng = np.random.default_rng(0)
    for number, speaker in enumerate(speakers):
        own = folder / f"dr{number % 8 + 1}-{speaker}"
        own.mkdir(parents=True)
        for name in ["sa1", *(f"si{100 * number + at}" for at in range(sentences))]:
            soundfile.write(own / f"{name}.wav", rng.normal(0, 0.1, 1600), 16000)
            (own / f"{name}.phn").write_text("0 500 h#\n500 1000 aa\n1000 1600 h#\n")
    return folder


@pytest.mark.parametrize(("men", "women", "test"), [(1, 1, 1), (2, 1, 1), (2, 2, 1), (7, 0, 1), (8, 8, 4), (3, 10, 3)])
def test_split_by_rule(tmp_path, men, women, test):
    """A quarter of the speakers, at least one, is test; every other trains but for one sentence in eight."""
    speakers = [f"m{chr(ord('a') + n)}aa0" for n in range(men)] + [f"f{chr(ord('a') + n)}aa0" for n in range(women)]
    sample = bare_sample(tmp_path / "sample", speakers)
    done = prepare("timit", tmp_path / "data", corpus=sample, partial="true")
    assert done.returncode == 0, done.stderr
    sets = sets_of(tmp_path / "data")
    tested, trained = set(sets["test"].by_speaker), set(sets["train"].by_speaker)
    assert len(tested) == test and tested.isdisjoint(trained) and tested | trained == set(speakers)
    assert all(len(rows) == 8 for rows in sets["test"].by_speaker.values())
    assert all(len(rows) == 7 for rows in sets["train"].by_speaker.values())
    assert set(sets["dev"].by_speaker) == trained and len(sets["dev"]) == len(trained)
    if test > 1:
        assert {speaker[0] for speaker in tested} == {"f", "m"}


def test_too_small_to_split(tmp_path):
    done = prepare("timit", tmp_path / "a", corpus=bare_sample(tmp_path / "one", ["maaa0"]), partial="true")
    assert done.returncode == 1 and "maaa0 alone: expected two speakers or more" in done.stderr
    few = bare_sample(tmp_path / "few", ["maaa0", "mbaa0"], sentences=1)
    done = prepare("timit", tmp_path / "b", corpus=few, partial="true")
    assert done.returncode == 1 and "one sentence for each speaker" in done.stderr


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("tidigits", ["training strings: 160, expected 8623", "test strings: 64, expected 8700"]),
        ("isolet", ["speakers: 16, expected 150", "letters spoken: 288, expected 7800"]),
        ("timit", ["training speakers: 8, expected 462", "test speakers: 8, expected 168",
                   "train sentences: 64, expected 3696", "core test sentences: 32, expected 192"]),
    ],
)  # fmt: skip
def test_counts_of_a_real_corpus_are_errors(mini, tmp_path, name, expected):
    """The same files without the marker are an incomplete real corpus: refused, unless --partial true."""
    corpus = tmp_path / "corpus"
    corpus.symlink_to(mini[name], target_is_directory=True)
    real = tmp_path / "real"
    shutil.copytree(corpus, real, ignore=shutil.ignore_patterns("margo-synthetic.json"))
    done = prepare(name, tmp_path / "no", corpus=real)
    assert done.returncode == 1
    for line in expected:
        assert line in done.stderr
    assert not (tmp_path / "no" / "train").exists()
    done = prepare(name, tmp_path / "data", corpus=real, partial="true")
    assert done.returncode == 0, done.stderr
    called = {"timit": "timit (not the whole)"}.get(name, name)  # the papers' figures do not stand beside a part
    assert json.loads((tmp_path / "data" / "corpus.json").read_text()) == {"corpus": called, "synthetic": False}


def test_upper_case_and_deeper_folders(mini, tmp_path):
    """As some discs were copied: everything in capitals, below a folder of the disc."""
    source = mini["tidigits"]
    for path in source.rglob("*.wav"):
        target = tmp_path / "CD1" / "TIDIGITS" / str(path.relative_to(source)).upper()
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(path)
    assert prepare("tidigits", tmp_path / "upper", corpus=tmp_path / "CD1", partial="true").returncode == 0
    assert prepare("tidigits", tmp_path / "lower", corpus=source).returncode == 0
    for which in ("train", "dev", "test"):
        assert (tmp_path / "upper" / which / "text").read_text() == (tmp_path / "lower" / which / "text").read_text()


def test_what_is_refused(mini, tmp_path):
    done = prepare("isolet", tmp_path / "a", corpus=mini["timit"])
    assert done.returncode == 1 and "the embedded timit corpus, expected isolet" in done.stderr
    assert prepare("isolet", tmp_path / "b", corpus=tmp_path / "nowhere").returncode == 1
    assert prepare("tidigits", tmp_path / "c", corpus=mini["tidigits"], dev_every=1).returncode == 2
    (tmp_path / "empty").mkdir()
    for name in ("tidigits", "isolet", "timit"):
        assert prepare(name, tmp_path / "d", corpus=tmp_path / "empty", partial="true").returncode == 1
    broken = tmp_path / "broken"
    shutil.copytree(mini["timit"], broken)
    (first, second, third) = sorted(broken.rglob("SX*.PHN"))[:3]
    first.unlink()
    second.write_text("0 100 h#\n50 80 xx\n")
    third.write_text("nothing\n")
    done = prepare("timit", tmp_path / "e", corpus=broken)
    assert done.returncode == 1
    for part in ("no .phn file", "'xx' is not one of the 61 symbols", "from 50 to 80 after 100", "'nothing'"):
        assert part in done.stderr


@pytest.mark.parametrize(
    ("name", "layout"),
    [
        ("tidigits", "no strings of TIDIGITS among 3 .wav files (expected .../{train,test}/{man,woman}/<speaker>/"),
        ("isolet", "no letters of ISOLET among 3 .wav and .adc files (expected .../isolet{1,2,3,4,5}/"),
        ("timit", "no TIMIT sentences (expected .../<speaker>/<sentence>.wav and .phn)"),
    ],
)
def test_a_corpus_of_another_kind_is_told_what_was_expected(tmp_path, name, layout):
    other = words_folder(tmp_path / "other", ["a"])
    for partial in ("true", "false"):
        done = prepare(name, tmp_path / "data", corpus=other, partial=partial)
        assert done.returncode == 1 and f"{name}_data: {other}: {layout}" in done.stderr
    done = prepare(name, tmp_path / "data", corpus=other / "text")
    assert done.returncode == 1 and f"{other / 'text'}: is a file, expected a folder" in done.stderr


def words_folder(folder, speakers, words=("yes", "no", "stop")):
    rows = []
    for speaker in speakers:
        for number, word in enumerate(words):
            path = folder / "audio" / f"{speaker}-{number}.wav"
            path.parent.mkdir(parents=True, exist_ok=True)
            soundfile.write(path, np.sin(np.arange(800)) / 2, 8000)
            rows.append(datadir.Utterance(path.stem, speaker, (word,), str(path)))
    datadir.write(folder, rows)
    return folder


def test_words(tmp_path):
    """Dev by speakers, of whom one is enough where there are few, or as given; folders are copied."""
    train = words_folder(tmp_path / "many", [f"s{number:02}" for number in range(20)])
    test = words_folder(tmp_path / "test", ["t1"], words=("yes", "go"))
    done = prepare("words", tmp_path / "a", train=train, test=test, dev="")
    assert done.returncode == 0, done.stderr
    sets = sets_of(tmp_path / "a")
    assert set(sets["dev"].by_speaker) == {"s09", "s19"} and len(sets["train"]) == 54
    assert "not in train: go" in done.stderr
    few = words_folder(tmp_path / "few", ["a", "b", "c", "d"])
    assert prepare("words", tmp_path / "b", train=few, test=test).returncode == 0
    sets = sets_of(tmp_path / "b")
    assert [row.name for row in sets["dev"]] == ["d-0", "d-1", "d-2"] and len(sets["train"]) == 9
    assert prepare("words", tmp_path / "c", train=few, test=test, dev=train).returncode == 0
    assert {which: len(data) for which, data in sets_of(tmp_path / "c").items()} == {"train": 12, "dev": 60, "test": 2}


def test_words_keep_the_last_of_a_word_in_train(tmp_path):
    train = words_folder(tmp_path / "train", ["a"], words=("yes", "no") * 4 + ("yes", "rare", "no", "yes"))
    done = prepare("words", tmp_path / "out", train=train, test=train, dev_every=2, allow_overlap="true")
    assert done.returncode == 0
    sets = sets_of(tmp_path / "out")
    assert "rare" in sets["train"].vocabulary and "rare" not in sets["dev"].vocabulary


def test_words_with_a_speaker_left_out(tmp_path):
    train = words_folder(tmp_path / "train", ["a", "b", "c"], words=("yes", "no") * 6)
    assert prepare("words", tmp_path / "out", train=train, leave_out="b").returncode == 0
    sets = sets_of(tmp_path / "out")
    assert set(sets["test"].by_speaker) == {"b"} and len(sets["test"]) == 12
    assert {*sets["train"].by_speaker, *sets["dev"].by_speaker} == {"a", "c"}
    done = prepare("words", tmp_path / "none", train=train, leave_out="d")
    assert done.returncode == 1 and "the speakers of --train are a b c" in done.stderr
    alone = words_folder(tmp_path / "alone", ["a"])
    done = prepare("words", tmp_path / "none", train=alone, leave_out="a")
    assert done.returncode == 1 and "--leave-out a: --train has no other speaker" in done.stderr
    assert prepare("words", tmp_path / "both", train=train, test=train, leave_out="b").returncode == 2


def test_words_refuse_faulty_folders_and_empty_names(tmp_path):
    good = words_folder(tmp_path / "good", ["a"])
    bad = words_folder(tmp_path / "bad", ["b"])
    (bad / "utt2spk").unlink()
    (bad / "spk2utt").unlink()
    done = prepare("words", tmp_path / "out", train=good, test=bad)
    assert done.returncode == 1 and "missing file (1): utt2spk" in done.stderr
    assert prepare("words", tmp_path / "out", train="", test=good).returncode == 2


def test_deterding(corpora, tmp_path):
    done = prepare("deterding", tmp_path / "data", corpus=corpora / "deterding")
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "data" / "vowels.csv").read_text().splitlines()
    assert lines[0] == "split,speaker,class," + ",".join(f"f{number}" for number in range(10))
    rows = [line.split(",") for line in lines[1:]]
    assert [sum(row[0] == which for row in rows) for which in ("train", "test")] == [528, 462]
    for which in ("train", "test"):
        with open(corpora / "deterding" / f"vowel.{which}.csv", encoding="utf-8") as file:
            peer = [line.strip().split(",") for line in file][1:]
        ours = [row for row in rows if row[0] == which]
        assert [(row[1], int(row[2]) + 1) for row in ours] == [(row[0], int(row[-1])) for row in peer]
        assert np.array_equal(np.array([row[3:] for row in ours], float), np.array([row[2:-1] for row in peer], float))


def test_deterding_faults(tmp_path):
    """Rows as KEEL writes them; one is short, one of a speaker that does not exist, one is no number."""
    row = "0,{},0," + "0.5," * 10 + "{}"
    rows = ["@relation vowel", row.format(0, 0), row.format(99, 0), "1,2,3", row.format(0, "x")]
    file = tmp_path / "vowel.dat"
    file.write_text("\n".join(rows) + "\n")
    done = prepare("deterding", tmp_path / "data", corpus=file)
    assert done.returncode == 1
    for part in ("line 3: part 0, speaker 99", "line 4: 3 fields", "line 5:", "class 0: 1 rows, expected 6"):
        assert part in done.stderr
    file.write_text(rows[1] + "\n")
    assert prepare("deterding", tmp_path / "data", corpus=file, partial="true").returncode == 0


def test_validate_step(tmp_path):
    good = words_folder(tmp_path / "good", ["a"])
    bad = words_folder(tmp_path / "bad", ["b"])
    (bad / "audio" / "b-0.wav").unlink()
    step = str(ROOT / "steps" / "validate_data.py")
    done = subprocess.run([sys.executable, step, str(good)], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "sound: 3 utterances, 1 speakers" in done.stdout
    done = subprocess.run([sys.executable, step, str(good), str(bad)], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "audio file missing (1): wav.scp: b-0" in done.stdout and "1 fault" in done.stderr

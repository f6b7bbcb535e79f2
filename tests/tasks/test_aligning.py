"""People's recordings: synthetic words (tones) at known times, out to Praat's own engine, praatio and pympi."""

import csv
import pickle
import runpy
import subprocess
import sys
from dataclasses import astuple, replace
from functools import partial

import numpy as np
import pytest
import soundfile

from margo.errors import MargoError
from margo.formats.models import write_model
from margo.formats.textgrid import Interval, Points, read_textgrid, write_textgrid
from margo.model.grammar import grammar
from margo.model.hmm import flat_start, whole_words
from margo.runtime.step import Step
from margo.signal.front_end import MfccOptions, describe
from margo.signal.mfcc import compute_features
from margo.tasks import aligning
from margo.tasks.recognising import Recogniser

RATE = 8000
PITCH = {"low": 300, "high": 1500, "sil": None}
SPOKEN = [("sil", 0.3), ("low", 0.4), ("high", 0.3), ("sil", 0.25), ("low", 0.35), ("sil", 0.3)]
TIERS = ["words", "units", "confidence", "unit confidence", "deviation"]
TIMES = [(0.3, 0.7, "low"), (0.7, 1.0, "high"), (1.25, 1.6, "low")]


def sound(what, seconds, rng):
    noise = 20 * rng.standard_normal(round(seconds * RATE))
    tone = 2 * np.pi * (PITCH[what] or 0) * np.arange(len(noise)) / RATE
    return noise + 5000 * np.sin(tone)


def record(path, spoken=SPOKEN):
    rng = np.random.default_rng(1)
    samples = np.concatenate([sound(*each, rng) for each in spoken])
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, samples.astype(np.int16), RATE)
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Of what each sound's frames are in the middle of the others."""
    rng, options, folder = np.random.default_rng(0), MfccOptions(), tmp_path_factory.mktemp("tones")
    x = compute_features(np.concatenate([sound(what, 1.0, rng) for what in PITCH]).astype(np.float32), RATE, options)
    means = {what: x[100 * n + 20 : 100 * n + 80].mean(axis=0) for n, what in enumerate(PITCH)}
    hmms = flat_start(whole_words(["low", "high"]), 3, np.zeros(x.shape[1]), np.full(x.shape[1], 4.0), silence="sil",
                      meta={"features": describe(options, RATE), "grammar": grammar("loop", -5.0)})  # fmt: skip
    placed = np.concatenate([np.tile(means[unit.name], (unit.n_states, 1)) for unit in hmms.units])
    write_model(folder / "model.npz", hmms.with_pool(replace(hmms.pool, means=placed)))
    return folder


def align(root, *recording, out=None, **options):
    program = runpy.run_path(str(root / "steps" / "align.py"))
    step = Step("align", program["Options"](recording=tuple(map(str, recording)), out=out, **options), [])
    step.say = step.log
    step.begin()
    program["run"](step.options, step)
    step.finish()


def near(found, wanted, within=0.03):
    assert [row[2] for row in found] == [row[2] for row in wanted]
    assert np.abs(np.array([row[:2] for row in found]) - [row[:2] for row in wanted]).max() < within


@pytest.mark.parametrize("short", [False, True])
def test_a_recording_and_its_words_for_praat_and_elan(root, model, tmp_path, capsys, short):
    parselmouth, praatio = pytest.importorskip("parselmouth"), pytest.importorskip("praatio.textgrid")
    pympi = pytest.importorskip("pympi")
    wav, grid, eaf = record(tmp_path / "a b.wav"), tmp_path / "o.TextGrid", tmp_path / "o.eaf"
    align(root, wav, "Low, high - low!", model=model, textgrid=str(grid), eaf=str(eaf), short=short, doubtful=1.0,
          scale=1e-3)
    lines = capsys.readouterr().out.splitlines()
    doubtful = [float(line.split()[-1]) for line in lines if line.startswith("doubtful: ")]
    assert len(doubtful) == 3 and doubtful == sorted(doubtful)
    assert not any(line.startswith("doubtful") for line in lines[3:])
    assert [line.split()[2] for line in lines[len(doubtful) :]] == ["low", "high", "low"]
    assert ("xmin = " in grid.read_text()) is not short

    duration, tiers = read_textgrid(grid)
    assert duration == soundfile.info(wav).frames / RATE and list(tiers) == TIERS
    words = [(row.start, row.end, row.label) for row in tiers["words"]]
    near(words, TIMES)
    assert all(0 <= float(row.label) <= 1 for row in tiers["confidence"])
    assert [(row.start, row.end) for row in tiers["confidence"]] == [row[:2] for row in words]
    assert all(0 <= float(row.label) <= 1 for row in tiers["unit confidence"])
    assert [row[:2] for row in map(astuple, tiers["deviation"])] == [row[:2] for row in map(astuple, tiers["units"])]
    assert tiers["deviation"][0].label == "0" and all(0 <= float(row.label) < 100 for row in tiers["deviation"])
    bounds = {time for row in tiers["units"] for time in (row.start, row.end)}
    assert {time for row in words for time in row[:2]} <= bounds, "a word's boundary is a unit's"

    call = parselmouth.praat.call
    opened = parselmouth.read(str(grid))
    assert opened.xmax == duration and call(opened, "Get number of tiers") == len(TIERS)
    seen = [(call(opened, "Get start time of interval", 1, n), call(opened, "Get end time of interval", 1, n),
             call(opened, "Get label of interval", 1, n))
            for n in range(1, call(opened, "Get number of intervals", 1) + 1)]  # fmt: skip
    assert seen[0][0] == 0 and seen[-1][1] == duration and [row for row in seen if row[2]] == words
    theirs = praatio.openTextgrid(str(grid), includeEmptyIntervals=False).getTier("words").entries
    assert [tuple(entry) for entry in theirs] == words
    elan = pympi.Eaf(str(eaf))
    assert sorted(elan.get_tier_names()) == sorted(TIERS)
    told = sorted(elan.get_annotation_data_for_tier("words"))
    assert [(start / 1000, end / 1000, label) for start, end, label in told] == [
        (round(start, 3), round(end, 3), label) for start, end, label in words]  # fmt: skip
    assert elan.get_linked_files()[0]["RELATIVE_MEDIA_URL"] == "./a b.wav"


def test_a_folder_of_recordings(root, model, tmp_path):
    """Words in .lab, .txt, and each label of a tier in its own time; what cannot be aligned is named, the rest is."""
    folder, out = tmp_path / "in", tmp_path / "out"
    record(folder / "s1" / "one.wav").with_suffix(".lab").write_text("low high\nlow\n")
    record(folder / "s2" / "two.wav").with_suffix(".txt").write_text("LOW HIGH LOW")
    parts = {"said": [Interval(0.1, 1.1, "low high"), Interval(1.1, 1.9, "low")],
             "clicks": Points([Interval(0.5, 0.5, "!")])}  # fmt: skip
    write_textgrid(record(folder / "three.wav").with_suffix(".TextGrid"), 1.93, parts)  # its length was rounded up
    record(folder / "mute.wav")
    soundfile.write(folder / "mute.flac", np.zeros(100, np.int16), RATE)
    record(folder / "strange.wav").with_suffix(".lab").write_text("low middle")
    record(folder / "brief.wav", [("low", 0.05)]).with_suffix(".lab").write_text("low high low high")
    with pytest.raises(MargoError) as error:
        align(root, folder, model=model, out=out, doubtful=1.0, scale=1e-3)
    said = str(error.value)
    assert said.startswith("4 recordings were not aligned:\n") and said.count("\n") == 4
    for told in ("mute.wav: another recording is called mute, too",
                 "mute.flac: nothing beside it says its words, expected one of mute.lab mute.txt mute.TextGrid",
                 "strange.wav: not in the model: middle", "brief.wav: "):  # fmt: skip
        assert f"{folder}/{told}" in said
    for name in ("s1/one", "s2/two", "three"):
        duration, tiers = read_textgrid(out / f"{name}.TextGrid")
        near([(row.start, row.end, row.label) for row in tiers["words"]], TIMES)
    assert duration == pytest.approx(1.9) and list(tiers) == ["said", "clicks", *TIERS]
    assert list(tiers["said"]) == parts["said"] and tiers["clicks"] == parts["clicks"]
    assert isinstance(tiers["clicks"], Points) and len(list(out.rglob("*.TextGrid"))) == 3
    rows = list(csv.DictReader((out / "doubtful.csv").open()))
    sure = [float(row["confidence"]) for row in rows]
    named = {row["recording"].removeprefix(f"{folder}/") for row in rows}
    assert sure == sorted(sure) and {"s1/one.wav", "three.wav"} <= named
    sent = pickle.loads(pickle.dumps(partial(aligning.timed, Recogniser(model), None)))  # as to --nj processes
    assert [word["word"] for word in sent(aligning.beside(folder / "s1" / "one.wav")).words] == ["low", "high", "low"]


def test_all_that_an_elan_file_holds_is_kept(root, model, tmp_path):
    pympi = pytest.importorskip("pympi")
    wav, given = record(tmp_path / "in" / "a.wav"), pympi.Eaf(author="somebody")
    given.add_tier("words", part="speaker 1")
    given.add_annotation("words", 200, 1650, "low high low")
    given.add_linguistic_type("notes", constraints="Symbolic_Association")
    given.add_tier("note", ling="notes", parent="words")
    given.add_ref_annotation("note", "words", 300, "a remark")
    given.to_file(wav.with_suffix(".eaf"))
    align(root, wav.parent, model=model, out=tmp_path / "out", eaf="true")
    back = pympi.Eaf(str(tmp_path / "out" / "a.eaf"))
    assert back.adocument["AUTHOR"] == "somebody" and back.tiers["words"][2]["PARTICIPANT"] == "speaker 1"
    assert [row[:3] for row in back.get_annotation_data_for_tier("note")] == [(200, 1650, "a remark")]
    assert back.get_annotation_data_for_tier("words") == [(200, 1650, "low high low")]
    ours = sorted(back.get_annotation_data_for_tier("words (margo)"))
    near([(start / 1000, end / 1000, label) for start, end, label in ours], TIMES)
    assert len({*back.timeslots}) == len(back.timeslots) and len(back.annotations) == sum(
        len(tier[0]) + len(tier[1]) for tier in back.tiers.values())  # fmt: skip


def test_words_as_the_model_spells_them():
    lexicon = dict.fromkeys(["six", "OH", "don't", "Ü"])
    assert aligning.known("Six, oh – (DON'T) ü.", lexicon) == ["six", "OH", "don't", "Ü"]
    assert aligning.known("seven", lexicon) == ["seven"]


@pytest.mark.parametrize("words, says", [
    ("--model m", "expected either a recording"),
    ("--model m a.wav one two", "in quotes"),
    ("--model m --data d a.wav", "expected either a recording"),
    ("--model m --data d", "--data needs --out"),
    ("--model m --data d --out o --eaf x", "--eaf does nothing with --data"),
])  # fmt: skip
def test_command_lines_that_are_refused(root, words, says):
    done = subprocess.run([sys.executable, root / "steps" / "align.py", *words.split()], capture_output=True, text=True)
    assert done.returncode == 2 and says in done.stderr and done.stderr.count("\n") == 1


def test_ten_minutes_in_little_memory(root, model, tmp_path):
    """From the recording to the TextGrid, less than 700 MB and faster than 20 times real time (of processor time)."""
    import resource

    record(tmp_path / "long.wav", SPOKEN * 316)
    (tmp_path / "long.txt").write_text("low high low " * 316)
    command = [sys.executable, root / "steps" / "align.py", "--model", model, tmp_path / "long.wav", "--textgrid",
               tmp_path / "long.TextGrid"]  # fmt: skip
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    memory = "import resource, subprocess, sys; code = subprocess.run(sys.argv[1:], stdout=-3).returncode; print("
    memory += "resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss); sys.exit(code)"
    done = subprocess.run([sys.executable, "-c", memory, *map(str, command)], capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) / 1024 < 700
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 600 / 20
    _, tiers = read_textgrid(tmp_path / "long.TextGrid")
    wanted = [(start + 1.9 * n, end + 1.9 * n, word) for n in range(316) for start, end, word in TIMES]
    near([(row.start, row.end, row.label) for row in tiers["words"]], wanted, 0.05)

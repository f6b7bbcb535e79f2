"""score.py and compare.py as they are run."""

import json
import runpy
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from margo.formats.transcripts import write_transcripts
from margo.runtime import record
from margo.tasks.scoring import score_classes

STEPS = Path(__file__).parents[2] / "steps"
WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "zero", "oh"]


@pytest.fixture
def run(monkeypatch, capsys):
    """Run a step as a program, in this process; what it said. Fails unless it ends as expected."""

    def run(name, *arguments, fails=False):
        monkeypatch.setattr(sys, "argv", [str(STEPS / name), *map(str, arguments)])
        code = None
        try:
            runpy.run_path(str(STEPS / name), run_name="__main__")
        except SystemExit as exit_:
            code = exit_.code
        captured = capsys.readouterr()
        said = captured.out + captured.err + (code if isinstance(code, str) else "")
        assert bool(code) == fails, said
        return said

    return run


def decode_folder(exp, system, hypotheses, model_seconds=None):
    """A folder as decode leaves it."""
    folder = exp / "decode" / system / "test"
    model = exp / system
    model.mkdir(parents=True, exist_ok=True)
    if model_seconds is not None:
        record.write(model, "train_ml", [], None, {}, [], model_seconds, {})
    write_transcripts(folder / "hyp", hypotheses)
    record.write(folder.parent, "decode", [], None, {}, ["test/hyp"], 1.0, {"options": {"model": str(model)}})
    return folder


@pytest.fixture
def exp(tmp_path):
    """Two systems' hypotheses for 200 strings of 10 speakers; the second makes fewer errors."""
    generator = np.random.default_rng(0)
    names = [f"s{n % 10}_{n:03d}" for n in range(200)]
    references = {name: [WORDS[i] for i in generator.integers(0, 11, generator.integers(1, 8))] for name in names}
    data = tmp_path / "data" / "test"
    write_transcripts(data / "text", references)
    write_transcripts(data / "utt2spk", {name: [name[:2]] for name in references})
    for system, rate in (("ml_2", 0.2), ("mce_2", 0.05)):
        hypotheses = {
            name: [WORDS[generator.integers(11)] if generator.random() < rate else word for word in words]
            for name, words in references.items()
        }
        decode_folder(tmp_path, system, hypotheses, model_seconds=12.5)
    return tmp_path


def test_score_writes_the_folder_of_the_contract(run, exp):
    folder = exp / "decode" / "ml_2" / "test"
    before = record.read(folder.parent)
    said = run("score.py", "--hyp", folder, "--data", exp / "data" / "test")
    value = json.loads((folder / "score.json").read_text())
    assert (value["system"], value["mixtures"], value["set"], value["seconds"]) == ("ml", 2, "test", 12.5)
    assert value["unit"] == "word"
    assert value["ci95"][0] < value["percent"] < value["ci95"][1]
    assert f"%WER {value['percent']:.2f}" in said
    assert {path.name for path in (folder / "score").iterdir()} == {
        "wer", "ci", "per_utt", "per_spk", "ops", "confusion.csv", "step.json", "step.log",
    }  # fmt: skip
    assert record.read(folder.parent) == before  # the decoding's own record stays
    assert record.read(folder / "score")["outputs"].keys() == {
        "wer", "ci", "per_utt", "per_spk", "ops", "confusion.csv", "../score.json",
    }  # fmt: skip
    first = (folder / "score.json").read_bytes()
    run("score.py", "--hyp", folder, "--data", exp / "data" / "test")
    assert (folder / "score.json").read_bytes() == first


def test_speaker_intervals_are_named_as_such(run, exp):
    folder = exp / "decode" / "ml_2" / "test"
    run("score.py", "--hyp", folder, "--data", exp / "data" / "test", "--by", "speaker")
    assert "bootstrap over speakers" in (folder / "score" / "ci").read_text()


def test_missing_hypotheses_are_deletions_and_surplus_ones_a_fault(run, tmp_path):
    write_transcripts(tmp_path / "data" / "text", {"a": ["one", "two"], "b": ["three"]})
    folder = decode_folder(tmp_path, "ml_1", {"a": ["one", "two"]})
    said = run("score.py", "--hyp", folder, "--data", tmp_path / "data")
    assert "1 utterances have no hypothesis and count as deleted whole: b" in said
    assert (folder / "score" / "wer").read_text().splitlines()[0] == "%WER 33.33 [ 1 / 3, 0 ins, 1 del, 0 sub ]"
    assert json.loads((folder / "score.json").read_text())["missing"] == ["b"]

    folder = decode_folder(tmp_path, "ml_1", {"a": [], "b": [], "c": ["one"]})
    said = run("score.py", "--hyp", folder, "--data", tmp_path / "data", fails=True)
    assert "1 hypotheses have no reference: c" in said and "Traceback" not in said


def test_symbols_are_merged_before_scoring(run, tmp_path):
    write_transcripts(tmp_path / "data" / "text", {"a": ["sil", "ix", "q", "aa"]})
    folder = decode_folder(tmp_path, "ml_1", {"a": ["ih", "aa", "sil"]})
    (tmp_path / "map.toml").write_text('[map]\nix = "ih"\nq = ""\nsil = ""\n')
    run("score.py", "--hyp", folder, "--data", tmp_path / "data", "--map", tmp_path / "map.toml")
    assert (folder / "score" / "wer").read_text().startswith("%WER 0.00 [ 0 / 2,")
    value = json.loads((folder / "score.json").read_text())
    assert (value["metric"], value["unit"]) == ("wer", "phone")
    words = ("--map", tmp_path / "map.toml", "--unit", "word")
    run("score.py", "--hyp", folder, "--data", tmp_path / "data", *words)
    assert json.loads((folder / "score.json").read_text())["unit"] == "word"


def test_wrong_use_is_told_in_one_line(run, exp):
    incomplete = exp / "decode" / "ml_9" / "test"
    incomplete.mkdir(parents=True)
    assert "--stage 7" in run("score.py", "--hyp", incomplete, "--data", exp / "data" / "test", fails=True)
    folder = exp / "decode" / "ml_2" / "test"
    said = run("score.py", "--hyp", folder, "--data", exp / "data" / "test", "--out", exp / "x", fails=True)
    assert "must be named score" in said


def test_somebody_elses_hypotheses_and_references_are_scored(run, exp, tmp_path):
    """Any folder, of any name, and bare files; what their names do not tell is left open."""
    mine, theirs = exp / "decode" / "ml_2" / "test", tmp_path / "peer" / "eval2"
    theirs.mkdir(parents=True)
    shutil.copy(mine / "hyp", theirs / "hyp")
    shutil.copy(exp / "data" / "test" / "text", tmp_path / "ref.txt")
    run("score.py", "--hyp", theirs, "--data", exp / "data" / "test")
    first = json.loads((theirs / "score.json").read_text())
    assert (first["system"], first["mixtures"], first["set"]) == ("peer", 0, "eval2")
    shutil.move(theirs / "hyp", theirs / "hyp.txt")
    run("score.py", "--hyp", theirs / "hyp.txt", "--data", tmp_path / "ref.txt", "--system", "other", "--mixtures", 3)
    second = json.loads((theirs / "score.json").read_text())
    assert (second["system"], second["mixtures"], second["errors"]) == ("other", 3, first["errors"])


def test_compare_finds_the_better_system_and_refuses_other_data(run, exp):
    folders = [exp / "decode" / system / "test" for system in ("ml_2", "mce_2")]
    for folder in folders:
        run("score.py", "--hyp", folder, "--data", exp / "data" / "test")
    said = run("compare.py", *folders, "--out", exp / "compare")
    assert "B is better (matched pairs, p = " in said
    result = json.loads((exp / "compare" / "compare.json").read_text())
    assert result["better"] == "b" and result["p"] < 0.001
    assert f"{result['utterances_that_differ']} of 200 utterances differ" in said
    assert "A is better" in run("compare.py", *folders[::-1])
    assert "no difference" in run("compare.py", folders[0], folders[0] / "score")
    assert "better" in run("compare.py", *folders, "--by", "speaker", "--data", exp / "data" / "test")

    write_transcripts(exp / "data" / "other" / "text", {"a": ["one"]})
    other = decode_folder(exp, "mmi_2", {"a": ["one"]})
    run("score.py", "--hyp", other, "--data", exp / "data" / "other")
    said = run("compare.py", folders[0], other, fails=True)
    assert "different data" in said and "200 utterances are in" in said


def test_isolated_words_are_compared_by_mcnemar(run, tmp_path):
    truth = np.arange(100) % 5
    for name, wrong in (("a", 30), ("b", 10)):
        guess = truth.copy()
        guess[:wrong] = 9
        score_classes(tmp_path / name, truth, [guess], system=name, mixtures=1, set="test")
    said = run("compare.py", tmp_path / "a", tmp_path / "b")
    assert "B is better (McNemar, p = 1.9e-06)" in said  # 20 tosses, all one way: 2 / 2**20


def test_classes_of_several_runs(run, tmp_path):
    truth = np.arange(100) % 5
    runs = [np.where(np.arange(100) < wrong, 9, truth) for wrong in (10, 20, 24)]
    score_classes(tmp_path / "x", truth, runs, system="gmm-ml", mixtures=2, set="test", seconds=3.0)
    value = json.loads((tmp_path / "x" / "score.json").read_text())
    assert value["runs"] == [10, 20, 24] and value["percent"] == 18 and value["metric"] == "err"
    assert "averages 3 runs" in run("compare.py", tmp_path / "x", tmp_path / "x", fails=True)

"""report.py on a made-up run, labelled synthetic: the four files, by reading them as others would."""

import csv
import json
import re
import runpy
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest

from margo.formats.plots import write_plots
from margo.formats.scores import read_score
from margo.formats.transcripts import write_transcripts
from margo.runtime import record
from margo.tasks.scoring import score_classes, score_transcripts

ROOT = Path(__file__).parents[2]
WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "zero", "oh"]
RATES = {"ml": {1: 0.05, 2: 0.03}, "mce": {1: 0.02, 2: 0.015}, "lme-gd": {1: 0.012, 2: 0.008}}
KEYS = {"system", "mixtures", "set", "metric", "percent", "errors", "total", "ci95", "ser", "seconds", "paper"}
STARTS = {"mce": "ml", "mmi": "ml", "lme-gd": "mce"}
VOID = {"meta", "img", "br"}


class Balance(HTMLParser):
    """Every element is closed, and nothing is fetched from elsewhere."""

    def __init__(self):
        super().__init__()
        self.open, self.outside = [], []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)
        self.outside += [value for key, value in attrs if key in ("src", "href") and not value.startswith("data:")]
        assert tag not in ("link", "iframe") and (tag != "script" or not attrs)  # scripts are in the page

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag


def make_run(exp, systems=RATES, synthetic=True, unit="word"):
    """A run's folders: data, models with learning curves, decodings with scores."""
    generator = np.random.default_rng(0)
    (exp / "data").mkdir(parents=True)
    (exp / "data" / "corpus.json").write_text(json.dumps({"corpus": "tidigits", "synthetic": synthetic}))
    for name, size in (("test", 150), ("train", 60)):
        texts = {f"s{n % 6}_{n:03d}": [WORDS[i] for i in generator.integers(0, 11, 1 + n % 7)] for n in range(size)}
        speakers = {utterance: utterance[:2] for utterance in texts}
        write_transcripts(exp / "data" / name / "text", texts)
        write_transcripts(exp / "data" / name / "utt2spk", {u: [s] for u, s in speakers.items()})
        for system, by_mixtures in systems.items():
            for mixtures, rate in by_mixtures.items():
                hypotheses = {
                    u: [WORDS[generator.integers(11)] if generator.random() < 2 * rate else w for w in words]
                    for u, words in texts.items()
                }
                score_transcripts(exp / "decode" / f"{system}_{mixtures}" / name, texts, hypotheses, system=system,
                                  mixtures=mixtures, set=name, speakers=speakers, unit=unit, seconds=4.25)  # fmt: skip
    for system, by_mixtures in systems.items():
        for mixtures in by_mixtures:
            folder = exp / f"{system}_{mixtures}"
            folder.mkdir()
            lines = [{"iteration": n, "objective": -60 + 8 * (1 - 0.7**n) + mixtures, "change": None if n == 1 else 0.1,
                      "train_error": 12 * 0.8**n, "dev_error": 6 + 9 * 0.8**n, "frames": 1000, "seconds": 0.1}
                     for n in range(1, 12)]  # fmt: skip
            (folder / "progress.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
            init = str(exp / f"{STARTS[system]}_{mixtures}") if system in STARTS else ""
            record.write(folder, f"train_{system}", ["--out", str(folder)], SimpleNamespace(init=init), {},
                         ["progress.jsonl"], 4.25, {"chosen": 7})  # fmt: skip
            place = exp / "decode" / folder.name
            record.write(place, "decode", [], SimpleNamespace(model=str(folder), out=str(place)), {},
                         ["test/score.json", "train/score.json"], 1.0, {})  # fmt: skip
    edges = np.linspace(-20, 60, 41)
    spiral = np.linspace(0, 1.25, 60)
    write_plots(exp / "lme-gd_1", [
        {"title": "margins of training tokens", "kind": "histogram", "x_label": "margin", "series": [
            {"name": f"epoch {n}", "edges": edges.tolist(),
             "counts": np.histogram(generator.normal(8 * n, 10, 900), edges)[0].tolist()} for n in (0, 1, 3)]},
        {"title": "decision regions", "kind": "scatter", "x_label": "x", "y_label": "y", "note": "a made-up example",
         "region": {"values": [[int(r * c > 300) for c in range(40)] for r in range(40)], "x": [-2, 2], "y": [-2, 2]},
         "series": [{"name": f"class {sign}", "x": (sign * spiral * np.cos(12 * spiral)).tolist(),
                     "y": (sign * spiral * np.sin(12 * spiral)).tolist()} for sign in (1, -1)]},
        {"title": "confusions", "kind": "heatmap", "rows": list("abc"), "columns": list("abc"), "x_label": "recognised",
         "y_label": "spoken", "values": [[9, 1, 0], [2, 8, 0], [0, 0, 10]]},
        {"title": "error against radius", "kind": "line", "x_log": True, "x_label": "r²/K", "y_label": "error %",
         "note": "One radius was left out.",
         "series": [{"name": "1 mix", "x": [0.001, 0.01, 0.1, 1.0], "y": [5.0, 3.0, 2.5, 6.0],
                     "sd": [0.1, 0.25, 1.4e-14, 0.0]}]},
        {"title": "picture", "kind": "image", "source": "data:image/png;base64,iVBORw0KGgo="},
    ])  # fmt: skip
    return exp


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("made") / "exp")


@pytest.fixture
def exp(made, tmp_path):
    """A run of its own for each test."""
    return Path(shutil.copytree(made, tmp_path / "exp"))


@pytest.fixture
def run(monkeypatch, capsys):
    def run(*arguments, fails=False):
        monkeypatch.setattr(sys, "argv", ["report.py", *map(str, arguments)])
        code = None
        try:
            runpy.run_path(str(ROOT / "steps" / "report.py"), run_name="__main__")
        except SystemExit as exit_:
            code = exit_.code
        captured = capsys.readouterr()
        said = captured.out + captured.err + (code if isinstance(code, str) else "")
        assert bool(code) == fails, said
        return said

    return run


def arguments(exp):
    return ("--exp", exp, "--recipe", "tidigits", "--paper", ROOT / "conf" / "paper" / "tidigits.toml")


def test_results_json_has_the_rows_of_the_contract(run, exp):
    run(*arguments(exp))
    value = json.loads((exp / "results.json").read_text())
    assert (value["recipe"], value["corpus"], value["synthetic"]) == ("tidigits", "tidigits", True)
    rows = value["rows"]
    assert len(rows) == 12
    assert [(r["system"], r["mixtures"]) for r in rows if r["set"] == "test"] == [
        (system, mixtures) for system in ("ml", "mce", "lme-gd") for mixtures in (1, 2)
    ]
    for row in rows:
        assert row.keys() >= KEYS
        held = read_score(exp / "decode" / f"{row['system']}_{row['mixtures']}" / row["set"])
        assert (row["percent"], row["errors"], row["ci95"]) == (held["percent"], held["errors"], held["ci95"])
        assert row["percent"] == pytest.approx(100 * row["errors"] / row["total"], abs=1e-3)
        assert row["seconds"] == 4.25
    first = rows[0]
    assert first["paper"] == {"percent": 4.55, "source": "[LJ07] Table V"}
    assert first["ser"]["paper"] == {"percent": 12.61, "source": "[LJ07] Table IV"}
    train = next(row for row in rows if row["set"] == "train" and row["system"] == "ml" and row["mixtures"] == 1)
    assert train["paper"] is None and train["ser"]["paper"]["percent"] == pytest.approx(12.79)


def test_terminal_and_markdown_show_the_figures_beside_the_papers(run, exp):
    said = run(*arguments(exp))
    assert f"report: {exp / 'report.html'}" in said and "SYNTHETIC" in said
    text = (exp / "RESULTS.md").read_text()
    assert "**Synthetic corpus.**" in text and "recipes/tidigits/run.sh" in text
    assert str(exp.parent) not in text
    rows = {(r["system"], r["mixtures"], r["set"]): r for r in json.loads((exp / "results.json").read_text())["rows"]}
    table = re.search(r"## Test set.*?\n\n(.*?)\n\n", text, re.DOTALL)[1].splitlines()
    head = [cell.strip() for cell in table[0].strip("|").split("|")]
    assert head == [
        "system", "mix", "WER %", "95 %", "errors", "paper", "SER %", "95 %", "paper SER", "vs ML", "p", "vs start",
        "p", "train s",
    ]  # fmt: skip
    for line in table[2:]:
        cells = dict(zip(head, (cell.strip() for cell in line.strip("|").split("|"))))
        row = rows[cells["system"], int(cells["mix"]), "test"]
        assert cells["WER %"] == f"{row['percent']:.2f}"
        assert cells["paper"] == f"{row['paper']['percent']:.2f}"
        assert cells["paper SER"] == f"{row['ser']['paper']['percent']:.2f}"
        assert cells["vs ML"] == ("" if row["system"] == "ml" else f"{row['versus']['relative']:+.0f} %")
        start = row.get("versus_start")
        assert cells["vs start"] == ("" if row["system"] == "ml" else f"{start['system']} {start['relative']:+.0f} %")
    assert len(table) == 8
    assert "- lme-gd: large-margin estimation" in text and "- mmi: " not in text
    drawn = re.search(r"## error against radius \(lme-gd_1\): error %\n\n(.*?)\n\n", text, re.DOTALL)[1].splitlines()
    assert [" ".join(line.split()) for line in drawn[::2]] == [
        "| r²/K | 0.001 | 0.01 | 0.1 | 1 |", "| 1 mix | 5 ± 0.1 | 3 ± 0.25 | 2.5 ± 0 | 6 ± 0 |"
    ]  # fmt: skip
    assert "6 ± 0 |\n\nOne radius was left out.\n" in text and "margins of training tokens (" not in text


def test_page_is_one_sound_file_with_every_plot(run, exp):
    run(*arguments(exp))
    page = (exp / "report.html").read_text()
    checker = Balance()
    checker.feed(page)
    assert not checker.open and not checker.outside
    assert 'class="banner"' in page
    drawings = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    for drawing in drawings:
        tree = ElementTree.fromstring(drawing)  # also that it is well-formed
        for element in tree.iter():
            for key in ("x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "width", "height"):
                assert -1 <= float(element.get(key, 0)) <= 1000
    # WER and SER for two sets; confusions; objective and two errors for three systems; four drawn plots and a picture
    assert len(drawings) == 4 + 1 + 9 + 4 and page.count("<img") == 1
    assert page.count('class="whisker') == 2 * 12
    assert page.count('class="paper') == 2 * 6 + 6  # WER and SER on test, SER on train


def test_the_same_run_gives_the_same_bytes(run, exp):
    names = ("results.json", "results.csv", "RESULTS.md", "report.html")
    both = []
    for _ in range(2):
        run(*arguments(exp))
        both.append([(exp / name).read_bytes() for name in names])
    assert both[0] == both[1]


def test_a_real_corpus_has_no_banner_and_needs_no_paper(run, tmp_path):
    exp = make_run(tmp_path / "exp", {"ml": {1: 0.1}}, synthetic=False)
    said = run("--exp", exp, "--recipe", "words")
    page, value = (exp / "report.html").read_text(), json.loads((exp / "results.json").read_text())
    assert 'class="banner"' not in page and "SYNTHETIC" not in said and value["synthetic"] is False
    assert all(row["paper"] is None for row in value["rows"])


def test_classifiers_of_several_runs_and_tasks(run, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "corpus.json").write_text('{"corpus": "spirals", "synthetic": true}')
    truth = np.arange(200) % 2
    generator = np.random.default_rng(0)
    for system, rate in (("gmm-ml", 0.2), ("gmm-mm", 0.1)):
        runs = [np.where(generator.random(200) < rate, 1 - truth, truth) for _ in range(3)]
        score_classes(tmp_path / system, truth, runs, system=system, mixtures=12, set="test")
        score_classes(tmp_path / system / "Ma", truth, runs[:1], system=system, mixtures=12, set="test",
                      extra={"task": "4 classes, Ma"})  # fmt: skip
    run("--exp", tmp_path, "--recipe", "spirals", "--paper", ROOT / "conf" / "paper" / "spirals.toml")
    rows = json.loads((tmp_path / "results.json").read_text())["rows"]
    assert [(row["system"], row.get("task", "")) for row in rows] == [
        ("gmm-ml", ""), ("gmm-mm", ""), ("gmm-ml", "4 classes, Ma"), ("gmm-mm", "4 classes, Ma"),
    ]  # fmt: skip
    assert rows[0]["percent"] == pytest.approx(np.mean(rows[0]["runs"]), abs=1e-4) and len(rows[0]["runs"]) == 3
    assert rows[0]["paper"]["percent"] == pytest.approx(19.95) and rows[2]["paper"] is None
    assert rows[3]["versus"]["system"] == "gmm-ml" and "versus" not in rows[1]


@pytest.mark.parametrize("synthetic", [False, True])
def test_a_papers_figures_on_a_corpus_do_not_stand_beside_a_synthetic_one(run, tmp_path, synthetic):
    """The embedded TIMIT has its name, and is not the paper's."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "corpus.json").write_text(json.dumps({"corpus": "timit", "synthetic": synthetic}))
    truth = np.arange(20) % 2
    score_classes(tmp_path / "ll", truth, [truth], system="hybrid-ll", mixtures=1, set="test", extra={"task": "phones"})
    run("--exp", tmp_path, "--recipe", "timit", "--paper", ROOT / "conf" / "paper" / "timit.toml")
    [row] = json.loads((tmp_path / "results.json").read_text())["rows"]
    assert row["paper"] == (None if synthetic else {"percent": 25.433, "source": "[R18] Table 1, TIMIT"})


def test_phones_are_called_phones(run, tmp_path):
    exp = make_run(tmp_path / "exp", {"ml": {1: 0.1}, "mmi": {1: 0.05}}, unit="phone")
    said = run("--exp", exp, "--recipe", "timit")
    text, page = (exp / "RESULTS.md").read_text(), (exp / "report.html").read_text()
    assert "Test set: phone and string error rates" in said
    assert "| PER %" in text and "| phones |" in text and "Phones are aligned" in text
    assert ">PER %<" in page and ">phones<" in page and "Phones are aligned" in page
    for shown in (said, text, page):
        assert not re.search(r"\bWER\b|\bword", shown, re.IGNORECASE)
    rows = json.loads((exp / "results.json").read_text())["rows"]
    assert {(row["metric"], row["unit"]) for row in rows} == {("wer", "phone")}


@pytest.mark.parametrize("length", [1, 3])
def test_the_protocol_says_what_was_done(run, tmp_path, length):
    """Nothing is aligned where classes are scored, and samples, not utterances, are compared."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "corpus.json").write_text('{"corpus": "x", "synthetic": false}')
    for system, wrong in (("gmm-ml", 30), ("gmm-mm", 10)):
        guess = np.where(np.arange(100) < wrong, 2, np.arange(100) % 2)
        score_classes(tmp_path / system, np.arange(100) % 2, [guess], system=system, mixtures=1, set="test")
    run("--exp", tmp_path, "--recipe", "x")
    said = protocol(tmp_path)
    assert said == (
        "Intervals hold 95 %: bootstrap over samples, seed 0. "
        "p compares which samples are wrong (McNemar's test) with maximum likelihood's and those of the model that a "
        "system started from, at as many mixtures."
    )
    assert said in (tmp_path / "report.html").read_text().replace("&#x27;", "'")

    references = {f"u{n:02d}": ["one"] * length for n in range(60)}
    for system, wrong in (("ml", 30), ("mce", 10)):
        guesses = {name: ["two"] * length if n < wrong else words for n, (name, words) in enumerate(references.items())}
        score_transcripts(tmp_path / system, references, guesses, system=system, mixtures=1, set="test")
    run("--exp", tmp_path, "--recipe", "x")
    test = "which utterances are wrong (McNemar's test)" if length == 1 else "errors per utterance (matched pairs)"
    said = protocol(tmp_path)
    assert said.startswith("Words are aligned with sclite's costs") and "; bootstrap over utterances" in said
    assert f"p compares {test} and which samples are wrong (McNemar's test) with" in said


def test_a_row_that_is_its_start_unchanged_says_so(run, exp):
    """Dev kept nothing of LME's training at 1 mixture: its errors are MCE's, and are not to be read as LME's own."""
    path = exp / "lme-gd_1" / record.NAME
    path.write_text(json.dumps(json.loads(path.read_text()) | {"chosen": 0}))
    shutil.rmtree(exp / "decode" / "lme-gd_1" / "test")
    shutil.copytree(exp / "decode" / "mce_1" / "test", exp / "decode" / "lme-gd_1" / "test")
    place = exp / "decode" / "lme-gd_1" / "test" / "score.json"
    place.write_text(json.dumps(json.loads(place.read_text()) | {"system": "lme-gd"}))
    said = run(*arguments(exp))
    rows = json.loads((exp / "results.json").read_text())["rows"]
    same, trained = (row for row in rows if (row["system"], row["set"]) == ("lme-gd", "test"))
    assert same["unchanged"] == "mce" and "versus_start" not in same and same["versus"]["system"] == "ml"
    assert trained["versus_start"]["system"] == "mce" and "unchanged" not in trained
    assert re.search(r"lme-gd +1 .*= mce", said) and not re.search(r"lme-gd +2 .*= mce", said)
    assert "| = mce " in (exp / "RESULTS.md").read_text() and ">= mce</td>" in (exp / "report.html").read_text()
    assert "the model is that of X" in protocol_lines(exp)
    assert ("lme-gd", "mce", "0") in {(line["system"], line["start"], line["vs_start"]) for line in lines_of_csv(exp)}


def test_the_weights_of_grammars_are_told_and_a_start_with_others_is_not_unchanged(run, exp):
    row = {"insertion_penalty": -20.0, "errors": 9, "wrong": 8}
    held = {"chosen_on": "dev", "words": 300, "strings": 90, "before": row, "tried": [row] * 14,
            "after": {"insertion_penalty": -45.0, "errors": 7, "wrong": 6}}  # fmt: skip
    for name in ("mce_2", "ml_1"):
        (exp / name / "grammar.json").write_text(json.dumps(held))
    path = exp / "mce_2" / record.NAME
    path.write_text(json.dumps(json.loads(path.read_text()) | {"chosen": 0, "unchanged": False}))
    run(*arguments(exp))
    text = (exp / "RESULTS.md").read_text()
    lines = text.partition("## Grammar weights")[2].split("## ")[0].splitlines()
    assert [line.split()[1:12] for line in lines if "-45.0" in line] == [
        [name, "|", m, "|", "-20.0", "|", "-45.0", "|", "9", "->", "7"] for name, m in (("ml", "1"), ("mce", "2"))
    ]
    assert "<h2>Grammar weights</h2>" in (exp / "report.html").read_text() and "= ml" not in text
    (exp / "ml_1" / "grammar.json").write_text("{}")
    assert "grammar.json: not weights of a grammar" in run(*arguments(exp), fails=True)


def test_the_start_is_what_the_records_say_and_else_what_the_table_says(run, exp, tmp_path):
    """LME that was started from ML is compared with ML; a pooled decoding, whose records name no model, with MCE."""
    path = exp / "lme-gd_1" / record.NAME
    held = json.loads(path.read_text())
    path.write_text(json.dumps(held | {"options": {"init": "/elsewhere/ml_1"}}))
    (exp / "decode" / "lme-gd_2" / record.NAME).unlink()
    moved = exp.rename(tmp_path / "moved")  # records still name the old place
    run(*arguments(moved))
    rows = json.loads((moved / "results.json").read_text())["rows"]
    starts = {(row["system"], row["mixtures"]): row["versus_start"]["system"] for row in rows if "versus_start" in row}
    assert starts == {("mce", 1): "ml", ("mce", 2): "ml", ("lme-gd", 1): "ml", ("lme-gd", 2): "mce"}
    for row in rows:
        if row.get("versus_start", {}).get("system") == "ml":
            assert row["versus_start"] == row["versus"]


def test_what_was_scored_before_training_is_the_start(run, tmp_path):
    """A kernel is made of an ML model, but its training starts from the kernel untrained."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "corpus.json").write_text('{"corpus": "x", "synthetic": false}')
    folder = tmp_path / "kernel" / "svm-llr_1"
    folder.mkdir(parents=True)
    record.write(folder, "train_word_kernel", [], SimpleNamespace(init="ml_1"), {}, [], 1.0, {})
    for system, wrong in (("ml", 30), ("svm-llr-init", 20), ("svm-llr", 10)):
        guess = np.where(np.arange(100) < wrong, 2, np.arange(100) % 2)
        place = tmp_path / system
        score_classes(place, np.arange(100) % 2, [guess], system=system, mixtures=1, set="test")
        if system != "ml":
            options = SimpleNamespace(model=str(folder), out=str(place))
            record.write(place, "test_word_kernel", [], options, {}, ["score.json"], 1.0, {})
    run("--exp", tmp_path, "--recipe", "x")
    rows = json.loads((tmp_path / "results.json").read_text())["rows"]
    starts = {row["system"]: row["versus_start"]["system"] for row in rows if "versus_start" in row}
    assert starts == {"svm-llr-init": "ml", "svm-llr": "svm-llr-init"}


def test_a_start_with_other_mixtures_is_none(run, exp):
    for system in ("ml", "mce"):
        path = exp / f"{system}_2" / record.NAME
        path.write_text(json.dumps(json.loads(path.read_text()) | {"options": {"init": str(exp / "ml_1")}}))
    run(*arguments(exp))
    rows = json.loads((exp / "results.json").read_text())["rows"]
    compared = {(row["system"], row["mixtures"]) for row in rows if "versus_start" in row}
    assert compared == {("mce", 1), ("lme-gd", 1), ("lme-gd", 2)}


def lines_of_csv(exp):
    return list(csv.DictReader((exp / "results.csv").read_text().splitlines()))


def test_durations_of_the_largest_alignment_are_shown(run, exp):
    for mixtures in (2, 10):
        folder = exp / "ali" / f"ml_{mixtures}"
        folder.mkdir(parents=True)
        words = [{"word": "oh", "tokens": 10 * mixtures, "median_ms": 211.7, "at_minimum": 0.0312}]
        (folder / "durations.json").write_text(json.dumps({"words": words}))
    run(*arguments(exp))
    text, page = (exp / "RESULTS.md").read_text(), (exp / "report.html").read_text()
    assert "## Durations of words (ali/ml_10)" in text and re.search(r"\| oh +\| 100 +\| 212 +\| 3.1 % ", text)
    assert "Durations of words (ali/ml_10)" in page and "ali/ml_2" not in page
    (folder / "durations.json").write_text('{"words": [{"word": "oh"}]}')
    assert "not durations of words" in run(*arguments(exp), fails=True)


def test_best_radii_are_a_table_by_start_and_mixtures(run, exp):
    """[LJ07] Table II; a sweep has the sets that it measured, and says which of them chose."""
    for start, radius, sets in (("mce_10", 0.02, ("train", "test")), ("mce_2", 0.1, ("train", "dev", "test"))):
        folder = exp / "sweep" / start
        folder.mkdir(parents=True)
        best = {"radius": radius, "epoch": 3, "accuracy": dict(zip(sets, (99.5, 94.25, 93.125)))}
        swept = {"chosen_on": "dev" if "dev" in sets else "train", "start": dict.fromkeys(sets, 90.0), "best": best,
                 "curves": [{"radius": each} for each in (0.004, radius)]}  # fmt: skip
        (folder / "sweep.json").write_text(json.dumps(swept))
    run(*arguments(exp))
    text, page = (exp / "RESULTS.md").read_text(), (exp / "report.html").read_text()
    rows = re.search(r"## Radius of LME's ball\n\n(.*?)\n\n", text, re.DOTALL)[1].splitlines()
    head, first, second = [[cell.strip() for cell in row.strip("|").split("|")] for row in (rows[0], *rows[2:])]
    assert head == ["start", "mix", "best r²/K", "epoch", "train %", "dev %", "test %", "chosen on", "tried"]
    accuracies = [f"90.00 -> {at}" for at in ("99.50", "94.25", "93.12")]
    assert first == ["mce", "2", "0.1", "3", *accuracies, "dev", "0.004 0.1"]
    assert second == ["mce", "10", "0.02", "3", "90.00 -> 99.50", "", "90.00 -> 94.25", "train", "0.004 0.02"]
    assert "Radius of LME&#x27;s ball" in page and ">0.004 0.02</td>" in page
    (folder / "sweep.json").write_text("{}")
    assert "not accuracies by radius: 4 faults\n  no chosen_on" in run(*arguments(exp), fails=True)


def test_a_run_without_a_dev_set_says_what_chose_instead(run, exp):
    run(*arguments(exp))
    assert "development set" not in protocol_lines(exp)
    for folder in exp.glob("*_[12]"):
        held = json.loads((folder / record.NAME).read_text())
        held |= {"options": held["options"] | {"dev": None}, "chosen": 0 if folder.name == "mce_1" else 3}
        (folder / record.NAME).write_text(json.dumps(held))
    run(*arguments(exp))
    for said in (protocol_lines(exp), (exp / "report.html").read_text()):
        assert "There is no development set: the training data" in said and "folds" not in said
        assert "no iteration was better on the training data, so" in said
    weights = {"insertion_penalty": -3.0, "errors": 4, "wrong": 3}
    held = {"chosen_on": "5 folds of train", "words": 90, "strings": 60, "before": weights, "after": weights}
    (exp / "ml_1" / "grammar.json").write_text(json.dumps({**held, "tried": [weights]}))
    run(*arguments(exp))
    assert "; folds of the training speakers choose the weights of the grammar once" in protocol_lines(exp)
    held = json.loads((exp / "mce_1" / record.NAME).read_text())
    (exp / "mce_1" / record.NAME).write_text(json.dumps(held | {"options": held["options"] | {"dev": "mfcc/dev"}}))
    run(*arguments(exp))  # ml, say the recipe's aligner, has none
    assert "development set" not in protocol_lines(exp) and "was better on dev" in protocol_lines(exp)


def protocol_lines(exp):
    return (exp / "RESULTS.md").read_text().partition("## Protocol")[2]


def protocol(exp):
    return re.search(r"## Protocol\n\n(.*?)\n", (exp / "RESULTS.md").read_text())[1]


def test_draws_are_lines_of_one_plot(run, exp):
    for draw in "01":
        shutil.copytree(exp / "ml_1", exp / draw / "ml_1")
    run(*arguments(exp))
    page = (exp / "report.html").read_text()
    assert page.count("ml: objective</h3>") == 1 and "0/ml" not in page.partition("Made by")[0]
    assert "</i>1 mix<" in page and "</i>1 mix, draw 0<" in page and "</i>1 mix, draw 1<" in page


def test_versions_are_those_of_what_calculates(run, exp):
    run(*arguments(exp))
    made = re.search(r"\nMade with (.*)\.\n", (exp / "RESULTS.md").read_text())[1]
    names = [part.split()[0] for part in made.split(", ")]
    assert names[:5] == ["margo-speech", "Python", "numpy", "scipy", "numba"] and "scikit-learn" not in names
    path = exp / "ml_1" / record.NAME
    held = json.loads(path.read_text())
    path.write_text(json.dumps(held | {"commit": "0" * 40, "packages": held["packages"] | {"numpy": "0.1"}}))
    run(*arguments(exp))
    made = re.search(r"\nMade with (.*)\.\n", (exp / "RESULTS.md").read_text())[1]
    assert f"numpy 0.1, {held['packages']['numpy']}, scipy" in made and "commit 00000000" in made


def test_the_command_can_be_typed_again():
    given = ["--mix", "1 2 4", "--label", 'a"b $x', "--exp", "/tmp/a b", "--corpus", ""]
    script = 'source steps/speech.sh; options+=(label); parse_options "$@"; echo "$invocation"; trap - EXIT'
    made = subprocess.run(["bash", "-c", script, "recipes/tidigits/run.sh", *given], cwd=ROOT, capture_output=True,
                          text=True, check=True).stdout.strip()  # fmt: skip
    assert made.startswith('recipes/tidigits/run.sh --mix "1 2 4" --label ')
    back = subprocess.run(["bash", "-c", f"printf '%s\\n' {made}"], capture_output=True, text=True, check=True).stdout
    assert back.splitlines()[1:] == given


def test_what_is_lacking_is_named(run, tmp_path):
    assert "--stage 0" in run("--exp", tmp_path, "--recipe", "x", fails=True)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "corpus.json").write_text('{"corpus": "x", "synthetic": "no"}')
    assert "synthetic is 'no', expected true or false" in run("--exp", tmp_path, "--recipe", "x", fails=True)
    (tmp_path / "data" / "corpus.json").write_text('{"corpus": "x", "synthetic": false}')
    assert "--stage 7" in run("--exp", tmp_path, "--recipe", "x", fails=True)
    for folder in ("a", "b"):
        score_classes(tmp_path / folder, [1, 2], [[1, 1]], system="knn", mixtures=1, set="test")
    assert "both score knn_1 test" in run("--exp", tmp_path, "--recipe", "x", fails=True)

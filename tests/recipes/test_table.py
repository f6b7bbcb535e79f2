"""Every recipe, small: run as table.toml says, it leaves the files and the error rates that stand there."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from margo.formats.models import read_model

TABLE = tomllib.loads((Path(__file__).parent / "table.toml").read_text())
WHOLE = ("spirals", "pixels", "digits")  # recipes whose small run makes every section of their RESULTS.md
RECIPES = sorted(path.parent.name for path in Path(__file__).parents[2].glob("recipes/*/run.sh"))


def without_row(recipes, table) -> list[str]:
    """What is in one and not in the other."""
    return sorted({*recipes} ^ {*table})


def test_every_recipe_has_a_row_and_every_row_a_recipe(root):
    assert without_row(RECIPES, TABLE) == []
    assert [path.name for path in sorted((root / "recipes").iterdir()) if path.is_dir()] == RECIPES


def test_a_recipe_without_a_row_is_seen():
    assert without_row([*RECIPES, "new"], TABLE) == ["new"]


def sections(text: str) -> set[str]:
    """The kinds of sections of a RESULTS file: their titles, without the folders and models that they are of."""
    return {re.sub(r" \(.*|, .*", "", title) for title in re.findall("^## (.*)", text, re.M)}


def test_a_section_that_is_not_there_is_seen():
    text = "## Test set: classification error (%)\n\n## Error by ridge (ridge/figure_1): error (%)\n"
    assert sections(text) == {"Test set: classification error", "Error by ridge"}
    assert sections(text) == sections(text.replace("figure_1", "figure_4")) != sections(text.partition("\n\n")[0])


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(TABLE))
def test_recipe(root, tmp_path, name):
    row, exp = TABLE[name], tmp_path / "exp"
    flags = [flag.replace("DATA", str(tmp_path / "data")).replace("ROOT", str(root)) for flag in row["flags"]]
    if "embedded" in row:
        corpus = tmp_path / "corpus"
        program(root, "mini_corpus", row["embedded"], "--out", corpus, "--size", "tiny")
        if "data" in row:
            program(root, row["data"], "--corpus", corpus, "--partial", "true", "--out", tmp_path / "data")
        else:
            flags += ["--corpus", str(corpus)]
    said = ""
    for stages in row.get("stages", [[]]):
        chosen = [word for pair in zip(("--stage", "--stop-stage"), map(str, stages)) for word in pair]
        done = subprocess.run([root / "recipes" / name / "run.sh", "--exp", exp, *flags, *chosen],
                              capture_output=True, text=True)  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        said += done.stdout
    assert f"report: {exp / 'report.html'}" in said
    missing = [file for file in ("RESULTS.md", "report.html", *row["files"]) if not (exp / file).exists()]
    assert missing == []
    results = json.loads((exp / "results.json").read_text())
    assert results["recipe"] == name
    rows = {f"{each['system']}_{each['mixtures']} {each['set']}": each for each in results["rows"]}
    assert row["bounds"].keys() <= rows.keys()
    percents = {key: rows[key]["percent"] for key in row["bounds"]}
    assert {key: at for key, at in percents.items() if not row["bounds"][key][0] <= at <= row["bounds"][key][1]} == {}
    CHECKS.get(name, lambda exp, rows: None)(exp, rows)
    if name in WHOLE:
        made, held = (sections((folder / "RESULTS.md").read_text()) for folder in (exp, root / "recipes" / name))
        assert made == held, made ^ held


def program(root, name, *arguments):
    command = [sys.executable, root / "local" / f"{name}.py", *arguments]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# -- what some recipes have to show beyond that ------------------------------------------------------------------------
def check_spirals(exp, rows):
    first, others = rows["gmm-ml_12 test"], (rows["gmm-cl_12 test"], rows["gmm-mm_12 test"])
    assert len(first["runs"]) == 3 and first["total"] == 3 * 40000
    assert all(other["percent"] <= first["percent"] - 3.5 for other in others)
    assert "Decision regions of" in (exp / "report.html").read_text()


def check_pixels(exp, rows):
    """Both criteria above maximum likelihood, with all bands and with a third of them missing."""
    assert max(rows["gmm-cl_1 test"]["percent"], rows["gmm-mm_1 test"]["percent"]) < rows["gmm-ml_1 test"]["percent"]
    curves = json.loads((exp / "missing/missing.json").read_text())["curves"]
    error = {name: points[3]["error"] for name, points in curves.items()}
    assert curves["svm-rbf"][3]["missing"] == 0.3 and error["gmm-mm_1"] <= error["gmm-ml_1"]
    text = (exp / "RESULTS.md").read_text()
    assert "Indian Pines: other data than the Washington, D.C., Mall of [PW10]" in text and "oats (20 pixels)" in text


def check_digits(exp, rows):
    """Files that plots and tables are made of."""
    assert json.loads((exp / "mm-smo_1/progress.jsonl").read_text().splitlines()[-1])["gap"] <= 0.008
    curves = json.loads((exp / "missing/missing.json").read_text())["curves"]
    assert set(curves) == {"hybrid-ll_1", "lambda_0", "lambda_0.1", "lambda_0.5", "lambda_0.9", "R = 5", "R = 25"}
    # [R18] Figure 3a: margins cost nothing where most pixels are missing; a low-rank precision is 10 to 13 % above.
    gaps = {name: {point["missing"]: point["error"] for point in points} for name, points in curves.items()}
    assert all(gaps["lambda_0.5"][part] <= gaps["hybrid-ll_1"][part] + 1.5 for part in (0.6, 0.8))
    few = json.loads((exp / "labels/labels.json").read_text())[0]
    assert sum(few["semi-supervised (ll-lm)"]) < sum(few["supervised (ll-lm)"])
    ridges = json.loads((exp / "ridge/figure_1/settings.json").read_text())
    assert {(row["line"], row["value"]) for row in ridges} >= {("gmm-ml", 1.0), ("mm-smo", 0.1), ("mm-grad", 1.0)}
    # Figure 1 of [R18]: the likelihood grows with its part in the criterion.
    traded = json.loads((exp / "tradeoff/settings.json").read_text())
    likely = [row["likelihood, train"] for row in traded]
    assert [row["value"] for row in traded] == [0, 0.1, 0.5, 0.9] and likely[0] < likely[-1]
    assert "Samples of pixels/lambda_0.5" in (exp / "report.html").read_text()
    report = (exp / "report.html").read_text()
    assert "Error with missing features" in report and "Error with few labels" in report


def check_timit(exp, rows):
    """Data to report, from the hand labels; MMI corrects errors of maximum likelihood on the training data."""
    assert set(rows) == {f"{system}_1 {of}" for system in ("ml", "mmi") for of in ("train", "dev", "test")}
    assert rows["mmi_1 train"]["errors"] < rows["ml_1 train"]["errors"]
    assert rows["ml_1 test"]["metric"] == "wer"

    # 39 phones are scored, of 48 that are recognised.
    heard = {phone for line in (exp / "decode/ml_1/test/hyp").read_text().splitlines() for phone in line.split()[1:]}
    scored = (exp / "decode/ml_1/test/score/confusion.csv").read_text().splitlines()[0].split(",")[1:]
    assert heard & {"cl", "vcl", "ix", "ao"} and not {"cl", "vcl", "ix", "ao", "el", "zh", "epi"} & set(scored)

    check_weights(exp, "ml_1", "mmi_1")
    assert json.loads((exp / "ml_1/step.json").read_text())["weights"]["scale"] > 1

    boundaries = json.loads((exp / "boundaries/ml_1/boundaries.json").read_text())
    assert boundaries["percent_within_ms"]["20"] > 60 and not boundaries["missing"]
    report = (exp / "report.html").read_text()
    assert "Confusions, mmi_1 on test" in report and "Boundaries of ml_1" in report


def check_weights(exp, *models):
    """Penalties (and a bigram's scale) chosen on dev are in the model, and make there what decoding it makes."""
    for name in models:
        record, held = (json.loads((exp / name / file).read_text()) for file in ("step.json", "grammar.json"))
        table = read_model(exp / name / "model.npz").meta["grammar"]
        assert "grammar.json" in record["outputs"] and record["weights"].items() <= table.items()
        rows = [each["errors"] + each["wrong"] for each in held["tried"]]
        assert held["after"]["errors"] + held["after"]["wrong"] == min(rows) and len(rows) > 11
        dev = json.loads((exp / f"decode/{name}/dev/score.json").read_text())
        if dev["unit"] == "word":  # scored as it is recognised
            assert (held["after"]["errors"], held["after"]["wrong"]) == (dev["errors"], dev["ser"]["errors"])
    assert "## Grammar weights" in (exp / "RESULTS.md").read_text()


def check_tidigits(exp, rows):
    check_weights(exp, "ml_1")
    assert json.loads((exp / "mm_1/step.json").read_text())["options"]["iterations"] == 18  # of --conf


def table_of(exp, title) -> list[dict[str, str]]:
    """The rows of a table of RESULTS.md, its columns' titles as keys."""
    after = (exp / "RESULTS.md").read_text().partition(title)[2]
    lines = after.partition("\n\n")[2].partition("\n\n")[0].splitlines()
    titles, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    return [dict(zip(titles, row, strict=True)) for row in rows]


MARGINS = "Objective, margin, support vectors and steps"


def check_gaussians(exp, rows):
    """Table 2 with MMIE; Tables 3 and 4: W, margin, support vectors and steps, the paper's in brackets; Figure 4."""
    assert rows["gmm-cl_1 test"]["paper"]["percent"] == 11.3 and rows["gmm-cl_1 test"]["percent"] < 20
    llr, block, constant = table_of(exp, MARGINS)
    assert [row["system"] for row in (llr, block, constant)] == ["svm-llr", "svm-llr-mean-block", "svm-llr-constant"]
    assert llr["W before"].endswith("(477.1)") and llr["W after"].endswith("(265.8)")
    assert float(llr["W after"].split()[0]) < float(llr["W before"].split()[0])
    assert block["margin before"].endswith("(1.22)")
    before, after = map(int, llr["support vectors"].split(" -> "))
    assert 0 < after < before <= 1000
    assert int(llr["steps"].split()[0]) == len((exp / "kernel/svm-llr_1/pairs.jsonl").read_text().splitlines()) - 1
    backoff, fixed = table_of(exp, "W by iteration, constant steps and back-off")
    assert int(backoff["rises"]) == 0 < int(fixed["rises"]) and float(backoff["60"]) < float(backoff["0"])


def check_deterding(exp, rows):
    """Table 5 beside the paper's; objective, margin, support vectors and steps, means over the 55 pairs; the systems
    that left-out training speakers choose, of what --conf has them try."""
    assert (rows["gmm-ml_1 test"]["paper"]["percent"], rows["svm-llr_1 test"]["paper"]["percent"]) == (55.8, 47.4)
    assert rows["gmm-ml_1 test"]["percent"] == pytest.approx(55.8, abs=0.1) and rows["svm-llr_1 test"]["percent"] < 46
    (row,) = table_of(exp, MARGINS)
    lines = [json.loads(line) for line in (exp / "kernel/svm-llr_1/pairs.jsonl").read_text().splitlines()]
    first = [line for line in lines if line["iteration"] == 0]
    mean = sum(line["objective"] for line in first) / 55
    assert len(first) == 55 and float(row["W before"]) == pytest.approx(mean, abs=0.1)
    assert int(row["steps"]) == round(len(lines) / 55 - 1) and float(row["margin after"]) > float(row["margin before"])
    for name in ("chosen", "chosen_centred"):
        tried = [line.split(",") for line in (exp / f"score/{name}/tried.csv").read_text().splitlines()]
        errors, taken = [int(line[-2]) for line in tried[1:]], [int(line[-1]) for line in tried[1:]]
        assert tried[0][-2:] == ["errors", "chosen"] and errors == sorted(errors) and len(errors) == 4
        assert sum(taken) in (1, 2, 4) and taken == sorted(taken, reverse=True)  # the best of them vote
        choice = json.loads((exp / f"score/{name}/choice.json").read_text())["choice"]
        # errors of the training set's samples: the choice has seen no others
        assert re.match(rf"vote of the best {sum(taken)} of 4 candidates, [0-9]+ errors of 528 ", choice)
        assert f": {choice}" in (exp / "RESULTS.md").read_text()
    assert {f"svm-ll-{scheme}_1 test" for scheme in ("pairs", "rest", "codes", "joint", "each")} <= rows.keys()
    assert [row["machine"] for row in table_of(exp, "All-in-one machines")] == ["joint", "each"]


def check_isolet(exp, rows):
    """Every pair's own tokens before and after training, and every way from machines to words."""
    pairs = table_of(exp, "each pair's own test tokens")
    assert len(pairs) == 36 and pairs[0]["pair"] == "B C" and float(pairs[0]["W after"]) < float(pairs[0]["W before"])
    assert {f"svm-ll-mean-{scheme}_1 test" for scheme in ("pairs", "rest", "codes", "joint", "each")} <= rows.keys()


def check_spelling(exp, rows):
    """What is rescored is what the largest model recognises; the pair has its row in the tables of pairs, one a
    score-space and number of mixtures, and every way from machines to words its own."""
    places = (exp / "score/rescored/ml_2/test/score.json", exp / "decode/ml_2/test/score.json")
    ours, decoded = (json.loads(place.read_text())["errors"] for place in places)
    assert ours == decoded
    text = (exp / "RESULTS.md").read_text()
    assert text.count("| nine one |") == 4 and "All-in-one machines, confusable letters" in text
    for scheme in ("pairs", "rest", "codes", "joint", "each"):
        score = json.loads((exp / f"score/eset/schemes_1/svm-ll-mean-{scheme}_1/test/score.json").read_text())
        assert score["task"] == "confusable letters" and 0 <= score["percent"] <= 60


CHECKS = {"tidigits": check_tidigits, "spirals": check_spirals, "digits": check_digits, "pixels": check_pixels,
          "timit": check_timit, "gaussians": check_gaussians, "deterding": check_deterding, "isolet": check_isolet,
          "spelling": check_spelling}  # fmt: skip

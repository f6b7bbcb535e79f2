"""One list of columns, three renderings: what one shows, the others show."""

import csv
import re

import pytest

from margo.formats.systems import read_systems
from margo.report import columns
from margo.report.collect import Report
from margo.report.page import page
from margo.report.text import console, markdown

PAPER = {"percent": 2.5, "source": "[LJ07] Table V"}


def row(system, mixtures=1, errors=10, **more):
    rate = {"percent": errors / 10, "errors": errors, "total": 1000, "ci95": [errors / 20, errors / 5]}
    ser = {"percent": errors / 4, "errors": errors, "total": 400, "ci95": [errors / 8, errors / 2], "paper": PAPER}
    base = {"system": system, "mixtures": mixtures, "set": "test", "metric": "wer", **rate, "ser": ser}
    return {**base, "seconds": 4.25, "paper": PAPER, **more}


def versus(system, relative, p):
    return {"system": system, "relative": relative, "p": p, "test": "matched_pairs"}


ROWS = [
    row("ml", errors=20),
    row("ml", mixtures=2, errors=18, paper=None),
    row("mce", errors=11, versus=versus("ml", -45.0, 0.0002), versus_start=versus("ml", -45.0, 0.0002)),
    row("lme-sdp", errors=12, versus=versus("ml", -40.0, 0.01), versus_start=versus("mce", 9.09, 0.04)),
    row("lme-gd", errors=11, versus=versus("ml", -45.0, 0.0002), unchanged="mce"),
    row("hers", errors=30, versus=versus("ml", 50.0, 0.4), runs=[3.0, 3.1]),
]


def report(rows, weights=()):
    return Report(
        recipe="tidigits", corpus="tidigits", synthetic=False, rows=rows, intervals=[], choices={}, sizes={}, curves={},
        plots=[], steps=[], command="", paper=None, systems=read_systems(), weights=list(weights), sweeps=[],
        searches=[], pooled=[], places={}, durations=None,
    )  # fmt: skip


def markdown_cells(rows):
    lines = re.search(r"## Test set.*?\n\n(.*?)\n\n", markdown(report(rows)), re.DOTALL)[1].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in (lines[0], *lines[2:])]


def page_cells(rows):
    table = re.search(r"<table>(.*?)</table>", page(report(rows)), re.DOTALL)[1]
    lines = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", line) for line in re.findall(r"<tr.*?</tr>", table)]
    return [[cell.replace("&lt;", "<") for cell in line] for line in lines]


def csv_lines(rows):
    return list(csv.DictReader(columns.results_csv(rows).splitlines()))


def test_text_and_page_show_the_same_cells():
    assert markdown_cells(ROWS) == page_cells(ROWS) == columns.table(ROWS)
    assert columns.table(ROWS)[0] == [
        "system", "mix", "WER %", "95 %", "errors", "paper", "SER %", "95 %", "paper SER", "vs ML", "p", "vs start",
        "p", "train s",
    ]  # fmt: skip
    shown = {(line[0], line[1]): line[9:13] for line in columns.table(ROWS)[1:]}
    assert shown["ml", "1"] == ["", "", "", ""]
    assert shown["mce", "1"] == ["-45 %", "< 0.001", "ml -45 %", "< 0.001"]
    assert shown["lme-sdp", "1"] == ["-40 %", "0.010", "mce +9 %", "0.040"]
    assert shown["lme-gd", "1"] == ["-45 %", "< 0.001", "= mce", ""]


def test_the_csv_has_every_row_with_values_to_calculate_with():
    for line, held in zip(csv_lines(ROWS), ROWS, strict=True):
        assert (line["system"], int(line["mixtures"]), line["set"]) == (held["system"], held["mixtures"], held["set"])
        assert [float(line[key]) for key in ("percent", "low", "high")] == [held["percent"], *held["ci95"]]
        assert float(line["ser"]) == held["ser"]["percent"] and int(line["total"]) == held["total"]
        assert line["vs_ml_p"] == str(held["versus"]["p"] if "versus" in held else "")
    starts = [(line["start"], line["vs_start"], line["vs_start_p"]) for line in csv_lines(ROWS)]
    assert starts[2:5] == [("ml", "-45.0", "0.0002"), ("mce", "9.09", "0.04"), ("mce", "0", "")]


def test_a_new_column_is_one_entry(monkeypatch):
    new = columns.Column("share", "wrong", lambda row: row["errors"] / row["total"])
    monkeypatch.setattr(columns, "COLUMNS", (*columns.COLUMNS, new))
    shares = [str(held["errors"] / held["total"]) for held in ROWS]
    assert [line["share"] for line in csv_lines(ROWS)] == shares
    for cells in (markdown_cells(ROWS), page_cells(ROWS)):
        assert [line[-1] for line in cells] == ["wrong", *shares]
    assert all(share in console(report(ROWS)) for share in shares)


def test_columns_that_nothing_fills_are_left_out():
    bare = [{**held, "paper": None, "ser": None, "seconds": None} for held in ROWS[:2]]
    assert columns.table(bare)[0] == ["system", "mix", "WER %", "95 %", "errors"]
    assert columns.table([{**bare[0], "unit": "phone"}])[0][2] == "PER %"
    assert csv_lines(bare)[0].keys() == csv_lines(ROWS)[0].keys()


@pytest.mark.parametrize(
    "cell, kind", [("ml -45 %", "n good"), ("mce +9 %", "n bad"), ("+50 %", "n"), ("1.10", "n best")]
)
def test_the_page_marks_what_is_better_worse_and_best(cell, kind):
    assert re.search(f'<td class="{kind}"[^>]*>{re.escape(cell)}</td>', page(report(ROWS)))


def test_the_page_tells_more_where_it_is_pointed_at():
    text = page(report(ROWS))
    assert '<td class="n" title="[LJ07] Table V">2.50</td>' in text
    assert 'title="3.0, 3.1">3.00 (mean of 2)</td>' in text


def test_the_glossary_tells_of_the_systems_shown():
    text, html = markdown(report(ROWS)), page(report(ROWS))
    for name in ("ml", "mce", "lme-sdp", "lme-gd"):
        what = read_systems().rows[name].what
        assert f"- {name}: {what}." in text and f"<dt>{name}</dt>" in html
    assert "- mmi:" not in text and "- hers:" not in text


def test_the_weights_of_grammars_are_a_table_of_their_own():
    before, after = {"errors": 153, "wrong": 115}, {"errors": 143, "wrong": 106}
    loop = {"system": "ml", "mixtures": 1, "chosen_on": "dev", "words": 3152, "strings": 800, "tried": 15,
            "before": {"insertion_penalty": 0.0, **before}, "after": {"insertion_penalty": -45.0, **after}}  # fmt: skip
    head, cells = columns.table([loop], columns.WEIGHTS)
    assert head == ["system", "mix", "penalty before", "penalty", "word errors", "string errors", "chosen on", "tried"]
    assert cells == ["ml", "1", "0.0", "-45.0", "153 -> 143 / 3152", "115 -> 106 / 800", "dev", "15"]
    bigram = {**loop, "before": {**loop["before"], "scale": 1.0}, "after": {**loop["after"], "scale": 5.66}}
    assert columns.table([bigram], columns.WEIGHTS)[0][4:6] == ["scale before", "scale"]
    for text in (markdown(report(ROWS, [loop])), page(report(ROWS, [loop]))):
        assert "Grammar weights" in text and all(cell.replace(">", "&gt;") in text or cell in text for cell in cells)
        assert "Grammar weights" not in markdown(report(ROWS)) + page(report(ROWS))


def test_tables_that_steps_make_are_in_both_renderings():
    shown = report(ROWS)
    cells = {"columns": ["C", "W"], "cells": [["1", "263.6"]]}
    made = {"title": "Margins", "kind": "table", **cells, "note": "As 4."}
    shown.plots.append(("kernel", made))
    assert "## Margins\n\n| C | W     |\n|---|-------|\n| 1 | 263.6 |\n\nAs 4." in markdown(shown)
    assert "<h2>Margins</h2>" in page(shown) and "<h2>Plots</h2>" not in page(shown)

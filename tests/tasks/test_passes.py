"""What alignments tell of durations and of boundaries."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from margo.errors import MargoError
from margo.formats.boundary_table import read_boundaries, write_boundaries
from margo.formats.plots import write_plots
from margo.model.hmm import Unit, flat_start, left_to_right, whole_words
from margo.score.boundaries import Correction
from margo.tasks.labels import boundary_report, errors_of_alignment, stated_deviations
from margo.tasks.passes import Aligned, boundary_rows, durations, row_times, times_of, unit_kinds


def test_durations_by_word():
    hmms = flat_start(whole_words("ab"), 4, np.zeros(1), np.ones(1))
    done = [
        Aligned("u", 0.0, np.zeros(20, np.int32), (("a", 0, 4, 1.0), ("b", 4, 14, 1.0), ("a", 14, 20, 1.0)), ()),
        Aligned("v", 0.0, np.zeros(9, np.int32), (("a", 0, 9, 1.0),), ()),
    ]
    assert durations(hmms, {}, done) == [
        {"word": "a", "tokens": 3, "median_ms": 60.0, "at_minimum": 0.3333},
        {"word": "b", "tokens": 1, "median_ms": 100.0, "at_minimum": 0.0},
    ]


def test_the_shortest_path_through_a_word():
    hmms = flat_start(whole_words("ab"), 5, np.zeros(1), np.ones(1))
    assert hmms.least_frames("a") == 5
    skipping = [Unit(unit.name, unit.states, left_to_right(5, skip=0.1)) for unit in hmms.units]
    skipping = replace(hmms, units=tuple(skipping), lexicon={"ab": ("a", "b"), "b": ("b",)})
    assert skipping.least_frames("b") == 3 and skipping.least_frames("ab") == 6  # 1 3 5 and out


FINE = {"shift_ms": 5.0, "window_ms": 15.0}
PLACED = Aligned("u", 0.0, np.zeros(40, np.int32), (("w", 0, 20, 1.0), ("v", 30, 40, 1.0)),
                 (("x-a+b", 0, 12, 0.9), ("b", 12, 20, 0.8), ("sil", 20, 30, 0.7), ("c", 30, 40, 0.6)),
                 np.array([0.0, 11.5, 20.25, 29.0]), np.array([0.0, 1.5, 0.5, 2.0]))  # fmt: skip


def test_boundaries_are_at_their_mean_less_what_is_systematic():
    at = row_times(FINE, PLACED)  # frames begin at 5 n + 5 ms
    np.testing.assert_allclose(at[[0, 12, 20, 30, 40]], [0.0, 0.0625, 0.10625, 0.150, 0.210])
    words = times_of(FINE, [PLACED], "words")
    assert [row.start for row in words] == [at[0], at[30]] and words[0].end == pytest.approx(at[20])
    correction = Correction(0.001, {"vowel stop": 0.02, "stop sil": 0.08}, 1.5, {"a": "vowel", "b": "stop"})
    moved = row_times(FINE, PLACED, correction)
    np.testing.assert_allclose(moved[[12, 20, 30]], [0.0425, 0.0425, 0.149])  # never before the one to the left
    rows = boundary_rows(FINE, PLACED, correction)
    assert [(row.left, row.right, row.confidence) for row in rows] == [("x-a+b", "b", 0.8), ("b", "sil", 0.7),
                                                                       ("sil", "c", 0.6)]  # fmt: skip
    np.testing.assert_allclose([row.deviation for row in rows], [0.005 * 1.5 * 1.5, 0.005 * 0.5 * 1.5, 0.015])
    path = replace(PLACED, starts=None, deviations=None)
    np.testing.assert_allclose(row_times(FINE, path)[[12, 20, 30]], [0.065, 0.105, 0.155])


def test_stated_deviations_are_scored_by_class(tmp_path):
    write_boundaries(tmp_path / "boundaries.csv", boundary_rows(FINE, PLACED))
    rows = read_boundaries(tmp_path / "boundaries.csv")
    assert rows[0] == ("u", 0.062, 0.0075, "x-a+b", "b", 0.8)
    lines = [f"u 1 {row.start:.3f} {row.duration:.3f} {row.word}\n" for row in times_of(FINE, [PLACED], "units")]
    (tmp_path / "ali.ctm").write_text("".join(lines).replace("x-a+b", "a"))
    (tmp_path / "labels.ctm").write_text("u 1 0 0.06 a\nu 1 0.06 0.05 b\nu 1 0.11 0.045 sil\nu 1 0.155 0.05 c\n")
    item = SimpleNamespace(name="u", words=("a", "b", "sil", "c"))
    data = SimpleNamespace(items=[item, replace_name(item)], folder=tmp_path)
    with pytest.raises(MargoError, match="v: no labels"):
        errors_of_alignment(tmp_path / "ali.ctm", tmp_path / "labels.ctm", data)
    data.items = [item]
    found, missing = errors_of_alignment(tmp_path / "ali.ctm", tmp_path / "labels.ctm", data)
    assert not missing
    deviations = stated_deviations(rows, found)
    facts, text, plots = boundary_report(found, deviations, missing, {"a": "vowel", "c": "vowel"}, "ali")
    assert facts["percent_within_deviations"] == [pytest.approx(66.67), 100.0]  # 2, -4 and -5 ms; 7.5, 2.5 and 10
    assert {*facts["by_transition"]} == {"vowel b", "b sil", "sil vowel"} and "within two" in text
    assert plots[1]["cells"][0][:2] == ["all", "3"] and len(plots[1]["cells"][0]) == len(plots[1]["columns"])
    write_plots(tmp_path, plots)  # which looks at them
    assert plots[0]["note"].startswith("100.00 % within 10 ms, ")
    assert stated_deviations(rows[1:], found) is None  # not of all


def replace_name(item):
    return SimpleNamespace(name="v", words=item.words)


def test_phones_in_context_are_of_one_kind():
    hmms = flat_start(whole_words(["x-a+b", "a", "c-d"]), 2, np.zeros(1), np.ones(1))
    hmms = replace(hmms, lexicon={"w": ("x-a+b", "a"), "c-d": ("c-d",)})
    kinds = unit_kinds(hmms)
    assert kinds[hmms.unit_index["x-a+b"]] == kinds[hmms.unit_index["a"]] != kinds[hmms.unit_index["c-d"]]

"""plots.json: what can be drawn and what cannot."""

import json

import pytest

from margo.errors import MargoError
from margo.formats.plots import read_plots, read_progress, write_plots


def test_round_trip(tmp_path):
    plots = [{"title": "t", "kind": "line", "series": [{"name": "a", "x": [1, 2], "y": [0.5, 1.5]}]}]
    assert read_plots(write_plots(tmp_path, plots)) == plots


@pytest.mark.parametrize(
    ("plot", "said"),
    [
        ({"kind": "line"}, "no title"),
        ({"title": "t", "kind": "pie"}, "kind is 'pie', expected heatmap"),
        ({"title": "t", "kind": "line"}, "no series"),
        ({"title": "t", "kind": "line", "series": [{"x": [1], "y": [1, 2]}]}, "as many numbers in x as in y"),
        ({"title": "t", "kind": "line", "series": [{"x": [1], "y": [float("nan")]}]}, "y.0. is nan, expected a number"),
        ({"title": "t", "kind": "histogram", "series": [{"edges": [1], "counts": [1]}]}, "one more number in edges"),
        ({"title": "t", "kind": "heatmap", "values": [[1], [1, 2]]}, "rows of numbers of one length"),
        ({"title": "t", "kind": "heatmap", "values": [[1]], "rows": ["a", "b"]}, "2 labels for 1 rows"),
        ({"title": "t", "kind": "table", "columns": ["a"], "cells": [["1", "2"]]}, "as many texts as"),
        ({"title": "t", "kind": "image", "source": "https://x/y.png"}, "data:image/"),
        ({"title": "t", "kind": "scatter", "region": {"values": [[1]], "x": [0, 1]}}, "region: no y"),
    ],
)
def test_faults_are_named_on_writing_and_on_reading(tmp_path, plot, said):
    with pytest.raises(MargoError, match=said):
        write_plots(tmp_path, [plot])
    (tmp_path / "plots.json").write_text(json.dumps([plot]))
    with pytest.raises(MargoError, match=said):
        read_plots(tmp_path / "plots.json")


def test_progress_lines(tmp_path):
    assert read_progress(tmp_path) == []
    (tmp_path / "progress.jsonl").write_text('{"iteration": 1}\n{"iteration": 2}\n')
    assert [line["iteration"] for line in read_progress(tmp_path)] == [1, 2]
    (tmp_path / "progress.jsonl").write_text("{\n")
    with pytest.raises(MargoError, match="progress.jsonl:1: cannot be read as one JSON value a line"):
        read_progress(tmp_path)

"""Ticks and axes of the report's plots."""

import math
import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from margo.report.svg import Axis, axis, heatmap, line_plot, log_ticks, numbers, rates_plot, ticks


@given(low=st.floats(-1e6, 1e6), span=st.floats(1e-3, 1e6))
def test_ticks_are_even_few_and_inside(low, span):
    found = ticks(low, low + span)
    gaps = [b - a for a, b in zip(found, found[1:])]
    assert 2 <= len(found) <= 7
    assert low - 1e-5 * span <= found[0] and found[-1] <= low + span * (1 + 1e-5)
    assert max(gaps) == pytest.approx(min(gaps), rel=1e-3)


def test_log_axis_places_powers_evenly():
    found = Axis(1, 1000, 0, 300, log=True)
    assert [found(value) for value in found.labels()] == [0, 100, 200, 300]
    assert log_ticks(2, 7) == [2, 3, 4, 5, 6, 7]


def test_axes_hold_their_values_and_zero_where_asked():
    held = axis([3.0, 9.0], 0, 100)
    assert held.low < 3 and held.high > 9
    assert axis([3.0, 9.0], 0, 100, zero=True).low == 0
    assert axis([5.0, 5.0], 0, 100).high > axis([5.0, 5.0], 0, 100).low
    assert math.isfinite(axis([0.0], 0, 100)(0.0))
    assert axis([-1.0, 10.0], 0, 100, log=True).low > 0


def test_labels_of_one_axis_have_the_same_form():
    assert numbers([-0.5, 0.0, 0.25]) == ["\u22120.50", "0.00", "0.25"]
    assert numbers([0.0, 50.0, 100.0]) == ["0", "50", "100"]
    assert numbers([0.01, 0.1, 1.0, 10.0], even=False) == ["0.01", "0.1", "1", "10"]
    assert numbers([-20000000.0, 0.0]) == ["\u22122e7", "0"]
    assert numbers([1e-9, 2e-9]) == ["1e\u22129", "2e\u22129"]
    assert list(Axis(0.01, 1, 0, 1, log=True).labels().values()) == ["0.01", "0.1", "1"]


def test_long_names_of_rows_and_columns_have_room():
    """Nothing is drawn left of or below the picture; a letter is about six units wide."""
    names = ["a", "machines of all pairs, a Gaussian kernel"]
    tree = ElementTree.fromstring(heatmap({"title": "t", "kind": "heatmap", "values": [[3, 4], [5, 7]], "rows": names,
                                           "columns": names, "x_label": "heard"}))  # fmt: skip
    height = float(tree.get("viewBox").split()[3])
    texts = [element for element in tree.iter() if element.tag.endswith("text")]
    for element in texts:
        if element.get("transform"):  # a column's name, from its cell downwards
            down = float(re.search(r"translate\(\S+ (\S+)\)", element.get("transform"))[1])
            assert down + 6 * len(element.text) <= height
        elif element.get("text-anchor") == "end":
            assert float(element.get("x")) - 6 * len(element.text) >= 0
    assert texts[-1].text == "heard (shades: 3 to 7)"
    shades = [float(element.get("fill-opacity")) for element in tree.iter() if element.get("fill-opacity")]
    assert shades == [0, 0.25, 0.5, 1]


def test_every_one_of_twenty_systems_looks_different_and_no_figure_of_a_paper_hides_ours():
    cell = {"percent": 5.0, "ci95": [4.0, 6.0], "paper": {"percent": 5.0}}
    tree = ElementTree.fromstring(rates_plot("t", "t", {f"system{n}": {1: cell} for n in range(20)}))
    dots = [element for element in tree.iter() if element.get("class", "").startswith("dot ")]
    assert len({(dot.get("class"), dot.get("d")) for dot in dots}) == 20
    papers = [element for element in tree.iter() if element.get("class", "").startswith("paper")]
    for dot, paper in zip(dots, papers, strict=True):
        ours = float(re.search(r"translate\((\S+)", dot.get("transform"))[1])
        assert float(re.match(r"M(\S+)", paper.get("d"))[1]) - 5 > ours + 3.9


@pytest.mark.parametrize("last", [2, 3, 7, 40])
def test_iterations_have_whole_ticks(last):
    """Between the first and the second iteration there is none; other axes may have parts."""
    plot = {"title": "t", "kind": "line", "x_label": "iteration", "series": [{"x": [1, last], "y": [0.5, 0.7]}]}
    for label, whole in (("iteration", True), ("r", last >= 7)):
        tree = ElementTree.fromstring(line_plot({**plot, "x_label": label}))
        below = [each for each in tree.iter() if each.get("class") == "tick" and each.get("text-anchor") == "middle"]
        assert len(below) >= 2 and all(each.text.isdigit() for each in below) == whole

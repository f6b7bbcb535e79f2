"""CTM and TextGrid: what is written comes back."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from margo.errors import MargoError
from margo.formats.ctm import TimedWord, ctm_line, read_ctm, write_ctm
from margo.formats.textgrid import Interval, Points, fill, read_textgrid, write_textgrid


def test_ctm_line_has_the_usual_fields():
    assert ctm_line(TimedWord("utt1", 0.12, 0.3, "seven", 0.98765)) == "utt1 1 0.120 0.300 seven 0.9877"
    assert ctm_line(TimedWord("utt1", 0.12, 0.3, "seven")) == "utt1 1 0.120 0.300 seven"


def test_ctm_round_trip_is_sorted(tmp_path):
    rows = [
        TimedWord("b", 0.5, 0.25, "two", 0.5),
        TimedWord("b", 0.0, 0.5, "one", 1.0),
        TimedWord("a", 0.125, 0.375, "oh", None),
    ]
    write_ctm(tmp_path / "x.ctm", rows)
    assert read_ctm(tmp_path / "x.ctm") == [rows[2], rows[1], rows[0]]
    assert rows[0].end == 0.75


def test_ctm_faults(tmp_path):
    (tmp_path / "x.ctm").write_text(";; comment\n\na 1 0 0.5 one\na 1 x 0.5 one\na 1 -1 0.5 one\na 1 0\n")
    with pytest.raises(MargoError) as error:
        read_ctm(tmp_path / "x.ctm")
    assert all(f"line {n}" in str(error.value) for n in (4, 5, 6)) and "line 3" not in str(error.value)


@settings(deadline=None)  # files are written
@given(
    lengths=st.lists(st.integers(1, 5000), min_size=1, max_size=12),
    labels=st.lists(st.text('ab"ü \n', max_size=4), min_size=12, max_size=12),
)
def test_textgrid_round_trip(tmp_path_factory, lengths, labels):
    path, intervals, reached = tmp_path_factory.mktemp("grid") / "x.TextGrid", [], 0
    for length, label in zip(lengths, labels):
        intervals.append(Interval(reached / 1000, (reached + length) / 1000, label))
        reached += length
    duration = (reached + 10) / 1000
    write_textgrid(path, duration, {"words": intervals, "phones": intervals[::2]})
    back, tiers = read_textgrid(path)
    assert back == pytest.approx(duration)
    for name, given_ in (("words", intervals), ("phones", intervals[::2])):
        expected = [(i.start, i.end, i.label) for i in given_ if i.label]
        assert [(i.start, i.end, i.label) for i in tiers[name]] == expected


def test_textgrid_fills_gaps_so_that_tiers_are_whole():
    filled = fill([Interval(0.5, 1.0, "b"), Interval(0.1, 0.3, "a")], 1.2)
    assert [i.label for i in filled] == ["", "a", "", "b", ""]
    assert filled[0].start == 0 and filled[-1].end == 1.2
    assert all(one.end == other.start for one, other in zip(filled, filled[1:]))
    assert fill([], 2.0) == [Interval(0.0, 2.0, "")]


def test_textgrid_refuses_what_praat_would(tmp_path):
    with pytest.raises(MargoError) as error:
        write_textgrid(tmp_path / "x", 1.0, {"words": [
            Interval(0.0, 0.5, "a"), Interval(0.4, 0.6, "b"), Interval(0.7, 0.7, "c"), Interval(0.8, 1.4, "d"),
        ]})  # fmt: skip
    assert "3 faults" in str(error.value)
    (tmp_path / "y").write_text("nothing\n")
    with pytest.raises(MargoError, match="not a TextGrid"):
        read_textgrid(tmp_path / "y")


LONG = """File type = "ooTextFile"
Object class = "TextGrid"

xmin = 0
xmax = 2.5
tiers? <exists>
size = 2
item []:
    item [1]:
        class = "IntervalTier"
        name = "said"
        xmin = 0
        xmax = 2.5
        intervals: size = 2
        intervals [1]:
            xmin = 0
            xmax = 1.5
            text = "item [3]: ""ü"" 7 <exists>" ! a remark with "quotes" 12
        intervals [2]:
            xmin = 1.5
            xmax = 2.5
            text = ""
    item [2]:
        class = "TextTier"
        name = "clicks"
        xmin = 0
        xmax = 2.5
        points: size = 1
        points [1]:
            number = 0.25
            mark = "!"
"""
SHORT = """File type = "ooTextFile short"
"TextGrid"

0
2.5
<exists>
2
"IntervalTier"
"said"
0 2.5 2
0 1.5 "item [3]: ""ü"" 7 <exists>"
1.5 2.5 ""
"TextTier"
"clicks"
0
2.5
1
0.25
"!"
"""


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("text", [LONG, LONG.replace("\n", "\r\n"), SHORT])
def test_what_others_write_is_read_as_praat_reads_it(tmp_path, text, encoding):
    (tmp_path / "x").write_bytes(text.encode(encoding))
    duration, tiers = read_textgrid(tmp_path / "x")
    assert duration == 2.5 and tiers == {"said": [Interval(0, 1.5, 'item [3]: "ü" 7 <exists>')],
                                         "clicks": [Interval(0.25, 0.25, "!")]}  # fmt: skip
    assert isinstance(tiers["clicks"], Points)
    for short in (False, True):
        write_textgrid(tmp_path / "y", duration, tiers, short)
        assert read_textgrid(tmp_path / "y") == (duration, tiers)


@pytest.mark.parametrize("change, says", [
    (("size = 2\nitem", "size = 3\nitem"), "found the file's end, expected a text"),
    (("size = 2\nitem", "size = 1\nitem"), "holds more than"),
    (("intervals: size = 2", "intervals: size = 1"), "found number '1.5', expected a text"),
    (('"clicks"', '"said"'), "two tiers are called 'said'"),
    (('"TextTier"', '"Tier"'), "tier 'clicks' is a 'Tier', expected IntervalTier or TextTier"),
    (("xmax = 2.5", "xmax = x"), "expected a number"),
])  # fmt: skip
def test_files_that_do_not_hold_what_they_say(tmp_path, change, says):
    (tmp_path / "x").write_text(LONG.replace(*change, 1))
    with pytest.raises(MargoError) as error:
        read_textgrid(tmp_path / "x")
    assert says in str(error.value) and str(tmp_path / "x") in str(error.value)

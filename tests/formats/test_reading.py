"""Text files: what is accepted, and that what is refused is named by file, line and reason."""

import pytest

from margo.errors import MargoError, refuse
from margo.formats.reading import DEEPEST, json_value, misfits, read_json, read_keyed, read_text, read_toml
from margo.knobs import real, whole


@pytest.mark.parametrize(("read", "what"), [(read_text, "read"), (read_json, "read as JSON"), (read_toml, "as TOML")])
def test_what_cannot_be_read_is_one_error_with_the_file(tmp_path, read, what):
    with pytest.raises(MargoError, match="none: no such file"):
        read(tmp_path / "none")
    (tmp_path / "bytes").write_bytes(b"a = \xff")
    with pytest.raises(MargoError, match=f"bytes: cannot be .*{what} .*0xff"):
        read(tmp_path / "bytes")


def test_keyed_lines_have_their_numbers_and_the_first_of_a_key_holds(tmp_path):
    (tmp_path / "text").write_bytes(b"\xef\xbb\xbfb one  two \r\n\n  a\nb three\nc \xe9\n")
    told = []
    table = read_keyed(tmp_path / "text", lambda *fault: told.append(fault))
    assert table == {"b": (1, "one  two"), "a": (3, "")}
    assert told == [("duplicate key", 4, "b is there already"), ("not text", 5, "byte 0xe9 at column 3 is not UTF-8")]


def test_a_long_list_of_faults_is_counted_whole_and_shown_in_part():
    faults = [f"line {n}" for n in range(1, 6)]
    refuse([], "file")
    for most, lines in ((None, faults), (5, faults), (2, [*faults[:2], "... and 3 more"])):
        with pytest.raises(MargoError) as error:
            refuse(faults, "file", most)
        assert str(error.value) == "\n  ".join(["file: 5 faults", *lines])
    with pytest.raises(MargoError, match="^file: line 1$"):  # one is told in one line
        refuse(faults[:1], "file", 2)


def test_whole_numbers_and_reals_are_ascii_and_of_a_size():
    assert [whole(text) for text in ("0", "+3", "-12", " 7 ", "9" * 18)] == [0, 3, -12, 7, 10**18 - 1]
    for text in ("", "-", "+-3", "3.0", "1e3", "²", "１", "1_0", "0x1", "9" * 19, "9" * 5000, "nan", "3\n4"):
        with pytest.raises(ValueError, match="expected a whole number"):
            whole(text)
    assert [real(text) for text in ("0", "-1.5", ".5", "1e-400", " 3 ", "3.4e38")] == [0, -1.5, 0.5, 0, 3, 3.4e38]
    for text in ("", "nan", "inf", "-Infinity", "1e999", "1e300", "3.5e38", "1_0", "１", "²", "9" * 5000, "0x1"):
        with pytest.raises(ValueError, match="expected a number"):
            real(text)


def test_values_are_compared_with_shapes():
    shape = {
        "name": str,
        "count": int,
        "mean?": float,
        "kind?": {"a", "b"},
        "rows?": [[float]],
        "other?": (str, None),
        "table?": {...: int},
    }
    good = {"name": "x", "count": 3, "mean": 4, "kind": "a", "rows": [[1, 2.5], []], "other": None, "table": {"z": 1}}
    assert misfits(good, shape) == [] and misfits({"name": "x", "count": 3, "more": [{}]}, shape) == []
    assert misfits(3, ...) == [] and misfits([], shape) == ["is [], expected a table"]
    for change, said in [
        ({"count": 3.0}, "count is 3.0, expected a whole number"),
        ({"name": 3}, "name is 3, expected"),
        ({"count": True}, "count is True"),
        ({"count": 10**30}, "count is 1000"),
        ({"mean": float("nan")}, "mean is nan"),
        ({"mean": 10**400}, "mean is 1000"),
        ({"kind": "c"}, "kind is 'c', expected a or b"),
        ({"kind": []}, "kind is []"),
        ({"rows": [[1], 2]}, "rows[1] is 2, expected a list"),
        ({"rows": [["a"]]}, "rows[0][0] is 'a'"),
        ({"other": 3}, "other is 3, expected text or null"),
        ({"table": {"z": "y"}}, "table.z is 'y'"),
    ]:
        (fault,) = misfits(good | change, shape)
        assert fault.startswith(said)
    assert misfits({"count": "3"}, shape) == ["no name", "count is '3', expected a whole number"]


def test_json_and_toml_have_their_limits(tmp_path):
    assert json_value("[" * DEEPEST + "]" * DEEPEST) and json_value('[NaN, "\\ud83d\\ude00", 1e38]')
    for text, said in [
        ("[" * (DEEPEST + 1) + "]" * (DEEPEST + 1), "deep"),
        ('{"a": 1, "a": 2}', "'a' twice"),
        ("9" * 40, "whole number"),
        ("1e300", "a number"),
        ('"\\ud800"', "surrogates"),
    ]:
        with pytest.raises(ValueError, match=said):
            json_value(text)
    (tmp_path / "a.toml").write_text("a." * (DEEPEST - 1) + "a = 1\n")
    assert read_toml(tmp_path / "a.toml")
    for text, said in [
        ("a." * (DEEPEST + 1) + "a = 1", "a key of more"),
        ("a = " + "[" * 400 + "]" * 400, "deep|recursion"),
        ("a = 1e999", "a number up to"),
        ("#" * (1 << 20) + "#", "expected at most 1048576"),
    ]:
        (tmp_path / "a.toml").write_text(text)
        with pytest.raises(MargoError, match=f"a.toml: .*{said}"):
            read_toml(tmp_path / "a.toml")

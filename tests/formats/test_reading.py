"""Text files: what is accepted, and that what is refused is named by file, line and reason."""

import pytest

from margo.errors import MargoError, refuse
from margo.formats.reading import read_json, read_keyed, read_text, read_toml


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
    assert told == [("duplicate key", 4, "b is there already"),
                    ("not UTF-8", 5, "byte 0xe9 at column 3 is not UTF-8")]  # fmt: skip


def test_a_long_list_of_faults_is_counted_whole_and_shown_in_part():
    faults = [f"line {n}" for n in range(1, 6)]
    refuse([], "file")
    for most, lines in ((None, faults), (5, faults), (2, [*faults[:2], "... and 3 more"])):
        with pytest.raises(MargoError) as error:
            refuse(faults, "file", most)
        assert str(error.value) == "\n  ".join(["file: 5 faults", *lines])

"""Every row of docs/faults.md names a test that is there."""

import ast
import re

import pytest

HEADING = re.compile(r"test \(`(?P<file>[\w/.]+)::`\)")


def rows(text):
    """``(test, line)`` of the rows of all tables; a heading may name the file of its column."""
    common = ""
    for line in text.splitlines():
        if not line.startswith("|"):
            common = ""
        elif heading := HEADING.search(line):
            common = f"{heading['file']}::"
        elif "---" not in line and not line.startswith("| fault"):
            yield common + re.findall(r"`([^`]+)`", line.split("|")[-2])[0], line


def test_every_fault_names_its_test(root):
    found = list(rows((root / "docs" / "faults.md").read_text()))
    assert len(found) > 40
    for test, line in found:
        path, _, name = test.partition("::")
        source = root / "tests" / path
        assert source.is_file(), line
        names = {node.name for node in ast.walk(ast.parse(source.read_text())) if isinstance(node, ast.FunctionDef)}
        assert not name or name in names, line


def test_a_row_without_its_test_is_found(root):
    table = "| fault | outcome | test (`steps/x.py::`) |\n|---|---|---|\n| a | b | `test_a` |\n"
    assert [test for test, _ in rows(table)] == ["steps/x.py::test_a"]
    with pytest.raises(IndexError):
        list(rows("| fault | test |\n|---|---|\n| a | none |\n"))

"""Every row of docs/faults.md names a test that is there."""

import ast
import re
from functools import cache

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
            first, *others = re.findall(r"`([^`]+)`", line.split("|")[-2])
            yield from ((common + test, line) for test in (first, *others))


@cache
def functions(path):
    """Names of the functions of a file."""
    return {node.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)}


def test_every_fault_names_its_test(root):
    found = list(rows((root / "docs" / "faults.md").read_text()))
    assert len(found) > 100
    numbers = [int(line[2:].partition(".")[0]) for _, line in found if re.match(r"\| \d+\. ", line)]
    assert sorted(set(numbers)) == list(range(1, 14))  # what an attack had found
    for test, line in found:
        path, _, name = test.partition("::")
        assert (root / "tests" / path).is_file(), line
        assert not name or name in functions(root / "tests" / path), line


def test_a_row_without_its_test_is_found(root):
    table = "| fault | outcome | test (`steps/x.py::`) |\n|---|---|---|\n| a | b | `test_a` |\n"
    assert [test for test, _ in rows(table)] == ["steps/x.py::test_a"]
    with pytest.raises(ValueError):
        list(rows("| fault | test |\n|---|---|\n| a | none |\n"))

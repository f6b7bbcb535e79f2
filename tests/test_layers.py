"""The layers of the house: the arrows between rooms are those of CONTRIBUTING.md, and there are no rings."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LIB = ROOT / "lib" / "margo"
PURE = ("signal", "gaussian", "model", "search", "estimate", "transform", "classify", "kernel", "score")
EVERYBODYS = {"errors", "knobs"}
# Files, printing, clocks, environment and processes belong to the outer layers.
FORBIDDEN_MODULES = {"os", "io", "sys", "pathlib", "time", "datetime", "subprocess", "logging", "tempfile", "random"}
FORBIDDEN_CALLS = {"open", "print", "input"}
# Solution.seconds is part of the solver's result: its CPU clock is the one exception.
CLOCK = {"estimate/lme/solver.py"}


def imported(tree) -> set[str]:
    """What a module imports, anywhere in it: ``package.module.name``."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def rooms_known(source: str) -> set[str]:
    """Rooms of lib that a module's source imports from."""
    parts = (name.split(".") for name in imported(ast.parse(source)))
    return {name[1] for name in parts if name[0] == "margo" and len(name) > 1} - EVERYBODYS


def arrows() -> dict[str, set[str]]:
    """room -> rooms it imports, computed from lib."""
    known = {}
    for room in sorted(path.parent for path in LIB.glob("*/__init__.py")):
        sources = [path.read_text() for path in room.rglob("*.py")]
        known[room.name] = set().union(*map(rooms_known, sources)) - {room.name}
    return known


def documented() -> dict[str, set[str]]:
    """The same from the table in CONTRIBUTING.md."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    table = text.split("| room | knows |")[1].split("\n\n")[0]
    return {room: set(known.split()) for room, known in re.findall(r"^\| (\w+) \|([\w ]*)\|$", table, re.M)}


def test_arrows_are_those_of_the_table():
    assert arrows() == documented()


def test_the_table_has_no_ring_and_pure_rooms_know_only_pure_ones():
    known = documented()
    for room in PURE:
        assert known[room] <= set(PURE), room
    while known:
        leaves = [room for room, others in known.items() if not others & known.keys()]
        assert leaves, f"a ring among {sorted(known)}"
        known = {room: others for room, others in known.items() if room not in leaves}


def ring(modules: dict[str, set[str]]) -> list[str]:
    """Modules of a ring in module -> modules it imports; empty when there is none."""
    left = dict(modules)
    while left:
        leaves = [name for name, others in left.items() if not others & left.keys()]
        if not leaves:
            return sorted(left)
        left = {name: others for name, others in left.items() if name not in leaves}
    return []


def test_no_ring_of_modules():
    paths = {".".join(("margo", *path.relative_to(LIB).with_suffix("").parts)): path for path in LIB.rglob("*.py")}
    modules = {}
    for name, path in paths.items():
        names = imported(ast.parse(path.read_text()))
        known = {other for each in names for other in (each, each.rpartition(".")[0]) if other in paths}
        modules[name] = known - {name}
    assert ring(modules) == []


def test_a_ring_is_seen():
    assert ring({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == ["a", "b", "c", "d"]
    assert ring({"a": {"b"}, "b": set()}) == []


def breaches(path: Path, source: str) -> list[str]:
    """Ways in which the pure module at ``path`` (below lib/margo) reaches outside."""
    tree, faults = ast.parse(source), []
    for name in imported(tree):
        first = name.split(".")[0]
        if first in FORBIDDEN_MODULES and not (first == "time" and str(path) in CLOCK):
            faults.append(f"{path} imports {name}")
        if name.startswith("numpy.random.seed"):
            faults.append(f"{path} seeds hidden random state")
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in FORBIDDEN_CALLS:
            faults.append(f"{path}:{node.lineno} calls {node.func.id}")
    return faults


def test_pure_rooms_have_no_files_prints_or_clocks():
    paths = [path.relative_to(LIB) for room in PURE for path in (LIB / room).rglob("*.py")]
    assert [fault for path in paths for fault in breaches(path, (LIB / path).read_text())] == []


@pytest.mark.parametrize("source", ["import os", "print(1)", "from time import time", "open('x')"])
def test_a_breach_is_seen(source):
    assert breaches(Path("search/x.py"), source)


def test_an_arrow_is_seen_wherever_it_stands():
    assert rooms_known("def f():\n    from margo.formats import audio\n    import margo.search.nbest") == {
        "formats", "search"
    }  # fmt: skip


def programs() -> list[Path]:
    return sorted([*ROOT.glob("steps/*.py"), *ROOT.glob("local/*.py")])


def test_programs_share_code_through_lib_alone():
    names = {path.stem for path in programs()}
    # The generator of the embedded corpora is a program of its own, in three files.
    generator = {"mini_corpus": {"mini_voice", "mini_labels"}}
    for path in programs():
        others = {name.split(".")[0] for name in imported(ast.parse(path.read_text()))}
        assert others & names <= generator.get(path.stem, set()), path
        assert not others & {"steps", "local", "subprocess", "runpy"}, path


def test_module_names_are_unique():
    names = [path.name for path in LIB.rglob("*.py") if path.name != "__init__.py"]
    assert sorted({name for name in names if names.count(name) > 1}) == []


def test_nothing_is_unpickled():
    for path in [*LIB.rglob("*.py"), *programs()]:
        names = imported(ast.parse(path.read_text()))
        assert not any(name.split(".")[0] in ("pickle", "joblib", "dill", "shelve") for name in names), path
        assert "allow_pickle=" + "True" not in path.read_text(), path


def long_functions(source: str) -> list[str]:
    return [node.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)
            and node.end_lineno - node.lineno + 1 > 80]  # fmt: skip


def wide_kernels(source: str) -> list[str]:
    """Compiled functions with more than ten positional parameters."""
    functions = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef))
    return [node.name for node in functions
            if any("njit" in ast.dump(mark) for mark in node.decorator_list)
            and len(node.args.posonlyargs) + len(node.args.args) > 10]  # fmt: skip


def test_functions_are_short_and_kernels_narrow():
    for path in [*LIB.rglob("*.py"), *programs()]:
        assert not long_functions(path.read_text()), path
        assert not wide_kernels(path.read_text()), path


def test_long_functions_and_wide_kernels_are_seen():
    assert long_functions("def f():\n" + "    x = 1\n" * 80) == ["f"]
    wide = ", ".join(f"a{n}" for n in range(11))
    assert wide_kernels(f"@njit(cache=True)\ndef f({wide}):\n    pass") == ["f"]

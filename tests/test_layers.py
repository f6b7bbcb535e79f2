"""The layers of the house: recipes -> steps -> tasks, report -> runtime -> formats -> pure packages, never back."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LIB = ROOT / "lib" / "margo"
PURE = ("signal", "gaussian", "model", "search", "estimate", "classify", "kernel", "score")
MAY_IMPORT = {
    **{name: {"errors", "knobs", *PURE} for name in PURE},
    "formats": {"errors", "knobs", "formats", *PURE},
    "runtime": {"errors", "knobs", "runtime", "formats", *PURE},
    "tasks": {"errors", "knobs", "tasks", "runtime", "formats", *PURE},
    "report": {"errors", "knobs", "report", "tasks", "runtime", "formats", *PURE},
}
# Files, printing, clocks, environment and processes belong to the outer layers.
FORBIDDEN_MODULES = {"os", "io", "sys", "pathlib", "time", "datetime", "subprocess", "logging", "tempfile", "random"}
FORBIDDEN_CALLS = {"open", "print", "input"}
# Solution.seconds is part of the solver's result: its CPU clock is the one exception.
CLOCK = {"estimate/lme/solver.py"}


def imported(tree) -> set[str]:
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def faults(path: Path, source: str) -> list[str]:
    """Ways in which the module at ``path`` (below lib/margo) reaches outside its layer."""
    layer = path.parts[0]
    tree, found = ast.parse(source), []
    for name in imported(tree):
        parts = name.split(".")
        if parts[0] == "margo" and len(parts) > 1 and parts[1] not in MAY_IMPORT[layer]:
            found.append(f"{path} imports {name}")
        if layer in PURE and parts[0] in FORBIDDEN_MODULES and not (parts[0] == "time" and str(path) in CLOCK):
            found.append(f"{path} imports {name}")
        if layer in PURE and name.startswith("numpy.random.seed"):
            found.append(f"{path} seeds hidden random state")
    for node in ast.walk(tree):
        if layer in PURE and isinstance(node, ast.Call) and getattr(node.func, "id", "") in FORBIDDEN_CALLS:
            found.append(f"{path}:{node.lineno} calls {node.func.id}")
    return found


MODULES = sorted(path.relative_to(LIB) for path in LIB.rglob("*.py") if len(path.relative_to(LIB).parts) > 1)


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_module_stays_in_its_layer(path):
    assert faults(path, (LIB / path).read_text()) == []


@pytest.mark.parametrize(
    "source", ["import os", "from margo.formats import audio", "print(1)", "from margo.runtime.step import main"]
)
def test_a_breach_is_seen(source):
    assert faults(Path("search/x.py"), source)


def test_steps_do_not_call_each_other():
    for path in [*ROOT.glob("steps/*.py"), *ROOT.glob("local/*.py")]:
        names = imported(ast.parse(path.read_text()))
        assert not any(name.split(".")[0] in ("steps", "local", "subprocess") for name in names), path


def test_nothing_is_unpickled():
    for path in [*LIB.rglob("*.py"), *ROOT.glob("steps/*.py"), *ROOT.glob("local/*.py")]:
        names = imported(ast.parse(path.read_text()))
        assert not any(name.split(".")[0] in ("pickle", "joblib", "dill", "shelve") for name in names), path
        assert "allow_pickle=" + "True" not in path.read_text(), path

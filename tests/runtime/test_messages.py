"""Messages that help: what lacks a package names the extra that brings it, for every import of lib, steps and local;
who names the folder above the one that is wanted is told what is in it."""

import ast
import re
import sys
import tomllib

import pytest

from margo.errors import MargoError
from margo.knobs import Knobs
from margo.runtime.step import EXTRAS, Step, needed

MODULES = {"pympi-ling": "pympi", "scikit-learn": "sklearn", "dask-jobqueue": "dask_jobqueue",
           "espeakng-loader": "espeakng_loader"}  # fmt: skip


@pytest.fixture(scope="module")
def project(root):
    return tomllib.loads((root / "pyproject.toml").read_text())["project"]


def modules(requirements):
    names = [re.match(r"[\w-]+", each)[0] for each in requirements if not each.startswith("margo-speech")]
    return {MODULES.get(name, name) for name in names}


def test_extras_are_those_of_the_package(project):
    declared = project["optional-dependencies"]
    for extra, names in EXTRAS.items():
        assert {*names.split()} <= modules(declared[extra]), extra


def test_every_extra_is_told(root, project):
    page = (root / "docs" / "index.md").read_text()
    assert all(f"`{extra}`" in page for extra in project["optional-dependencies"])


def test_every_package_that_is_imported_is_needed_by_all_or_brought_by_an_extra(root, project):
    known = modules(project["dependencies"]) | {name for names in EXTRAS.values() for name in names.split()}
    own = {path.stem for path in (root / "local").glob("*.py")} | {"margo"}
    programs = [path for folder in ("lib", "steps", "local") for path in (root / folder).rglob("*.py")]
    lost = {}
    for path in programs:
        for node in ast.walk(ast.parse(path.read_text())):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and not node.level else []
            for name in {name.partition(".")[0] for name in names} - own - known - {*sys.stdlib_module_names}:
                lost.setdefault(name, path)
    assert not lost


def test_the_words(root):
    assert needed(ModuleNotFoundError(name="pympi")) == "needs pympi: pip install 'margo-speech[elan]'"
    assert needed(ModuleNotFoundError(name="librosa.effects")) == "needs librosa: pip install 'margo-speech[augment]'"


@pytest.mark.parametrize("made_by, wanted", [("train_ml", "model.npz"), ("make_mfcc", "feats.scp")])
def test_the_folder_above_is_not_taken_for_a_stage_that_is_wanting(tmp_path, made_by, wanted):
    for name in ("b", "a"):
        (tmp_path / name).mkdir()
        (tmp_path / name / wanted).write_text("x")
    with pytest.raises(MargoError) as error:
        Step("align", Knobs(), []).input(tmp_path, made_by=made_by)
    assert str(error.value) == f"{tmp_path}: no file {wanted}; there is one in each of its folders a b"

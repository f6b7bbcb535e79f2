"""An installation that cannot be written, without a home that can."""

import os
import shutil
import subprocess
import sys

import pytest

PROGRAM = """
from margo.search.lengths import _positions
import numpy as np
print(_positions(np.array([0, 0, 1]), np.array([0]), 1))
"""


@pytest.fixture
def run(root, tmp_path):
    """Run a program with a copy of the package in which nothing can be put, and a home that is no folder."""
    package = shutil.copytree(root / "lib", tmp_path / "lib", ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [path for path in (package / "margo").rglob("*") if path.is_dir()] + [package / "margo"]:
        (folder / "__pycache__").touch()  # a file: no permission, not even the superuser's, makes a folder there
    (tmp_path / "home").touch()
    (tmp_path / "temporary").mkdir()
    unwanted = {"NUMBA_CACHE_DIR", "XDG_CACHE_HOME"}
    environment = {key: value for key, value in os.environ.items() if key not in unwanted}
    environment |= {"PYTHONPATH": str(package), "HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path / "temporary")}

    def call(**more):
        command = [sys.executable, "-B", "-c", PROGRAM]
        return subprocess.run(command, env=environment | more, capture_output=True, text=True, cwd=tmp_path)

    return call


def test_compiled_code_is_kept_among_temporary_files_and_the_user_is_told_once(run, tmp_path):
    place = tmp_path / "temporary" / f"margo-{os.getuid()}"
    first = run()
    assert first.returncode == 0 and first.stdout == "[1]\n", first.stderr
    assert first.stderr.count("\n") == 1 and f"compiled code is kept in {place}" in first.stderr
    assert list(place.rglob("*.nbi")) and place.stat().st_mode & 0o077 == 0
    second = run()
    assert second.stdout == "[1]\n" and second.stderr == ""


def test_a_folder_that_others_can_write_is_not_trusted(run, tmp_path):
    place = tmp_path / "temporary" / f"margo-{os.getuid()}"
    place.mkdir()
    place.chmod(0o777)
    done = run()
    assert done.stdout == "[1]\n" and not list(place.iterdir()) and f"kept in {place}" not in done.stderr
    assert len(list((tmp_path / "temporary").iterdir())) == 2


def test_a_place_that_is_named_is_used(run, tmp_path):
    done = run(NUMBA_CACHE_DIR=str(tmp_path / "mine"))
    assert done.stdout == "[1]\n" and done.stderr == "" and list((tmp_path / "mine").rglob("*.nbi"))

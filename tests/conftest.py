"""Shared fixtures: where the real corpora and the peers' reference files are, and how a terminal starts programs."""

import os
import signal
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def folder_of(variable: str) -> Path:
    folder = os.environ.get(variable)
    if not folder:
        pytest.skip(f"set {variable} to the folder that holds the data")
    path = Path(folder)
    if not path.is_dir():
        pytest.fail(f"{variable} is {folder}, which is not a folder")
    return path


def pytest_collection_modifyitems(items):
    """Recipes first: their files take longest, and the last of a run's files should be short ones."""
    items.sort(key=lambda item: item.path.parent.name != "recipes")


@pytest.fixture(scope="session")
def corpora() -> Path:
    """Folder with real corpora (fsdd, timit_sample, deterding, usps, sphere ...)."""
    return folder_of("MARGO_CORPORA")


@pytest.fixture(scope="session")
def references() -> Path:
    """Folder with reference outputs of peers (htk)."""
    return folder_of("MARGO_REFERENCES")


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture(scope="session")
def as_from_a_terminal():
    """For ``preexec_fn``: a group of its own that Ctrl-C and a hangup reach; what runs in the background, or under
    nohup, inherits to ignore them."""

    def prepare():
        os.setsid()
        for number in (signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)

    return prepare

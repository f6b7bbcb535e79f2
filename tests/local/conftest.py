"""The embedded corpora in their tiny size, made once a session."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CORPORA = ("tidigits", "isolet", "timit", "an4")


@pytest.fixture(scope="session")
def mini(tmp_path_factory) -> dict[str, Path]:
    """``corpus -> folder``."""
    pytest.importorskip("espeakng_loader", reason="the embedded corpora's voice is missing (margo-speech[corpora])")
    folder = tmp_path_factory.mktemp("mini")
    for corpus in CORPORA:
        command = [sys.executable, str(ROOT / "local" / "mini_corpus.py"), corpus]
        subprocess.run([*command, "--out", str(folder / corpus), "--size", "tiny"], check=True)
    return {corpus: folder / corpus for corpus in CORPORA}

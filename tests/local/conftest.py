"""The embedded corpora in their tiny size, made once a session."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def mini(tmp_path_factory) -> dict[str, Path]:
    """``{"tidigits": folder, "isolet": folder, "timit": folder}``."""
    pytest.importorskip("espeakng_loader", reason="the embedded corpora's voice is missing (margo-speech[corpora])")
    folder = tmp_path_factory.mktemp("mini")
    for corpus in ("tidigits", "isolet", "timit"):
        command = [sys.executable, str(ROOT / "local" / "mini_corpus.py"), corpus]
        subprocess.run([*command, "--out", str(folder / corpus), "--size", "tiny"], check=True)
    return {corpus: folder / corpus for corpus in ("tidigits", "isolet", "timit")}

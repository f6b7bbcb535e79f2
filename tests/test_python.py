"""Python's front door: every example of docs/python.md, run in turn on a run of the recipe that it names (tiny)."""

import io
import re
import subprocess
import sys
from contextlib import redirect_stdout

import pytest

import margo
from margo.errors import MargoError


@pytest.fixture(scope="module")
def place(root, tmp_path_factory):
    folder = tmp_path_factory.mktemp("python")
    corpus = folder / "exp" / "tidigits" / "corpus"
    text = (root / "docs" / "python.md").read_text()
    (command,) = re.findall(r"```bash\nmargo (.*)\n```", text)
    words = re.findall(r'"([^"]*)"|(\S+)', command)
    for argv in (["mini_corpus", "tidigits", "--size", "tiny", "--out", corpus],
                 [*(quoted or plain for quoted, plain in words), "--corpus", corpus, "--nj", "1"]):  # fmt: skip
        done = subprocess.run([sys.executable, "-m", "margo", *argv], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    return folder


def test_the_examples_of_the_page(root, place, monkeypatch):
    monkeypatch.chdir(place)
    blocks = re.findall(r"```python\n(.*?)```", (root / "docs" / "python.md").read_text(), re.S)
    assert len(blocks) >= 8
    known, said = {}, io.StringIO()
    with redirect_stdout(said):
        for block in blocks:
            exec(compile(block, "docs/python.md", "exec"), known)
    words = known["found"]["text"].split()
    assert words and {*words} <= {*known["model"].hmms.words}
    assert [unit["unit"] for unit in known["aligned"]["units"] if unit["unit"] != "sil"] == words
    assert known["short"].hmms.units[0].n_states == 4 and known["short"].hmms.meta["criterion"] == "ml"
    assert "exp/tidigits/ml_7: no model.npz; models in exp/tidigits: ml_1\n" in said.getvalue()
    assert set(known["table"]["set"]) == {"train", "dev", "test"} and (known["table"]["system"] == "ml").all()
    row = known["table"].iloc[0]
    assert row["percent"] == pytest.approx(100 * row["errors"] / row["total"], abs=1e-3)
    assert row["low"] <= row["percent"] <= row["high"]


def test_a_training_that_is_refused_says_why(place, monkeypatch):
    monkeypatch.chdir(place)
    with pytest.raises(MargoError, match="criterion is 'mle', expected one of ml, mce"):
        margo.train("exp/tidigits/mfcc/train", "exp/x", criterion="mle")
    with pytest.raises(MargoError, match="train_ml: --states is 0, expected"):
        margo.train("exp/tidigits/mfcc/train", "exp/x", states=0)


def test_a_run_at_a_glance(root, place):
    done = subprocess.run([sys.executable, root / "steps" / "show.py", place / "exp" / "tidigits"], capture_output=True,
                          text=True)  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[1].startswith("done       0 data; 1 features; 2 maximum likelihood (ml); 3 alignment and N-best; 7 ")
    assert lines[2] == "models     ml_1"
    table = margo.results(place / "exp" / "tidigits").set_index("set")["percent"]
    assert lines[5].split() == ["ml_1", *(f"{table[which]:.2f}" for which in ("train", "dev", "test"))]
    assert lines[6] == f"best       ml_1: {table['dev']:.2f} % on dev, {table['test']:.2f} % on test"


def test_importing_margo_loads_nothing_heavy():
    code = "import sys, margo; margo.load; sys.exit(bool({'numpy', 'pandas', 'numba'} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
    with pytest.raises(AttributeError, match="no attribute 'lode'"):
        _ = margo.lode

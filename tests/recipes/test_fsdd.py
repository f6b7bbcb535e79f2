"""Real speech through recipes/words: the Free Spoken Digit Dataset, official split, beside HTK's accuracy on it."""

import json
import subprocess
import sys

import pytest

HTK_ERRORS = {1: 9, 2: 5, 4: 1, 8: 0}  # of 300 recordings, HTK 3.4.1, same models and features


@pytest.mark.slow
def test_isolated_digits_are_recognised_as_htk_does(root, corpora, tmp_path):
    data = tmp_path / "fsdd"
    prepare = [sys.executable, root / "local" / "fsdd_data.py", "--corpus", corpora / "fsdd", "--out", data]
    subprocess.run([*prepare, "--dev", "0"], check=True, capture_output=True)
    recipe = [root / "recipes" / "words" / "run.sh", "--train", data / "train", "--dev", data / "train",
              "--test", data / "test", "--exp", tmp_path / "exp", "--mix", "1 2 4 8", "--criteria", "ml",
              "--allow-overlap", "true"]  # fmt: skip
    subprocess.run([*recipe, "--stop-stage", "2"], check=True, capture_output=True)
    subprocess.run([*recipe, "--stage", "7", "--stop-stage", "7"], check=True, capture_output=True)
    found = {}
    for mixtures in HTK_ERRORS:
        score = json.loads((tmp_path / "exp" / "decode" / f"ml_{mixtures}" / "test" / "score.json").read_text())
        assert score["total"] == 300
        found[mixtures] = score["errors"]
    assert all(found[mixtures] <= HTK_ERRORS[mixtures] + 1 for mixtures in found), found

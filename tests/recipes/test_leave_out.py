"""recipes/words with every speaker left out in turn."""

import json
import subprocess
import sys

import pytest

from margo.formats import datadir


@pytest.mark.slow
def test_every_speaker_left_out_in_turn_is_tested_once(root, tmp_path):
    corpus, data, exp = tmp_path / "corpus", tmp_path / "data", tmp_path / "exp"
    for command in (
        [root / "local" / "mini_corpus.py", "tidigits", "--out", corpus, "--size", "tiny"],
        [root / "local" / "tidigits_data.py", "--corpus", corpus, "--partial", "true", "--out", data],
    ):
        subprocess.run([sys.executable, *command], check=True, capture_output=True)
    rows = list(datadir.read(data / "train"))
    few = sorted({row.speaker for row in rows})[:2]
    datadir.write(tmp_path / "train", [row for row in rows if row.speaker in few])
    recipe = [root / "recipes" / "words" / "run.sh", "--train", tmp_path / "train", "--dev", data / "dev",
              "--leave-out", "each", "--exp", exp, "--mix", "1", "--criteria", "ml", "--states", "4"]  # fmt: skip
    for stages in (["--stop-stage", "2"], ["--stage", "7"]):  # without alignment and N-best, to save time
        done = subprocess.run([*recipe, *stages], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-2000:]
    decoded = {path.parent.name for name in few for path in (exp / name / "decode" / "ml_1").glob("*/hyp")}
    assert decoded == {"test"}  # dev has chosen, and of a trial the pooled test counts
    parts = [json.loads((exp / name / "decode/ml_1/test/score.json").read_text()) for name in few]
    whole = json.loads((exp / "all/decode/ml_1/test/score.json").read_text())
    assert whole["total"] == sum(len(row.words) for row in rows if row.speaker in few)
    assert whole["errors"] == sum(part["errors"] for part in parts)
    assert whole["speakers"] == 2 and (exp / "all" / "RESULTS.md").is_file()

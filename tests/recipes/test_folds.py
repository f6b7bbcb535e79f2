"""recipes/an4 by folds over all speakers."""

import json
import subprocess
import sys

import pytest


@pytest.mark.slow
def test_every_speaker_is_tested_once(root, tmp_path):
    corpus, exp = tmp_path / "an4", tmp_path / "exp"
    command = [sys.executable, root / "local" / "mini_corpus.py", "an4", "--out", corpus, "--size", "tiny"]
    subprocess.run(command, check=True, capture_output=True)
    conf = tmp_path / "few.toml"  # speakers
    tiny = (root / "tests" / "recipes" / "an4.toml").read_text()
    tiny = tiny.replace("[train_ml]", "[train_ml]\nvocabulary = 'transcripts'")
    conf.write_text(f"[an4_data]\ndev_every = 2\n\n{tiny}")
    recipe = [root / "recipes" / "an4" / "run.sh", "--corpus", corpus, "--folds", "2", "--exp", exp, "--mix", "1",
              "--criteria", "mono", "--conf", conf]  # fmt: skip
    done = subprocess.run(recipe, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    parts = [json.loads((exp / str(n) / "decode/mono_1/test/score.json").read_text()) for n in (1, 2)]
    whole = json.loads((exp / "all/decode/mono_1/test/score.json").read_text())
    said = [line.split() for part in ("train", "test")
            for line in (corpus / "etc" / f"an4_{part}.transcription").read_text().splitlines()]  # fmt: skip
    assert whole["total"] == sum(part["total"] for part in parts) == sum(
        word not in ("<s>", "</s>") and not word.startswith("(") for words in said for word in words)  # fmt: skip
    assert whole["errors"] == sum(part["errors"] for part in parts)
    for n in (1, 2):
        tables = ((exp / str(n) / "data" / name / "utt2spk").read_text() for name in ("train", "dev", "test"))
        train, dev, test = ({line.split()[1] for line in table.splitlines()} for table in tables)
        assert not test & (train | dev) and not train & dev
    assert (exp / "all" / "RESULTS.md").is_file()
    done = subprocess.run([root / "recipes" / "an4" / "run.sh", "--folds", "two"], capture_output=True, text=True)
    assert done.returncode == 2 and "--folds is 'two', expected a whole number" in done.stderr

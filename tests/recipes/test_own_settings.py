"""Recipes with settings of one's own: --conf, --allow-pipes; folders that no step of ours made."""

import json
import subprocess

import numpy as np
import pytest
import soundfile

RATE = 8000


@pytest.fixture
def data(tmp_path):
    """Two words, which are tones, of four speakers; each recording comes out of a command (synthetic)."""
    rng = np.random.default_rng(0)
    for which, speakers in {"train": "abc", "test": "d"}.items():
        tables = {"wav.scp": [], "text": [], "utt2spk": []}
        (tmp_path / which).mkdir()
        for speaker in speakers:
            for n, (word, hertz) in enumerate([("low", 300), ("high", 1500)] * 4):
                name = f"{speaker}-{n}"
                tone = 4000 * np.sin(2 * np.pi * hertz * np.arange(4000) / RATE) + 200 * rng.standard_normal(4000)
                soundfile.write(tmp_path / f"{name}.wav", tone.astype(np.int16), RATE)
                row = {"wav.scp": f"cat {tmp_path}/{name}.wav |", "text": word, "utt2spk": speaker}
                for table, value in row.items():
                    tables[table].append(f"{name} {value}\n")
        for table, lines in tables.items():
            (tmp_path / which / table).write_text("".join(lines))
    return tmp_path


def run(root, data, *more):
    command = [root / "recipes" / "words" / "run.sh", "--train", data / "train", "--test", data / "test", "--exp",
               data / "exp", "--mix", "1", "--criteria", "ml", "--states", "4", "--nj", "1", *more]  # fmt: skip
    return subprocess.run(list(map(str, command)), capture_output=True, text=True)


def test_pipes_normalisation_and_penalties_are_within_reach(root, data):
    refused = run(root, data, "--stop-stage", 0)
    assert refused.returncode == 1 and "pipe" in refused.stderr
    (data / "my.toml").write_text('[make_mfcc]\ncmvn = "utterance"\n[train_ml]\niterations = 2\npenalties = [-7.5]\n')
    done = run(root, data, "--conf", data / "my.toml", "--allow-pipes", "true")
    assert done.returncode == 0, done.stderr
    assert json.loads((data / "exp/mfcc/train/mfcc.json").read_text())["cmvn"] == "utterance"
    options = json.loads((data / "exp/ml_1/step.json").read_text())["options"]
    assert options["penalties"] == ["-7.5"] and options["iterations"] == 2
    assert "/ 8, " in (data / "exp/decode/ml_1/test/score/wer").read_text()
    wrong = run(root, data, "--allow-pipes", "maybe")
    assert wrong.returncode == 2 and "--allow-pipes is 'maybe', expected true or false" in wrong.stderr


def test_a_stage_takes_any_folder_that_is_whole(root, tmp_path):
    def needs(folder):
        line = f'source {root}/steps/recipe.sh; needs "{folder}" 10 && echo taken'
        return subprocess.run(["bash", "-c", line], capture_output=True, text=True)

    (tmp_path / "empty").mkdir()
    for name in ("absent", "empty"):
        assert "run stage 10 first (--stage 10)" in needs(tmp_path / name).stderr
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "train.npz").write_text("somebody's")
    assert needs(tmp_path / "plain").stdout == "taken\n"
    (tmp_path / "plain" / "started.json").write_text("{}")
    assert needs(tmp_path / "plain").returncode == 1, "a step is at work there, or did not end well"

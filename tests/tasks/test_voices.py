"""Other voices: training with them is training on a folder that holds them."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from contests import feature_folders
from margo.errors import MargoError
from margo.formats import datadir, features
from margo.formats.models import read_model, write_model
from margo.runtime import record
from margo.signal.cepstral_warp import warped_features
from margo.signal.front_end import MfccOptions, describe
from margo.tasks import speech
from margo.tasks.training import VOICES, voiced
from runs import RUNS, go, lists

CEPSTRA = describe(MfccOptions(cepstra=3, energy="none", deltas=0), 8000)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A small task whose three columns are cepstra, as far as their record tells; and ``both``, train with every
    utterance in another voice too."""
    place = feature_folders(tmp_path_factory.mktemp("voices"), train=60)
    for name in ("train", "dev"):
        (place / name / features.RECORD).write_text(json.dumps(CEPSTRA))
    hmms = read_model(place / "ml" / "model.npz")
    write_model(place / "ml" / "model.npz", replace(hmms, meta={**hmms.meta, "features": CEPSTRA}))
    record.write(place / "ml", "train_ml", [], None, {}, ["model.npz"], 0.0, {})

    plain, rows, matrices = speech.read(place / "train"), [], []
    for number, (name, x, words) in enumerate(speech.load(plain.items)):
        voice = warped_features(x, CEPSTRA, VOICES[number % 2])
        for each, sound in ((name, x), (f"{name}-voice", voice)):
            matrices.append((each, sound))
            rows.append(datadir.Utterance(each, each, words))
    folder = place / "both"
    folder.mkdir()
    offsets = features.write_ark(folder / "feats.ark", folder / "feats.scp", matrices)
    datadir.write(folder, [replace(row, feats=f"feats.ark:{offsets[row.name]}") for row in rows])
    (folder / features.RECORD).write_text(json.dumps(CEPSTRA))
    record.write(folder, "make_mfcc", [], None, {}, ["feats.scp", "text"], 0.0, {})
    return place


@pytest.mark.parametrize("name", ["mce", "lme"])
def test_training_with_voices_is_training_on_a_folder_that_holds_them(folders, tmp_path, name):
    same = {"penalties": ("none",), **({"epochs": 3} if name == "lme" else {"iterations": 4})}
    heard, _ = go(folders, tmp_path / "heard", name, voices=("auto",), **same)
    held, _ = go(folders, tmp_path / "held", name, data=folders / "both", **same)
    alone, _ = go(folders, tmp_path / "alone", name, **same)
    for key in ("objective", "train_errors", "frames"):
        assert [each.get(key) for each in heard] == pytest.approx([each.get(key) for each in held], rel=1e-9)
    assert heard[0]["frames"] == 2 * alone[0]["frames"] and heard[0]["objective"] != alone[0]["objective"]
    a, b, c = (read_model(tmp_path / each / "model.npz").pool.means for each in ("heard", "held", "alone"))
    np.testing.assert_allclose(a, b, rtol=1e-9)
    assert not np.allclose(a, c)


def test_lists_of_the_recordings_serve_and_voices_are_searched_for(root, folders, tmp_path):
    found = lists(root, folders, tmp_path / "nbest")
    same = {"penalties": ("none",), "iterations": 2, "voices": ("0.9",)}
    with_lists, _ = go(folders, tmp_path / "a", "mce", nbest=found, **same)
    without, _ = go(folders, tmp_path / "b", "mce", **same)
    assert [each["objective"] for each in with_lists] == [each["objective"] for each in without]


def test_voices_take_turns(folders):
    data = speech.read(folders / "train")
    more = data.with_voices((0.9, 1.1))
    copies = [item for item in more.items if item.warp != 1]
    assert len(copies) == len(data.items) and len({item.name for item in more.items}) == len(more.items)
    assert [item.warp for item in copies] == [0.9, 1.1] * 30
    assert list(more.items) == sorted(more.items, key=lambda item: item.name)
    hmms = read_model(folders / "ml" / "model.npz")
    (_, plain, words), (_, voice, same) = speech.load(more.items[:2], hmms)
    assert words == same
    np.testing.assert_allclose(voice, warped_features(plain, CEPSTRA, 0.9), rtol=1e-6)


def test_features_that_have_no_other_voices(folders):
    said = []
    step = SimpleNamespace(name="train_lme", say=said.append)
    data = speech.read(folders / "train")
    given = replace(data, features={"variant": "given", "dimension": 3})
    assert voiced(given, ("auto",), step) is given and "not plain cepstra" in said[0]
    with pytest.raises(MargoError, match="have no other voices: leave out --voices, or give none"):
        voiced(given, ("0.9",), step)
    assert voiced(data, ("none",), step) is data
    assert len(voiced(data, ("auto",), step).items) == 2 * len(data.items) and len(said) == 1


@pytest.mark.parametrize("voices", [(), ("1",), ("0.4",), ("auto", "0.9"), ("nan",), ("some",)])
def test_voices_that_are_refused(folders, tmp_path, voices):
    with pytest.raises(ValueError, match="--voices is .*, expected numbers from 0.5 to 2, auto or none"):
        RUNS["mce"][1](data=folders / "train", init=folders / "ml", out=tmp_path, voices=voices)

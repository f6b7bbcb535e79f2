"""What steps take: folders of ours that are what their step left, of what is still there; and anybody's."""

import json
import os
import re
import shutil
from dataclasses import replace

import numpy as np
import pytest

from contests import feature_folders
from margo.errors import MargoError
from margo.formats import datadir, features
from margo.formats.models import read_model, write_model
from margo.runtime import record
from margo.runtime.step import Step
from runs import go, lists, run_step

TRAINED = {"iterations": 1, "mixtures": 1, "anneal": 0}


@pytest.fixture(scope="module")
def made(root, tmp_path_factory):
    """A small experiment: features taken in, a model, its lists and its decoding, each by its own step."""
    exp = tmp_path_factory.mktemp("exp")
    plain = feature_folders(tmp_path_factory.mktemp("plain"), train=40)
    for name in ("train", "dev"):
        (plain / name / "step.json").unlink()
        run_step(root, "make_mfcc", exp / "mfcc" / name, data=plain / name)
    data = {"data": exp / "mfcc" / "train", "dev": exp / "mfcc" / "dev"}
    ml(root, exp / "ml_1", data)
    lists(root, exp, exp / "nbest", model="ml_1", data="mfcc/train")
    run_step(root, "decode", exp / "decode" / "ml_1", model=exp / "ml_1", data=(exp / "mfcc" / "dev",))
    return exp


def ml(root, out, data):
    return run_step(root, "train_ml", out, **data, init="", states=2, **TRAINED)


@pytest.fixture
def exp(made, tmp_path):
    """A copy, which is as good as the original."""
    return shutil.copytree(made, tmp_path / "exp")


def score(root, exp):
    return run_step(root, "score", exp / "decode" / "ml_1" / "dev" / "score", hyp=exp / "decode" / "ml_1" / "dev",
                    data=exp / "mfcc" / "dev")  # fmt: skip


def decode(root, exp, out, **options):
    return run_step(root, "decode", out, **{"model": exp / "ml_1", "data": (exp / "mfcc" / "dev",), **options})


def flip(path, place=-3):
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


def edit_text(exp):
    """One word less, in one line."""
    text = exp / "mfcc" / "dev" / "text"
    lines = text.read_text().splitlines(keepends=True)
    longest = max(range(len(lines)), key=lambda n: len(lines[n]))
    lines[longest] = lines[longest].rsplit(maxsplit=1)[0] + "\n"
    text.write_text("".join(lines))


def test_an_experiment_that_was_copied_is_as_good_as_before(root, exp, tmp_path):
    decode(root, exp, tmp_path / "again")
    score(root, exp)
    before = (exp / "decode" / "ml_1" / "dev" / "hyp").read_bytes()
    assert (tmp_path / "again" / "dev" / "hyp").read_bytes() == before
    moved = exp.rename(tmp_path / "elsewhere")
    decode(root, moved, tmp_path / "third")
    assert (tmp_path / "third" / "dev" / "hyp").read_bytes() == before


def test_an_edited_transcript_is_refused(root, exp, tmp_path):
    edit_text(exp)
    with pytest.raises(MargoError, match=r"mfcc/dev is not what make_mfcc left there \(text was changed\).*--stage 1"):
        decode(root, exp, tmp_path / "out")
    with pytest.raises(MargoError, match="text was changed"):
        score(root, exp)


def test_a_flipped_byte_of_the_features_is_refused(root, exp, tmp_path):
    flip(exp / "mfcc" / "dev" / "feats.ark")
    with pytest.raises(MargoError, match=r"feats.ark was changed\).*run stage 1 again \(--stage 1\)"):
        decode(root, exp, tmp_path / "out")


def test_features_of_another_set_are_refused(root, exp, tmp_path):
    for name in ("feats.ark", "feats.scp"):
        shutil.copy2(exp / "mfcc" / "train" / name, exp / "mfcc" / "dev" / name)
    with pytest.raises(MargoError, match="feats.ark was changed, feats.scp was changed"):
        decode(root, exp, tmp_path / "out")


def test_a_swapped_model_is_refused_and_taken_once_it_is_nobodys(root, exp, tmp_path):
    path = exp / "ml_1" / "model.npz"
    hmms = read_model(path)
    write_model(path, replace(hmms, pool=replace(hmms.pool, means=hmms.pool.means + 1)))
    with pytest.raises(MargoError, match=r"ml_1 is not what train_ml left there \(model.npz was changed\)") as error:
        decode(root, exp, tmp_path / "out")
    advice = f"remove {exp / 'ml_1' / 'step.json'} to take it as it is, or run train_ml again, or in a recipe run"
    assert advice in str(error.value)
    (exp / "ml_1" / "step.json").unlink()
    decode(root, exp, tmp_path / "out")


def test_a_folder_of_another_step_is_named_and_no_stage_is_wanting(root, exp, tmp_path):
    """Not "run make_mfcc again" of a folder that make_mfcc left whole, where a model was asked for."""
    (exp / "ml_1").rename(tmp_path / "ml_1")
    shutil.copytree(exp / "mfcc" / "dev", exp / "ml_1")
    with pytest.raises(MargoError) as error:
        decode(root, exp, tmp_path / "out")
    said = "ml_1: no file model.npz; expected a folder of train_ml, this is one of make_mfcc"
    assert str(error.value) == f"{exp}/{said}"


def test_an_edited_hypothesis_is_refused(root, exp):
    hyp = exp / "decode" / "ml_1" / "dev" / "hyp"
    name, *words = hyp.read_text().splitlines()[0].split()
    hyp.write_text(hyp.read_text().replace(name, name + " surplus", 1))
    with pytest.raises(MargoError, match=r"dev/hyp was changed\).*run stage 7 again"):
        score(root, exp)


def test_a_file_that_was_only_touched_is_still_what_it_was(root, exp, tmp_path):
    os.utime(exp / "ml_1" / "model.npz", (1, 1))
    decode(root, exp, tmp_path / "out")


def test_what_was_made_of_other_data_is_out_of_date(root, exp, tmp_path):
    """New data came through stages 0 and 1; the model of stage 2 is the old one."""
    rows = list(datadir.read(exp / "mfcc" / "train"))[:30]
    datadir.write(exp / "mfcc" / "train", rows)
    facts = record.read(exp / "mfcc" / "train")
    record.write(exp / "mfcc" / "train", "make_mfcc", [], None, {}, list(facts["outputs"]), 0.0, {})
    with pytest.raises(MargoError, match=r"ml_1 is out of date \(.*mfcc/train changed .*run stage 2 again"):
        go(exp, tmp_path / "mce", "mce", dev=False, init=exp / "ml_1", data=exp / "mfcc" / "train")
    with pytest.raises(MargoError, match=r"ml_1 is out of date"):
        decode(root, exp, tmp_path / "out")
    Step("recognise", None, []).input(exp / "ml_1", "train_ml", current=False)  # to use it is another matter


def test_a_decoding_by_an_older_model_is_out_of_date(root, exp):
    (exp / "ml_1" / "step.json").unlink()
    shutil.rmtree(exp / "ml_1")
    run_step(root, "train_ml", exp / "ml_1", data=exp / "mfcc" / "train", dev=exp / "mfcc" / "dev", init="", states=3,
             **TRAINED)  # fmt: skip
    with pytest.raises(MargoError, match=r"dev is out of date \(.*ml_1 changed since decode read it\).*--stage 7"):
        score(root, exp)


# -- anybody's folders ------------------------------------------------------------------------------------------------


def strip(exp):
    """Nothing of ours but the files themselves."""
    for path in [*exp.rglob("step.json"), *exp.rglob("step.log"), *exp.rglob("mfcc.json")]:
        path.unlink()
    return exp


def test_plain_folders_and_a_bare_model_give_the_same(root, exp, made, tmp_path):
    theirs = strip(exp)
    shutil.move(theirs / "mfcc" / "dev", theirs / "evaluation set 2")
    bare = shutil.copy(theirs / "ml_1" / "model.npz", tmp_path / "digits.npz")
    ours = made / "decode" / "ml_1" / "dev" / "hyp"
    for model in (bare, theirs / "ml_1"):
        out = tmp_path / model.stem
        decode(root, theirs, out, model=model, data=(theirs / "evaluation set 2",))
        assert (out / "evaluation set 2" / "hyp").read_bytes() == ours.read_bytes()
    run_step(root, "align", tmp_path / "ali", model=bare, data=theirs / "mfcc" / "train")
    ml(root, tmp_path / "ml", {"data": theirs / "mfcc" / "train", "dev": theirs / "evaluation set 2"})
    assert (tmp_path / "ml" / "model.npz").read_bytes() == (made / "ml_1" / "model.npz").read_bytes()


def test_archives_elsewhere_are_part_of_what_a_plain_folder_holds(root, exp, tmp_path):
    theirs = strip(exp) / "mfcc" / "train"
    ark = shutil.move(theirs / "feats.ark", tmp_path / "raw.ark")
    scp = theirs / "feats.scp"
    scp.write_text(re.sub(r" \S*feats\.ark:", f" {ark}:", scp.read_text()))
    before = record.content(theirs)
    flip(ark)
    assert record.content(theirs) != before


def test_plain_lists_must_be_of_the_same_utterances(root, exp, tmp_path):
    strip(exp)
    known = {"init": exp / "ml_1", "dev": False, "data": exp / "mfcc" / "train"}
    go(exp, tmp_path / "a", "mce", nbest=exp / "nbest", **known)
    rows = (exp / "nbest" / "nbest.jsonl").read_text().splitlines(keepends=True)
    (exp / "nbest" / "nbest.jsonl").write_text("".join(rows[1:]))
    with pytest.raises(MargoError, match="train000: no list"):
        go(exp, tmp_path / "b", "mce", nbest=exp / "nbest", **known)


def test_a_run_goes_on_where_its_experiment_was_moved(exp, tmp_path, monkeypatch):
    """Inputs are known by what they hold: the same command in another place finds its own state."""
    for name in ("train", "dev"):
        (exp / "mfcc" / name).rename(exp / name)
    strip(exp)
    go(exp, exp / "mce", "mce", init=exp / "ml_1", stop_after=3, monkeypatch=monkeypatch)
    go(exp, tmp_path / "whole", "mce", init=exp / "ml_1")
    moved = exp.rename(tmp_path / "moved")
    reports, _ = go(moved, moved / "mce", "mce", init=moved / "ml_1")
    assert (moved / "mce" / "model.npz").read_bytes() == (tmp_path / "whole" / "model.npz").read_bytes()
    assert "resuming after iteration 3" in (moved / "mce" / "step.log").read_text()


def test_other_contents_in_the_same_place_are_another_run(exp, monkeypatch):
    for name in ("train", "dev"):
        (exp / "mfcc" / name).rename(exp / name)
    strip(exp)
    go(exp, exp / "mce", "mce", init=exp / "ml_1", stop_after=3, monkeypatch=monkeypatch)
    place = next(iter(features.read_scp(exp / "train").values()))
    flip(exp / "train" / "feats.ark", place[1] + 30)
    assert np.isfinite(features.read_matrix(place)).all()
    with pytest.raises(MargoError, match="an unfinished run with other settings: input --data is not what it was"):
        go(exp, exp / "mce", "mce", init=exp / "ml_1")


def test_a_record_may_lack_anything(tmp_path):
    for held in ("{}", "[]", "nothing", '{"status": "ok", "outputs": []}', '{"status": "ok", "inputs": {"a": 3}}'):
        (tmp_path / "step.json").write_text(held)
        assert record.unfinished(tmp_path) or not record.altered(tmp_path)
    (tmp_path / "step.json").write_text(json.dumps({"status": "ok", "outputs": {"../x": "1", "/dev/zero": "2"}}))
    assert not record.altered(tmp_path), "what lies outside is not even looked at"

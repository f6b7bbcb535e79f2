"""Nothing outside the folder to write is written or removed, whatever names come from data and from others' records."""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from contests import feature_folders
from margo.errors import MargoError
from margo.formats import datadir, features
from margo.formats.atomic import LONGEST, SUFFIX, file_name
from margo.runtime.lock import at_work, holder
from margo.runtime.step import Step
from runs import run_step


def test_only_what_a_killed_run_was_writing_is_removed(tmp_path):
    ours = [tmp_path / f".model.npz.abc{SUFFIX}", tmp_path / "inner" / f".hyp.abc{SUFFIX}"]
    theirs = [tmp_path / ".notes.tmp", tmp_path / "inner" / ".x.tmp", tmp_path / "other" / f".feats.ark.abc{SUFFIX}"]
    for path in [*ours, *theirs]:
        path.parent.mkdir(exist_ok=True)
        path.touch()
    (tmp_path / "other" / "started.json").touch()  # another step is at work there
    step = Step("do_things", type("Options", (), {"out": tmp_path})(), [])
    step.begin()
    assert not any(path.exists() for path in ours) and all(path.exists() for path in theirs)


def test_outputs_stay_in_the_folder(tmp_path):
    step = Step("do_things", type("Options", (), {"out": tmp_path / "out"})(), [])
    for name in ("../x", "/x", "a/../../x"):
        with pytest.raises(MargoError, match="leads out of"):
            step.output(name)


@pytest.mark.parametrize("name", ["started.json", "step.log"])
def test_what_a_step_keeps_open_is_no_link_and_no_pipe(name, tmp_path):
    outside, out = tmp_path / "theirs", tmp_path / "out"
    outside.write_text("theirs")
    out.mkdir()
    (out / name).symlink_to(outside)
    with pytest.raises(MargoError, match=f"{name}: is a link"):
        Step("do_things", type("Options", (), {"out": out})(), []).begin()
    assert outside.read_text() == "theirs"
    (out / name).unlink()
    os.mkfifo(out / name)
    with pytest.raises(MargoError, match=f"{name}: is a link, a pipe"):
        Step("do_things", type("Options", (), {"out": out})(), []).begin()
    if name == "started.json":
        assert holder(out) == {} and not at_work(out)


def test_names_from_data_are_names_of_one_file():
    assert file_name("man.ah-1_2") == "man.ah-1_2" and file_name("über") == "über"
    odd = ["../../x", "..", ".", "a/b", "a%2Fb", "*", "x" * 500, "x" * 501, "é" * 300, ".hidden"]
    names = [file_name(each) for each in odd]
    assert len({*names}) == len(odd)
    for name in names:
        assert name == Path(name).name and not name.startswith(".") and len(name.encode()) <= LONGEST


def test_an_utterance_named_like_a_path_gets_its_textgrid_in_the_folder(root, tmp_path):
    place = feature_folders(tmp_path, train=3)
    rows = [replace(row, name=f"../../../{row.name}") for row in datadir.read(place / "train")]
    places = features.read_scp(place / "train")
    matrices = [(row.name, features.read_matrix(places[Path(row.name).name])) for row in rows]
    folder = tmp_path / "odd"
    folder.mkdir()
    offsets = features.write_ark(folder / "feats.ark", folder / "feats.scp", matrices)
    datadir.write(folder, [replace(row, feats=f"feats.ark:{offsets[row.name]}") for row in rows])
    out = tmp_path / "deep" / "er" / "out"
    run_step(root, "align", out, model=place / "ml", data=folder, textgrid="true")
    assert sorted(path.name for path in (out / "textgrid").iterdir())[0] == "%2E.%2F..%2F..%2Ftrain000.TextGrid"
    assert not list(tmp_path.rglob("train000.TextGrid"))


def test_speakers_named_like_paths_are_left_out_in_folders_of_their_own(root, tmp_path):
    train, exp = tmp_path / "train", tmp_path / "exp"
    train.mkdir()
    (train / "any.wav").touch()
    speakers = ["../x", "*", "all", "ann", "bob\tby"]
    rows = [datadir.Utterance(f"u{s}{n}", who.split()[0], ("one", "two")[n % 2 :], str(train / "any.wav"))
            for s, who in enumerate(speakers) for n in range(4)]  # fmt: skip
    datadir.write(train, rows)
    command = [root / "recipes" / "words" / "run.sh", "--train", train, "--leave-out", "each", "--exp", exp,
               "--stop-stage", "0"]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in exp.iterdir()) == ["%2E.%2Fx", "%61ll", "*", "ann", "bob"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["exp", "train"]
    heard = {row.speaker for row in datadir.read(exp / "*" / "data" / "test")}
    assert heard == {"*"}

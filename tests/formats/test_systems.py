"""The table of systems: what it tells, what it refuses, and that the shipped one holds."""

import subprocess
import sys

import pytest

from margo.errors import MargoError
from margo.formats.systems import SHIPPED, read_systems, system_of

ROW = """
[system.mine]
label = "mine"
what = "a system of my own"
family = "hmm"
stage = 5
step = "train_mmi"
start = "ml"
"""


@pytest.fixture
def write(tmp_path):
    def to_file(text):
        path = tmp_path / "systems.toml"
        path.write_text(text)
        return path

    return to_file


def test_the_shipped_table_tells_of_every_system():
    systems = read_systems()
    names = list(systems.rows)
    for first, then in (("ml", "mce"), ("mce", "lme-sdp"), ("svm-llr-init", "svm-llr"), ("gmm-ml", "hybrid-cll")):
        assert names.index(first) < names.index(then) and systems.rank(first) < systems.rank(then)
    assert systems.rank("no such") == len(names) and systems.label("no such") == "no such"
    assert [systems.rows[name].start for name in ("ml", "mce", "lme-sdp", "lme-sdp-ml")] == ["ml", "ml", "mce", "ml"]
    assert systems.rows["svm-llr"].start == "svm-llr-init" and not systems.rows["svm-llr-init"].step
    assert list(systems.stages) == list(range(9))
    assert len({row.what for row in systems.rows.values()}) == len({row.label for row in systems.rows.values()})
    assert len({row.label for row in systems.rows.values()}) == len(names)


def test_every_trainer_has_the_options_of_its_systems(root):
    for step in {row.step for row in read_systems().rows.values() if row.step}:
        done = subprocess.run([sys.executable, root / "steps" / f"{step}.py", "--help"], capture_output=True, text=True)
        for row in read_systems().rows.values():
            if row.step == step:
                assert all(word in done.stdout for word in row.words if word.startswith("--")), row.name


@pytest.mark.parametrize(
    "folder, made_by, stage",
    [
        ("exp/mce_1", "train_ml", 4),
        ("exp/lme-sdp_32", "train_ml", 6),
        ("exp/ml_1", "train_ml", 2),
        ("exp/ali/ml_1", "align", 3),
        ("exp/decode/mce_1/test", "decode", 7),
        ("exp/0/gmm-cl_12", "train_gmm", 11),
        ("exp/somewhere", "train_mce", 4),
        ("exp/somewhere", "train_tea", None),
    ],
)
def test_the_stage_that_makes_a_folder(folder, made_by, stage):
    assert read_systems().stage_of(folder, made_by) == stage


def test_rows_are_added_and_replaced(write, tmp_path, monkeypatch):
    (tmp_path / "train_mine.py").touch()
    replaced = ROW.replace("mine]", "mmi]") + "options = { a_b = [true, 2] }"
    path = write(ROW.replace("train_mmi", "train_mine.py") + replaced)
    systems = read_systems(path)
    assert systems.rows["mine"].step == str(tmp_path / "train_mine.py")
    assert systems.rows["mmi"].what == "a system of my own" and systems.rows["mmi"].words == ["--a-b", "true", "2"]
    assert systems.rank("mmi") == read_systems().rank("mmi") and systems.rank("mine") == len(systems.rows) - 1
    monkeypatch.setenv("MARGO_SYSTEMS", str(path))
    assert read_systems() == systems


@pytest.mark.parametrize(
    "old, new, says",
    [
        ('"ml"', '"mlx"', "mine: starts from mlx, of which no row tells"),
        ('"ml"', '"lme-sdp"', "mine: starts from lme-sdp, which is trained later"),
        ("stage = 5", "stage = 9", "mine: stage is 9, expected one of 0 1 2"),
        ("stage = 5", 'stage = "5"', "mine: stage is '5', expected int"),
        ("stage = 5", "", "mine: no stage"),
        ('"hmm"', '"him"', "mine: family is him, expected hmm, phone, speaker, gmm"),
        ('"train_mmi"', '"train_mine.py"', "mine: step is train_mine.py: no file"),
        ('"train_mmi"', '"train_tea"', "mine: step is train_tea: no file"),
        ("start =", "begin =", "mine: no key begin; there are name, label"),
        ("stage = 5", 'stage = 5\noptions = { way = "a b" }', "mine: options: way is 'a b'"),
        ("stage = 5", 'stage = 5\nreads = ["tea"]', "mine: reads is ['tea']"),
        ("system.mine", "systems.mine", "systems: expected [[stage]] and [system.NAME]"),
        ("[system.mine]", "[system.mine", "cannot be read as TOML"),
    ],
)
def test_what_is_refused(write, old, new, says):
    with pytest.raises(MargoError) as error:
        read_systems(write(ROW.replace(old, new)))
    assert says in str(error.value) and "systems.toml" in str(error.value)


def test_names_of_model_folders():
    assert system_of("a/ml_1") == ("ml", 1) and system_of("phones") == ("phones", None)
    assert system_of("_1") == ("_1", None) and system_of("lme_sdp") == ("lme_sdp", None)
    assert SHIPPED.is_file()

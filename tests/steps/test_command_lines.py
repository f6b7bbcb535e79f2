"""Every step and local program by its command line: its help, its example, the configuration files that speak to it."""

import re
import runpy
import shlex
import subprocess
import sys
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

from margo.knobs import Knobs
from margo.runtime.options import parse, read_table

ROOT = Path(__file__).parents[2]
PROGRAMS = {path.stem: path for folder in ("local", "steps") for path in sorted((ROOT / folder).glob("*.py"))}
SHOWN = [path for path in PROGRAMS.values() if not path.stem.startswith("mini_")]
SLOW = {"sklearn", "cvxpy", "pandas", "matplotlib", "librosa", "optuna"}  # to load at every start
NO_CONF = {"systems"}  # tables of conf/ that are no settings of steps are named _phones, _classes, _speakers


@pytest.fixture(scope="module")
def modules():
    return {path.stem: runpy.run_path(str(path)) for path in SHOWN}


@pytest.mark.parametrize("name", [path.stem for path in SHOWN])
def test_every_step_shows_an_example_that_its_own_parser_takes(name, modules, monkeypatch):
    monkeypatch.chdir(ROOT)
    program, *argv = shlex.split(modules[name]["__doc__"].partition("\nExample: ")[2])
    assert program == str(PROGRAMS[name].relative_to(ROOT))
    options = parse(name, modules[name]["__doc__"], modules[name]["Options"], argv, PROGRAMS)
    assert isinstance(options, Knobs)


def test_help_of_every_program_is_quick_to_show():
    """No package that is slow to load is loaded for it; one process shows them all."""
    code = f"""
import runpy, sys
for path in {list(map(str, SHOWN))!r}:
    sys.argv = [path, "--help"]
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit as end:
        assert not end.code, path
    slow = {SLOW!r} & sys.modules.keys()
    assert not slow, f"{{path}} loads {{slow}}"
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count("usage: ") == ended.stdout.count("\nrunning:\n") == len(SHOWN)
    shown = {text.split()[1]: text for text in ended.stdout.split("usage: margo ")[1:] for text in [f"margo {text}"]}
    for name in ("align", "train_correction"):
        assert "\ntraining:\n" not in shown[name], f"{name} trains nothing"
    for path in SHOWN:  # as people call it, from a wheel, too, which shows them no folder of steps
        assert f"usage: margo {path.stem} " in ended.stdout and f"\nexample:\n  margo {path.stem} " in ended.stdout


def test_the_configuration_files_hold_what_steps_have():
    checked = 0
    for path in sorted((ROOT / "conf").glob("*.toml")):
        if path.stem in NO_CONF or re.search("_(phones|classes|speakers)$", path.stem):
            continue
        for table, held in tomllib.loads(path.read_text()).items():
            _, faults = read_table(path, table, held, runpy.run_path(str(PROGRAMS[table]))["Options"])
            assert not faults
            checked += 1
    assert checked >= 8


def test_every_option_is_a_knob_whose_needs_are_options_too(modules):
    for name, module in modules.items():
        names = {each.name for each in fields(module["Options"])}
        for each in fields(module["Options"]):
            assert each.metadata.get("help"), f"{name}: {each.name} has no help"
            assert each.metadata.get("needs", {}).keys() <= names, f"{name}: {each.name} needs what is not there"


def test_a_misspelt_table_ends_a_real_step_before_it_writes(tmp_path):
    (tmp_path / "c.toml").write_text("[train_mmce]\nslope = 1\n")
    (tmp_path / "d.toml").write_text("[train_mce]\nslop = 1\n")
    told = {"c": "[train_mmce] (nearest: train_mce)", "d": "[train_mce] has no option slop (nearest: slope)"}
    for conf, says in told.items():
        argv = ["--model", "m", "--data", "d", "--out", tmp_path / "out", "--conf", tmp_path / f"{conf}.toml"]
        ended = subprocess.run([sys.executable, ROOT / "steps" / "decode.py", *argv], capture_output=True, text=True)
        assert ended.returncode == 2 and says in ended.stderr and ended.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


TRAIN = "--data d --out o"
IDLE = [
    ("train_ml", f"{TRAIN} --penalties 0 -4", "--penalties needs --dev"),
    ("train_mce", f"{TRAIN} --init m --scales 2", "--scales needs --dev"),
    ("train_mmi", f"{TRAIN} --init m --dev v --penalties auto -4", "--penalties is auto -4, expected numbers, auto or"),
    ("train_mm", f"{TRAIN} --init m --dev v --penalties some", "--penalties is some, expected numbers, auto or none"),
    ("train_lme", f"{TRAIN} --init m --dev v --scales 0 1", "--scales is 0 1, expected more than 0"),
    ("train_ml", f"{TRAIN} --init m --grammar loop --states 4", "--states does nothing with --init; --grammar does"),
    ("train_ml", f"{TRAIN} --grammar isolated --insertion-penalty 1", "needs --grammar auto or loop or bigram"),
    ("train_ml", f"{TRAIN} --grammar loop --scale 2", "--scale needs --grammar bigram"),
    ("train_ml", f"{TRAIN} --labels l", "--labels needs --start labels"),
    ("train_lme", f"{TRAIN} --init m --misrecognised true", "--misrecognised needs --hard"),
    ("train_lme", f"{TRAIN} --init m --hard true --nu 0.5", "--nu does nothing with --hard"),
    ("sweep_radius", f"{TRAIN} --init m --radius 0.1", "no option --radius (nearest: --radii)"),
    ("sweep_radius", f"{TRAIN} --init m --average 4", "no option --average"),
    ("sweep_radius", f"{TRAIN} --init m --patience 4", "no option --patience"),
    ("sweep_radius", f"{TRAIN} --init m --hard true --nu 0.5", "--nu does nothing with --hard"),
    ("score", "--hyp h --data d --map-table to39", "--map-table needs --map"),
    ("compare", "a b --data d", "--data needs --by speaker"),
    ("make_mfcc", f"{TRAIN} --cmvn-variance true", "--cmvn-variance needs --cmvn utterance or speaker"),
]


@pytest.mark.parametrize("name, line, says", IDLE)
def test_no_option_is_silently_without_effect(name, line, says, modules, capsys):
    with pytest.raises(SystemExit) as stopped:
        parse(name, "", modules[name]["Options"], line.split(), PROGRAMS)
    assert stopped.value.code == 2 and says in capsys.readouterr().err


@pytest.mark.parametrize(
    "line", ["--states 4 --silence-states 3", "--init m --conf conf/timit.toml --dev v", "--init m --mixtures 2",
             "--init m --insertion-penalty -4", "--dev v --penalties -60 -40.5 0 --scales auto"]
)
def test_what_recipes_ask_of_train_ml_is_taken(line, modules, monkeypatch):
    monkeypatch.chdir(ROOT)
    parse("train_ml", "", modules["train_ml"]["Options"], f"{TRAIN} {line}".split(), PROGRAMS)

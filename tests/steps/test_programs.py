"""What holds of all programs: steps and local ones share code only through lib, and conf sets only what differs."""

import ast
import dataclasses
import importlib.util
import sys
import tomllib
from pathlib import Path

import pytest

from margo.formats.systems import read_systems

ROOT = Path(__file__).parents[2]
PROGRAMS = {path.stem: path for folder in ("local", "steps") for path in sorted((ROOT / folder).glob("*.py"))}
# The generator of the embedded corpora is one program in three files: its voice is under another licence than lib.
PARTS = {"mini_corpus": {"mini_labels", "mini_voice"}}
DATA = {"systems", "timit_phones", "timit_classes", "timit_speakers"}  # not settings of steps
WHOLE = {"mfcc", "mfcc_kaldi"}  # tell of a whole front end, be it the default or not
SETTINGS = sorted(path for path in (ROOT / "conf").glob("*.toml") if path.stem not in DATA)


def siblings(name: str, source: str) -> set[str]:
    """Programs that the program ``name`` imports or runs by their name."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {(node.module or "").split(".")[0], *(alias.name for alias in node.names if not node.module)}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.endswith(".py"):
            names.add(Path(node.value).stem)
    return (names & PROGRAMS.keys()) - PARTS.get(name, set()) - {name}


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_programs_share_code_only_through_lib(name):
    assert siblings(name, PROGRAMS[name].read_text()) == set()


@pytest.mark.parametrize("source", ["import decode", "from . import decode", "from decode import x", "go('decode.py')"])
def test_code_taken_from_another_program_is_seen(source):
    assert siblings("score", source) == {"decode"}


def options_of(name: str):
    spec = importlib.util.spec_from_file_location(f"program_{name}", PROGRAMS[name])
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return {field.name: field.default for field in dataclasses.fields(module.Options)}


@pytest.mark.parametrize("path", SETTINGS, ids=lambda path: path.stem)
def test_every_key_of_conf_is_an_option_and_changes_something(path):
    for name, table in tomllib.loads(path.read_text()).items():
        defaults = options_of(name)
        assert table.keys() <= defaults.keys()
        given = {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}
        idle = [key for key, value in given.items() if defaults[key] == value]
        assert idle == [] or path.stem in WHOLE, f"[{name}] sets {idle} to what they are"


def test_lists_hold_more_strings_than_trainers_set_against_an_utterance():
    readers = {row.step for row in read_systems().rows.values() if "nbest" in row.reads}
    assert {"train_mce", "train_mm"} <= readers
    for path in SETTINGS:
        settings = tomllib.loads(path.read_text())
        n = settings.get("nbest", {}).get("n", options_of("nbest")["n"])
        for step in readers:
            assert n > settings.get(step, {}).get("competitors", options_of(step)["competitors"]), (path.name, step)

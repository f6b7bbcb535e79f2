"""The recipe runner: options, stages, and failures that tell what to do."""

import subprocess
import sys

import pytest


@pytest.fixture
def tidigits(root):
    def call(*arguments, cwd=None):
        command = [root / "recipes" / "tidigits" / "run.sh", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, cwd=cwd)

    return call


@pytest.mark.parametrize(
    "arguments, says",
    [
        (["--colour", "red"], "unknown option '--colour'"),
        (["--stage"], "option '--stage' needs a value"),
        (["--stage", "--nj", "2"], "option '--stage' needs a value"),
        (["--stage", "x"], "--stage is 'x'"),
        (["--stage", "50"], "--stage is 50, expected one of 0 1 2"),
        (["--stop-stage", "-1"], "--stop-stage is '-1'"),
        (["--stage", "3", "--stop-stage", "2"], "no stage from 3 to 2"),
        (["--nj", "0"], "--nj is '0'"),
        (["--seed", "one"], "--seed is 'one'"),
        (["--partial", "yes"], "--partial is 'yes'"),
        (["--mix", "1 x"], "--mix has 'x'"),
        (["--mix", ""], "--mix is empty"),
        (["--criteria", "ml foo"], "--criteria has 'foo', expected some of: ml mce"),
        (["--criteria", " "], "--criteria is empty"),
        (["--corpus", "/no/such/corpus"], "no such file or folder"),
        (["stage", "2"], "unexpected argument 'stage'"),
    ],
)
def test_a_wrong_command_line_exits_2_with_one_line(tidigits, arguments, says):
    done = tidigits(*arguments)
    assert done.returncode == 2 and says in done.stderr and done.stderr.count("\n") == 1


def test_a_stage_without_what_it_needs_names_the_stage_to_run_from_any_directory(tidigits, tmp_path):
    done = tidigits("--stage", 2, "--stop-stage", 2, "--exp", tmp_path / "exp", cwd=tmp_path)
    assert done.returncode == 1
    assert "run stage 1 first" in done.stderr and "resume with --stage 2" in done.stderr


def test_help_prints_the_header_and_runs_nothing(tidigits, tmp_path):
    done = tidigits("--help", cwd=tmp_path)
    assert done.returncode == 0 and "--corpus DIR" in done.stdout and "#" not in done.stdout
    assert not list(tmp_path.iterdir())


RECIPES = ("tidigits", "isolet", "words", "timit", "deterding", "gaussians", "spirals", "digits")


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_has_help_and_is_short(root, name):
    script = root / "recipes" / name / "run.sh"
    done = subprocess.run([script, "--help"], capture_output=True, text=True)
    assert done.returncode == 0 and f"recipes/{name}/run.sh" in done.stdout
    lines = script.read_text().splitlines()
    assert len(lines) <= 90
    assert not [line for line in lines if not line.startswith("#") and {"sed", "awk"} & set(line.split())]


def imports_of_help(path) -> dict[str, int]:
    """Microseconds spent on each module that ``--help`` of a step imports."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", path, "--help"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("usage: "), path
    rows = [line.removeprefix("import time:").split("|") for line in done.stderr.splitlines() if line.count("|") == 2]
    return {row[2].strip(): int(row[0]) for row in rows if row[0].strip().isdigit()}


def test_help_of_every_step_imports_little(root):
    for path in sorted([*root.glob("steps/*.py"), *root.glob("local/*_data.py")]):
        imported = imports_of_help(path)
        heavy = imported.keys() & {"numba", "scipy", "librosa", "cvxpy", "sklearn", "pandas", "matplotlib", "optuna"}
        assert not heavy, f"{path.name} --help imports {heavy}"
        seconds = sum(imported.values()) / 1e6
        if seconds > 0.5:  # a busy machine? the quicker of two looks counts
            seconds = min(seconds, sum(imports_of_help(path).values()) / 1e6)
        assert seconds < 0.5, f"{path.name} --help spends {seconds:.2f} s on imports"

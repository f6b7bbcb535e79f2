"""The recipe runner: options, stages, and failures that tell what to do."""

import subprocess
import sys
from pathlib import Path

import pytest

from margo.runtime import lock


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
        (["--conf", "/no/such.toml"], "--conf /no/such.toml: no such file"),
        (["--corpus", "/no/such/corpus"], "no such file or folder"),
        (["--protocol", "papers"], "--protocol is 'papers', expected default or paper"),
        (["--radii", "0.1 x"], "--radii is '0.1 x', expected numbers"),
        (["--stage", "9"], "stage 9 needs --radii"),
        (["--systems", "/no/such.toml"], "/no/such.toml: no such file"),
        (["stage", "2"], "unexpected argument 'stage'"),
    ],
)
def test_a_wrong_command_line_exits_2_with_one_line(tidigits, arguments, says):
    done = tidigits(*arguments)
    assert done.returncode == 2 and says in done.stderr and done.stderr.count("\n") == 1


def test_settings_of_all_steps_are_checked_before_any_runs(tidigits, tmp_path):
    (tmp_path / "my.toml").write_text("[decode]\nbeem = 3\n[train_lem]\nr2 = 1\n")
    done = tidigits("--conf", tmp_path / "my.toml", "--exp", tmp_path / "exp")
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and not (tmp_path / "exp").exists()
    assert "[decode] has no option beem (nearest: beam); " in done.stderr
    assert "no step is called [train_lem] (nearest: " in done.stderr


def test_a_second_run_in_a_folder_is_refused_before_it_writes(tidigits, tmp_path):
    """Another run that is at work there, or another recipe's, whose corpus it would replace."""
    folder = tmp_path / "exp" / "ml_1"
    folder.mkdir(parents=True)
    held = lock.take(folder, "train_ml", ["--out", "ml_1"])
    done = tidigits("--exp", tmp_path / "exp")
    assert done.returncode == 2 and "train_ml --out ml_1 (process " in done.stderr and done.stderr.count("\n") == 1
    lock.release(folder, held)
    marker = tmp_path / "exp" / "corpus" / "margo-synthetic.json"
    marker.parent.mkdir()
    marker.write_text('{"corpus": "isolet"}')
    done = tidigits("--exp", tmp_path / "exp")
    assert done.returncode == 2 and "another recipe" in done.stderr and "give another --exp" in done.stderr
    assert marker.read_text() == '{"corpus": "isolet"}' and [*marker.parent.iterdir()] == [marker]


def test_a_stage_without_what_it_needs_names_the_stage_to_run_from_any_directory(tidigits, tmp_path):
    done = tidigits("--stage", 2, "--stop-stage", 2, "--exp", tmp_path / "exp", cwd=tmp_path)
    assert done.returncode == 1
    assert "run stage 1 first" in done.stderr and "resume with --stage 2" in done.stderr


@pytest.mark.parametrize(
    "criteria, says",
    [
        ("ml lme-sdp", "lme-sdp starts from mce and ml: add mce to --criteria, or use lme-sdp-ml, which starts from "
                       "ml"),  # fmt: skip
        ("ml lme-gd", "lme-gd starts from mce: add mce to --criteria, or use lme-gd-ml, which starts from ml"),
        ("mmi", "mmi starts from ml: add ml to --criteria"),
        ("lme-sdp-paper", "lme-sdp-paper starts from mce: add ml and mce to --criteria"),
    ],
)
def test_a_system_whose_start_is_not_trained_is_refused_at_once(tidigits, tmp_path, criteria, says):
    """It is never trained from another model under the same name."""
    done = tidigits("--exp", tmp_path / "exp", "--criteria", criteria)
    assert done.returncode == 2 and done.stderr == f"tidigits: {says}\n" and not (tmp_path / "exp").exists()


def test_a_start_that_is_trained_already_will_do(tidigits, tmp_path):
    for m in (1, 2):
        (tmp_path / f"mce_{m}").mkdir()
        (tmp_path / f"mce_{m}" / "step.json").write_text('{"status": "ok", "outputs": {}}')
    arguments = ["--exp", tmp_path, "--criteria", "ml lme-sdp", "--stage", 6, "--stop-stage", 6]
    done = tidigits(*arguments, "--mix", "1 2")
    assert done.returncode == 1 and "stage 6: LME (lme-sdp)" in done.stderr and "mfcc/train" in done.stderr
    assert tidigits(*arguments, "--mix", "1 2 4").returncode == 2  # not with so many mixtures


def test_stages_of_systems_that_are_not_wanted_do_not_run(tidigits, tmp_path):
    """And a command line that has nothing at all to do is wrong, and says why."""
    for last, stages in ((4, "stage 4"), (6, "stages 4 to 6")):
        done = tidigits("--exp", tmp_path / "exp", "--criteria", "ml", "--stage", 4, "--stop-stage", last)
        assert done.returncode == 2 and not (tmp_path / "exp").exists()
        assert done.stderr == f"tidigits: nothing to do: no system of --criteria (ml) belongs to {stages}\n"


def test_a_protocol_that_a_recipe_has_not_is_refused(root):
    done = subprocess.run([root / "recipes/spirals/run.sh", "--protocol", "paper"], capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr == "spirals: --protocol is 'paper', expected default\n"


@pytest.mark.parametrize(
    "stage, lacking, first", [(10, "data", 0), (11, "tables/ma+fe-4", 10), (12, "tables/phones", 10)]
)
def test_stages_of_a_recipes_own_name_the_stage_that_makes_what_they_read(root, tmp_path, stage, lacking, first):
    command = [root / "recipes/timit/run.sh", "--exp", tmp_path, "--stage", str(stage), "--stop-stage", str(stage)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.splitlines()[1:] == [
        f"timit: {tmp_path / lacking} is not complete: run stage {first} first (--stage {first})",
        f"timit: stage {stage} failed (exit 1), for the reason given above; resume with --stage {stage}",
    ]


@pytest.mark.parametrize("arguments, says", [
    (["--classifiers", "no"], "--classifiers is 'no', expected true or false"),
    (["--classifiers", "false", "--stage", "10", "--stop-stage", "12"],
     "nothing to do: --classifiers false leaves out stages 10 to 13"),
])  # fmt: skip
def test_classifiers_of_timit_can_be_left_out(root, tmp_path, arguments, says):
    command = [root / "recipes/timit/run.sh", "--exp", tmp_path / "exp", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr == f"timit: {says}\n" and not (tmp_path / "exp").exists()
    beyond = [*command[:3], "--classifiers", "false", "--criteria", "mono tri", "--stage", "10", "--stop-stage", "20"]
    done = subprocess.run(beyond, capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.startswith("== timit: stage 20: phones in context (tri)\n")


def test_help_prints_the_header_and_runs_nothing(tidigits, tmp_path):
    done = tidigits("--help", cwd=tmp_path)
    assert done.returncode == 0 and "--corpus DIR" in done.stdout and "#" not in done.stdout
    assert not list(tmp_path.iterdir())


SCRIPTS = sorted((Path(__file__).parents[2] / "recipes").glob("*/run.sh"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.parent.name)
def test_every_recipe_has_help_and_is_short(script):
    done = subprocess.run([script, "--help"], capture_output=True, text=True)
    assert done.returncode == 0 and f"recipes/{script.parent.name}/run.sh" in done.stdout
    assert "\nStages:\n  0  data\n" in done.stdout and "\nSystems of --criteria:\n" in done.stdout
    text = script.read_text()
    speech = "steps/speech.sh" in text
    assert len(text.splitlines()) <= (40 if speech else 75)
    assert not speech or "train_ml" not in text and "decode" not in text.replace("/decode/", "")
    for shell in [*script.parent.glob("*.sh"), *script.parents[2].glob("steps/*.sh")]:
        words = [line.split() for line in shell.read_text().splitlines() if not line.lstrip().startswith("#")]
        assert not [line for line in words if {"sed", "awk", "eval"} & set(line)], shell


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.parent.name)
def test_every_recipe_takes_the_systems_it_says_it_does(script, tmp_path):
    """Its help lists them; the default ones have their starts among them; another is refused."""
    told = subprocess.run([script, "--help"], capture_output=True, text=True).stdout
    names = [line.split()[0] for line in told.partition("Systems of --criteria:\n")[2].splitlines()]
    assert names
    for criteria in ([], ["--criteria", " ".join(names)]):  # gets as far as what is looked at after the systems
        command = [script, "--exp", tmp_path, *criteria, "--partial", "perhaps"]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 2 and "--partial is 'perhaps'" in done.stderr
    done = subprocess.run([script, "--exp", tmp_path, "--criteria", "tea"], capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.endswith(f"--criteria has 'tea', expected some of: {' '.join(names)}\n")


def test_what_every_recipe_begins_with_imports_no_compiler(root):
    check = "import runpy, sys; runpy.run_path(sys.argv[1]); sys.exit(bool({'numpy', 'numba'} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", check, root / "steps" / "plan.py"]).returncode == 0


def test_the_command_of_a_report_repeats_the_whole_run(root):
    script = ("""source "$1/steps/recipe.sh"; stages=([2]=a [12]=b); offers=gmm criteria=gmm-ml\n"""
              """parse_options "${@:2}"; echo "$invocation" """)  # fmt: skip
    words = ["--stage", "2", "--exp", "my exp", "--stop-stage", "12"]
    done = subprocess.run(["bash", "-c", script, root / "recipes/spirals/run.sh", root, *words],
                          capture_output=True, text=True)  # fmt: skip
    assert done.stdout == 'recipes/spirals/run.sh --exp "my exp" --stop-stage 12\n', done.stderr

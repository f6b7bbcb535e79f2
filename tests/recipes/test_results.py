"""The command printed in each RESULTS file is one that its recipe takes."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted(ROOT.glob("recipes/*/RESULTS*.md"))


def commands(text: str) -> list[str]:
    """The lines of the first block of code: how the file was made."""
    return text.split("```")[1].strip().splitlines()


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_the_command_in_a_file_of_results_is_one_that_its_recipe_takes(path):
    """Every option of it is parsed, up to --help, which shows the options and trains nothing."""
    said = commands(path.read_text())
    assert any(line.startswith(f"recipes/{path.parent.name}/") for line in said)
    for line in said:
        words = shlex.split(line)
        if not words[0].endswith("/run.sh"):
            continue
        done = subprocess.run([ROOT / words[0], *words[1:], "--help"], capture_output=True, text=True)
        assert done.returncode == 0 and "Stages:" in done.stdout, done.stderr
        assert not re.search(r"(^|\s)/(home|tmp|work|root)/", line)  # of somebody's own machine


def test_an_option_that_is_no_more_is_seen():
    done = subprocess.run([ROOT / "recipes/digits/run.sh", "--depth", "3", "--help"], capture_output=True, text=True)
    assert done.returncode == 2 and "unknown option '--depth'" in done.stderr

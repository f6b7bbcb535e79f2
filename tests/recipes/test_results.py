"""The command printed in each RESULTS file is one that its recipe takes, and makes what stands there."""

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


def systems_in(text: str) -> dict[str, set[int]]:
    """The numbers of mixtures of every system in the tables of test sets."""
    found: dict[str, set[int]] = {}
    for section in re.split("^## ", text, flags=re.M):
        if re.match("Test set.*rate|Test set.*error", section):
            for line in section.splitlines():
                cells = [cell.strip() for cell in line.split("|")]
                if len(cells) > 3 and cells[2].isdigit():
                    found.setdefault(cells[1], set()).add(int(cells[2]))
    return found


def asked(told: str) -> tuple[list[str], set[int] | None]:
    """Systems and numbers of mixtures that a recipe's --help names behind the options of a command."""
    systems = re.search(r"systems to train, score and report \(([^)]*)\)", told)[1].split()
    mixtures = re.search(r'^  --mix "([^"]*)"', told, re.M)
    return systems, {int(word) for word in mixtures[1].split()} if mixtures else None


def lacking(text: str, told: str) -> list[str]:
    """Systems that a command asks for and its results do not have, at all sizes."""
    systems, mixtures = asked(told)
    found = systems_in(text)
    return [name for name in systems if name not in found or (mixtures and found[name] != mixtures)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_results_have_every_system_of_their_command_at_every_size(path):
    words = shlex.split(commands(path.read_text())[-1])
    if not words[0].endswith("/run.sh"):
        pytest.skip("made by another program")
    told = subprocess.run([ROOT / words[0], *words[1:], "--help"], capture_output=True, text=True).stdout
    assert lacking(path.read_text(), told) == []


def test_a_system_or_size_that_is_not_there_is_seen():
    text = "## Test set: classification error (%)\n\n| system | mix |\n|---|---|\n| ml | 1 | 2.0 |\n| ml | 2 | 1.5 |\n"
    told = '  --mix "{}"    numbers\n  --criteria "..." systems to train, score and report ({})\n'
    assert lacking(text, told.format("1 2", "ml")) == []
    assert lacking(text, told.format("1 2 4", "ml")) == ["ml"] and lacking(text, told.format("1 2", "ml mm")) == ["mm"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_the_command_in_a_file_of_results_is_one_that_its_recipe_takes(path):
    """Every option of it is parsed, up to --help, which shows the options and trains nothing."""
    said = commands(path.read_text())
    assert any(line.startswith(f"recipes/{path.parent.name}/") for line in said)
    for line in said:
        words = shlex.split(line)
        if not words[0].startswith("recipes/"):
            continue
        done = subprocess.run([ROOT / words[0], *words[1:], "--help"], capture_output=True, text=True)
        assert done.returncode == 0 and "Stages:" in done.stdout, done.stderr
        assert not re.search(r"(^|\s)/(home|tmp|work|root)/", line)  # of somebody's own machine


def test_an_option_that_is_no_more_is_seen():
    done = subprocess.run([ROOT / "recipes/digits/run.sh", "--depth", "3", "--help"], capture_output=True, text=True)
    assert done.returncode == 2 and "unknown option '--depth'" in done.stderr

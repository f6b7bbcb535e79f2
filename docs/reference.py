"""The page of all steps and options, made of their --help when the documents are built (a hook of MkDocs)."""

import os
import runpy
import subprocess
import sys
import typing
from pathlib import Path

from margo import cli
from margo.runtime.options import knobs_of, make_parser

PAGE = "reference.md"
WIDTH = 110


def on_files(files, config):
    from mkdocs.structure.files import File

    files.append(File.generated(config, PAGE, content=page()))
    return files


def page() -> str:
    """Every group of verbs, every verb with its help; then the recipes."""
    os.environ["COLUMNS"] = str(WIDTH)  # what argparse fills
    known, parts = cli.verbs(), [HEAD]
    named = {name for names in cli.GROUPS.values() for name in names.split()}
    groups = {**cli.GROUPS, cli.OTHERS: " ".join(name for name in known if name not in named)}
    for group, names in groups.items():
        parts += [f"## {group[0].upper()}{group[1:]}"] * bool(names)
        for name in names.split():
            parts += [f"### {name.replace('_', '-')}", f"```text\n{help_of(name, known[name])}\n```"]
    parts.append("## Recipes")
    for name, path in cli.recipes().items():
        parts += [f"### recipe {name}", f"```text\n{said_by(['bash', path, '--help'])}\n```"]
    return "\n\n".join(parts) + "\n"


def help_of(name: str, path: Path) -> str:
    if "class Options" not in path.read_text():  # a program of its own
        return said_by([sys.executable, path, "--help"])
    module = runpy.run_path(str(path))
    options = module["Options"]
    hints = typing.get_type_hints(options)
    return make_parser(name, module["__doc__"], options, knobs_of(options), hints).format_help().strip()


def said_by(command: list) -> str:
    variables = {**os.environ, "MARGO_PYTHON": sys.executable}
    return subprocess.run(command, capture_output=True, text=True, check=True, env=variables).stdout.strip()


HEAD = """# Every step and option

This page is made of what the programs say of themselves: `margo VERB --help` shows the same. In a clone, `margo decode`
is `python steps/decode.py`. Every option takes a value; those of a step can also stand in a TOML file, in a table of
the step's name, with `_` for `-` (`--conf my.toml`, see [recipes](recipes.md#settings-of-ones-own))."""

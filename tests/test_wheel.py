"""The wheel: what it holds, the command it installs, and a run from it that leaves the package as it was."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

import margo
from margo import cli

PROGRAMS = ("steps", "local", "recipes", "conf")
SPOKEN = "corpus/test/man/ak/1a.wav"  # of the embedded corpus
KINDS = {".py", ".sh", ".toml", ".txt", ".dic"}


@pytest.fixture(scope="module")
def wheel(root, tmp_path_factory):
    """Built from a copy, so that the clone stays clean, with the setuptools that is installed: no network."""
    if int(metadata.version("setuptools").partition(".")[0]) < 77:
        pytest.skip("needs setuptools 77 or later (make test installs it)")
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    for name in ("lib", *PROGRAMS):
        shutil.copytree(root / name, source / name, ignore=shutil.ignore_patterns("*.egg-info", "*.nb[ic]"))
    for name in ("setup.py", "MANIFEST.in", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(root / name, source)
    build = f"from setuptools import build_meta; build_meta.build_wheel({str(out)!r})"
    subprocess.run([sys.executable, "-c", build], cwd=source, check=True, capture_output=True)
    (path,) = out.glob("margo_speech-*.whl")
    return path


def test_the_wheel_holds_lib_and_the_programs_and_nothing_else(root, wheel):
    lib = {f"margo/{path.relative_to(root / 'lib/margo')}" for path in (root / "lib/margo").rglob("*.py")}
    programs = [path for folder in PROGRAMS for path in (root / folder).rglob("*") if path.suffix in KINDS]
    lib |= {f"margo/serve/{path.name}" for path in (root / "lib/margo/serve").glob("*.*") if path.suffix != ".py"}
    wanted = lib | {"margo/py.typed"} | {f"margo/share/{path.relative_to(root)}" for path in programs}
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        texts = {name.rpartition("/")[2]: archive.read(name).decode() for name in archive.namelist() if "info/" in name}
    assert names == wanted and len(programs) > 80
    assert f"\nVersion: {margo.__version__}\n" in texts["METADATA"] and "\nName: margo-speech\n" in texts["METADATA"]
    assert "margo = margo.cli:main" in texts["entry_points.txt"]


def test_nothing_tells_people_to_install_somebody_elses_package(root):
    told = [path for folder in ("lib", "docs", *PROGRAMS) for path in (root / folder).rglob("*") if path.is_file()]
    wrong = re.compile(r"""(pip3?|uv|pipx) (install|add)( -\S+)* \\?["']?margo\b(?!-speech)|["']margo\[""")
    for line in ("pip install margo", 'pip install "margo[all]"', r'!pip install -q \"margo\"', "pip install 'margo'"):
        assert wrong.search(line), line
    assert not wrong.search("pip install 'margo-speech[serve]'; pip install dist/margo_speech-0.1.0-py3-none-any.whl")
    names = ("README.md", "CONTRIBUTING.md", "pyproject.toml", "Makefile")
    kinds = set()
    for path in [*(root / name for name in names), *told]:
        if path.suffix in {".py", ".md", ".toml", ".sh", ".ipynb", ""}:
            kinds.add(path.suffix)
            assert not wrong.search(path.read_text()), path
    assert ".ipynb" in kinds


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The folder of an environment outside the clone, which borrows only the packages that margo needs."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index", "--quiet", wheel]
    done = subprocess.run(install, capture_output=True, text=True)
    if "No module named pip" in done.stderr:
        pytest.skip("needs pip")
    assert done.returncode == 0, done.stderr
    (site,) = (folder / "lib").glob("python*/site-packages")
    borrowed = [path for path in sys.path if path.endswith("site-packages")]
    (site / "borrowed.pth").write_text("\n".join(borrowed) + "\n")
    return folder


def digests(folder):
    return {path: hashlib.md5(path.read_bytes()).hexdigest() for path in folder.rglob("*") if path.is_file()}


def test_a_run_from_the_wheel(installed, tmp_path):
    """A recipe up to its first model, what that hears, compiled code; and the package is as it was."""
    (package,) = (installed / "lib").glob("python*/site-packages/margo")
    before = digests(package)
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "NUMBA", "MARGO"))}
    environment = {**clean, "XDG_CACHE_HOME": str(tmp_path / "cache")}

    def run(program, *words, stdin=b"", **more):
        done = subprocess.run([installed / "bin" / program, *words], cwd=tmp_path, env=environment | more,
                              capture_output=True, input=stdin)  # fmt: skip
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()

    assert run("margo", "--version") == f"margo {margo.__version__}\n"
    assert "\nrecipes:\n" in run("margo", "--help")
    assert "margo recipe tidigits [--option" in run("margo", "recipe", "tidigits", "--help")
    run("margo", "mini-corpus", "tidigits", "--size", "tiny", "--out", "corpus")
    (tmp_path / "quick.toml").write_text("[train_ml]\niterations = 2\npenalties = [-20, 0]\n")
    for path in (tmp_path / "corpus").rglob("??*[ab].wav"):
        path.unlink()  # strings; single digits are enough, and so few that compiling would take longer than they do
    once = {"NUMBA_DISABLE_JIT": "1"}
    run("margo", "recipe", "tidigits", "--corpus", "corpus", "--partial", "true", "--stop-stage", "2", "--nj", "1",
        "--mix", "1", "--criteria", "ml", "--conf", "quick.toml", **once)  # fmt: skip
    made = tmp_path / "exp" / "tidigits" / "mfcc" / "test"
    assert "make_mfcc" in run("margo", "show", made)
    shown = run("margo", "show", "exp/tidigits")
    assert "done       0 data; 1 features; 2 maximum likelihood (ml)\n" in shown and "models     ml_1\n" in shown
    assert json.loads((made / "step.json").read_text())["commit"] is None
    spoken = (tmp_path / SPOKEN).read_bytes()
    assert run("margo", "recognise", "--model", "exp/tidigits/ml_1", "-", stdin=spoken, **once) == "-: one\n"
    run("python", "-c", "from margo.score.align import align; align([('a',)], [('b',)])")
    assert list((tmp_path / "cache" / "margo").rglob("*.nbi")), "compiled code belongs to the user's cache"
    assert digests(package) == before


def test_every_program_is_a_verb_and_shown_once(monkeypatch):
    grouped = [name for names in cli.GROUPS.values() for name in names.split()]
    assert len(grouped) == len(set(grouped)) and {*grouped} <= cli.verbs().keys()
    monkeypatch.setitem(cli.GROUPS, "for recipes", "")  # one that is new, and that no group names
    shown = re.findall(r"^  (\w+) ", cli.overview(), re.M)
    assert sorted(shown) == sorted([*cli.verbs(), *cli.recipes()]) and "\nothers:\n  plan " in cli.overview()
    assert all(cli.title(path) and len(cli.title(path)) <= 96 for path in cli.verbs().values())


def test_what_the_command_runs_and_what_it_refuses(root):
    words, variables = cli.command(["train-ml", "--data", "d"])
    assert words == [sys.executable, str(root / "steps" / "train_ml.py"), "--data", "d"] and not variables
    words, variables = cli.command(["recipe", "words", "--stage", "3"])
    assert Path(words[1]) == root / "recipes" / "words" / "run.sh" and words[2:] == ["--stage", "3"]
    assert variables == {"MARGO_PYTHON": sys.executable}
    assert cli.command(["recognize"]) == "margo: no verb 'recognize' (nearest: recognise) (see margo --help)"
    assert cli.command(["qqq"]) == "margo: no verb 'qqq' (see margo --help)"  # and no list of seventy
    assert cli.command(["recipe"]).startswith("margo: name a recipe; there are an4, deterding, digits")
    assert cli.command(["recipe", "tea"]).startswith("margo: no recipe 'tea'; there are an4, deterding, digits")
    done = subprocess.run([sys.executable, "-m", "margo", "decode", "--wrong", "1"], capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.startswith("decode: no option --wrong")


def test_help_is_found_wherever_it_is_asked_for(capsys, monkeypatch):
    ran = []
    monkeypatch.setattr(cli.os, "execv", lambda program, words: ran.append(words))
    for words in (["help"], ["--help"], []):
        monkeypatch.setattr(sys, "argv", ["margo", *words])
        cli.main()
        assert capsys.readouterr().out == cli.overview() + "\n"
    for words in (["recipe", "--help"], ["recipe", "help"], ["help", "recipe"]):
        monkeypatch.setattr(sys, "argv", ["margo", *words])
        cli.main()
        assert capsys.readouterr().out == cli.recipe_list() + "\n"
    assert not ran
    monkeypatch.setattr(sys, "argv", ["margo", "help", "decode"])
    cli.main()
    assert ran[0][-1] == "--help" and ran[0][1].endswith("decode.py")

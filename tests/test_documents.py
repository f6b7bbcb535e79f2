"""The documents: their commands run, their tables are whole, the site is built without a warning, notebooks execute."""

import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tomllib
from dataclasses import fields
from html import escape
from pathlib import Path

import numpy as np
import pytest
import soundfile

from margo import cli
from margo.runtime.options import parse, shown

PAGES = ("ten_minutes", "alignment", "recipes", "from_htk", "from_kaldi")  # in this order


@pytest.fixture(scope="module")
def place(root, tmp_path_factory):
    """A folder with a run of the recipe tidigits (tiny, synthetic), recordings of four people in ``mine``, and a
    command ``margo`` whose recipes of words take few iterations."""
    pytest.importorskip("espeakng_loader", reason="the embedded corpora's voice is missing (margo-speech[corpora])")
    folder = tmp_path_factory.mktemp("documents")
    (folder / "bin").mkdir()
    (folder / "quick.toml").write_text("[train_ml]\niterations = 2\npenalties = [-20, 0]\n")
    script = folder / "bin" / "margo"
    script.write_text(f"""#!/bin/sh
[ "$1 $2" = "recipe words" ] && set -- "$@" --conf {folder}/quick.toml --nj 1
exec "{sys.executable}" -m margo "$@"
""")
    script.chmod(0o755)
    shell(folder, "margo mini-corpus tidigits --size tiny --out corpus")
    shell(folder, "margo recipe tidigits --mix 1 --criteria ml --nj 1 --corpus corpus --conf quick.toml")
    text = dict(line.split(maxsplit=1) for line in (folder / "exp/tidigits/data/train/text").read_text().splitlines())
    speakers = dict(line.split() for line in (folder / "exp/tidigits/data/train/utt2spk").read_text().splitlines())
    people = dict(zip(sorted({*speakers.values()}), ("anna", "ben", "carla", "dora")))
    counts = dict.fromkeys(people.values(), 0)
    wavs = [line.split() for line in (folder / "exp/tidigits/data/train/wav.scp").read_text().splitlines()]
    for utterance, wav in sorted(wavs, key=lambda row: len(text[row[0]].split()) != 3):  # three words first
        if who := people.get(speakers[utterance]):
            counts[who] += 1
            place = folder / "mine" / who / f"{counts[who]:03d}"
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(wav, place.with_suffix(".wav"))
            place.with_suffix(".lab").write_text(text[utterance].upper())
    return folder


def shell(folder, line):
    variables = {**os.environ, "PATH": f"{folder}/bin:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-ec", line], cwd=folder, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, f"{line}\n{done.stderr}"
    return done


def test_the_commands_of_the_pages(root, place):
    count = 0
    for page in PAGES:
        for block in re.findall(r"```bash\n(.*?)```", (root / "docs" / f"{page}.md").read_text(), re.S):
            for line in block.splitlines():
                shell(place, line)
                count += 1
    assert count >= 18
    assert (place / "001.TextGrid").is_file() and (place / "aligned/doubtful.csv").is_file()
    assert len(list((place / "aligned-short").rglob("*.eaf"))) == len(list((place / "mine").rglob("*.wav"))) > 8


def test_recognise_hears_what_decode_heard_of_files_and_of_a_stream(place):
    """All files as decode's features and grammar have it; of two words with a pause, a line each as they come."""
    hyp = (place / "exp/tidigits/decode/ml_1/test/hyp").read_text().splitlines()
    decoded = {name: words for name, *words in map(str.split, hyp)}
    wavs = dict(line.split() for line in (place / "exp/tidigits/data/test/wav.scp").read_text().splitlines())
    heard = shell(place, f"margo recognise --model exp/tidigits/ml_1 {' '.join(wavs.values())}").stdout.splitlines()
    same = sum(decoded[name] == line.rpartition(":")[2].split() for name, line in zip(wavs, heard, strict=True))
    assert same >= 0.98 * len(wavs) and len(wavs) == 64, f"{same} of {len(wavs)}"
    names = ("man-ak-1a", "man-ak-2a")
    samples, rate = zip(*(soundfile.read(wavs[name], dtype="int16") for name in names))
    pause = np.round(3 * np.random.default_rng(0).standard_normal(rate[0])).astype("int16")
    (place / "stream").write_bytes(b"".join(part.tobytes() for part in (samples[0], pause, samples[1], pause)))
    lines = shell(place, "margo recognise --model exp/tidigits/ml_1 --live true - < stream").stdout.splitlines()
    assert [line.split()[1:] for line in lines] == [decoded[name] for name in names] == [["one"], ["two"]]
    second = (len(samples[0]) + len(pause)) / rate[0]
    assert [float(line.split()[0]) for line in lines] == [pytest.approx(0, abs=0.4), pytest.approx(second, abs=0.4)]


def told_commands(text):
    """``(words, whole)`` of each command ``margo ...`` in a page: of lines in blocks, and of `margo ...` in sentences,
    which may leave out what does not matter there."""
    blocks = "\n".join(re.findall(r"^```\w*\n(.*?)^```", text, re.S | re.M) + re.findall(r"^ {4}\S.*", text, re.M))
    blocks = re.sub(r"\\\n\s*", "", blocks)  # lines that go on
    for line in re.findall(r"^ *(?:\$ )?margo (\S.*)", blocks, re.M):
        command = re.split(r" +[|<>&] ?| {2,}[^-\s]", line)[0]  # up to a pipe, or to words that explain it
        yield shlex.split(command, comments=True), "..." not in command
    for span in re.findall(r"`margo ([^`]+)`", re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)):
        yield span.split(), False


def test_every_command_that_is_told_anywhere_is_one(root, monkeypatch):
    """Its verb, its options, and of whole commands what their own parsers take: an option that was renamed, or one
    that is missing, is seen in any page and recipe, also where nothing runs the line."""
    monkeypatch.syspath_prepend(root / "local")
    programs, recipes, whole_ones, spans = cli.verbs(), {}, 0, 0
    pages = [*root.glob("*.md"), *(root / "docs").rglob("*.md"), *(root / "recipes").rglob("*.md")]
    for page, (words, whole) in [(path, each) for path in pages for each in told_commands(path.read_text())]:
        verb, *rest = words
        if verb.startswith("--"):
            continue
        said = f"{page.relative_to(root)}: margo {' '.join(words)}"
        options = [word.partition("=")[0] for word in rest if word.startswith("--")]
        if verb == "recipe":
            if not rest:
                continue
            if rest[0] not in recipes:
                assert rest[0] in cli.recipes(), said
                script = ["bash", cli.recipes()[rest[0]], "--help"]
                recipes[rest[0]] = subprocess.run(script, capture_output=True, text=True, check=True).stdout + "--help"
            known = re.findall(r"--[a-z-]+", recipes[rest[0]])
        else:
            assert isinstance(cli.command(words), tuple), said
            path = programs[verb.replace("-", "_")]
            module = runpy.run_path(str(path))
            if "Options" not in module:  # mini_corpus parses its own
                continue
            known = ["--help", "--conf", *map(shown, fields(module["Options"]))]
            if whole and "--help" not in rest:
                try:
                    parse(path.stem, module["__doc__"], module["Options"], rest, programs)
                except SystemExit:
                    pytest.fail(said)
                whole_ones += 1
        assert {*options} <= {*known}, said
        spans += 1
    assert whole_ones >= 25 and spans >= 60, (whole_ones, spans)


def test_every_file_of_an_experiment_is_told(root, place):
    """Of those that a run left."""
    page = re.sub(r"```.*?```", "", (root / "docs" / "files.md").read_text(), flags=re.S)
    told = {Path(name).name for name in re.findall(r"`([^`]+)`", page)}
    left = {path.name for path in (place / "exp/tidigits").rglob("*") if path.is_file() and path.suffix != ".wav"}
    left -= {path.name for path in (place / "corpus").rglob("*") if path.is_file()} - {"margo-synthetic.json"}
    assert left <= told, left - told


def test_every_table_of_a_paper_has_a_row(root):
    page = (root / "docs" / "papers.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("| [")]
    for path in (root / "conf" / "paper").glob("*.toml"):
        for table in tomllib.loads(path.read_text())["table"]:
            source = table["source"]
            named = [line.split(" | ")[0].removeprefix("| ") for line in rows]
            assert any(source == name or source.startswith(f"{name}, ") for name in named), source
    for path in re.findall(r"`(recipes/[^` ]+)", page):
        assert (root / path).is_file(), path


def test_every_recipe_is_told(root):
    page = (root / "docs" / "recipes.md").read_text()
    assert all(f"`{name}`" in page for name in cli.recipes())


def test_every_link_and_place_in_the_readme_is_there_and_it_fits_a_screen(root):
    text = (root / "README.md").read_text()
    assert len(text.splitlines()) <= 50
    for link in re.findall(r"\]\(([^)#]+)\)", text):
        assert (root / link).is_file(), link
    for target in re.findall(r"^ {4}make (\w+)", text, re.M):
        assert re.search(f"^{target}:", (root / "Makefile").read_text(), re.M)


@pytest.fixture(scope="module")
def site(root, tmp_path_factory):
    pytest.importorskip("mkdocs", reason="mkdocs is not installed (margo-speech[docs])")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder]
    variables = {**os.environ, "NO_MKDOCS_2_WARNING": "true"}
    done = subprocess.run(command, cwd=root, env=variables, capture_output=True, text=True)
    assert done.returncode == 0 and "WARNING" not in done.stderr, done.stderr
    return folder


def test_the_site_names_every_step_and_option(site):
    page = (site / "reference" / "index.html").read_text()
    for name, path in cli.verbs().items():
        assert f">{name.replace('_', '-')}</h3>" in page, name
        for each in fields(runpy.run_path(str(path))["Options"]) if "class Options" in path.read_text() else ():
            assert escape(shown(each)) in page, f"{name}: {each.name}"
    for name in cli.recipes():
        assert f">recipe {name}</h3>" in page
    assert "--shift-ms" in page and (site / "notebooks" / "digits.ipynb").is_file()


@pytest.mark.parametrize("name", ["digits", "margins"])
def test_the_notebooks_execute(root, tmp_path, monkeypatch, name):
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    pytest.importorskip("espeakng_loader")
    notebook = nbformat.read(root / "docs" / "notebooks" / f"{name}.ipynb", as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(not cell.outputs and cell.execution_count is None for cell in code), "outputs are stripped"
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    place = {"metadata": {"path": tmp_path}}
    nbclient.NotebookClient(notebook, timeout=900, kernel_name="python3", resources=place).execute()
    said = "".join(output.get("text", "") for cell in code for output in cell.outputs)
    assert ("confidence" in said) if name == "digits" else ("are wrong" in said and "has grown" in said)

"""The command ``margo``: every step and local program by its name, and the recipes.

``margo decode ...`` is ``python steps/decode.py ...``, and ``margo recipe tidigits ...`` that recipe's ``run.sh``, of
the clone or the wheel that margo was imported from; a recipe's folder is then ``exp/<recipe>`` in the current one.
"""

import ast
import difflib
import os
import shutil
import sys
from pathlib import Path

import margo
from margo.formats.systems import HOME
from margo.runtime.options import nearest

GROUPS = {
    "using a model": "recognise serve decode nbest align adapt train_correction score score_alignment compare "
    "show",
    "from and to HTK and Kaldi": "import_htk export_htk import_kaldi export_kaldi",
    "data and features": "validate_data folder_data lhotse_data augment make_mfcc find_warps train_lda "
    "transform_features adapt_features make_tables",
    "training word models": "make_lm train_ml tie_triphones train_mce train_mmi train_mm train_lme sweep_radius",
    "classifiers of samples": "train_gmm train_ebw train_hybrid train_margin test_gmm tune sweep_labels sweep_missing "
    "test_peers plot_boundary plot_progress plot_settings draw_samples choose_components",
    "generative kernels": "train_kernel test_kernel select_kernel compare_schemes test_references train_word_kernel "
    "test_word_kernel compare_word_schemes cut_words rescore_words plot_kernel show_margins",
    "what a run came to": "report pool plot_confusions",
    "corpora to data folders": "an4_data deterding_data digits_data fsdd_data gaussians_data isolet_data mini_corpus "
    "pixels_data spelling_data spirals_data tidigits_data timit_data words_data",
    "for recipes": "plan",
}
OTHERS = "others"  # heading of programs that no group names
USAGE = """usage: margo VERB [options]           one step; margo VERB --help shows its options
       margo recipe NAME [options]    a whole recipe, in exp/NAME unless --exp says otherwise; --help, too
       margo --version"""
HELP = ("-h", "--help", "help")


def verbs() -> dict[str, Path]:
    """Files of all programs that can be run, by name."""
    found = {path.stem: path for folder in ("local", "steps") for path in sorted((HOME / folder).glob("*.py"))}
    return {name: path for name, path in found.items() if name not in ("mini_labels", "mini_voice")}


def recipes() -> dict[str, Path]:
    return {path.parent.name: path for path in sorted((HOME / "recipes").glob("*/run.sh"))}


def title(path: Path) -> str:
    """What a program says of itself first: a docstring's first line, or a script's first comment."""
    text = path.read_text(encoding="utf-8")
    words = ast.get_docstring(ast.parse(text)) or "" if path.suffix == ".py" else text.splitlines()[1].lstrip("# ")
    first = words.splitlines()[0]
    cut = 92  # columns beside the name
    return first if len(first) <= cut else first[:cut].rpartition(" ")[0].rstrip(",;:") + " ..."


def overview() -> str:
    known, lines = verbs(), [margo.__doc__, "", USAGE]
    named = {group: names.split() for group, names in GROUPS.items()}
    rest = [name for name in known if not any(name in names for names in named.values())]
    for group, names in {**named, **({OTHERS: rest} if rest else {})}.items():
        lines += ["", f"{group}:", *(f"  {name:<18} {title(known[name])}" for name in names)]
    return "\n".join([*lines, "", recipe_list()])


def recipe_list() -> str:
    return "\n".join(["recipes:", *(f"  {name:<18} {title(path)}" for name, path in recipes().items())])


def command(argv: list[str]) -> tuple[list[str], dict[str, str]] | str:
    """``(words to run, variables to set)`` of a command line, or what is wrong with it."""
    verb, *rest = argv
    if verb == "recipe":
        shells = recipes()
        if not rest or rest[0] not in shells:
            asked = rest[0] if rest else ""
            return f"margo: {f'no recipe {asked!r}' if rest else 'name a recipe'}{nearest(asked, shells)}"
        bash = shutil.which("bash")
        return ([bash, str(shells[rest[0]]), *rest[1:]], {"MARGO_PYTHON": sys.executable}) if bash else "margo: no bash"
    program = verbs().get(verb.replace("-", "_"))
    if program is None:
        near = difflib.get_close_matches(verb, [*verbs(), "recipe"], 1)
        return f"margo: no verb {verb!r}{f' (nearest: {near[0]})' if near else ''} (see margo --help)"
    return [sys.executable, str(program), *rest], {}


def main() -> None:
    argv = sys.argv[1:]
    if argv[:1] == ["help"] and argv[1:]:  # of a verb
        argv = [*argv[1:], "--help"]
    if not argv or argv[0] in HELP:
        print(overview())
    elif argv[0] == "recipe" and argv[1:2] in [[word] for word in HELP]:
        print(recipe_list())
    elif argv[0] == "--version":
        print(f"margo {margo.__version__}")
    else:
        found = command(argv)
        if isinstance(found, str):
            print(found, file=sys.stderr)
            sys.exit(2)
        words, variables = found
        os.environ.update(variables)
        os.execv(words[0], words)  # the program is the one process there is: signals and exit codes are its own


if __name__ == "__main__":
    main()

"""Command lines and configuration files from dataclasses of knobs: one name, one default and one check for each.

An option's value is checked alike (type, choices, bounds, whether it acts at all) from either source, and all that is
wrong is said in one line.
"""

import argparse
import difflib
import json
import runpy
import typing
from dataclasses import MISSING, fields
from pathlib import Path

from margo.errors import MargoError
from margo.formats.reading import read_toml
from margo.knobs import TRUTHS, flag, kind_of, limits, spoken, typed, value_faults

NOTHING = (False, None, 0, "", (), "none", ("none",))  # values of an option that ask for nothing
FILES, TRAINING, OTHERS, RUNNING = "files", "training", "settings", "running"  # headings of --help


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line."""

    def error(self, message):
        self.exit(2, f"{self.prog}: {message} (see --help)\n")


def parse(name: str, description: str, options_class, argv: list[str], programs: dict[str, Path] | None = None):
    """An ``options_class`` from ``argv``, with defaults from the ``[name]`` tables of the ``--conf`` files.

    Tables of other ``programs`` (name to file) may stand beside it; they are checked against those.
    """
    declared, hints = knobs_of(options_class), typing.get_type_hints(options_class)
    parser = make_parser(name, description, options_class, declared, hints)
    given, strange = parser.parse_known_args(spelled_out(argv, declared, hints))
    texts = vars(given)
    sources, faults = [{key: each.default for key, each in declared.items()}], []
    for path in texts.pop("conf"):
        table, wrong = read_conf(path, name, options_class, programs or {})
        sources.append(table)
        faults += wrong
    line = {key: checked(declared[key], hints[key], text, spoken, shown(declared[key])) for key, text in texts.items()}
    sources.append({key: value for key, (value, _) in line.items()})
    faults += [fault for _, wrong in line.values() for fault in wrong]
    values = {key: value for source in sources for key, value in source.items()}
    missing = [usage_of(declared[key], hints[key]).split()[0] for key, value in values.items() if value is MISSING]
    faults += [f"missing {', '.join(missing)}"] * bool(missing)
    options = None
    if not faults:
        faults = idle(declared, values, sources)
        try:
            options = options_class(**values)
        except ValueError as error:
            faults.append(str(error))
    faults = strange_words(strange, declared) + faults
    if faults:
        parser.error("; ".join(faults))
    return options


def knobs_of(options_class) -> dict:
    return {each.name: each for each in fields(options_class) if each.init}


def shown(declared) -> str:
    return declared.name if declared.metadata.get("positional") else flag(declared.name)


def nearest(word: str, names) -> str:
    near = difflib.get_close_matches(word, names, 1, 0.6)
    return f" (nearest: {near[0]})" if near else f"; there are {', '.join(sorted(names))}"


def strange_words(words: list[str], declared: dict) -> list[str]:
    """Faults of what no option or argument took."""
    options = [word.partition("=")[0] for word in words if word.startswith("-")]
    names = [shown(each) for each in declared.values()]
    return [f"no option {word}{nearest(word, names)}" for word in options] or [f"unexpected {word}" for word in words]


def checked(declared, hint, value, convert, name: str) -> tuple[object, list[str]]:
    """``value`` (a list, where there are many) as what ``hint`` says, and what is wrong with it."""
    kind, many = kind_of(hint)
    try:
        converted = tuple(convert(kind, item) for item in (value if isinstance(value, list) else [value]))
    except ValueError as error:
        return None, [f"{name} {error}"]
    if not many and len(converted) != 1:
        return None, [f"{name} is {value}, expected one value"]
    converted = converted if many else converted[0]
    return converted, value_faults(declared, converted, name)


def idle(declared: dict, values: dict, sources: list[dict]) -> list[str]:
    """Options that were set (to something, and not to none) but would not act, by what they need.

    ``sources`` are the defaults, the configuration files, the command line. An option may lie idle because of what a
    later source says: files are shared by several commands.
    """
    place = {key: n for n, source in enumerate(sources) for key in source}
    faults = []
    for key, each in declared.items():
        if not place[key] or values[key] in NOTHING:
            continue
        for other, wanted in each.metadata.get("needs", {}).items():
            acts = values[other] in wanted if isinstance(wanted, tuple) else bool(values[other]) == wanted
            if not acts and place[key] >= place[other]:
                faults.append(f"{shown(each)} {needed(other, wanted)}")
    return faults


def needed(other: str, wanted) -> str:
    if isinstance(wanted, tuple):
        return f"needs {flag(other)} {' or '.join(map(str, wanted))}"
    return f"needs {flag(other)}" if wanted else f"does nothing with {flag(other)}"


def make_parser(name: str, description: str, options_class, declared: dict, hints: dict) -> Parser:
    text, _, example = (description or "").partition("\nExample:")
    told = sorted((each for each in declared.values() if each.default is MISSING or each.metadata.get("positional")),
                  key=lambda each: each.metadata.get("positional", False))  # fmt: skip
    program, _, words = example.strip().partition(" ")
    called = f"margo {name}" if program in (f"steps/{name}.py", f"local/{name}.py") else program
    usage = " ".join([called or name, *(usage_of(each, hints[each.name]) for each in told), "[options]"])
    parser = Parser(
        prog=name, usage=usage, description=text, allow_abbrev=False, add_help=False,
        epilog=example and f"example:\n  {called} {words}", formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    groups: dict[str, list] = {FILES: []}
    for key, each in declared.items():
        groups.setdefault(group_of(options_class, each, hints[key]), []).append(each)
    groups[RUNNING] = groups.pop(RUNNING, [])
    for title, members in groups.items():
        section = parser.add_argument_group(title)
        for each in members:
            add_argument(section, each, hints[each.name])
    section.add_argument("--help", "-h", action="help", help="show this and exit")
    section.add_argument("--conf", action="append", type=Path, default=[], metavar="FILE",
                         help=f"TOML file whose table [{name}] sets options by their names, with _ for -; may be given "
                         "again: the later file, and the command line, win")  # fmt: skip
    return parser


def group_of(options_class, declared, hint) -> str:
    """The knob's own heading, or its class's; else files for paths, training for the settings of an algorithm."""
    owner = next(each for each in options_class.__mro__ if declared.name in each.__dict__.get("__annotations__", {}))
    own = declared.metadata.get("group") or owner.__dict__.get("GROUP")
    return own or (FILES if kind_of(hint)[0] is Path else OTHERS if owner is options_class else TRAINING)


def placeholder(declared, hint) -> str:
    kind, many = kind_of(hint)
    choices = ("true", "false") if kind is bool else declared.metadata.get("choices") or (kind.__name__.upper(),)
    return "|".join(filter(None, map(str, choices))) + " ..." * many


def usage_of(declared, hint) -> str:
    if declared.metadata.get("positional"):
        name = declared.name.upper() + " ..." * kind_of(hint)[1]
        return name if declared.default is MISSING else f"[{name}]"
    return f"{shown(declared)} {placeholder(declared, hint)}"


def add_argument(section, declared, hint) -> None:
    kind, many = kind_of(hint)
    none = declared.metadata.get("positional") and declared.default is not MISSING  # it may be left out
    known = {"nargs": "*" if none else "+"} if many else {"nargs": "?", "const": "true"} if kind is bool else {}
    name = shown(declared)
    known["metavar"] = name.upper() if declared.metadata.get("positional") else placeholder(declared, hint).split()[0]
    added = section.add_argument(name, default=argparse.SUPPRESS, help=help_text(declared).replace("%", "%%"), **known)
    added.required = False  # of arguments without a name, too, :func:`parse` says what is missing, all at once


def help_text(declared) -> str:
    """What it is, its unit and bounds, whether it must be given, its default, when it acts."""
    metadata, default = declared.metadata, declared.default
    notes = [metadata.get("unit", ""), limits(declared)]
    notes += [needed(other, wanted) for other, wanted in metadata.get("needs", {}).items()]
    if default is MISSING:
        notes.append("required")
    elif default not in ("", None, ()):
        told = " ".join(map(str, default if isinstance(default, tuple) else [default]))
        notes.append(f"default: {told.lower() if isinstance(default, bool) else told}")
    notes = "; ".join(filter(None, notes))
    return metadata.get("help", "") + (f" ({notes})" if notes else "")


def spelled_out(argv: list[str], declared: dict, hints: dict) -> list[str]:
    """``argv`` in which a bare switch has its value, where a positional argument would be taken for it (--json a)."""
    if not any(each.metadata.get("positional") for each in declared.values()):
        return argv
    switches = {shown(each) for key, each in declared.items() if kind_of(hints[key])[0] is bool}
    pairs = zip(argv, [*argv[1:], ""])
    return [word + "=true" * (word in switches and after.lower() not in TRUTHS) for word, after in pairs]


def read_conf(path: Path, name: str, options_class, programs: dict[str, Path]) -> tuple[dict, list[str]]:
    """Values of the table ``[name]`` of a TOML file, and all that is wrong in any of its tables."""
    try:
        tables = read_toml(path)
    except MargoError as error:
        return {}, [str(error)]
    values, faults = {}, []
    for table, held in tables.items():
        if not isinstance(held, dict):
            faults.append(f"{path}: {table} stands outside of any table")
        elif table == name:
            values, wrong = read_table(path, table, held, options_class)
            faults += wrong
        elif table not in programs:
            faults.append(f"{path}: no step is called [{table}]{nearest(table, {name, *programs})}")
        elif other := runpy.run_path(str(programs[table])).get("Options"):
            faults += read_table(path, table, held, other)[1]
    return values, faults


def read_table(path: Path, table: str, held: dict, options_class) -> tuple[dict, list[str]]:
    declared, hints = knobs_of(options_class), typing.get_type_hints(options_class)
    values, faults = {}, []
    for key, value in held.items():
        if key not in declared:
            faults.append(f"{path}: [{table}] has no option {key}{nearest(key, declared)}")
            continue
        values[key], wrong = checked(declared[key], hints[key], value, typed, f"{path}: [{table}] {key}")
        faults += wrong
    return values, faults


def plain(values: dict) -> dict:
    """Options as JSON values."""
    return json.loads(json.dumps(values, default=str))

"""Command lines from dataclasses: one default, one name and one help text for each option."""

import argparse
import dataclasses
import tomllib
import types
import typing
from pathlib import Path


def option(default=dataclasses.MISSING, *, help: str, choices=None, positional: bool = False):
    """A dataclass field that is a command-line option; without ``default`` the option must be given."""
    metadata = {"help": help, "choices": choices, "positional": positional}
    return dataclasses.field(default=default, kw_only=True, metadata=metadata)


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line."""

    def error(self, message):
        self.exit(2, f"{self.prog}: {message} (see --help)\n")


TRUTHS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def truth(text: str) -> bool:
    if text.lower() in TRUTHS:
        return TRUTHS[text.lower()]
    raise argparse.ArgumentTypeError(f"expected true or false, found {text!r}")


def parse(name: str, description: str, options_class, argv: list[str]):
    """An ``options_class`` from ``argv``, with defaults from the ``[name]`` tables of the ``--conf`` files."""
    parser = Parser(
        prog=name, description=description, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--conf", action="append", type=Path, default=[], metavar="FILE",
                        help=f"TOML file whose [{name}] table sets options (may be given again)")  # fmt: skip
    hints = typing.get_type_hints(options_class)
    fields = [field for field in dataclasses.fields(options_class) if field.init]
    for field in fields:
        add_argument(parser, field, hints[field.name])
    given = vars(parser.parse_args(spelled_out(argv, fields, hints)))
    values = {}
    for path in given.pop("conf"):
        values.update(read_conf(parser, path, name, {field.name: hints[field.name] for field in fields}))
    values.update({key: tuple(value) if isinstance(value, list) else value for key, value in given.items()})
    missing = [flag(f) for f in fields if f.default is dataclasses.MISSING and f.name not in values]
    if missing:
        parser.error(f"missing {', '.join(missing)}")
    try:
        return options_class(**values)
    except ValueError as error:
        parser.error(str(error))


def spelled_out(argv: list[str], fields, hints) -> list[str]:
    """``argv`` in which a bare switch has its value, where a positional argument would be taken for it (--json a)."""
    if not any(field.metadata.get("positional") for field in fields):
        return argv
    switches = {flag(field) for field in fields if unwrap(hints[field.name])[0] is bool}
    following = [*argv[1:], ""]
    return [
        f"{word}=true" if word in switches and after.lower() not in TRUTHS else word
        for word, after in zip(argv, following)
    ]


def flag(field) -> str:
    return field.name if field.metadata.get("positional") else "--" + field.name.replace("_", "-")


def add_argument(parser, field, hint) -> None:
    metadata, default = field.metadata, field.default
    known = {}
    if default is dataclasses.MISSING:
        shown = ""
    else:
        shown = f" (default: {' '.join(map(str, default)) if isinstance(default, tuple) else default})"
        shown = "" if default in ("", None, ()) else shown
    kind, many = unwrap(hint)
    if kind is bool:
        known.update(type=truth, nargs="?", const=True, metavar="true|false")
    else:
        shape = field.name if metadata.get("positional") else kind.__name__
        known.update(type=kind, metavar=None if metadata.get("choices") else shape.upper())
    if many:
        known["nargs"] = "+"
    if metadata.get("choices"):
        known["choices"] = metadata["choices"]
    text = (metadata.get("help", "") + shown).replace("%", "%%")
    parser.add_argument(flag(field), default=argparse.SUPPRESS, help=text, **known)


def unwrap(hint) -> tuple[type, bool]:
    """``(kind of one value, many?)`` of a type hint: ``int``, ``Path | None``, ``tuple[str, ...]``."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        hint = next(part for part in typing.get_args(hint) if part is not type(None))
    if typing.get_origin(hint) is tuple:
        return typing.get_args(hint)[0], True
    return hint, False


def read_conf(parser, path: Path, name: str, hints: dict) -> dict:
    try:
        with open(path, "rb") as file:
            table = tomllib.load(file).get(name, {})
    except FileNotFoundError:
        parser.error(f"{path}: no such file")
    except tomllib.TOMLDecodeError as error:
        parser.error(f"{path}: {error}")
    unknown = sorted(set(table) - set(hints))
    if unknown:
        parser.error(f"{path}: [{name}] has no option {', '.join(unknown)}; it has {', '.join(sorted(hints))}")
    return {key: convert(parser, path, key, value, hints[key]) for key, value in table.items()}


def convert(parser, path, key, value, hint):
    kind, many = unwrap(hint)
    values = value if many and isinstance(value, list) else [value]
    for item in values:
        if kind in (int, float) and (isinstance(item, bool) or not isinstance(item, int | float)):
            parser.error(f"{path}: {key} is {item!r}, expected a number")
        if kind is bool and not isinstance(item, bool):
            parser.error(f"{path}: {key} is {item!r}, expected true or false")
    converted = tuple(kind(item) for item in values)
    return converted if many else converted[0]


def plain(options) -> dict:
    """The options as JSON values."""
    return {key: jsonable(value) for key, value in vars(options).items()} if options else {}


def jsonable(value):
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, tuple | list):
        return [jsonable(item) for item in value]
    return value

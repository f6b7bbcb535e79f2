"""Text files, read whole; what cannot be read is a MargoError that names the file, its reason and the lines."""

import json
import tomllib
from pathlib import Path

from margo.errors import MargoError

MARK = "\ufeff"  # UTF-8 with a byte-order mark


def file_in(place, name: str) -> Path:
    """The file ``name`` of a folder, or ``place`` itself where it is a file."""
    return Path(place) if Path(place).is_file() else Path(place) / name


def read_text(path, parse=lambda text: text.removeprefix(MARK), what: str = ""):
    """The file's text, or what ``parse`` makes of it; ``what`` says in the message as what it was read."""
    try:
        return parse(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise MargoError(f"{path}: cannot be read{what} ({error})") from None


def read_json(path, what: str = "JSON"):
    return read_text(path, json.loads, f" as {what}")


def read_toml(path) -> dict:
    return read_text(path, tomllib.loads, " as TOML")


def read_keyed(path, fault) -> dict[str, tuple[int, str]]:
    """``key -> (line number, rest of the line)`` of a table of Kaldi's text form.

    Blank lines, CRLF and a byte-order mark are accepted; of bytes that are not UTF-8, and a key that is there already,
    ``fault(kind, number, words)`` is told.
    """
    table: dict[str, tuple[int, str]] = {}
    for number, raw in enumerate(Path(path).read_bytes().removeprefix(MARK.encode()).split(b"\n"), start=1):
        try:
            key, *rest = raw.decode().strip().split(maxsplit=1) or [""]
        except UnicodeDecodeError as error:
            fault("not UTF-8", number, f"byte 0x{raw[error.start]:02x} at column {error.start + 1} is not UTF-8")
            continue
        if key in table:
            fault("duplicate key", number, f"{key} is there already")
        elif key:
            table[key] = (number, *rest, "")[:2]
    return table

"""The one way in: what every reader of files is made of.

A reader opens plain files only, holds no more than the file's own size warrants, says where bytes are not UTF-8, takes
numbers by :func:`margo.knobs.whole` and :func:`margo.knobs.real`, and checks values of JSON and TOML against a shape
(:func:`misfits`). Whatever cannot be read is a MargoError: file, place, what was found, what was expected.
"""

import csv
import io
import json
import os
import re
import stat
import tomllib
from contextlib import suppress
from pathlib import Path

from margo.errors import MargoError, refuse
from margo.knobs import brief, is_number, is_whole, real, whole

MARK = "\ufeff"  # UTF-8 with a byte-order mark
DEEPEST = 64  # levels of lists and tables in one another
INFLATED, ALWAYS = 20, 1 << 22  # packed data may hold so many times the bytes of its file, and so many bytes at least
LONGEST_TOML = 1 << 20  # bytes
MOST = 20  # faults shown


def file_in(place, name: str) -> Path:
    """The file ``name`` of a folder, or ``place`` itself where it is a file."""
    return Path(place) if Path(place).is_file() else Path(place) / name


class reading:
    """Whatever goes wrong within, a parser's complaint or a fault that names no file, is a MargoError of ``path``."""

    def __init__(self, path, what: str = ""):
        self.path, self.what = path, what

    def __enter__(self):
        return None

    def __exit__(self, kind, error, trace) -> None:
        if not isinstance(error, Exception):  # nothing, or somebody's wish to end
            return
        path, what = self.path, self.what
        if isinstance(error, MargoError):
            raise MargoError(str(error) if str(error).startswith(str(path)) else f"{path}: {error}") from None
        if isinstance(error, FileNotFoundError):
            raise MargoError(f"{path}: no such file") from None
        # decoders raise whatever they meet
        words = str(getattr(error, "strerror", None) or " ".join(str(error).split()) or type(error).__name__)
        raise MargoError(f"{path}: cannot be read{what and f' as {what}'} ({words[:300]})") from None


def open_file(path):
    """``path`` open for bytes; only a plain file: a folder has none, and a pipe or a device may never end."""
    with reading(path):
        return os.fdopen(_descriptor(path)[0], "rb")


def read_small(path, most: int) -> bytes | None:
    """All of a file of at most ``most`` bytes, None of a larger one: of many short files each system call counts."""
    with reading(path):
        file, size = _descriptor(path)
        try:
            return os.read(file, size) if size <= most else None
        finally:
            os.close(file)


def _descriptor(path) -> tuple[int, int]:
    """``(descriptor, bytes)`` of a plain file: what is opened is looked at, and a pipe does not wait for a writer."""
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    held = os.fstat(file)
    if stat.S_ISREG(held.st_mode):
        return file, held.st_size
    os.close(file)
    what = "folder" if stat.S_ISDIR(held.st_mode) else "pipe or device"
    raise MargoError(f"{path}: is a {what}, expected a file")


def size_of(file) -> int:
    """Bytes of an open file, which is then at its start."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    return size


def take(file, count: int, size: int) -> bytes:
    """The next ``count`` bytes of a file of ``size``; a ValueError where so many are not there."""
    left = size - file.tell()
    if not 0 <= count <= left:
        raise ValueError(f"cut off: {left} of {count} bytes are there")
    return file.read(count)


def read_bytes(path, most: int | None = None) -> bytes:
    with open_file(path) as file, reading(path):
        size = size_of(file)
        if most is not None and size > most:
            raise MargoError(f"{path}: {size} bytes, expected at most {most}")
        return file.read()


def check_inflation(path, declared: int, size: int) -> None:
    """Refuse packed values of so many ``declared`` bytes that a file of ``size`` bytes cannot honestly hold them."""
    most = max(ALWAYS, INFLATED * size)
    if not 0 <= declared <= most:
        raise MargoError(f"{path}: declares {declared} bytes of values, expected at most {most} of a file of {size}")


def read_text(path, what: str = "", most: int | None = None) -> str:
    """The file's text without a byte-order mark; ``what`` says in the message as what it was read."""
    raw = read_bytes(path, most)
    if b"\0" not in raw:
        with suppress(UnicodeDecodeError):
            return raw.decode().removeprefix(MARK)
    faults = ((number, not_text(line)) for number, line in enumerate(raw.split(b"\n"), 1))
    number, words = next(each for each in faults if each[1])
    raise MargoError(f"{path}: cannot be read{what and f' as {what}'} (line {number}: {words})")


def not_text(line: bytes) -> str:
    """Where ``line`` is not UTF-8, or holds a NUL, which no name of a file may; empty where it is text."""
    try:
        line.decode()
        at, words = line.find(b"\0"), "is not text"
    except UnicodeDecodeError as error:
        at, words = error.start, "is not UTF-8"
    return "" if at < 0 else f"byte 0x{line[at]:02x} at column {len(line[:at].decode()) + 1} {words}"


def read_lines(path) -> list[tuple[int, str]]:
    """``(number, line)`` of every line that is not blank."""
    lines = [(number, line) for number, line in enumerate(read_text(path).split("\n"), 1) if line.strip()]
    for number, line in lines:
        if words := lone_return(line.encode()):
            raise MargoError(f"{path}:{number}: {words}")
    return lines


def lone_return(line: bytes) -> str:
    """Where in ``line`` is a carriage return that does not end it: in files with those alone, all lines are one."""
    at = line.find(b"\r", 0, len(line.rstrip()))
    return "" if at < 0 else f"a carriage return at column {len(line[:at].decode()) + 1}, expected line feeds"


def read_rows(path, delimiter: str = ",") -> list[tuple[int, list[str]]]:
    """``(number of its last line, cells)`` of every row of a CSV file that is not blank."""
    with reading(path, "CSV"):
        reader = csv.reader(io.StringIO(read_text(path, "CSV"), newline=""), delimiter=delimiter)
        return [(reader.line_num, row) for row in reader if row]


def read_json(path, what: str = "JSON", shape=...):
    """The value in ``path``, checked against ``shape``."""
    with reading(path, what):
        return fitting(path, json_value(read_text(path, what)), shape, what)


def read_json_lines(path, shape=..., what: str = "one JSON value a line") -> list:
    """The values of a file with one a line."""
    values = []
    for number, line in read_lines(path):
        with reading(f"{path}:{number}", what):
            values.append(fitting(f"{path}:{number}", json_value(line), shape, what))
    return values


def read_toml(path, shape=...) -> dict:
    with reading(path, "TOML"):
        text = read_text(path, "TOML", LONGEST_TOML)
        if any(part.count(".") > DEEPEST for part in re.split("[=,\n]", text)):  # the parser would be slow for ever
            raise ValueError(f"a key of more than {DEEPEST} parts")
        value = tomllib.loads(text, parse_float=real)
        check_depth(value)
        return fitting(path, value, shape)


def json_value(text: str | bytes):
    """The value of JSON ``text``: no number too large, no key twice, no text that cannot be written again."""
    value = json.loads(text, object_pairs_hook=_object, parse_int=whole, parse_float=real)
    check_depth(value)
    if b"\\ud" in text.lower() if isinstance(text, bytes) else "\\ud" in text.lower():
        json.dumps(value, ensure_ascii=False).encode()  # halves of a pair
    return value


def _object(pairs: list[tuple]) -> dict:
    table = dict(pairs)
    if len(table) < len(pairs):
        raise ValueError(f"key {brief(next(key for key, _ in pairs if [k for k, _ in pairs].count(key) > 1))} twice")
    return table


def check_depth(value) -> None:
    level = [[value]]
    for _ in range(DEEPEST + 1):
        level = [each for held in level for each in (held.values() if isinstance(held, dict) else held)
                 if isinstance(each, list | dict)]  # fmt: skip
        if not level:
            return
    raise ValueError(f"lists or tables within one another, more than {DEEPEST} deep")


def fitting(path, value, shape, what: str = ""):
    """``value``, once it is sure that it is of ``shape``; ``what`` says in the message what it is not."""
    refuse(misfits(value, shape), f"{path}{what and f': not {what}'}", MOST)
    return value


def misfits(value, shape, place: str = "") -> list[str]:
    """What in a ``value`` of JSON or TOML is not as ``shape`` says, a sentence each.

    A shape is ``...``, anything; a type, where ``float`` is any finite number; a set of the texts it may be; None; a
    tuple of shapes, one of which must fit; ``[shape]``, a list of such; or a table ``{"key": shape, "key?": shape}``, a
    key with ``?`` may be absent, and ``...`` stands for all that are not named (else they may be there, unlooked at).
    """
    if shape is ... or isinstance(shape, tuple) and any(not misfits(value, each) for each in shape):
        return []
    if isinstance(shape, list) and isinstance(value, list):
        return [fault for n, each in enumerate(value) for fault in misfits(each, shape[0], f"{place}[{n}]")]
    if not isinstance(shape, dict) or not isinstance(value, dict):
        good = isinstance(value, str) and value in shape if isinstance(shape, set) else _is(value, shape)
        return [] if good else [f"{place and f'{place} '}is {brief(value)}, expected {_spoken(shape)}"]
    faults, named = [], {key.removesuffix("?"): key for key in shape if key is not ...}
    for key, own in named.items():
        if key in value:
            faults += misfits(value[key], shape[own], f"{place}.{key}" if place else key)
        elif own == key:
            faults.append(f"{place and f'{place}: '}no {key}")
    if ... in shape:
        others = (key for key in value if key not in named)
        faults += [fault for key in others for fault in misfits(value[key], shape[...], f"{place}.{key}"[not place :])]
    return faults


def _is(value, shape) -> bool:
    if shape is None or not isinstance(shape, type):
        return shape is None and value is None
    return {float: is_number, int: is_whole}.get(shape, lambda value: type(value) is shape)(value)


def _spoken(shape) -> str:
    words = {None: "null", float: "a number", int: "a whole number", str: "text", bool: "true or false"}
    if isinstance(shape, tuple | set):
        return " or ".join(map(_spoken, shape) if isinstance(shape, tuple) else sorted(shape))
    if isinstance(shape, dict) or shape is dict:
        return "a table"
    return "a list" if isinstance(shape, list) or shape is list else words[shape]


def read_keyed(path, fault) -> dict[str, tuple[int, str]]:
    """``key -> (line number, rest of the line)`` of a table of Kaldi's text form.

    Blank lines, CRLF and a byte-order mark are accepted; of bytes that are not text, other carriage returns, and a key
    that is there already, ``fault(kind, number, words)`` is told.
    """
    table: dict[str, tuple[int, str]] = {}
    held = read_bytes(path).removeprefix(MARK.encode())
    plain = b"\r" not in held and not not_text(held)  # as a whole: nothing to be looked for line by line
    for number, raw in enumerate(held.split(b"\n"), start=1):
        if words := "" if plain else not_text(raw) or lone_return(raw):
            fault("not text", number, words)
            continue
        key, *rest = raw.decode().strip().split(maxsplit=1) or [""]
        if key in table:
            fault("duplicate key", number, f"{key} is there already")
        elif key:
            table[key] = (number, *rest, "")[:2]
    return table


def place_of(value: str | None) -> tuple[str, int] | None:
    """``(archive, byte offset)`` of ``archive:offset``; None of anything else, such as a pipe."""
    ark, colon, offset = (value or "").rpartition(":")
    try:
        return (ark, whole(offset)) if colon and offset[:1].isdigit() and "|" not in ark else None
    except ValueError:
        return None

"""Strings in HTK's text files: quotes count where one begins, and a backslash takes what is behind it as it stands.

So ``don't`` and ``a#b`` need nothing, ``'cause`` is written ``\\'cause`` or ``"'cause"``. A backslash before three
octal digits is one byte of UTF-8.
"""

import re

SPACE = re.compile(r"[ \t\r\n\v\f]*")
NAME = re.compile(r"[^= \t\r\n\v\f]*")
BODY = {"": re.compile(r"(?:\\.|[^\\ \t\r\n\v\f])*", re.S),
        '"': re.compile(r'(?:\\.|[^\\"])*', re.S), "'": re.compile(r"(?:\\.|[^\\'])*", re.S)}  # fmt: skip
ESCAPE = re.compile(rb"\\(?:([0-7]{3})|(.))", re.S)
QUOTES = ("'", '"')


def string_at(line: str, at: int) -> tuple[str, int]:
    """``(string, place behind it)`` of the one that begins at ``line[at]``; ValueError where it does not end."""
    quote = line[at] if line.startswith(QUOTES, at) else ""
    body = BODY[quote].match(line, at + len(quote))
    behind = line[body.end() : body.end() + 1]
    if quote and not behind:
        raise ValueError(f"a quote that is not closed; one that belongs to the word is written \\{quote}")
    if behind == "\\":
        raise ValueError("nothing behind a backslash")
    held = ESCAPE.sub(lambda found: bytes([int(found[1], 8) % 256]) if found[1] else found[2], body[0].encode())
    return held.decode(), body.end() + len(quote)


def strings(line: str) -> list[str]:
    """All strings of a line."""
    found, at = [], SPACE.match(line).end()
    while at < len(line):
        text, at = string_at(line, at)
        found.append(text)
        at = SPACE.match(line, at).end()
    return found


def fields(line: str) -> dict[str, str]:
    """Fields ``NAME=value`` of a line of a word network; a # where a name could stand begins a comment."""
    found, at = {}, SPACE.match(line).end()
    while at < len(line) and line[at] != "#":
        name = NAME.match(line, at)
        at, value = name.end(), ""
        if line.startswith("=", at):
            value, at = string_at(line, at + 1)
        found[name[0]] = value
        at = SPACE.match(line, at).end()
    return found


def escaped(text: str) -> str:
    """``text`` as HTK writes it without quotes: a backslash before each backslash, and before a quote at its start."""
    return "\\" * text.startswith(QUOTES) + text.replace("\\", "\\\\")


def quoted(text: str) -> str:
    """``text`` in double quotes, as the names of models are written."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

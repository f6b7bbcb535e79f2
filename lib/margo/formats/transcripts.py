"""Transcripts and other tables of Kaldi's text form: ``utterance word word ...``, one a line."""

import json
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path

from margo.errors import MargoError, refuse
from margo.formats.atomic import write_text


def read_transcripts(path) -> dict[str, tuple[str, ...]]:
    """``utterance -> words`` in the file's order; a line without words is an utterance with an empty transcript.

    Blank lines, CRLF and a byte-order mark are accepted; a repeated utterance and bytes that are not UTF-8 are faults.
    """
    path = Path(path)
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise MargoError(f"{path}: cannot be read ({error.strerror})") from None
    table: dict[str, tuple[str, ...]] = {}
    faults = []
    for number, line in enumerate(raw.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        try:
            fields = line.decode("utf-8").split()
        except UnicodeDecodeError as error:
            faults.append(f"line {number}: byte 0x{line[error.start]:02x} is not UTF-8")
            continue
        if fields and fields[0] in table:
            faults.append(f"line {number}: {fields[0]} is there already")
        elif fields:
            table[fields[0]] = tuple(fields[1:])
    refuse(faults, str(path))
    return table


def read_nbest(path) -> dict[str, list[tuple[str, ...]]]:
    """``utterance -> strings``, best first, of nbest.jsonl."""
    with open(path, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return {row["utt"]: [tuple(hypothesis["words"]) for hypothesis in row["hyps"]] for row in rows}


def read_utt2spk(path) -> dict[str, str]:
    """``utterance -> speaker``."""
    table = read_transcripts(path)
    refuse([f"{name}: found {len(words)} speakers, expected one" for name, words in table.items() if len(words) != 1],
           str(path))  # fmt: skip
    return {name: words[0] for name, words in table.items()}


def write_transcripts(path, table: Mapping[str, Iterable[str]]) -> None:
    """Write ``utterance word word ...`` lines sorted by utterance."""
    write_text(path, "".join(" ".join([name, *table[name]]) + "\n" for name in sorted(table)))


def read_symbol_map(path, name: str = "map") -> dict[str, str]:
    """The table ``[name]`` of a TOML file, ``symbol = "symbol"``; an empty string removes the symbol."""
    try:
        table = tomllib.loads(Path(path).read_text(encoding="utf-8")).get(name)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise MargoError(f"{path}: cannot be read as TOML ({error})") from None
    if not isinstance(table, dict):
        raise MargoError(f'{path}: no [{name}] table with lines such as ix = "ih"')
    refuse(
        [f"[{name}] {key} = {value!r}: expected one symbol or an empty string" for key, value in table.items()
         if not isinstance(value, str) or len(value.split()) > 1],
        str(path),
    )  # fmt: skip
    return table


def map_symbols(words: Iterable[str], symbol_map: Mapping[str, str]) -> tuple[str, ...]:
    """``words`` with each mapped symbol replaced; unlisted ones stay, those mapped to nothing go."""
    return tuple(mapped for word in words if (mapped := symbol_map.get(word, word)))

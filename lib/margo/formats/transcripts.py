"""Transcripts and other tables of Kaldi's text form: ``utterance word word ...``, one a line."""

import json
from collections.abc import Iterable, Mapping

from margo.errors import MargoError, refuse
from margo.formats.atomic import write_text
from margo.formats.reading import read_keyed, read_toml


def read_transcripts(path) -> dict[str, tuple[str, ...]]:
    """``utterance -> words`` in the file's order; a line without words is an utterance with an empty transcript.

    Blank lines, CRLF and a byte-order mark are accepted; a repeated utterance and bytes that are not UTF-8 are faults.
    """
    faults = []
    try:
        table = read_keyed(path, lambda kind, number, words: faults.append(f"line {number}: {words}"))
    except OSError as error:
        raise MargoError(f"{path}: cannot be read ({error.strerror})") from None
    refuse(faults, str(path))
    return {name: tuple(words.split()) for name, (_, words) in table.items()}


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
    table = read_toml(path).get(name)
    if not isinstance(table, dict):
        raise MargoError(f'{path}: no [{name}] table with lines such as ix = "ih"')
    refuse([f"[{name}] {key} = {value!r}: expected one symbol or an empty string" for key, value in table.items()
            if not isinstance(value, str) or len(value.split()) > 1], str(path))  # fmt: skip
    return table


def map_symbols(words: Iterable[str], symbol_map: Mapping[str, str]) -> tuple[str, ...]:
    """``words`` with each mapped symbol replaced; unlisted ones stay, those mapped to nothing go."""
    return tuple(mapped for word in words if (mapped := symbol_map.get(word, word)))

"""Transcripts and other tables of Kaldi's text form: ``utterance word word ...``, one a line."""

from collections.abc import Iterable, Mapping

from margo.errors import refuse
from margo.formats.atomic import write_text
from margo.formats.reading import MOST, read_json_lines, read_keyed, read_toml
from margo.knobs import brief


def read_transcripts(path) -> dict[str, tuple[str, ...]]:
    """``utterance -> words`` in the file's order; a line without words is an utterance with an empty transcript.

    Blank lines, CRLF and a byte-order mark are accepted; a repeated utterance and bytes that are not UTF-8 are faults.
    """
    faults = []
    table = read_keyed(path, lambda kind, number, words: faults.append(f"line {number}: {words}"))
    refuse(faults, str(path), MOST)
    return {name: tuple(words.split()) for name, (_, words) in table.items()}


def read_nbest(path) -> dict[str, list[tuple[str, ...]]]:
    """``utterance -> strings``, best first, of nbest.jsonl."""
    rows = read_json_lines(path, {"utt": str, "hyps": [{"words": [str]}]}, "N-best lists")
    table = {row["utt"]: [tuple(hypothesis["words"]) for hypothesis in row["hyps"]] for row in rows}
    refuse(["an utterance is there twice"] * (len(table) < len(rows)), str(path))
    return table


def read_utt2spk(path) -> dict[str, str]:
    """``utterance -> speaker``."""
    table = read_transcripts(path)
    refuse([f"{name}: found {len(words)} speakers, expected one" for name, words in table.items() if len(words) != 1],
           str(path), MOST)  # fmt: skip
    return {name: words[0] for name, words in table.items()}


def write_transcripts(path, table: Mapping[str, Iterable[str]]) -> None:
    """Write ``utterance word word ...`` lines sorted by utterance."""
    write_text(path, "".join(" ".join([name, *table[name]]) + "\n" for name in sorted(table)))


def read_symbol_map(path, name: str = "map") -> dict[str, str]:
    """The table ``[name]`` of a TOML file, ``symbol = "symbol"``; an empty string removes the symbol."""
    table = read_toml(path, {name: dict})[name]
    refuse([f"[{name}] {key} = {brief(value)}: expected one symbol or an empty string" for key, value in table.items()
            if not isinstance(value, str) or len(value.split()) > 1], str(path), MOST)  # fmt: skip
    return table


def map_symbols(words: Iterable[str], symbol_map: Mapping[str, str]) -> tuple[str, ...]:
    """``words`` with each mapped symbol replaced; unlisted ones stay, those mapped to nothing go."""
    return tuple(mapped for word in words if (mapped := symbol_map.get(word, word)))

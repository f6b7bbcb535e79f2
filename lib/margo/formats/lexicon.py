"""Pronunciation dictionaries: Kaldi's lexicon.txt and lexiconp.txt, HTK's, and CMU's with variants as ``WORD(2)``.

All are lines ``word [output] probability unit unit ...``, where output (HTK) and probability may be absent. A word on
several lines has several pronunciations; where none has a probability, all are as likely. What is known to be HTK's has
its quotes and backslashes (:mod:`margo.formats.htk_strings`); elsewhere words are as they stand, but for a backslash
before a quote, or before another backslash, at the start of a word, which HTK's dictionaries have there.
"""

import math
import re
import unicodedata
from collections.abc import Iterable
from pathlib import Path

from margo.errors import refuse
from margo.formats.atomic import write_text
from margo.formats.htk_strings import escaped, strings
from margo.formats.reading import MOST, read_lines
from margo.knobs import brief, real
from margo.model.hmm import Pronunciation

SILENCE = "!SILENCE"  # the word that stands for optional silence in what is written
COMMENT = ";;;"
PROBABILITY = re.compile(r"[0-9]+\.[0-9]*|\.[0-9]+")
VARIANT = re.compile(r"(.+)\([0-9]+\)")
EXPECTED = "expected: word units, or word probability units, or word [] units"
HIDDEN = re.compile(r"^\\(?=['\"\\])")
NUMERIC = re.compile(r"[+-]?(\.?[0-9]|inf|nan)", re.I)  # begins as what HTK takes for a probability


def read_lexicon(path, htk: bool = False) -> tuple[dict[str, tuple[Pronunciation, ...]], dict[str, tuple[str, ...]]]:
    """``(words with their pronunciations, silent words with their units)``; HTK's words with the output ``[]`` are
    silent, another output than the word itself is refused. In a file named lexiconp every line has a probability.
    ``htk`` says that the file follows HTK's rules of quotes and backslashes."""
    weighed = Path(path).name.startswith("lexiconp")
    words: dict[str, dict] = {}
    silent, faults = {}, []
    for number, line in read_lines(path):
        if line.startswith(COMMENT):
            continue
        try:
            word, output, given, units = _fields(line, weighed, htk)
        except ValueError as error:
            faults.append(f"line {number}: {brief(line.strip())}: {error}")
            continue
        if variant := VARIANT.fullmatch(word):
            word = variant[1] if variant[1] in words else word
        if not word or not units or not all(units) or output not in (None, "[]", f"[{word}]"):
            faults.append(f"line {number}: {brief(line.strip())}, {EXPECTED}")
        elif (given is None and weighed) or (given is not None and not 0 < given <= 1):
            faults.append(f"line {number}: {brief(line.strip())}: probability {given}, expected more than 0, at most 1")
        elif output == "[]":
            silent[word] = units
        elif units in words.setdefault(word, {}):
            faults.append(f"line {number}: {word[:60]} has this pronunciation already")
        else:
            words[word][units] = given
    for word, ways in words.items():
        faults += [f"{word[:60]}: some pronunciations have a probability, others have none"] * (
            None in ways.values() and len({*ways.values()}) > 1)  # fmt: skip
    faults += ["no words"] * (not words and not faults)
    refuse(faults, str(path), MOST)
    return {word: weighed_ways(ways) for word, ways in words.items()}, silent


def _fields(line: str, weighed: bool, htk: bool) -> tuple:
    """``(word, output or None, probability or None, units)`` of a line."""
    word, *units = strings(line) if htk else (HIDDEN.sub("", field) for field in line.partition(" # ")[0].split())
    output = units.pop(0) if units and units[0].startswith("[") and units[0].endswith("]") else None
    given = None
    if units and (weighed or PROBABILITY.fullmatch(units[0])):
        try:
            given = real(units[0])
            units.pop(0)
        except ValueError:
            given = None
    return word, output, given, tuple(units)


def weighed_ways(ways: dict[tuple[str, ...], float | None]) -> tuple[Pronunciation, ...]:
    """Pronunciations from their probabilities; all as likely where these are None."""
    return tuple(Pronunciation(units, math.log(1 / len(ways) if given is None else given))
                 for units, given in ways.items())  # fmt: skip


def write_lexicon(path, lexicon: dict[str, tuple[Pronunciation, ...]], silence: str | None = None,
                  htk: bool = False) -> None:  # fmt: skip
    """Write a lexicon, sorted, so that :func:`read_lexicon` finds the same: probabilities where they are not all as
    likely, the file is named lexiconp, or ``htk`` would take a unit for one. ``silence`` is a unit that goes in as
    HTK's silent word."""
    weighed = Path(path).name.startswith("lexiconp")
    spelled = escaped if htk else lambda name: f"\\{name}" if HIDDEN.match(name) else name
    rows = [f"{SILENCE} [] {spelled(silence)}"] if silence is not None else []
    for word, ways in sorted(lexicon.items()):
        uniform = weighed_ways(dict.fromkeys(way.units for way in ways))
        for way in ways:
            told = weighed or uniform != ways or htk and NUMERIC.match(way.units[0])
            given = f" {probability(way.log_prob)}" if told else ""
            rows.append(f"{spelled(word)}{given} {' '.join(map(spelled, way.units))}")
    write_text(path, "".join(f"{row}\n" for row in rows))


def probability(log_prob: float) -> str:
    """As a decimal fraction that gives the same logarithm, never with an exponent."""
    text = f"{min(math.exp(log_prob), 1.0):.17g}"
    return f"{min(math.exp(log_prob), 1.0):.20f}" if "e" in text else text if "." in text else f"{text}.0"


def graphemes(word: str) -> tuple[str, ...]:
    """The letters and digits of a word, in lower case, each with the marks above or below it: units of a word that
    nobody has written a pronunciation of."""
    units: list[str] = []
    for letter in unicodedata.normalize("NFC", word.casefold()):
        kind = unicodedata.category(letter)[0]
        if kind == "M" and units:
            units[-1] += letter
        elif kind in "LN":
            units.append(letter)
    return tuple(units)


def grapheme_lexicon(words: Iterable[str]) -> dict[str, tuple[Pronunciation, ...]]:
    """Each word by its letters; a word without any is refused."""
    table = {word: (Pronunciation(graphemes(word)),) for word in words}
    refuse([f"{word}: no letter or digit" for word, (way,) in table.items() if not way.units], "grapheme lexicon", MOST)
    return table

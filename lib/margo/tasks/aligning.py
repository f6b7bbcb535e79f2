"""People's recordings with what was said in them: when each word was, for Praat and ELAN, doubtful places first."""

import string
from bisect import bisect_left
from dataclasses import dataclass, field
from pathlib import Path

from margo.errors import MargoError
from margo.formats.audio import read_audio
from margo.formats.eaf import read_eaf, write_eaf
from margo.formats.reading import read_text
from margo.formats.textgrid import Interval, Points, Tiers, read_textgrid, write_textgrid
from margo.knobs import Knobs, knob
from margo.tasks.recognising import Recogniser

AUDIO = {".wav", ".flac", ".ogg", ".mp3", ".aiff", ".aif", ".au", ".sph", ".nist"}
TEXTS, GRID, ELAN = (".lab", ".txt"), ".TextGrid", ".eaf"  # what may stand beside a recording
OVER = 0.05  # seconds that an interval of the input may end after its recording
ROUNDING = 0.0015  # seconds; times of neighbours, each rounded to the millisecond


@dataclass(frozen=True)
class PlacingOptions(Knobs):
    """How boundaries are weighed; frames are less independent than models take them for."""

    GROUP = "settings"
    boundary_scale: float = knob(0.05, "acoustic scale of the posteriors of boundaries", above=0, below=float("inf"))


@dataclass(frozen=True)
class Said:
    """A recording and its words: those of ``words`` from beginning to end, else the labels of ``tier`` each in its own
    time. ``kept`` are the tiers that came with it, ``eaf`` the file that they came from where that is ELAN's."""

    audio: Path
    words: str | None
    kept: Tiers = field(default_factory=dict)
    tier: str = ""
    eaf: Path | None = None


@dataclass(frozen=True)
class Timed:
    """An aligned recording: words and units with ``start``, ``end`` and ``confidence``, units with the ``deviation`` of
    their start; seconds in all."""

    said: Said
    seconds: float
    words: list[dict]
    units: list[dict]

    def tiers(self) -> dict[str, list[Interval]]:
        """``words``, ``units``, ``confidence`` of words, ``unit confidence``, and how many milliseconds the start of
        each unit may be off (``deviation``); by another name where a tier that came with it has that."""
        sure, sounds = ([{**row, "confidence": f"{row['confidence']:.2f}"} for row in rows]
                        for rows in (self.words, self.units))  # fmt: skip
        named = {"words": (self.words, "word"), "units": (self.units, "unit"), "confidence": (sure, "confidence"),
                 "unit confidence": (sounds, "confidence")}  # fmt: skip
        if all(unit["deviation"] is not None for unit in self.units):
            spread = [{**unit, "deviation": f"{1000 * unit['deviation']:.0f}"} for unit in self.units]
            named["deviation"] = (spread, "deviation")
        return {name + " (margo)" * (name in self.said.kept): [Interval(row["start"], row["end"], row[key])
                for row in rows if row["end"] > row["start"]] for name, (rows, key) in named.items()}  # fmt: skip


def beside(audio, tier: str = "", words: str | None = None) -> Said:
    """A recording with the ``words``, or with those of the .lab or .txt file beside it, or with the labels of a tier
    (the first one, if not ``tier``) of the TextGrid or ELAN file beside it, whose tiers are kept in any case."""
    audio, kept, eaf = Path(audio), {}, None
    texts = [path for path in map(audio.with_suffix, TEXTS) if path.is_file()]
    if audio.with_suffix(GRID).is_file():
        _, kept = read_textgrid(audio.with_suffix(GRID))
    elif audio.with_suffix(ELAN).is_file():
        eaf = audio.with_suffix(ELAN)
        kept = read_eaf(eaf)
    if words is None and texts:
        words = read_text(texts[0])
    if words is None and not kept:
        names = " ".join(audio.with_suffix(suffix).name for suffix in (*TEXTS, GRID, ELAN))
        raise MargoError(f"{audio}: nothing beside it says its words, expected one of {names}")
    chosen = tier or next((name for name, rows in kept.items() if rows and not isinstance(rows, Points)), "")
    if words is None and (chosen not in kept or isinstance(kept[chosen], Points)):
        told = f"no tier of intervals called {tier}" if tier else "no tier of intervals"
        raise MargoError(f"{audio}: {told} beside it; there are {', '.join(kept)}")
    return Said(audio, words, kept, "" if words is not None else chosen, eaf)


def recordings(folder, tier: str = "") -> tuple[list[Said], list[str]]:
    """All recordings below ``folder`` with their words, and what is wrong with the others."""
    said, faults, seen = [], [], set()
    for audio in sorted(path for path in Path(folder).rglob("*") if path.suffix.lower() in AUDIO):
        if audio.with_suffix("") in seen:
            faults.append(f"{audio}: another recording is called {audio.stem}, too")
            continue
        seen.add(audio.with_suffix(""))
        try:
            said.append(beside(audio, tier))
        except MargoError as error:
            faults.append(str(error))
    if not said and not faults:
        raise MargoError(f"{folder}: no recordings there, expected some of {' '.join(sorted(AUDIO))}")
    return said, faults


def timed(model: Recogniser, channel: int | None, said: Said) -> Timed | str:
    """The recording with times, or what is wrong with it."""
    try:
        samples, rate = read_audio(said.audio, rate=model.options.sample_rate, channel=channel)
        seconds, words, units = len(samples) / rate, [], []
        pieces = [Interval(0.0, seconds, said.words)] if said.words is not None else said.kept[said.tier]
        for piece in pieces:
            first, last = round(piece.start * rate), round(piece.end * rate)
            try:
                found = model.align((samples[first:last], rate), known(piece.label, model.hmms.lexicon))
            except MargoError as error:
                where = f"{piece.start:.3f} to {piece.end:.3f} s: " if said.tier else ""
                raise MargoError(where + str(error).removeprefix("samples: ")) from None
            own = intervals(found["units"], piece, seconds)
            words += intervals(found["words"], piece, seconds, [unit["end"] for unit in own])
            units += own
        return Timed(said, seconds, words, units)
    except MargoError as error:
        return str(error) if str(error).startswith(str(said.audio)) else f"{said.audio}: {error}"


def intervals(rows: list[dict], piece: Interval, seconds: float, ends=()) -> list[dict]:
    """``rows`` with an ``end`` in place of their duration, in the recording's own time: where the next one begins, or
    one of the ``ends`` (ascending), where no more than rounding lies between."""
    starts = [piece.start + row["start"] for row in rows] + [min(piece.end, seconds)]
    told = []
    for row, start, following in zip(rows, starts, starts[1:]):
        end = min(start + row["duration"], following)
        near = [following, *ends[bisect_left(ends, end - ROUNDING) :][:1]]
        told.append({**row, "start": start, "end": next((at for at in near if abs(at - end) <= ROUNDING), end)})
    return told


def known(text: str, lexicon) -> list[str]:
    """The words of ``text`` as the model spells them: as they are, or else without the signs around them, in small or
    in capital letters. Signs alone are no words; a word that the model has not is left as it is, to be refused."""
    words = []
    for word in text.split():
        core = bare(word)
        spellings = [each for each in (word, core, core.lower(), core.upper()) if each in lexicon]
        words += spellings[:1] or [word] * bool(core)
    return words


def bare(word: str) -> str:
    """A word without the signs around it."""
    return word.strip(string.punctuation + "«»„“”‚‘’…–—¿¡")


def doubtful(done: list[Timed], below: float) -> list[tuple]:
    """``(confidence, recording, start, end, word)`` of words with less confidence, the least first."""
    rows = [(word["confidence"], str(each.said.audio), word["start"], word["end"], word["word"])
            for each in done for word in each.words if word["confidence"] < below]  # fmt: skip
    return sorted(rows)


def write_tiers(done: Timed, textgrid=None, eaf=None, short: bool = False) -> None:
    """The tiers that came with a recording, and behind them words, units and confidences, to files for Praat and ELAN;
    what ends a little after the recording, as where its length was rounded, ends with it."""
    kept = {name: type(rows)(Interval(min(row.start, done.seconds), min(row.end, done.seconds)
                             if row.end <= done.seconds + OVER else row.end, row.label) for row in rows)
            for name, rows in done.said.kept.items()}  # fmt: skip
    if textgrid is not None:
        write_textgrid(textgrid, done.seconds, {**kept, **done.tiers()}, short)
    if eaf is not None:
        tiers = done.tiers() if done.said.eaf else {**kept, **done.tiers()}
        write_eaf(eaf, done.said.audio, tiers, done.said.eaf)

"""CTM files: ``utterance channel start duration word [confidence]``, times in seconds."""

from collections.abc import Iterable
from dataclasses import dataclass

from margo.errors import refuse
from margo.formats.atomic import write_text
from margo.formats.reading import read_text


@dataclass(frozen=True)
class TimedWord:
    """One line of a CTM file; ``confidence`` is a posterior in [0, 1], or None where there is none."""

    utterance: str
    start: float
    duration: float
    word: str
    confidence: float | None = None
    channel: str = "1"

    @property
    def end(self) -> float:
        return self.start + self.duration


def ctm_line(row: TimedWord) -> str:
    """``utt 1 0.120 0.310 word 0.9876``: times to the millisecond, confidence to four digits."""
    confidence = "" if row.confidence is None else f" {row.confidence:.4f}"
    return f"{row.utterance} {row.channel} {row.start:.3f} {row.duration:.3f} {row.word}{confidence}"


def write_ctm(path, rows: Iterable[TimedWord]) -> None:
    """Write ``rows`` sorted by utterance, channel and start, as scoring tools expect them."""
    ordered = sorted(rows, key=lambda row: (row.utterance, row.channel, row.start))
    write_text(path, "".join(ctm_line(row) + "\n" for row in ordered))


def read_ctm(path) -> list[TimedWord]:
    """The rows of a CTM file in its order; ``;;`` comments and blank lines are skipped."""
    rows, faults = [], []
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        fields = line.split()
        if not fields or line.startswith(";;"):
            continue
        try:
            utterance, channel, start, duration, word, *rest = fields
            (confidence,) = rest or [None]
            row = TimedWord(utterance, float(start), float(duration), word, confidence and float(confidence), channel)
        except ValueError:
            faults.append(f"line {number}: {line!r} (expected: utterance channel start duration word [confidence])")
            continue
        if not (0 <= row.start < float("inf") and 0 <= row.duration < float("inf")):
            faults.append(f"line {number}: from {start} for {duration} s (expected times of at least 0)")
        rows.append(row)
    refuse(faults, str(path))
    return rows

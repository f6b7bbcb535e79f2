"""CTM files: ``utterance channel start duration word [confidence]``, times in seconds."""

from collections.abc import Iterable
from dataclasses import dataclass

from margo.errors import refuse
from margo.formats.atomic import write_text
from margo.formats.reading import MOST, read_lines
from margo.knobs import brief, real


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
    rows = list(rows)
    refuse([f"{row.utterance}: a line that begins with ;; would be read as a comment" for row in rows
            if row.utterance.startswith(";;")], f"{path}: cannot be written", MOST)  # fmt: skip
    ordered = sorted(rows, key=lambda row: (row.utterance, row.channel, row.start))
    write_text(path, "".join(ctm_line(row) + "\n" for row in ordered))


def read_ctm(path) -> list[TimedWord]:
    """The rows of a CTM file in its order; ``;;`` comments and blank lines are skipped."""
    rows, faults = [], []
    for number, line in read_lines(path):
        fields = line.split()
        if line.startswith(";;"):
            continue
        try:
            utterance, channel, start, duration, word, *rest = fields
            (confidence,) = rest or [None]
            row = TimedWord(utterance, real(start), real(duration), word, confidence and real(confidence), channel)
        except ValueError:
            wanted = "utterance channel start duration word [confidence]"
            faults.append(f"line {number}: {brief(line)} (expected: {wanted})")
            continue
        if row.start < 0 or row.duration < 0:
            faults.append(f"line {number}: from {start} for {duration} s (expected times of at least 0)")
        rows.append(row)
    refuse(faults, str(path), MOST)
    return rows

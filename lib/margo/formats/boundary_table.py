"""Boundaries between the units of alignments, with how sure they are: a CSV file; and what was learnt of them.

``boundaries.csv``: ``utterance,time,deviation,left,right,confidence``: seconds, and that of the unit to the right.
``correction.json``: :class:`margo.score.boundaries.Correction`.
"""

import csv
import io
from collections.abc import Iterable
from dataclasses import asdict
from typing import NamedTuple

from margo.errors import refuse
from margo.formats.atomic import write_json, write_text
from margo.formats.reading import MOST, file_in, read_json, read_rows
from margo.knobs import brief, real
from margo.score.boundaries import Correction

TABLE, CORRECTION = "boundaries.csv", "correction.json"


class BoundaryRow(NamedTuple):
    utterance: str
    time: float
    deviation: float
    left: str
    right: str
    confidence: float


def write_boundaries(path, rows: Iterable[BoundaryRow]) -> None:
    """Times to the millisecond, as in CTM files; deviations to a tenth of that."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(BoundaryRow._fields)
    for row in rows:
        writer.writerow((row.utterance, f"{row.time:.3f}", f"{row.deviation:.4f}", row.left, row.right,
                         f"{row.confidence:.4f}"))  # fmt: skip
    write_text(path, text.getvalue())


def read_boundaries(path) -> list[BoundaryRow]:
    rows, faults = [], []
    for number, cells in read_rows(path):
        try:
            name, time, deviation, left, right, confidence = cells
            if tuple(cells) != BoundaryRow._fields:
                rows.append(BoundaryRow(name, real(time), real(deviation), left, right, real(confidence)))
        except ValueError:
            faults.append(f"line {number}: {len(cells)} cells, {','.join(cells)[:60]!r} (expected: "
                          f"{','.join(BoundaryRow._fields)})")  # fmt: skip
    refuse(faults, str(path), MOST)
    return rows


def write_correction(path, correction: Correction) -> None:
    write_json(path, asdict(correction))


def read_correction(folder) -> Correction:
    shape = {"late": float, "pairs": {...: float}, "factor": float, "classes": {...: str}}
    path = file_in(folder, CORRECTION)
    held = read_json(path, "what train_correction writes", shape)
    faults = [f"{brief(key)} is no key of it: {' '.join(shape)} are" for key in sorted(held.keys() - shape.keys())]
    refuse(faults + [f"factor is {held['factor']}, expected 0 or more"] * (held["factor"] < 0), str(path), MOST)
    return Correction(**held)

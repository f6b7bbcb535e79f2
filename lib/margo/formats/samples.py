"""Labelled samples in CSV: columns ``split`` (train, test), ``speaker`` (optional), ``class``, then features."""

import csv
from dataclasses import dataclass

import numpy as np

from margo.errors import MargoError, refuse
from margo.formats.atomic import atomic
from margo.formats.reading import MOST, read_rows
from margo.knobs import brief, real, whole

SPLITS = ("train", "test")


@dataclass(frozen=True)
class Samples:
    """``x`` [N, D], classes ``y`` [N] from 0, and speakers ``groups`` [N] (empty where the file names none)."""

    x: np.ndarray
    y: np.ndarray
    groups: np.ndarray


def read_samples(path) -> dict[str, Samples]:
    """``{"train": Samples, "test": Samples}`` of a file, every cell checked."""
    rows = read_rows(path)
    header = rows[0][1] if rows else []
    column = {name: header.index(name) for name in ("split", "speaker", "class") if name in header}
    features = [place for place, name in enumerate(header) if name not in column]
    if not {"split", "class"} <= column.keys() or not features:
        raise MargoError(f"{path}: columns {brief(header)}; expected split, speaker (optional), class and features")
    faults, found = [], {split: ([], [], []) for split in SPLITS}
    for number, row in rows[1:]:
        if len(row) != len(header):
            faults.append(f"line {number}: {len(row)} cells, the header has {len(header)}")
            continue
        split = row[column["split"]]
        if split not in found:
            faults.append(f"line {number}: split is {brief(split)}, expected {' or '.join(SPLITS)}")
            continue
        try:
            values = [real(row[place]) for place in features]
            label = whole(row[column["class"]])
        except ValueError as error:
            faults.append(f"line {number}: a cell {error}")
            continue
        if not 0 <= label < len(rows):
            faults.append(f"line {number}: class is {label}, expected 0 or more, and less than the number of rows")
            continue
        found[split][0].append(values)
        found[split][1].append(label)
        if "speaker" in column:
            found[split][2].append(row[column["speaker"]])
    faults += [f"no {split} rows" for split in SPLITS if not found[split][0] and not faults]
    if not faults:
        classes = range(max(*found["train"][1], *found["test"][1]) + 1)
        faults += [f"class {label} has no train rows" for label in sorted(set(classes) - set(found["train"][1]))]
    refuse(faults, str(path), MOST)
    return {split: Samples(np.array(x), np.array(y), np.array(groups)) for split, (x, y, groups) in found.items()}


def write_samples(path, samples: dict[str, Samples]) -> None:
    """Write ``{split: Samples}``; numbers keep all their digits."""
    first = next(iter(samples.values()))
    with_speakers = len(first.groups) > 0
    names = ["split", *(["speaker"] if with_speakers else []), "class", *(f"f{d}" for d in range(first.x.shape[1]))]
    with atomic(path) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        for split, part in samples.items():
            for i in range(len(part.x)):
                speaker = [part.groups[i]] if with_speakers else []
                writer.writerow([split, *speaker, part.y[i], *(repr(float(value)) for value in part.x[i])])

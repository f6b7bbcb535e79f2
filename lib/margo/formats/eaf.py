"""ELAN's annotation files (.eaf), through pympi (extra ``elan``): tiers of intervals beside a recording."""

import os
from pathlib import Path

from margo.errors import MargoError
from margo.formats.atomic import write_text
from margo.formats.reading import read_bytes, reading
from margo.formats.textgrid import Interval, Tiers

MARK = '<?xml version="1.0" encoding="UTF-8"?>\n'


def read_eaf(path) -> dict[str, list[Interval]]:
    """The tiers of an annotation file; annotations that refer to others have the times of those."""
    eaf = _load(path)
    with reading(path, "an ELAN file"):
        tiers = {}
        for name in eaf.get_tier_names():
            rows = sorted(eaf.get_annotation_data_for_tier(name), key=lambda row: row[:2])
            tiers[name] = [Interval(row[0] / 1000, row[1] / 1000, row[2] or "") for row in rows]
        return tiers


def write_eaf(path, audio, tiers: Tiers, source=None) -> None:
    """Write ``tiers``, to the millisecond, beside the recording ``audio``; with ``source``, another annotation file,
    all that it holds is kept and the tiers are added to it. A point lasts a millisecond: ELAN has none."""
    from pympi import Eaf
    from pympi.Elan import to_string

    eaf = Eaf(author="margo") if source is None else _load(source)
    if source is None:
        eaf.remove_tier("default")
        place = Path(os.path.relpath(audio, Path(path).parent)).as_posix()
        eaf.add_linked_file(Path(audio).resolve().as_uri(), relpath=f"./{place}", mimetype="audio/x-wav")
    if taken := sorted(tiers.keys() & {*eaf.get_tier_names()}):
        raise MargoError(f"{path}: {source} has tiers called {' '.join(taken)} already")
    for name, tier in tiers.items():
        eaf.add_tier(name)
        for start, end, label in ((round(1000 * row.start), round(1000 * row.end), row.label) for row in tier):
            eaf.add_annotation(name, start, max(end, start + 1), label)
    write_text(path, MARK + to_string(eaf) + "\n")


def _load(path):
    from pympi import Eaf

    read_bytes(path)  # a plain file
    with reading(path, "an ELAN file"):
        eaf = Eaf(str(path), suppress_version_warning=True)
        eaf.maxts, eaf.maxaid = _last(eaf.timeslots), _last(eaf.annotations)  # what is new is numbered from here on
        return eaf


def _last(names) -> int:
    """The largest number in names such as ts12; at least 1."""
    return max((int("".join(filter(str.isdigit, name)) or 0) for name in names), default=0) or 1

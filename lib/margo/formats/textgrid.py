"""Praat TextGrid files with tiers of intervals, such as words and phones, and of points.

Both text forms are written and read. Praat itself takes a file for a row of quoted texts, numbers and flags that stand
free, whatever is written around them, which is all that the long form adds to the short one; so does the reader here.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from margo.errors import MargoError, refuse
from margo.formats.atomic import write_text
from margo.formats.reading import read_bytes, read_text, reading
from margo.knobs import brief, real, whole

SMALLEST = 1e-6  # seconds; gaps and overlaps below this are rounding
UTF16 = (b"\xfe\xff", b"\xff\xfe")  # how files of Praat begin that hold more than ASCII, by its default
FREE = re.compile(r'"(?P<text>(?:[^"]|"")*)"|(?<!\S)(?:(?P<flag><\w+>)|(?P<number>[-+.0-9][-+.0-9eE]*))(?!\S)|![^\n]*')
KINDS = {"IntervalTier": 2, "TextTier": 1}  # times of each entry


@dataclass(frozen=True)
class Interval:
    """``label`` from ``start`` to ``end``, in seconds; in a tier of points the two are the same."""

    start: float
    end: float
    label: str


class Points(list):
    """A tier whose entries are points in time."""


Tiers = Mapping[str, Sequence[Interval]]


def write_textgrid(path, duration: float, tiers: Tiers, short: bool = False) -> None:
    """Write ``tiers`` of a recording of ``duration`` seconds, in Praat's long form or its ``short`` one; gaps between
    intervals become intervals with an empty label."""
    faults = [fault for name, intervals in tiers.items() for fault in _faults(name, intervals, duration)]
    refuse(faults, f"{path}: tiers cannot be written")
    lines = ['File type = "ooTextFile"', 'Object class = "TextGrid"', ""]
    for around, value in _values(duration, tiers):
        lines.append(value if short else around.replace("@", value))
    write_text(path, "\n".join(line for n, line in enumerate(lines) if line or n == 2) + "\n")


def _values(duration: float, tiers: Tiers) -> Iterator[tuple[str, str]]:
    """``(what the long form writes around it, value)`` of all that stands in a file; @ is the value's place."""
    end = _time(duration)
    yield from (("xmin = @", "0"), ("xmax = @", end), ("tiers? @", "<exists>"), ("size = @", str(len(tiers))))
    yield "item []:", ""
    for number, (name, tier) in enumerate(tiers.items(), 1):
        points = isinstance(tier, Points)
        rows, what = (sorted(tier, key=_start), "points") if points else (fill(tier, duration), "intervals")
        yield f"    item [{number}]:", ""
        yield "        class = @", '"TextTier"' if points else '"IntervalTier"'
        yield "        name = @", _quoted(name)
        yield from (("        xmin = @", "0"), ("        xmax = @", end), (f"        {what}: size = @", str(len(rows))))
        for count, row in enumerate(rows, 1):
            yield f"        {what} [{count}]:", ""
            yield f"            {'number' if points else 'xmin'} = @", _time(row.start)
            if not points:
                yield "            xmax = @", _time(row.end)
            yield f"            {'mark' if points else 'text'} = @", _quoted(row.label)


def fill(intervals: Sequence[Interval], duration: float) -> list[Interval]:
    """``intervals`` in order of time with empty ones in the gaps, from 0 to ``duration`` without a break."""
    filled, reached = [], 0.0
    for interval in sorted(intervals, key=_start):
        if interval.start - reached > SMALLEST:
            filled.append(Interval(reached, interval.start, ""))
            reached = interval.start
        end = duration if abs(interval.end - duration) <= SMALLEST else interval.end
        filled.append(Interval(reached, end, interval.label))
        reached = end
    if duration - reached > SMALLEST or not filled:
        filled.append(Interval(reached, duration, ""))
    return filled


def _start(interval: Interval) -> float:
    return interval.start


def _faults(name: str, intervals: Sequence[Interval], duration: float) -> list[str]:
    faults, reached = [], 0.0
    for interval in sorted(intervals, key=_start):
        where = f"tier {name}: {interval.label!r} from {interval.start:g} to {interval.end:g} s"
        if not interval.start < interval.end and not isinstance(intervals, Points):
            faults.append(f"{where}: has no length")
        elif interval.start < reached - SMALLEST:
            faults.append(f"{where}: begins before its predecessor ends at {reached:g} s")
        elif interval.end > duration + SMALLEST:
            faults.append(f"{where}: ends after the recording ({duration:g} s)")
        reached = interval.end
    return faults


def _time(seconds: float) -> str:
    return f"{seconds:.9f}".rstrip("0").rstrip(".")


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def read_textgrid(path) -> tuple[float, dict[str, Sequence[Interval]]]:
    """``(duration, tiers)`` of a TextGrid in either text form; intervals with an empty label are left out."""
    with reading(path, "a TextGrid"):
        raw = read_bytes(path)
        found = FREE.finditer(raw.decode("utf-16") if raw[:2] in UTF16 else read_text(path))
        values = ((each.lastgroup, each[each.lastgroup]) for each in found if each.lastgroup)
        if not next(values, ("", ""))[1].startswith("ooTextFile") or next(values, ("", ""))[1] != "TextGrid":
            raise MargoError("not a TextGrid in one of Praat's text forms")
        _, duration, there = _take(values, "number"), _take(values, "number"), _take(values, "flag")
        tiers: dict[str, Sequence[Interval]] = {}
        for _ in range(whole(_take(values, "number")) if there == "<exists>" else 0):
            name, tier = _read_tier(values)
            if name in tiers:
                raise MargoError(f"two tiers are called {brief(name)}, expected names of their own")
            tiers[name] = tier
        if next(values, None):
            raise MargoError("holds more than the tiers and entries that it counts")
        return real(duration), tiers


def _read_tier(values: Iterator) -> tuple[str, Sequence[Interval]]:
    kind, name = _take(values, "text"), _take(values, "text")
    if kind not in KINDS:
        raise MargoError(f"tier {brief(name)} is a {brief(kind)}, expected {' or '.join(KINDS)}")
    _, _, count = (_take(values, "number") for _ in range(3))
    tier = Points() if KINDS[kind] == 1 else []
    for _ in range(whole(count)):
        times = [real(_take(values, "number")) for _ in range(KINDS[kind])]
        label = _take(values, "text")
        if label or isinstance(tier, Points):
            tier.append(Interval(times[0], times[-1], label))
    return name, tier


def _take(values: Iterator, wanted: str) -> str:
    kind, value = next(values, ("the file's end", ""))
    if kind != wanted:
        raise MargoError(f"found {kind}{value and f' {brief(value)}'}, expected a {wanted}")
    return value.replace('""', '"') if kind == "text" else value

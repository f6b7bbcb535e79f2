"""Praat TextGrid files (long text form) with interval tiers, such as words and phones."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from margo.errors import MargoError, refuse
from margo.formats.atomic import write_text
from margo.formats.reading import read_text

SMALLEST = 1e-6  # seconds; gaps and overlaps below this are rounding


@dataclass(frozen=True)
class Interval:
    """``label`` from ``start`` to ``end``, in seconds."""

    start: float
    end: float
    label: str


def write_textgrid(path, duration: float, tiers: Mapping[str, Sequence[Interval]]) -> None:
    """Write interval ``tiers`` of a recording of ``duration`` seconds; gaps become intervals with an empty label."""
    faults = [fault for name, intervals in tiers.items() for fault in _faults(name, intervals, duration)]
    refuse(faults, f"{path}: tiers cannot be written")
    head = ['File type = "ooTextFile"', 'Object class = "TextGrid"', "", "xmin = 0", f"xmax = {_time(duration)}",
            "tiers? <exists>", f"size = {len(tiers)}", "item []:"]  # fmt: skip
    body = [_tier(n, name, fill(tiers[name], duration), duration) for n, name in enumerate(tiers, start=1)]
    write_text(path, "\n".join(sum(body, head)) + "\n")


def fill(intervals: Sequence[Interval], duration: float) -> list[Interval]:
    """``intervals`` in order of time with empty ones in the gaps, from 0 to ``duration`` without a break."""
    filled, reached = [], 0.0
    for interval in sorted(intervals, key=lambda interval: interval.start):
        if interval.start - reached > SMALLEST:
            filled.append(Interval(reached, interval.start, ""))
            reached = interval.start
        filled.append(Interval(reached, interval.end, interval.label))
        reached = interval.end
    if duration - reached > SMALLEST or not filled:
        filled.append(Interval(reached, duration, ""))
    return filled


def _faults(name: str, intervals: Sequence[Interval], duration: float) -> list[str]:
    faults, reached = [], 0.0
    for interval in sorted(intervals, key=lambda interval: interval.start):
        where = f"tier {name}: {interval.label!r} from {interval.start:g} to {interval.end:g} s"
        if not interval.start < interval.end:
            faults.append(f"{where}: has no length")
        elif interval.start < reached - SMALLEST:
            faults.append(f"{where}: begins before its predecessor ends at {reached:g} s")
        elif interval.end > duration + SMALLEST:
            faults.append(f"{where}: ends after the recording ({duration:g} s)")
        reached = interval.end
    return faults


def _tier(number: int, name: str, intervals: Sequence[Interval], duration: float) -> list[str]:
    lines = [f"    item [{number}]:", '        class = "IntervalTier"', f"        name = {_quoted(name)}",
             "        xmin = 0", f"        xmax = {_time(duration)}",
             f"        intervals: size = {len(intervals)}"]  # fmt: skip
    for count, interval in enumerate(intervals, start=1):
        lines.append(f"        intervals [{count}]:")
        facts = {"xmin": _time(interval.start), "xmax": _time(interval.end), "text": _quoted(interval.label)}
        lines += [f"            {key} = {value}" for key, value in facts.items()]
    return lines


def _time(seconds: float) -> str:
    return f"{seconds:.6f}".rstrip("0").rstrip(".")


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def read_textgrid(path) -> tuple[float, dict[str, list[Interval]]]:
    """``(duration, tiers)`` of a long-form TextGrid; intervals with an empty label are left out."""
    head, *items = re.split(r"^\s*item \[\d+\]:\s*$", read_text(path), flags=re.MULTILINE)
    end = re.search(r"^xmax = (\S+)", head, re.MULTILINE)
    if 'Object class = "TextGrid"' not in head or not end:
        raise MargoError(f"{path}: not a TextGrid in Praat's long text form")
    tiers = {}
    for item in items:
        name = re.search(r'^\s*name = "((?:[^"]|"")*)"', item, re.MULTILINE)
        found = re.findall(r'xmin = (\S+)\s+xmax = (\S+)\s+text = "((?:[^"]|"")*)"', item)
        if name is None:
            raise MargoError(f"{path}: a tier has no name")
        tiers[name[1].replace('""', '"')] = [
            Interval(float(start), float(stop), label.replace('""', '"')) for start, stop, label in found if label
        ]
    return float(end[1]), tiers

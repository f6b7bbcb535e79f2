"""Praat TextGrid files (long text form) with interval tiers, such as words and phones."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from margo.errors import MargoError, refuse
from margo.formats.atomic import write_text
from margo.formats.reading import read_text, reading
from margo.knobs import brief, real, whole

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
    with reading(path, "a TextGrid"):
        head, *items = re.split(r"^[ \t]*item \[[0-9]+\]:[ \t\r]*$", read_text(path), flags=re.MULTILINE)
        end, size = re.search(r"^xmax = (\S+)", head, re.MULTILINE), re.search(r"^size = (\S+)", head, re.MULTILINE)
        if 'Object class = "TextGrid"' not in head or not end or not size:
            raise MargoError("not a TextGrid in Praat's long text form")
        tiers = dict(map(_read_tier, items))
        if len(tiers) != whole(size[1]):
            raise MargoError(f"found {len(tiers)} tiers with names of their own, expected {size[1]}")
        return real(end[1]), tiers


def _read_tier(item: str) -> tuple[str, list[Interval]]:
    name = re.search(r'^[ \t]*name = "((?:[^"]|"")*)"', item, re.MULTILINE)
    size = re.search(r"^[ \t]*intervals: size = (\S+)", item, re.MULTILINE)
    found = re.findall(r'xmin = (\S+)\s+xmax = (\S+)\s+text = "((?:[^"]|"")*)"', item)
    if name is None or size is None:
        raise MargoError(f"a tier has no {'name' if name is None else 'intervals'}")
    if len(found) != whole(size[1]):
        raise MargoError(f"tier {brief(name[1])}: found {len(found)} intervals, expected {size[1]}")
    intervals = [Interval(real(start), real(stop), label.replace('""', '"')) for start, stop, label in found]
    return name[1].replace('""', '"'), [interval for interval in intervals if interval.label]

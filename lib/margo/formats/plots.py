"""What a report draws: ``progress.jsonl`` of trainers, and ``plots.json`` that any folder of a run may hold.

``plots.json`` is a list of plots. Each has ``title`` and ``kind``, and may have ``x_label``, ``y_label``, ``note`` (a
sentence under it) and ``x_log`` or ``y_log`` (true for a logarithmic axis). By kind:

=============  =========================================================================================================
line, scatter  ``series``: list of ``{"name", "x": [...], "y": [...]}``; a series may set ``"style"`` to ``line`` or
               ``points`` itself. ``region``: ``{"values": [[class, ...], ...], "x": [low, high], "y": [low, high]}``
               colours the background by class, first row at the bottom, as for decision regions.
histogram      ``series``: list of ``{"name", "edges": [B + 1 numbers], "counts": [B numbers]}``
heatmap        ``values``: list of rows, first row at the top; ``rows`` and ``columns``: their labels
image          ``source``: a ``data:image/png;base64,...`` address
=============  =========================================================================================================
"""

import json
import math
from pathlib import Path

from margo.errors import MargoError, refuse
from margo.formats.atomic import write_json
from margo.formats.reading import read_json

PLOTS = "plots.json"
KINDS = ("line", "scatter", "histogram", "heatmap", "image")


def read_progress(folder) -> list[dict]:
    """The lines of a trainer's ``progress.jsonl``, oldest first; none where there is no such file."""
    path = Path(folder) / "progress.jsonl"
    if not path.exists():
        return []
    try:
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except ValueError as error:
        raise MargoError(f"{path}: not one JSON value a line ({error})") from None


def write_plots(folder, plots: list[dict]) -> Path:
    """Write ``plots.json`` into ``folder`` after checking it; its place."""
    path = Path(folder) / PLOTS
    refuse(plot_faults(plots), f"{path}: plots cannot be written")
    write_json(path, plots)
    return path


def read_plots(path) -> list[dict]:
    """The plots of one ``plots.json``."""
    plots = read_json(path)
    refuse(plot_faults(plots), str(path))
    return plots


def plot_faults(plots) -> list[str]:
    """Everything in ``plots`` that cannot be drawn."""
    if not isinstance(plots, list):
        return [f"found {type(plots).__name__}, expected a list of plots"]
    faults = []
    for number, plot in enumerate(plots, start=1):
        if not isinstance(plot, dict) or not isinstance(plot.get("title"), str) or plot.get("kind") not in KINDS:
            faults.append(f"plot {number}: needs a title and a kind of {', '.join(KINDS)}")
            continue
        check = {"histogram": _histogram, "heatmap": _heatmap, "image": _image}.get(plot["kind"], _series)
        faults += [f"plot {number} ({plot['title']}): {fault}" for fault in check(plot)]
    return faults


def _series(plot: dict) -> list[str]:
    faults = [] if plot.get("series") or plot.get("region") else ["no series"]
    faults += _lengths(plot, "x", "y", 0, "as many numbers in x as in y")
    if "region" in plot:
        faults += _grid(plot["region"].get("values"))
        faults += [f"region needs {axis}: [low, high]" for axis in "xy"
                   if not _numbers(plot["region"].get(axis)) or len(plot["region"][axis]) != 2]  # fmt: skip
    return faults


def _histogram(plot: dict) -> list[str]:
    faults = [] if plot.get("series") else ["no series"]
    return faults + _lengths(plot, "edges", "counts", 1, "one more number in edges than in counts")


def _lengths(plot: dict, first: str, second: str, more: int, told: str) -> list[str]:
    """Series that have not numbers in ``first``, ``more`` than in ``second``."""
    return [f"series {each.get('name')!r} needs {told}" for each in plot.get("series", [])
            if not _numbers(each.get(first)) or not _numbers(each.get(second))
            or len(each[first]) != len(each[second]) + more]  # fmt: skip


def _heatmap(plot: dict) -> list[str]:
    faults = _grid(plot.get("values"))
    for key, size in (("rows", len(plot.get("values") or [])), ("columns", len((plot.get("values") or [[]])[0]))):
        if key in plot and len(plot[key]) != size:
            faults.append(f"{len(plot[key])} labels for {size} {key}")
    return faults


def _image(plot: dict) -> list[str]:
    good = str(plot.get("source", "")).startswith("data:image/")
    return [] if good else ["source must be a data:image/ address, so that the report is one file"]


def _grid(values) -> list[str]:
    good = isinstance(values, list) and values and all(_numbers(row) and len(row) == len(values[0]) for row in values)
    return [] if good else ["values must be rows of numbers of one length"]


def _numbers(values) -> bool:
    return isinstance(values, list) and len(values) > 0 and all(map(is_number, values))


def is_number(value) -> bool:
    """Finite, and not true or false."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)

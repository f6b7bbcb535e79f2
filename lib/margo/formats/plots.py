"""What a report draws: ``progress.jsonl`` of trainers, and ``plots.json`` that any folder of a run may hold.

``plots.json`` is a list of plots. Each has ``title`` and ``kind``, and may have ``x_label``, ``y_label``, ``note`` (a
sentence under it) and ``x_log`` or ``y_log`` (true for a logarithmic axis). By kind:

=============  =========================================================================================================
line, scatter  ``series``: list of ``{"name", "x": [...], "y": [...]}``; a series may set ``"style"`` to ``line`` or
               ``points`` itself, and ``"sd": [...]`` for a band of that width to either side. ``region``:
               ``{"values": [[class, ...], ...], "x": [low, high], "y": [low, high]}``
               colours the background by class, first row at the bottom, as for decision regions.
histogram      ``series``: list of ``{"name", "edges": [B + 1 numbers], "counts": [B numbers]}``
heatmap        ``values``: list of rows, first row at the top; ``rows`` and ``columns``: their labels
table          ``columns``: its head; ``cells``: rows of text, as wide as it
image          ``source``: a ``data:image/png;base64,...`` address
=============  =========================================================================================================
"""

import base64
import struct
import zlib
from pathlib import Path

from margo.errors import refuse
from margo.formats.atomic import write_json
from margo.formats.reading import MOST, misfits, read_json, read_json_lines

PLOTS = "plots.json"
KINDS = ("line", "scatter", "histogram", "heatmap", "table", "image")
NUMBERS = [float]
COMMON = {"title": str, "kind": set(KINDS), "x_label?": str, "y_label?": str, "note?": str, "x_log?": bool,
          "y_log?": bool, "rows?": [(str, float)], "columns?": [(str, float)], "values?": [NUMBERS], "cells?": [[str]],
          "region?": {"values": [NUMBERS], "x": NUMBERS, "y": NUMBERS},
          "series?": [{"name?": (str, float, None)}]}  # fmt: skip
SERIES = {"line": {"x": NUMBERS, "y": NUMBERS, "sd?": NUMBERS, "style?": {"line", "points"}},
          "histogram": {"edges": NUMBERS, "counts": NUMBERS}}  # fmt: skip


def read_progress(folder) -> list[dict]:
    """The lines of a trainer's ``progress.jsonl``, oldest first; none where there is no such file."""
    path = Path(folder) / "progress.jsonl"
    return read_json_lines(path, {"iteration?": int, "seconds?": float}) if path.exists() else []


def write_plots(folder, plots: list[dict]) -> Path:
    """Write ``plots.json`` into ``folder`` after checking it; its place."""
    path = Path(folder) / PLOTS
    refuse(plot_faults(plots), f"{path}: plots cannot be written")
    write_json(path, plots)
    return path


def read_plots(path) -> list[dict]:
    """The plots of one ``plots.json``."""
    plots = read_json(path)
    refuse(plot_faults(plots), str(path), MOST)
    return plots


def picture_address(grey) -> str:
    """A picture of bytes ``[height, width]`` as the address of a PNG file within it."""
    height, width = grey.shape
    lines = b"".join(b"\0" + row.tobytes() for row in grey)  # each with no filter
    parts = ((b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)), (b"IDAT", zlib.compress(lines, 9)),
             (b"IEND", b""))  # fmt: skip
    chunks = [struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
              for kind, data in parts]  # fmt: skip
    return "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"".join(chunks)).decode()


def plot_faults(plots) -> list[str]:
    """Everything in ``plots`` that cannot be drawn."""
    if not isinstance(plots, list):
        return [f"found {type(plots).__name__}, expected a list of plots"]
    faults = []
    for number, plot in enumerate(plots, start=1):
        wrong = misfits(plot, COMMON)
        if not wrong:
            known = {"histogram": _histogram, "heatmap": _heatmap, "table": _table, "image": _image}
            own = known.get(plot["kind"], _series)
            wrong = misfits(plot.get("series", []), [SERIES.get(plot["kind"], SERIES["line"])], "series") or own(plot)
        faults += [f"plot {number}{_title(plot)}: {fault}" for fault in wrong]
    return faults


def _title(plot) -> str:
    return f" ({plot['title']})" if isinstance(plot, dict) and isinstance(plot.get("title"), str) else ""


def _series(plot: dict) -> list[str]:
    region = plot.get("region")
    faults = [] if plot.get("series") or region else ["no series"]
    faults += _lengths(plot, "x", "y", 0, "as many numbers in x as in y")
    faults += [f"series {each.get('name')!r} needs as many numbers in sd as in y" for each in plot.get("series", [])
               if "sd" in each and len(each["sd"]) != len(each["y"])]  # fmt: skip
    if region:
        faults += _grid(region["values"])
        faults += [f"region needs {axis}: [low, high]" for axis in "xy" if len(region[axis]) != 2]
    return faults


def _histogram(plot: dict) -> list[str]:
    faults = [] if plot.get("series") else ["no series"]
    return faults + _lengths(plot, "edges", "counts", 1, "one more number in edges than in counts")


def _lengths(plot: dict, first: str, second: str, more: int, told: str) -> list[str]:
    """Series that have not numbers in ``first``, ``more`` than in ``second``."""
    return [f"series {each.get('name')!r} needs {told}" for each in plot.get("series", [])
            if not each[second] or len(each[first]) != len(each[second]) + more]  # fmt: skip


def _heatmap(plot: dict) -> list[str]:
    faults = _grid(plot.get("values"))
    sizes = {} if faults else {"rows": len(plot["values"]), "columns": len(plot["values"][0])}
    return faults + [f"{len(plot[key])} labels for {size} {key}" for key, size in sizes.items()
                     if key in plot and len(plot[key]) != size]  # fmt: skip


def _table(plot: dict) -> list[str]:
    good = plot.get("columns") and all(len(row) == len(plot["columns"]) for row in plot.get("cells", [[]]))
    return [] if good else ["cells must be rows of as many texts as there are columns"]


def _image(plot: dict) -> list[str]:
    good = str(plot.get("source", "")).startswith("data:image/")
    return [] if good else ["source must be a data:image/ address, so that the report is one file"]


def _grid(values) -> list[str]:
    good = values and values[0] and all(len(row) == len(values[0]) for row in values)
    return [] if good else ["values must be rows of numbers of one length"]

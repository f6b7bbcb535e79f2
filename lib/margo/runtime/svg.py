"""Plots as inline SVG text. Colours are CSS classes (``c0`` to ``c7``), so that one plot suits light and dark pages."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

COLOURS = 8
WIDTH, HEIGHT = 400, 270
LEFT, RIGHT, TOP, BOTTOM = 54, 12, 12, 42


@dataclass(frozen=True)
class Axis:
    """Values from ``low`` to ``high`` laid out from pixel ``start`` to ``end``."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        scale = math.log10 if self.log else float
        share = (scale(value) - scale(self.low)) / (scale(self.high) - scale(self.low))
        return round(self.start + share * (self.end - self.start), 2)

    def ticks(self) -> list[float]:
        return log_ticks(self.low, self.high) if self.log else ticks(self.low, self.high)


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers (1, 2 or 5 times a power of ten apart) within [low, high].

    >>> ticks(0.0, 1.0)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(multiple * power for multiple in (1, 2, 5, 10) if multiple * power >= rough * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    decimals = 1 - math.floor(math.log10(step))
    return [round(n * step, decimals) for n in range(first, last + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """Powers of ten within [low, high], or round numbers where there are fewer than two."""
    powers = [10.0**n for n in range(math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9) + 1)]
    return powers if len(powers) > 1 else [tick for tick in ticks(low, high) if tick > 0]


def number(value: float) -> str:
    """A tick's label: few digits."""
    return f"{value:.10g}".replace("-", "\u2212")


def axis(values: Sequence[float], start: float, end: float, log: bool = False, zero: bool = False) -> Axis:
    """An axis with room for ``values``; from zero where asked; a logarithmic one ignores what is not positive."""
    values = [value for value in values if value > 0 or not log] or [1.0]
    low, high = min(values), max(values)
    if log:
        return Axis(low / 1.1, high * 1.1, start, end, True)
    if zero:
        low = min(low, 0.0)
    room = (high - low) * 0.05 or abs(high) * 0.05 or 1.0
    return Axis(low if zero and low == 0 else low - room, high + room, start, end)


def frame(x: Axis, y: Axis, x_label: str, y_label: str, x_names: dict[float, str] | None = None) -> list[str]:
    """Grid lines, tick labels and axis titles; ``x_names`` replaces the numbers under the x axis."""
    parts = []
    for tick in y.ticks():
        parts.append(f'<line class="grid" x1="{x.start}" x2="{x.end}" y1="{y(tick)}" y2="{y(tick)}"/>')
        place = f'x="{x.start - 6}" y="{y(tick) + 3.5:.2f}"'
        parts.append(f'<text class="tick" text-anchor="end" {place}>{number(tick)}</text>')
    for tick in x_names or x.ticks():
        name = x_names[tick] if x_names else number(tick)
        if not x_names:
            parts.append(f'<line class="grid" x1="{x(tick)}" x2="{x(tick)}" y1="{y.start}" y2="{y.end}"/>')
        parts.append(f'<text class="tick" text-anchor="middle" x="{x(tick)}" y="{y.start + 15}">{escape(name)}</text>')
    middle = (y.start + y.end) / 2
    parts.append(f'<line class="axis" x1="{x.start}" x2="{x.end}" y1="{y.start}" y2="{y.start}"/>')
    parts.append(f'<text class="label" text-anchor="middle" x="{(x.start + x.end) / 2}" y="{y.start + 33}">'
                 f"{escape(x_label)}</text>")  # fmt: skip
    parts.append(f'<text class="label" text-anchor="middle" transform="translate(12 {middle}) rotate(-90)">'
                 f"{escape(y_label)}</text>")  # fmt: skip
    return parts


def svg(parts: Sequence[str], title: str, width: int = WIDTH, height: int = HEIGHT) -> str:
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{escape(title)}" '
        f'xmlns="http://www.w3.org/2000/svg">' + "".join(parts) + "</svg>"
    )


def area(xs, ys, plot: dict, zero: bool = False, width: int = WIDTH) -> tuple[Axis, Axis]:
    """Axes for the plotting area."""
    x = axis(xs, LEFT, width - RIGHT, plot.get("x_log", False))
    y = axis(ys, HEIGHT - BOTTOM, TOP, plot.get("y_log", False), zero)
    return x, y


def line_plot(plot: dict) -> str:
    """Lines or points, over the classes of a region where there is one; see :mod:`margo.formats.plots`."""
    series, region = plot.get("series", []), plot.get("region")
    xs = [value for one in series for value in one["x"]] + (region["x"] if region else [])
    ys = [value for one in series for value in one["y"]] + (region["y"] if region else [])
    x, y = area(xs, ys, plot)
    parts = region_cells(region, x, y) if region else []
    parts += frame(x, y, plot.get("x_label", ""), plot.get("y_label", ""))
    for colour, one in enumerate(series):
        style = one.get("style") or ("line" if plot["kind"] == "line" else "points")
        places = [(x(a), y(b)) for a, b in zip(one["x"], one["y"]) if (a > 0 or not x.log) and (b > 0 or not y.log)]
        parts.append(draw_series(places, style, colour % COLOURS, one.get("name", "")))
    return svg(parts, plot["title"])


def draw_series(places: list[tuple[float, float]], style: str, colour: int, name: str) -> str:
    hint = f"<title>{escape(name)}</title>"
    if style == "points":
        path = "".join(f"M{a} {b}h0" for a, b in places)
        return f'<path class="points c{colour}" d="{path}">{hint}</path>'
    line = " ".join(f"{a},{b}" for a, b in places)
    dots = "".join(f"M{a} {b}h0" for a, b in places) if len(places) <= 60 else ""
    marks = f'<path class="dots c{colour}" d="{dots}"/>' if dots else ""
    return f'<polyline class="line c{colour}" points="{line}">{hint}</polyline>{marks}'


def region_cells(region: dict, x: Axis, y: Axis) -> list[str]:
    """Background by class; equal neighbours of a row are one rectangle."""
    values, parts = region["values"], []
    rows, columns = len(values), len(values[0])
    xs = [x(region["x"][0] + (region["x"][1] - region["x"][0]) * n / columns) for n in range(columns + 1)]
    ys = [y(region["y"][0] + (region["y"][1] - region["y"][0]) * n / rows) for n in range(rows + 1)]
    for r, row in enumerate(values):
        begin = 0
        for c in range(1, columns + 1):
            if c == columns or row[c] != row[begin]:
                parts.append(
                    f'<rect class="region f{int(row[begin]) % COLOURS}" x="{xs[begin]}" y="{ys[r + 1]}" '
                    f'width="{xs[c] - xs[begin]:.2f}" height="{ys[r] - ys[r + 1]:.2f}"/>'
                )
                begin = c
    return parts


def histogram(plot: dict) -> str:
    """Steps of one or more histograms over each other."""
    x, y = area(
        [edge for one in plot["series"] for edge in one["edges"]],
        [count for one in plot["series"] for count in one["counts"]],
        plot,
        zero=True,
    )
    parts = frame(x, y, plot.get("x_label", ""), plot.get("y_label", "count"))
    for colour, one in enumerate(plot["series"]):
        path = f"M{x(one['edges'][0])} {y.start}"
        for left, right, count in zip(one["edges"], one["edges"][1:], one["counts"]):
            path += f"L{x(left)} {y(count)}L{x(right)} {y(count)}"
        path += f"L{x(one['edges'][-1])} {y.start}"
        hint = f"<title>{escape(one.get('name', ''))}</title>"
        parts.append(f'<path class="steps c{colour % COLOURS} f{colour % COLOURS}" d="{path}">{hint}</path>')
    return svg(parts, plot["title"])


def heatmap(plot: dict) -> str:
    """Cells shaded by value over the largest; as for confusion matrices."""
    values = plot["values"]
    rows, columns = plot.get("rows") or [""] * len(values), plot.get("columns") or [""] * len(values[0])
    side = max(8, min(24, 480 // max(len(rows), len(columns))))
    left, top = 60, 20
    width, height = max(WIDTH, left + side * len(columns) + 12), max(HEIGHT, top + side * len(rows) + 60)
    most = max(max(abs(value) for value in row) for row in values) or 1.0
    parts = []
    for r, row in enumerate(values):
        middle = top + side * (r + 0.5) + 3.5
        parts.append(f'<text class="tick" text-anchor="end" x="{left - 4}" y="{middle}">{escape(str(rows[r]))}</text>')
        for c, value in enumerate(row):
            hint = f"<title>{escape(f'{rows[r]} / {columns[c]}: {value:g}')}</title>"
            parts.append(
                f'<rect class="cell" x="{left + side * c}" y="{top + side * r}" width="{side}" height="{side}" '
                f'fill-opacity="{abs(value) / most:.3f}">{hint}</rect>'
            )
    for c, name in enumerate(columns):
        place = f"translate({left + side * (c + 0.5) + 3.5} {top + side * len(rows) + 4}) rotate(-90)"
        parts.append(f'<text class="tick" text-anchor="end" transform="{place}">{escape(str(name))}</text>')
    parts.append(f'<text class="label" x="{left}" y="{top - 8}">{escape(plot.get("y_label", ""))}</text>')
    parts.append(
        f'<text class="label" x="{left}" y="{top + side * len(rows) + 54}">{escape(plot.get("x_label", ""))}</text>'
    )
    return svg(parts, plot["title"], width, height)


def draw(plot: dict) -> str:
    """Any plot of :mod:`margo.formats.plots`."""
    if plot["kind"] == "image":
        return f'<img alt="{escape(plot["title"])}" src="{escape(plot["source"])}">'
    return {"histogram": histogram, "heatmap": heatmap}.get(plot["kind"], line_plot)(plot)


def rates_plot(title: str, label: str, systems: dict[str, dict[int, dict]]) -> str:
    """Error rates by number of mixtures, a whisker for each interval, a hollow diamond for the paper's figure.

    ``systems[name][mixtures]`` has ``percent``, ``ci95`` and ``paper`` (``{"percent"}`` or None).
    """
    mixtures = sorted({m for cells in systems.values() for m in cells})
    cells = [cell for by_mixtures in systems.values() for cell in by_mixtures.values()]
    tops = [cell["ci95"][1] for cell in cells] + [cell["paper"]["percent"] for cell in cells if cell.get("paper")]
    width = min(1000, max(WIDTH, 90 + 26 * len(systems) * len(mixtures)))
    x = Axis(-0.5, len(mixtures) - 0.5, LEFT, width - RIGHT)
    y = axis([0.0, *tops], HEIGHT - BOTTOM, TOP, zero=True)
    names = {float(n): f"{m}" for n, m in enumerate(mixtures)}
    parts = frame(x, y, "mixtures", label, names)
    for n in range(1, len(mixtures)):
        parts.append(f'<line class="grid" x1="{x(n - 0.5)}" x2="{x(n - 0.5)}" y1="{y.start}" y2="{y.end}"/>')
    for order, (name, by_mixtures) in enumerate(systems.items()):
        shift = 0.8 * ((order + 0.5) / len(systems) - 0.5)
        for m, cell in by_mixtures.items():
            parts.append(rate_mark(x(mixtures.index(m) + shift), y, cell, f"{name}, {m} mixtures", order % COLOURS))
    return svg(parts, title, width)


def rate_mark(place: float, y: Axis, cell: dict, name: str, colour: int) -> str:
    low, high = cell["ci95"]
    told = f"{name}: {cell['percent']:.2f} [{low:.2f}, {high:.2f}]"
    marks = [f'<path class="whisker c{colour}" d="M{place} {y(max(low, 0))}V{y(high)}'
             f'M{place - 4} {y(max(low, 0))}h8M{place - 4} {y(high)}h8"/>',
             f'<circle class="dot f{colour}" cx="{place}" cy="{y(cell["percent"])}" r="4"/>']  # fmt: skip
    if cell.get("paper"):
        told += f"; paper {cell['paper']['percent']:.2f}"
        marks.append(f'<path class="paper c{colour}" d="M{place} {y(cell["paper"]["percent"]) - 5}l5 5l-5 5l-5 -5z"/>')
    return f"<g>{''.join(marks)}<title>{escape(told)}</title></g>"

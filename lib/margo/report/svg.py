"""Plots as inline SVG text. Colours are CSS classes (``c0`` to ``c7``), so that one plot suits light and dark pages."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape

COLOURS = 8
# What a system's rate is marked with: the first eight by circles, then squares, then triangles.
MARKS = ("M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z", "M-3.5 -3.5h7v7h-7z", "M0 -4.5l4.5 8h-9z")
WIDTH, HEIGHT = 320, 230  # three stand beside each other in a page without their text getting small
RATES_WIDTH, RATES_HEIGHT = 400, 270
LEFT, RIGHT, TOP, BOTTOM = 54, 12, 12, 42
LETTER = 6  # width of a tick's letter


@dataclass(frozen=True)
class Axis:
    """Values from ``low`` to ``high`` laid out from pixel ``start`` to ``end``."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False
    whole: bool = False  # as iterations are

    def __call__(self, value: float) -> float:
        scale = math.log10 if self.log else float
        share = (scale(value) - scale(self.low)) / (scale(self.high) - scale(self.low))
        return round(self.start + share * (self.end - self.start), 2)

    def labels(self) -> dict[float, str]:
        """Ticks and what stands beside them."""
        places = (log_ticks if self.log else ticks)(self.low, self.high)
        if self.whole:
            places = [place for place in places if place == int(place)] or [round(self.low)]
        return dict(zip(places, numbers(places, even=not self.log)))


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


def numbers(values: Sequence[float], even: bool = True) -> list[str]:
    """Labels of ticks, ``even`` ones with the same decimals; with powers of ten where digits would not fit.

    >>> numbers([0.0, 0.25, 0.5]), numbers([0.0, 2e7])
    (['0.00', '0.25', '0.50'], ['0', '2e7'])
    """
    texts = [f"{value:.10g}" for value in values]
    if even and not any("e" in text for text in texts):
        decimals = max(len(text.partition(".")[2]) for text in texts)
        texts = [f"{value:.{decimals}f}" for value in values]
    if max(map(len, texts)) > 7:
        texts = [f"{value:.3g}" for value in values]
    return [re.sub(r"e\+?(-?)0*", r"e\1", text).replace("-", "\u2212") for text in texts]


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
    for tick, name in y.labels().items():
        parts.append(rule("grid", x.start, x.end, y(tick), y(tick)))
        parts.append(text("tick", name, f'text-anchor="end" x="{x.start - 6}" y="{y(tick) + 3.5:.2f}"'))
    for tick, name in (x_names or x.labels()).items():
        if not x_names:
            parts.append(rule("grid", x(tick), x(tick), y.start, y.end))
        parts.append(text("tick", name, f'text-anchor="middle" x="{x(tick)}" y="{y.start + 15}"'))
    middle, turned = (x.start + x.end) / 2, f"translate(12 {(y.start + y.end) / 2}) rotate(-90)"
    parts.append(rule("axis", x.start, x.end, y.start, y.start))
    parts.append(text("label", x_label, f'text-anchor="middle" x="{middle}" y="{y.start + 33}"'))
    parts.append(text("label", y_label, f'text-anchor="middle" transform="{turned}"'))
    return parts


def rule(kind: str, x1: float, x2: float, y1: float, y2: float) -> str:
    return f'<line class="{kind}" x1="{x1}" x2="{x2}" y1="{y1}" y2="{y2}"/>'


def text(kind: str, words, place: str) -> str:
    return f'<text class="{kind}" {place}>{escape(str(words))}</text>'


def svg(parts: Sequence[str], title: str, width: int = WIDTH, height: int = HEIGHT) -> str:
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{escape(title)}" '
        f'xmlns="http://www.w3.org/2000/svg">' + "".join(parts) + "</svg>"
    )


def area(xs, ys, plot: dict, zero: bool = False) -> tuple[Axis, Axis]:
    """Axes for the plotting area."""
    x = axis(xs, LEFT, WIDTH - RIGHT, plot.get("x_log", False))
    x = replace(x, whole=plot.get("x_label") in ("iteration", "epoch"))
    y = axis(ys, HEIGHT - BOTTOM, TOP, plot.get("y_log", False), zero)
    return x, y


def line_plot(plot: dict) -> str:
    """Lines or points, over the classes of a region where there is one; see :mod:`margo.formats.plots`."""
    series, region = plot.get("series", []), plot.get("region")
    xs, ys = ([value for one in (*series, region or {}) for value in one.get(key, ())] for key in "xy")
    ys += [b + sign * sd for one in series for b, sd in zip(one["y"], one.get("sd", ())) for sign in (1, -1)]
    x, y = area(xs, ys, plot)
    parts = region_cells(region, x, y) if region else []
    parts += frame(x, y, plot.get("x_label", ""), plot.get("y_label", ""))
    for order, one in enumerate(series):
        style = one.get("style") or ("line" if plot["kind"] == "line" else "points")
        places = [(x(a), y(b)) for a, b in zip(one["x"], one["y"]) if (a > 0 or not x.log) and (b > 0 or not y.log)]
        if one.get("sd") and not (x.log or y.log):
            edge = [(a, b + sd) for a, b, sd in zip(one["x"], one["y"], one["sd"])]
            edge += [(a, b - sd) for a, b, sd in reversed([*zip(one["x"], one["y"], one["sd"])])]
            corners = " ".join(f"{x(a)},{y(b)}" for a, b in edge)
            parts.append(f'<polygon class="region f{order % COLOURS}" points="{corners}"/>')
        parts.append(draw_series(places, style, order, one.get("name", "")))
    return svg(parts, plot["title"])


def draw_series(places: list[tuple[float, float]], style: str, order: int, name: str) -> str:
    hint = f"<title>{escape(name)}</title>"
    look = f"c{order % COLOURS}" + " again" * (order >= COLOURS)
    dots = "".join(f"M{a} {b}h0" for a, b in places)
    if style == "points":
        return f'<path class="points {look}" d="{dots}">{hint}</path>'
    line = " ".join(f"{a},{b}" for a, b in places)
    marks = f'<path class="dots {look}" d="{dots}"/>' if len(places) <= 60 else ""
    return f'<polyline class="line {look}" points="{line}">{hint}</polyline>{marks}'


def region_cells(region: dict, x: Axis, y: Axis) -> list[str]:
    """Background by class, one path each: equal neighbours of a row are one rectangle, and rows overlap a little, since
    viewers of printed pages leave hairs between rectangles that only touch."""
    values, paths = region["values"], {}
    rows, columns = len(values), len(values[0])
    xs = [x(region["x"][0] + (region["x"][1] - region["x"][0]) * n / columns) for n in range(columns + 1)]
    ys = [y(region["y"][0] + (region["y"][1] - region["y"][0]) * n / rows) for n in range(rows + 1)]
    for r, row in enumerate(values):
        begin = 0
        for c in range(1, columns + 1):
            if c == columns or row[c] != row[begin]:
                width, height = xs[c] - xs[begin], ys[r] - ys[r + 1] + (0.5 if r else 0)
                path = f"M{xs[begin]} {ys[r + 1]}h{width:.2f}v{height:.2f}h{-width:.2f}z"
                paths.setdefault(int(row[begin]) % COLOURS, []).append(path)
                begin = c
    return [f'<path class="region f{colour}" d="{"".join(path)}"/>' for colour, path in sorted(paths.items())]


def histogram(plot: dict) -> str:
    """Steps of one or more histograms over each other."""
    edges, counts = ([value for one in plot["series"] for value in one[key]] for key in ("edges", "counts"))
    x, y = area(edges, counts, plot, zero=True)
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
    """Cells shaded from the least value to the largest; as for confusion matrices."""
    values = plot["values"]
    rows, columns = plot.get("rows") or [""] * len(values), plot.get("columns") or [""] * len(values[0])
    cells = max(len(rows), len(columns))
    side = max(12, min(36, (480 if is_large(plot) else 216) // cells))
    left, below = (12 + LETTER * max(map(len, map(str, names))) for names in (rows, columns))
    top = 20
    width, height = max(WIDTH, left + side * len(columns) + 12), top + side * len(rows) + below + 20
    low, high = (extreme(map(extreme, values)) for extreme in (min, max))
    parts = []
    for r, row in enumerate(values):
        middle = top + side * (r + 0.5) + 3.5
        parts.append(text("tick", rows[r], f'text-anchor="end" x="{left - 4}" y="{middle}"'))
        for c, value in enumerate(row):
            hint = f"<title>{escape(f'{rows[r]} / {columns[c]}: {value:g}')}</title>"
            parts.append(
                f'<rect class="cell" x="{left + side * c}" y="{top + side * r}" width="{side}" height="{side}" '
                f'fill-opacity="{(value - low) / ((high - low) or 1.0):.3f}">{hint}</rect>'
            )
    for c, name in enumerate(columns):
        place = f"translate({left + side * (c + 0.5) + 3.5} {top + side * len(rows) + 4}) rotate(-90)"
        parts.append(text("tick", name, f'text-anchor="end" transform="{place}"'))
    parts.append(text("label", plot.get("y_label", ""), f'x="4" y="{top - 8}"'))
    told = f"{plot.get('x_label', '')} (shades: {low:g} to {high:g})".strip()
    parts.append(text("label", told, f'x="4" y="{height - 6}"'))
    return svg(parts, plot["title"], width, height)


def is_large(plot: dict) -> bool:
    """Does a plot need the width of the page?"""
    return plot["kind"] == "heatmap" and len(plot["values"][0]) > 15


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
    width = min(1000, max(RATES_WIDTH, 90 + 26 * len(systems) * len(mixtures)))
    x = Axis(-0.5, len(mixtures) - 0.5, LEFT, width - RIGHT)
    y = axis([0.0, *tops], RATES_HEIGHT - BOTTOM, TOP, zero=True)
    names = {float(n): f"{m}" for n, m in enumerate(mixtures)}
    parts = frame(x, y, "mixtures", label, names)
    for n in range(1, len(mixtures)):
        parts.append(rule("grid", x(n - 0.5), x(n - 0.5), y.start, y.end))
    for order, (name, by_mixtures) in enumerate(systems.items()):
        shift = 0.8 * ((order + 0.5) / len(systems) - 0.5)
        for m, cell in by_mixtures.items():
            parts.append(rate_mark(x(mixtures.index(m) + shift), y, cell, f"{name}, {m} mixtures", order))
    return svg(parts, title, width, RATES_HEIGHT)


def rate_mark(place: float, y: Axis, cell: dict, name: str, order: int) -> str:
    """A system's mark with its whisker; the paper's figure stands beside it, not over it."""
    colour, mark = order % COLOURS, MARKS[order // COLOURS % len(MARKS)]
    low, high = cell["ci95"]
    told = f"{name}: {cell['percent']:.2f} [{low:.2f}, {high:.2f}]"
    bottom, top, middle = y(max(low, 0)), y(high), y(cell["percent"])
    ends = f"M{place} {bottom}V{top}M{place - 4:.2f} {bottom}h8M{place - 4:.2f} {top}h8"
    marks = [f'<path class="whisker c{colour}" d="{ends}"/>',
             f'<path class="dot f{colour}" transform="translate({place} {middle})" d="{mark}"/>']  # fmt: skip
    if cell.get("paper"):
        told += f"; paper {cell['paper']['percent']:.2f}"
        middle = y(cell["paper"]["percent"])
        marks.append(f'<path class="paper c{colour}" d="M{place + 9:.2f} {middle - 5:.2f}l5 5l-5 5l-5 -5z"/>')
    return f"<g>{''.join(marks)}<title>{escape(told)}</title></g>"

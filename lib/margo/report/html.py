"""``report.html``: one self-contained page, no scripts, light and dark."""

from html import escape

from margo.report import svg
from margo.report.collect import SYSTEMS, Report
from margo.report.style import STYLE
from margo.report.text import NAMES, SYNTHETIC, heading, p_value, protocol, sizes, versions

COLOUR_RULES = "".join(f".c{n} {{ stroke: var(--c{n}); }} .f{n} {{ fill: var(--c{n}); }} " for n in range(svg.COLOURS))


def page(report: Report) -> str:
    """The whole page."""
    corpus = f"{report.corpus} (synthetic)" if report.synthetic else report.corpus
    body = [f"<h1>{escape(report.recipe)}</h1>", f'<p class="soft">Corpus: {escape(corpus)}</p>']
    if report.synthetic:
        body.append(f'<div class="banner"><strong>Synthetic corpus.</strong> {escape(SYNTHETIC)}</div>')
    for (task, name, measured), rows in report.sections().items():
        body.append(results_section(task, name, measured, rows, folded=name != "test"))
    body += curves_section(report) + plots_section(report) + protocol_section(report) + provenance_section(report)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(report.recipe)}: results</title><style>{STYLE}{COLOUR_RULES}</style></head>\n"
        f"<body><main>\n" + "\n".join(body) + "\n</main></body></html>\n"
    )


# -- results -----------------------------------------------------------------------------------------------------------
def results_section(task: str, name: str, measured: str, rows: list[dict], folded: bool) -> str:
    figures = [rates_figure(f"{NAMES[measured]} (%)", rows, lambda row: row)]
    if all(row["ser"] for row in rows) and any(row["ser"]["errors"] != row["errors"] for row in rows):
        figures.append(rates_figure("SER (%)", rows, lambda row: row["ser"]))
    beside = " beside" if len({(row["system"], row["mixtures"]) for row in rows}) <= 16 else ""
    inside = f'<div class="rates{beside}">{"".join(figures)}</div>{results_table(rows, measured)}'
    if folded:
        inside = f"<details><summary>{len(rows)} rows</summary>{inside}</details>"
    return f"<h2>{escape(heading(task, name, measured))}</h2>{inside}"


def rates_figure(label: str, rows: list[dict], part) -> str:
    systems: dict[str, dict[int, dict]] = {}
    for row in rows:
        systems.setdefault(row["system"], {})[row["mixtures"]] = part(row)
    picture = svg.rates_plot(label, label, systems)
    paper = any(part(row).get("paper") for row in rows)
    return f"<figure><h3>{escape(label)}, with 95 % intervals</h3>{picture}{legend(systems, paper)}</figure>"


def legend(names, paper: bool = False) -> str:
    """Names beside the marks that :mod:`margo.report.svg` gives them by their order; the nameless are left out."""
    marks = [
        f'<span><i class="m{n // svg.COLOURS % len(svg.MARKS)}" style="background: var(--c{n % svg.COLOURS})"></i>'
        f"{escape(name)}</span>"
        for n, name in enumerate(names)
        if name
    ]
    marks += ['<span><i class="hollow"></i>the paper\'s figure</span>'] * paper
    return f'<div class="legend">{"".join(marks)}</div>' if marks else ""


def results_table(rows: list[dict], measured: str) -> str:
    """The table of one set; columns that nothing fills are left out."""
    head = ["system", "mixtures", f"{NAMES[measured]} %", "95 % interval", "errors", "paper"]
    head += ["SER %", "95 % interval", "paper SER", "against ML", "p", "training, s"]
    best = {m: min(row["percent"] for row in rows if row["mixtures"] == m) for m in {row["mixtures"] for row in rows}}
    lines = []
    for row in rows:
        lines.append([
            f"<td>{escape(row['system'])}</td>",
            cell(row["mixtures"]),
            *rate_cells(row, " best" if row["percent"] == best[row["mixtures"]] else ""),
            cell(f"{row['errors']} / {row['total']}"),
            paper_cell(row),
            *rate_cells(row["ser"]),
            paper_cell(row["ser"] or {}),
            *versus_cells(row.get("versus")),
            cell("" if row["seconds"] is None else f"{row['seconds']:.1f}"),
        ])  # fmt: skip
    filled = [n for n in range(len(head)) if any(line[n] != cell("") for line in lines)]
    starts = ["<tr>", *('<tr class="first">' if row["system"] != before["system"] else "<tr>"
                        for before, row in zip(rows, rows[1:]))]  # fmt: skip
    shown = [start + "".join(line[n] for n in filled) + "</tr>" for start, line in zip(starts, lines)]
    return table([head[n] for n in filled], shown)


def table(head: list[str], lines: list[str], text: tuple[int, ...] = (0,)) -> str:
    """A table of ``lines`` (``<tr>`` elements); the columns ``text`` hold words, the others numbers."""
    titles = "".join(f'<th class="{"" if n in text else "n"}">{escape(title)}</th>' for n, title in enumerate(head))
    return f'<div class="scroll"><table><thead><tr>{titles}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>'


def cell(value, kind: str = "") -> str:
    return f'<td class="n{kind}">{escape(str(value))}</td>'


def rate_cells(row: dict | None, mark: str = "") -> list[str]:
    if not row:
        return [cell(""), cell("")]
    low, high = row["ci95"]
    runs = f' title="{escape(", ".join(map(str, row["runs"])))}"' if "runs" in row else ""
    mean = " (mean)" if runs else ""
    return [f'<td class="n{mark}"{runs}>{row["percent"]:.2f}{mean}</td>', cell(f"{low:.2f} to {high:.2f}", " ci")]


def paper_cell(row: dict) -> str:
    if not row.get("paper"):
        return cell("")
    return f'<td class="n" title="{escape(row["paper"]["source"])}">{row["paper"]["percent"]:.2f}</td>'


def versus_cells(versus: dict | None) -> list[str]:
    if not versus:
        return [cell(""), cell("")]
    kind = "" if versus["p"] > 0.05 else (" good" if versus["relative"] < 0 else " bad")
    return [cell(f"{versus['relative']:+.0f} %", kind), cell(p_value(versus["p"]), kind)]


# -- plots -------------------------------------------------------------------------------------------------------------
def curves_section(report: Report) -> list[str]:
    """Learning curves: for each system one plot a quantity, a line for each number of mixtures and each draw."""
    systems: dict[tuple, dict[str, list[dict]]] = {}
    for folder, lines in report.curves.items():
        key, label = curve_place(folder)
        systems.setdefault(key, {})[label] = lines
    figures = []
    for key in sorted(systems):
        system = "/".join(filter(None, [key[0], key[2]]))
        runs = dict(sorted(systems[key].items(), key=lambda item: (len(item[0]), item[0])))
        figures += [figure(plot) for what in curve_keys(runs) if (plot := curve(system, what, runs))]
    return ["<h2>Learning curves</h2>", f'<div class="plots">{"".join(figures)}</div>'] if figures else []


def curve_place(folder: str) -> tuple[tuple, str]:
    """``((folder above, rank, system), label of the line)`` of ``[above/]<system>_<mixtures>``.

    Numbered folders above hold draws of the same, which are lines of one plot.

    >>> curve_place("0/gmm-ml_12")
    (('', 7, 'gmm-ml'), '12 mix, draw 0')
    """
    above, _, last = folder.rpartition("/")
    system, _, mixtures = last.rpartition("_")
    system, label = (system, f"{mixtures} mix") if mixtures.isdigit() else (last, last)
    if above.isdigit():
        above, label = "", f"{label}, draw {above}"
    return (above, SYSTEMS.index(system) if system in SYSTEMS else len(SYSTEMS), system), label


def curve_keys(runs: dict[str, list[dict]]) -> list[str]:
    """What is worth a plot: the objective, errors, margins."""
    found = {key for lines in runs.values() for line in lines for key, value in line.items() if is_number(value)}
    others = sorted(key for key in found if any(word in key for word in ("error", "margin", "loss", "rho")))
    return (["objective"] if "objective" in found else []) + others


def curve(system: str, key: str, runs: dict[str, list[dict]]) -> dict | None:
    series = []
    for label, lines in runs.items():
        points = [(line.get("iteration", n), line[key]) for n, line in enumerate(lines, 1) if is_number(line.get(key))]
        if len(points) > 1:
            xs, ys = zip(*points)
            series.append({"name": label, "x": xs, "y": ys})
    title = f"{system}: {key.replace('_', ' ')}"
    return {"title": title, "kind": "line", "x_label": "iteration", "y_label": "", "series": series} if series else None


def is_number(value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < float("inf")


def plots_section(report: Report) -> list[str]:
    figures = [figure(plot, folder) for folder, plot in report.plots]
    return ["<h2>Plots</h2>", f'<div class="plots">{"".join(figures)}</div>'] if figures else []


def figure(plot: dict, folder: str = "") -> str:
    note = " ".join(filter(None, [plot.get("note", ""), f"(from {folder})" if folder else ""]))
    caption = f"<figcaption>{escape(note)}</figcaption>" if note else ""
    large = ' class="large"' if svg.is_large(plot) else ""
    key = legend(one.get("name", "") for one in plot.get("series", []))
    return f"<figure{large}><h3>{escape(plot['title'])}</h3>{svg.draw(plot)}{key}{caption}</figure>"


# -- how it was made ---------------------------------------------------------------------------------------------------
def protocol_section(report: Report) -> list[str]:
    parts = ["<h2>Protocol</h2>"]
    if report.sizes:
        head, *rows = sizes(report)
        lines = [f"<tr><td>{escape(name)}</td>{''.join(map(cell, counts))}</tr>" for name, *counts in rows]
        parts.append(table(head, lines))
    parts.append(f"<p>{escape(protocol(report))}</p>")
    colours = "; green (better) or red (worse) p up to 0.05" if any("versus" in row for row in report.rows) else ""
    parts.append(f'<p class="soft">In the tables, bold marks the fewest errors with as many mixtures{colours}.</p>')
    parts += [f"<p>{escape(system)}: {escape(choice)}.</p>" for system, choice in report.choices.items()]
    if report.paper:
        parts.append(f"<h3>The paper {escape(report.paper.key)}</h3><p>{escape(report.paper.protocol)}</p>")
        parts.append(f'<p class="soft">{escape(report.paper.reference)}</p>')
    return parts


def provenance_section(report: Report) -> list[str]:
    lines = [
        f"<tr><td>{escape(step['folder'])}</td><td>{escape(step.get('step', ''))}</td>{cell(step.get('seconds', ''))}"
        f"{cell(step.get('peak_memory_mb', ''))}<td><code>{escape(' '.join(step['argv']))}</code></td></tr>"
        for step in report.steps
    ]
    steps = table(["folder", "step", "seconds", "MB", "options"], lines, text=(0, 1, 4))
    return [
        "<h2>Made by</h2>",
        f"<pre>{escape(report.command)}</pre>",
        f'<p class="soft">{escape(versions(report))}</p>',
        f'<details class="steps"><summary>{len(report.steps)} steps</summary>{steps}</details>',
    ]

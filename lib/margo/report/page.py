"""``report.html``: one self-contained page, light and dark; its script only sorts and copies."""

from html import escape

from margo.formats.systems import Systems, system_of
from margo.knobs import is_number
from margo.report import svg
from margo.report.collect import Report
from margo.report.columns import LEVEL, MEASURES, headings, measure, shown
from margo.report.errors_of import Details, confusion_plot, example, pairs
from margo.report.script import SCRIPT
from margo.report.style import STYLE
from margo.report.text import SYNTHETIC, durations, heading, protocol, side_tables, sizes, versions

COLOUR_RULES = "".join(f".c{n} {{ stroke: var(--c{n}); }} .f{n} {{ fill: var(--c{n}); }} " for n in range(svg.COLOURS))
FIRST = '<tr class="first">'  # of a system
TERMS = {
    "WER": "word error rate: substituted, deleted and inserted words, in per cent of the words said",
    "PER": "phone error rate: substituted, deleted and inserted phones, in per cent of the phones said",
    "error": "samples given a wrong class, in per cent",
    "SER": "string error rate: utterances with any error, in per cent",
    "95 %": "interval that holds the true rate in 95 of 100 such tests, by bootstrap",
    "p": "how often chance alone would make two systems differ as much as these do; below 0.05 it is coloured",
    "mix": "Gaussians (mixture components) of each state or class",
    "vs ML, vs start": "change of the errors against maximum likelihood, and against the model that training started "
    "from; less is better",
    "paper": "what the paper reports for the same system",
    "nats": "natural logarithms of likelihood: 1 nat more is 2.7 times as likely",
    "objective": "what training makes larger (or, as a loss, smaller), per frame or utterance",
}


def page(report: Report, details: Details | None = None) -> str:
    """The whole page; ``details`` are of the system whose errors are shown one by one."""
    corpus = f"{report.corpus} (synthetic)" if report.synthetic else report.corpus
    body = [f"<h1>{escape(report.recipe)}</h1>", f'<p class="soft">Corpus: {escape(corpus)}</p>']
    if report.synthetic:
        body.append(f'<div class="banner"><strong>Synthetic corpus.</strong> {escape(SYNTHETIC)}</div>')
    for (task, name, measured), rows in report.sections().items():
        figures = rates_figures(rows, measured, report.systems)
        body.append(results_section(heading(task, name, measured), figures, rows, folded=name != "test"))
    for title, rows, note in side_tables(report):
        body.append(f"<h2>{escape(title)}</h2>{plain_table(rows)}<p>{escape(note)}</p>")
    body += details_section(details) if details else []
    body += glossary_section(report) + curves_section(report) + plots_section(report)
    body += protocol_section(report) + provenance_section(report)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(report.recipe)}: results</title><style>{STYLE}{COLOUR_RULES}</style></head>\n"
        f"<body><main>\n" + "\n".join(body) + f"\n</main><script>{SCRIPT}</script></body></html>\n"
    )


def counted(things, name: str) -> str:
    return f"{len(things)} {name}{'s' * (len(things) != 1)}"


def results_section(title: str, figures: list[str], rows: list[dict], folded: bool) -> str:
    beside = " beside" if len({(row["system"], row["mixtures"]) for row in rows}) <= 16 else ""
    inside = f'<div class="rates{beside}">{"".join(figures)}</div>{results_table(rows)}'
    if folded:
        inside = f"<details><summary>{counted(rows, 'row')}</summary>{inside}</details>"
    return f"<h2>{escape(title)}</h2>{inside}"


def rates_figures(rows: list[dict], measured: str, systems: Systems) -> list[str]:
    """A plot of the rates and, where it tells more, one of whole strings."""
    figures = [rates_figure(f"{MEASURES[measured]} (%)", rows, lambda row: row, systems)]
    if all(row["ser"] for row in rows) and any(row["ser"]["errors"] != row["errors"] for row in rows):
        figures.append(rates_figure("SER (%)", rows, lambda row: row["ser"], systems))
    return figures


def rates_figure(label: str, rows: list[dict], part, systems: Systems) -> str:
    rates: dict[str, dict[int, dict]] = {}
    for row in rows:
        rates.setdefault(systems.label(row["system"]), {})[row["mixtures"]] = part(row)
    picture = svg.rates_plot(label, label, rates)
    paper = any(part(row).get("paper") for row in rows)
    return f"<figure><h3>{escape(label)}, with 95 % intervals</h3>{picture}{legend(rates, paper)}</figure>"


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


def results_table(rows: list[dict]) -> str:
    """The table of one set; bold marks the fewest errors with as many mixtures."""
    columns = shown(rows)
    least: dict[int, float] = {}
    for row in rows:
        least[row["mixtures"]] = min(row["percent"], least.get(row["mixtures"], row["percent"]))
    lines, before = [], rows[0]["system"]
    for row in rows:
        marked = {**row, "best": row["percent"] == least[row["mixtures"]]}
        cells = "".join(cell(each.cell(row), each.kind(marked), each.hint(row), each.words) for each in columns)
        lines.append(f"{'<tr>' if row['system'] == before else FIRST}{cells}</tr>")
        before = row["system"]
    return table(headings(columns, rows), lines, tuple(n for n, each in enumerate(columns) if each.words))


def table(head: list[str], lines: list[str], text: tuple[int, ...] = (0,)) -> str:
    """A table of ``lines`` (``<tr>`` elements); the columns ``text`` hold words, the others numbers."""
    titles = "".join(f'<th class="{"" if n in text else "n"}">{escape(title)}</th>' for n, title in enumerate(head))
    return f'<div class="scroll"><table><thead><tr>{titles}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>'


def cell(value, kind: str = "", hint: str = "", words: bool = False) -> str:
    look = " ".join(filter(None, ["" if words else "n", kind]))
    title = f' title="{escape(hint)}"' if hint else ""
    return f'<td class="{look}"{title}>{escape(str(value))}</td>'


def plain_table(rows: list[list[str]], words: int = 1) -> str:
    """A table of text whose first row is its head and whose first column, or so many, holds words."""
    head, *rows = rows
    lines = ["".join(cell(value, words=place < words) for place, value in enumerate(row)) for row in rows]
    return table(head, [f"<tr>{line}</tr>" for line in lines], tuple(range(words)))


def details_section(details: Details) -> list[str]:
    """Confusions, speakers, and wrong utterances of one system."""
    row, wrong = details.row, len(details.wrong)
    name = f"{row['system']}, {row['mixtures']} mix, {row['set']} set"
    parts = [f"<h2>Errors of {escape(name)}</h2>",
             f'<p class="soft">The system with the fewest errors on dev, where that was scored: {row["errors"]} errors '
             f"in {row['total']}.</p>"]  # fmt: skip
    if row["errors"]:
        plot = confusion_plot(details)
        drawn = figure(plot) if plot else ""
        parts.append(f'<h3>Confusions</h3><div class="sides"><div>{plain_table(pairs(details), 2)}</div>{drawn}</div>')
    if details.speakers:
        keys = ("speaker", "utterances", "words", "errors", "wrong")
        rows = [[*(str(each[key]) for key in keys), f"{each['percent']:.2f}"] for each in details.speakers]
        units = "phones" if measure(row) == "per" else "words"
        table = plain_table([["speaker", "utterances", units, "errors", "wrong utterances", "%"], *rows])
        summary = f"<summary>{counted(rows, 'speaker')}, the worst first</summary>"
        parts.append(f"<h3>Speakers</h3><details{' open' * (len(rows) <= 12)}>{summary}{table}</details>")
    if details.examples:
        shown = "".join(map(example, details.examples))
        told = f"{len(details.examples)} of {wrong} utterances that were not understood, those with most errors first."
        parts.append(f'<h3>Wrong utterances</h3><p class="soft">{told} Both strings are aligned by force; what is '
                     f'in colour is wrong.</p><div class="examples">{shown}</div>')  # fmt: skip
    return parts


def glossary_section(report: Report) -> list[str]:
    """The systems there are, and the terms that this page uses."""
    systems = [f"<dt>{escape(name)}</dt><dd>{escape(what)}</dd>" for name, what in report.glossary().items()]
    used = {MEASURES[measure(row)] for row in report.rows}
    used |= {"SER"} if any(row["ser"] for row in report.rows) else set()
    used |= {"paper"} if report.paper else set()
    named = [(term, what) for term, what in TERMS.items() if term in used or term not in ("WER", "PER", "error", "SER",
             "paper")]  # fmt: skip
    terms = "".join(f"<dt>{escape(term)}</dt><dd>{escape(what)}</dd>" for term, what in named)
    parts = [f"<h2>Systems</h2><dl>{''.join(systems)}</dl>"] if systems else []
    return [*parts, f"<h2>Glossary</h2><details><summary>{counted(named, 'term')}</summary><dl>{terms}</dl></details>"]


def curves_section(report: Report) -> list[str]:
    """Learning curves: for each system one plot a quantity, a line for each number of mixtures and each draw."""
    systems: dict[tuple, dict[str, list[dict]]] = {}
    for folder, lines in report.curves.items():
        key, label = curve_place(folder, report.systems)
        systems.setdefault(key, {})[label] = lines
    figures = []
    for key in sorted(systems):
        system = "/".join(filter(None, [key[0], key[2]]))
        runs = dict(sorted(systems[key].items(), key=lambda item: (len(item[0]), item[0])))
        figures += [figure(plot) for what in curve_keys(runs) if (plot := curve(system, what, runs))]
    inside = f'<div class="plots">{"".join(figures)}</div>'
    folded = f"<details><summary>{counted(figures, 'plot')}</summary>{inside}</details>"
    return ["<h2>Learning curves</h2>", folded] if figures else []


def curve_place(folder: str, systems: Systems) -> tuple[tuple, str]:
    """``((folder above, rank, system), label of the line)`` of ``[above/]<system>_<mixtures>``.

    Numbered folders above hold draws of the same, which are lines of one plot.
    """
    above, _, last = folder.rpartition("/")
    system, mixtures = system_of(last)
    label = last if mixtures is None else f"{mixtures} mix"
    if above.isdigit():
        above, label = "", f"{label}, draw {above}"
    return (above, systems.rank(system), system), label


def curve_keys(runs: dict[str, list[dict]]) -> list[str]:
    """What is worth a plot: the objective, errors, margins."""
    numbers = {key for lines in runs.values() for line in lines for key, value in line.items() if is_number(value)}
    others = sorted(key for key in numbers if any(word in key for word in ("error", "margin", "loss", "rho")))
    return (["objective"] if "objective" in numbers else []) + others


def curve(system: str, key: str, runs: dict[str, list[dict]]) -> dict | None:
    series = []
    for label, lines in runs.items():
        points = [(line.get("iteration", n), line[key]) for n, line in enumerate(lines, 1) if is_number(line.get(key))]
        if len(points) > 1:
            xs, ys = zip(*points)
            series.append({"name": label, "x": xs, "y": ys})
    title = f"{system}: {key.replace('_', ' ')}"
    return {"title": title, "kind": "line", "x_label": "iteration", "y_label": "", "series": series} if series else None


def plots_section(report: Report) -> list[str]:
    figures = [figure(plot, folder) for folder, plot in report.plots if plot["kind"] != "table"]
    return ["<h2>Plots</h2>", f'<div class="plots">{"".join(figures)}</div>'] if figures else []


def figure(plot: dict, folder: str = "") -> str:
    note = " ".join(filter(None, [plot.get("note", ""), f"(from {folder})" if folder else ""]))
    caption = f"<figcaption>{escape(note)}</figcaption>" if note else ""
    large = ' class="large"' if svg.is_large(plot) else ""
    key = legend(one.get("name", "") for one in plot.get("series", []))
    return f"<figure{large}><h3>{escape(plot['title'])}</h3>{svg.draw(plot)}{key}{caption}</figure>"


def protocol_section(report: Report) -> list[str]:
    parts = ["<h2>Protocol</h2>"]
    if report.sizes:
        parts.append(plain_table(sizes(report)))
    parts.append(f"<p>{escape(protocol(report))}</p>")
    compared = any({"versus", "versus_start"} & row.keys() for row in report.rows)
    colours = f"; green (better) or red (worse) p up to {LEVEL}" if compared else ""
    parts.append(f'<p class="soft">In the tables, bold marks the fewest errors with as many mixtures{colours}.</p>')
    parts += [f"<p>{escape(system)}: {escape(choice)}.</p>" for system, choice in report.choices.items()]
    if report.paper:
        parts.append(f"<h3>The paper {escape(report.paper.key)}</h3><p>{escape(report.paper.protocol)}</p>")
        parts.append(f'<p class="soft">{escape(report.paper.reference)}</p>')
    if report.durations:
        parts.append(f"<h3>Durations of words ({escape(report.durations[0])})</h3>{plain_table(durations(report))}")
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
        f'<details class="steps"><summary>{counted(report.steps, "step")}</summary>{steps}</details>',
    ]

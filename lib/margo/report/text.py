"""The report as text: ``RESULTS.md`` and the table on the terminal."""

from margo.report.collect import Report, fixed_settings
from margo.report.columns import COLUMNS, SEARCHES, SWEEPS, WEIGHTS, measure, settings, table

SYNTHETIC = (
    "These figures come from a synthetic corpus (machine-made speech or data). They show that the recipe works and how "
    "the criteria compare on it; they say nothing about the real corpus, and the paper's figures beside them are of "
    "other data."
)
WEIGHED = (
    "The insertion penalty (nats a word) and a bigram's scale are chosen when a system's training ends, for fewest "
    "word and string errors together on held-out speech, and belong to the model: all that starts from it uses them."
)
POOLED = (
    "Errors at all numbers of mixtures together; p of matched pairs of their sums by utterance, since an utterance's "
    "errors at several sizes hang together."
)
SWEPT = (
    "Large-margin training from each start with the ball held at one radius, r²/K: the radius and the epoch with the "
    "fewest errors on the set that chooses, and the strings that are right at the start and there ([LJ07] Table II, "
    "which chose on the test set; here it chooses nothing)."
)
SEARCHED = (
    "Of what a search tried the setting with the fewest errors on samples that were held out of training (dev, or "
    "folds of train and dev); the test samples choose nothing."
)
BLIND = (
    "There is no development set: the training data (their loss, their margins) choose iterations and epochs, and the "
    "radius of LME's ball where none is given"
)
FOLDED = "; folds of the training speakers choose the weights of the grammar once, after maximum likelihood"
MOST_COLUMNS = 12  # of a plot that is shown as a table too
HEADINGS = {"wer": "word and string error rates", "per": "phone and string error rates", "err": "classification error"}


def markdown(report: Report) -> str:
    """``RESULTS.md``: corpus, protocol, a table for every set, the command."""
    lines = [f"# Results of {report.recipe}", ""]
    if report.synthetic:
        lines += [f"**Synthetic corpus.** {SYNTHETIC}", ""]
    lines += [f"Corpus: {report.corpus}{' (synthetic)' if report.synthetic else ''}.", ""]
    lines += ["```", report.command, "```", ""]
    for (task, name, measured), rows in report.sections().items():
        lines += [f"## {heading(task, name, measured)}", "", *grid(table(rows)), ""]
    if report.glossary():
        lines += ["## Systems", "", *(f"- {name}: {what}." for name, what in report.glossary().items()), ""]
    for title, rows, note in side_tables(report):
        lines += [f"## {title}", "", *grid(rows), "", note, ""]
    for folder, plot in report.plots:
        if lines_of_plot := curves(plot):
            lines += [f"## {plot['title']} ({folder}): {plot.get('y_label', 'values')}", "", *grid(lines_of_plot), ""]
            lines += [plot["note"], ""] if plot.get("note") else []
    if report.durations:
        lines += [f"## Durations of words ({report.durations[0]})", "", *grid(durations(report)), ""]
    lines += ["## Protocol", ""]
    if report.sizes:
        lines += [*grid(sizes(report)), ""]
    lines += [protocol(report), ""]
    if report.choices:
        lines += [*(f"- {system}: {choice}." for system, choice in report.choices.items()), ""]
    if report.paper:
        lines += [f"The paper, {report.paper.key}: {report.paper.reference}.", "", report.paper.protocol, ""]
    lines += [f"Made with {versions(report)}.", ""]
    return "\n".join(lines)


def heading(task: str, name: str, measured: str) -> str:
    return f"{name.capitalize()} set{', ' + task if task else ''}: {HEADINGS[measured]} (%)"


def side_tables(report: Report) -> list[tuple[str, list[list[str]], str]]:
    """``(title, table, note)`` of all sizes together, and of what was chosen before the test set was decoded: grammar
    weights, radii; and tables that steps made."""
    ours = [(title, table(rows, columns), note) for title, rows, columns, note in (
        ("Test set: all numbers of mixtures together", report.pooled, COLUMNS, POOLED),
        ("Grammar weights", report.weights, WEIGHTS, WEIGHED), ("Radius of LME's ball", report.sweeps, SWEEPS, SWEPT),
        ("Settings that were searched", report.searches, SEARCHES, searched(report)),
    ) if rows]  # fmt: skip
    made = [plot for _, plot in report.plots if plot["kind"] == "table"]
    return ours + [(plot["title"], [plot["columns"], *plot["cells"]], plot.get("note", "")) for plot in made]


def searched(report: Report) -> str:
    """How settings were chosen, and which were not searched."""
    fixed = fixed_settings(report.steps)
    told = [f"{trainer}: {settings(trainer)(fixed)}" for trainer in sorted(fixed)]
    return SEARCHED + (f" Fixed in all of them: {'; '.join(told)}." if told else "")


def curves(plot: dict) -> list[list[str]]:
    """Head and rows of a short line plot as a table, a row a line; nothing for other plots."""
    lines = plot["series"] if plot["kind"] == "line" else []
    if len({tuple(line["x"]) for line in lines}) != 1 or len(lines[0]["x"]) > MOST_COLUMNS:
        return []
    head = [plot.get("x_label", ""), *(f"{x:g}" for x in lines[0]["x"])]
    return [head, *([named(line), *spreads(line)] for line in lines)]


def named(line: dict) -> str:
    return "" if line.get("name") is None else str(line["name"])


def spreads(line: dict) -> list[str]:
    """The values of a line, with their standard deviations where it has them; what rounding leaves of 0 is 0."""
    if "sd" not in line:
        return [f"{y:.4g}" for y in line["y"]]
    return [f"{y:.4g} \u00b1 {round(sd, 9):.2g}" for y, sd in zip(line["y"], line["sd"])]


def sizes(report: Report) -> list[list[str]]:
    """Head and rows of the table of data sets; transcripts hold the units that are scored."""
    units = "phones" if any(measure(row) == "per" for row in report.rows) else "words"
    head, keys = ["set", "utterances", "speakers", units], ("utterances", "speakers", "words")
    return [head, *([name, *(str(size.get(key, "")) for key in keys)] for name, size in report.sizes.items())]


def durations(report: Report) -> list[list[str]]:
    """Head and rows of the table of words: how many there are, how long, what part is as short as its model allows."""
    _, words = report.durations
    head = ["word", "tokens", "median ms", "at the minimum"]
    return [head, *([each["word"], str(each["tokens"]), f"{each['median_ms']:.0f}", f"{100 * each['at_minimum']:.1f} %"]
                    for each in words)]  # fmt: skip


def protocol(report: Report) -> str:
    """How rates, intervals and p were found; says only what holds for the rows there are."""
    measures = {measure(row) for row in report.rows}
    pairs = {(measure(row) == "err", row[key]["test"])
             for row in report.rows for key in ("versus", "versus_start") if key in row}  # fmt: skip
    notes = [f"{units} are aligned with sclite's costs (substitution 4, insertion and deletion 3)."
             for measured, units in (("wer", "Words"), ("per", "Phones")) if measured in measures]  # fmt: skip
    notes.append(f"Intervals hold 95 %{': ' if report.intervals else ''}{'; '.join(report.intervals)}.")
    if pairs:
        said = {
            (False, "matched_pairs"): "errors per utterance (matched pairs)",
            (False, "mcnemar"): "which utterances are wrong (McNemar's test)",
            (True, "mcnemar"): "which samples are wrong (McNemar's test)",
        }
        compared = " and ".join(said[pair] for pair in sorted(pairs))
        rivals = {"versus": "maximum likelihood's", "versus_start": "those of the model that a system started from"}
        named = " and ".join(said for key, said in rivals.items() if any(key in row for row in report.rows))
        notes.append(f"p compares {compared} with {named}, at as many mixtures.")
    judges = [step["options"].get("dev", "") for step in report.steps if "chosen" in step]
    blind = None in judges and not any(judges)  # an aligner beside systems that have a dev set may have none
    if blind:
        notes.append(BLIND + FOLDED * bool(report.weights) + ".")
    if any("unchanged" in row for row in report.rows):
        judge = "the training data" if blind else "dev"
        notes.append(f"= X: no iteration was better on {judge}, so the model is that of X.")
    return " ".join(notes)


def grid(rows: list[list[str]]) -> list[str]:
    """A Markdown table; the first row is its head."""
    rows = padded(rows)
    lines = [f"| {' | '.join(row)} |" for row in rows]
    rule = "|" + "|".join("-" * (len(cell) + 2) for cell in rows[0]) + "|"
    return [lines[0], rule, *lines[1:]]


def padded(rows: list[list[str]]) -> list[list[str]]:
    """Cells filled up with spaces, so that columns stand under each other."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    return [[cell.ljust(width) for cell, width in zip(row, widths)] for row in rows]


def console(report: Report) -> str:
    """The test sets' tables, or all where nothing was tested, for the terminal."""
    sections = report.sections()
    shown = {key: rows for key, rows in sections.items() if key[1] == "test"} or sections
    lines = []
    for (task, name, measured), rows in shown.items():
        corpus = f"{report.corpus}{' (SYNTHETIC)' if report.synthetic else ''}"
        lines.append(f"{report.recipe}, {corpus}: {heading(task, name, measured)}")
        lines += [("  " + "  ".join(row)).rstrip() for row in padded(table(rows))]
    return "\n".join(lines)


def versions(report: Report) -> str:
    """What the figures were computed with: margo, Python, the packages that calculate, and the commits of the steps."""
    names = ["margo-speech", "Python", "numpy", "scipy", "numba", "commit"]
    if any(row["metric"] == "err" for row in report.rows):
        names.insert(-1, "scikit-learn")  # the classifiers that ours are held against
    told = [{**step.get("packages", {}), "Python": step.get("python"), "commit": (step.get("commit") or "")[:8]}
            for step in report.steps]  # fmt: skip
    used = {name: sorted({one[name] for one in told if one.get(name)}) for name in names}
    return ", ".join(f"{name} {', '.join(used[name])}" for name in names if used[name]) or "unrecorded versions"

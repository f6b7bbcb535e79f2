"""The report as text: ``RESULTS.md`` and the table on the terminal."""

from margo.runtime.report import Report

SYNTHETIC = (
    "These figures come from a synthetic corpus (machine-made speech or data). They show that the recipe works and how "
    "the criteria compare on it; they say nothing about the real corpus, and the paper's figures beside them are of "
    "other data."
)
NAMES = {"wer": "WER", "err": "error", "ser": "SER"}
ALIGNMENT = (
    "Words are aligned with sclite's costs (substitution 4, insertion and deletion 3). Intervals hold 95 %; p compares "
    "errors per utterance with maximum likelihood's at as many mixtures (matched pairs; McNemar's test for single "
    "words)."
)


def markdown(report: Report) -> str:
    """``RESULTS.md``: corpus, protocol, a table for every set, the command."""
    lines = [f"# Results of {report.recipe}", ""]
    if report.synthetic:
        lines += [f"**Synthetic corpus.** {SYNTHETIC}", ""]
    lines += [f"Corpus: {report.corpus}{' (synthetic)' if report.synthetic else ''}.", ""]
    lines += ["```", report.command, "```", ""]
    for (task, name, metric), rows in report.sections().items():
        lines += [f"## {heading(task, name, metric)}", "", *grid(cells(rows, metric)), ""]
    lines += ["## Protocol", ""]
    if report.sizes:
        lines += [*grid([["set", "utterances", "speakers", "words"]] + [
            [name, *(str(size.get(key, "")) for key in ("utterances", "speakers", "words"))]
            for name, size in report.sizes.items()
        ]), ""]  # fmt: skip
    lines += [f"{ALIGNMENT} {interval_note(report)}".strip(), ""]
    if report.choices:
        lines += [*(f"- {system}: {choice}." for system, choice in report.choices.items()), ""]
    if report.paper:
        lines += [f"The paper, {report.paper.key}: {report.paper.reference}.", "", report.paper.protocol, ""]
    lines += [f"Made with {versions(report)}.", ""]
    return "\n".join(lines)


def heading(task: str, name: str, metric: str) -> str:
    what = {"wer": "word and string error rates", "err": "classification error"}[metric]
    return f"{name.capitalize()} set{', ' + task if task else ''}: {what} (%)"


def interval_note(report: Report) -> str:
    return f"Intervals: {'; '.join(report.intervals)}." if report.intervals else ""


def grid(rows: list[list[str]]) -> list[str]:
    """A Markdown table; the first row is its head."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |" for row in rows]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return [lines[0], rule, *lines[1:]]


def cells(rows: list[dict], metric: str) -> list[list[str]]:
    """Head and rows of a results table as text; columns that nothing fills are left out."""
    head = ["system", "mix", f"{NAMES[metric]} [95 %]", "errors", "paper"]
    head += ["SER [95 %]", "paper SER", "vs ML", "p", "train s"]
    table = [head]
    for row in rows:
        ser, versus = row["ser"] or {}, row.get("versus", {})
        table.append([
            row["system"],
            str(row["mixtures"]),
            rate(row) + (f" (mean of {len(row['runs'])})" if "runs" in row else ""),
            f"{row['errors']} / {row['total']}",
            paper_cell(row),
            rate(ser) if ser else "",
            paper_cell(ser),
            f"{versus['relative']:+.0f} %" if versus else "",
            p_value(versus["p"]) if versus else "",
            f"{row['seconds']:.0f}" if row["seconds"] is not None else "",
        ])  # fmt: skip
    filled = [n for n in range(len(head)) if any(line[n] for line in table[1:])]
    return [[line[n] for n in filled] for line in table]


def rate(row: dict) -> str:
    return f"{row['percent']:.2f} [{row['ci95'][0]:.2f}, {row['ci95'][1]:.2f}]"


def paper_cell(row: dict) -> str:
    return f"{row['paper']['percent']:.2f}" if row.get("paper") else ""


def p_value(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def console(report: Report) -> str:
    """The test sets' tables, or all where nothing was tested, for the terminal."""
    sections = report.sections()
    shown = {key: rows for key, rows in sections.items() if key[1] == "test"} or sections
    lines = []
    for (task, name, metric), rows in shown.items():
        table = cells(rows, metric)
        widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
        corpus = f"{report.corpus}{' (SYNTHETIC)' if report.synthetic else ''}"
        lines.append(f"{report.recipe}, {corpus}: {heading(task, name, metric)}")
        for row in table:
            lines.append("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
    return "\n".join(lines)


def versions(report: Report) -> str:
    """Python and packages of the steps, and the commit where one is known."""
    packages, pythons, commits = {}, set(), set()
    for step in report.steps:
        packages |= step.get("packages", {})
        pythons |= {step.get("python")}
        commits |= {step.get("commit")}
    found = [f"Python {', '.join(sorted(filter(None, pythons)))}"] if any(pythons) else []
    found += [f"{name} {version}" for name, version in sorted(packages.items())]
    found += [f"commit {', '.join(sorted(c[:12] for c in commits if c))}"] if any(commits) else []
    return ", ".join(found) or "unrecorded versions"

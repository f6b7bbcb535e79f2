"""The columns of the results, once: ``RESULTS.md``, ``report.html`` and ``results.csv`` are made of this list.

A row is one of ``results.json``. To add a column, add an entry to :data:`COLUMNS`.
"""

import csv
import io
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

MEASURES = {"wer": "WER", "per": "PER", "err": "error"}
LEVEL = 0.05  # largest p that is coloured


def measure(row: dict) -> str:
    """What a row's rate is to be called: ``wer`` of words, ``per`` of phones (whose metric is ``wer``), ``err``."""
    return "per" if row.get("unit") == "phone" else row["metric"]


def held(*keys) -> Callable[[dict], object]:
    """What a row holds under ``keys``, one in the other; None where there is nothing."""

    def value(row):
        for key in keys:
            row = row[key] if isinstance(row, list) else (row or {}).get(key)
        return row

    return value


@dataclass(frozen=True)
class Column:
    """One column. ``value`` and ``text`` of a row are None or empty where it has nothing to show."""

    name: str
    """In ``results.csv``; none: not there"""
    heading: str
    """In tables; none: not there"""
    value: Callable[[dict], object]
    """For ``results.csv``"""
    text: Callable[[dict], object] | None = None
    """For tables, where they do not show the value as it is"""
    words: bool = False
    """Not numbers, which stand to the right"""
    kind: Callable[[dict], str] = lambda row: ""
    """What style a cell of ``report.html`` has"""
    hint: Callable[[dict], str] = lambda row: ""
    """What is said when a cell of ``report.html`` is pointed at"""

    def cell(self, row: dict) -> str:
        shown = (self.text or self.value)(row)
        return "" if shown is None else str(shown)


def rate(row: dict) -> str:
    return f"{row['percent']:.2f}" + (f" (mean of {len(row['runs'])})" if "runs" in row else "")


def decimals(digits: int, *keys) -> Callable[[dict], str | None]:
    return lambda row: None if (value := held(*keys)(row)) is None else f"{value:.{digits}f}"


def interval(*keys) -> Callable[[dict], str | None]:
    return lambda row: None if (ends := held(*keys)(row)) is None else f"{ends[0]:.2f} to {ends[1]:.2f}"


def change(key: str, row: dict) -> str | None:
    """Change of errors against another system, which is named where it is not ML; or of whom a row is no change."""
    if key == "versus_start" and "unchanged" in row:
        return f"= {row['unchanged']}"
    name = row[key]["system"] + " " if key == "versus_start" and key in row else ""
    return f"{name}{row[key]['relative']:+.0f} %" if key in row else None


def p_value(key: str) -> Callable[[dict], str | None]:
    return lambda row: None if (p := held(key, "p")(row)) is None else "< 0.001" if p < 0.001 else f"{p:.3f}"


def verdict(key: str) -> Callable[[dict], str]:
    """Better (``good``) or worse (``bad``) than what it is compared with, where that is hardly chance."""
    named = {True: "good", False: "bad"}
    return lambda row: named[row[key]["relative"] < 0] if key in row and row[key]["p"] <= LEVEL else ""


COLUMNS = (
    Column("task", "", held("task")),
    Column("set", "", held("set")),
    Column("metric", "", measure),
    Column("system", "system", held("system"), words=True),
    Column("mixtures", "mix", held("mixtures")),
    Column("percent", "{rate} %", held("percent"), rate,
           kind=lambda row: "best" if row.get("best") else "",
           hint=lambda row: ", ".join(map(str, row.get("runs", ())))),
    Column("low", "", held("ci95", 0)),
    Column("high", "", held("ci95", 1)),
    Column("", "95 %", held("ci95"), interval("ci95"), kind=lambda row: "ci"),
    Column("errors", "errors", held("errors"), lambda row: f"{row['errors']} / {row['total']}"),
    Column("total", "", held("total")),
    Column("paper", "paper", held("paper", "percent"), decimals(2, "paper", "percent"),
           hint=lambda row: held("paper", "source")(row) or ""),
    Column("ser", "SER %", held("ser", "percent"), decimals(2, "ser", "percent")),
    Column("ser_low", "", held("ser", "ci95", 0)),
    Column("ser_high", "", held("ser", "ci95", 1)),
    Column("", "95 %", held("ser", "ci95"), interval("ser", "ci95"), kind=lambda row: "ci"),
    Column("paper_ser", "paper SER", held("ser", "paper", "percent"), decimals(2, "ser", "paper", "percent"),
           hint=lambda row: held("ser", "paper", "source")(row) or ""),
    Column("vs_ml", "vs ML", held("versus", "relative"), partial(change, "versus"), kind=verdict("versus")),
    Column("vs_ml_p", "p", held("versus", "p"), p_value("versus"), kind=verdict("versus")),
    Column("start", "", lambda row: row.get("unchanged") or held("versus_start", "system")(row)),
    Column("vs_start", "vs start", lambda row: 0 if "unchanged" in row else held("versus_start", "relative")(row),
           partial(change, "versus_start"), kind=verdict("versus_start")),
    Column("vs_start_p", "p", held("versus_start", "p"), p_value("versus_start"), kind=verdict("versus_start")),
    Column("parameters", "parameters", held("parameters")),
    Column("seconds", "train s", held("seconds"), decimals(0, "seconds")),
)  # fmt: skip


def tuned(key: str, of: str) -> Callable[[dict], str]:
    """Errors under the weights that training began with, and under those that were chosen."""
    return lambda row: f"{row['before'][key]} -> {row['after'][key]} / {row[of]}"


WEIGHTS = (  # of the table of grammar weights, whose rows are those of ``grammar.json``
    Column("", "system", held("system"), words=True),
    Column("", "mix", held("mixtures")),
    Column("", "penalty before", held("before", "insertion_penalty"), decimals(1, "before", "insertion_penalty")),
    Column("", "penalty", held("after", "insertion_penalty"), decimals(1, "after", "insertion_penalty")),
    Column("", "scale before", held("before", "scale"), decimals(2, "before", "scale")),
    Column("", "scale", held("after", "scale"), decimals(2, "after", "scale")),
    Column("", "word errors", tuned("errors", "words")),
    Column("", "string errors", tuned("wrong", "strings")),
    Column("", "chosen on", held("chosen_on"), words=True),
    Column("", "tried", held("tried")),
)


def swept(name: str) -> Callable[[dict], str | None]:
    """Accuracy on a set, of the start and with the radius that was best."""
    return lambda row: f"{row['start'][name]:.2f} -> {row['accuracy'][name]:.2f}" if name in row["accuracy"] else None


SWEEPS = (  # of the table of radii, [LJ07] Table II, whose rows are those of ``sweep.json``
    Column("", "start", held("system"), words=True),
    Column("", "mix", held("mixtures")),
    Column("", "best r²/K", held("radius"), lambda row: f"{row['radius']:g}"),
    Column("", "epoch", held("epoch")),
    Column("", "train %", swept("train")),
    Column("", "dev %", swept("dev")),
    Column("", "test %", swept("test")),
    Column("", "chosen on", held("chosen_on"), words=True),
    Column("", "tried", held("tried"), lambda row: " ".join(f"{radius:g}" for radius in row["tried"]), words=True),
)


def settings(key: str) -> Callable[[dict], str]:
    """A table of settings as they are given to a trainer."""
    return lambda row: ", ".join(f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"
                                 for name, value in row[key].items())  # fmt: skip


SEARCHES = (  # of the table of searches, whose rows :func:`margo.report.collect.read_searches` makes
    Column("", "search", held("name"), words=True),
    Column("", "chosen", held("chosen"), settings("chosen"), words=True),
    Column("", "held out %", held("error"), decimals(2, "error")),
    Column("", "tried", held("tried")),
    Column("", "of", held("space"), lambda row: " ".join(row["space"]), words=True),
    Column("", "fixed", held("fixed"), lambda row: " ".join(row["fixed"]), words=True),
)


def shown(rows: list[dict], columns: tuple[Column, ...] | None = None) -> list[Column]:
    """The columns of a table of ``rows``: those that have a heading and that some row fills."""
    columns = COLUMNS if columns is None else columns
    return [column for column in columns if column.heading and any(map(column.cell, rows))]


def headings(columns: list[Column], rows: list[dict]) -> list[str]:
    """What stands over ``columns``; the rate is called after what the first row measures."""
    rate = MEASURES[measure(rows[0])] if "metric" in rows[0] else ""
    return [column.heading.format(rate=rate) for column in columns]


def table(rows: list[dict], columns: tuple[Column, ...] | None = None) -> list[list[str]]:
    """Head and rows of a table as text, of results unless other ``columns`` are given."""
    columns = shown(rows, columns)
    return [headings(columns, rows), *([column.cell(row) for column in columns] for row in rows)]


def results_csv(rows: list[dict]) -> str:
    """``results.csv``: all rows, every column that has a name, whether filled or not."""
    columns = [column for column in COLUMNS if column.name]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(column.name for column in columns)
    writer.writerows([column.value(row) for column in columns] for row in rows)
    return text.getvalue()

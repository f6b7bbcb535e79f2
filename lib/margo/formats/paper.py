"""A paper's figures, ``conf/paper/<recipe>.toml``, as they are printed there.

::

    paper = "[LJ07]"                 # short key, and the full reference
    reference = "X. Li and H. Jiang, ..."
    protocol = "..."                 # what the paper trained and tested on

    [[table]]
    source = "[LJ07] Table I"
    metric = "wer"                   # wer, ser or err; or objective, margin, iterations, of which percent is the value
    set = "test"
    accuracy = true                  # printed as accuracy: 100 minus it is the error
    mixtures = [1, 2, 4]             # left out where a figure holds for any number
    corpus = "usps"                  # left out where a recipe has one corpus
    task = "ma-4"                    # left out for rows that are of no task of their own
    percent = { ml = [85.56, 90.56, 91.48], mce = [91.48, 94.07, 93.89] }
"""

import math
from dataclasses import dataclass

from margo.errors import refuse
from margo.formats.reading import MOST, misfits, read_toml

METRICS = ("wer", "ser", "err")
VALUES = ("objective", "margin", "iterations")  # of a kernel's training: not percentages
TABLE = {"source": str, "metric": {*METRICS, *VALUES}, "set": str, "percent": {...: [float]}, "accuracy?": bool,
         "mixtures?": [int], "corpus?": str, "task?": str}  # fmt: skip
LAYOUT = {"paper": str, "reference": str, "protocol": str, "table": [dict]}


@dataclass(frozen=True)
class Figure:
    """One printed figure as an error rate; ``mixtures`` and ``corpus`` None match any."""

    system: str
    mixtures: int | None
    set: str
    metric: str
    percent: float
    source: str
    corpus: str | None = None
    task: str = ""


@dataclass(frozen=True)
class Paper:
    key: str
    reference: str
    protocol: str
    figures: tuple[Figure, ...]

    def find(self, system: str, mixtures: int, set: str, metric: str, corpus: str, task: str = "") -> Figure | None:
        """The figure for one row of ours, or None where the paper has none."""
        same = (each for each in self.figures if (each.system, each.set, each.metric) == (system, set, metric))
        fitting = (each for each in same if each.mixtures in (None, mixtures) and each.corpus in (None, corpus)
                   and each.task == task)  # fmt: skip
        return next(fitting, None)


def read_paper(path) -> Paper:
    """The paper's figures in ``path``, all turned into error rates."""
    value = read_toml(path, LAYOUT)
    faults, figures = [], []
    for number, table in enumerate(value["table"], start=1):
        wrong = _table_faults(table)
        faults += [f"table {number}: {fault}" for fault in wrong]
        if not wrong:
            figures += _figures(table)
    refuse(faults, str(path), MOST)
    return Paper(value["paper"], value["reference"], value["protocol"].strip(), tuple(figures))


def _table_faults(table: dict) -> list[str]:
    faults = misfits(table, TABLE)
    if misfits(table, {"percent": TABLE["percent"], "mixtures?": TABLE["mixtures?"]}):
        return faults
    columns, most = len(table.get("mixtures", [None])), math.inf if table.get("metric") in VALUES else 100
    return faults + [f"{system} = {percents}: expected {columns} percentages" for system, percents
                     in table["percent"].items()
                     if len(percents) != columns or not all(0 <= percent <= most for percent in percents)]  # fmt: skip


def _figures(table: dict) -> list[Figure]:
    turn = (lambda percent: round(100 - percent, 4)) if table.get("accuracy") else float
    return [
        Figure(system, mixtures, table["set"], table["metric"], turn(percent), table["source"], table.get("corpus"),
               table.get("task", ""))  # fmt: skip
        for system, percents in table["percent"].items()
        for mixtures, percent in zip(table.get("mixtures", [None]), percents)
    ]

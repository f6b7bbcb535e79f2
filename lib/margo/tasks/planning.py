"""A recipe's --criteria and --mix against the table of systems: what is wrong with them, and what there is to train."""

from collections.abc import Iterator
from pathlib import Path

from margo.errors import MargoError
from margo.formats.corpora import is_synthetic
from margo.formats.systems import System, Systems
from margo.runtime import lock, record


def offered(systems: Systems, names: list[str]) -> dict[str, System]:
    """The rows that a recipe takes: of the systems and families in ``names``, and added ones of the same families."""
    chosen = {row.name: row.family for row in systems.rows.values() if {row.name, row.family} & {*names} and row.step}
    more = {name for name in systems.added if systems.rows[name].family in chosen.values()}
    return {name: row for name, row in systems.rows.items() if name in {*chosen, *more}}


def faults(systems: Systems, rows: dict[str, System], criteria: list[str], mix: list[str] | None, exp) -> Iterator[str]:
    """What is wrong with the systems and mixtures asked for (``mix`` is None where a recipe has none), in words."""
    if mix == []:
        yield "--mix is empty, expected whole numbers"
    for m in mix or ():
        if not m.isdecimal() or int(m) < 1 or m != str(int(m)):
            yield f"--mix has '{m}', expected whole numbers, 1 or more"
    if not criteria:
        yield f"--criteria is empty, expected some of: {' '.join(rows)}"
    for name in criteria:
        if name not in rows:
            yield f"--criteria has '{name}', expected some of: {' '.join(rows)}"
    for name in criteria:
        if name in rows and (missing := missing_starts(systems, name, criteria, mix, exp)):
            row = rows[name]
            advice = f"{name} starts from {' and '.join(row.starts)}: add {' and '.join(missing)} to --criteria"
            for other in rows.values():
                if (other.step, other.options) == (row.step, row.options) and {*other.starts} < {*criteria}:
                    advice += f", or use {other.name}, which starts from {other.start}"
            yield advice


def place_faults(exp: Path, recipe: str) -> Iterator[str]:
    """Why a run of ``recipe`` cannot be in ``exp``: another is at work there, or it has another recipe's corpus, which
    would be replaced."""
    for path in sorted(exp.rglob(lock.NAME)):
        if lock.at_work(path.parent):
            whose = lock.told(lock.holder(path.parent))
            yield f"--exp {exp}: {whose} is at work there: wait for it, or give another --exp"
    try:
        is_synthetic(exp / "corpus", recipe)
    except MargoError as error:
        yield f"--exp has a run of another recipe ({error}): give another --exp"


def missing_starts(systems: Systems, name: str, criteria: list[str], mix: list[str] | None, exp: Path) -> list[str]:
    """The systems that ``name`` starts from, first of all first, that are neither to be trained nor trained in ``exp``.

    What a system is before training is no system to train.
    """
    missing: dict[str, None] = {}
    for start in systems.rows[name].starts:
        if start not in criteria and systems.rows[start].step and not trained(exp, start, mix):
            missing |= dict.fromkeys([*missing_starts(systems, start, criteria, mix, exp), start])
    return list(missing)


def trained(exp: Path, name: str, mix: list[str] | None) -> bool:
    """Are there finished models ``<name>_<m>`` in ``exp``, or a folder in it, for all of ``mix``?"""
    places = [[*exp.glob(f"{name}_{m}"), *exp.glob(f"*/{name}_{m}")] for m in mix or ("*",)]
    return all(any(record.of(folder) for folder in folders) for folders in places)

"""A run at a glance: what is done, what is trained, how well it does."""

from pathlib import Path

from margo.errors import MargoError
from margo.formats.scores import read_score
from margo.formats.systems import Systems, models_in, read_systems
from margo.report.collect import SETS, row_key
from margo.runtime import record

COLUMNS = ("system", "mixtures", "set", "metric", "percent", "low", "high", "errors", "total", "ser", "seconds", "task")


def scored(exp, systems: Systems | None = None) -> list[dict]:
    """A row of :data:`COLUMNS` for every score below ``exp``, in the order of the report's tables.

    ``low`` and ``high`` are the 95 % interval's ends, ``ser`` is the string error rate where there are strings.
    """
    systems, rows = systems or read_systems(), []
    for score in sorted((read_score(path) for path in Path(exp).rglob("score.json")),
                        key=lambda score: row_key(score, systems)):  # fmt: skip
        low, high = score["ci95"]
        row = {**score, "low": low, "high": high, "ser": (score.get("ser") or {}).get("percent")}
        rows.append({name: row.get(name) for name in COLUMNS})
    return rows


def is_run(folder) -> bool:
    """Whether there are folders of steps below, though no step made ``folder`` itself."""
    folder = Path(folder)
    return record.of(folder) is None and any(folder.glob("*/step.json"))


def nothing_here(folder) -> MargoError:
    """What to say of a folder without a step's record, a run or a model: runs may lie below it."""
    runs = sorted(path.name for path in Path(folder).glob("*/") if is_run(path))
    there = f"; runs in it: {' '.join(runs)}" if runs else ""
    return MargoError(f"{folder}: no step ended well here (no {record.NAME} with status ok), and no model.npz is here; "
                      f"expected the folder of a run, of a model or of a step{there}")  # fmt: skip


def describe_run(exp) -> str:
    """Stages done, models, what was begun and not ended, error rates by set, and the best system."""
    exp, systems = Path(exp), read_systems()
    done, unfinished = stages(exp, systems)
    lines = [f"run        {exp}", "done       " + ("; ".join(done) or "nothing")]
    lines += [f"unfinished {' '.join(unfinished)}"] * bool(unfinished)
    lines.append(f"models     {' '.join(models_in(exp)) or 'none'}")
    rows = scored(exp, systems)
    for task, metric in dict.fromkeys((row["task"], row["metric"]) for row in rows):
        lines += ["", *rates([row for row in rows if (row["task"], row["metric"]) == (task, metric)], task, metric)]
    return "\n".join(lines)


def stages(exp: Path, systems: Systems) -> tuple[list[str], list[str]]:
    """``(what was done by stage, folders of steps that were begun and have not ended)``."""
    found: dict[int, set[str]] = {}
    for path in exp.rglob(record.NAME):
        held = record.read(path.parent) or {}
        if held.get("status") != "ok":
            continue
        step = "data" if str(held.get("step", "")).endswith("_data") else held.get("step", "")
        stage = systems.stage_of(path.parent, step)
        if stage is not None:
            row = systems.of_folder(path.parent)
            found.setdefault(stage, set()).update([row.name] if row and row.stage == stage else [])
    if (exp / "results.json").is_file():
        found[max(systems.stages)] = set()
    begun = {path.parent for path in exp.rglob("step.log")} - {path.parent for path in exp.rglob(record.NAME)}
    told = []
    for stage, names in sorted(found.items()):
        title = systems.stages[stage].title if stage in systems.stages else ""
        told.append(" ".join([str(stage), title, f"({' '.join(sorted(names, key=systems.rank))})" * bool(names)]))
    told = [" ".join(words.split()) for words in told]
    return told, sorted(str(folder.relative_to(exp)) for folder in begun)


def rates(rows: list[dict], task: str | None, metric: str) -> list[str]:
    """A table of per cent by set, and the best of them: chosen on dev or else train, as test sets choose nothing."""
    sets = [which for which in reversed(SETS) if any(row["set"] == which for row in rows)]
    names = list(dict.fromkeys((row["system"], row["mixtures"]) for row in rows))
    values = {(row["system"], row["mixtures"], row["set"]): row["percent"] for row in rows}
    what = {"wer": "word errors, %", "err": "errors, %"}[metric] + (f", {task}" if task else "")
    lines = [f"{what:<24}" + "".join(f"{which:>8}" for which in sets)]
    for name in names:
        cells = (values.get((*name, which)) for which in sets)
        told = ["" if value is None else f"{value:.2f}" for value in cells]
        lines.append(f"{f'{name[0]}_{name[1]}':<24}" + "".join(f"{value:>8}" for value in told))
    chosen_on = next((which for which in ("dev", "train") if which in sets), None)
    if chosen_on is None:
        return lines
    best = min((name for name in names if (*name, chosen_on) in values), key=lambda name: values[*name, chosen_on])
    test = values.get((*best, "test"))
    told = f"best       {best[0]}_{best[1]}: {values[*best, chosen_on]:.2f} % on {chosen_on}"
    return [*lines, told + (f", {test:.2f} % on test" if test is not None else "")]


def missing_model(folder) -> MargoError:
    """What to say where there is no model in ``folder``."""
    folder = Path(folder)
    there = models_in(folder) and (folder, models_in(folder)) or (folder.parent, models_in(folder.parent))
    names = f"; models in {there[0]}: {' '.join(there[1])}" if there[1] else ""
    lacks = "no model.npz" if folder.exists() or names else "no such folder"
    return MargoError(f"{folder}: {lacks}{names}")


"""The table of systems, ``conf/systems.toml``: what each system is, what trains it, what it starts from, its stage.

::

    [[stage]]
    number = 3
    title = "alignment and N-best"
    makes = ["align", "nbest"]       # steps that run in it, other than the trainers of systems

    [system.lme-gd]
    label = "LME, gradient"          # in figures
    what = "large-margin ..."        # in a sentence, for --help and the report's glossary
    family = "hmm"                   # hmm, phone, speaker, gmm, kernel or reference: what --criteria of a recipe takes
    stage = 6
    step = "train_lme"               # its trainer: a step, or a program (.py) named relative to the table
    start = "mce"                    # whose model it starts from; with its own name, from its own of fewer Gaussians
    also = ["ml"]                    # other models that its trainer starts from in turn; dev keeps the best of all
    options = { method = "gd" }      # that make the trainer this system's
    reads = ["nbest"]                # what stage 3 made of its start that the trainer is to read
    init = true                      # scored before training too, as NAME-init
    baseline = true                  # others are compared with it
"""

import os
import re
from dataclasses import MISSING, dataclass, field, fields, replace
from pathlib import Path

from margo.errors import refuse
from margo.formats.reading import MOST, read_toml
from margo.knobs import brief, flag

PACKED = Path(__file__).parents[1] / "share"  # where a wheel has what stands at the root of a clone
HOME = PACKED if PACKED.is_dir() else Path(__file__).parents[3]  # of steps, local, recipes and conf
SHIPPED = HOME / "conf" / "systems.toml"
VARIABLE = "MARGO_SYSTEMS"  # a recipe tells its steps of its --systems FILE by it
FAMILIES = ("hmm", "phone", "speaker", "gmm", "kernel", "reference")
READABLE = ("nbest",)
NAME = re.compile(r"[a-z0-9][a-z0-9.+-]*")
WORD = re.compile(r"[\w.,:=+/-]+")  # recipes hand options on as words


@dataclass(frozen=True)
class Stage:
    """A stage that means the same in every speech recipe."""

    number: int
    title: str
    makes: tuple[str, ...] = ()


@dataclass(frozen=True)
class System:
    """One row; ``step`` is a name or, of a program beside its table, an absolute path."""

    name: str
    label: str
    what: str
    family: str
    stage: int
    step: str = ""
    start: str = ""
    also: tuple[str, ...] = ()
    options: dict = field(default_factory=dict)
    reads: tuple[str, ...] = ()
    init: bool = False
    baseline: bool = False

    @property
    def starts(self) -> list[str]:
        """All that it starts from, but itself."""
        return [name for name in (self.start, *self.also) if name not in ("", self.name)]

    @property
    def words(self) -> list[str]:
        """``options`` as words of a command line."""
        words = []
        for key, value in self.options.items():
            words += [flag(key), *(value if isinstance(value, list) else [value])]
        return [str(word).lower() if isinstance(word, bool) else str(word) for word in words]


@dataclass(frozen=True)
class Systems:
    """The whole table, in its order."""

    stages: dict[int, Stage]
    rows: dict[str, System]
    added: tuple[str, ...] = ()
    """Names of the rows that are not the shipped table's"""

    def rank(self, name: str) -> int:
        """Place of a system among others; those that no row tells of come last."""
        return list(self.rows).index(name) if name in self.rows else len(self.rows)

    def label(self, name: str) -> str:
        return self.rows[name].label if name in self.rows else name

    def of_folder(self, folder) -> System | None:
        """The row of the model in ``.../<system>_<mixtures>``."""
        return self.rows.get(system_of(folder)[0])

    def stage_of(self, folder, made_by: str) -> int | None:
        """The stage that makes ``folder`` with the step ``made_by`` or, if that trains, with its system's trainer."""
        made = [stage.number for stage in self.stages.values() if made_by in stage.makes]
        trained = [row for row in self.rows.values() if Path(row.step).stem == made_by]
        made += [row.stage for row in (self.of_folder(folder), *trained) if row and trained]
        return made[0] if made else None


def system_of(folder) -> tuple[str, int | None]:
    """``(system, mixtures)`` of a folder named ``<system>_<mixtures>``; ``(name, None)`` of any other.

    >>> system_of("exp/lme-sdp_8"), system_of("exp/train")
    (('lme-sdp', 8), ('train', None))
    """
    name = Path(folder).name
    system, _, mixtures = name.rpartition("_")
    return (system, int(mixtures)) if system and re.fullmatch("[0-9]{1,9}", mixtures) else (name, None)


def models_in(folder) -> list[str]:
    """Names of the folders in ``folder`` that hold a model, in the order of their systems and sizes."""
    names = [path.parent.name for path in Path(folder).glob("*/model.npz")]
    return sorted(names, key=lambda name: (system_of(name)[0], system_of(name)[1] or 0))


def read_systems(extra=None) -> Systems:
    """The shipped table; rows and stages of ``extra`` (or of what the recipe named) are added or take others' place."""
    extra = extra or os.environ.get(VARIABLE)
    stages, rows = {}, {}
    for path in [SHIPPED, Path(extra)] if extra else [SHIPPED]:
        more_stages, more_rows = read_table(path)
        stages |= more_stages
        rows |= more_rows
        refuse(order_faults(more_rows, rows, stages), str(path))
    return Systems(dict(sorted(stages.items())), rows, tuple(more_rows) if extra else ())


def read_table(path: Path) -> tuple[dict[int, Stage], dict[str, System]]:
    """Stages and rows of one file; a row with ``init`` comes after the row of what it is before training."""
    table = read_toml(path, {"stage?": [dict], "system?": {...: dict}})
    faults = [f"{key}: expected [[stage]] and [system.NAME]" for key in table if key not in ("stage", "system")]
    stages, rows = {}, {}
    for value in table.get("stage", []):
        wrong = value_faults(Stage, value)
        faults += [f"stage {value.get('number')}: {fault}" for fault in wrong]
        if not wrong:
            stages[value["number"]] = Stage(value["number"], value["title"], tuple(value.get("makes", ())))
    for name, value in table.get("system", {}).items():
        wrong = value_faults(System, {"name": name, **value}) or row_faults(name, value, path)
        faults += [f"{name}: {fault}" for fault in wrong]
        if not wrong:
            step = value.get("step", "")
            step = str((path.parent / step).resolve()) if step.endswith(".py") else step
            lists = {key: tuple(value.get(key, ())) for key in ("reads", "also")}
            row = System(**{"name": name, **value, "step": step, **lists})
            if row.init:
                what = f"{row.what}; before max-margin training"
                before = replace(row, name=f"{name}-init", label=f"{row.label}, before", what=what, step="", options={})
                rows[before.name], row = replace(before, init=False), replace(row, start=before.name)
            rows[name] = row
    refuse(faults, str(path), MOST)
    return stages, rows


def value_faults(kind, value: dict) -> list[str]:
    """Keys that ``kind`` has not or must have, and values of another type than its."""
    known = {each.name: each for each in fields(kind)}
    faults = [f"no key {key}; there are {', '.join(known)}" for key in value if key not in known]
    for name, each in known.items():
        wanted = each.type if each.type in (int, bool, str, dict) else list
        if name not in value:
            faults += [f"no {name}"] * (each.default is each.default_factory is MISSING)
        elif type(value[name]) is not wanted:
            faults.append(f"{name} is {brief(value[name])}, expected {wanted.__name__}")
        elif wanted is list and not all(isinstance(item, str) for item in value[name]):
            faults.append(f"{name} is {brief(value[name])}, expected a list of texts")
    return faults


def row_faults(name: str, value: dict, path: Path) -> list[str]:
    faults = []
    if not NAME.fullmatch(name):
        faults.append("expected a name of small letters, digits, '.', '+' and '-'")
    if value["family"] not in FAMILIES:
        faults.append(f"family is {value['family']}, expected {', '.join(FAMILIES)}")
    if not set(value.get("reads", ())) <= set(READABLE):
        faults.append(f"reads is {value['reads']}, expected some of {', '.join(READABLE)}")
    step = value.get("step", "")
    place = path.parent / step if step.endswith(".py") else HOME / "steps" / f"{step}.py"
    if step and not place.is_file():
        faults.append(f"step is {step}: no file {place}")
    for key, values in value.get("options", {}).items():
        for item in values if isinstance(values, list) else [values]:
            if not WORD.fullmatch(str(item)):
                faults.append(f"options: {key} is {item!r}, expected a number, true, false or a word")
    return faults


def order_faults(checked: dict[str, System], rows: dict[str, System], stages: dict[int, Stage]) -> list[str]:
    """Rows of ``checked`` in a stage that speech recipes do not have, or whose start is unknown or trained later."""
    faults, places = [], list(rows)
    for row in checked.values():
        if row.family == "hmm" and row.stage not in stages:
            faults.append(f"{row.name}: stage is {row.stage}, expected one of {' '.join(map(str, sorted(stages)))}")
        for start in row.starts:
            if start not in rows:
                faults.append(f"{row.name}: starts from {start}, of which no row tells")
            elif (rows[start].stage, places.index(start)) > (row.stage, places.index(row.name)):
                faults.append(f"{row.name}: starts from {start}, which is trained later")
    return faults

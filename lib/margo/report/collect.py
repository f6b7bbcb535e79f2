"""What a run has to show: collected from its folders into one :class:`Report`."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from margo.errors import MargoError
from margo.formats.paper import Paper, read_paper
from margo.formats.plots import PLOTS, read_plots, read_progress
from margo.formats.reading import read_json
from margo.formats.scores import NEEDED, read_score
from margo.formats.systems import Systems, read_systems, system_of
from margo.formats.transcripts import read_transcripts, read_utt2spk
from margo.report.columns import measure
from margo.report.comparing import compare_folders
from margo.report.pooled import pooled_rows
from margo.runtime import record

SETS = ("test", "dev", "train")
DURATIONS = "durations.json"  # of an alignment: how long its words are
WEIGHTS = "grammar.json"  # of a model: which weights of its grammar were chosen
TRIED = {"errors": int, "wrong": int, "insertion_penalty?": float, "scale?": float}
LAYOUT = {"chosen_on": str, "words": int, "strings": int, "before": TRIED, "after": TRIED, "tried": [TRIED]}
SWEPT = {"chosen_on": str, "start": {...: float}, "curves": [{"radius": float}],
         "best": {"radius": float, "epoch": int, "accuracy": {...: float}}}  # fmt: skip
SWEEP = "sweep.json"  # of sweep_radius: accuracies by radius and epoch, and the best of them
TRIALS = "trials.json"  # of tune: every trial that ended, its error on what was held out
TRIAL = {"number": int, "error": float, "settings": {...: (float, bool, str)}}
BEST = "best.toml"  # of tune: what a trainer takes as --conf
CHOSEN = "chosen.json"  # of choose_components: how many Gaussians each class has
COMPONENTS = {"components": {...: int}, "dev_error": float}


@dataclass(frozen=True)
class Report:
    """Everything the three files are made of; ``rows`` are those of ``results.json``."""

    recipe: str
    corpus: str
    synthetic: bool
    rows: list[dict]
    pooled: list[dict]
    """The test set over all numbers of mixtures, a row a system"""
    intervals: list[str]
    choices: dict[str, str]
    """How the settings of some systems were chosen, a sentence a system"""
    sizes: dict[str, dict[str, int]]
    curves: dict[str, list[dict]]
    plots: list[tuple[str, dict]]
    steps: list[dict]
    command: str
    paper: Paper | None
    systems: Systems
    weights: list[dict]
    """How the grammar's weights of each model were chosen: rows of :data:`margo.report.columns.WEIGHTS`"""
    sweeps: list[dict]
    """Which radius of LME's ball was best for the model of each folder: rows of :data:`margo.report.columns.SWEEPS`"""
    searches: list[dict]
    """Which settings of each system a search chose: rows of :data:`margo.report.columns.SEARCHES`"""
    durations: tuple[str, list[dict]] | None
    """``(folder, words)`` of the alignment with the most mixtures"""
    places: dict[tuple, Path]
    """Folder of each score, by system, mixtures and set (of those without a task)"""

    @property
    def results(self) -> dict:
        """The contents of ``results.json``."""
        return {"recipe": self.recipe, "corpus": self.corpus, "synthetic": self.synthetic, "rows": self.rows}

    def sections(self) -> dict[tuple[str, str, str], list[dict]]:
        """Rows by ``(task, set, measure)``, in the order of the tables."""
        tables: dict[tuple[str, str, str], list[dict]] = {}
        for row in self.rows:
            tables.setdefault((row.get("task", ""), row["set"], measure(row)), []).append(row)
        return tables

    def glossary(self) -> dict[str, str]:
        """What the systems that are shown are, a sentence each."""
        names = dict.fromkeys(row["system"] for row in self.rows)
        return {name: self.systems.rows[name].what for name in names if name in self.systems.rows}


def collect(exp, recipe: str, paper_path=None, command: str = "") -> Report:
    """Read everything below ``exp`` that a report shows; refuses a run without scores, or without ``corpus.json``."""
    exp = Path(exp)
    corpus, synthetic = read_corpus(exp)
    paper = read_paper(paper_path) if paper_path else None
    systems = read_systems()
    trained = sorted(path.parent for path in exp.rglob("progress.jsonl"))
    drawn = sorted(exp.rglob(PLOTS))
    scores = [(path.parent, read_score(path)) for path in sorted(exp.rglob("score.json"))]
    if not scores:
        raise MargoError(f"{exp}: no score.json below it: run the scoring stage first (--stage 7)")
    return Report(
        recipe=recipe,
        corpus=corpus,
        synthetic=synthetic,
        rows=make_rows(scores, paper, "" if synthetic else corpus, systems),
        pooled=pooled_rows(scores, systems),
        intervals=sorted({score["interval"] for _, score in scores if "interval" in score}),
        choices={score["system"]: score["choice"] for _, score in scores if "choice" in score},
        sizes=data_sizes(exp),
        curves={str(folder.relative_to(exp)): read_progress(folder) for folder in trained},
        plots=[(str(path.parent.relative_to(exp)), plot) for path in drawn for plot in read_plots(path)],
        steps=read_steps(exp),
        command=command or f"recipes/{recipe}/run.sh",
        paper=paper,
        systems=systems,
        weights=in_order(read_weights(exp), systems),
        sweeps=in_order(read_sweeps(exp), systems),
        searches=read_searches(exp),
        durations=read_durations(exp),
        places={tuple(score[key] for key in ("system", "mixtures", "set")): folder
                for folder, score in scores if "task" not in score},
    )  # fmt: skip


def read_corpus(exp: Path) -> tuple[str, bool]:
    """``(name, synthetic?)`` from ``data/corpus.json``, which the data stage writes."""
    path = exp / "data" / "corpus.json"
    try:
        value = read_json(path, "what labels results", {"corpus": str, "synthetic": bool})
    except MargoError as error:
        raise MargoError(f"{error}: run the data stage first (--stage 0)") from None
    return value["corpus"], value["synthetic"]


def make_rows(scores: list[tuple[Path, dict]], paper: Paper | None, corpus: str, systems: Systems) -> list[dict]:
    """Rows of ``results.json`` in order; a row that two folders claim is a fault. Of a paper's figures on a corpus that
    it names none stands beside another one; a synthetic corpus is such, and has no name here."""
    places: dict[tuple, tuple[Path, dict]] = {}
    for folder, score in scores:
        key = row_key(score, systems)
        if key in places:
            what = f"{score['system']}_{score['mixtures']} {score['set']}"
            raise MargoError(f"{folder} and {places[key][0]} both score {what}: keep one")
        places[key] = (folder, score)
    rows = []
    for key in sorted(places):
        folder, score = places[key]
        row = {name: score[name] for name in NEEDED}
        ser = score.get("ser")
        row["ser"] = {**ser, "paper": figure(paper, score, "ser", corpus)} if ser else None
        row["seconds"] = score.get("seconds")
        row["paper"] = figure(paper, score, score["metric"], corpus)
        row |= {name: score[name] for name in ("unit", "task", "runs", "parameters") if name in score}
        rows.append(row | comparisons(folder, score, places, systems))
    return rows


def row_key(score: dict, systems: Systems) -> tuple:
    place, rank = (*SETS, score["set"]).index(score["set"]), systems.rank(score["system"])
    return (score.get("task", ""), place, score["set"], score["metric"], rank, score["system"], score["mixtures"])


def figure(paper: Paper | None, score: dict, metric: str, corpus: str) -> dict | None:
    task = score.get("task", "")
    printed = paper and paper.find(score["system"], score["mixtures"], score["set"], metric, corpus, task)
    return {"percent": printed.percent, "source": printed.source} if printed else None


def comparisons(folder: Path, score: dict, places: dict, systems: Systems) -> dict:
    """``versus`` the baseline and ``versus_start``, or of which system its model is ``unchanged``; what there is."""
    values, compared = {}, {}
    start, same = start_of(folder, score, systems)
    baselines = [name for name, row in systems.rows.items() if row.baseline and name != score["system"]]
    for name in dict.fromkeys([*baselines, start]):
        other = places.get(row_key({**score, "system": name}, systems)) if name else None
        if other and (value := against(folder, score, *other)):
            compared[name] = {"system": name, **value}
    if baseline := next((compared[name] for name in baselines if name in compared), None):
        values["versus"] = baseline
    if same:
        values["unchanged"] = start
    elif start in compared:
        values["versus_start"] = compared[start]
    return values


def against(folder: Path, score: dict, other: Path, theirs: dict) -> dict | None:
    """Relative change of errors and p against another system, where both are single runs on the same data."""
    told = all((each / "score" / "per_utt").exists() for each in (folder, other))
    if "runs" in score or "runs" in theirs or not theirs["errors"] or not told:
        return None
    result = compare_folders(other, folder)
    change = 100 * (score["percent"] / theirs["percent"] - 1)
    return {"relative": round(change, 2), "p": float(f"{result['p']:.3g}"), "test": result["decisive"]}


def start_of(folder: Path, score: dict, systems: Systems) -> tuple[str, bool]:
    """``(system that a scored model started from, is it that model unchanged?)``, by the records of what made it.

    Where they do not tell (as of pooled decodings), or what a system was before training is scored too, the table of
    systems does. A start of another number of mixtures is none: it would not tell what the criterion did.
    """
    row, model = systems.rows.get(score["system"]), model_of(folder)
    if row and row.init or model is None or not isinstance(model["options"].get("init"), str):
        return (row.start if row and row.start != row.name else ""), False
    same = model.get("chosen") == 0 and model.get("unchanged", True)
    start, mixtures = system_of(str(model["from"]) if same and "from" in model else model["options"]["init"])
    if start == score["system"] or mixtures not in (None, score["mixtures"]):
        return "", False
    return start, same


def model_of(folder: Path) -> dict | None:
    """The record of the one model that a score is of."""
    model = model_folder(folder)
    return record.read(model) if model else None


def model_folder(folder: Path) -> Path | None:
    """Where the one model is that a score is of, also where the run was moved as a whole."""
    place = next((each for each in (folder, *folder.parents[:3]) if (each / record.NAME).exists()), None)
    options = ((record.of(folder) or {}).get("options") or {}) if place else {}
    model, out = options.get("model"), options.get("out")
    model = model[0] if isinstance(model, list) and len(model) == 1 else model
    if not (isinstance(model, str) and model and isinstance(out, str) and out):
        return None
    beside = place / os.path.relpath(model, out)
    return beside if record.read(beside) else Path(model)


def read_weights(exp: Path) -> list[dict]:
    """The grammar's weights of every model that had them chosen."""
    keys = ("chosen_on", "words", "strings", "before", "after")
    rows = []
    for folder, held in read_held(exp, WEIGHTS, LAYOUT, "weights of a grammar"):
        rows.append({**folder, **{key: held[key] for key in keys}, "tried": len(held["tried"])})
    return rows


def read_sweeps(exp: Path) -> list[dict]:
    """The best radius of LME's ball of every model that was a start with several."""
    rows = []
    for folder, held in read_held(exp, SWEEP, SWEPT, "accuracies by radius"):
        if not held["best"]["accuracy"].keys() <= held["start"].keys():
            raise MargoError(f"{exp / folder['folder'] / SWEEP}: sets in best that are not in start")
        tried = [curve["radius"] for curve in held["curves"]]
        rows.append({**folder, **held["best"], "start": held["start"], "chosen_on": held["chosen_on"], "tried": tried})
    return rows


def read_searches(exp: Path) -> list[dict]:
    """What every search of settings, and of Gaussians a class, tried, held fixed and chose, by their folders."""
    rows = []
    for path in sorted(exp.rglob(CHOSEN)):
        held, asked = read_json(path, "Gaussians of each class", COMPONENTS), record.read(path.parent) or record.BLANK
        tried, kind = (asked["options"].get(name, ()) for name in ("components", "covariance"))
        rows.append({"name": str(path.parent.relative_to(exp)), "chosen": held["components"],
                     "error": held["dev_error"], "tried": len(tried), "fixed": [f"covariance={kind}"],
                     "space": [f"components={','.join(map(str, tried))}"]})  # fmt: skip
    for path in sorted(exp.rglob(TRIALS)):
        trials = read_json(path, "trials of a search", [TRIAL])
        asked = (record.read(path.parent) or record.BLANK)["options"]
        if not trials or "space" not in asked:
            raise MargoError(f"{path}: a search without a trial, or without {record.NAME} that tells what was searched")
        best = min(trials, key=lambda trial: (trial["error"], trial["number"]))
        name = "/".join(part for part in path.parent.relative_to(exp).parts if part != "tune")
        rows.append({"name": name, "chosen": best["settings"], "error": best["error"],
                     "tried": len(trials), "space": asked["space"], "fixed": asked["fixed"]})  # fmt: skip
    return rows


def fixed_settings(steps: list[dict]) -> dict[str, dict]:
    """By trainer the settings that all models share which were trained with what a search chose."""
    shared: dict[str, dict] = {}
    for step in steps:
        if any(argument.endswith(BEST) for argument in step["argv"]):
            mine = {name: value for name, value in step["options"].items() if isinstance(value, bool | int | float)}
            held = shared.setdefault(step["step"], mine)
            shared[step["step"]] = {name: value for name, value in held.items() if mine.get(name) == value}
    return shared


def read_held(exp: Path, name: str, layout: dict, what: str) -> Iterator[tuple[dict, dict]]:
    """Of every file ``name`` below ``exp`` the system, mixtures and folder that it is of, and what it holds."""
    for path in sorted(exp.rglob(name)):
        system, mixtures = system_of(path.parent)
        held = read_json(path, what, layout)
        yield {"system": system, "mixtures": mixtures, "folder": str(path.parent.relative_to(exp))}, held


def in_order(rows: list[dict], systems: Systems) -> list[dict]:
    return sorted(rows, key=lambda row: (systems.rank(row["system"]), row["system"], row["mixtures"] or 0))


def read_durations(exp: Path) -> tuple[str, list[dict]] | None:
    """How long the words of the alignment with the most mixtures are, where one tells."""
    paths = {system_of(path.parent)[1] or 0: path for path in sorted(exp.glob(f"ali/*/{DURATIONS}"))}
    if not paths:
        return None
    path = paths[max(paths)]
    row = {"word": str, "tokens": int, "median_ms": float, "at_minimum": float}
    words = read_json(path, "durations of words", {"words": [row]})["words"]
    words = [{key: word[key] for key in row} for word in words]
    return str(path.parent.relative_to(exp)), words


def data_sizes(exp: Path) -> dict[str, dict[str, int]]:
    """Utterances, words and speakers of every data folder ``data/<set>``."""
    sizes = {}
    for text in sorted((exp / "data").glob("*/text")):
        words = read_transcripts(text)
        sizes[text.parent.name] = {"utterances": len(words), "words": sum(map(len, words.values()))}
        speakers = text.parent / "utt2spk"
        if speakers.exists():
            sizes[text.parent.name]["speakers"] = len({*read_utt2spk(speakers).values()})
    return sizes


def read_steps(exp: Path) -> list[dict]:
    """The records of all steps that ended well, by folder; paths are given relative to the run."""
    steps = []
    for path in sorted(exp.rglob(record.NAME)):
        held = record.read(path.parent) or {}
        if held.get("status") == "ok":
            folder = str(path.parent.relative_to(exp))
            argv = [str(argument).replace(str(exp), "EXP") for argument in held.get("argv", [])]
            steps.append({**held, "folder": folder, "argv": argv})
    return steps

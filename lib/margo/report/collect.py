"""What a run has to show: collected from its folders into one :class:`Report`."""

import json
from dataclasses import dataclass
from pathlib import Path

from margo.errors import MargoError
from margo.formats.paper import Paper, read_paper
from margo.formats.plots import PLOTS, read_plots, read_progress
from margo.formats.scores import read_score
from margo.formats.transcripts import read_transcripts, read_utt2spk
from margo.runtime import record
from margo.tasks.comparing import compare_folders

# The order of rows; systems not listed follow by name.
SYSTEMS = (
    "ml", "mce", "mmi", "mm", "lme-gd", "lme-sdp", "lme-sdp-hard",
    "gmm-ml", "gmm-cl", "gmm-mm", "hybrid-ll", "hybrid-ll-lm", "hybrid-ll-cll", "hybrid-lm", "hybrid-cll",
    "mm-grad", "mm-smo",
    "svm-llr-init", "svm-llr", "svm-llr-mean-init", "svm-llr-mean", "svm-llr-mean-var-init", "svm-llr-mean-var",
    "svm-rbf", "knn", "mlp",
)  # fmt: skip
SETS = ("test", "dev", "train")
BASELINES = ("ml", "gmm-ml")  # what others are compared with, where it is among them


@dataclass(frozen=True)
class Report:
    """Everything the three files are made of; ``rows`` are those of ``results.json``."""

    recipe: str
    corpus: str
    synthetic: bool
    rows: list[dict]
    intervals: list[str]
    choices: dict[str, str]
    """How the settings of some systems were chosen, a sentence a system"""
    sizes: dict[str, dict[str, int]]
    curves: dict[str, list[dict]]
    plots: list[tuple[str, dict]]
    steps: list[dict]
    command: str
    paper: Paper | None

    @property
    def results(self) -> dict:
        """The contents of ``results.json``."""
        return {"recipe": self.recipe, "corpus": self.corpus, "synthetic": self.synthetic, "rows": self.rows}

    def sections(self) -> dict[tuple[str, str, str], list[dict]]:
        """Rows by ``(task, set, measure)``, in the order of the tables."""
        found: dict[tuple[str, str, str], list[dict]] = {}
        for row in self.rows:
            found.setdefault((row.get("task", ""), row["set"], measure(row)), []).append(row)
        return found


def measure(row: dict) -> str:
    """What a row's rate is to be called: ``wer`` of words, ``per`` of phones (whose metric is ``wer``), ``err``."""
    return "per" if row.get("unit") == "phone" else row["metric"]


def collect(exp, recipe: str, paper_path=None, command: str = "") -> Report:
    """Read everything below ``exp`` that a report shows; refuses a run without scores, or without ``corpus.json``."""
    exp = Path(exp)
    corpus, synthetic = read_corpus(exp)
    paper = read_paper(paper_path) if paper_path else None
    trained = sorted(path.parent for path in exp.rglob("progress.jsonl"))
    drawn = sorted(exp.rglob(PLOTS))
    scores = [(path.parent, read_score(path)) for path in sorted(exp.rglob("score.json"))]
    if not scores:
        raise MargoError(f"{exp}: no score.json below it: run the scoring stage first (--stage 7)")
    return Report(
        recipe=recipe,
        corpus=corpus,
        synthetic=synthetic,
        rows=make_rows(scores, paper, corpus),
        intervals=sorted({score["interval"] for _, score in scores if "interval" in score}),
        choices={score["system"]: score["choice"] for _, score in scores if "choice" in score},
        sizes=data_sizes(exp),
        curves={str(folder.relative_to(exp)): read_progress(folder) for folder in trained},
        plots=[(str(path.parent.relative_to(exp)), plot) for path in drawn for plot in read_plots(path)],
        steps=read_steps(exp),
        command=command or f"recipes/{recipe}/run.sh",
        paper=paper,
    )


def read_corpus(exp: Path) -> tuple[str, bool]:
    """``(name, synthetic?)`` from ``data/corpus.json``, which the data stage writes."""
    path = exp / "data" / "corpus.json"
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        name, synthetic = value["corpus"], value["synthetic"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise MargoError(
            f"{path}: needs {{corpus, synthetic}} to label results ({type(error).__name__}: {error}): "
            "run the data stage first (--stage 0)"
        ) from None
    if not isinstance(name, str) or not isinstance(synthetic, bool):
        raise MargoError(f"{path}: found {value}, expected a name in corpus and true or false in synthetic")
    return name, synthetic


def make_rows(scores: list[tuple[Path, dict]], paper: Paper | None, corpus: str) -> list[dict]:
    """Rows of ``results.json`` in order; a row that two folders claim is a fault."""
    rows: dict[tuple, tuple[Path, dict]] = {}
    for folder, score in scores:
        key = row_key(score)
        if key in rows:
            what = f"{score['system']}_{score['mixtures']} {score['set']}"
            raise MargoError(f"{folder} and {rows[key][0]} both score {what}: keep one")
        rows[key] = (folder, score)
    made = []
    for key in sorted(rows):
        folder, score = rows[key]
        row = {name: score[name] for name in ("system", "mixtures", "set", "metric")}
        row |= {name: score[name] for name in ("percent", "errors", "total", "ci95")}
        ser = score.get("ser")
        row["ser"] = {**ser, "paper": figure(paper, score, "ser", corpus)} if ser else None
        row["seconds"] = score.get("seconds")
        row["paper"] = figure(paper, score, score["metric"], corpus)
        row |= {name: score[name] for name in ("unit", "task", "runs") if name in score}
        versus = against_baseline(key, rows)
        made.append(row | ({"versus": versus} if versus else {}))
    return made


def row_key(score: dict) -> tuple:
    rank = SYSTEMS.index(score["system"]) if score["system"] in SYSTEMS else len(SYSTEMS)
    place = SETS.index(score["set"]) if score["set"] in SETS else len(SETS)
    return (score.get("task", ""), place, score["metric"], rank, score["system"], score["mixtures"])


def figure(paper: Paper | None, score: dict, metric: str, corpus: str) -> dict | None:
    found = paper and paper.find(score["system"], score["mixtures"], score["set"], metric, corpus)
    return {"percent": found.percent, "source": found.source} if found else None


def against_baseline(key: tuple, rows: dict) -> dict | None:
    """Relative change of errors and p against ML with as many mixtures, where both are single runs on the same data."""
    task, place, metric, _, system, mixtures = key
    for baseline in BASELINES:
        base = (task, place, metric, SYSTEMS.index(baseline), baseline, mixtures)
        if base not in rows or baseline == system:
            continue
        ours, theirs = rows[key], rows[base]
        if "runs" in ours[1] or "runs" in theirs[1] or not theirs[1]["errors"]:
            continue
        if not all((folder / "score" / "per_utt").exists() for folder, _ in (ours, theirs)):
            continue
        found = compare_folders(theirs[0], ours[0])
        change = 100 * (ours[1]["percent"] / theirs[1]["percent"] - 1)
        p = float(f"{found['p']:.3g}")
        return {"system": baseline, "relative": round(change, 2), "p": p, "test": found["decisive"]}
    return None


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

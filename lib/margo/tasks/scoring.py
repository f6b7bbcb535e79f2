"""From references and hypotheses to a score folder: what steps that decode or classify call."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from margo.errors import MargoError, refuse
from margo.formats.plots import read_progress
from margo.formats.scores import write_details, write_score
from margo.formats.systems import system_of
from margo.runtime import record

EXAMPLES = 5  # names shown in a message


def score_transcripts(
    folder, references: Mapping[str, Sequence[str]], hypotheses: Mapping[str, Sequence[str]], *,
    system: str, mixtures: int, set: str, speakers: Mapping[str, str] | None = None, by: str = "utterance",
    unit: str = "word", seed: int = 0, seconds: float | None = None, extra: dict | None = None,
) -> tuple[dict, list[str]]:  # fmt: skip
    """Score strings of words, or of phones (``unit``), into ``folder``; ``(facts, names of the files written)``.

    An utterance without a hypothesis counts as deleted whole and is listed under ``missing``; a hypothesis without a
    reference is a fault, since it belongs to other data. ``by`` is what the intervals draw: utterance or speaker.
    """
    from margo.score.rates import score

    names = sorted(references)
    surplus = sorted(hypotheses.keys() - references.keys())
    if surplus:
        told = f"{len(surplus)} hypotheses have no reference: {_some(surplus)}"
        raise MargoError(f"{told}; they were decoded from other data")
    if not any(references.values()):
        raise MargoError("no reference has any words: there is nothing to score against")
    missing = [name for name in names if name not in hypotheses]
    of = _speakers_of(names, speakers)
    if by == "speaker" and of is None:
        raise MargoError("intervals by speaker need to know the speakers (utt2spk)")
    strings = [references[name] for name in names], [hypotheses.get(name, ()) for name in names]
    scored = score(*strings, np.random.default_rng(seed), of if by == "speaker" else None)
    counts = tuple(int(getattr(scored.alignments, key).sum()) for key in ("insertions", "deletions", "substitutions"))
    facts = {
        "unit": unit,
        "interval": f"bootstrap over {by}s, seed {seed}",
        "reference": digest(references),
        **({"speakers": len({*of})} if of is not None else {}),
        **(extra or {}),
    }
    written = write_details(folder, names, scored.alignments, of)
    written += write_score(
        folder, scored.symbols, system=system, mixtures=mixtures, set=set, metric="wer", ser=scored.strings,
        counts=counts, seconds=seconds, missing=missing, extra=facts,
    )  # fmt: skip
    return {"words": scored.symbols, "strings": scored.strings, "missing": missing}, written


def score_classes(
    folder, truth: Sequence, runs: Sequence[Sequence], *, system: str, mixtures: int, set: str,
    names: Sequence[str] | None = None, groups: Sequence[str] | None = None,
    seed: int = 0, seconds: float | None = None, extra: dict | None = None,
) -> list[str]:  # fmt: skip
    """Score predicted classes into ``folder``; the names of the files written.

    ``runs`` holds one sequence of predictions for ``truth[N]``, or one for each seed or start: then the row is their
    mean, its interval that of the mean over runs, and the details (``per_utt`` and so on) are the first run's.
    ``groups[N]`` (speakers) are drawn whole for the interval of a single run.
    """
    from margo.score.interval import pooled_rate
    from margo.score.rates import score

    refuse([f"run {n}: {len(run)} predictions for {len(truth)} samples" for n, run in enumerate(runs, start=1)
            if len(run) != len(truth)], f"{folder}: cannot be scored")  # fmt: skip
    references = [[str(label)] for label in truth]
    generator = np.random.default_rng(seed)
    scored = [score(references, [[str(label)] for label in run], generator, groups) for run in runs]
    rates = [each.symbols for each in scored]
    single = len(rates) == 1
    drawn = "samples" if groups is None else "speakers"
    if names is None:
        names = [f"sample{n:0{len(str(len(truth)))}d}" for n in range(len(truth))]
    facts = {
        "interval": f"bootstrap over {drawn}, seed {seed}" if single else f"Student's, mean of {len(rates)} runs",
        "reference": digest(dict(zip(names, references))),
        **(extra or {}),
    }
    written = write_details(folder, names, scored[0].alignments, groups)
    return written + write_score(
        folder, rates[0] if single else pooled_rate(rates), system=system, mixtures=mixtures, set=set, metric="err",
        seconds=seconds, runs=None if single else [rate.percent for rate in rates], extra=facts,
    )  # fmt: skip


def digest(references: Mapping[str, Sequence[str]]) -> str:
    """A hash of utterances and their words: equal for folders scored on the same data."""
    return record.digest({name: " ".join(words) for name, words in references.items()})


def place_of(folder: Path) -> tuple[str, int, str]:
    """``(system, mixtures, set)`` of a decode folder ``.../<system>_<mixtures>/<set>``; 0: the name does not tell."""
    folder = Path(folder).resolve()
    system, mixtures = system_of(folder.parent)
    return system, mixtures or 0, folder.name


def training_seconds(decode_folder) -> float | None:
    """Seconds that training of the decoded model took, from its own records; None where that is not known.

    A run that was interrupted and resumed has its earlier part only in ``progress.jsonl``.
    """
    decoded = record.read(decode_folder) or record.read(Path(decode_folder).parent) or {}
    model = decoded.get("options", {}).get("model")
    trained = record.read(model) if isinstance(model, str) and model else None
    if trained is None or not trained["seconds"]:
        return None
    return max(trained["seconds"], sum(line.get("seconds", 0) for line in read_progress(Path(model))))


def _speakers_of(names: Sequence[str], speakers: Mapping[str, str] | None) -> list[str] | None:
    if speakers is None:
        return None
    unknown = [name for name in names if name not in speakers]
    if unknown:
        raise MargoError(f"{len(unknown)} utterances have no speaker in utt2spk: {_some(unknown)}")
    return [speakers[name] for name in names]


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:EXAMPLES]) + (f" and {len(names) - EXAMPLES} more" if len(names) > EXAMPLES else "")

"""Feature folders through transforms: one for all speakers (LDA and MLLT), or one for each (fMLLR)."""

import hashlib
from dataclasses import asdict, dataclass, replace
from functools import partial

import numpy as np

from margo.errors import MargoError, refuse
from margo.estimate.tying import ContextStats, context_stats
from margo.formats import datadir, features
from margo.formats.atomic import read_npz, write_json, write_npz
from margo.formats.reading import MOST, file_in, fitting
from margo.gaussian.likelihood import evaluate, log_likelihoods, scorer
from margo.model.graph import align_graph
from margo.model.hmm import HmmSet
from margo.search.viterbi import viterbi
from margo.signal.front_end import same_features
from margo.tasks import speech
from margo.transform.class_moments import ClassMoments, splice
from margo.transform.discriminant import lda
from margo.transform.fmllr import FmllrStats, apply, fmllr
from margo.transform.mllt import mllt

NAME = "transform.npz"
SHAPE = {"kind": {"lda"}, "columns": int, "left": int, "right": int, "source": dict}


@dataclass(frozen=True)
class Splicing:
    """The first ``columns`` of frames, with neighbours to the left and to the right."""

    columns: int
    left: int
    right: int

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return splice(x[:, : self.columns], self.left, self.right)


def other_chunks(data: speech.Speech, other: speech.Speech) -> list[dict]:
    """The utterances of ``data``, chunk by chunk, as items of another folder, by name."""
    items = {item.name: item for item in other.items}
    missing = [item.name for item in data.items if item.name not in items]
    refuse([f"no utterance {name}" for name in missing], f"{other.folder}: not the utterances of {data.folder}", MOST)
    return [{item.name: items[item.name] for item in chunk} for chunk in data.chunks]


def stats_onto(hmms: HmmSet, utterances, others: dict) -> ContextStats:
    """:func:`margo.estimate.tying.context_stats` of frames in another folder."""
    return context_stats(hmms, utterances, {name: x for name, x, _ in speech.load(others.values())})


def best_states(hmms: HmmSet, x: np.ndarray, words) -> np.ndarray | None:
    """Pool state of each frame on the best path of a transcript; None where there is none."""
    try:
        graph = align_graph(hmms, words)
    except MargoError:
        return None
    path = viterbi(graph, log_likelihoods(scorer(hmms.pool, graph.states), x))
    return path and path.states


def state_moments(splicing: Splicing, hmms: HmmSet, utterances) -> ClassMoments:
    """Moments of spliced frames, by the state of the best path."""
    width = splicing.columns * (splicing.left + 1 + splicing.right)
    moments, dropped = ClassMoments.zeros(hmms.pool.n_states, width), []
    for name, x, words in utterances:
        states = best_states(hmms, x, words)
        if states is None:
            dropped.append((name, "no path through its transcript's model"))
        else:
            moments.add(splicing(x), states)
    moments.dropped = tuple(dropped)
    return moments


def estimate_lda(hmms: HmmSet, corpus, splicing: Splicing, dimension: int) -> tuple[np.ndarray, list[float]]:
    """``(matrix [dimension, W], MLLT's objective by sweep)``: LDA of the states, then MLLT."""
    moments = corpus.total(partial(state_moments, splicing), hmms)
    matrix = lda(moments, dimension)
    projected = moments.projected(matrix)
    rotation, values = mllt(projected.counts, projected.scatters)
    return rotation @ matrix, values


def write_transform(path, matrix: np.ndarray, splicing: Splicing, source: dict) -> None:
    write_npz(path, {"kind": "lda", **asdict(splicing), "source": source}, {"matrix": matrix})


def read_transform(folder) -> tuple[np.ndarray, Splicing, dict]:
    """``(matrix, splicing, record of the features it is for)``."""
    path = file_in(folder, NAME)
    meta, arrays = read_npz(path)
    fitting(path, meta, SHAPE, "a transform")
    splicing, matrix = Splicing(meta["columns"], meta["left"], meta["right"]), arrays.get("matrix", np.empty(0))
    width = splicing.columns * (splicing.left + 1 + splicing.right)
    fits = matrix.ndim == 2 and len(matrix) and matrix.shape[1] == width and min(meta["left"], meta["right"]) >= 0
    if not fits or matrix.dtype.kind != "f" or not (np.abs(matrix) <= np.finfo(np.float32).max).all():
        raise MargoError(f"{path}: matrix is {matrix.dtype} {matrix.shape}, expected finite numbers, {width} columns")
    return matrix, splicing, meta["source"]


def transformed(folder, data: speech.Speech):
    """``(record, (name, frames) of each utterance)`` of a folder's features by the transform in ``folder``."""
    matrix, splicing, source = read_transform(folder)
    same_features(source, data.features, f"{data.folder}: the features")
    mark = hashlib.sha256(np.ascontiguousarray(matrix).tobytes()).hexdigest()[:16]
    times = {key: source[key] for key in ("shift_ms", "window_ms", "sample_rate") if key in source}
    record = {"variant": "given", "dimension": len(matrix), "lda": mark, **times}
    return record, ((item.name, apply(matrix, splicing(x))) for item, (_, x, _) in zip(data.items, loaded(data)))


def loaded(data: speech.Speech):
    for chunk in data.chunks:
        yield from speech.load(chunk)


def write_features(step, data: speech.Speech, record: dict, frames) -> int:
    """A feature folder with the texts and speakers of ``data``; returns the number of utterances."""
    offsets = features.write_ark(step.output("feats.ark"), step.output("feats.scp"), frames)
    ark = (step.output("feats.ark")).resolve()
    rows = [replace(row, audio=None, recording=None, start=None, end=None, feats=f"{ark}:{offsets[row.name]}")
            for row in datadir.read(data.folder) if row.name in offsets]  # fmt: skip
    datadir.write(ark.parent, rows)
    for table in ("text", "utt2spk", "spk2utt", *(["spk2gender"] if rows[0].gender else [])):
        step.output(table)
    write_json(step.output(features.RECORD), record)
    return len(rows)


def speaker_stats(hmms: HmmSet, utterances, base: dict) -> dict[str, FmllrStats]:
    """Of each speaker of a chunk: posteriors of ``utterances`` along their best paths, frames of ``base`` (items by
    name). Frames of silence, which say little of a speaker, do not count."""
    quiet = () if hmms.silence is None else hmms.units[hmms.unit_index[hmms.silence]].states
    originals = {name: x for name, x, _ in speech.load(base.values())}
    stats: dict[str, FmllrStats] = {}
    for name, x, words in utterances:
        states = best_states(hmms, x, words) if words else None
        if states is None:
            continue
        own = stats.setdefault(base[name].speaker, FmllrStats.zeros(hmms.pool.dimension))
        used = np.setdiff1d(states, quiet)
        kept, compiled = np.isin(states, used), scorer(hmms.pool, used)
        evaluation = evaluate(compiled, np.ascontiguousarray(x[kept]))
        here = np.arange(len(used)) == np.searchsorted(used, states[kept])[:, None]
        gammas = np.where(here[:, None, :], evaluation.shares / evaluation.totals[:, None, :], 0.0)
        known = compiled.gaussians.ravel() >= 0
        gammas = gammas.reshape(len(gammas), -1)[:, known].astype(np.float64)
        own.add(hmms.pool, originals[name][kept], gammas, compiled.gaussians.ravel()[known])
    return stats


def speaker_transforms(hmms: HmmSet, corpus, base: speech.Speech, least: float) -> dict[str, np.ndarray]:
    """``speaker -> transform [D, D + 1]`` of all speakers of ``base``; the identity of one with few frames."""
    sums = {speaker: FmllrStats.zeros(hmms.pool.dimension) for speaker in sorted({i.speaker for i in base.items})}
    for part in corpus.map(speaker_stats, hmms, other_chunks(corpus.data, base)):
        for speaker, stats in part.items():
            sums[speaker] += stats
    return {speaker: fmllr(stats, least=least)[0] for speaker, stats in sums.items()}


def adapted(transforms: dict, base: speech.Speech):
    """``(name, frames)`` of each utterance by its speaker's transform."""
    return ((item.name, apply(transforms[item.speaker], x)) for item, (_, x, _) in zip(base.items, loaded(base)))

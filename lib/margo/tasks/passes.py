"""Passes over a chunk of a corpus that search with a fixed model: decoding, N-best, alignment.

Each is a function of a model and a chunk (:mod:`margo.tasks.speech`), to be given to the chunk map.
"""

import hashlib
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from margo.errors import MargoError
from margo.estimate.pieces import NO_MEMORY
from margo.estimate.tying import core
from margo.formats.boundary_table import BoundaryRow
from margo.formats.ctm import TimedWord
from margo.formats.models import read_model
from margo.formats.reading import file_in
from margo.formats.textgrid import Interval, write_textgrid
from margo.gaussian.likelihood import log_likelihoods, log_likelihoods_of_many, scorer
from margo.model.grammar import FEW, recognition_graph, search_graph, string_score, weighed_grammar
from margo.model.graph import Graph, align_graph
from margo.model.hmm import HmmSet
from margo.score.boundaries import Correction
from margo.search.confidence import confidences, unit_confidences
from margo.search.held import evidence, word_odds
from margo.search.nbest import nbest
from margo.search.placing import unit_starts, units_alone
from margo.search.pruned import ACTIVE, BEAM
from margo.search.viterbi import align, viterbi
from margo.signal.front_end import same_features
from margo.signal.times import boundary_times
from margo.tasks.speech import Speech, load


class Limits(NamedTuple):
    """Of a search (:func:`margo.search.viterbi.viterbi`): 0 is none, None what suits the vocabulary."""

    beam: float | None = None
    most: int | None = None


OWN = Limits()


@dataclass(frozen=True, eq=False)
class Aligned:
    """Words in time: pool state of each frame int32 [T]; words and units as (name, start, end, confidence), units of
    decodings without the last. ``starts`` and ``deviations`` [U]: when units begin, in frames, on average over all
    paths, and how sure that is."""

    name: str
    score: float
    states: np.ndarray
    words: tuple
    units: tuple
    starts: np.ndarray | None = None
    deviations: np.ndarray | None = None


ADAPTED = "fmllr"  # of a record of features: the model that each speaker's were mapped to


def model_for(folder, speech: Speech) -> HmmSet:
    """The model in ``folder``, or file, once it is sure that ``speech`` has the features it was trained on; or the same
    adapted to this very model, and then it is of these: to recognise adapted speakers, or train speaker-adaptively."""
    hmms = read_model(file_in(folder, "model.npz"))
    expected, given = hmms.meta.get("features", {}), speech.features
    if given.get(ADAPTED) == mark_of(hmms):
        hmms = replace(hmms, meta={**hmms.meta, "features": given})
        expected, given = unadapted(expected), unadapted(given)
    same_features(expected, given, f"{speech.folder}: the features")
    return hmms


def mark_of(hmms: HmmSet) -> str:
    """Sixteen digits by which the densities of a model are told from another's."""
    parts = (hmms.pool.means, hmms.pool.variances, hmms.pool.log_weights)
    return hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).hexdigest()[:16]


def unadapted(features: dict) -> dict:
    """The record of features before they were adapted."""
    return {key: value for key, value in features.items() if key != ADAPTED}


def search_of(hmms: HmmSet, limits: Limits = OWN) -> tuple[Graph, float, int]:
    """``(graph, beam, most)`` that decoding searches with: exactly, unless it is told otherwise or the words are many,
    and else in a graph in which these share their beginnings."""
    many = len(hmms.words) > FEW
    beam = BEAM * many if limits.beam is None else limits.beam
    most = ACTIVE * many if limits.most is None else limits.most
    return search_graph(hmms) if beam or most else recognition_graph(hmms), beam or np.inf, most


def decode(hmms: HmmSet, limits: Limits, chunk) -> list[tuple]:
    """``(name, recognised words or None, score, frames)`` of each utterance; None when no path fits its frames."""
    return [(name, path and path.word_names, path.score if path else -np.inf, len(scores))
            for name, _, scores, path in best_paths(hmms, search_of(hmms, limits), chunk)]  # fmt: skip


def best_paths(hmms: HmmSet, search: tuple[Graph, float, int], chunk):
    """``(name, x [T, D], scores [T, S'], best path or None)`` of each utterance, of a search (:func:`search_of`); where
    limits have left no path the search is exact."""
    graph, beam, most = search
    names, frames, _ = zip(*load(chunk, hmms))
    for name, x, scores in zip(names, frames, log_likelihoods_of_many(scorer(hmms.pool, graph.states), list(frames))):
        yield name, x, scores, viterbi(graph, scores, beam, most) or viterbi(graph, scores)


def timed_decode(hmms: HmmSet, limits: Limits, scale: float, belief, chunk) -> list[Aligned | None]:
    """What :func:`decode` finds with its times and its confidences (:func:`margo.tasks.recognising.confidence_of`);
    None when no path fits an utterance's frames."""
    search, weighed, rows = search_of(hmms, limits), recognition_graph(weighed_grammar(hmms, scale)), []
    usual = hmms.pool.usual[search[0].states]
    for name, x, scores, path in best_paths(hmms, search, chunk):
        if path is not None:
            odds = word_odds(evidence(search[0], scores, path, x, usual), belief)
            path = timed(hmms, name, path, odds * confidences(weighed, scores, path.words, scale))
        rows.append(path)
    return rows


def timed(hmms: HmmSet, name: str, path, sure: np.ndarray) -> Aligned:
    """A path with the names of its words and units, and how sure each word is [len(words)]."""
    words = tuple((hmms.words[s.index], s.start, s.end, float(c)) for s, c in zip(path.words, sure))
    units = tuple((hmms.units[s.index].name, s.start, s.end) for s in path.units)
    return Aligned(name, path.score, path.states.astype(np.int32), words, units)


def unit_kinds(hmms: HmmSet) -> np.ndarray:
    """int [units]: units of one kind are the same phone, in whatever context."""
    names = [unit.name if unit.name in hmms.lexicon else core(unit.name) for unit in hmms.units]
    return np.unique(names, return_inverse=True)[1]


def row_times(features: dict, utterance: Aligned, correction: Correction | None = None) -> np.ndarray:
    """Seconds [T + 1] at which frames begin, and the last ends; where a unit begins, when it does so on average over
    all paths, where that is known, less what the correction says such boundaries are late by."""
    at = boundary_times(features, len(utterance.states))
    if utterance.starts is None or len(utterance.units) < 2:
        return at
    times = np.interp(utterance.starts, np.arange(len(at)), at)[1:]
    rows = [unit[1] for unit in utterance.units[1:]]
    if correction:
        names = [unit[0] if unit[0] in correction.classes else core(unit[0]) for unit in utterance.units]
        times -= [correction.lateness(left, right) for left, right in zip(names, names[1:])]
    at[rows] = np.maximum.accumulate(np.clip(times, at[0], at[-1]))
    return at


def boundary_rows(features: dict, utterance: Aligned, correction: Correction | None = None) -> list[BoundaryRow]:
    """Where units meet, and how sure that is."""
    at, shift = row_times(features, utterance, correction), features.get("shift_ms", 10.0) / 1000
    scale = shift * (correction.factor if correction else 1.0)
    return [BoundaryRow(utterance.name, at[right[1]], scale * deviation, left[0], right[0], right[3])
            for left, right, deviation in zip(utterance.units, utterance.units[1:], utterance.deviations[1:])]


def times_of(
    features: dict, done: list[Aligned], kind: str, correction: Correction | None = None
) -> list[TimedWord]:
    """Words or units (``kind``) of all utterances in seconds."""
    rows = []
    for utterance in done:
        at = row_times(features, utterance, correction)
        for word, start, end, *sure in getattr(utterance, kind):
            rows.append(TimedWord(utterance.name, at[start], at[end] - at[start], word, *sure))
    return rows


def write_grid(path, features: dict, utterance: Aligned, correction: Correction | None = None) -> None:
    """A TextGrid with tiers of words and units; what took no time is left out, as an interval has a length."""
    at = row_times(features, utterance, correction)
    tiers = {
        kind: [Interval(at[s], at[e], name) for name, s, e, *_ in getattr(utterance, kind) if at[e] > at[s]]
        for kind in ("words", "units")
    }
    write_textgrid(path, at[-1], tiers)


def nbest_lists(hmms: HmmSet, n: int, chunk) -> list[dict]:
    """Rows of ``nbest.jsonl``: the transcript with its score, and the ``n`` best distinct strings with theirs."""
    graph = recognition_graph(hmms)
    compiled = scorer(hmms.pool, graph.states)
    rows = []
    for name, x, words in load(chunk, hmms):
        row = {"utt": name, "ref": list(words), "ref_score": None, "hyps": []}
        with suppress(MemoryError):  # then there are none
            scores = log_likelihoods(compiled, x)
            row["ref_score"] = reference_score(hmms, words, scores, graph.states)
            row["hyps"] = [{"words": list(h.names), "score": round(h.score, 6)} for h in nbest(graph, scores, n)]
        rows.append(row)
    return rows


def reference_score(hmms: HmmSet, words, scores: np.ndarray, states: np.ndarray) -> float | None:
    """Viterbi score of a transcript, ``scores`` having a column for each of ``states``; None when it cannot be aligned.

    What the grammar adds for each word is added here too, so that it can be set beside the N-best scores.
    """
    try:
        path = viterbi(align_graph(hmms, words, states), scores)
    except MargoError:
        return None
    return round(path.score + string_score(hmms, words), 6) if path else None


def aligned(hmms: HmmSet, name: str, path, scores: np.ndarray, judge: tuple, placed: tuple) -> Aligned:
    """A forced path with its confidences and boundaries. ``judge``: the recognition graph, of whose states ``scores``
    [T, S'] are, the scale of its confidences, and :func:`unit_kinds`. ``placed``: :func:`units_alone`, and the scale of
    boundaries' posteriors, or None."""
    graph, scale, kinds = judge
    found = timed(hmms, name, path, confidences(graph, scores, path.words, scale))
    sure = unit_confidences(hmms, graph, scores, path.units, scale, kinds)
    units = tuple((*unit, float(value)) for unit, value in zip(found.units, sure))
    starts = (None, None)
    if placed[1] is not None:
        starts = unit_starts(placed[0], path.units, scores, graph.states, placed[1])
    return replace(found, units=units, starts=starts[0], deviations=starts[1])


def alignments(
    hmms: HmmSet, confidence_scale: float, chunk, boundary_scale: float | None = None
) -> tuple[list[Aligned], list[tuple[str, str]]]:
    """Forced alignments of a chunk and ``(name, reason)`` of the utterances that have none.

    The confidence of a word or unit is its posterior, averaged over its frames, when everything the grammar allows
    competes; what the grammar adds is scaled as the frames are. With ``boundary_scale``, of log-likelihoods, also when
    units begin on average over all paths.
    """
    graph = recognition_graph(weighed_grammar(hmms, confidence_scale))
    compiled, alone, kinds = scorer(hmms.pool, graph.states), units_alone(hmms), unit_kinds(hmms)
    done, dropped = [], []
    for name, x, words in load(chunk, hmms):
        try:
            forced = align_graph(hmms, words, graph.states)
            scores = log_likelihoods(compiled, x)
            path = align(forced, scores)
            found = aligned(hmms, name, path, scores, (graph, confidence_scale, kinds), (alone, boundary_scale))
        except MargoError as error:
            dropped.append((name, str(error)))
            continue
        except MemoryError:
            dropped.append((name, NO_MEMORY.format(len(x))))
            continue
        done.append(found)
    return done, dropped


def durations(hmms: HmmSet, features: dict, done: list[Aligned]) -> list[dict]:
    """Of every word that was aligned: tokens, median duration, and the share of tokens as short as its model allows."""
    frames: dict[str, list[int]] = {}
    milliseconds: dict[str, list[float]] = {}
    for utterance in done:
        at = boundary_times(features, len(utterance.states))
        for word, start, end, _ in utterance.words:
            frames.setdefault(word, []).append(end - start)
            milliseconds.setdefault(word, []).append(1000 * (at[end] - at[start]))
    return [
        {
            "word": word,
            "tokens": len(frames[word]),
            "median_ms": round(float(np.median(milliseconds[word])), 1),
            "at_minimum": round(float(np.mean(np.array(frames[word]) <= hmms.least_frames(word))), 4),
        }
        for word in sorted(frames)
    ]

"""Passes over a chunk of a corpus that search with a fixed model: decoding, N-best, alignment.

Each is a function of a model and a chunk (:mod:`margo.tasks.speech`), to be given to the chunk map.
"""

from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from margo.errors import MargoError
from margo.estimate.pieces import NO_MEMORY
from margo.formats.ctm import TimedWord
from margo.formats.models import read_model
from margo.formats.reading import file_in
from margo.formats.textgrid import Interval, write_textgrid
from margo.gaussian.likelihood import log_likelihoods, log_likelihoods_of_many, scorer
from margo.model.grammar import FEW, recognition_graph, search_graph, string_score, weighed_grammar
from margo.model.graph import Graph, align_graph
from margo.model.hmm import HmmSet
from margo.search.confidence import confidences
from margo.search.nbest import nbest
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
    """Words in time: pool state of each frame int32 [T]; words and units as (name, start, end, confidence)."""

    name: str
    score: float
    states: np.ndarray
    words: tuple
    units: tuple


def model_for(folder, speech: Speech) -> HmmSet:
    """The model in ``folder``, or file, once it is sure that ``speech`` has the features it was trained on."""
    hmms = read_model(file_in(folder, "model.npz"))
    same_features(hmms.meta.get("features", {}), speech.features, f"{speech.folder}: the features")
    return hmms


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
            for name, scores, path in best_paths(hmms, search_of(hmms, limits), chunk)]  # fmt: skip


def best_paths(hmms: HmmSet, search: tuple[Graph, float, int], chunk):
    """``(name, scores [T, S'], best path or None)`` of each utterance, of a search (:func:`search_of`); where limits
    have left no path the search is exact."""
    graph, beam, most = search
    names, frames, _ = zip(*load(chunk, hmms))
    for name, scores in zip(names, log_likelihoods_of_many(scorer(hmms.pool, graph.states), list(frames))):
        yield name, scores, viterbi(graph, scores, beam, most) or viterbi(graph, scores)


def timed_decode(hmms: HmmSet, limits: Limits, confidence_scale: float, chunk) -> list[Aligned | None]:
    """What :func:`decode` finds with its times and confidences; None when no path fits an utterance's frames."""
    weighed = recognition_graph(weighed_grammar(hmms, confidence_scale))
    return [path and timed(hmms, name, path, confidences(weighed, scores, path.words, confidence_scale))
            for name, scores, path in best_paths(hmms, search_of(hmms, limits), chunk)]  # fmt: skip


def timed(hmms: HmmSet, name: str, path, sure: np.ndarray) -> Aligned:
    """A path with the names of its words and units, and how sure each word is [len(words)]."""
    words = tuple((hmms.words[s.index], s.start, s.end, float(c)) for s, c in zip(path.words, sure))
    units = tuple((hmms.units[s.index].name, s.start, s.end) for s in path.units)
    return Aligned(name, path.score, path.states.astype(np.int32), words, units)


def times_of(features: dict, done: list[Aligned], kind: str) -> list[TimedWord]:
    """Words or units (``kind``) of all utterances in seconds."""
    rows = []
    for utterance in done:
        at = boundary_times(features, len(utterance.states))
        for word, start, end, *sure in getattr(utterance, kind):
            rows.append(TimedWord(utterance.name, at[start], at[end] - at[start], word, *sure))
    return rows


def write_grid(path, features: dict, utterance: Aligned) -> None:
    """A TextGrid with tiers of words and units; what took no frames is left out, as an interval has a length."""
    at = boundary_times(features, len(utterance.states))
    tiers = {
        kind: [Interval(at[s], at[e], name) for name, s, e, *_ in getattr(utterance, kind) if e > s]
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


def alignments(hmms: HmmSet, confidence_scale: float, chunk) -> tuple[list[Aligned], list[tuple[str, str]]]:
    """Forced alignments of a chunk and ``(name, reason)`` of the utterances that have none.

    A word's confidence is its posterior, averaged over its frames, when everything the grammar allows competes; what
    the grammar adds is scaled as the frames are.
    """
    graph = recognition_graph(weighed_grammar(hmms, confidence_scale))
    compiled = scorer(hmms.pool, graph.states)
    done, dropped = [], []
    for name, x, words in load(chunk, hmms):
        try:
            forced = align_graph(hmms, words, graph.states)
            scores = log_likelihoods(compiled, x)
            path = align(forced, scores)
            sure = confidences(graph, scores, path.words, confidence_scale)
        except MargoError as error:
            dropped.append((name, str(error)))
            continue
        except MemoryError:
            dropped.append((name, NO_MEMORY.format(len(x))))
            continue
        done.append(timed(hmms, name, path, sure))
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

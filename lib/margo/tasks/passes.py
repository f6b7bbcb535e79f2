"""Passes over a chunk of a corpus that search with a fixed model: decoding, N-best, alignment.

Each is a function of a model and a chunk (:mod:`margo.tasks.speech`), to be given to the chunk map.
"""

from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from margo.errors import MargoError
from margo.estimate.pieces import NO_MEMORY
from margo.formats.ctm import TimedWord
from margo.formats.models import read_model
from margo.formats.reading import file_in
from margo.formats.textgrid import Interval, write_textgrid
from margo.gaussian.likelihood import log_likelihoods, log_likelihoods_of_many, scorer
from margo.model.grammar import recognition_graph, string_score, weighed_grammar
from margo.model.graph import align_graph
from margo.model.hmm import HmmSet
from margo.search.confidence import confidences
from margo.search.held import evidence, word_odds
from margo.search.nbest import nbest
from margo.search.viterbi import align, viterbi
from margo.signal.front_end import same_features
from margo.signal.times import boundary_times
from margo.tasks.speech import Speech, load


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


def decode(hmms: HmmSet, beam: float, chunk) -> list[tuple]:
    """``(name, recognised words or None, score, frames)`` of each utterance; None when no path fits its frames."""
    return [(name, path and path.word_names, path.score if path else -np.inf, len(scores))
            for name, _, scores, path in best_paths(hmms, recognition_graph(hmms), beam, chunk)]  # fmt: skip


def best_paths(hmms: HmmSet, graph, beam: float, chunk):
    """``(name, x [T, D], scores [T, S'], best path or None)`` of each utterance."""
    names, frames, _ = zip(*load(chunk, hmms))
    for name, x, scores in zip(names, frames, log_likelihoods_of_many(scorer(hmms.pool, graph.states), list(frames))):
        yield name, x, scores, viterbi(graph, scores, beam)


def timed_decode(hmms: HmmSet, beam: float, scale: float, belief, chunk) -> list[Aligned | None]:
    """What :func:`decode` finds with its times and its confidences (:func:`margo.tasks.recognising.confidence_of`);
    None when no path fits an utterance's frames."""
    graph, weighed, rows = recognition_graph(hmms), recognition_graph(weighed_grammar(hmms, scale)), []
    for name, x, scores, path in best_paths(hmms, graph, beam, chunk):
        if path is not None:
            odds = word_odds(evidence(graph, scores, path, x), belief)
            path = timed(hmms, name, path, odds * confidences(weighed, scores, path.words, scale))
        rows.append(path)
    return rows


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

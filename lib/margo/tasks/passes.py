"""Passes over a chunk of a corpus that search with a fixed model: decoding, N-best, alignment.

Each is a function of a model and a chunk (:mod:`margo.tasks.speech`), to be given to the chunk map.
"""

from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import numpy as np

from margo.errors import MargoError
from margo.estimate.pieces import NO_MEMORY
from margo.formats.models import read_model
from margo.formats.reading import file_in
from margo.gaussian.likelihood import log_likelihoods, log_likelihoods_of_many, scorer
from margo.model.grammar import recognition_graph, string_score, weighed_grammar
from margo.model.graph import align_graph
from margo.model.hmm import HmmSet
from margo.score.align import align as align_words
from margo.search.confidence import confidences
from margo.search.nbest import nbest
from margo.search.viterbi import align, viterbi
from margo.signal.front_end import same_features
from margo.signal.times import boundary_times
from margo.tasks.speech import Speech, load, total


@dataclass(frozen=True, eq=False)
class Aligned:
    """A forced alignment: pool state of each frame int32 [T]; words and units as (name, start, end, confidence)."""

    name: str
    score: float
    states: np.ndarray
    words: tuple
    units: tuple


def model_for(folder, speech: Speech) -> HmmSet:
    """The model in ``folder``, or file, once it is sure that ``speech`` has the features it was trained on."""
    hmms = read_model(file_in(folder, "model.npz"))
    same_features(hmms.meta["features"], speech.features, f"{speech.folder}: the features")
    return hmms


def decode(hmms: HmmSet, beam: float, chunk) -> list[tuple]:
    """``(name, recognised words or None, score, frames)`` of each utterance; None when no path fits its frames."""
    graph = recognition_graph(hmms)
    names, frames, _ = zip(*load(chunk, hmms))
    rows = []
    for name, scores in zip(names, log_likelihoods_of_many(scorer(hmms.pool, graph.states), list(frames))):
        path = viterbi(graph, scores, beam)
        rows.append((name, path and path.word_names, path.score if path else -np.inf, len(scores)))
    return rows


def count_errors(hmms: HmmSet, chunk) -> np.ndarray:
    """``[word errors, words, wrong strings, strings]`` of a chunk under the model's own grammar."""
    hypotheses = [words or () for _, words, _, _ in decode(hmms, np.inf, chunk)]
    errors = align_words([item.words for item in chunk], hypotheses).errors
    return np.array([errors.sum(), sum(len(item.words) for item in chunk), (errors > 0).sum(), len(chunk)])


def dev_errors(hmms: HmmSet, data: Speech, where) -> dict[str, int]:
    """Word and string errors on a development set."""
    errors, _, wrong, _ = total(partial(count_errors, hmms), data, where).tolist()
    return {"dev_errors": errors, "dev_wrong": wrong}


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
        done.append(
            Aligned(
                name,
                path.score,
                path.states.astype(np.int32),
                tuple((hmms.words[s.index], s.start, s.end, float(c)) for s, c in zip(path.words, sure)),
                tuple((hmms.units[s.index].name, s.start, s.end) for s in path.units),
            )
        )
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

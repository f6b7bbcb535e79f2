"""How far a model is to be believed, as held-out speech has it: what tells words from noise, and how surely it hears.

Words that were heard in dev are set against what is heard where nothing is said: hiss, rumble, gusts, hum, tones,
knocks and clicks, which are made here and go through the model's own front end.
"""

from dataclasses import replace
from functools import partial

import numpy as np

from margo.errors import MargoError
from margo.gaussian.likelihood import log_likelihoods, scorer
from margo.model.grammar import recognition_graph, weighed_grammar
from margo.model.hmm import HmmSet
from margo.runtime.parallel import map_chunks
from margo.score.align import align as align_words
from margo.search.confidence import confidences
from margo.search.held import LEAST, evidence, fitted, word_odds
from margo.search.viterbi import viterbi
from margo.signal.front_end import options_of
from margo.signal.mfcc import compute_features
from margo.tasks import speech
from margo.tasks.recognising import pause_graph, quiet_score

SCALES = (0.1, 0.05, 0.2, 0.025, 0.4)  # of equals the first
MOST, FEWEST = 200, 20  # utterances that are listened to; right words that it takes
ARCS = 400_000  # utterances times arcs of the graph, at most: large vocabularies have fewer utterances listened to
SECONDS, DRAWS = (0.3, 0.5, 0.8, 1.2, 2.0, 3.5), 2  # of noises, each length drawn as often
CLIP = 0.001  # confidences are taken to be this far from 0 and 1, lest one word decide


def noises(rate: int, seconds: float, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Sounds that nobody speaks, float32 [N] scaled as 16-bit integers."""
    size = int(rate * seconds)
    white, time = rng.standard_normal(size), np.arange(size) / rate
    falling = np.fft.rfft(rng.standard_normal(size)) / np.sqrt(np.fft.rfftfreq(size, 1 / rate) + 20)
    rumble, middle = np.cumsum(rng.standard_normal(size)), rng.uniform(0.2, 0.8) * seconds
    sounds = {
        "hiss": 1000 * white,
        "last bits": np.round(white),
        "falling": 1000 * np.fft.irfft(falling, size) * np.sqrt(1000),
        "rumble": 20 * (rumble - rumble.mean()),
        "hum": 1000 * np.sin(2 * np.pi * 50 * time) + white,
        "tone": 1000 * np.sin(2 * np.pi * rng.uniform(300, 0.4 * rate) * time) + white,
        "buzz": 800 * np.sign(np.sin(2 * np.pi * rng.uniform(90, 250) * time)) + white,
        "clicks": 8000 * (rng.random(size) < 0.001) + 3 * white,
        "gusts": 20 * (rumble - rumble.mean()) * (1 + 0.8 * np.sin(2 * np.pi * rng.uniform(0.3, 2) * time)),
        "sweep": 1000 * np.sin(2 * np.pi * (200 + rng.uniform(0.05, 0.2) * rate * time / seconds) * time) + white,
        "knocks": 6000 * np.exp(-40 * (time % rng.uniform(0.3, 0.8))) * np.sin(2 * np.pi * 120 * time) + 10 * white,
        "burst": 20 * white + 2000 * rng.standard_normal(size) * (abs(time - middle) < rng.uniform(0.03, 0.2)),
    }
    return {name: samples.astype(np.float32) for name, samples in sounds.items()}


def heard_in_noise(hmms: HmmSet, options, rate: int) -> np.ndarray:
    """Evidence [W, E] of all words, and not silence, that are heard in noises of several lengths."""
    graph, pause, rng, seen = recognition_graph(hmms), pause_graph(hmms), np.random.default_rng(0), []
    compiled, usual = scorer(hmms.pool, graph.states), hmms.pool.usual[graph.states]
    for seconds in SECONDS * DRAWS:
        for samples in noises(rate, seconds, rng).values():
            x = hmms.padded(compute_features(samples, rate, options))
            scores = log_likelihoods(compiled, x)
            path = viterbi(graph, scores)
            if path and path.score > quiet_score(graph, pause, scores):
                seen.append(evidence(graph, scores, path, x, usual))
    return np.concatenate([np.empty((0, len(LEAST))), *seen])


def heard_in_speech(hmms: HmmSet, chunk) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``(evidence [W, E], posterior by scale [W, scales], right? [W])`` of all words that are heard in a chunk."""
    graph = recognition_graph(hmms)
    weighed = [recognition_graph(weighed_grammar(hmms, scale)) for scale in SCALES]
    compiled, usual = scorer(hmms.pool, graph.states), hmms.pool.usual[graph.states]
    seen, posteriors, right = [np.empty((0, len(LEAST)))], [np.empty((0, len(SCALES)))], [np.empty(0, bool)]
    for _, x, words in speech.load(chunk, hmms):
        scores = log_likelihoods(compiled, x)
        path = viterbi(graph, scores)
        if path is None:
            continue
        seen.append(evidence(graph, scores, path, x, usual))
        by_scale = (confidences(each, scores, path.words, scale) for each, scale in zip(weighed, SCALES))
        posteriors.append(np.stack(list(by_scale), axis=1))
        pairs = align_words([words], [path.word_names]).pairs(0)
        right.append(np.array([said == heard for said, heard in pairs if heard is not None], bool))
    return np.concatenate(seen), np.concatenate(posteriors), np.concatenate(right)


def calibrated(hmms: HmmSet, parts: list[tuple], source: str, where) -> HmmSet:
    """The model with ``meta["confidence"]`` chosen on ``parts``, pairs of a model and the speech it has not seen.

    ``belief`` tells words from noise (:mod:`margo.search.held`); ``scale`` is that of acoustic scores under which
    confidences have the least cross-entropy with what was right. As it was, where features cannot be made of noise or
    there is too little speech.
    """
    try:
        options = options_of(hmms.meta.get("features", {}))
    except MargoError:  # made by others
        return hmms
    rate, rows = options.sample_rate, []
    if options.cmvn == "speaker" or not rate:
        return hmms
    most = max(FEWEST, min(MOST, ARCS // recognition_graph(hmms).n_arcs))
    every = -(-sum(len(data.items) for _, data in parts) // most)
    for model, data in parts:
        chunks = replace(data, items=data.items[::every]).chunks
        rows += map_chunks(partial(heard_in_speech, model), chunks, where)
    seen, posteriors, right = map(np.concatenate, zip(*rows))
    sounds = heard_in_noise(hmms, options, rate)
    if right.sum() < FEWEST or not len(sounds):
        return hmms
    belief = fitted(seen[right], sounds)
    sure = np.clip(posteriors * word_odds(seen, belief)[:, None], CLIP, 1 - CLIP)
    costs = -np.log(np.where(right[:, None], sure, 1 - sure)).mean(axis=0)
    best = int(np.argmin(costs.round(6)))
    chosen = {"scale": SCALES[best], "belief": [round(value, 6) for value in belief], "chosen_on": source,
              "words": len(right), "right": int(right.sum()), "entropy": round(float(costs[best]), 6)}  # fmt: skip
    return replace(hmms, meta={**hmms.meta, "confidence": chosen})

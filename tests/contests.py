"""Small random recognition tasks, and finite differences in the space in which HMMs are trained."""

from dataclasses import replace

import numpy as np

from margo.estimate.moves import moved
from margo.formats import datadir, features
from margo.formats.models import write_model
from margo.gaussian.likelihood import log_likelihoods, scorer
from margo.model.grammar import grammar
from margo.model.graph import align_graph
from margo.runtime import record
from margo.search.viterbi import viterbi
from oracles import random_hmms


def task(seed: int, kind: str, utterances: int = 6, words: int = 3, **how):
    """A model under a grammar of ``kind``, and utterances ``(name, x, words)`` near enough to it to be contested."""
    rng = np.random.default_rng(seed)
    hmms = random_hmms(rng, words=words, dimension=3, **how)
    table = grammar(kind, -0.7) if kind != "bigram" else grammar(kind, -0.3, random_bigram(rng, words), 0.8)
    hmms = replace(hmms, meta={"grammar": table})
    data = []
    for number in range(utterances):
        string = rng.integers(0, words, 1 if kind == "isolated" else int(rng.integers(1, 4))).tolist()
        while kind == "bigram" and (0, 1) in zip(string, string[1:]):  # which the bigram forbids
            string = rng.integers(0, words, 3).tolist()
        x = np.concatenate([spoken(hmms, hmms.words[word], rng) for word in string])
        data.append((f"utt{number}", x, tuple(hmms.words[word] for word in string)))
    return hmms, data


def spoken(hmms, word: str, rng) -> np.ndarray:
    pool, frames = hmms.pool, []
    for way in hmms.lexicon[word][:1]:
        for state in np.concatenate([hmms.units[hmms.unit_index[name]].states for name in way.units]):
            k = rng.integers(pool.offsets[state], pool.offsets[state + 1], 2)
            frames.append(pool.means[k] + 1.3 * np.sqrt(pool.variances[k]) * rng.normal(size=(2, pool.dimension)))
    return np.concatenate(frames)


def random_bigram(rng, words: int) -> np.ndarray:
    table = np.log(rng.dirichlet(np.ones(words + 1), words + 1))
    table[0, 1] = -np.inf
    return table


def string_scores(hmms, x, strings) -> np.ndarray:
    """Viterbi score of each string's own forced-alignment graph (transitions and frames)."""
    scores = []
    for string in strings:
        graph = align_graph(hmms, [hmms.words[word] for word in string])
        path = viterbi(graph, log_likelihoods(scorer(hmms.pool, graph.states, np.float64), x))
        scores.append(path.score if path else -np.inf)
    return np.array(scores)


def check_gradient(hmms, gradient: dict, value, rng, coordinates: int = 4, step: float = 1e-5, rtol: float = 1e-5):
    """``gradient`` by kind against central differences of ``value(hmms)`` at random coordinates, and on its whole."""
    for kind, slope in gradient.items():
        possible = np.flatnonzero(np.abs(slope).ravel() > 1e-3 * np.abs(slope).max())
        assert len(possible), f"no gradient of {kind}"
        chosen = rng.choice(possible, min(coordinates, len(possible)), replace=False)
        directions = [np.eye(1, slope.size, place)[0].reshape(slope.shape) for place in chosen]
        directions.append(np.where(slope != 0, rng.normal(size=slope.shape), 0.0))
        for direction in directions:
            there, back = (value(moved(hmms, {kind: sign * step * direction})) for sign in (1, -1))
            expected = (slope * direction).sum()
            np.testing.assert_allclose((there - back) / (2 * step), expected, rtol=rtol, atol=1e-9, err_msg=kind)


def feature_folders(place, blur=0.5, train=130, longest=3):
    """Feature folders train and dev in ``place``, and a model ml, as the steps before would have left them."""
    hmms, _ = task(3, "loop" if longest > 1 else "isolated", utterances=1)
    rng = np.random.default_rng(4)
    for name, count in (("train", train), ("dev", 60)):
        folder, rows, matrices = place / name, [], []
        folder.mkdir()
        for number in range(count):
            words = [hmms.words[word] for word in rng.integers(0, 3, rng.integers(1, longest + 1))]
            matrices.append((f"{name}{number:03d}", np.concatenate([spoken(hmms, word, rng) for word in words])))
            rows.append(datadir.Utterance(f"{name}{number:03d}", f"{name}{number:03d}", tuple(words)))
        offsets = features.write_ark(folder / "feats.ark", folder / "feats.scp", matrices)
        rows = [replace(row, feats=f"feats.ark:{offsets[row.name]}") for row in rows]
        datadir.write(folder, rows)
        record.write(folder, "make_mfcc", [], None, {}, ["feats.scp", "text"], 0.0, {})
    blurred = replace(hmms.pool, means=hmms.pool.means + blur * rng.normal(size=hmms.pool.means.shape))
    meta = {**hmms.meta, "features": {"variant": "given", "dimension": 3}}
    write_model(place / "ml" / "model.npz", replace(hmms, pool=blurred, meta=meta))
    record.write(place / "ml", "train_ml", [], None, {}, ["model.npz"], 0.0, {})
    return place

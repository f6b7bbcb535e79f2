"""Recognition with 5,000 words: the pruned search in a tree of words beside the exact search of the flat graph.

Everything is made up: 40 phones of 3 states with 8 Gaussians of 39 dimensions, words of 2 to 9 phones, sentences of
words by Zipf's law with a taste for some pairs, a Kneser-Ney bigram of 20,000 of them, and frames drawn from the model.
CPU seconds of one thread, after compilation, in a process of its own, whose peak of memory is given.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from scale import peak

PHONES, WORDS, STATES, MIXTURES, DIMENSION = 40, 5000, 3, 8, 39
SENTENCES, SPOKEN = 20_000, 8
BEAM, ACTIVE = 120.0, 3000
SCALE, PENALTY = 8.0, 0.0
SPREAD = 0.4  # of the phones' means, in standard deviations of the frames


def timed(function):
    """``(result, CPU seconds)``."""
    started = time.process_time()
    result = function()
    return result, time.process_time() - started


def lexicon(rng: np.random.Generator) -> dict:
    """Words of random phones, common phones more often, no two the same."""
    likely = rng.dirichlet(np.full(PHONES, 2.0))
    said: set = set()
    while len(said) < WORDS:
        said.add(tuple(f"p{phone}" for phone in rng.choice(PHONES, rng.integers(2, 10), p=likely)))
    return {f"word{number}": units for number, units in enumerate(sorted(said))}


def sentences(rng: np.random.Generator, words: list[str], count: int) -> list[tuple[str, ...]]:
    """Words by Zipf's law, half of them one of the eight that a word has a taste for."""
    chances = 1 / np.arange(2, len(words) + 2)
    chances /= chances.sum()
    tastes = rng.choice(len(words), (len(words), 8), p=chances)
    rows = []
    for length in rng.integers(3, 15, count):
        row = [int(rng.choice(len(words), p=chances))]
        for draw, taste in zip(rng.random(length - 1), rng.integers(0, 8, length - 1)):
            row.append(int(tastes[row[-1], taste] if draw < 0.5 else rng.choice(len(words), p=chances)))
        rows.append(tuple(words[word] for word in row))
    return rows


def model(rng: np.random.Generator):
    """The phones' HMMs with a bigram, and sentences to say that it was not made of."""
    from dataclasses import replace

    from margo.gaussian.pool import GaussianPool
    from margo.model.grammar import ngram_grammar, with_weights
    from margo.model.hmm import HmmSet, flat_start
    from margo.model.ngram import kneser_ney

    hmms = flat_start(lexicon(rng), STATES, np.zeros(DIMENSION), np.ones(DIMENSION), "sil")
    states = hmms.pool.n_states
    centres = np.repeat(SPREAD * rng.normal(size=(states, DIMENSION)), MIXTURES, axis=0)
    means = centres + 0.5 * rng.normal(size=centres.shape)
    pool = GaussianPool(means, np.ones(means.shape), np.full(len(means), -np.log(MIXTURES)),
                        np.arange(states + 1) * MIXTURES)  # fmt: skip
    strings = sentences(rng, [*hmms.words], SENTENCES + SPOKEN)
    grammar = ngram_grammar(kneser_ney(strings[:SENTENCES], hmms.words, 2), hmms.words)
    hmms = HmmSet(pool, hmms.units, hmms.lexicon, "sil", meta={"grammar": grammar})
    return with_weights(replace(hmms), scale=SCALE, insertion_penalty=PENALTY), strings[SENTENCES:]


def say(hmms, words, rng: np.random.Generator) -> np.ndarray:
    """Frames [T, D] of a sentence, about seven a phone."""
    names = ["sil", *(name for word in words for name in hmms.lexicon[word][0].units), "sil"]
    states = np.concatenate([hmms.units[hmms.unit_index[name]].states for name in names])
    path = np.repeat(states, 1 + rng.poisson(1.4, len(states)))
    gaussians = hmms.pool.offsets[path] + rng.integers(0, MIXTURES, len(path))
    return (hmms.pool.means[gaussians] + rng.normal(size=(len(path), DIMENSION))).astype(np.float32)


def entries():
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    command = [sys.executable, str(Path(__file__).resolve())]
    done = subprocess.run(command, env=os.environ | threads, stdout=subprocess.PIPE, text=True, check=True)
    yield from map(json.loads, done.stdout.splitlines())


def measured():
    from margo.gaussian.likelihood import log_likelihoods, scorer
    from margo.model.grammar import recognition_graph, search_graph
    from margo.search.viterbi import viterbi

    rng = np.random.default_rng(0)
    hmms, strings = model(rng)
    spoken = [say(hmms, words, rng) for words in strings]
    hmms.automaton  # noqa: B018 both graphs are made of these
    search_graph(hmms)  # compiles
    tree, built = timed(lambda: search_graph(hmms))
    flat, built_flat = timed(lambda: recognition_graph(hmms))
    seconds = sum(len(x) for x in spoken) / 100
    compiled = scorer(hmms.pool, tree.states)
    viterbi(tree, log_likelihoods(compiled, spoken[0][:50]), BEAM, ACTIVE)
    viterbi(flat, log_likelihoods(compiled, spoken[0][:50]))
    paths, ours = timed(lambda: [viterbi(tree, log_likelihoods(compiled, x), BEAM, ACTIVE) for x in spoken])
    memory = peak()
    exact, peer = timed(lambda: [viterbi(flat, log_likelihoods(compiled, x)) for x in spoken])
    same = [one is not None and one.word_names == other.word_names for one, other in zip(paths, exact)]
    right = [other.word_names == words for other, words in zip(exact, strings)]
    yield {"name": f"search of {WORDS} words with a bigram, {seconds:.0f} s of made-up speech", "ours_seconds": ours,
           "peer": "exact search of the flat graph", "peer_seconds": peer, "ratio": peer / ours,
           "times_real_time": round(seconds / ours, 1), "same_sentences": f"{sum(same)} of {len(same)}",
           "right_sentences": f"{sum(right)} of {len(right)}", "emitting_nodes": tree.n_emitting,
           "emitting_nodes_flat": flat.n_emitting, "arcs": tree.n_arcs,
           "peak_megabytes": round(memory)}  # fmt: skip
    yield {"name": f"making the graph of {WORDS} words in a tree", "ours_seconds": built, "peer": "the flat graph",
           "peer_seconds": built_flat, "ratio": built_flat / built}  # fmt: skip


if __name__ == "__main__":
    for each in measured():
        print(json.dumps(each))

"""One iteration of MMI beside one of maximum likelihood, and one of MCE beside one decoding pass, on the same data.

Here the peer is margo's own cheaper pass, so ``ratio`` (the peer's seconds over ours) is 1 over what the criterion
costs: 1/3 or more is the aim. Data are drawn from the model itself (connected digits: 11 words of 12 states, silence;
isolated: 9 words of 16 states), CPU seconds of one process, compilation excluded. MCE's iteration is the mean of a
whole cycle: one search for competitors and the iterations up to the next.
"""

import operator
import time
from dataclasses import replace
from functools import reduce

import numpy as np

from margo.estimate import ml, mmi
from margo.estimate.mce import Mce, MceOptions
from margo.estimate.paths import find_paths, searcher, slots
from margo.gaussian.likelihood import log_likelihoods, scorer
from margo.gaussian.pool import GaussianPool
from margo.model.grammar import grammar, recognition_graph
from margo.model.hmm import flat_start, whole_words
from margo.search.viterbi import viterbi
from margo.tasks.speech import CHUNK

DIMENSION = 39
REPEATS = 3


def entries():
    for kind, words, states in (("loop", 11, 12), ("isolated", 9, 16)):
        for mixtures in (1, 4):
            hmms = model(kind, words, states, mixtures)
            data = utterances(hmms, 200 if kind == "loop" else 600)
            name = f"{'connected' if kind == 'loop' else 'isolated'} words, {mixtures} mixtures"
            ours, peer = seconds(lambda: iteration(mmi, hmms, data), lambda: iteration(ml, hmms, data))  # noqa: B023
            yield entry(f"MMI iteration, {name}", ours, "ML iteration", peer)
            ours, peer = seconds(lambda: mce_cycle(hmms, data), lambda: decode(hmms, data))  # noqa: B023
            yield entry(f"MCE iteration, {name}", ours / MceOptions().refresh, "decoding pass", peer)


def entry(name: str, ours: float, peer: str, theirs: float) -> dict:
    return {"name": name, "ours_seconds": round(ours, 4), "peer": peer, "peer_seconds": round(theirs, 4),
            "ratio": round(theirs / ours, 3)}  # fmt: skip


def seconds(*functions) -> list[float]:
    """CPU seconds of each function, the least of a few turns taken in alternation."""
    for function in functions:
        function()
    turns = []
    for _ in range(REPEATS):
        turns.append([])
        for function in functions:
            began = time.process_time()
            function()
            turns[-1].append(time.process_time() - began)
    return np.min(turns, axis=0).tolist()


def model(kind: str, words: int, states: int, mixtures: int):
    rng = np.random.default_rng(1)
    names = [f"w{number}" for number in range(words)]
    hmms = flat_start(whole_words(names), states, np.zeros(DIMENSION), np.ones(DIMENSION), silence="sil", stay=0.5)
    count = hmms.pool.n_states * mixtures
    centres = np.repeat(rng.normal(0, 0.5, (hmms.pool.n_states, DIMENSION)), mixtures, axis=0)
    pool = GaussianPool(
        centres + rng.normal(0, 0.4, (count, DIMENSION)), rng.uniform(0.5, 1.5, (count, DIMENSION)),
        np.full(count, -np.log(mixtures)), np.arange(0, count + 1, mixtures),
    )  # fmt: skip
    return replace(hmms, pool=pool, meta={"grammar": grammar(kind)})


def utterances(hmms, count: int) -> list[tuple]:
    rng = np.random.default_rng(2)
    pool, drawn = hmms.pool, []
    for number in range(count):
        length = 1 if hmms.meta["grammar"]["kind"] == "isolated" else int(rng.integers(1, 8))
        words = [hmms.words[index] for index in rng.integers(0, len(hmms.words), length)]
        states = np.concatenate([hmms.units[hmms.unit_index[name]].states for name in ["sil", *words, "sil"]])
        states = np.repeat(states, rng.geometric(0.5, len(states)))
        gaussians = rng.integers(pool.offsets[states], pool.offsets[states + 1])
        x = pool.means[gaussians] + 2 * np.sqrt(pool.variances[gaussians]) * rng.normal(size=(len(states), DIMENSION))
        drawn.append((f"utt{number}", x.astype(np.float32), tuple(words)))
    return drawn


def iteration(criterion, hmms, data):
    """One iteration in chunks of utterances, as the steps go through a corpus."""
    parts = (criterion.accumulate(hmms, data[first : first + CHUNK]) for first in range(0, len(data), CHUNK))
    return criterion.update(hmms, reduce(operator.add, parts))


def mce_cycle(hmms, data):
    criterion = Mce(MceOptions())
    paths = find_paths(searcher(hmms), data, criterion.options.competitors)
    places, memory = slots(paths), criterion.begin(hmms)
    for _ in range(criterion.options.refresh):
        stats = criterion.weigh(1.0, hmms, paths.frames(data), paths, places)
        hmms, memory, _ = criterion.update(hmms, stats, memory)
    return hmms


def decode(hmms, data):
    graph = recognition_graph(hmms)
    compiled = scorer(hmms.pool, graph.states)
    return [viterbi(graph, log_likelihoods(compiled, x)) for _, x, _ in data]

"""The HMM engine beside scikit-learn's and hmmlearn's EM, N-best beside 1-best, a long corpus beside a short one.

The task is the Free Spoken Digit Dataset's official split (2700 recordings to train on, 300 to recognise, 39
dimensions, 10 words x 12 states x 8 mixtures) where MARGO_CORPORA names a folder that holds it, else random data of
the same shapes. CPU seconds of one thread, after compilation.
"""

import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np

from margo.runtime.record import own_peak

WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
STATES, MIXTURES, DIMENSION = 12, 8, 39
FRAMES_A_MINUTE = 6000


def fastest(function, repeats: int) -> float:
    """CPU seconds of the best of some runs."""
    best = np.inf
    for _ in range(repeats):
        started = time.process_time()
        function()
        best = min(best, time.process_time() - started)
    return best


def digits() -> tuple[list, list, str]:
    """(train, test, what it is), utterances as (name, x [T, 39], words)."""
    folder = Path(os.environ.get("MARGO_CORPORA", "")) / "fsdd" / "recordings"
    if not (os.environ.get("MARGO_CORPORA") and folder.is_dir()):
        return (*random_digits(), "random data in FSDD's shapes")
    import soundfile

    from margo.signal.front_end import MfccOptions
    from margo.signal.mfcc import compute_features

    train, test = [], []
    for path in sorted(folder.glob("*.wav")):
        digit, _, index = path.stem.split("_")
        samples, rate = soundfile.read(path, dtype="int16")
        x = compute_features(samples.astype(np.float32), rate, MfccOptions())
        (test if int(index) < 5 else train).append((path.stem, x, [WORDS[int(digit)]]))
    return train, test, "FSDD"


def random_digits() -> tuple[list, list]:
    """2700 and 300 utterances of about 42 frames that move through twelve places of their own digit."""
    rng = np.random.default_rng(0)
    places = 3 * rng.normal(size=(10, STATES, DIMENSION))
    utterances = []
    for i in range(3000):
        length = int(rng.integers(24, 60))
        means = places[i % 10][np.arange(length) * STATES // length]
        utterances.append((str(i), (means + 2 * rng.normal(size=means.shape)).astype(np.float32), [WORDS[i % 10]]))
    return utterances[:2700], utterances[2700:]


def train_start(train: list, mixtures: int):
    from margo.estimate.ml import accumulate, update
    from margo.estimate.start import moments
    from margo.gaussian.splitting import split
    from margo.model.hmm import flat_start, whole_words

    whole = moments((x for _, x, _ in train), DIMENSION)
    hmms = flat_start(whole_words(WORDS), STATES, whole.mean, whole.variance, variance_floor=0.01 * whole.variance)
    for number in (1, 1, 1, mixtures):
        grown = hmms.with_pool(split(hmms.pool, number))
        hmms, _ = update(grown, accumulate(grown, train))
    return hmms


def sklearn_iteration() -> float:
    """CPU seconds of one EM iteration of GaussianMixture, 200,000 x 39 float32, 64 diagonal components."""
    from sklearn.mixture import GaussianMixture

    x = np.random.default_rng(0).standard_normal((200_000, DIMENSION)).astype(np.float32)
    peer = GaussianMixture(64, covariance_type="diag", max_iter=1, init_params="random_from_data", random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one iteration does not converge
        peer.fit(x[:5000])

    def iteration():
        _, log_posteriors = peer._e_step(x)
        peer._m_step(x, log_posteriors)

    return fastest(iteration, 5)


def hmmlearn_iteration(hmms, members: list, word: int) -> float:
    """CPU seconds of one EM iteration of GMMHMM over one word's recordings, from the same parameters."""
    from hmmlearn.hmm import GMMHMM

    unit = hmms.units[word]
    rows = np.concatenate([np.arange(hmms.pool.offsets[s], hmms.pool.offsets[s + 1]) for s in unit.states])
    shape = (STATES, MIXTURES, DIMENSION)
    peer = GMMHMM(STATES, MIXTURES, covariance_type="diag", n_iter=1, init_params="", params="tmcw")
    a = np.exp(unit.log_transitions)[1:-1, 1:-1]
    peer.startprob_, peer.transmat_ = np.eye(STATES)[0], a / a.sum(axis=1, keepdims=True)
    peer.weights_ = np.exp(hmms.pool.log_weights[rows]).reshape(shape[:2])
    peer.means_, peer.covars_ = hmms.pool.means[rows].reshape(shape), hmms.pool.variances[rows].reshape(shape)
    x, lengths = np.concatenate([x for _, x, _ in members]), [len(x) for _, x, _ in members]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fastest(lambda: peer.fit(x, lengths), 1)


def entry(name: str, ours: float, peer: str, theirs: float, **more) -> dict:
    return {"name": name, "ours_seconds": ours, "peer": peer, "peer_seconds": theirs, "ratio": theirs / ours, **more}


def entries() -> list[dict]:
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        train, test, what = digits()
        hmms = train_start(train, MIXTURES)
        return [*speed(hmms, train, test, what), *nbest_cost(train, test, hmms, what), string_scores(), scaling_apart()]


def speed(hmms, train: list, test: list, what: str) -> list[dict]:
    from margo.estimate.ml import accumulate, update
    from margo.gaussian.likelihood import log_likelihoods_of_many, scorer
    from margo.model.graph import isolated_graph
    from margo.search.viterbi import viterbi

    frames = [x for _, x, _ in test]

    def decode():
        graph = isolated_graph(hmms)
        compiled = scorer(hmms.pool, graph.states)
        return [viterbi(graph, scores) for scores in log_likelihoods_of_many(compiled, frames)]

    decode()
    pass_seconds = fastest(lambda: update(hmms, accumulate(hmms, train)), 5)
    decode_seconds = fastest(decode, 7)
    sklearn = sklearn_iteration()
    members = [utterance for utterance in train if utterance[2] == [WORDS[0]]]
    word_seconds = fastest(lambda: update(hmms, accumulate(hmms, members)), 5)
    peer = "scikit-learn GaussianMixture, one EM iteration on 200,000 x 39"
    return [
        entry(f"Baum-Welch pass, 8 mixtures, {len(train)} recordings ({what})", pass_seconds, peer, sklearn),
        entry(f"Viterbi without beam, 8 mixtures, {len(test)} recordings ({what})", decode_seconds, peer, sklearn),
        entry(f"Baum-Welch pass, one word, {len(members)} recordings ({what})", word_seconds,
              "hmmlearn GMMHMM, one EM iteration", hmmlearn_iteration(hmms, members, 0)),
    ]  # fmt: skip


def nbest_cost(train: list, test: list, hmms, what: str) -> list[dict]:
    """5-best beside 1-best on a digit loop, likelihoods included, strings of five recordings."""
    from margo.gaussian.likelihood import log_likelihoods, scorer
    from margo.model.graph import loop_graph
    from margo.search.nbest import nbest
    from margo.search.viterbi import viterbi

    strings = [np.concatenate([x for _, x, _ in test[i : i + 5]]) for i in range(0, len(test), 5)]
    found = []
    for model, mixtures in ((train_start(train, 1), 1), (hmms, MIXTURES)):
        graph = loop_graph(model, -50.0)
        compiled = scorer(model.pool, graph.states)

        def run(search, graph=graph, compiled=compiled):
            for x in strings:
                search(graph, log_likelihoods(compiled, x))

        run(nbest)
        one, five = fastest(lambda run=run: run(viterbi), 5), fastest(lambda run=run: run(nbest), 5)
        found.append(entry(f"5-best strings of a digit loop, mixtures={mixtures} ({what})", five, "margo, 1-best", one))
    return found


def string_scores() -> dict:
    """What a bigram of 300 words says of 2000 strings, beside a look into a dictionary for each pair of words."""
    from margo.model.grammar import grammar, string_score
    from margo.model.hmm import flat_start, whole_words

    rng, size = np.random.default_rng(0), 300
    words = [f"w{number}" for number in range(size)]
    table = np.log(rng.dirichlet(np.ones(size + 1), size + 1))
    meta = {"grammar": grammar("bigram", -2.0, table, 3.0)}
    hmms = flat_start(whole_words(words), 1, np.zeros(1), np.ones(1), meta=meta)
    strings = [[words[i] for i in rng.integers(0, size, 6)] for _ in range(2000)]
    marked = [*words, "#"]
    pairs = {(v, w): table[i, j] for i, v in enumerate(marked) for j, w in enumerate(marked)}

    def looked_up():
        return [3.0 * sum(pairs[pair] for pair in zip(["#", *string], [*string, "#"])) - 2.0 * len(string)
                for string in strings]  # fmt: skip

    def ours():
        return [string_score(hmms, string) for string in strings]

    np.testing.assert_allclose(ours(), looked_up())
    return entry("Scores of 2000 strings under a bigram of 300 words", fastest(ours, 5), "a dictionary of pairs",
                 fastest(looked_up, 5))  # fmt: skip


def scaling_apart() -> dict:
    """:func:`scaling` in a process of its own, so that its peak of memory is its own."""
    command = [sys.executable, str(Path(__file__).resolve()), "scaling"]
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return json.loads(subprocess.run(command, env=os.environ | threads, stdout=subprocess.PIPE, text=True,
                                     check=True).stdout)  # fmt: skip


def scaling() -> dict:
    """Seconds for 1000 minutes of speech beside a hundred times those for 10; peak memory of both in megabytes."""
    from margo.estimate.ml import accumulate
    from margo.estimate.stats import Stats

    train, _, what = digits()
    hmms, chunk, frames = train_start(train, MIXTURES), [], 0
    for utterance in train:
        if frames < FRAMES_A_MINUTE:
            chunk.append(utterance)
            frames += len(utterance[1])

    def run(minutes: int) -> float:
        started, stats = time.process_time(), Stats.zeros(hmms)
        while stats.frames < minutes * FRAMES_A_MINUTE:
            stats = stats + accumulate(hmms, chunk)
        return (time.process_time() - started) / stats.frames

    short = [run(10) for _ in range(3)]
    before = own_peak()
    long = run(1000)
    after = own_peak()
    short += [run(10) for _ in range(3)]
    frames = 1000 * FRAMES_A_MINUTE
    memory = {"10 minutes": before, "1000 minutes": after}
    return entry(
        f"Baum-Welch over 1000 minutes of speech ({what}, the same minute again and again)",
        long * frames,
        "margo, 100 times 10 minutes",
        float(np.mean(short)) * frames,
        peak_megabytes=memory,
    )


if __name__ == "__main__":
    print(json.dumps(scaling()) if sys.argv[1:] == ["scaling"] else json.dumps(entries(), indent=1))

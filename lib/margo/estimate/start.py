"""Where training starts: the data's own moments (flat start), or segments clustered by k-means.

A flat start needs :func:`moments` and :func:`margo.model.hmm.flat_start`, and Baum-Welch does the rest.
:func:`segmental_kmeans` instead cuts every utterance evenly over the states of its words, clusters each state's frames,
and repeats with the Viterbi segments of the model so made.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from margo.errors import MargoError
from margo.estimate.ml import unusable
from margo.gaussian.likelihood import log_likelihoods, scorer
from margo.gaussian.pool import GaussianPool
from margo.model.graph import align_graph
from margo.model.hmm import HmmSet
from margo.search.viterbi import viterbi

MAX_FRAMES = 5000  # of one state that are clustered; more add time, not knowledge


@dataclass(frozen=True, eq=False)
class Moments:
    """frames, mean [D] and scatter [D] (summed squared deviations) of data; additive."""

    frames: int
    mean: np.ndarray
    scatter: np.ndarray

    @property
    def variance(self) -> np.ndarray:
        return self.scatter / max(self.frames, 1)

    def __add__(self, other: "Moments") -> "Moments":
        frames = self.frames + other.frames
        if frames == 0:
            return self
        gap = other.mean - self.mean
        return Moments(
            frames,
            self.mean + gap * (other.frames / frames),
            self.scatter + other.scatter + gap**2 * (self.frames * other.frames / frames),
        )


def moments(frames: Iterable[np.ndarray], dimension: int) -> Moments:
    """Moments of the utterances x [T, D] in ``frames``; those with a value that is not finite are left out."""
    total = Moments(0, np.zeros(dimension), np.zeros(dimension))
    for x in frames:
        x = np.asarray(x, np.float64)
        if len(x) and np.isfinite(x).all():
            total = total + Moments(len(x), x.mean(axis=0), x.var(axis=0) * len(x))
    return total


def uniform_states(hmms: HmmSet, words, frames: int) -> np.ndarray:
    """Pool state of each frame, int [T], when ``frames`` frames are cut evenly over the states of ``words``.

    Silence, where the set has it, takes its states' share at both ends. Too few frames for the words are an error.
    """
    hmms.check_words(words)
    chain = [hmms.units[hmms.unit_index[name]].states for word in words for name in hmms.lexicon[word]]
    if hmms.silence is not None:
        silence = hmms.units[hmms.unit_index[hmms.silence]].states
        if frames >= sum(map(len, chain)) + 2 * len(silence):
            chain = [silence, *chain, silence]
    states = np.concatenate(chain)
    if frames < len(states):
        raise MargoError(f"{frames} frames for {len(states)} states")
    return states[np.arange(frames) * len(states) // frames]


def segmental_kmeans(
    hmms: HmmSet, utterances: list[tuple], mixtures: int, rng: np.random.Generator, passes: int = 10
) -> tuple[HmmSet, tuple[tuple[str, str], ...]]:
    """A pool made anew from clustered segments: first even ones, then ``passes`` times Viterbi's.

    Transitions stay as they are. A state gets fewer components where it has fewer than two frames for each, and keeps
    its Gaussians where it has none. Returns the model and what was dropped as (utterance, reason).
    """
    usable, dropped = [], []
    for name, x, words in utterances:
        reason = unusable(hmms, x, words)
        if not reason:
            try:
                usable.append((x, tuple(words), uniform_states(hmms, words, len(x))))
            except MargoError as error:
                reason = str(error)
        if reason:
            dropped.append((name, reason))
    if not usable:
        raise MargoError("no usable utterance: " + "; ".join(sorted({reason for _, reason in dropped})[:5]))
    frames = np.concatenate([x for x, _, _ in usable])
    states = np.concatenate([segment for _, _, segment in usable])
    for remaining in range(passes, -1, -1):
        hmms = hmms.with_pool(_cluster(hmms, frames, states, mixtures, rng))
        if remaining:
            states = np.concatenate(_viterbi_states(hmms, usable))
    return hmms, tuple(dropped)


def _viterbi_states(hmms: HmmSet, usable: list[tuple]) -> list[np.ndarray]:
    graphs = {words: align_graph(hmms, words) for words in dict.fromkeys(words for _, words, _ in usable)}
    scorers = {words: scorer(hmms.pool, graph.states) for words, graph in graphs.items()}
    return [viterbi(graphs[words], log_likelihoods(scorers[words], x)).states for x, words, _ in usable]


def _cluster(hmms: HmmSet, frames: np.ndarray, states: np.ndarray, mixtures: int, rng) -> GaussianPool:
    pool = hmms.pool
    floor = hmms.variance_floor if hmms.variance_floor is not None else 1e-4 * frames.var(axis=0) + 1e-12
    order = np.argsort(states, kind="stable")
    bounds = np.searchsorted(states[order], np.arange(pool.n_states + 1))
    parts = []
    for state in range(pool.n_states):
        own = order[bounds[state] : bounds[state + 1]]
        if len(own) == 0:
            keep = slice(pool.offsets[state], pool.offsets[state + 1])
            parts.append((pool.means[keep], pool.variances[keep], np.exp(pool.log_weights[keep])))
            continue
        if len(own) > MAX_FRAMES:
            own = rng.choice(own, MAX_FRAMES, replace=False)
        parts.append(_gaussians(frames[own].astype(np.float64), mixtures, floor, rng))
    offsets = np.concatenate([[0], np.cumsum([len(part[2]) for part in parts])])
    means, variances, weights = (np.concatenate(column) for column in zip(*parts))
    with np.errstate(divide="ignore"):
        return GaussianPool(means, variances, np.log(weights), offsets)


def _gaussians(x: np.ndarray, mixtures: int, floor: np.ndarray, rng) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means, variances and weights of the clusters of x [T, D], scaled to unit variance for the distances."""
    from scipy.cluster.vq import kmeans2

    wanted = max(1, min(mixtures, len(x) // 2))
    labels = np.zeros(len(x), np.int64)
    if wanted > 1:
        _, labels = kmeans2(x / np.sqrt(np.maximum(x.var(axis=0), floor)), wanted, minit="++", seed=rng, missing="warn")
    members = [x[labels == cluster] for cluster in np.unique(labels)]
    means = np.array([part.mean(axis=0) for part in members])
    variances = np.array([np.maximum(part.var(axis=0), floor) for part in members])
    return means, variances, np.array([len(part) for part in members]) / len(x)

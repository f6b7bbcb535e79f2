"""Words against sounds that are none: hum, hiss, clicks, which some string of words must always fit best."""

import numpy as np

from margo.model.graph import Graph
from margo.search.viterbi import Path

LEAST = np.array([-60.0, -5.0, -40.0, -1.0, -60.0])  # less tells no more
FLOWING = 0.6  # von Neumann's ratio of words, at most; that of noise is 2, less what neighbouring windows share
RIDGE = 1e-4
STRANGER = 1.5  # of people whom dev has not heard, words may fit so many times less well than those in dev
# Of models that were not calibrated: dwells alone, against a prior of e^-40. Of 5283 words (4940 of them synthetic) the
# least likely dwell had -36; a minute of noise has -800 or less.
BELIEF = (40.0, 1.0)
SPEECH = 0.85  # probability that somebody speaks, before anything is heard


def evidence(graph: Graph, log_likelihoods: np.ndarray, path: Path, x: np.ndarray, usual: np.ndarray) -> np.ndarray:
    """Of each word of a path through features x [T, D] ``[dwell, rest, fit, flow, kind]``, all 0 at best, [W, 5].

    dwell: log probability of its least likely dwell in a state, ``(d - 1) log a`` where the state is kept with
    probability a; a held sound stays in the one state that fits it. rest: log of the share of frames in all other
    states than the longest. fit: log-likelihood of the state's frames, less that of whichever state of the model fits
    each best, as a mean over the frames of a state and then over the states: those that a held sound only hurries
    through count as much as the one that it stays in. flow: how much less smoothly than speech its frames follow each
    other (:func:`unrest`); noise leaps about, whatever its colour. kind: log-likelihood of the frames, less what is
    ``usual`` [S'] of the state (:attr:`margo.gaussian.pool.GaussianPool.usual`), as a mean like that of fit: a knock
    may fit one state far better than all others, and still be like nothing that the state has seen.
    """
    arcs = graph.arcs
    columns = arcs.column[path.nodes]
    own = log_likelihoods[np.arange(len(columns)), columns]
    behind = np.stack([own - log_likelihoods.max(axis=1), own - usual[columns]])
    stay = np.where(arcs.stay_arc >= 0, arcs.log_prob[arcs.stay_arc], 0.0)[path.nodes]
    rows = []
    for word in path.words:
        starts = np.flatnonzero(np.diff(path.nodes[word.start : word.end], prepend=-1))
        if len(starts) == 0:  # a word without frames
            rows.append(LEAST)
            continue
        dwells = np.diff(starts, append=word.end - word.start)
        fit, kind = (np.add.reduceat(behind[:, word.start : word.end], starts, axis=1) / dwells).mean(axis=1)
        rest = np.log(max(1 - dwells.max() / dwells.sum(), 1e-9))
        flow = min(0.0, np.log(FLOWING / unrest(x[word.start : word.end])))
        rows.append([((dwells - 1) * stay[word.start + starts]).min(), rest, fit, flow, min(0.0, kind)])
    return np.maximum(np.reshape(rows, (-1, len(LEAST))), LEAST)


def unrest(x: np.ndarray) -> float:
    """Von Neumann's ratio of frames [T, D]: mean square of their steps over that of their distances from the mean. 2 of
    independent frames, little of those that move slowly; neither offsets nor gains change it."""
    steps = np.square(np.diff(x, axis=0)).sum() / max(len(x) - 1, 1)
    spread = np.square(x - x.mean(axis=0)).sum() / len(x)
    return max(steps / max(spread, 1e-9), 1e-3)


def word_odds(seen: np.ndarray, belief) -> np.ndarray:
    """Probability [W] that each word is one, of its evidence [W, 5]: ``1 / (1 + exp(-(b + u . seen)))``, of the
    ``belief`` ``(b, *u)``; evidence that it has no factor for counts nothing."""
    factors = np.asarray(belief[1:])
    return 1 / (1 + np.exp(-np.clip(belief[0] + seen[:, : len(factors)] @ factors, -500, 500)))


def fitted(words: np.ndarray, sounds: np.ndarray) -> tuple[float, ...]:
    """The belief under which words [N, 5] and sounds [M, 5] are likeliest to be what they are.

    ``u >= 0``: a better fit never makes a word less one. The words together count as much as ``SPEECH`` says. Each
    stands twice, once as a ``STRANGER`` would say it: dev may have but one speaker, and all it has may be told from
    noise by a boundary that lies close to it.
    """
    from scipy.optimize import minimize  # takes long to import, and only dev's choice needs it

    words = np.concatenate([words, np.maximum(STRANGER * words, LEAST[: words.shape[1]])])
    x = np.concatenate([words, sounds])
    signs = np.repeat([1.0, -1.0], [len(words), len(sounds)])
    shares = np.repeat([SPEECH / len(words), (1 - SPEECH) / len(sounds)], [len(words), len(sounds)])

    def loss(belief):
        margins = signs * (belief[0] + x @ belief[1:])
        slopes = -signs * shares / (1 + np.exp(np.clip(margins, -500, 500)))
        value = shares @ np.logaddexp(0, -margins) + RIDGE * belief[1:] @ belief[1:]
        return value, np.concatenate([[slopes.sum()], x.T @ slopes + 2 * RIDGE * belief[1:]])

    bounds = [(None, None), *[(0, None)] * x.shape[1]]
    return tuple(minimize(loss, np.full(len(bounds), 0.1), jac=True, method="L-BFGS-B", bounds=bounds).x.tolist())

"""Random large-margin programs: from raw frames and two paths a pair, as decoding makes them, and from numbers."""

from dataclasses import dataclass

import numpy as np

from margo.estimate.lme.problem import Problem


@dataclass
class Paths:
    """Raw material: frames [T, D] of each pair, the two Gaussian sequences [T], and the pool."""

    frames: list
    reference: list
    competitor: list
    means: np.ndarray
    deviations: np.ndarray


def draw_pool(rng, words, states, mixtures, dimension, spread) -> tuple[np.ndarray, np.ndarray]:
    """Means and deviations [words x states x mixtures, D] of word models that differ by ``spread`` in every state."""
    common = rng.normal(size=(states, 1, dimension)) + 0.2 * rng.normal(size=(states, mixtures, dimension))
    means = (common + spread * rng.normal(size=(words, states, mixtures, dimension))).reshape(-1, dimension)
    return means, np.exp(0.1 * rng.normal(size=means.shape))


def draw_paths(rng, n_pairs, dimension, words=11, states=12, mixtures=1, spread=0.15, pool=None) -> Paths:
    """Pairs of left-to-right paths through two words, with the best mixture of each run of frames in a state.

    Frames come from between the two words' Gaussians, nearer the reference for most pairs, with a speaker's offset
    added: margins of some hundreds, about a sixth of them negative.
    """
    means, deviations = pool or draw_pool(rng, words, states, mixtures, dimension, spread)
    frames, reference, competitor = [], [], []
    for _ in range(n_pairs):
        length = max(states, rng.poisson(4 * states))
        paths = []
        for word in rng.choice(words, 2, replace=False):
            state = np.sort(np.concatenate([np.arange(states), rng.integers(states, size=length - states)]))
            mixture = rng.integers(mixtures, size=2 * states)[2 * state + (rng.random(length) < 0.3)]
            paths.append((word * states + state) * mixtures + mixture)
        lean = rng.beta(2, 4)  # 0.5 is half way to the wrong word
        centre = (1 - lean) * means[paths[0]] + lean * means[paths[1]]
        noise = rng.normal(size=(length, dimension)) + 0.3 * rng.normal(size=dimension)
        frames.append(centre + deviations[paths[0]] * noise)
        reference.append(paths[0])
        competitor.append(paths[1])
    return Paths(frames, reference, competitor, means, deviations)


def draw_many(rng, n_pairs, dimension, radius2, soft, block=500, **shape) -> Problem:
    """problem_of(draw_paths(...)) for very many pairs, drawn block by block so as to hold few frames at once."""
    pool, pieces = None, []
    for start in range(0, n_pairs, block):
        paths = draw_paths(rng, min(block, n_pairs - start), dimension, pool=pool, **shape)
        pool = paths.means, paths.deviations
        piece = problem_of(paths, radius2)
        pieces.append((piece.margins, piece.pair + start, piece.gaussian, piece.counts, piece.gradients))
    whole = [np.concatenate([piece[part] for piece in pieces]) for part in range(5)]
    return Problem(*whole, len(pool[0]), radius2, soft)


def problem_of(paths: Paths, radius2: float, soft=None) -> Problem:
    """Entries of every pair from its frames: n_mk, s_mk - n_mk u0_k, and the margin at the start (no transitions)."""
    k, d = paths.means.shape
    u0 = paths.means / paths.deviations
    log_constant = -np.log(paths.deviations).sum(axis=1)
    margins, pair, gaussian, counts, gradients = [], [], [], [], []
    for m, (x, i, j) in enumerate(zip(paths.frames, paths.reference, paths.competitor)):
        score = [(log_constant[p] - 0.5 * ((x / paths.deviations[p] - u0[p]) ** 2).sum(axis=1)).sum() for p in (i, j)]
        margins.append(score[0] - score[1])
        differ = i != j
        both = np.r_[i[differ], j[differ]]
        sign = np.r_[np.ones(differ.sum()), -np.ones(differ.sum())]
        normalised = np.r_[x[differ], x[differ]] / paths.deviations[both]
        touched, where = np.unique(both, return_inverse=True)
        g = np.zeros((len(touched), d))
        np.add.at(g, where, sign[:, None] * (normalised - u0[both]))
        pair.append(np.full(len(touched), m))
        gaussian.append(touched)
        counts.append(np.bincount(where, sign, len(touched)))
        gradients.append(g)
    return Problem(np.array(margins), np.concatenate(pair), np.concatenate(gaussian), np.concatenate(counts),
                   np.concatenate(gradients), k, radius2, soft)


def opposed_frames(radius2: float) -> Problem:
    """D 1, K 2: two tokens of one frame, +1 and -1, the reference path in Gaussian 0, the competitor's in Gaussian 1.

    Both means are 0, so what a move of a mean gains for one token it loses for the other. The sum of the two margins is
    2 - q_0 + q_1, so rho <= 1 + r^2 / 2, which only v_1 = r^2 reaches.
    """
    return Problem(np.ones(2), np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), np.array([1.0, -1, 1, -1]),
                   np.array([[1.0], [-1], [-1], [1]]), 2, radius2)


def draw_numbers(rng, n_pairs, n_gaussians, dimension, touched, radius2, soft=None, centre=5.0) -> Problem:
    """No frames behind it: counts and gradients of the right sizes, counts of a pair summing to zero."""
    touched = min(touched, n_gaussians)
    gaussian = np.concatenate([rng.choice(n_gaussians, touched, replace=False) for _ in range(n_pairs)])
    pair = np.repeat(np.arange(n_pairs), touched)
    counts = rng.integers(-6, 7, size=(n_pairs, touched)).astype(float)
    counts[:, 0] -= counts.sum(axis=1)
    gradients = rng.normal(size=(n_pairs * touched, dimension)) * np.sqrt(np.abs(counts.ravel()) + 1)[:, None]
    return Problem(centre + 10 * rng.normal(size=n_pairs), pair, gaussian, counts.ravel(), gradients, n_gaussians,
                   radius2, soft)


def draw_odd(rng, n_pairs, n_gaussians, dimension, radius2, soft=None) -> Problem:
    """Everything at once: few Gaussians, unused ones, duplicate pairs, negative margins, pairs with few entries."""
    usable = rng.permutation(n_gaussians)[: max(2, n_gaussians - n_gaussians // 4)]
    lines = []
    for m in range(n_pairs):
        if m and rng.random() < 0.1:
            lines.append(lines[rng.integers(m)])
            continue
        size = int(rng.integers(2, min(len(usable), 40) + 1)) if len(usable) > 1 else 1
        touched = rng.choice(usable, size, replace=False)
        counts = rng.integers(-4, 5, size=size).astype(float)
        counts[0] -= counts.sum()
        gradients = rng.normal(size=(size, dimension)) * np.sqrt(np.abs(counts) + 0.3)[:, None]
        lines.append((float(rng.normal(2, 8)), touched, counts, gradients))
    return Problem(
        np.array([line[0] for line in lines]),
        np.repeat(np.arange(n_pairs), [len(line[1]) for line in lines]),
        np.concatenate([line[1] for line in lines]),
        np.concatenate([line[2] for line in lines]),
        np.concatenate([line[3] for line in lines]),
        n_gaussians,
        radius2,
        soft,
    )

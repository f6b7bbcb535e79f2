"""Pairwise machines on the mixtures' score-spaces of two classes each: the systems of [L04] section 6."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from margo.gaussian.pool import GaussianPool
from margo.kernel.descent import DescentOptions, Trained, train
from margo.kernel.multiclass import pairs
from margo.kernel.scorespace import blocks, by_class, fit_mixtures, from_vector, moving_scores, score, to_vector
from margo.kernel.svm import solve_binary

MIXTURE = ("log_weights", "means", "variances")


@dataclass(frozen=True, eq=False)
class PairSystem:
    """One kernel and one machine for each of the Q = C(C-1)/2 pairs of classes.

    ``mixtures`` are the pools of each pair's two classes, weights [Q, P], bias [Q]; ``prior`` is the ML pool of all
    classes, which breaks ties.
    """

    space: str
    prior: GaussianPool
    mixtures: list[GaussianPool]
    weights: np.ndarray
    bias: np.ndarray

    def decide(self, x: np.ndarray) -> np.ndarray:
        """[N, Q], positive for the first class of the pair."""
        columns = [score(pool, x, self.space)[0] @ weights for pool, weights in zip(self.mixtures, self.weights)]
        return np.stack(columns, axis=1) + self.bias


def train_kernel(x, y, pool: GaussianPool, space: str, metric: str, options: DescentOptions, solve=solve_binary,
                 report=lambda line: None) -> Trained:  # fmt: skip
    """Kernel and machine from the ML mixtures ``pool`` of all classes of ``x`` [N, D]: of two, ``y`` [N] being +1 for
    the first and -1, or with ``solve_all`` the all-in-one machine that [L04] 7 plans, ``y`` being classes."""
    own = blocks(space, pool.sizes, pool.dimension)
    return train(moving_scores(x, space, pool), to_vector(pool, pool), y, options, metric, own, solve, report)


def train_pairs(x, y, pool: GaussianPool, space: str, metric: str, options: DescentOptions,
                report=lambda pair, line: None, seed: int = 0) -> tuple[PairSystem, PairSystem]:  # fmt: skip
    """``(initial, trained)`` systems of samples ``x`` [N, D] with classes ``y`` [N], from the ML mixtures ``pool``;
    ``report`` is told every :class:`margo.kernel.descent.Iteration` of each pair. The one model of a pair that
    ``fisher1`` is of has as many Gaussians as the two others have, from an EM start of ``seed``."""
    trained, starts = [], []
    for a, b in pairs(pool.n_states):
        own = (y == a) | (y == b)
        start = pool.take([a, b])
        if space.startswith("fisher1"):
            rng = np.random.default_rng([seed, a, b])
            start = fit_mixtures(x[own], np.zeros(own.sum(), int), start.n_gaussians, rng)
        starts.append(start)
        signs = np.where(y[own] == a, 1, -1)
        told = partial(report, (a, b))
        trained.append(train_kernel(x[own], signs, start, space, metric, options, report=told))

    def system(mixtures, weights, bias):
        return PairSystem(space, pool, mixtures, np.stack(weights)[:, :, 0], np.concatenate(bias))

    ends = [from_vector(one.theta, start) for one, start in zip(trained, starts)]
    return (
        system(starts, [one.initial_weights for one in trained], [one.initial_bias for one in trained]),
        system(ends, [one.weights for one in trained], [one.bias for one in trained]),
    )


def to_arrays(system: PairSystem) -> dict[str, np.ndarray]:
    """Named arrays, for a file: of the mixtures [Q, 2, M, ...], of the prior [C, M, ...]."""
    own = {name: np.stack([by_class(pool, getattr(pool, name)) for pool in system.mixtures]) for name in MIXTURE}
    prior = {f"prior_{name}": by_class(system.prior, getattr(system.prior, name)) for name in MIXTURE}
    return own | {"weights": system.weights, "bias": system.bias} | prior


def from_arrays(space: str, arrays: dict[str, np.ndarray]) -> PairSystem:
    """The inverse of :func:`to_arrays`."""
    mixtures = [_pool(*parts) for parts in zip(*(arrays[name] for name in MIXTURE))]
    prior = _pool(*(arrays[f"prior_{name}"] for name in MIXTURE))
    return PairSystem(space, prior, mixtures, arrays["weights"], arrays["bias"])


def _pool(log_weights, means, variances) -> GaussianPool:
    """From arrays [C, M, ...]."""
    classes, mixtures, dims = means.shape
    flat = (classes * mixtures, dims)
    return GaussianPool(means.reshape(flat), variances.reshape(flat), log_weights.ravel(),
                        mixtures * np.arange(classes + 1))  # fmt: skip

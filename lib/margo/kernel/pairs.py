"""Pairwise machines on the mixtures' score-spaces of two classes each: the systems of [L04] section 6."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from margo.gaussian.pool import GaussianPool
from margo.kernel.descent import DescentOptions, Iteration, train
from margo.kernel.metric import measure
from margo.kernel.multiclass import pairs
from margo.kernel.scorespace import blocks, by_class, from_vector, moving_scores, score, to_vector

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


def train_pair(x, signs, pool: GaussianPool, space, metric, options: DescentOptions, report=lambda line: None):
    """Kernel and machine of two classes from their mixtures ``pool``, as :class:`margo.kernel.descent.Trained`;
    ``signs`` [N] is +1 for the first."""
    measured = partial(measure, kind=metric, blocks=blocks(space, 2, pool.n_gaussians // 2, pool.dimension))
    return train(moving_scores(x, space, pool), to_vector(pool, pool), signs, options, measured, report=report)


def train_pairs(
    x: np.ndarray,
    y: np.ndarray,
    pool: GaussianPool,
    space: str,
    metric: str,
    options: DescentOptions,
    report: Callable[[tuple[int, int], Iteration], None] = lambda pair, line: None,
) -> tuple[PairSystem, PairSystem]:
    """``(initial, trained)`` systems of samples ``x`` [N, D] with classes ``y`` [N], from the ML mixtures ``pool``."""
    trained, starts = [], []
    for a, b in pairs(pool.n_states):
        own = (y == a) | (y == b)
        starts.append(pool.take([a, b]))
        signs = np.where(y[own] == a, 1, -1)
        trained.append(train_pair(x[own], signs, starts[-1], space, metric, options, partial(report, (a, b))))

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

"""Pairwise machines on the mixtures' score-spaces of two classes each: the systems of [L04] section 6."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from margo.kernel import gmm
from margo.kernel.maxmargin import Iteration, Trained, train
from margo.kernel.metric import measure
from margo.kernel.multiclass import pairs
from margo.kernel.options import MarginOptions
from margo.kernel.scorespace import blocks, score


@dataclass(frozen=True, eq=False)
class PairSystem:
    """One kernel and one machine for each of the Q = C(C-1)/2 pairs of classes.

    log_weights [Q, 2, M], means and variances [Q, 2, M, D], weights [Q, P], bias [Q]; ``prior`` is the ML bank of all
    classes, which breaks ties.
    """

    space: str
    prior: gmm.Bank
    log_weights: np.ndarray
    means: np.ndarray
    variances: np.ndarray
    weights: np.ndarray
    bias: np.ndarray

    def decide(self, x: np.ndarray) -> np.ndarray:
        """[N, Q], positive for the first class of the pair."""
        decisions = np.empty((len(x), len(self.bias)))
        for q in range(len(self.bias)):
            bank = gmm.Bank(self.log_weights[q], self.means[q], self.variances[q])
            decisions[:, q] = score(bank, x, self.space)[0] @ self.weights[q] + self.bias[q]
        return decisions


def train_pair(x, signs, bank: gmm.Bank, space, metric, options: MarginOptions, report=lambda line: None) -> Trained:
    """Kernel and machine of two classes, from their bank ``bank`` of 2; ``signs`` [N] is +1 for the first."""
    mixtures, dims = bank.means.shape[1:]

    def scores(theta):
        moved = gmm.from_vector(theta, bank)
        phi, pullback = score(moved, x, space)
        return phi, lambda d_phi: gmm.gradient_to_vector(moved, bank, *pullback(d_phi))

    measured = partial(measure, kind=metric, blocks=blocks(space, 2, mixtures, dims))
    return train(scores, gmm.to_vector(bank, bank), signs, options, measured, report=report)


def train_pairs(
    x: np.ndarray,
    y: np.ndarray,
    bank: gmm.Bank,
    space: str,
    metric: str,
    options: MarginOptions,
    report: Callable[[tuple[int, int], Iteration], None] = lambda pair, line: None,
) -> tuple[PairSystem, PairSystem]:
    """``(initial, trained)`` systems of samples ``x`` [N, D] with classes ``y`` [N], from the ML ``bank``."""
    listed = pairs(len(bank.means))
    trained, starts = [], []
    for a, b in listed:
        own = (y == a) | (y == b)
        starts.append(bank.take([a, b]))
        signs = np.where(y[own] == a, 1, -1)
        trained.append(train_pair(x[own], signs, starts[-1], space, metric, options, partial(report, (a, b))))
    ended = [gmm.from_vector(one.theta, start) for one, start in zip(trained, starts)]

    def stacked(banks, weights, bias):
        arrays = (np.stack([getattr(b, name) for b in banks]) for name in ("log_weights", "means", "variances"))
        return PairSystem(space, bank, *arrays, np.stack(weights)[:, :, 0], np.concatenate(bias))

    return (
        stacked(starts, [one.initial_weights for one in trained], [one.initial_bias for one in trained]),
        stacked(ended, [one.weights for one in trained], [one.bias for one in trained]),
    )


def to_arrays(system: PairSystem) -> dict[str, np.ndarray]:
    """Named arrays, for a file."""
    own = {name: value for name, value in vars(system).items() if isinstance(value, np.ndarray)}
    return own | {f"prior_{name}": value for name, value in vars(system.prior).items()}


def from_arrays(space: str, arrays: dict[str, np.ndarray]) -> PairSystem:
    """The inverse of :func:`to_arrays`."""
    prior = gmm.Bank(**{name: arrays[f"prior_{name}"] for name in ("log_weights", "means", "variances")})
    own = {name: arrays[name] for name in ("log_weights", "means", "variances", "weights", "bias")}
    return PairSystem(space, prior, **own)

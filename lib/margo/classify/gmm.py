"""A Bayes classifier with a Gaussian mixture for each class, all Gaussians in one pool.

NaN in a sample marks a missing value; it is integrated out exactly, whatever the covariances.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from margo.classify.densities import log_diagonal, log_dplr, log_dplr_missing, log_full, marginal_form
from margo.errors import MargoError

KINDS = ("diagonal", "full", "dplr", "dplr-precision")
RULES = ("mixture", "component")


@dataclass(frozen=True)
class Classifier:
    """C classes, K Gaussians in D dimensions; those of class c are ``offsets[c]`` to ``offsets[c + 1]``."""

    kind: str
    """diagonal, full, dplr (covariance diagonal plus low rank) or dplr-precision (its inverse is)"""
    log_priors: np.ndarray
    """[C]"""
    offsets: np.ndarray
    """[C + 1]"""
    log_weights: np.ndarray
    """[K], summing to one within a class"""
    means: np.ndarray
    """[K, D]"""
    diagonal: np.ndarray
    """[K, D]: variances, or the diagonal of dplr; empty [K, 0] for full"""
    factor: np.ndarray
    """[K, D, D] covariances for full; [K, D, R] for dplr; empty [K, D, 0] for diagonal"""

    @property
    def classes(self) -> int:
        return len(self.log_priors)

    @property
    def owner(self) -> np.ndarray:
        """[K]: the class of each Gaussian."""
        return np.repeat(np.arange(self.classes), np.diff(self.offsets))

    @cached_property
    def _marginal(self):
        return marginal_form(self.diagonal, self.factor, self.kind == "dplr-precision")


def log_components(model: Classifier, x) -> np.ndarray:
    """``log N(x_n; theta_k)`` of every Gaussian, [N, K]."""
    if x.shape[1] != model.means.shape[1]:
        raise MargoError(f"samples have {x.shape[1]} features, the model was trained on {model.means.shape[1]}")
    if model.kind == "diagonal":
        return log_diagonal(x, model.means, model.diagonal)
    if model.kind == "full":
        return log_full(x, model.means, model.factor)
    gaps = np.isnan(x).any(axis=1)
    log_p = np.empty((len(x), len(model.means)))
    if not gaps.all():
        log_p[~gaps] = log_dplr(x[~gaps], model.means, model.diagonal, model.factor, model.kind == "dplr-precision")
    if gaps.any():
        log_p[gaps] = log_dplr_missing(x[gaps], model.means, *model._marginal)
    return log_p


def sum_classes(log_p, offsets) -> np.ndarray:
    """``log sum exp`` over the Gaussians of each class: [N, K] to [N, C]."""
    top = np.maximum.reduceat(log_p, offsets[:-1], axis=1)
    safe = np.where(np.isfinite(top), top, 0.0)
    spread = np.exp(log_p - np.repeat(safe, np.diff(offsets), axis=1))
    with np.errstate(divide="ignore"):  # a class whose Gaussians all underflow has log likelihood -inf
        return safe + np.log(np.add.reduceat(spread, offsets[:-1], axis=1))


def log_joint(model: Classifier, x, rule: str = "mixture") -> np.ndarray:
    """``log p(x_n, c)`` [N, C]; with ``rule="component"`` the best Gaussian stands for its class ([DA08] (5))."""
    log_p = log_components(model, x) + model.log_weights
    if rule == "component":
        return np.maximum.reduceat(log_p, model.offsets[:-1], axis=1) + model.log_priors
    return sum_classes(log_p, model.offsets) + model.log_priors


def log_posteriors(joint) -> np.ndarray:
    """``log p(c | x)`` ([PW10] (1)) from :func:`log_joint`."""
    return joint - np.logaddexp.reduce(joint, axis=1)[:, None]


def to_dplr(model: Classifier, rank: int, ridge: float, precision: bool = False) -> Classifier:
    """``model`` with covariances (or precisions) cut down to diagonal plus ``rank`` eigenvectors ([R18] 4.2.1).

    Each diagonal is at least ``ridge``, as the parametrisation of hybrid training requires.
    """
    if model.kind in ("dplr", "dplr-precision"):
        raise MargoError(f"the model is {model.kind} already; start from diagonal or full covariances")
    dims = model.means.shape[1]
    if model.kind == "diagonal":
        diagonal = 1.0 / model.diagonal if precision else model.diagonal
        factor = np.zeros((*model.means.shape, min(rank, dims)))
    else:
        matrices = np.linalg.inv(model.factor) if precision else model.factor
        values, vectors = np.linalg.eigh(matrices)
        rank = min(rank, dims)
        factor = vectors[:, :, ::-1][:, :, :rank] * np.sqrt(values[:, ::-1][:, None, :rank])
        diagonal = np.diagonal(matrices, axis1=1, axis2=2) - (factor**2).sum(axis=2)
    kind = "dplr-precision" if precision else "dplr"
    return replace(model, kind=kind, diagonal=np.maximum(diagonal, ridge), factor=np.ascontiguousarray(factor))


def covariances(model: Classifier) -> np.ndarray:
    """The covariance matrices themselves, [K, D, D]: for inspection and tests, not for classification."""
    if model.kind == "full":
        return model.factor
    matrices = np.zeros((*model.means.shape, model.means.shape[1]))
    index = np.arange(model.means.shape[1])
    matrices[:, index, index] = model.diagonal
    matrices += model.factor @ model.factor.transpose(0, 2, 1)
    return np.linalg.inv(matrices) if model.kind == "dplr-precision" else matrices


def marginalise(model: Classifier, seen) -> Classifier:
    """The classifier of the dimensions where ``seen[D]`` is true, with full covariances."""
    return replace(
        model, kind="full", means=model.means[:, seen], diagonal=np.empty((len(model.means), 0)),
        factor=covariances(model)[:, seen][:, :, seen],
    )  # fmt: skip


def check_samples(x, y=None, classes: int | None = None, what: str = "training data"):
    """``x`` as float64 [N, D] and ``y`` as int [N] (-1: no label); refuses what no training can use."""
    x = np.asarray(x, float)
    if x.ndim != 2 or 0 in x.shape:
        raise MargoError(f"{what}: expected samples by features, found shape {x.shape}")
    if np.isinf(x).any():
        rows, columns = np.nonzero(np.isinf(x))
        raise MargoError(f"{what}: {len(rows)} infinite values, the first in sample {rows[0]}, feature {columns[0]}")
    blank = np.isnan(x).all(axis=0)
    if y is not None and blank.any():
        raise MargoError(f"{what}: feature {int(np.argmax(blank))} has no value in any sample")
    if y is None:
        return x
    y = np.asarray(y)
    if len(y) != len(x):
        raise MargoError(f"{what}: {len(x)} samples but {len(y)} labels")
    counts = np.bincount(y[y >= 0], minlength=classes or 0)
    empty = np.flatnonzero(counts == 0)
    if len(empty):
        raise MargoError(f"{what}: no sample of class {', '.join(map(str, empty[:10]))}")
    if len(counts) < 2:
        raise MargoError(f"{what}: expected at least 2 classes, found {len(counts)}")
    return x, y

"""A Bayes classifier with a Gaussian mixture for each class, all Gaussians in one pool, and its training by EM.

NaN in a sample marks a missing value; it is integrated out exactly, whatever the covariances.
"""

from dataclasses import dataclass, fields, replace

import numpy as np

from margo.errors import MargoError
from margo.gaussian import em
from margo.gaussian.covariances import Full
from margo.gaussian.mixtures import log_components, share_components, sum_components
from margo.gaussian.pool import GaussianPool
from margo.knobs import knob


@dataclass(frozen=True)
class GmmOptions(em.EmOptions):
    """A classifier by EM."""

    uniform_priors: bool = knob(False, "equal class priors instead of the classes' frequencies")


@dataclass(frozen=True, eq=False)
class Classifier:
    """C classes: a pool whose states are the classes, and ``log_priors[C]``."""

    pool: GaussianPool
    log_priors: np.ndarray

    @property
    def classes(self) -> int:
        return len(self.log_priors)


def fit(x, y, options: GmmOptions, rng, classes: int | None = None) -> tuple[Classifier, list[dict]]:
    """``(Classifier, reports)`` from samples [N, D] and labels [N]; objectives are the mean ``log p(x, c)``."""
    x, y = check_samples(x, y, classes)
    if (y < 0).any():
        raise MargoError(f"{int((y < 0).sum())} samples have no label; EM needs a label for each")
    counts = np.bincount(y)
    log_priors = -np.log(len(counts)) * np.ones(len(counts)) if options.uniform_priors else np.log(counts / len(y))
    pool, reports = em.fit(x, y, options, rng)
    prior = float(log_priors[y].mean())
    return Classifier(pool, log_priors), [{**line, "objective": line["objective"] + prior} for line in reports]


def log_joint(model: Classifier, x, rule: str = "mixture") -> np.ndarray:
    """``log p(x_n, c)`` [N, C]; with ``rule="component"`` the best Gaussian stands for its class ([DA08] (5))."""
    log_p = log_components(model.pool, x)
    if rule == "component":
        return np.maximum.reduceat(log_p, model.pool.offsets[:-1], axis=1) + model.log_priors
    return sum_components(log_p, model.pool.offsets) + model.log_priors


def log_posteriors(joint) -> np.ndarray:
    """``log p(c | x)`` ([PW10] (1)) from :func:`log_joint`."""
    return joint - np.logaddexp.reduce(joint, axis=1)[:, None]


def soft_margins(joint, y, sharpness: float):
    """``log p(x, y) - 1/eta log sum_{c != y} p(x, c)^eta`` [N] of labels ``y`` [N], and the rivals' parts of that sum
    [N, C]: the larger ``sharpness`` eta, the more the likeliest rival counts alone ([PW10] section 4, [R18] (15))."""
    rows = np.arange(len(y))
    rivals = sharpness * joint
    rivals[rows, y] = -np.inf
    log_sum, parts = share_components(rivals, np.array([0, joint.shape[1]]))
    return joint[rows, y] - log_sum[:, 0] / sharpness, parts


def joined(models: list[Classifier]) -> Classifier:
    """The classifier whose class c is that of ``models[c]``, all of one kind of covariances and the first's priors."""
    parts = [model.pool.take([c]) for c, model in enumerate(models)]
    spreads = [part.covariances for part in parts]
    kind = type(spreads[0])
    held = {each.name: np.concatenate([getattr(one, each.name) for one in spreads]) for each in fields(kind)}
    means, weights = (np.concatenate([getattr(part, name) for part in parts]) for name in ("means", "log_weights"))
    offsets = np.concatenate([[0], np.cumsum([part.n_gaussians for part in parts])])
    return Classifier(GaussianPool(means, kind(**held), weights, offsets), models[0].log_priors)


def draw(model: Classifier, c: int, count: int, rng) -> np.ndarray:
    """``count`` samples [count, D] of class ``c``."""
    pool = model.pool.take([c])
    which = rng.choice(pool.n_gaussians, count, p=np.exp(pool.log_weights) / np.exp(pool.log_weights).sum())
    lower = np.linalg.cholesky(pool.covariances.dense())
    return pool.means[which] + np.einsum("nde,ne->nd", lower[which], rng.normal(size=(count, pool.dimension)))


def marginalise(model: Classifier, seen) -> Classifier:
    """The classifier of the dimensions where ``seen[D]`` is true, with full covariances."""
    covariances = Full(model.pool.covariances.dense()[:, seen][:, :, seen])
    return replace(model, pool=replace(model.pool, means=model.pool.means[:, seen], covariances=covariances))


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

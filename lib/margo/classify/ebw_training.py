"""Discriminative GMM classifiers by the extended Baum-Welch algorithm [PW10]: conditional likelihood and margin.

Diagonal covariances. Where the paper's print is wrong the equations here are the derived ones: the power eta stands
inside the sum over the other classes, and D must keep the denominators positive too, not the variances alone.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np

from margo.classify.gmm import Classifier, check_samples, log_posteriors, soft_margins
from margo.errors import MargoError
from margo.gaussian.ebw import ebw_update, smallest_D, smooth_hinge
from margo.gaussian.em import expected
from margo.gaussian.mixtures import log_components, share_components
from margo.gaussian.moments import Moments
from margo.gaussian.pool import GaussianPool
from margo.knobs import Knobs, knob

DOUBLINGS = 20  # of D, before a step that cannot improve the criterion is taken to be convergence
CHUNK_ENTRIES = 500_000  # samples times Gaussians handled at once: what a processor's cache holds
KEPT = 31 << 20  # bytes; the largest block that glibc takes as a sign of how much freed memory to keep


@dataclass(frozen=True)
class EbwOptions(Knobs):
    """Conditional likelihood or margin by the extended Baum-Welch algorithm [PW10]."""

    criterion: str = knob("mm", "cl: conditional likelihood; mm: margin", ("cl", "mm"))
    iterations: int = knob(200, "most iterations", least=1)
    factor: float = knob(5.0, "F: times the smallest D that keeps the model sound", least=1)
    doubling: bool = knob(False, "that D is doubled from 1 until the model is sound, as printed, instead of exact")
    exponent: float = knob(0.5, "lambda: scale of the log margin (mm)", above=0)
    sharpness: float = knob(10.0, "eta: how closely the competitors' soft maximum follows the maximum (mm)", above=0)
    backtrack: bool = knob(False, "double D until the criterion does not fall, instead of keeping the best iterate")
    tolerance: float = knob(1e-7, "stop when the criterion per sample changes by less than this", least=0)
    floor: float = knob(1e-3, "least variance, as a part of the feature's variance", least=0)

    def faults(self):
        exact = self.factor == 1 and not self.doubling
        return super().faults() + ["--factor 1 needs --doubling: with the exact D a variance becomes 0"] * exact


@dataclass(frozen=True)
class Expectation:
    """What one pass over the data gives: the criterion, and the statistics for and against every Gaussian."""

    objective: float  # sum over samples of log p(c | x), or of log h(d^lambda)
    net: Moments  # of the samples of a Gaussian's own class, less of those that it should not win
    numerator: np.ndarray  # [K]: the occupancy for,
    denominator: np.ndarray  # and against
    margins: np.ndarray  # [3] samples with d^lambda up to 1 (wrong), between 1 and 2, from 2 ([PW10] Fig. 3b)

    def __add__(self, other: "Expectation") -> "Expectation":
        return Expectation(*(getattr(self, name) + getattr(other, name) for name in self.__dataclass_fields__))


def expectation(model: Classifier, x, y, options: EbwOptions, each=map) -> Expectation:
    """Criterion and statistics of ``model`` on samples [N, D] with labels [N], in chunks that bound the memory;
    ``each(function, chunks)`` maps over them, here or in other processes."""
    size = max(1, CHUNK_ENTRIES // model.pool.n_gaussians)
    chunks = ((x[first : first + size], y[first : first + size]) for first in range(0, len(x), size))
    total = None
    for part in each(partial(expectation_of, model, options), chunks):
        total = part if total is None else total + part
    return total


def expectation_of(model: Classifier, options: EbwOptions, chunk) -> Expectation:
    """That of one chunk ``(x, y)``."""
    np.empty(KEPT, np.uint8)  # freed unused: what chunks free is kept for the next, a third of the time of a pass
    x, y = chunk
    value, gamma, sides, margins = posteriors(model, x, y, options)
    numerator, denominator = (occupancies(gamma, side, model.pool.offsets) for side in sides)
    gamma *= np.repeat(sides[0] - sides[1], model.pool.sizes, axis=1)
    return Expectation(value, expected(model.pool, x, gamma), numerator, denominator, margins)


def occupancies(gamma, side, offsets) -> np.ndarray:
    """[K]: ``sum_n side[n, c] gamma[n, k]`` of every Gaussian k, c being its class."""
    return np.concatenate([weight @ gamma[:, a:b] for weight, a, b in zip(side.T, offsets, offsets[1:])])


def posteriors(model: Classifier, x, y, options: EbwOptions):
    """``(criterion, gamma[N, K], (numerator[N, C], denominator[N, C]), margin counts)``: what samples weigh for and
    against classes, and the parts ``gamma`` of it that the Gaussians of the class have."""
    rows = np.arange(len(x))
    log_c, gamma = share_components(log_components(model.pool, x), model.pool.offsets)  # [PW10] (7)
    joint = log_c + model.log_priors
    log_margin, rivals = soft_margins(joint, y, options.sharpness)
    log_y = options.exponent * log_margin
    if options.criterion == "cl":
        log_posterior = log_posteriors(joint)
        objective = log_posterior[rows, y].sum()
        weight, against = np.ones(len(x)), np.exp(log_posterior)  # w_c^n of (5)
    else:
        log_h, slope = smooth_hinge(log_y)
        objective = log_h.sum()
        weight, against = options.exponent * slope, rivals  # s^n, r_c^{n,eta}
    own = np.zeros_like(joint)
    own[rows, y] = weight
    wrong, far = int((log_y <= 0).sum()), int((log_y >= np.log(2.0)).sum())
    margins = np.array([wrong, len(x) - wrong - far, far])
    return float(objective), gamma, (own, weight[:, None] * against), margins


def update(model: Classifier, now: Expectation, D: float, floor) -> Classifier:
    """The M-step with one D for everything: Gaussians by (9), weights and priors by (4) with Merialdo's (8)."""
    pool, sizes = model.pool, model.pool.sizes
    means, variances = ebw_update(pool.means, pool.variances, now.net.about(pool.means), D, floor)

    def shares(occupancy):
        """Occupancies as parts of their class, and of classes as parts of the whole."""
        total = np.add.reduceat(occupancy, pool.offsets[:-1])
        of_class = occupancy / np.repeat(np.where(total > 0, total, 1.0), sizes)
        return of_class, total / (total.sum() or 1.0)

    (up_k, up_c), (down_k, down_c) = map(shares, (now.numerator, now.denominator))
    # The growth transform needs D above the largest fall of a derivative, which is at most 1.
    D = max(D, 2.0)
    weights = np.exp(pool.log_weights) * (up_k - down_k + D)
    weights /= np.repeat(np.add.reduceat(weights, pool.offsets[:-1]), sizes)
    priors = np.exp(model.log_priors) * (up_c - down_c + D)
    return Classifier(GaussianPool(means, variances, np.log(weights), pool.offsets), np.log(priors / priors.sum()))


@dataclass(frozen=True)
class State:
    """Where training stands: the current model, its expectation, and the best model seen."""

    model: Classifier
    now: Expectation
    best: Classifier
    best_objective: float


def begin(model: Classifier, x, y, options: EbwOptions, each=map) -> State:
    """The state before the first iteration, from a maximum-likelihood classifier."""
    model.pool.require("diagonal", "EBW")
    x, y = check_samples(x, y, model.classes)
    if y.max() >= model.classes or (y < 0).any():
        raise MargoError(f"EBW needs a label from 0 to {model.classes - 1} for each sample")
    now = expectation(model, x, y, options, each)
    if not np.isfinite(now.objective):
        raise MargoError("some samples have likelihood zero under every class: raise --ridge of the start")
    return State(model, now, model, now.objective)


def iterate(state: State, x, y, options: EbwOptions, each=map):
    """One EBW iteration: ``(State, report, done)``.

    D is ``factor`` times the exact bound over all Gaussians, or the first power of 2 above that. With ``backtrack`` it
    doubles until the criterion does not fall, which makes the criterion monotone; a step that never gets there ends
    training.
    """
    model, now, pool = state.model, state.now, state.model.pool
    floor = options.floor * np.nanvar(x, axis=0)
    floor = np.minimum(np.maximum(floor, np.finfo(float).tiny), pool.variances.min(axis=0))
    least = max(float(smallest_D(pool.variances, now.net.about(pool.means)).max()), 1.0)
    D = options.factor * (2.0 ** (np.floor(np.log2(least)) + 1.0) if options.doubling else least)
    for _ in range(DOUBLINGS):
        updated = update(model, now, D, floor)
        then = expectation(updated, x, y, options, each)
        if not options.backtrack or then.objective >= now.objective:
            break
        D *= 2.0
    else:
        updated, then = model, now
    report = {
        "objective": then.objective / len(x), "frames": len(x), "D": D,
        "floored": int((updated.pool.variances <= floor).sum()),
        **dict(zip(("wrong", "near", "far"), then.margins.tolist())),
    }  # fmt: skip
    done = abs(then.objective - now.objective) < options.tolerance * len(x)
    best = (updated, then.objective) if then.objective > state.best_objective else (state.best, state.best_objective)
    return State(updated, then, *best), report, done


def fit(model: Classifier, x, y, options: EbwOptions):
    """``(best Classifier, reports)``: EBW from ``model`` for ``options.iterations`` or until it no longer moves."""
    state, reports, done = begin(model, x, y, options), [], False
    while not done and len(reports) < options.iterations:
        state, report, done = iterate(state, x, y, options)
        reports.append({"iteration": len(reports) + 1, **report})
    return state.best, reports

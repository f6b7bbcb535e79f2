"""Discriminative GMM classifiers by the extended Baum-Welch algorithm [PW10]: conditional likelihood and margin.

Diagonal covariances. Where the paper's print is wrong the equations here are the derived ones: the power eta stands
inside the sum over the other classes, and D must keep the denominators positive too, not the variances alone.
"""

from dataclasses import dataclass

import numpy as np

from margo.classify.gmm import Classifier, check_samples
from margo.errors import MargoError
from margo.gaussian.covariances import Diagonal
from margo.gaussian.ebw import ebw_update, smallest_D, smooth_hinge
from margo.gaussian.em import expected
from margo.gaussian.mixtures import log_components, sum_components
from margo.gaussian.moments import Moments
from margo.gaussian.pool import GaussianPool
from margo.knobs import Knobs, knob

# Doublings of D before a step that cannot improve the criterion is taken to be convergence.
DOUBLINGS = 20
# Samples times Gaussians handled at once.
CHUNK_ENTRIES = 4_000_000


@dataclass(frozen=True)
class EbwOptions(Knobs):
    """Conditional likelihood or margin by the extended Baum-Welch algorithm [PW10]."""

    criterion: str = knob("mm", "cl: conditional likelihood; mm: margin", ("cl", "mm"))
    iterations: int = knob(200, "most iterations", least=1)
    factor: float = knob(5.0, "F: times the smallest D that keeps the model sound", above=1)
    exponent: float = knob(0.5, "lambda: scale of the log margin (mm)", above=0)
    sharpness: float = knob(10.0, "eta: how closely the competitors' soft maximum follows the maximum (mm)", above=0)
    backtrack: bool = knob(False, "double D until the criterion does not fall, instead of keeping the best iterate")
    tolerance: float = knob(1e-7, "stop when the criterion per sample changes by less than this", least=0)
    floor: float = knob(1e-3, "least variance, as a part of the feature's variance", least=0)


@dataclass(frozen=True)
class Expectation:
    """What one pass over the data gives: the criterion, and the statistics for and against every Gaussian."""

    objective: float
    """sum over samples of log p(c | x), or of log h(d^lambda)"""
    numerator: Moments
    """of the samples of a Gaussian's own class"""
    denominator: Moments
    """and of those that it should not win"""
    margins: tuple[int, int, int]
    """samples with d^lambda up to 1 (wrong), between 1 and 2, and from 2 ([PW10] Fig. 3b)"""


def expectation(model: Classifier, x, y, options: EbwOptions) -> Expectation:
    """Criterion and statistics of ``model`` on samples [N, D] with labels [N], in chunks that bound the memory."""
    size = max(1, CHUNK_ENTRIES // model.pool.n_gaussians)
    objective, stats, margins = 0.0, None, np.zeros(3, int)
    for first in range(0, len(x), size):
        part = slice(first, first + size)
        value, weights, counts = posteriors(model, x[part], y[part], options)
        both = [expected(model.pool, x[part], weight) for weight in weights]
        stats = both if stats is None else [before + now for before, now in zip(stats, both)]
        objective += value
        margins += counts
    return Expectation(objective, *stats, tuple(int(count) for count in margins))


def posteriors(model: Classifier, x, y, options: EbwOptions):
    """``(criterion, (numerator[N, K], denominator[N, K]), margin counts)``: weights of samples on Gaussians."""
    rows = np.arange(len(x))
    log_k = log_components(model.pool, x)
    log_c = sum_components(log_k, model.pool.offsets)
    sizes = model.pool.sizes
    gamma = np.exp(log_k - np.repeat(log_c, sizes, axis=1))  # [PW10] (7)
    joint = log_c + model.log_priors
    own = np.zeros_like(joint)
    own[rows, y] = 1.0
    others = np.where(own > 0, -np.inf, options.sharpness * joint)
    log_others = np.logaddexp.reduce(others, axis=1)
    log_margin = joint[rows, y] - log_others / options.sharpness
    log_y = options.exponent * log_margin
    if options.criterion == "cl":
        log_posterior = joint - np.logaddexp.reduce(joint, axis=1)[:, None]
        objective = log_posterior[rows, y].sum()
        weight, against = np.ones(len(x)), np.exp(log_posterior)  # w_c^n of (5)
    else:
        log_h, slope = smooth_hinge(log_y)
        objective = log_h.sum()
        weight, against = options.exponent * slope, np.exp(others - log_others[:, None])  # s^n, r_c^{n,eta}
    wrong, far = int((log_y <= 0).sum()), int((log_y >= np.log(2.0)).sum())
    owned = np.repeat(weight[:, None] * own, sizes, axis=1) * gamma
    opposed = np.repeat(weight[:, None] * against, sizes, axis=1) * gamma
    return float(objective), (owned, opposed), (wrong, len(x) - wrong - far, far)


def update(model: Classifier, now: Expectation, D: float, floor) -> Classifier:
    """The M-step with one D for everything: Gaussians by (9), weights and priors by (4) with Merialdo's (8)."""
    pool, sizes = model.pool, model.pool.sizes
    net = (now.numerator - now.denominator).about(pool.means)
    means, variances = ebw_update(pool.means, pool.variances, net, D, floor)

    def shares(occupancy):
        """Occupancies as parts of their class, and of classes as parts of the whole."""
        total = np.add.reduceat(occupancy, pool.offsets[:-1])
        of_class = occupancy / np.repeat(np.where(total > 0, total, 1.0), sizes)
        return of_class, total / (total.sum() or 1.0)

    (up_k, up_c), (down_k, down_c) = shares(now.numerator.occupancy), shares(now.denominator.occupancy)
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


def begin(model: Classifier, x, y, options: EbwOptions) -> State:
    """The state before the first iteration, from a maximum-likelihood classifier."""
    if not isinstance(model.pool.covariances, Diagonal):
        raise MargoError(f"EBW needs diagonal covariances, the start has {model.pool.covariances.kind} ones")
    x, y = check_samples(x, y, model.classes)
    if y.max() >= model.classes or (y < 0).any():
        raise MargoError(f"EBW needs a label from 0 to {model.classes - 1} for each sample")
    now = expectation(model, x, y, options)
    if not np.isfinite(now.objective):
        raise MargoError("some samples have likelihood zero under every class: raise --ridge of the start")
    return State(model, now, model, now.objective)


def iterate(state: State, x, y, options: EbwOptions):
    """One EBW iteration: ``(State, report, done)``.

    D is ``factor`` times the exact bound over all Gaussians. With ``backtrack`` it doubles until the criterion does
    not fall, which makes the criterion monotone; a step that never gets there ends training.
    """
    model, now, pool = state.model, state.now, state.model.pool
    floor = options.floor * np.nanvar(x, axis=0)
    floor = np.minimum(np.maximum(floor, np.finfo(float).tiny), pool.variances.min(axis=0))
    net = (now.numerator - now.denominator).about(pool.means)
    D = options.factor * max(float(smallest_D(pool.variances, net).max()), 1.0)
    for _ in range(DOUBLINGS):
        updated = update(model, now, D, floor)
        then = expectation(updated, x, y, options)
        if not options.backtrack or then.objective >= now.objective:
            break
        D *= 2.0
    else:
        updated, then = model, now
    report = {
        "objective": then.objective / len(x), "frames": len(x), "D": D,
        "floored": int((updated.pool.variances <= floor).sum()), "wrong": then.margins[0], "near": then.margins[1],
        "far": then.margins[2],
    }  # fmt: skip
    done = abs(then.objective - now.objective) < options.tolerance * len(x)
    if then.objective > state.best_objective:
        return State(updated, then, updated, then.objective), report, done
    return State(updated, then, state.best, state.best_objective), report, done


def fit(model: Classifier, x, y, options: EbwOptions):
    """``(best Classifier, reports)``: EBW from ``model`` for ``options.iterations`` or until it no longer moves."""
    state, reports, done = begin(model, x, y, options), [], False
    while not done and len(reports) < options.iterations:
        state, report, done = iterate(state, x, y, options)
        reports.append({"iteration": len(reports) + 1, **report})
    return state.best, reports

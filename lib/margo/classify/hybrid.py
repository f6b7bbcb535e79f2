"""Hybrid generative-discriminative GMMs with diagonal-plus-low-rank matrices [R18], by ADAM with exact gradients.

Everything trainable is one flat vector, cut into views by a :class:`Layout`: class and component logits, means, raw
diagonals (through softplus) and low-rank factors. Gradients are closed forms (Woodbury and the determinant lemma): a
batch costs two large matrix products, samples by D by K R, and small ones of R x R.
"""

from dataclasses import dataclass, replace
from itertools import accumulate
from math import prod

import numpy as np

from margo.classify.gmm import Classifier, check_samples, log_joint, log_posteriors, soft_margins
from margo.errors import MargoError
from margo.gaussian.covariances import LOG_2PI, Full, LowRank, LowRankPrecision, low_rank
from margo.gaussian.lowrank import inverse_factors
from margo.gaussian.mixtures import share_components
from margo.gaussian.pool import GaussianPool
from margo.knobs import Knobs, knob

ADAM = (0.9, 0.999, 1e-8)


@dataclass(frozen=True)
class HybridOptions(Knobs):
    """Likelihood with margin or conditional likelihood by ADAM on DPLR Gaussians [R18]."""

    objective: str = knob("ll-lm", "ll, lm, cll or a mixture of two", ("ll", "ll-lm", "ll-cll", "lm", "cll"))
    generative: float = knob(0.2458, "lambda: part of the log-likelihood in a mixture", least=0, most=1)
    margin: float = knob(59.7, "gamma: desired log margin (lm)")
    sharpness: float = knob(10.0, "nu: how closely the competitors' soft maximum follows the maximum (lm)", above=0)
    labelled: float = knob(
        0.5, "kappa: part of the labelled samples in the likelihood, where some have no label", least=0, most=1
    )
    rank: int = knob(25, "columns of the low-rank part of the covariances (0: diagonal)", least=0)
    precision: bool = knob(True, "diagonal plus low rank in the precision instead of the covariance")
    ridge: float = knob(1e-3, "epsilon: least diagonal of the parametrised matrix", above=0)
    rate: float = knob(0.00207, "step size of ADAM", above=0)
    batch: int = knob(100, "samples a step", least=1)
    epochs: int = knob(25, "passes over the data", least=1)
    patience: int = knob(0, "stop after this many epochs without a better validation error (0: never)", least=0)
    decay: float = knob(0.05, "step size at the last epoch, as a part of the first", above=0)


@dataclass(frozen=True)
class Layout:
    """Shapes of the parameters inside the flat vector."""

    offsets: tuple[int, ...]
    dims: int
    rank: int
    precision: bool
    ridge: float

    @property
    def shapes(self):
        K, C = self.offsets[-1], len(self.offsets) - 1
        return ((C,), (K,), (K, self.dims), (K, self.dims), (K, self.dims, self.rank))

    def views(self, flat):
        """``(class logits, component logits, means, raw diagonal, factors)`` as views of ``flat``."""
        ends = [0, *accumulate(map(prod, self.shapes))]
        return [flat[first:last].reshape(shape) for first, last, shape in zip(ends, ends[1:], self.shapes)]


def pack(model: Classifier, options: HybridOptions, dtype=np.float32):
    """``(flat, Layout)``: a classifier as parameters, cut down to diagonal plus low rank where it is not yet."""
    pool, covariances = model.pool, model.pool.covariances
    if not isinstance(covariances, LowRank):
        rank = options.rank if isinstance(covariances, Full) else 0
        covariances = low_rank(covariances, rank, options.ridge, options.precision)
    offsets = tuple(int(k) for k in pool.offsets)
    layout = Layout(offsets, pool.dimension, covariances.factor.shape[2], covariances.precision, options.ridge)
    excess = np.maximum(covariances.diagonal - options.ridge, 1e-6)
    raw = excess + np.log(-np.expm1(-excess))  # inverse of softplus
    parts = (model.log_priors, pool.log_weights, pool.means, raw, covariances.factor)
    return np.concatenate([np.ravel(part) for part in parts]).astype(dtype), layout


def unpack(flat, layout: Layout) -> Classifier:
    """The classifier of a flat vector, in float64."""
    prior, weight, means, raw, factor = layout.views(np.asarray(flat, float))
    offsets = np.array(layout.offsets)
    total = np.array([np.logaddexp.reduce(weight[a:b]) for a, b in zip(offsets[:-1], offsets[1:])])
    kind = LowRankPrecision if layout.precision else LowRank
    log_weights = weight - np.repeat(total, np.diff(offsets))
    pool = GaussianPool(means, kind(np.logaddexp(0.0, raw) + layout.ridge, factor), log_weights, offsets)
    return Classifier(pool, prior - np.logaddexp.reduce(prior))


def criterion(joint, y, options: HybridOptions, kappa: float):
    """Loss of a batch and its derivative by the joint log probabilities [B, C]; ``y`` is -1 where there is no label.

    [R18] (6) and (9) with (15) as the maximum, and (16) for unlabelled samples; minimised, mean over the batch.
    """
    share = {"ll": 1.0, "lm": 0.0, "cll": 0.0}.get(options.objective, options.generative)
    known = y >= 0
    rows, labels = np.flatnonzero(known), y[known]
    slope = np.zeros_like(joint)
    own = joint[rows, labels]
    loss = -share * kappa * own.sum()
    slope[rows, labels] -= share * kappa
    if options.objective in ("ll-lm", "lm"):
        margin, rivals = soft_margins(joint[rows], labels, options.sharpness)  # (8)
        active = margin < options.margin
        loss += (1.0 - share) * (options.margin - margin[active]).sum()
        slope[rows[active], labels[active]] -= 1.0 - share
        slope[rows[active]] += (1.0 - share) * rivals[active]
    elif options.objective in ("ll-cll", "cll"):
        log_posterior = log_posteriors(joint[rows])
        loss -= (1.0 - share) * log_posterior[np.arange(len(rows)), labels].sum()
        slope[rows] += (1.0 - share) * np.exp(log_posterior)
        slope[rows, labels] -= 1.0 - share
    if not known.all():
        rest = joint[~known]
        total = np.logaddexp.reduce(rest, axis=1)
        loss -= share * (1.0 - kappa) * total.sum()
        slope[~known] -= share * (1.0 - kappa) * np.exp(rest - total[:, None])
    return float(loss) / len(y), slope / slope.dtype.type(len(y))


def loss_gradient(flat, layout: Layout, x, y, options: HybridOptions, kappa: float = 1.0):
    """``(loss, gradient)`` of a batch ``x[B, D]``, ``y[B]``; the gradient is flat like the parameters."""
    prior, weight, means, raw, factor = layout.views(flat)
    starts, sizes = np.array(layout.offsets[:-1]), np.diff(layout.offsets)
    a = np.logaddexp(raw.dtype.type(0), raw) + raw.dtype.type(layout.ridge)
    densities = with_gaps if np.isnan(x).any() else complete
    log_n, backward = densities(layout, means, a, factor, x)
    weights, log_weights = _softmax(weight, starts, sizes)
    log_c, shares = share_components(log_n + log_weights, np.array(layout.offsets))
    priors, log_priors = _softmax(prior, np.array([0]), np.array([len(prior)]))
    loss, slope = criterion(log_c + log_priors, y, options, kappa)
    g = shares * np.repeat(slope, sizes, axis=1)  # d loss / d log N_k(x_n)
    gradient = np.empty_like(flat)
    to_prior, to_weight, to_means, to_raw, to_factor = layout.views(gradient)
    mass, mass_k = slope.sum(axis=0), g.sum(axis=0)
    to_prior[:] = mass - priors * mass.sum()
    to_weight[:] = mass_k - weights * np.repeat(np.add.reduceat(mass_k, starts), sizes)
    to_means[:], to_a, to_factor[:] = backward(g)
    to_raw[:] = to_a / (1.0 + np.exp(-raw))
    return loss, gradient


def complete(layout: Layout, means, a, factor, x):
    """``log N_k(x_n)`` [B, K] of samples without gaps, and the function that takes ``g[B, K]``, weights of them, to the
    derivatives of their weighted sum by means, diagonals ``a`` and factors."""
    K, D, R = factor.shape
    scaled = factor / a[:, :, None]  # A^-1 S
    inner = factor.transpose(0, 2, 1) @ scaled
    inner[:, range(R), range(R)] += 1.0  # I + S' A^-1 S
    inverse = inverse_factors(inner)  # L^-1, L L' = inner
    log_det = np.log(a).sum(axis=1) - 2.0 * np.log(np.diagonal(inverse, axis1=1, axis2=2)).sum(axis=1)
    half = inverse @ scaled.transpose(0, 2, 1)  # L^-1 S' A^-1
    if layout.precision:
        p, sign, log_det, rows = a, 1.0, log_det, factor.transpose(0, 2, 1)
    else:
        p, sign, log_det, rows = 1.0 / a, -1.0, -log_det, half
    project = np.ascontiguousarray(rows.transpose(2, 0, 1)).reshape(D, K * R)
    projected = (x @ project).reshape(len(x), K, R)
    projected -= np.einsum("krd,kd->kr", rows, means)
    square = x * x
    quadratic = square @ p.T - 2.0 * x @ (means * p).T + (means * means * p).sum(axis=1)
    quadratic += sign * np.einsum("bkr,bkr->bk", projected, projected)

    def backward(g):
        mass = g.sum(axis=0)
        solved = inverse.transpose(0, 2, 1) @ half  # (A^-1 S M^-1)', [K, R, D]
        first = g.T @ x
        centred = first - mass[:, None] * means  # sum g (x - mu)
        second = g.T @ square - 2.0 * means * first + mass[:, None] * means * means  # sum g (x - mu)^2
        pulled = (g[:, :, None] * projected).reshape(len(x), K * R)
        cross = (x.T @ pulled).reshape(D, K, R).transpose(1, 0, 2)
        # sum g (x - mu) projected'
        cross = cross - means[:, :, None] * np.einsum("bk,bkr->kr", g, projected)[:, None, :]
        diagonal_of_inverse = 1.0 / a - np.einsum("krd,kdr->kd", solved, scaled)
        if layout.precision:
            to_means = a * centred + (factor @ (factor.transpose(0, 2, 1) @ centred[:, :, None]))[:, :, 0]
            to_a = 0.5 * (mass[:, None] * diagonal_of_inverse - second)
            return to_means, to_a, mass[:, None, None] * solved.transpose(0, 2, 1) - cross
        # t = M^-1 S' A^-1 (x - mu) = L^-T projected; u = Sigma^-1 (x - mu) = A^-1 ((x - mu) - S t).
        cross = cross @ inverse
        # cross is now sum g (x - mu) t'
        outer = solved @ cross  # sum g t t'
        sum_t = (solved @ centred[:, :, None])[:, :, 0]
        to_means = (centred - (factor @ sum_t[:, :, None])[:, :, 0]) / a
        by_outer = factor @ outer
        to_factor = (cross - by_outer) / a[:, :, None] - mass[:, None, None] * solved.transpose(0, 2, 1)
        squared = second - 2.0 * (cross * factor).sum(axis=2) + (by_outer * factor).sum(axis=2)  # a^2 sum g u^2
        return to_means, 0.5 * (squared / (a * a) - mass[:, None] * diagonal_of_inverse), to_factor

    return 0.5 * (log_det - D * LOG_2PI - quadratic), backward


def with_gaps(layout: Layout, means, a, factor, x):
    """As :func:`complete`, NaN being missing: of the observed values alone ([R18] 3.3), covariances only.

    With W = A^-1 where a value is seen and 0 elsewhere, M = I + S' W S of each sample and Gaussian is R x R, and the
    marginal's inverse is W - W S M^-1 S' W: no larger matrix is formed.
    """
    (K, D, R), B = factor.shape, len(x)
    seen = (~np.isnan(x)).astype(means.dtype)
    filled = np.where(seen > 0, x, 0.0).astype(means.dtype)
    log_n, kept = np.empty((B, K), means.dtype), []
    for k in range(K):
        S, w = factor[k], seen / a[k]
        gram = (S[:, :, None] * S[:, None, :]).reshape(D, R * R)
        inner = (w @ gram).reshape(B, R, R)
        inner[:, range(R), range(R)] += 1.0
        e = filled - seen * means[k]
        inverse = np.linalg.inv(inner)
        t = (inverse @ ((w * e) @ S)[:, :, None])[:, :, 0]  # M^-1 S' W e = S' u
        u = w * (e - t @ S.T)  # the marginal's inverse times e
        log_det = seen @ np.log(a[k]) + np.linalg.slogdet(inner)[1]
        log_n[:, k] = -0.5 * (seen.sum(axis=1) * LOG_2PI + log_det + (e * u).sum(axis=1))
        kept.append((w, t, u, inverse))

    def backward(g):
        to_means, to_a, to_factor = np.empty_like(means), np.empty_like(a), np.empty_like(factor)
        for k, (w, t, u, inverse) in enumerate(kept):
            S, weighted = factor[k], g[:, k, None] * u
            solved = np.einsum("drs,ds->dr", ((g[:, k, None] * w).T @ inverse.reshape(B, R * R)).reshape(D, R, R), S)
            to_means[k] = weighted.sum(axis=0)
            to_factor[k] = weighted.T @ t - solved  # sum g (u t' - W S M^-1)
            diagonal = g[:, k] @ w - (solved * S).sum(axis=1) / a[k]  # of the marginals' inverses
            to_a[k] = 0.5 * ((weighted * u).sum(axis=0) - diagonal)
        return to_means, to_a, to_factor

    return log_n, backward


def _softmax(logits, starts, sizes):
    """Softmax within groups, and its logarithm."""
    shifted = logits - np.repeat(np.maximum.reduceat(logits, starts), sizes)
    log_total = np.log(np.add.reduceat(np.exp(shifted), starts))
    log_p = shifted - np.repeat(log_total, sizes)
    return np.exp(log_p), log_p


@dataclass(frozen=True)
class State:
    """Where training stands; arrays are float32 and flat."""

    flat: np.ndarray
    moment: np.ndarray
    moment2: np.ndarray
    steps: int
    best: np.ndarray
    best_error: float  # validation error of ``best``; infinite without validation
    best_epoch: int


def begin(model: Classifier, options: HybridOptions) -> tuple[State, Layout]:
    flat, layout = pack(model, options)
    return State(flat, np.zeros_like(flat), np.zeros_like(flat), 0, flat.copy(), np.inf, 0), layout


def run_epoch(state: State, layout: Layout, x, y, options: HybridOptions, epoch: int, rng):
    """One pass over float32 samples in random batches: ``(State, mean loss)``. ``epoch`` counts from 1."""
    kappa = options.labelled if (y < 0).any() else 1.0
    flat, moment, moment2 = state.flat.copy(), state.moment.copy(), state.moment2.copy()
    rate = options.rate * options.decay ** ((epoch - 1) / max(options.epochs - 1, 1))
    first, second, tiny = ADAM
    order, losses, steps = rng.permutation(len(x)), [], state.steps
    for at in range(0, len(x), options.batch):
        rows = order[at : at + options.batch]
        loss, gradient = loss_gradient(flat, layout, x[rows], y[rows], options, kappa)
        steps += 1
        losses.append(loss * len(rows))
        moment += (1.0 - first) * (gradient - moment)
        moment2 += (1.0 - second) * (gradient * gradient - moment2)
        size = rate * np.sqrt(1.0 - second**steps) / (1.0 - first**steps)
        flat -= np.float32(size) * moment / (np.sqrt(moment2) + np.float32(tiny))
    mean = sum(losses) / len(x)
    if not (np.isfinite(mean) and np.isfinite(flat).all()):
        raise MargoError(f"hybrid training diverged in epoch {epoch} (loss {mean:.4g}): lower --rate or raise --ridge")
    return replace(state, flat=flat, moment=moment, moment2=moment2, steps=steps), mean


def keep_best(state: State, layout: Layout, epoch: int, validation) -> tuple[State, float | None]:
    """``state`` with the best model so far by validation error; without validation the latest is the best."""
    if validation is None:
        return replace(state, best=state.flat, best_epoch=epoch), None
    x, y = validation
    error = float((log_joint(unpack(state.flat, layout), x).argmax(axis=1) != y).mean())
    if error < state.best_error:
        return replace(state, best=state.flat, best_error=error, best_epoch=epoch), error
    return state, error


def prepare(x, y, classes: int, precision: bool = False):
    """Training samples as float32, checked; unlabelled ones (-1) are welcome, and missing values for covariances."""
    x, y = check_samples(x, y, classes)
    if precision and np.isnan(x).any():
        raise MargoError(
            f"{int(np.isnan(x).any(axis=1).sum())} training samples have missing values: hybrid training takes them "
            "with covariances of low rank (--precision false)"
        )
    return x.astype(np.float32), y


def fit(model: Classifier, x, y, options: HybridOptions, seed: int = 0, validation=None):
    """``(Classifier, reports)``: hybrid training from ``model``, the epoch chosen on ``validation = (x, y)``."""
    state, layout = begin(model, options)
    x, y = prepare(x, y, model.classes, layout.precision)
    reports = []
    for epoch in range(1, options.epochs + 1):
        state, report, done = advance(state, layout, x, y, options, epoch, seed, validation)
        reports.append({"iteration": epoch, **report})
        if done:
            break
    return unpack(state.best, layout), reports


def advance(state: State, layout: Layout, x, y, options: HybridOptions, epoch: int, seed: int, validation=None):
    """One epoch and its validation: ``(State, report, done)``; its random order depends on seed and epoch only."""
    state, loss = run_epoch(state, layout, x, y, options, epoch, np.random.default_rng([seed, epoch]))
    state, error = keep_best(state, layout, epoch, validation)
    report = {"objective": -loss, "frames": len(x)}
    if error is not None:
        report |= {"validation_error": 100 * error, "best_epoch": state.best_epoch}
    done = epoch >= options.epochs or (options.patience > 0 and epoch - state.best_epoch >= options.patience)
    return state, report, done

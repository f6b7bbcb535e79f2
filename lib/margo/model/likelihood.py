"""Log-likelihoods of frames under the states of a pool, as matrix products.

``log w N(x; mu, v) = [x^2, x, 1] . [-1/2v, mu/v, log w - sum(log 2 pi v + mu^2/v)/2]`` for all frames and Gaussians at
once. The products run in float32 by default (twice the speed of float64; both frames and means are first taken about
the pool's centre, since the expanded square cancels badly far from zero: what remains is about 1e-4 nats a frame); sums
over time are the searches' and run in float64. ``dtype=np.float64`` gives everything in float64.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numba import njit

from margo.model.pool import NEVER, GaussianPool

BLOCK = 1 << 18  # elements of the [C, T] product made at a time: about a megabyte, so that it stays in cache


@dataclass(frozen=True, eq=False)
class Scorer:
    """A pool, or some of its states, as one matrix.

    states int [S'] (pool states, in the order of the columns of the results), gaussians int [C] (pool Gaussian of each
    row of ``matrix``), starts int [S' + 1] (rows of each state), matrix [C, 2D + 1], centre [D].
    """

    pool: GaussianPool
    states: np.ndarray
    gaussians: np.ndarray
    starts: np.ndarray
    matrix: np.ndarray
    centre: np.ndarray


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Frames under a scorer, with what is needed to share a state's posterior out over its components.

    extended [T, 2D + 1], log_likelihoods float64 [T, S'], shares [C, T] (component likelihoods relative to the best of
    the state), totals [S', T] (their sums): the posterior of a component within its state is shares / totals.
    """

    extended: np.ndarray
    log_likelihoods: np.ndarray
    shares: np.ndarray
    totals: np.ndarray


def centre_of(pool: GaussianPool) -> np.ndarray:
    """The point about which products and statistics are taken, [D]."""
    return pool.centre


def scorer(pool: GaussianPool, states=None, dtype=np.float32) -> Scorer:
    """Compile ``states`` of ``pool`` (all by default) for :func:`log_likelihoods` and :func:`evaluate`."""
    states = np.arange(pool.n_states) if states is None else np.asarray(states, np.int64)
    sizes = pool.sizes[states]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    gaussians = np.arange(starts[-1]) + np.repeat(pool.offsets[states] - starts[:-1], sizes)
    return Scorer(pool, states, gaussians, starts, pool.exponents[gaussians].astype(dtype), pool.centre)


def extend(compiled: Scorer, x: np.ndarray) -> np.ndarray:
    """``[y^2, y, 1]`` of centred frames y, [T, 2D + 1], in the scorer's precision."""
    dimension = compiled.pool.dimension
    if x.ndim != 2 or x.shape[1] != dimension:
        raise ValueError(f"frames have shape {x.shape}, the model expects [T, {dimension}]")
    extended = np.empty((len(x), 2 * dimension + 1), compiled.matrix.dtype)
    centred = extended[:, dimension : 2 * dimension]
    np.subtract(x, compiled.centre.astype(extended.dtype), out=centred)
    np.multiply(centred, centred, out=extended[:, :dimension])
    extended[:, -1] = 1
    return extended


def log_likelihoods(compiled: Scorer, x: np.ndarray) -> np.ndarray:
    """``log p(x_t | s)``, float64 [T, S'], of frames x [T, D].

    A NaN in ``x`` is a missing value: its dimension is integrated out, which for a diagonal Gaussian means left out.
    """
    if np.isnan(x).any():
        return _log_likelihoods_missing(compiled, x)
    extended = extend(compiled, x)
    out = np.empty((len(x), len(compiled.states)))
    for place, block in _blocks(compiled, extended):
        logs, _ = _reduce(compiled, block)
        out[place] = logs.T
    return out


def log_likelihoods_of_many(compiled: Scorer, frames: list[np.ndarray], batch: int = 4096) -> Iterator[np.ndarray]:
    """:func:`log_likelihoods` of each of many short utterances, some at a time: products like long matrices."""
    lengths = np.array([len(x) for x in frames], np.int64)
    groups = np.cumsum(lengths) // batch
    for group in np.unique(groups):
        members = np.flatnonzero(groups == group)
        together = log_likelihoods(compiled, np.concatenate([frames[i] for i in members]))
        yield from np.split(together, np.cumsum(lengths[members])[:-1])


def evaluate(compiled: Scorer, x: np.ndarray) -> Evaluation:
    """As :func:`log_likelihoods`, keeping the components' shares for :mod:`margo.estimate.stats`; x without NaN."""
    extended = extend(compiled, x)
    shares = compiled.matrix @ extended.T
    logs, totals = _reduce(compiled, shares)
    return Evaluation(extended, np.ascontiguousarray(logs.T, np.float64), shares, totals)


def path_components(pool: GaussianPool, x: np.ndarray, states: np.ndarray) -> np.ndarray:
    """``log w_m N(x_t; m)`` for the components m of the one state ``states[t]`` of each frame, float64 [T, M].

    M is the largest number of components in the pool; columns beyond a state's own are -inf. Component m of frame t is
    Gaussian ``pool.offsets[states[t]] + m``. Missing values (NaN) are integrated out.
    """
    out = np.full((len(x), int(pool.sizes.max())), -np.inf)
    _path_components(
        np.asarray(x, np.float64), np.asarray(states, np.int64), pool.means, pool.variances,
        pool.log_weights, pool.offsets, out,
    )  # fmt: skip
    return out


def best_gaussians(pool: GaussianPool, x: np.ndarray, states: np.ndarray) -> np.ndarray:
    """Pool index of the likeliest Gaussian of ``states[t]`` for each frame, int [T] (the first of equals)."""
    return pool.offsets[np.asarray(states)] + path_components(pool, x, states).argmax(axis=1)


def _blocks(compiled: Scorer, extended: np.ndarray):
    """(frames, products [C, t]) a block at a time, all in one buffer."""
    rows, frames = len(compiled.gaussians), len(extended)
    step = max(32, BLOCK // rows)
    buffer = np.empty(rows * min(step, frames), extended.dtype)
    for first in range(0, frames, step):
        part = extended[first : first + step]
        block = buffer[: rows * len(part)].reshape(rows, len(part))
        np.matmul(compiled.matrix, part.T, out=block)
        yield slice(first, first + len(part)), block


def _reduce(compiled: Scorer, block: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Log-sum-exp over the rows of each state, [S', T], and the sums; ``block`` [C, T] becomes exp(block - peak)."""
    peaks = np.empty((len(compiled.states), block.shape[1]), block.dtype)
    totals = np.empty_like(peaks)
    reduce = _reduce_single if block.dtype == np.float32 else _reduce_double
    reduce(block, compiled.starts, peaks, totals)
    return peaks + np.log(totals), totals


def _log_likelihoods_missing(compiled: Scorer, x: np.ndarray) -> np.ndarray:
    """The slower path with a mask [T, D]: each dimension's constant counts only where it is observed."""
    pool, dimension, dtype = compiled.pool, compiled.pool.dimension, compiled.matrix.dtype
    observed = ~np.isnan(x)
    centred = np.where(observed, x - compiled.centre, 0).astype(dtype)
    means, variances = pool.means[compiled.gaussians] - compiled.centre, pool.variances[compiled.gaussians]
    constants = (-0.5 * (np.log(2 * np.pi * variances) + means**2 / variances)).astype(dtype)
    weights = np.maximum(pool.log_weights[compiled.gaussians], NEVER).astype(dtype)
    block = compiled.matrix[:, :dimension] @ (centred**2).T
    block += compiled.matrix[:, dimension : 2 * dimension] @ centred.T
    block += constants @ observed.T.astype(dtype)
    block += weights[:, None]
    return np.ascontiguousarray(_reduce(compiled, block)[0].T, np.float64)


@njit(cache=True, inline="always")
def _peaks(block, first, last, peak):
    peak[:] = block[first]
    for row in range(first + 1, last):
        for t in range(len(peak)):
            peak[t] = block[row, t] if block[row, t] > peak[t] else peak[t]


@njit(cache=True, inline="always")
def _exp(x):
    """exp of a float32 up to zero, to 6e-8 absolute, in operations that the compiler can vectorise (a call to the
    library's exp cannot be): 2^z = 2^n 2^f with n the nearest integer, put into the exponent's bits, and 2^f, f between
    -1/2 and 1/2, the Taylor polynomial of exp(f log 2)."""
    z = x * np.float32(1 / np.log(2))
    z = z if z > np.float32(-126) else np.float32(-126)
    n = np.int32(z - np.float32(0.5))
    f = (z - np.float32(n)) * np.float32(np.log(2))
    p = np.float32(1 / 720) * f + np.float32(1 / 120)
    p = p * f + np.float32(1 / 24)
    p = p * f + np.float32(1 / 6)
    p = p * f + np.float32(1 / 2)
    p = p * f + np.float32(1)
    p = p * f + np.float32(1)
    return p * np.int32((n + np.int32(127)) << np.int32(23)).view(np.float32)


@njit(cache=True)
def _reduce_single(block, starts, peaks, totals):
    for state in range(len(starts) - 1):
        peak, total = peaks[state], totals[state]
        _peaks(block, starts[state], starts[state + 1], peak)
        total[:] = 0
        for row in range(starts[state], starts[state + 1]):
            for t in range(len(peak)):
                share = _exp(block[row, t] - peak[t])
                block[row, t] = share
                total[t] += share


@njit(cache=True)
def _reduce_double(block, starts, peaks, totals):
    for state in range(len(starts) - 1):
        peak, total = peaks[state], totals[state]
        _peaks(block, starts[state], starts[state + 1], peak)
        total[:] = 0
        for row in range(starts[state], starts[state + 1]):
            for t in range(len(peak)):
                block[row, t] = np.exp(block[row, t] - peak[t])
                total[t] += block[row, t]


@njit(cache=True)
def _path_components(x, states, means, variances, log_weights, offsets, out):
    for t in range(len(x)):
        first = offsets[states[t]]
        for k in range(first, offsets[states[t] + 1]):
            value = 0.0
            for d in range(x.shape[1]):
                if not np.isnan(x[t, d]):
                    value += np.log(2 * np.pi * variances[k, d]) + (x[t, d] - means[k, d]) ** 2 / variances[k, d]
            out[t, k - first] = log_weights[k] - 0.5 * value

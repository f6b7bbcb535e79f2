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

from margo.gaussian.pool import NEVER, GaussianPool
from margo.gaussian.room import Room

BLOCK = 1 << 16  # elements of the product made at a time: a quarter of a megabyte, so that it stays in cache
VECTOR = 16  # extended frames are whole vectors of this many numbers


@dataclass(frozen=True, eq=False)
class Scorer:
    """A pool, or some of its states, as one matrix.

    states int [S'] (pool states, in the order of the columns of the results), gaussians int [M, S'] (pool Gaussian of
    the m-th component of each state, -1 for none: M is the largest number), matrix [W, M S'] (a column for each of
    these, W being 2D + 1 and some zeros, see :func:`extend`), centre [D].
    """

    pool: GaussianPool
    states: np.ndarray
    gaussians: np.ndarray
    matrix: np.ndarray
    centre: np.ndarray


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Frames under a scorer, with what is needed to share a state's posterior out over its components.

    extended [T, W], log_likelihoods float64 [T, S'], shares [T, M, S'] (component likelihoods relative to the best of
    the state), totals [T, S'] (their sums): the posterior of a component within its state is shares / totals.
    """

    extended: np.ndarray
    log_likelihoods: np.ndarray
    shares: np.ndarray
    totals: np.ndarray


def scorer(pool: GaussianPool, states=None, dtype=np.float32) -> Scorer:
    """Compile ``states`` of ``pool`` (all by default) for :func:`log_likelihoods` and :func:`evaluate`."""
    states = np.arange(pool.n_states) if states is None else np.asarray(states, np.int64)
    components = np.arange(pool.sizes[states].max())[:, None]
    gaussians = np.where(components < pool.sizes[states], pool.offsets[states] + components, -1)
    exponents = pool.exponents
    matrix = np.zeros((_width(pool.dimension), gaussians.size), dtype)
    matrix[: exponents.shape[1]] = exponents.T[:, gaussians.ravel()]
    matrix[:, gaussians.ravel() < 0] = 0
    matrix[2 * pool.dimension, gaussians.ravel() < 0] = NEVER
    return Scorer(pool, states, gaussians, matrix, pool.centre)


def _width(dimension: int) -> int:
    """``2 D + 1`` rounded up to whole vectors."""
    return -(-(2 * dimension + 1) // VECTOR) * VECTOR


def extend(compiled: Scorer, x: np.ndarray, room: Room) -> np.ndarray:
    """``[y^2, y, 1, 0 ...]`` of centred frames y, [T, W], in the scorer's precision."""
    dimension = compiled.pool.dimension
    if x.ndim != 2 or x.shape[1] != dimension:
        raise ValueError(f"frames have shape {x.shape}, the model expects [T, {dimension}]")
    extended = room.array("extended", (len(x), len(compiled.matrix)), compiled.matrix.dtype)
    centred = extended[:, dimension : 2 * dimension]
    np.subtract(x, compiled.centre.astype(extended.dtype), out=centred)
    np.multiply(centred, centred, out=extended[:, :dimension])
    extended[:, 2 * dimension] = 1
    extended[:, 2 * dimension + 1 :] = 0
    return extended


def log_likelihoods(compiled: Scorer, x: np.ndarray) -> np.ndarray:
    """``log p(x_t | s)``, float64 [T, S'], of frames x [T, D].

    A NaN in ``x`` is a missing value: its dimension is integrated out, which for a diagonal Gaussian means left out.
    """
    if np.isnan(x).any():
        return _log_likelihoods_missing(compiled, x)
    room = Room()
    extended = extend(compiled, x, room)
    out = np.empty((len(x), len(compiled.states)))
    for place in _blocks(compiled, len(x)):
        block = room.array("block", (len(extended[place]), compiled.matrix.shape[1]), extended.dtype)
        totals = room.array("totals", out[place].shape, extended.dtype)
        _densities(compiled, extended[place], block, totals, out[place])
    return out


def log_likelihoods_of_many(compiled: Scorer, frames: list[np.ndarray], batch: int = 4096) -> Iterator[np.ndarray]:
    """:func:`log_likelihoods` of each of many short utterances, some at a time: products like long matrices."""
    for members in batches([len(x) for x in frames], batch):
        together = log_likelihoods(compiled, np.concatenate(frames[members]))
        yield from np.split(together, np.cumsum([len(x) for x in frames[members]])[:-1])


def batches(lengths: list[int], most: int) -> Iterator[slice]:
    """Runs of utterances that have up to ``most`` frames together; one that is longer has a run of its own."""
    first = frames = 0
    for index, length in enumerate(lengths):
        if index > first and frames + length > most:
            yield slice(first, index)
            first, frames = index, 0
        frames += length
    if len(lengths):
        yield slice(first, len(lengths))


def evaluate(compiled: Scorer, x: np.ndarray, room: Room | None = None) -> Evaluation:
    """As :func:`log_likelihoods`, keeping the components' shares for :mod:`margo.estimate.stats`; x without NaN.

    In ``room``, where given, the arrays hold until its next use.
    """
    room = room or Room()
    extended = extend(compiled, x, room)
    shape = len(x), len(compiled.states)
    shares = room.array("shares", (len(x), compiled.matrix.shape[1]), extended.dtype)
    totals, out = room.array("totals", shape, extended.dtype), room.array("log_likelihoods", shape)
    for place in _blocks(compiled, len(x)):
        _densities(compiled, extended[place], shares[place], totals[place], out[place])
    return Evaluation(extended, out, shares.reshape(len(x), *compiled.gaussians.shape), totals)


def flatten(log_likelihoods: np.ndarray, kappa: float, powers: np.ndarray) -> np.ndarray:
    """Puts the kappa-th powers of likelihoods [T, S'] into ``powers``, each frame's relative to its best state's, and
    returns the log-likelihoods of these [T]."""
    peaks = np.empty(len(log_likelihoods))
    power = _flatten_single if powers.dtype == np.float32 else _flatten_double
    power(log_likelihoods, kappa, powers, peaks)
    return peaks


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


def _blocks(compiled: Scorer, frames: int) -> list[slice]:
    """Successive frames whose product stays in cache."""
    step = max(32, BLOCK // compiled.gaussians.size)
    return [slice(first, min(first + step, frames)) for first in range(0, frames, step)]


def _densities(compiled: Scorer, extended, shares, totals, out) -> None:
    """Fills ``shares`` [T, M S'], ``totals`` [T, S'] and log-likelihoods ``out`` [T, S'] of some frames."""
    np.matmul(extended, compiled.matrix, out=shares)
    _reduce(compiled, shares, totals, out)


def _reduce(compiled: Scorer, block: np.ndarray, totals: np.ndarray, out: np.ndarray) -> None:
    """Log-sum-exp over the components of each state into ``out`` [T, S'], the sums relative to the largest into
    ``totals`` [T, S']; ``block`` [T, M S'] becomes exp(block - largest)."""
    reduce = _reduce_single if block.dtype == np.float32 else _reduce_double
    reduce(block.reshape(len(block), *compiled.gaussians.shape), totals, out)


def _log_likelihoods_missing(compiled: Scorer, x: np.ndarray) -> np.ndarray:
    """The slower path with a mask [T, D]: each dimension's constant counts only where it is observed."""
    pool, dimension, dtype = compiled.pool, compiled.pool.dimension, compiled.matrix.dtype
    gaussians = compiled.gaussians.ravel()
    observed = ~np.isnan(x)
    centred = np.where(observed, x - compiled.centre, 0).astype(dtype)
    means, variances = pool.means[gaussians] - compiled.centre, pool.variances[gaussians]
    constants = (-0.5 * (np.log(2 * np.pi * variances) + means**2 / variances)).astype(dtype)
    weights = np.where(gaussians < 0, NEVER, np.maximum(pool.log_weights[gaussians], NEVER)).astype(dtype)
    block = centred**2 @ compiled.matrix[:dimension]
    block += centred @ compiled.matrix[dimension : 2 * dimension]
    block += observed.astype(dtype) @ constants.T
    block += weights
    out = np.empty((len(x), len(compiled.states)))
    _reduce(compiled, block, np.empty(out.shape, dtype), out)
    return out


@njit(cache=True, inline="always")
def _exp(x):
    """exp of a float32 up to zero, to 2e-7 absolute, in operations that the compiler can vectorise (a call to the
    library's exp cannot be): 2^z = 2^n 2^f with n the nearest integer, which adding a large number leaves in the lowest
    bits, to be added to the exponent of 2^f; that is a polynomial of least relative error, f from -1/2 to 1/2."""
    x = x if x > np.float32(-87) else np.float32(-87)
    shifted = x * np.float32(1 / np.log(2)) + np.float32(1.5 * 2**23)
    f = x * np.float32(1 / np.log(2)) - (shifted - np.float32(1.5 * 2**23))
    p = np.float32(0.0013276468) * f + np.float32(0.009675541)
    p = p * f + np.float32(0.055507135)
    p = p * f + np.float32(0.2402212)
    p = p * f + np.float32(0.69314694)
    p = p * f + np.float32(1)
    power = np.float32(shifted).view(np.int32) << np.int32(23)
    return np.int32(np.float32(p).view(np.int32) + power).view(np.float32)


@njit(cache=True, inline="always")
def _log(x):
    """log of a float32 of 1 or more, to 3e-7 absolute, vectorisable as _exp is: of x = 2^n m, m about 1, n log 2 plus
    the series of 2 artanh((m - 1) / (m + 1))."""
    bits = np.float32(x).view(np.int32)
    n = np.int32(np.int32(bits - np.int32(0x3F3504F3)) >> np.int32(23))  # less the bits of sqrt(1/2)
    m = np.int32(bits - np.int32(n << np.int32(23))).view(np.float32)
    s = (m - np.float32(1)) / (m + np.float32(1))
    p = np.float32(2 / 9) * s * s + np.float32(2 / 7)
    p = p * s * s + np.float32(2 / 5)
    p = p * s * s + np.float32(2 / 3)
    p = p * s * s + np.float32(2)
    return np.float32(n) * np.float32(np.log(2)) + s * p


@njit(cache=True, fastmath={"contract"}, error_model="numpy")
def _reduce_single(block, totals, out):
    frames, components, states = block.shape
    flat, peak = block.reshape(frames, components * states), np.empty(states, np.float32)
    for t in range(frames):
        total = totals[t]
        peak[:] = block[t, 0]
        if components == 1:
            block[t, 0] = 1
            total[:] = 1
        else:
            for m in range(1, components):
                line = block[t, m]
                for s in range(states):
                    peak[s] = line[s] if line[s] > peak[s] else peak[s]
            for m in range(components):
                line = block[t, m]
                for s in range(states):
                    line[s] -= peak[s]
            everything = flat[t]
            for i in range(len(everything)):  # one long loop: states may be few
                everything[i] = _exp(everything[i])
            total[:] = 0
            for m in range(components):
                line = block[t, m]
                for s in range(states):
                    total[s] += line[s]
            for s in range(states):
                peak[s] += _log(total[s])
        out[t] = peak


@njit(cache=True)
def _reduce_double(block, totals, out):
    frames, components, states = block.shape
    for t in range(frames):
        for s in range(states):
            peak, total = block[t, :, s].max(), 0.0
            for m in range(components):
                block[t, m, s] = np.exp(block[t, m, s] - peak)
                total += block[t, m, s]
            totals[t, s], out[t, s] = total, peak + np.log(total)


@njit(cache=True, fastmath={"nnan", "nsz"}, inline="always")
def _peak(row):
    peak = row[0]
    for s in range(1, len(row)):
        peak = row[s] if row[s] > peak else peak
    return peak


@njit(cache=True, fastmath={"contract", "nnan", "nsz"})
def _flatten_single(scores, kappa, powers, peaks):
    for t in range(len(scores)):
        peak = peaks[t] = _peak(scores[t])
        for s in range(scores.shape[1]):
            powers[t, s] = _exp(np.float32(kappa * (scores[t, s] - peak)))


@njit(cache=True)
def _flatten_double(scores, kappa, powers, peaks):
    for t in range(len(scores)):
        peak = peaks[t] = _peak(scores[t])
        for s in range(scores.shape[1]):
            powers[t, s] = np.exp(kappa * (scores[t, s] - peak))


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

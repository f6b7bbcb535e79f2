"""Maximum-likelihood mixtures by EM, one for each class: any type of covariance that can be fitted, tied or not.

Samples may have missing values (NaN): the expected statistics take their place, so EM still climbs the likelihood
of what was observed.
"""

from dataclasses import dataclass

import numpy as np

from margo.errors import MargoError
from margo.gaussian.covariances import FITTED, Diagonal, Full, LowRank, low_rank
from margo.gaussian.kmeans import any_points, distinct_points, far_points, kmeans
from margo.gaussian.mixtures import by_mixture
from margo.gaussian.moments import Moments
from margo.gaussian.pool import GaussianPool
from margo.knobs import Knobs, knob

# Below this occupancy a Gaussian has no data to speak of: it keeps its parameters and loses its weight.
IDLE = 1e-6
FAR = 10.0  # standard deviations
CHUNK_ENTRIES = 4_000_000  # samples times Gaussians whose posteriors are held at once
# Seeds and Lloyd steps of each start. The last is broad: the variances of all data, equal weights ([L04] 6).
STARTS = {"kmeans": (far_points, 20), "random": (distinct_points, 0), "broad": (any_points, 5)}


@dataclass(frozen=True)
class EmOptions(Knobs):
    """Maximum likelihood by EM."""

    mixtures: int = knob(1, "Gaussians per class (fewer where a class has fewer distinct samples)", least=1)
    covariance: str = knob("diagonal", "shape of the covariances", tuple(FITTED))
    tied: bool = knob(False, "one covariance for all Gaussians of all classes")
    rank: int = knob(25, "columns of the low-rank part of dplr covariances", least=1)
    start: str = knob(
        "kmeans", "where the means start: k-means centres or random samples with the covariances around them, or "
        "centres with the variances of all data (broad)", tuple(STARTS),
    )  # fmt: skip
    restarts: int = knob(1, "starts, of which the likeliest after training is kept", least=1)
    iterations: int = knob(100, "most iterations", least=1)
    tolerance: float = knob(1e-5, "stop when the log-likelihood per sample rises by less than this")
    ridge: float = knob(1e-3, "added to every variance, as a part of the data's mean variance ([DA08] (4))", least=0)
    floor: float = knob(0.0, "least variance, as a part of the feature's variance", least=0)


def fit(x, y, options: EmOptions, rng) -> tuple[GaussianPool, list[dict]]:
    """``(pool, reports)``: a mixture for each of the classes ``y[N]`` of samples [N, D]; of several starts the
    likeliest. A report's objective is the mean ``log p(x | c)`` of the pool that the iteration began with."""
    ridge, floor = options.ridge * scale_of(x), options.floor * np.nanvar(x, axis=0)
    best, best_reports = None, []
    for _ in range(options.restarts):
        pool = start(x, y, options, ridge, rng)
        reports = []
        for iteration in range(1, options.iterations + 1):
            pool, objective = iterate(pool, x, y, options, ridge, floor)
            change = objective - reports[-1]["objective"] if reports else np.inf
            reports.append({"iteration": iteration, "objective": float(objective), "frames": len(x)})
            if change < options.tolerance:
                break
        if best is None or reports[-1]["objective"] > best_reports[-1]["objective"]:
            best, best_reports = pool, reports
    return best, best_reports


def scale_of(x) -> float:
    """Mean variance of the features; refuses data in which nothing varies."""
    variances = np.nanvar(x, axis=0)
    if not variances.any():
        raise MargoError(f"training data: all {x.shape[1]} features are constant over {len(x)} samples")
    return float(variances.mean())


def start(x, y, options: EmOptions, ridge: float, rng) -> GaussianPool:
    """Means by the seeds and steps of ``options.start``; weights and covariances from the nearest samples, or broad."""
    spread = np.nanvar(x, axis=0) + ridge
    if not spread.all():
        raise MargoError(f"feature {int(np.argmin(spread))} is constant in the training data: give a --ridge above 0")
    complete = np.where(np.isnan(x), np.nanmean(x, axis=0), x)
    broad = options.start == "broad"
    assigned, centres, sizes = np.empty(len(y), int), [], []
    for c in range(int(y.max()) + 1):
        own = np.flatnonzero(y == c)
        middles, nearest = _clusters(complete[own], options, rng, c)
        used = np.arange(len(middles)) if broad else np.unique(nearest)
        assigned[own] = sum(sizes) + np.searchsorted(used, nearest)
        centres.append(middles[used])
        sizes.append(len(used))
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    K = int(offsets[-1])
    covariances = Diagonal(np.tile(spread, (K, 1)))
    if options.covariance != Diagonal.kind:  # low rank starts full and is cut down in the end
        covariances = Full(covariances.dense())
    means = np.concatenate(centres) if broad else np.tile(np.nanmean(x, axis=0), (K, 1))
    pool = GaussianPool(means, covariances, -np.log(np.repeat(sizes, sizes)), offsets)
    if not broad:
        pool = maximise(pool, _assigned(pool, x, assigned, spread, options, ridge), options, ridge)
    if options.covariance == LowRank.kind:
        cut = low_rank(pool.covariances, options.rank, max(ridge, 1e-8 * spread.mean()))
        pool = GaussianPool(pool.means, cut, pool.log_weights, pool.offsets)
    return pool


def _clusters(points, options: EmOptions, rng, c: int):
    """Centres and nearest ones of a class; a class with fewer distinct points has fewer clusters, unless broad."""
    seeds, steps = STARTS[options.start]
    clusters = options.mixtures
    if options.start == "broad":
        if len(points) < clusters:
            raise MargoError(f"class {c} has {len(points)} samples, too few for {clusters} Gaussians")
    else:
        clusters = min(clusters, len(np.unique(points, axis=0)))
        if clusters == 1:
            return points.mean(axis=0, keepdims=True), np.zeros(len(points), int)
    return kmeans(points, clusters, rng, seeds, steps)


def _assigned(pool: GaussianPool, x, assigned, spread, options: EmOptions, ridge: float) -> Moments:
    """Moments of samples that belong to one Gaussian each."""
    moments = None
    for part in parts(pool, x):
        weights = (assigned[part, None] == np.arange(pool.n_gaussians)).astype(float)
        own = expected(pool, x[part], weights)
        moments = own if moments is None else moments + own
    if ridge == 0 and not options.tied:
        # One sample alone has no spread: lend each Gaussian a little of the data's.
        small = 1e-3 * (spread if moments.second.ndim == 2 else np.diag(spread))
        lent = moments.occupancy.reshape(-1, *[1] * small.ndim) * small
        moments = Moments(moments.centre, moments.occupancy, moments.first, moments.second + lent)
    return moments


def iterate(pool: GaussianPool, x, y, options: EmOptions, ridge: float, floor=0.0):
    """One EM iteration: the new pool, and the mean ``log p(x | c)`` of the one given."""
    log_p, centre = np.empty(len(x)), centre_of(pool)
    K, sums = pool.n_gaussians, pool.covariances.shape
    moments = Moments(centre, np.zeros(K), np.zeros((K, pool.dimension)), np.zeros(sums))
    for rows in parts(pool, x):
        for own, samples, part, shares, log_s in by_mixture(pool, x[rows], y[rows]):
            log_p[rows][own] = log_s
            seen = pool.covariances.take(part).moments(samples, pool.means[part], shares, centre)
            for name in ("occupancy", "first", "second"):
                getattr(moments, name)[part] += getattr(seen, name)
    return maximise(pool, moments, options, ridge, floor), log_p.mean()


def parts(pool: GaussianPool, x) -> list[slice]:
    """Samples in the chunks of a pass, which bound its memory."""
    size = max(1, CHUNK_ENTRIES // pool.n_gaussians)
    return [slice(first, first + size) for first in range(0, len(x), size)]


def expected(pool: GaussianPool, x, weights) -> Moments:
    """Expected moments of samples [N, D] with ``weights[N, K]``."""
    return pool.covariances.moments(x, pool.means, weights, centre_of(pool))


def centre_of(pool: GaussianPool) -> np.ndarray:
    """What moments [D] are taken about: the pool's centre where that is far from the origin; sums of samples near it
    lose no digits as they are."""
    far = np.abs(pool.centre) > FAR * np.sqrt(pool.variances.max(axis=0))
    return np.where(far, pool.centre, 0.0)


def maximise(pool: GaussianPool, moments: Moments, options: EmOptions, ridge: float, floor=0.0) -> GaussianPool:
    """The M-step; covariances become those of the moments plus ``ridge`` ([DA08] (4)), and none is below ``floor``."""
    occupancy = moments.occupancy
    idle = occupancy < IDLE
    counts = np.where(idle, 1.0, occupancy)
    shift = moments.first / counts[:, None]
    means = np.where(idle[:, None], pool.means, moments.centre + shift)
    held = np.maximum(occupancy, IDLE)
    log_weights = np.log(held / np.repeat(np.add.reduceat(held, pool.offsets[:-1]), pool.sizes))
    scatter = moments.scatter(counts, shift)
    if options.tied:
        scatter = np.broadcast_to(np.einsum("k,k...->...", occupancy, scatter) / occupancy.sum(), scatter.shape)
    scatter = scatter + (ridge if scatter.ndim == 2 else ridge * np.eye(pool.dimension))
    covariances = pool.covariances.fitted(scatter, idle & ~np.bool_(options.tied), options.tied)
    if np.any(floor):
        covariances, _ = covariances.floored(floor)
    for k, d, value in covariances.wrong:
        c = int(pool.owners[k])
        raise MargoError(
            f"Gaussian {k - pool.offsets[c]} of class {c} has no spread (direction {d}: variance {value:.3g}): "
            "give a --ridge above 0, or fewer --mixtures"
        )
    return GaussianPool(means, covariances, log_weights, pool.offsets)

"""Maximum-likelihood mixtures by EM: diagonal, full or diagonal-plus-low-rank covariances, tied or not.

Samples may have missing values (NaN): the expected statistics take their place, so EM still climbs the likelihood
of what was observed.
"""

from dataclasses import replace

import numpy as np

from margo.classify.densities import patterns
from margo.classify.gmm import Classifier, check_samples, log_components, to_dplr
from margo.classify.options import EmOptions
from margo.errors import MargoError

# Below this occupancy a Gaussian has no data to speak of: it keeps its parameters and loses its weight.
IDLE = 1e-6
LLOYD_STEPS = 20


def fit(x, y, options: EmOptions, rng, classes: int | None = None):
    """``(Classifier, reports)`` from samples [N, D] and labels [N]; of several starts the likeliest."""
    x, y = check_samples(x, y, classes)
    if (y < 0).any():
        raise MargoError(f"{int((y < 0).sum())} samples have no label; EM needs a label for each")
    ridge = options.ridge * scale_of(x)
    best, best_reports = None, []
    for _ in range(options.restarts):
        model = start(x, y, options, ridge, rng)
        reports = []
        for iteration in range(1, options.iterations + 1):
            model, objective = iterate(model, x, y, options, ridge)
            change = objective - reports[-1]["objective"] if reports else np.inf
            reports.append({"iteration": iteration, "objective": float(objective), "frames": len(x)})
            if change < options.tolerance:
                break
        if best is None or reports[-1]["objective"] > best_reports[-1]["objective"]:
            best, best_reports = model, reports
    return best, best_reports


def scale_of(x) -> float:
    """Mean variance of the features; refuses data in which nothing varies."""
    variances = np.nanvar(x, axis=0)
    if not variances.any():
        raise MargoError(f"training data: all {x.shape[1]} features are constant over {len(x)} samples")
    return float(variances.mean())


def start(x, y, options: EmOptions, ridge: float, rng) -> Classifier:
    """Means from k-means or random samples of each class; weights and covariances from the nearest samples."""
    assigned, sizes = np.empty(len(y), int), []
    for c in range(int(y.max()) + 1):
        own = np.flatnonzero(y == c)
        points = x[own]
        points = np.where(np.isnan(points), np.nanmean(x, axis=0), points)
        nearest = kmeans(points, options.mixtures, rng, LLOYD_STEPS if options.start == "kmeans" else 0)
        assigned[own] = sum(sizes) + nearest
        sizes.append(int(nearest.max()) + 1)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    K, D = int(offsets[-1]), x.shape[1]
    counts = np.bincount(y)
    log_priors = -np.log(len(counts)) * np.ones(len(counts)) if options.uniform_priors else np.log(counts / len(y))
    kind = "diagonal" if options.covariance == "diagonal" else "full"
    spread = np.nanvar(x, axis=0) + ridge
    if not spread.all():
        raise MargoError(f"feature {int(np.argmin(spread))} is constant in the training data: give a --ridge above 0")
    model = Classifier(
        kind=kind, log_priors=log_priors, offsets=offsets, log_weights=np.zeros(K),
        means=np.broadcast_to(np.nanmean(x, axis=0), (K, D)),
        diagonal=np.broadcast_to(spread, (K, D)) if kind == "diagonal" else np.empty((K, 0)),
        factor=np.empty((K, D, 0)) if kind == "diagonal" else np.broadcast_to(np.diag(spread), (K, D, D)),
    )  # fmt: skip
    posteriors = np.zeros((len(x), K))
    posteriors[np.arange(len(x)), assigned] = 1.0
    stats = expected(model, x, posteriors)
    if ridge == 0 and not options.tied:
        # One sample alone has no spread: lend each Gaussian a little of the data's.
        small = 1e-3 * (spread if kind == "diagonal" else np.diag(spread))
        stats = (*stats[:2], stats[2] + stats[0].reshape(-1, *[1] * small.ndim) * small)
    model = maximise(model, stats, options, ridge)
    if options.covariance == "dplr":
        model = to_dplr(model, options.rank, max(ridge, 1e-8 * spread.mean()))
    return model


def kmeans(points, clusters: int, rng, steps: int) -> np.ndarray:
    """[N]: cluster of each point, numbered without gaps; at most as many clusters as there are distinct points."""
    distinct = np.unique(points, axis=0)
    clusters = min(clusters, len(distinct))
    if clusters == 1:
        return np.zeros(len(points), int)
    centres = points[[rng.integers(len(points))]]
    if steps == 0:
        centres = distinct[rng.choice(len(distinct), clusters, replace=False)]
    while len(centres) < clusters:  # k-means++: far points are likelier
        distances = nearest_distances(points, centres)[0]
        centres = np.concatenate([centres, points[[rng.choice(len(points), p=distances / distances.sum())]]])
    for _ in range(steps):
        distances, nearest = nearest_distances(points, centres)
        members = (nearest == np.arange(clusters)[:, None]).astype(float)
        sums, counts = members @ points, members.sum(axis=1)
        moved = np.where(counts[:, None] > 0, sums / np.maximum(counts, 1.0)[:, None], points[np.argmax(distances)])
        if np.array_equal(moved, centres):
            break
        centres = moved
    return np.unique(nearest_distances(points, centres)[1], return_inverse=True)[1].ravel()


def nearest_distances(points, centres):
    """Squared distance to, and index of, the nearest centre of each point."""
    squared = (points**2).sum(1)[:, None] - 2.0 * points @ centres.T + (centres**2).sum(1)
    nearest = squared.argmin(axis=1)
    return np.maximum(squared[np.arange(len(points)), nearest], 0.0), nearest


def responsibilities(model: Classifier, x, y):
    """``p(k | x, c)`` of the Gaussians of each sample's own class [N, K], zero elsewhere; and ``log p(x, c)`` [N]."""
    posteriors, log_p = np.zeros((len(x), len(model.means))), np.empty(len(x))
    for c in range(model.classes):
        own, part = y == c, slice(model.offsets[c], model.offsets[c + 1])
        log_k = log_components(_part(model, part), x[own]) + model.log_weights[part]
        total = np.logaddexp.reduce(log_k, axis=1)
        posteriors[own, part] = np.exp(log_k - total[:, None])
        log_p[own] = total + model.log_priors[c]
    return posteriors, log_p


def _part(model, part):
    return replace(model, means=model.means[part], diagonal=model.diagonal[part], factor=model.factor[part])


def iterate(model: Classifier, x, y, options: EmOptions, ridge: float):
    """One EM iteration: the new model, and the mean ``log p(x, c)`` of the one given."""
    posteriors, log_p = responsibilities(model, x, y)
    return maximise(model, expected(model, x, posteriors), options, ridge), log_p.mean()


def expected(model: Classifier, x, posteriors):
    """Expected statistics ``(occupancy[K], first[K, D], second)``; second is [K, D] if diagonal, else [K, D, D]."""
    occupancy = posteriors.sum(axis=0)
    seen = ~np.isnan(x)
    if model.kind == "diagonal":
        filled = np.where(seen, x, 0.0)
        unseen = posteriors.T @ (~seen).astype(float)
        first = posteriors.T @ filled + unseen * model.means
        return occupancy, first, posteriors.T @ filled**2 + unseen * (model.means**2 + model.diagonal)
    if seen.all():
        first, second = np.empty_like(model.means), np.empty((*model.means.shape, x.shape[1]))
        for a, b in zip(model.offsets[:-1], model.offsets[1:]):  # most samples are of other classes
            rows = np.flatnonzero(posteriors[:, a:b].any(axis=1))
            own, weights = x[rows], posteriors[rows, a:b].T
            first[a:b] = weights @ own
            for k in range(a, b):
                second[k] = (own * weights[k - a, :, None]).T @ own
        return occupancy, first, second
    matrices = _covariances(model)
    first, second = np.zeros_like(model.means), np.zeros((*model.means.shape, x.shape[1]))
    for rows, known in patterns(x):
        gap = ~known
        for k in np.flatnonzero(posteriors[rows].any(axis=0)):
            w = posteriors[rows, k]
            full = x[rows]
            if gap.any():  # Ghahramani & Jordan (1993): conditional mean and covariance of what is missing
                gain = np.linalg.solve(matrices[k][np.ix_(known, known)], matrices[k][np.ix_(known, gap)]).T
                full[:, gap] = model.means[k, gap] + (x[rows][:, known] - model.means[k, known]) @ gain.T
                rest = matrices[k][np.ix_(gap, gap)] - gain @ matrices[k][np.ix_(known, gap)]
                second[k][np.ix_(gap, gap)] += w.sum() * rest
            first[k] += w @ full
            second[k] += (full * w[:, None]).T @ full
    return occupancy, first, second


def _covariances(model):
    if model.kind == "full":
        return model.factor
    return np.stack([np.diag(d) + s @ s.T for d, s in zip(model.diagonal, model.factor)])


def maximise(model: Classifier, stats, options: EmOptions, ridge: float) -> Classifier:
    """The M-step; covariances become those of the statistics plus ``ridge`` ([DA08] (4))."""
    occupancy, first, second = stats
    idle = occupancy < IDLE
    safe = np.where(idle, 1.0, occupancy)[:, None]
    means = np.where(idle[:, None], model.means, first / safe)
    held = np.add.reduceat(np.maximum(occupancy, IDLE), model.offsets[:-1])
    log_weights = np.log(np.maximum(occupancy, IDLE) / np.repeat(held, np.diff(model.offsets)))
    model = replace(model, means=means, log_weights=log_weights)
    if model.kind == "diagonal":
        variances = np.maximum(second / safe - means**2, 0.0)
        if options.tied:
            variances = np.broadcast_to((occupancy @ variances) / occupancy.sum(), variances.shape)
        variances = np.where(idle[:, None] & ~np.bool_(options.tied), model.diagonal, variances + ridge)
        _require_positive(model, variances)
        return replace(model, diagonal=variances)
    scatter = second / safe[:, :, None] - means[:, :, None] * means[:, None, :]
    if options.tied:
        scatter = np.broadcast_to(np.einsum("k,kij->ij", occupancy, scatter) / occupancy.sum(), scatter.shape)
    scatter = scatter + ridge * np.eye(means.shape[1])
    if model.kind == "dplr":
        return _factor_analysis(model, scatter, idle, options.tied)
    scatter = np.where(idle[:, None, None] & ~np.bool_(options.tied), model.factor, scatter)
    try:
        np.linalg.cholesky(scatter)
    except np.linalg.LinAlgError:
        _require_positive(model, np.linalg.eigvalsh(scatter))
    return replace(model, factor=scatter)


def _factor_analysis(model, scatter, idle, tied):
    """One EM step of factor analysis on each scatter matrix: ``diag(d) + S S'`` grows likelier (Rubin & Thayer)."""
    diagonal, factor = model.diagonal.copy(), model.factor.copy()
    for k in range(1 if tied else len(scatter)):
        if idle[k] and not tied:
            continue
        d, S = diagonal[k], factor[k]
        scaled = S / d[:, None]
        beta = np.linalg.solve(np.eye(S.shape[1]) + S.T @ scaled, scaled.T)  # S' Sigma^-1, [R, D]
        moment = np.eye(S.shape[1]) - beta @ S + beta @ scatter[k] @ beta.T
        factor[k] = np.linalg.solve(moment, beta @ scatter[k]).T
        diagonal[k] = np.diag(scatter[k]) - np.einsum("dr,rd->d", factor[k], beta @ scatter[k])
    if tied:
        diagonal[:], factor[:] = diagonal[0], factor[0]
    _require_positive(model, diagonal)
    return replace(model, diagonal=diagonal, factor=factor)


def _require_positive(model, values) -> None:
    """``values[K, D]``: variances or eigenvalues."""
    if not (values > 0).all():
        k, d = np.argwhere(~(values > 0))[0]
        c = int(model.owner[k])
        raise MargoError(
            f"Gaussian {k - model.offsets[c]} of class {c} has no spread (direction {d}: variance {values[k, d]:.3g}): "
            "give a --ridge above 0, or fewer --mixtures"
        )

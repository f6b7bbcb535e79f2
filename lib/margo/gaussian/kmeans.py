"""k-means by Lloyd's steps, from one of several kinds of seeds."""

import numpy as np


def far_points(points, clusters: int, rng) -> np.ndarray:
    """k-means++: far points are likelier."""
    centres = points[[rng.integers(len(points))]]
    while len(centres) < clusters:
        distances = nearest_distances(points, centres)[0]
        centres = np.concatenate([centres, points[[rng.choice(len(points), p=distances / distances.sum())]]])
    return centres


def distinct_points(points, clusters: int, rng) -> np.ndarray:
    """Points that differ, any of them as likely."""
    distinct = np.unique(points, axis=0)
    return distinct[rng.choice(len(distinct), clusters, replace=False)]


def any_points(points, clusters: int, rng) -> np.ndarray:
    return points[rng.choice(len(points), clusters, replace=False)]


def kmeans(points, clusters: int, rng, seeds=far_points, steps: int = 20) -> tuple[np.ndarray, np.ndarray]:
    """``(centres[C, D], nearest[N])``: at most ``steps`` steps; a centre with no point goes to the farthest one."""
    centres = seeds(points, clusters, rng)
    for _ in range(steps):
        distances, nearest = nearest_distances(points, centres)
        members = (nearest == np.arange(clusters)[:, None]).astype(float)
        sums, counts = members @ points, members.sum(axis=1)
        moved = np.where(counts[:, None] > 0, sums / np.maximum(counts, 1.0)[:, None], points[np.argmax(distances)])
        if np.array_equal(moved, centres):
            break
        centres = moved
    return centres, nearest_distances(points, centres)[1]


def nearest_distances(points, centres):
    """Squared distance to, and index of, the nearest centre of each point."""
    squared = (points**2).sum(1)[:, None] - 2.0 * points @ centres.T + (centres**2).sum(1)
    nearest = squared.argmin(axis=1)
    return np.maximum(squared[np.arange(len(points)), nearest], 0.0), nearest

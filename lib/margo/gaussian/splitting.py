"""Mixtures that grow by splitting their components, as HTK's HHEd does (MU)."""

import numpy as np

from margo.gaussian.pool import GaussianPool

PERTURBATION = 0.2  # standard deviations


def split(pool: GaussianPool, mixtures: int) -> GaussianPool:
    """Every state grown to ``mixtures`` components.

    Again and again the heaviest component is split: weights halved, means moved by +0.2 and -0.2 standard deviations,
    the copy put last. "Heaviest" counts 1 less for every time a component has been split in this call, and far less for
    one whose log determinant lies 4 standard deviations under the average of all. Dead components are replaced first.
    """
    determinants, steps = pool.covariances.log_determinants(), PERTURBATION * pool.covariances.deviations()
    collapsed = determinants < determinants.mean() - 4 * determinants.std()
    means, parents, weights, sizes = [], [], [], []
    for first, last in zip(pool.offsets[:-1], pool.offsets[1:]):
        mean, parent = list(pool.means[first:last]), list(range(first, last))
        weight = list(np.exp(pool.log_weights[first:last]))
        penalty = [5000.0 * flag for flag in collapsed[first:last]]
        dead = [m for m, value in enumerate(weight) if value == 0]
        for place in [*dead, *range(len(mean), mixtures)]:
            heaviest = int(np.argmax([w - p if w > 0 else -np.inf for w, p in zip(weight, penalty)]))
            step = steps[parent[heaviest]]
            weight[heaviest] /= 2
            penalty[heaviest] += 1
            copy = (mean[heaviest] - step, parent[heaviest], weight[heaviest], penalty[heaviest])
            mean[heaviest] = mean[heaviest] + step
            for column, value in zip((mean, parent, weight, penalty), copy):
                column[place : place + 1] = [value]
        means += mean
        parents += parent
        weights += weight
        sizes.append(len(mean))
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return GaussianPool(np.array(means), pool.covariances.take(parents), np.log(weights), offsets)

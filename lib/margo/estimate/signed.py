"""Statistics that count for and against: what discriminative criteria accumulate, and the gradients made of them."""

from dataclasses import dataclass

import numpy as np

from margo.model.hmm import HmmSet

KINDS = ("means", "variances", "weights", "transitions")


@dataclass(eq=False)
class Signed:
    """Sums about the current means, row 0 of what counts for and row 1 of what counts against, both positive.

    occupancy [2, K], first [2, K, D] = sum w (x - mu_k), second [2, K, D] = sum w (x - mu_k)^2, transitions [2, P].
    """

    occupancy: np.ndarray
    first: np.ndarray
    second: np.ndarray
    transitions: np.ndarray

    @classmethod
    def zeros(cls, hmms: HmmSet) -> "Signed":
        gaussians, dimension = hmms.pool.means.shape
        shape = (2, gaussians, dimension)
        return cls(np.zeros(shape[:2]), np.zeros(shape), np.zeros(shape), np.zeros((2, len(hmms.log_transitions))))

    def __add__(self, other: "Signed") -> "Signed":
        return Signed(
            self.occupancy + other.occupancy,
            self.first + other.first,
            self.second + other.second,
            self.transitions + other.transitions,
        )

    def net(self) -> tuple[np.ndarray, ...]:
        """``(occupancy[K], first[K, D], second[K, D], transitions[P])``: for minus against."""
        return tuple(pair[0] - pair[1] for pair in (self.occupancy, self.first, self.second, self.transitions))


def gradients(hmms: HmmSet, occupancy, first, second, transitions) -> dict[str, np.ndarray]:
    """Gradient of ``sum_t,k gamma_tk log p(x_t, k) + sum counts log a`` in the space in which HMMs are trained.

    From net statistics about the current means: ``means`` [K, D] with respect to mu / sigma at fixed sigma,
    ``variances`` [K, D] to log sigma at fixed mu, ``weights`` [K] and ``transitions`` [P] to the logits whose softmax
    they are. This is the gradient of any criterion whose derivative by log p(x_t, k) and log a these statistics sum.
    """
    pool = hmms.pool
    by_state = np.add.reduceat(occupancy, pool.offsets[:-1])[pool.owners]
    return {
        "means": first / np.sqrt(pool.variances),
        "variances": second / pool.variances - occupancy[:, None],
        "weights": occupancy - np.exp(pool.log_weights) * by_state,
        "transitions": transitions - np.exp(hmms.log_transitions) * row_sums(hmms, transitions),
    }


def row_groups(hmms: HmmSet) -> np.ndarray:
    """Which row of which unit's transition matrix each of the flat transitions is in, int [P]."""
    sizes = np.array([len(unit.log_transitions) for unit in hmms.units])
    return np.repeat(np.arange(sizes.sum()), np.repeat(sizes, sizes))


def row_sums(hmms: HmmSet, values: np.ndarray) -> np.ndarray:
    """``values`` [P] summed over each row of each unit's transition matrix, and put back at every place of it [P]."""
    groups = row_groups(hmms)
    return np.bincount(groups, values)[groups]

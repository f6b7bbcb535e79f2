"""All Gaussians of a system in one flat pool; a state (of an HMM, or a class) is a run of them, its mixture."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from margo.errors import MargoError, refuse
from margo.gaussian.covariances import Covariances, Diagonal, Full

NEVER = -1e30  # log weight of a dead component in products: finite, so that none becomes NaN
MAX_FAULTS = 20  # a broken model is broken everywhere: the first faults tell the story


@dataclass(frozen=True, eq=False)
class GaussianPool:
    """``K`` weighted Gaussians, those of state ``s`` being ``offsets[s]:offsets[s + 1]``.

    means [K, D], covariances (of any type; an array [K, D] is taken as variances, [K, D, D] as full covariances),
    log_weights [K] in float64, offsets int64 [S + 1]. A component of weight zero (``log_weights = -inf``) is allowed as
    long as its state has a living one: that is how a dead component waits for the next split.
    """

    means: np.ndarray
    covariances: Covariances
    log_weights: np.ndarray
    offsets: np.ndarray

    def __post_init__(self):
        for name in ("means", "log_weights"):
            object.__setattr__(self, name, np.ascontiguousarray(getattr(self, name), np.float64))
        if not isinstance(self.covariances, Covariances):
            kind = Full if np.ndim(self.covariances) == 3 else Diagonal
            object.__setattr__(self, "covariances", kind(self.covariances))
        object.__setattr__(self, "offsets", np.ascontiguousarray(self.offsets, np.int64))
        refuse(self.validate(), "Gaussian pool")

    @property
    def variances(self) -> np.ndarray:
        """[K, D]; of covariances that are not diagonal, their diagonals."""
        return self.covariances.variances

    @property
    def n_gaussians(self) -> int:
        return self.means.shape[0]

    @property
    def n_states(self) -> int:
        return len(self.offsets) - 1

    @property
    def dimension(self) -> int:
        return self.means.shape[1]

    @property
    def sizes(self) -> np.ndarray:
        """Components of each state, int [S]."""
        return np.diff(self.offsets)

    @property
    def owners(self) -> np.ndarray:
        """State of each Gaussian, int [K]."""
        return np.repeat(np.arange(self.n_states), self.sizes)

    @cached_property
    def centre(self) -> np.ndarray:
        """The point about which products and statistics are taken, [D]: a float32 value, so that ``x - centre`` is the
        same in both precisions up to rounding of the difference."""
        return self.means.mean(axis=0).astype(np.float32).astype(np.float64)

    @cached_property
    def exponents(self) -> np.ndarray:
        """Rows [K, Q + D + 1] whose product with ``[squares, y, 1]``, y = x - centre, is log w N(x)."""
        quadratic, linear, constants = self.covariances.exponents(self.means - self.centre)
        constants = np.maximum(self.log_weights, NEVER) + constants
        return np.concatenate([quadratic, linear, constants[:, None]], axis=1)

    @property
    def usual(self) -> np.ndarray:
        """Mean log-likelihood [S] of frames that a state draws itself, its components taken to lie far apart:
        ``sum_k w_k (log w_k - (D + D log 2 pi + log |C_k|) / 2)``."""
        peaks = np.maximum(self.log_weights, NEVER) - self.covariances.log_determinants() / 2
        shares = np.exp(self.log_weights) * (peaks - self.dimension * (1 + np.log(2 * np.pi)) / 2)
        return np.add.reduceat(shares, self.offsets[:-1])

    def require(self, kind: str, what: str) -> None:
        """Refuse a pool with other covariances for what needs ``kind``."""
        if self.covariances.kind != kind:
            raise MargoError(f"{what} needs {kind} covariances, the model has {self.covariances.kind} ones")

    def validate(self) -> list[str]:
        """Every fault found, each naming state, component and value; an empty list when all is well."""
        faults = self._shape_faults()
        if faults:
            return faults
        means = [(k, d, self.means[k, d]) for k, d in np.argwhere(~np.isfinite(self.means))]
        for name, wrong, expected in (
            ("mean", means, "a finite number"),
            ("variance", self.covariances.wrong, "a positive number"),
        ):
            for gaussian, dimension, value in wrong[:MAX_FAULTS]:
                faults.append(f"{self.place(gaussian)}, dimension {dimension}: {name} {value}, not {expected}")
        for gaussian in np.flatnonzero(np.isnan(self.log_weights) | (self.log_weights > 1e-6))[:MAX_FAULTS]:
            faults.append(f"{self.place(gaussian)}: log weight {self.log_weights[gaussian]}, not a number up to 0")
        if not faults:
            sums = np.add.reduceat(np.exp(self.log_weights), self.offsets[:-1])
            for state in np.flatnonzero(np.abs(sums - 1) > 1e-3)[:MAX_FAULTS]:
                faults.append(f"state {state}: weights sum to {sums[state]:.6g}, not 1")
        return faults

    def place(self, gaussian: int) -> str:
        """``state s, component m`` (both from 0) of a Gaussian."""
        state = int(np.searchsorted(self.offsets, gaussian, side="right")) - 1
        return f"state {state}, component {gaussian - self.offsets[state]}"

    def take(self, states) -> "GaussianPool":
        """The pool of some of the states, in the order given."""
        states = np.asarray(states)
        rows = np.concatenate([np.arange(self.offsets[s], self.offsets[s + 1]) for s in states])
        offsets = np.concatenate([[0], np.cumsum(self.sizes[states])])
        return GaussianPool(self.means[rows], self.covariances.take(rows), self.log_weights[rows], offsets)

    def _shape_faults(self) -> list[str]:
        if self.means.ndim != 2 or self.means.shape[1] == 0:
            return [f"means have shape {self.means.shape}, not [K, D]"]
        faults = []
        if self.variances.shape != self.means.shape:
            faults.append(f"variances have shape {self.variances.shape}, means {self.means.shape}")
        if self.log_weights.shape != self.means.shape[:1]:
            faults.append(f"log_weights have shape {self.log_weights.shape}, not [{len(self.means)}]")
        offsets = self.offsets
        if offsets.ndim != 1 or len(offsets) < 2 or offsets[0] != 0 or offsets[-1] != len(self.means):
            faults.append(f"offsets do not run from 0 to {len(self.means)}")
        elif (np.diff(offsets) < 1).any():
            faults.append(f"state {int(np.argmin(np.diff(offsets)))} has no Gaussian")
        return faults


def single_gaussians(means: np.ndarray, variances: np.ndarray) -> GaussianPool:
    """A pool with one Gaussian a state; means, variances [S, D]."""
    states = len(means)
    return GaussianPool(means, variances, np.zeros(states), np.arange(states + 1))

"""Covariances of many Gaussians, one class a type; NaN in a sample is a missing value, integrated out exactly.

Samples ``x[N, D]``, Gaussians K. Every type has the same few methods:

    variances          [K, D], the diagonals of the covariances
    dense()            [K, D, D], the covariances themselves
    log_densities      ``log N(x_n; mu_k, Sigma_k)`` [N, K]
    moments            expected moments of weighted samples, what is missing at its expectation
    fitted             the M-step: the likeliest of the type, or a likelier one, for given scatter
    floored            no variance below a floor
    wrong              what is not a covariance, as (Gaussian, dimension, value)

Types that states of HMMs may have (``PRODUCTS``) also say how their log densities are products of matrices, one of
frames and one of Gaussians:

    squares            the squares of frames that the products need [T, Q], Q of them
    exponents          what multiplies squares, frames and 1
    unpacked           moments of squares as second moments
    deviations         [K, D], a step of one standard deviation in every dimension
    log_determinants   [K]

A new type is one more class, with an entry in ``TYPES`` and, where EM is to train it, in ``FITTED``.
"""

from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from margo.errors import MargoError
from margo.gaussian.moments import Moments

LOG_2PI = float(np.log(2.0 * np.pi))
Faults = list[tuple[int, int, float]]


class Covariances:
    """What the types share; the arrays of each have the Gaussians along their first axis."""

    def __post_init__(self):
        for each in fields(self):
            object.__setattr__(self, each.name, np.ascontiguousarray(getattr(self, each.name), np.float64))

    def take(self, rows):
        """Those of some of the Gaussians."""
        return type(self)(*(getattr(self, each.name)[rows] for each in fields(self)))

    @property
    def shape(self) -> tuple[int, ...]:
        """Of second moments."""
        return *self.variances.shape, self.variances.shape[1]

    def moments(self, x, means, weights, centre) -> Moments:
        """Expected moments of samples with ``weights[N, K]`` about ``centre``, second [K, D, D]."""
        matrices = self.dense()
        first, second = np.zeros_like(means), np.zeros_like(matrices)
        by_gaussian = np.ascontiguousarray(weights.T)
        for rows, seen in patterns(x):
            complete, own = seen.all(), None
            for k, of_rows in enumerate(by_gaussian if len(rows) == len(x) else by_gaussian[:, rows]):
                used, before = rows[of_rows != 0], own  # most samples are of other classes
                if not len(used):
                    continue
                w, own = by_gaussian[k][used], used
                if not complete:
                    whole, rest = filled(x[own], seen, means[k], matrices[k])
                    second[k][np.ix_(~seen, ~seen)] += w.sum() * rest
                    y = whole - centre
                elif before is None or not np.array_equal(before, own):  # as the last Gaussian's, of the same class
                    y = x[own] - centre
                first[k] += w @ y
                second[k] += (y * w[:, None]).T @ y
        return Moments(centre, weights.sum(axis=0), first, second)


@dataclass(frozen=True, eq=False)
class Diagonal(Covariances):
    """``variances[K, D]``."""

    variances: np.ndarray
    kind = "diagonal"

    @property
    def shape(self) -> tuple[int, ...]:
        return self.variances.shape

    def log_densities(self, x, means) -> np.ndarray:
        """The sum over the observed dimensions: two products."""
        centre = means.mean(axis=0)
        x, means = x - centre, means - centre
        inverse = 1.0 / self.variances
        constants = LOG_2PI + np.log(self.variances) + means**2 * inverse
        if np.isnan(x).any():
            seen = np.isfinite(x).astype(x.dtype)
            x = np.where(seen > 0, x, 0.0)
            constant = seen @ constants.T
        else:
            constant = constants.sum(axis=1)
        squares = x**2 @ inverse.T  # the sums are taken in place: [N, K] is large
        squares += constant
        squares *= 0.5
        log_p = x @ (means * inverse).T
        log_p -= squares
        return log_p

    def moments(self, x, means, weights, centre) -> Moments:
        """The same, but second [K, D]."""
        seen = ~np.isnan(x)
        y = np.where(seen, x - centre, 0.0)
        first, second = weights.T @ y, weights.T @ y**2
        if not seen.all():
            unseen = weights.T @ (~seen).astype(float)
            first += unseen * (means - centre)
            second += unseen * ((means - centre) ** 2 + self.variances)
        return Moments(centre, weights.sum(axis=0), first, second)

    def exponents(self, means):
        """``(quadratic[K, Q], linear[K, D], constants[K])``: ``log N`` is their product with squares, frames and 1."""
        constants = -0.5 * (np.log(2 * np.pi * self.variances) + means**2 / self.variances).sum(axis=1)
        return -0.5 / self.variances, means / self.variances, constants

    @staticmethod
    def squares(y, out) -> None:
        np.multiply(y, y, out=out)

    @staticmethod
    def unpacked(squares) -> np.ndarray:
        return squares

    def deviations(self) -> np.ndarray:
        return np.sqrt(self.variances)

    def log_determinants(self) -> np.ndarray:
        return np.log(self.variances).sum(axis=1)

    def fitted(self, scatter, keep, tied=False):
        """Variances ``scatter[K, D]`` (all the same where ``tied``), or those there are where ``keep[K]``."""
        return Diagonal(np.where(keep[:, None], self.variances, scatter))

    def floored(self, floor):
        """``(covariances, variances raised)`` with no variance below ``floor`` (number, [D] or [K, D])."""
        return Diagonal(np.maximum(self.variances, floor)), int((self.variances < floor).sum())

    @cached_property
    def wrong(self) -> Faults:
        return _not_positive(self.variances)

    def dense(self) -> np.ndarray:
        return self.variances[:, :, None] * np.eye(self.variances.shape[1])


@dataclass(frozen=True, eq=False)
class Full(Covariances):
    """``matrices[K, D, D]``."""

    matrices: np.ndarray
    kind = "full"

    @property
    def variances(self) -> np.ndarray:
        return np.diagonal(self.matrices, axis1=1, axis2=2)

    def log_densities(self, x, means) -> np.ndarray:
        """Rows and columns of missing values are dropped, pattern by pattern."""
        from scipy.linalg.blas import dtrmm
        from scipy.linalg.lapack import dtrtri, dtrtrs

        log_p = np.empty((len(x), len(means)))
        for rows, seen in patterns(x):
            part, d = x if seen.all() and len(rows) == len(x) else x[np.ix_(rows, seen)], int(seen.sum())
            factors = np.linalg.cholesky(self.matrices[:, seen][:, :, seen])
            half_log_det = np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
            quadratic = np.empty((len(rows), len(means)))
            for k, factor in enumerate(factors):
                delta = (part - means[k, seen]).T
                if len(rows) > d:  # enough samples to pay for the inverse
                    z = dtrmm(1.0, dtrtri(factor, lower=1)[0], delta, lower=1, overwrite_b=1)
                else:
                    z = dtrtrs(factor.T, delta, lower=0, trans=1, overwrite_b=1)[0]
                quadratic[:, k] = np.einsum("dn,dn->n", z, z)
            log_p[rows] = -0.5 * (quadratic + d * LOG_2PI) - half_log_det
        return log_p

    def exponents(self, means):
        """As of diagonal ones; of each pair of dimensions the squares have one product."""
        whitening = np.linalg.inv(np.linalg.cholesky(self.matrices))  # far more exact than the inverse at once
        precisions = whitening.transpose(0, 2, 1) @ whitening
        linear = (precisions @ means[:, :, None])[:, :, 0]
        constants = -0.5 * (means.shape[1] * LOG_2PI + self.log_determinants() + (means * linear).sum(axis=1))
        rows, columns = np.triu_indices(means.shape[1])
        return -0.5 * precisions[:, rows, columns] * np.where(rows == columns, 1.0, 2.0), linear, constants

    @staticmethod
    def squares(y, out) -> None:
        rows, columns = np.triu_indices(y.shape[1])
        np.multiply(y[:, rows], y[:, columns], out=out)

    @staticmethod
    def unpacked(squares) -> np.ndarray:
        dims = int(np.sqrt(2 * squares.shape[1]))
        rows, columns = np.triu_indices(dims)
        matrices = np.empty((len(squares), dims, dims), squares.dtype)
        matrices[:, rows, columns] = matrices[:, columns, rows] = squares
        return matrices

    def deviations(self) -> np.ndarray:
        """By the Cholesky factor, so that the step is as far for the Gaussian as with a diagonal covariance."""
        return np.linalg.cholesky(self.matrices).sum(axis=2)

    def log_determinants(self) -> np.ndarray:
        return np.linalg.slogdet(self.matrices)[1]

    def fitted(self, scatter, keep, tied=False):
        """Covariances ``scatter[K, D, D]``, or those there are where ``keep[K]``."""
        return Full(np.where(keep[:, None, None], self.matrices, scatter))

    def floored(self, floor):
        """No direction has a variance below what a diagonal covariance ``floor`` gives it: for diagonal matrices that
        is :meth:`Diagonal.floored`."""
        floor = np.broadcast_to(floor, self.matrices.shape[:2])
        scale = np.sqrt(np.where(floor > 0, floor, 1e-12 * self.variances))
        scales = scale[:, :, None] * scale[:, None, :]
        values, vectors = np.linalg.eigh(self.matrices / scales)
        low = (values < 1.0) & (floor > 0).any(axis=1)[:, None]
        raised = (vectors * np.maximum(values, 1.0)[:, None, :]) @ vectors.transpose(0, 2, 1) * scales
        return Full(np.where(low.any(axis=1)[:, None, None], raised, self.matrices)), int(low.sum())

    @cached_property
    def wrong(self) -> Faults:
        """Eigenvalues that are not positive; a matrix with values that are not finite is named by one."""
        finite = np.isfinite(self.matrices).all(axis=2)
        if not finite.all():
            return [(int(k), int(d), np.nan) for k, d in np.argwhere(~finite)]
        try:
            np.linalg.cholesky(self.matrices)
        except np.linalg.LinAlgError:
            return _not_positive(np.linalg.eigvalsh(self.matrices))
        return []

    def dense(self) -> np.ndarray:
        return self.matrices


@dataclass(frozen=True, eq=False)
class LowRank(Covariances):
    """Covariances ``diag(d_k) + S_k S_k'`` with ``diagonal[K, D]``, ``factor[K, D, R]`` ([R18] (11)); no D x D matrix
    is formed to classify: without gaps everything is products, with them it works on R x R matrices ([R18] 3.3)."""

    diagonal: np.ndarray
    factor: np.ndarray
    kind = "dplr"
    precision = False

    @property
    def variances(self) -> np.ndarray:
        return self.diagonal + (self.factor**2).sum(axis=2)

    def log_densities(self, x, means) -> np.ndarray:
        gaps = np.isnan(x).any(axis=1)
        log_p = np.empty((len(x), len(means)))
        if not gaps.all():
            log_p[~gaps] = self._log_complete(x[~gaps], means)
        if gaps.any():
            log_p[gaps] = log_with_gaps(x[gaps], means, *self.marginal_form)
        return log_p

    def _log_complete(self, x, means) -> np.ndarray:
        K, D, R = self.factor.shape
        p, V, sign, log_det = self.as_precision()
        centre = means.mean(axis=0)
        x, means = x - centre, means - centre
        offset = np.einsum("kdr,kd->kr", V, means)
        projected = (x @ V.transpose(1, 0, 2).reshape(D, K * R)).reshape(len(x), K, R) - offset
        quadratic = x**2 @ p.T - 2.0 * x @ (means * p).T + (means**2 * p).sum(axis=1)
        return 0.5 * (log_det - D * LOG_2PI - quadratic - sign * (projected**2).sum(axis=2))

    def as_precision(self):
        """Precisions ``diag(p) + sign V V'`` and their log determinants: ``(p[K, D], V[K, D, R], sign, log_det[K])``,
        by Woodbury and the determinant lemma ([R18] (13), (14))."""
        scaled, lower, log_det = self._factorised()
        V = np.linalg.solve(lower, scaled.transpose(0, 2, 1)).transpose(0, 2, 1)
        return 1.0 / self.diagonal, V, -1.0, -log_det

    def _factorised(self):
        """``A^-1 S``, the Cholesky factor of ``I + S' A^-1 S``, and ``log det(A + S S')``."""
        scaled = self.factor / self.diagonal[:, :, None]
        lower = np.linalg.cholesky(np.eye(self.factor.shape[2]) + self.factor.transpose(0, 2, 1) @ scaled)
        log_det = np.log(self.diagonal).sum(axis=1)
        return scaled, lower, log_det + 2.0 * np.log(np.diagonal(lower, axis1=1, axis2=2)).sum(axis=1)

    @cached_property
    def marginal_form(self):
        """Covariances as ``B^(1/2) (I + sign U U') B^(1/2)``: ``(b^(-1/2) [K, D], log(2 pi b) [K, D], U [K, D, R],
        sign)``; the marginal of some dimensions is had by dropping entries of ``b`` and rows of ``U``.

        A covariance ``A + S S'`` has ``b = a`` and ``U = A^(-1/2) S``.
        """
        root = self.factor / np.sqrt(self.diagonal)[:, :, None]
        return 1.0 / np.sqrt(self.diagonal), LOG_2PI + np.log(self.diagonal), root, 1.0

    def fitted(self, scatter, keep, tied=False):
        """One EM step of factor analysis on each scatter matrix: the Gaussians grow likelier (Rubin & Thayer)."""
        diagonal, factor = self.diagonal.copy(), self.factor.copy()
        for k in [0] if tied else np.flatnonzero(~keep):
            d, S = diagonal[k], factor[k]
            scaled = S / d[:, None]
            beta = np.linalg.solve(np.eye(S.shape[1]) + S.T @ scaled, scaled.T)  # S' Sigma^-1, [R, D]
            moment = np.eye(S.shape[1]) - beta @ S + beta @ scatter[k] @ beta.T
            factor[k] = np.linalg.solve(moment, beta @ scatter[k]).T
            diagonal[k] = np.diag(scatter[k]) - np.einsum("dr,rd->d", factor[k], beta @ scatter[k])
        if tied:
            diagonal[:], factor[:] = diagonal[0], factor[0]
        return LowRank(diagonal, factor)

    def floored(self, floor):
        """The diagonal part is at least ``floor``."""
        return type(self)(np.maximum(self.diagonal, floor), self.factor), int((self.diagonal < floor).sum())

    @cached_property
    def wrong(self) -> Faults:
        return _not_positive(self.diagonal)

    def dense(self) -> np.ndarray:
        return self.diagonal[:, :, None] * np.eye(self.diagonal.shape[1]) + self.factor @ self.factor.transpose(0, 2, 1)


class LowRankPrecision(LowRank):
    """The same for the inverses of the covariances ([R18] (12)); what hybrid training makes, EM does not train it."""

    kind = "dplr-precision"
    precision = True

    @property
    def variances(self) -> np.ndarray:
        scale, _, U, _ = self.marginal_form
        return (1.0 - (U**2).sum(axis=2)) / scale**2

    def as_precision(self):
        return self.diagonal, self.factor, 1.0, self._factorised()[2]

    @cached_property
    def marginal_form(self):
        """A precision ``A + S S'`` has the covariance ``A^-1 - A^-1 S (I + S' A^-1 S)^-1 S' A^-1``, so ``b = 1/a``,
        ``U = A^(-1/2) S L^-T`` with ``L L' = I + S' A^-1 S`` and sign -1."""
        root = self.factor / np.sqrt(self.diagonal)[:, :, None]
        lower = np.linalg.cholesky(np.eye(self.factor.shape[2]) + root.transpose(0, 2, 1) @ root)
        solved = np.linalg.solve(lower, root.transpose(0, 2, 1)).transpose(0, 2, 1)
        return np.sqrt(self.diagonal), LOG_2PI - np.log(self.diagonal), np.ascontiguousarray(solved), -1.0

    def dense(self) -> np.ndarray:
        return np.linalg.inv(super().dense())


TYPES = {each.kind: each for each in (Diagonal, Full, LowRank, LowRankPrecision)}
PRODUCTS = {each.kind: each for each in (Diagonal, Full)}
FITTED = {each.kind: each for each in (Diagonal, Full, LowRank)}


def low_rank(covariances, rank: int, least: float, precision: bool = False) -> LowRank:
    """Diagonal or full ``covariances`` (or their inverses) cut down to diagonal plus ``rank`` eigenvectors ([R18]
    4.2.1); each diagonal is at least ``least``."""
    kind = LowRankPrecision if precision else LowRank
    if isinstance(covariances, LowRank):
        raise MargoError(f"the model is {covariances.kind} already; start from diagonal or full covariances")
    if isinstance(covariances, Diagonal):
        diagonal = 1.0 / covariances.variances if precision else covariances.variances
        return kind(np.maximum(diagonal, least), np.zeros((*diagonal.shape, min(rank, diagonal.shape[1]))))
    matrices = np.linalg.inv(covariances.matrices) if precision else covariances.matrices
    values, vectors = np.linalg.eigh(matrices)
    rank = min(rank, matrices.shape[1])
    factor = vectors[:, :, ::-1][:, :, :rank] * np.sqrt(values[:, ::-1][:, None, :rank])
    diagonal = np.diagonal(matrices, axis1=1, axis2=2) - (factor**2).sum(axis=2)
    return kind(np.maximum(diagonal, least), factor)


def patterns(x):
    """Groups of equal missing values: ``[(rows, seen[D]), ...]``."""
    seen = ~np.isnan(x)
    if seen.all():
        return [(np.arange(len(x)), np.ones(x.shape[1], bool))]
    kinds, which = np.unique(seen, axis=0, return_inverse=True)
    which = which.ravel()
    order = np.argsort(which, kind="stable")
    return list(zip(np.split(order, np.cumsum(np.bincount(which))[:-1]), kinds))


def filled(x, seen, mean, matrix):
    """Samples in which the same values are ``seen``, the others at their conditional means under one Gaussian; and the
    conditional covariance of those (Ghahramani & Jordan 1993)."""
    gap = ~seen
    cross = matrix[np.ix_(seen, gap)]
    gain = np.linalg.solve(matrix[np.ix_(seen, seen)], cross)
    whole = x.copy()
    whole[:, gap] = mean[gap] + (x[:, seen] - mean[seen]) @ gain
    return whole, matrix[np.ix_(gap, gap)] - cross.T @ gain


def log_with_gaps(x, means, scale, log_b, U, sign) -> np.ndarray:
    """Log densities where values are missing, from :attr:`LowRank.marginal_form`."""
    from margo.gaussian.lowrank import log_marginals  # numba: loaded where values are missing, not before

    log_p = log_marginals(np.ascontiguousarray(x, float), means, scale, log_b, U, sign)
    if np.isnan(log_p).any():
        k = int(np.isnan(log_p).any(axis=0).argmax())
        raise MargoError(f"Gaussian {k}: its diagonal plus low rank is not positive definite")
    return log_p


def _not_positive(values) -> Faults:
    return [(int(k), int(d), float(values[k, d])) for k, d in np.argwhere(~(np.isfinite(values) & (values > 0)))]

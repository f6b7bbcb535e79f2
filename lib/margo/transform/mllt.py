"""Maximum likelihood linear transform: one matrix after which diagonal covariances fit best (Gales 1999, semi-tied)."""

import numpy as np


def auxiliary(matrix: np.ndarray, counts: np.ndarray, scatters: np.ndarray) -> float:
    """``sum_c n_c (log |det A| - 1/2 log det diag(A S_c A' / n_c)) / sum_c n_c``: log-likelihood a frame of classes
    with one diagonal Gaussian each, up to a constant; counts n [C], scatters S [C, D, D]."""
    variances = np.einsum("id,cde,ie->ci", matrix, scatters, matrix, optimize=True) / counts[:, None]
    logs = np.linalg.slogdet(matrix)[1] - 0.5 * np.log(variances).sum(axis=1)
    return float(counts @ logs / counts.sum())


def mllt(counts: np.ndarray, scatters: np.ndarray, sweeps: int = 20) -> tuple[np.ndarray, list[float]]:
    """``(matrix [D, D], auxiliary before and after each sweep)``; each sweep sets all rows in turn to where the
    function is largest with the others, and the variances, held."""
    seen = counts > scatters.shape[1]
    counts, scatters = counts[seen], scatters[seen]
    matrix = np.eye(scatters.shape[1])
    values, total = [auxiliary(matrix, counts, scatters)], counts.sum()
    for _ in range(sweeps):
        variances = np.einsum("id,cde,ie->ci", matrix, scatters, matrix, optimize=True) / counts[:, None]
        for row in range(len(matrix)):
            weighted = np.tensordot(1 / variances[:, row], scatters, axes=1)
            cofactors = np.linalg.inv(matrix)[:, row]  # up to the determinant, whose size cancels below
            solved = np.linalg.solve(weighted, cofactors)
            matrix[row] = solved * np.sqrt(total / (cofactors @ solved))
        values.append(auxiliary(matrix, counts, scatters))
    return matrix, values

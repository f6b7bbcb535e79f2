"""The alternation of [DA08] 3.2 as printed: matrices by SMO with sample constraints, then means and offsets by an LP.

Kept for comparison. The multipliers gamma of the sample constraints (11) do not make psi semidefinite, and alternating
stops short of the joint optimum; :mod:`margo.classify.smo` does neither.
"""

import numpy as np
from numba import njit
from scipy.optimize import linprog
from scipy.sparse import coo_array

from margo.classify.maxmargin import MarginOptions, Problem, objective, score_samples, unpack_matrices
from margo.classify.smo import water_level
from margo.errors import MargoError

PASSES = 5  # passes of SMO between two linear programs
CUTS = 4  # rounds of adding violated constraints to a linear program
LARGEST = 1e4  # bound on what the linear program leaves free


def fit(problem: Problem, options: MarginOptions, rng):
    """``(packed[K, P], reports)``; ``epochs`` counts passes over the samples."""
    N, dims = problem.x.shape
    K, half = int(problem.offsets[-1]), dims * (dims + 1) // 2
    alpha, gamma = np.zeros((N, K)), np.zeros((N, K))
    psi, tail = np.zeros((K, half)), np.zeros((K, dims + 1))
    reports, before = [], np.inf
    for turn in range(1, max(1, options.epochs // PASSES) + 1):
        shift = problem.s * (problem.x @ tail[:, :-1].T + tail[:, -1])
        for _ in range(PASSES):
            matrix_steps(problem.x, problem.y, problem.responsible, problem.offsets, shift, problem.cost, alpha, gamma,
                         psi, rng.permutation(N))  # fmt: skip
        tail = free_part(problem, psi)
        packed = np.concatenate([psi, tail], axis=1)
        # The ridge of the joint problem's linear part is no part of the paper's objective.
        value = objective(problem, packed) - 0.5 * float((tail**2).sum())
        smallest = float(np.linalg.eigvalsh(unpack_matrices(psi, dims)).min())
        reports.append({"iteration": turn, "objective": -value, "frames": N, "smallest_eigenvalue": smallest})
        if abs(before - value) <= 1e-3 * options.gap * abs(value):
            break
        before = value
    return packed, reports


@njit(cache=True, fastmath=True)
def matrix_steps(x, y, responsible, offsets, shift, cost, alpha, gamma, psi, order):
    """Elementary steps of 3.2.3 for each sample: its alphas at once, then each of its gammas; all change in place."""
    D, (K, half) = x.shape[1], psi.shape
    root2 = np.sqrt(2.0)
    feature, score, wish = np.empty(half), np.empty(K), np.empty(K)
    for i in order:
        at = 0
        for a in range(D):
            feature[at] = x[i, a] * x[i, a]
            at += 1
            for b in range(a + 1, D):
                feature[at] = root2 * x[i, a] * x[i, b]
                at += 1
        norm = 0.0
        for p in range(half):
            norm += feature[p] * feature[p]
        if norm == 0.0:
            continue
        for r in range(K):
            total = 0.0
            for p in range(half):
                total += psi[r, p] * feature[p]
            score[r] = total
        first, last, own = offsets[y[i]], offsets[y[i] + 1], responsible[i]
        held = alpha[i].sum()
        count = 0
        for r in range(K):
            if not first <= r < last:
                gap = 1.0 + score[own] + shift[i, own] - score[r] - shift[i, r]
                wish[count] = gap / norm + held + alpha[i, r]
                count += 1
        level = water_level(wish[:count], cost)
        count = 0
        moved = 0.0
        for r in range(K):
            change = 0.0
            if not first <= r < last:
                value = max(0.0, wish[count] - level)
                change = value - alpha[i, r]
                alpha[i, r] = value
                moved += change
                count += 1
            score[r] += change * norm
            if change != 0.0:
                for p in range(half):
                    psi[r, p] += change * feature[p]
        score[own] -= moved * norm
        for p in range(half):
            psi[own, p] -= moved * feature[p]
        for r in range(K):
            value = max(0.0, gamma[i, r] - score[r] / norm)
            change = value - gamma[i, r]
            if change != 0.0:
                gamma[i, r] = value
                for p in range(half):
                    psi[r, p] += change * feature[p]


def free_part(problem: Problem, psi) -> np.ndarray:
    """[K, D + 1]: the linear and constant parts that minimise the slacks for these matrices, by cutting planes."""
    N, dims = problem.x.shape
    K = len(psi)
    owner = np.repeat(np.arange(len(problem.offsets) - 1), np.diff(problem.offsets))
    extended = problem.s * np.concatenate([problem.x, np.ones((N, 1))], axis=1)
    quadratic = score_samples(problem.x, problem.s, np.concatenate([psi, np.zeros((K, dims + 1))], axis=1))
    samples, rivals = np.empty(0, int), np.empty(0, int)
    tail = np.zeros((K, dims + 1))
    for _ in range(CUTS):
        scores = quadratic + extended @ tail.T
        scores = np.where(owner == problem.y[:, None], np.inf, scores)
        nearest = scores.argmin(axis=1)
        samples, rivals = np.concatenate([samples, np.arange(N)]), np.concatenate([rivals, nearest])
        pairs = np.unique(np.stack([samples, rivals], axis=1), axis=0)
        samples, rivals = pairs.T
        E = len(samples)
        own = problem.responsible[samples]
        rows = np.repeat(np.arange(E), dims + 1)
        columns = (own[:, None] * (dims + 1) + np.arange(dims + 1)).ravel()
        others = (rivals[:, None] * (dims + 1) + np.arange(dims + 1)).ravel()
        values = extended[samples].ravel()
        free = K * (dims + 1)
        matrix = coo_array(
            (np.concatenate([values, -values, -np.ones(E)]),
             (np.concatenate([rows, rows, np.arange(E)]), np.concatenate([columns, others, free + samples]))),
            shape=(E, free + N),
        )  # fmt: skip
        bound = quadratic[samples, rivals] - quadratic[samples, own] - 1.0
        cost = np.concatenate([np.zeros(free), np.ones(N)])
        limits = [(-LARGEST, LARGEST)] * free + [(0, None)] * N
        solved = linprog(cost, A_ub=matrix.tocsr(), b_ub=bound, bounds=limits, method="highs")
        if not solved.success:
            raise MargoError(f"the linear program of the alternation failed: {solved.message}")
        tail = solved.x[:free].reshape(K, dims + 1)
    return tail

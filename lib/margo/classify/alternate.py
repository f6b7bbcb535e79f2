"""The alternation of [DA08] 3.2 as printed: matrices by SMO with sample constraints, then means and offsets by an LP.

Kept for comparison. The multipliers gamma of the sample constraints (11) do not make psi semidefinite, and alternating
stops short of the joint optimum; :mod:`margo.classify.smo` does neither.
"""

import numpy as np
from numba import njit
from scipy.optimize import linprog
from scipy.sparse import coo_array

from margo.classify.maxmargin import MarginOptions, Problem, objective, score_samples, unpack, unpack_matrices
from margo.classify.smo import pack_square, step
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
    K, half = psi.shape
    feature, wish = np.empty(half), np.empty(K)
    for i in order:
        norm = pack_square(x[i], feature) ** 2
        if norm == 0.0:
            continue
        between = offsets[y[i]], offsets[y[i] + 1], responsible[i]
        step(feature, norm, shift[i], between, cost, alpha[i], psi, wish)
        for r in range(K):
            score = 0.0
            for p in range(half):
                score += psi[r, p] * feature[p]
            value = max(0.0, gamma[i, r] - score / norm)
            change = value - gamma[i, r]
            if change != 0.0:
                gamma[i, r] = value
                for p in range(half):
                    psi[r, p] += change * feature[p]


def free_part(problem: Problem, psi) -> np.ndarray:
    """[K, D + 1]: the linear and constant parts that minimise the slacks for these matrices, by cutting planes."""
    N, dims = problem.x.shape
    K = len(psi)
    extended = problem.s * np.concatenate([problem.x, np.ones((N, 1))], axis=1)
    tail, pairs = np.zeros((K, dims + 1)), np.empty((0, 2), int)
    quadratic = score_samples(problem.x, *unpack(problem, np.concatenate([psi, tail], axis=1)))
    for _ in range(CUTS):
        nearest = problem.rivals(quadratic + extended @ tail.T).argmin(axis=1)
        pairs = np.unique(np.concatenate([pairs, np.stack([np.arange(N), nearest], axis=1)]), axis=0)
        samples, rivals = pairs.T
        E, own = len(samples), problem.responsible[samples]
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

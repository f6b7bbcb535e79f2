"""The alternation of [DA08] 3.2 as printed: matrices by SMO with sample constraints, then means and offsets by an LP.

Kept for comparison. The multipliers gamma of the sample constraints (11) do not make psi semidefinite, and alternating
stops short of the joint optimum; :mod:`margo.classify.smo` does neither. The objective never rises: the program is
solved to optimality, and matrices that have not come below what they started from are worked on, or not taken.
"""

import numpy as np
from numba import njit
from scipy.optimize import linprog
from scipy.sparse import coo_array

from margo.classify.maxmargin import MarginOptions, Problem, hinges, score_samples, unpack, unpack_matrices
from margo.classify.smo import pack_square, step
from margo.errors import MargoError

PASSES = 5  # passes of SMO between two linear programs
MOST_PASSES = 100  # before matrices that are no better than the last are taken to be optimal
ROUNDS = 200  # of adding violated constraints to a linear program
TIGHT = 1e-7  # violation of a constraint that still passes
LARGEST = 1e4  # bound on what the linear program leaves free


def fit(problem: Problem, options: MarginOptions, rng):
    """``(packed[K, P], reports)``; ``epochs`` counts passes over the samples."""
    N, dims = problem.x.shape
    K, half = int(problem.offsets[-1]), dims * (dims + 1) // 2
    alpha, gamma = np.zeros((N, K)), np.zeros((N, K))
    psi, tail = np.zeros((K, half)), np.zeros((K, dims + 1))
    best, value, reports, passes = (psi, tail), problem.cost * N, [], 0
    while passes < options.epochs:
        shift = problem.s * (problem.x @ tail[:, :-1].T + tail[:, -1])
        for count in range(1, MOST_PASSES + 1):
            matrix_steps(problem.x, problem.y, problem.responsible, problem.offsets, shift, problem.cost, alpha, gamma,
                         psi, rng.permutation(N))  # fmt: skip
            if count >= PASSES and primal(problem, psi, tail) <= value:
                break
        else:
            break
        passes += count
        tail = free_part(problem, psi, tail)
        before, value, best = value, primal(problem, psi, tail), (psi.copy(), tail)
        smallest = float(np.linalg.eigvalsh(unpack_matrices(psi, dims)).min())
        reports.append({"iteration": len(reports) + 1, "objective": -value, "frames": N, "passes": passes,
                        "smallest_eigenvalue": smallest})  # fmt: skip
        if before - value <= 1e-3 * options.gap * value:
            break
    return np.concatenate(best, axis=1), reports


def primal(problem: Problem, psi, tail) -> float:
    """The paper's objective: the ridge of the joint problem's linear part is no part of it."""
    scores = score_samples(problem.x, *unpack(problem, np.concatenate([psi, tail], axis=1)))
    return 0.5 * float((psi**2).sum()) + problem.cost * hinges(problem, scores)[0]


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


def free_part(problem: Problem, psi, tail) -> np.ndarray:
    """[K, D + 1]: the linear and constant parts that minimise the slacks for these matrices, from ``tail`` on.

    Cutting planes: of each sample the rival that violates its slack the most joins the program, until none does.
    """
    N, dims = problem.x.shape
    rows, none = np.arange(N), np.zeros_like(tail)
    extended = problem.s * np.concatenate([problem.x, np.ones((N, 1))], axis=1)
    quadratic = score_samples(problem.x, *unpack(problem, np.concatenate([psi, none], axis=1)))
    slack, pairs = np.zeros(N), np.empty((0, 2), int)
    for _ in range(ROUNDS):
        scores = quadratic + extended @ tail.T
        nearest = problem.rivals(scores).argmin(axis=1)
        violated = 1.0 + scores[rows, problem.responsible] - scores[rows, nearest] > slack + TIGHT
        if not violated.any():
            return tail
        new = np.stack([rows, nearest], axis=1)[violated]
        pairs = np.unique(np.concatenate([pairs, new]), axis=0)
        tail, slack = solve_part(problem, extended, quadratic, pairs)
    raise MargoError(f"the linear program of the alternation is not solved after {ROUNDS} rounds of constraints")


def solve_part(problem: Problem, extended, quadratic, pairs):
    """``(tail[K, D + 1], slack[N])`` of the program with the constraints of ``pairs`` (sample, rival) alone."""
    samples, rivals = pairs.T
    width, E = extended.shape[1], len(pairs)
    free, own = quadratic.shape[1] * width, problem.responsible[samples]
    held, at = np.unique(samples, return_inverse=True)
    rows, every = np.repeat(np.arange(E), width), np.arange(width)
    columns, others = ((which[:, None] * width + every).ravel() for which in (own, rivals))
    values = extended[samples].ravel()
    matrix = coo_array(
        (np.concatenate([values, -values, -np.ones(E)]),
         (np.concatenate([rows, rows, np.arange(E)]), np.concatenate([columns, others, free + at]))),
        shape=(E, free + len(held)),
    )  # fmt: skip
    bound = quadratic[samples, rivals] - quadratic[samples, own] - 1.0
    price = np.concatenate([np.zeros(free), np.ones(len(held))])
    limits = [(-LARGEST, LARGEST)] * free + [(0, None)] * len(held)
    solved = linprog(price, A_ub=matrix.tocsr(), b_ub=bound, bounds=limits, method="highs")
    if not solved.success:
        raise MargoError(f"the linear program of the alternation failed: {solved.message}")
    slack = np.zeros(len(extended))
    slack[held] = solved.x[free:]
    return solved.x[:free].reshape(-1, width), slack

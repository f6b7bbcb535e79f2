"""Sequential minimal optimisation for max-margin Gaussians [DA08], with exact positive semidefinite steps.

The dual of the problem of :mod:`margo.classify.maxmargin` has ``alpha_i^r >= 0`` for every sample i and rival r, with
``a_i = sum_r alpha_i^r <= C``, and a positive semidefinite multiplier Gamma_r in the place of the paper's sample
constraints (11), which do not make psi semidefinite:

    maximise  sum_i a_i - 1/2 sum_r |Phi_r|^2,
    Phi_r = sum_i alpha_i^r phi_i - sum_{i: r_i = r} a_i phi_i + Gamma_r.

Two block steps, both exact: all multipliers of one sample (no constraint links samples), and all Gammas once an
epoch: psi_r is then the semidefinite projection of its alpha part. Primal minus dual objective is the certificate.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit

from margo.classify.maxmargin import MarginOptions, Problem, objective, project

LONGEST_REST = 8  # a sample that stays at zero rests for 1, 2, 4, ... epochs, at most this many


@dataclass(frozen=True)
class State:
    """``phi = alpha part + gamma``; the certificate of the last epoch."""

    alpha: np.ndarray  # [N, K]
    phi: np.ndarray  # [K, P] packed, psi positive semidefinite
    gamma: np.ndarray  # [K, P]: the semidefinite multipliers, zero in the linear part
    rest: np.ndarray  # [N, 2]: epochs that a sample at zero will still be passed over, and the length of its last rest
    primal: float
    dual: float

    @property
    def gap(self) -> float:
        """Relative duality gap."""
        return (self.primal - self.dual) / max(abs(self.primal), 1e-12)


def begin(problem: Problem) -> State:
    dims = problem.x.shape[1]
    K, P = int(problem.offsets[-1]), dims * (dims + 1) // 2 + dims + 1
    zeros = np.zeros((K, P))
    start = objective(problem, zeros)
    return State(np.zeros((len(problem.x), K)), zeros, zeros, np.zeros((len(problem.x), 2), np.int64), start, 0.0)


def run_epoch(state: State, problem: Problem, order) -> State:
    """One pass of sample steps in ``order``, then the semidefinite step and the certificate."""
    alpha, phi, rest = state.alpha.copy(), state.phi.copy(), state.rest.copy()
    sample_steps(problem.x, problem.y, problem.responsible, problem.offsets, problem.s, problem.cost, alpha, phi, rest,
                 order)  # fmt: skip
    part = phi - state.gamma
    phi = project(part, problem.x.shape[1])
    dual = alpha.sum() - 0.5 * (phi**2).sum()
    best_dual = max(float(dual), state.dual)
    return State(alpha, phi, phi - part, rest, objective(problem, phi), best_dual)


@njit(cache=True, fastmath=True)
def sample_steps(x, y, responsible, offsets, s, cost, alpha, phi, rest, order):
    """For each sample of ``order`` the exact maximum over its own multipliers; ``alpha phi rest`` change in place."""
    D, (K, P) = x.shape[1], phi.shape
    feature, wish, shift = np.empty(P), np.empty(K), np.zeros(K)
    for i in order:
        if rest[i, 0] > 0:
            rest[i, 0] -= 1
            continue
        length = pack_square(x[i], feature)
        for a in range(D):
            feature[P - 1 - D + a] = s * x[i, a]
        feature[P - 1] = s
        norm = length * length + s * s * length + s * s
        between = offsets[y[i]], offsets[y[i] + 1], responsible[i]
        held, after = step(feature, norm, shift, between, cost, alpha[i], phi, wish)
        rest[i, 1] = min(max(1, 2 * rest[i, 1]), LONGEST_REST) if after == 0.0 and held == 0.0 else 0
        rest[i, 0] = rest[i, 1]


@njit(cache=True, fastmath=True)
def pack_square(x, feature):
    """Puts the packed x x' into the first D (D + 1) / 2 entries of ``feature``; returns ``|x|^2``."""
    at, length, root2 = 0, 0.0, np.sqrt(2.0)
    for a in range(len(x)):
        length += x[a] * x[a]
        feature[at] = x[a] * x[a]
        at += 1
        for b in range(a + 1, len(x)):
            feature[at] = root2 * x[a] * x[b]
            at += 1
    return length


@njit(cache=True, fastmath=True)
def step(feature, norm, shift, between, cost, alpha, phi, wish):
    """The exact maximum over one sample's multipliers ``alpha`` [K]; they and ``phi`` [K, P] change in place.

    ``norm`` is ``|feature|^2``, ``shift`` [K] what its scores have besides ``phi @ feature``, ``between`` the first
    Gaussian of its class, that behind the last, and the responsible one. Returns the sums of alpha before and after.
    """
    (K, P), (first, last, own) = phi.shape, between
    held = 0.0
    for r in range(K):
        held += alpha[r]
    score = shift[own]
    for p in range(P):
        score += phi[own, p] * feature[p]
    count = 0
    for r in range(K):
        if first <= r < last:
            continue
        rival = shift[r]
        for p in range(P):
            rival += phi[r, p] * feature[p]
        wish[count] = (1.0 + score - rival) / norm + held + alpha[r]
        count += 1
    level = water_level(wish[:count], cost)
    count, moved, after = 0, 0.0, 0.0
    for r in range(K):
        if first <= r < last:
            continue
        value = max(0.0, wish[count] - level)
        change = value - alpha[r]
        if change != 0.0:
            alpha[r] = value
            moved += change
            for p in range(P):
                phi[r, p] += change * feature[p]
        after += value
        count += 1
    if moved != 0.0:
        for p in range(P):
            phi[own, p] -= moved * feature[p]
    return held, after


@njit(cache=True)
def water_level(wish, cost):
    """theta with ``sum max(0, wish - theta) = min(theta, cost)``: the stationary point of one sample's multipliers.

    With a = sum alpha, the dual's derivative by alpha_r is norm (wish_r - a - alpha_r) less the multiplier of a <= C.
    """
    falling = np.sort(wish)[::-1]
    if falling[0] <= 0.0:
        return 0.0
    level = 0.0
    for limit, more in ((0.0, 2), (cost, 1)):  # a free, then a at its limit
        total = 0.0
        for n in range(len(falling)):
            total += falling[n]
            level = (total - limit) / (n + more)
            if n + 1 == len(falling) or falling[n + 1] <= level:
                break
        if level <= cost:
            break
    return level


def fit(problem: Problem, options: MarginOptions, rng, clock=None):
    """``(State, reports)``: epochs until the relative duality gap is ``options.gap``, or ``options.epochs``; ``clock``
    (a function that returns seconds) dates the reports."""
    began = clock() if clock else 0.0
    state, reports = begin(problem), []
    for epoch in range(1, options.epochs + 1):
        state = run_epoch(state, problem, rng.permutation(len(problem.x)))
        reports.append(report(state, problem, epoch) | ({"cpu_seconds": clock() - began} if clock else {}))
        if state.gap <= options.gap:
            break
    return state, reports


def report(state: State, problem: Problem, epoch: int) -> dict:
    support = int((state.alpha.sum(axis=1) > 0).sum())
    return {"iteration": epoch, "objective": -state.primal, "dual": state.dual, "gap": state.gap, "support": support,
            "frames": len(problem.x)}  # fmt: skip

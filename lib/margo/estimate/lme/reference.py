"""The same program through cvxpy: as a second-order cone program, and as the SDP of [LJ07] Problem 5, as printed.

They are what the project's own methods are compared with. Their points are treated like any other: clipped, shrunk
into the ball and certified from the entries, whatever the solver claims.
"""

import warnings
from functools import lru_cache

import numpy as np

from margo.errors import MargoError
from margo.estimate.lme.certificate import certify, onto_simplex
from margo.estimate.lme.problem import Problem, Solution

LARGEST_DENSE = 80  # side of Z up to which Clarabel factors the cone's dense block in reasonable time and memory


@lru_cache(maxsize=1)
def mosek_licence() -> str:
    """"" when MOSEK can be used, else why it cannot. Having it installed is not enough: its licence must check out."""
    try:
        import mosek
    except ImportError:
        return "MOSEK is not installed"
    try:
        with mosek.Env() as env:
            env.checkoutlicense(mosek.feature.pton)
    except mosek.Error as error:
        return f"MOSEK is installed but its licence does not check out ({error})"
    return ""


def choose_solver(method: str, side: int) -> tuple[str, str]:
    """The solver by its cvxpy name, and why it was taken; ``side`` is that of Z."""
    missing = mosek_licence()
    if not missing:
        return "MOSEK", "MOSEK: its licence checks out"
    if method == "sdp" and side > LARGEST_DENSE:
        return "SCS", f"SCS: {missing}, and a semidefinite block of side {side} is too large for Clarabel"
    return "CLARABEL", f"Clarabel: {missing}"


def solve_reference(problem: Problem, method: str, tolerance: float) -> Solution:
    """Solve by ``method`` "socp" or "sdp" and certify the point found."""
    try:
        import cvxpy
    except ImportError:
        raise MargoError(f"method {method} needs cvxpy: install margo with the extra 'solvers'") from None
    name, note = choose_solver(method, problem.n_gaussians + problem.dimension)
    program, read = (second_order if method == "socp" else semidefinite)(cvxpy, problem)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of inaccuracy: the certificate measures it, a note tells it
            program.solve(solver=name, **_settings(name, tolerance))
    except cvxpy.SolverError as error:
        raise MargoError(f"{name} could not solve the {method} of {problem.n_pairs} pairs: {error}") from None
    shift, width, multipliers = read()
    if shift is None or multipliers is None:
        raise MargoError(f"{name} returned no point for the {method}: it ended with status {program.status}")
    notes = (note,) if program.status == "optimal" else (note, f"{name} ended with status {program.status}")
    squares = np.einsum("kd,kd->k", shift, shift)
    augmentation = np.maximum(width - squares, 0)  # solvers return it slightly negative
    shrink = min(1.0, np.sqrt(problem.radius2 / max(squares.sum() + augmentation.sum(), 1e-300)))
    shift, augmentation = shrink * shift, shrink**2 * augmentation
    multipliers = onto_simplex(multipliers, problem.soft)
    return Solution(shift=shift, augmentation=augmentation, multipliers=multipliers, method=method, seconds=0.0,
                    solver=name, notes=notes, **certify(problem, shift, augmentation, multipliers))


def _settings(name: str, tolerance: float) -> dict:
    if name == "CLARABEL":
        return dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 0.01 * tolerance)
    if name == "SCS":
        return {"eps_abs": tolerance, "eps_rel": tolerance, "max_iters": 20000}
    return {"mosek_params": {"MSK_DPAR_INTPNT_CO_TOL_REL_GAP": 0.01 * tolerance}}


def second_order(cvxpy, problem: Problem):
    """The program in (w, q, rho): linear margins, one cone |w_k|^2 <= q_k a Gaussian, sum q <= r^2.

    Sparse G [N, K D] and n [N, K]: margins are d0 + G vec(w) - 1/2 n q, vec row by row.
    """
    from scipy.sparse import csr_array

    n, k, d = problem.n_pairs, problem.n_gaussians, problem.dimension
    pair, gaussian, of_pairs, gradients = problem.whole()
    columns = gaussian[:, None] * d + np.arange(d)
    gradient = csr_array((gradients.ravel(), (np.repeat(pair, d), columns.ravel())), shape=(n, k * d))
    counts = csr_array((of_pairs, (pair, gaussian)), shape=(n, k))
    w, q, rho = cvxpy.Variable((k, d)), cvxpy.Variable(k), cvxpy.Variable()
    slack = 0 if problem.soft is None else cvxpy.Variable(problem.n_pairs, nonneg=True)
    margin = problem.margins + gradient @ cvxpy.vec(w, order="C") - 0.5 * (counts @ q)
    above = margin + slack >= rho
    c = np.sqrt(problem.radius2 / k)  # |w|^2 <= q as |(2 w, q / c - c)| <= q / c + c
    sides = cvxpy.vstack([2 * w.T, cvxpy.reshape(q / c - c, (1, k), order="C")])
    cone = cvxpy.SOC(q / c + c, sides, axis=0)
    cost = 0 if problem.soft is None else problem.soft * cvxpy.sum(slack)
    program = cvxpy.Problem(cvxpy.Maximize(rho - cost), [above, cone, cvxpy.sum(q) <= problem.radius2])
    return program, lambda: (w.value, q.value, above.dual_value)


def semidefinite(cvxpy, problem: Problem):
    """[LJ07] Problem 5, (50)-(54): min G.S with A_ij.Z + B_ij.S = c_ij, Q.Z + H.S = r^2, Z_{1:D,1:D} = I, Z, S psd.

    Columns of U are counted from the start, u_k - u0_k, which turns (24) into A_ij = [0, -g/2; -g'/2, diag(n)/2] and
    (30) into Q = [0, 0; 0, I] (the top-left block of A_ij meets the identity and is part of c_ij). rho, an entry of the
    diagonal block S and so non-negative, is counted from the smallest start margin, below which it never falls.
    S is kept as its diagonal. With a soft margin its slacks join S.
    """
    from scipy.sparse import block_array, csr_array, diags_array

    n, k, d = problem.n_pairs, problem.n_gaussians, problem.dimension
    side = d + k
    a = _inner_products(problem, side)
    floor = problem.margins.min()
    z = cvxpy.Variable((side, side), PSD=True)
    soft = problem.soft is not None
    s = cvxpy.Variable(2 + n * (1 + soft), nonneg=True)  # diag(rho; omega; s_ij; slacks)
    ones, none = csr_array(np.ones((n, 1))), csr_array((n, 1))
    unit = diags_array(np.ones(n))
    b = block_array([[ones, none, unit, -unit] if soft else [ones, none, unit]], format="csr")
    flat = cvxpy.vec(z, order="F")
    pairs = a @ flat + b @ s == problem.margins - floor
    q = csr_array((np.ones(k), (np.zeros(k, int), np.arange(d, side) * (side + 1))), shape=(1, side * side))
    ball = q @ flat + s[1] == problem.radius2
    cost = problem.soft * cvxpy.sum(s[2 + n :]) if soft else 0
    program = cvxpy.Problem(cvxpy.Minimize(-s[0] + cost), [pairs, ball, z[:d, :d] == np.eye(d)])

    def read():
        if z.value is None:
            return None, None, None
        return z.value[:d, d:].T, np.diag(z.value)[d:], pairs.dual_value

    return program, read


def _inner_products(problem: Problem, side: int):
    """Row m holds A_m, column by column [N, side^2]: both halves of the off-diagonal blocks, and the diagonal."""
    from scipy.sparse import csr_array

    d, (pair, gaussian, counts, gradients) = problem.dimension, problem.whole()
    column = d + gaussian
    upper = column[:, None] * side + np.arange(d)  # Z[:d, column]
    lower = np.arange(d) * side + column[:, None]  # Z[column, :d]
    values = np.concatenate([-0.5 * gradients.ravel()] * 2 + [0.5 * counts])
    rows = np.concatenate([np.repeat(pair, d)] * 2 + [pair])
    columns = np.concatenate([upper.ravel(), lower.ravel(), column * (side + 1)])
    return csr_array((values, (rows, columns)), shape=(problem.n_pairs, side * side))

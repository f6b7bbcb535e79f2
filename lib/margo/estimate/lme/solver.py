"""One door to all methods: choose by size, solve, fall back, and certify the answer from the entries."""

from dataclasses import replace
from time import process_time

import numpy as np

from margo.errors import MargoError
from margo.estimate.lme.certificate import certify, onto_simplex, scale_of
from margo.estimate.lme.layout import arrange, in_problem_units
from margo.estimate.lme.problem import Problem, Solution
from margo.estimate.lme.progress import Best

METHODS = ("auto", "dual", "conic", "gradient", "socp", "sdp")
DENSE = 3000  # pairs up to which an interior point's N x N matrix is cheap (72 MB, 9e9 operations a step)
DENSE_MOST = 8000  # pairs up to which it is affordable (1.5 GB) when the first-order method falls short
MARGIN = 0.5  # methods stop at this fraction of the tolerance: the final check sums in another order


def solve(problem: Problem, method: str = "auto", tolerance: float = 1e-6) -> Solution:
    """Solve ``problem`` to a relative gap of at most ``tolerance``, or say in ``gap`` and ``notes`` how far it got.

    dual      interior point in N + 1 variables; conic takes over when the relaxation is not tight
    conic     the same system with the means explicit: slower by a constant, needs no tightness
    gradient  first-order and active-set steps, no N x N matrix: for many thousands of pairs
    socp      the second-order cone program through cvxpy
    sdp       [LJ07] Problem 5 as printed, through cvxpy
    auto      dual while an N x N matrix is cheap, else gradient
    """
    if method not in METHODS:
        raise MargoError(f"method is {method!r}; choose one of {' '.join(METHODS)}")
    if not 0 < tolerance < 1:
        raise MargoError(f"tolerance is {tolerance}; give a relative gap above 0 and below 1, as 1e-6")
    began = process_time()
    if method in ("socp", "sdp"):
        from margo.estimate.lme.reference import solve_reference

        solution = solve_reference(problem, method, tolerance)
    else:
        solution = _solve_own(problem, method, tolerance)
    notes = solution.notes
    if unbalanced := problem.unbalanced():
        notes += (f"the counts of {unbalanced} pairs do not sum to zero: are the two paths of equal length?",)
    if solution.gap > tolerance:
        notes += (f"the gap is {solution.gap:.1e}, above the {tolerance:.0e} asked for",)
    return replace(solution, notes=notes, seconds=process_time() - began)


def _solve_own(problem: Problem, method: str, tolerance: float) -> Solution:
    if method == "auto":
        method = "dual" if problem.n_pairs <= DENSE else "gradient"
    notes = []
    layout = arrange(problem, np.float32 if method == "gradient" and tolerance >= 1e-4 else np.float64)
    best = Best(layout, scale_of(problem, 0.0) / layout.unit)
    if len(layout.used):
        if method == "gradient":
            from margo.estimate.lme.gradient import solve_gradient

            reason = solve_gradient(layout, best, MARGIN * tolerance)
            if reason and problem.n_pairs <= DENSE_MOST:
                notes.append(f"gradient left off at a gap of {best.gap:.1e}: {reason}; conic went on")
                layout, method = arrange(problem), "conic"
                best = Best(layout, best.scale)
        if method == "dual":
            from margo.estimate.lme.dual import solve_dual

            if reason := solve_dual(layout, best, MARGIN * tolerance):
                notes.append(f"dual left off at a gap of {best.gap:.1e}: {reason}; conic went on")
                method = "conic"
        if method == "conic":
            from margo.estimate.lme.conic import solve_conic

            solve_conic(layout, best, MARGIN * tolerance)
    else:
        notes.append("no entry touches a Gaussian, so no margin can change")
    shift, augmentation = in_problem_units(layout, best.shift, best.width)
    multipliers = onto_simplex(best.multipliers, problem.soft)
    return Solution(shift=shift, augmentation=augmentation, multipliers=multipliers, method=method, seconds=0.0,
                    notes=tuple(notes), **certify(problem, shift, augmentation, multipliers))

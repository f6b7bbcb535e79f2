"""One door to all methods: choose by size, solve, fall back, and certify the answer from the entries."""

from dataclasses import replace
from time import process_time

import numpy as np

from margo.errors import MargoError
from margo.estimate.lme.certificate import certify, onto_simplex, scale_of
from margo.estimate.lme.conic import solve_conic
from margo.estimate.lme.dual import solve_dual, solve_forced
from margo.estimate.lme.gradient import solve_gradient
from margo.estimate.lme.layout import Layout, arrange, in_problem_units
from margo.estimate.lme.problem import Problem, Solution
from margo.estimate.lme.progress import Best
from margo.estimate.lme.reference import solve_reference

METHODS = ("auto", "dual", "conic", "gradient", "socp", "sdp")
SMALL = 500  # pairs up to which auto goes straight to the interior point: its N x N matrix costs next to nothing
DENSE = 5000  # pairs up to which that matrix (200 MB) is affordable when the first-order method falls short
MARGIN = 0.5  # methods stop at this fraction of the tolerance: the final check sums in another order


def solve(problem: Problem, method: str = "auto", tolerance: float = 1e-6) -> Solution:
    """Solve ``problem`` to a relative gap of at most ``tolerance``, or say in ``gap`` and ``notes`` how far it got.

    dual      interior point in N + 1 variables; conic takes over when the relaxation is not tight
    conic     the same system with the means explicit: slower by a constant, needs no tightness
    gradient  first-order and active-set steps, no N x N matrix: for many thousands of pairs
    socp      the second-order cone program through cvxpy
    sdp       [LJ07] Problem 5 as printed, through cvxpy
    auto      dual for few pairs, else gradient with dual after it where gradient falls short
    """
    if method not in METHODS:
        raise MargoError(f"method is {method!r}; choose one of {' '.join(METHODS)}")
    if not 0 < tolerance < 1:
        raise MargoError(f"tolerance is {tolerance}; give a relative gap above 0 and below 1, as 1e-6")
    began = process_time()
    solution = (solve_reference if method in ("socp", "sdp") else _solve_own)(problem, method, tolerance)
    notes = solution.notes
    if unbalanced := problem.unbalanced():
        notes += (f"the counts of {unbalanced} pairs do not sum to zero: are the two paths of equal length?",)
    if solution.gap > tolerance:
        notes += (f"the gap is {solution.gap:.1e}, above the {tolerance:.0e} asked for",)
    return replace(solution, notes=notes, seconds=process_time() - began)


def _solve_own(problem: Problem, method: str, tolerance: float) -> Solution:
    first_order = method == "gradient" or (method == "auto" and problem.n_pairs > SMALL)
    layout = arrange(problem, np.float32 if first_order and tolerance >= 1e-4 else np.float64)
    layout = layout if first_order else layout.held()
    best = Best(layout, scale_of(problem, 0.0) / layout.unit)
    used = "gradient" if first_order else "conic" if method == "conic" else "dual"
    if not len(layout.used):
        notes = ["no entry touches a Gaussian, so no margin can change"]
    elif problem.soft is not None and problem.soft * problem.n_pairs <= 1 + 1e-9:
        solve_forced(layout, best)
        notes = ["C is 1 / pairs: every multiplier is forced, and the mean margin is what is maximised"]
    else:
        layout, best, used, notes = _iterate(problem, layout, best, used, MARGIN * tolerance)
    shift, augmentation = in_problem_units(layout, best.shift, best.width)
    multipliers = onto_simplex(best.multipliers, problem.soft)
    proof = certify(problem, shift, augmentation, multipliers)
    if augmentation.any():  # a width that only keeps an interior point off the boundary is not worth a dimension
        plain = certify(problem, shift, np.zeros_like(augmentation), multipliers)
        if plain["gap"] <= max(tolerance, proof["gap"]):
            augmentation, proof = np.zeros_like(augmentation), plain
    return Solution(shift=shift, augmentation=augmentation, multipliers=multipliers, method=used, seconds=0.0,
                    notes=tuple(notes), **proof)


def _iterate(problem: Problem, layout: Layout, best: Best, used: str, tolerance: float):
    """Run method ``used`` and, where it leaves off, those after it in the order gradient, dual, conic."""
    notes = []
    if used == "gradient":
        reason = solve_gradient(layout, best, tolerance)
        if reason and problem.n_pairs <= DENSE:
            notes.append(f"gradient left off at a gap of {best.gap:.1e}: {reason}; dual went on")
            layout = arrange(problem).held()
            best, used = best.on(layout), "dual"
    if used == "dual" and (reason := solve_dual(layout, best, tolerance)):
        notes.append(f"dual left off at a gap of {best.gap:.1e}: {reason}; conic went on")
        used = "conic"
    if used == "conic":
        solve_conic(layout, best, tolerance)
    return layout, best, used, notes

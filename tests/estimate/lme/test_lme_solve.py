"""Every method on the same programs: certificates recomputed, references agreed with, corner cases."""

from dataclasses import replace

import numpy as np
import pytest

from lme_instances import draw_numbers, draw_odd, draw_paths, opposed_frames, problem_of
from margo.estimate import lme
from margo.estimate.lme import reference
from margo.estimate.lme.certificate import best_level

OWN = ("dual", "conic", "gradient", "auto")


def check(problem, solution, tolerance=1e-6):
    """Feasible, never above its own bound, within the tolerance, no worse than the start; all from scratch."""
    shift, width, weights = solution.shift, solution.augmentation, solution.multipliers
    assert shift.shape == (problem.n_gaussians, problem.dimension)
    assert width.min() >= 0
    assert (shift**2).sum() + width.sum() <= problem.radius2 * (1 + 1e-12)
    assert weights.min() >= 0
    assert weights.sum() == pytest.approx(1, abs=1e-12)
    if problem.soft is not None:
        assert weights.max() <= problem.soft * (1 + 1e-12)
    values = lme.margins(problem, shift, width)
    level, objective = best_level(values, problem.soft)
    assert solution.objective == pytest.approx(objective, abs=1e-9 * max(1, abs(objective)))
    if problem.soft is None:
        assert solution.rho == values.min()
    else:
        slack = np.maximum(0, solution.rho - values).sum()
        assert solution.rho - problem.soft * slack == pytest.approx(objective, abs=1e-9 * max(1, abs(objective)))
    # the bound by its definition, at the best of many nu
    b = np.zeros(shift.shape)
    np.add.at(b, problem.gaussian, weights[problem.pair, None] * problem.gradients)
    half = 0.5 * np.bincount(problem.gaussian, weights[problem.pair] * problem.counts, problem.n_gaussians)
    floor = max(0.0, -half.min())
    nus = floor + np.logspace(-12, 6, 2000)
    bounds = problem.margins @ weights + nus * problem.radius2
    bounds += ((b**2).sum(axis=1) / (4 * (nus[:, None] + half))).sum(axis=1)
    assert solution.bound <= bounds.min() * (1 + 1e-12) + 1e-9
    scale = max(1, abs(objective))
    assert bounds.min() - solution.bound <= 1e-3 * scale
    assert -1e-12 <= (solution.bound - solution.objective) / scale <= tolerance
    assert solution.gap <= tolerance
    assert solution.objective >= best_level(problem.margins, problem.soft)[1] - tolerance * scale


def programs():
    rng = np.random.default_rng(11)
    tight = problem_of(draw_paths(rng, 20, 13, words=4, states=3), 2.0)
    return {
        "tight": tight,
        "tight soft": replace(tight, soft=1 / (0.3 * 20)),
        "not tight": draw_odd(rng, 40, 8, 1, 400.0),
        "not tight soft": draw_odd(rng, 40, 8, 1, 400.0, soft=1 / (0.15 * 40)),
        "opposed": opposed_frames(1.0),
    }


PROGRAMS = programs()


@pytest.fixture(scope="module")
def cone():
    """Each program by the SOCP in Clarabel."""
    return {name: lme.solve(problem, "socp", 1e-7) for name, problem in PROGRAMS.items()}


@pytest.mark.parametrize("method", OWN)
@pytest.mark.parametrize("name", PROGRAMS)
def test_methods_agree_with_the_cone_program(name, method, cone):
    problem = PROGRAMS[name]
    solution = lme.solve(problem, method)
    check(problem, solution)
    fell_back = any("went on" in note for note in solution.notes)
    assert fell_back or solution.method == ("dual" if method == "auto" else method)
    assert solution.objective == pytest.approx(cone[name].objective, abs=2e-6 * max(1, abs(solution.objective)))
    assert solution.seconds > 0
    assert (solution.augmentation.max() > 1e-3) == (not name.startswith("tight"))


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_semidefinite_program_as_printed_agrees(name, cone):
    problem = PROGRAMS[name]
    solution = lme.solve(problem, "sdp", 1e-6)
    check(problem, solution, 1e-5)
    assert solution.solver == "CLARABEL"
    assert solution.objective == pytest.approx(cone[name].objective, abs=2e-5 * max(1, abs(solution.objective)))


@pytest.mark.parametrize("method", [*OWN, "socp", "sdp"])
@pytest.mark.parametrize(("radius2", "rho"), [(0.1, 1.05), (1.0, 1.5), (10.0, 6.0)])
def test_opposed_frames_need_the_augmentation(method, radius2, rho):
    problem = opposed_frames(radius2)
    solution = lme.solve(problem, method, 1e-6)
    assert solution.rho == pytest.approx(rho, rel=3e-6)
    np.testing.assert_allclose(solution.augmentation, [0, radius2], atol=1e-4 * radius2)
    assert np.abs(solution.shift).max() <= 1e-3
    # projection throws the gain away
    assert lme.margins(problem, solution.shift, np.zeros(2)).min() <= 1 + 1e-3


def test_projection_can_fall_below_the_start():
    """What is gained by width is lost when the width is dropped, and more."""
    problem = PROGRAMS["not tight"]
    solution = lme.solve(problem)
    assert solution.rho > problem.margins.min()
    assert lme.margins(problem, solution.shift, np.zeros(problem.n_gaussians)).min() < problem.margins.min()


@pytest.mark.parametrize("method", OWN)
def test_one_pair_has_a_closed_form(method):
    """N = 1, n = 0: rho = d0 + r |g|, along the gradient."""
    g = np.array([[3.0, 0.0], [0.0, 4.0]])
    problem = lme.Problem([2.0], [0, 0], [0, 2], [0.0, 0.0], g, 3, 4.0)
    solution = lme.solve(problem, method)
    check(problem, solution)
    assert solution.rho == pytest.approx(2 + 2 * 5, rel=1e-6)
    np.testing.assert_allclose(solution.shift, [[1.2, 0], [0, 0], [0, 1.6]], atol=1e-2)
    assert solution.multipliers.tolist() == [1.0]


@pytest.mark.parametrize("method", OWN)
def test_duplicates_change_nothing_and_unused_gaussians_stay(method):
    problem = draw_odd(np.random.default_rng(8), 15, 6, 5, 3.0)
    twice = lme.Problem(
        np.r_[problem.margins, problem.margins], np.r_[problem.pair, problem.pair + 15],
        np.r_[problem.gaussian, problem.gaussian] + 4, np.r_[problem.counts, problem.counts],
        np.r_[problem.gradients, problem.gradients], problem.n_gaussians + 9, problem.radius2,
    )
    first, second = lme.solve(problem, method), lme.solve(twice, method)
    check(twice, second)
    assert second.rho == pytest.approx(first.rho, abs=2e-6 * max(1, abs(first.rho)))
    untouched = np.setdiff1d(np.arange(twice.n_gaussians), twice.gaussian)
    assert len(untouched) >= 9
    assert not second.shift[untouched].any()
    assert not second.augmentation[untouched].any()


@pytest.mark.parametrize("method", OWN)
def test_margins_that_cannot_be_made_positive_are_reported(method, cone):
    """The paper's rho >= 0 would be infeasible here; rho is left free and comes back negative."""
    problem = replace(PROGRAMS["tight"], margins=PROGRAMS["tight"].margins - 500)
    solution = lme.solve(problem, method)
    check(problem, solution)
    assert solution.rho < 0
    assert solution.rho == pytest.approx(cone["tight"].rho - 500, abs=1e-3)


@pytest.mark.parametrize("method", OWN)
def test_pairs_without_entries(method):
    nothing = lme.Problem([3.0, 1.0, 2.0], np.empty(0, int), np.empty(0, int), [], np.empty((0, 2)), 4, 1.0)
    solution = lme.solve(nothing, method)
    check(nothing, solution)
    assert solution.rho == 1.0
    assert solution.multipliers.tolist() == [0, 1, 0]
    soft = replace(nothing, soft=0.4)
    check(soft, lme.solve(soft, method))


@pytest.mark.parametrize("method", OWN)
@pytest.mark.parametrize("nu", [1.0, 0.999, 0.5, 0.02])
def test_soft_margins_from_the_mean_to_the_minimum(method, nu):
    """nu = 1 maximises the mean margin (lambda is forced); C >= 1 is the hard margin."""
    problem = replace(PROGRAMS["tight"], soft=1 / (nu * 20))
    solution = lme.solve(problem, method)
    check(problem, solution)
    if nu == 1.0:
        np.testing.assert_allclose(solution.multipliers, 1 / 20)
        assert solution.objective == pytest.approx(lme.margins(problem, solution.shift, solution.augmentation).mean())
    if nu == 0.02:
        assert solution.objective == pytest.approx(lme.solve(PROGRAMS["tight"]).rho, rel=2e-6)


@pytest.mark.parametrize("scale", [1e-4, 1e4])
@pytest.mark.parametrize("method", OWN)
def test_units_do_not_matter(method, scale):
    """Margins, counts and gradients times s: rho times s; and features times t with the ball: nothing else."""
    problem = PROGRAMS["not tight"]
    other = replace(problem, margins=scale * problem.margins, counts=scale * problem.counts,
                    gradients=scale * problem.gradients)
    assert lme.solve(other, method).objective == pytest.approx(scale * lme.solve(problem, method).objective, rel=5e-6)
    wider = replace(problem, gradients=problem.gradients / scale, counts=problem.counts / scale**2,
                    radius2=problem.radius2 * scale**2)
    assert lme.solve(wider, method).objective == pytest.approx(lme.solve(problem, method).objective, rel=5e-6)


def test_the_multipliers_tell_which_pairs_hold_rho_down():
    """Complementarity: a pair clearly above rho has no weight; and d rho / d d0_m = lambda_m."""
    problem = PROGRAMS["tight"]
    solution = lme.solve(problem, tolerance=1e-9)
    above = lme.margins(problem, solution.shift, solution.augmentation) - solution.rho
    assert solution.multipliers[above > 1e-2].max() <= 1e-4
    m = int(np.argmax(solution.multipliers))
    raised = problem.margins.copy()
    raised[m] += 1e-3
    change = lme.solve(replace(problem, margins=raised), tolerance=1e-9).rho - solution.rho
    assert change / 1e-3 == pytest.approx(solution.multipliers[m], abs=1e-2)


def test_the_gap_is_not_taken_on_trust(monkeypatch):
    """A solver that hands over a poor point gets a large gap, and a note."""
    monkeypatch.setattr("margo.estimate.lme.dual.ITERATIONS", 1)
    monkeypatch.setattr("margo.estimate.lme.conic.ITERATIONS", 1)
    solution = lme.solve(PROGRAMS["tight"], "dual")
    assert solution.gap > 1e-2
    assert any("above the 1e-06 asked for" in note for note in solution.notes)


def test_many_pairs_without_a_matrix_of_their_number():
    rng = np.random.default_rng(2)
    problem = draw_numbers(rng, 3000, 100, 13, 12, 4.0, soft=1 / (0.4 * 3000))
    solution = lme.solve(problem, tolerance=1e-3)
    assert solution.method == "gradient"
    check(problem, solution, 1e-3)
    hard = replace(problem, soft=None)
    solution = lme.solve(hard, tolerance=1e-6)
    check(hard, solution)


def test_interior_point_on_the_undecided_pairs(monkeypatch):
    """With the first phase cut short the second must find the working set by itself."""
    monkeypatch.setattr("margo.estimate.lme.gradient.ITERATIONS", 5)
    monkeypatch.setattr("margo.estimate.lme.gradient.WORKING", 60)
    monkeypatch.setattr("margo.estimate.lme.gradient.UNDECIDED", 10**6)
    rng = np.random.default_rng(2)
    for soft in (None, 1 / (0.4 * 600)):
        problem = problem_of(draw_paths(rng, 600, 13, words=5, states=4), 1.0, soft)
        solution = lme.solve(problem, "gradient", 1e-6)
        assert solution.method == "gradient"
        check(problem, solution)


def test_external_solvers_are_named_and_explained(monkeypatch):
    solution = lme.solve(opposed_frames(1.0), "socp")
    assert solution.solver in ("CLARABEL", "MOSEK")
    assert any(note.lower().startswith(solution.solver.lower()) for note in solution.notes)
    why = "MOSEK is installed but its licence does not check out (1008)"
    monkeypatch.setattr(reference, "mosek_licence", lambda: why)
    assert reference.choose_solver("socp", 10) == ("CLARABEL", f"Clarabel: {why}")
    name, note = reference.choose_solver("sdp", 1000)
    assert name == "SCS"
    assert why in note
    monkeypatch.setattr(reference, "mosek_licence", lambda: "")
    assert reference.choose_solver("sdp", 1000)[0] == "MOSEK"


def test_mosek_without_a_licence_is_not_used(monkeypatch):
    """A module that raises its own error from checkoutlicense, as the real one does."""
    import sys
    import types

    fake = types.ModuleType("mosek")
    fake.Error = type("Error", (Exception,), {})
    fake.feature = types.SimpleNamespace(pton="pton")

    class Env:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            return False

        def checkoutlicense(self, _feature):
            raise fake.Error("rescode.err_missing_license_file(1008)")

    fake.Env = Env
    monkeypatch.setitem(sys.modules, "mosek", fake)
    reference.mosek_licence.cache_clear()
    try:
        solution = lme.solve(opposed_frames(1.0), "socp")
        assert solution.solver == "CLARABEL"
        assert any("1008" in note for note in solution.notes)
    finally:
        reference.mosek_licence.cache_clear()


@pytest.mark.parametrize("soft", [None, 1 / (0.3 * 400)])
def test_very_many_pairs_begin_at_the_solution_of_a_part(monkeypatch, soft):
    from margo.estimate.lme import gradient

    problem = problem_of(draw_paths(np.random.default_rng(5), 400, 6, words=5, states=4), 2.0, soft)
    parts, begin = [], gradient._begin
    monkeypatch.setattr(gradient, "MANY", 300)
    monkeypatch.setattr(gradient, "PART", 80)
    monkeypatch.setattr(gradient, "_begin", lambda *given: (parts.append(given[0].n_pairs), begin(*given))[1])
    solution = lme.solve(problem, "gradient", 1e-4)
    check(problem, solution, 1e-4)
    assert parts == [400]
    assert solution.objective == pytest.approx(lme.solve(problem, "dual", 1e-6).objective, rel=1e-4, abs=1e-4)

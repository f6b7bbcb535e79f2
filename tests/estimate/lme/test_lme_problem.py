"""The program as arrays: margins from raw frames, updates, and messages about what cannot be solved."""

import subprocess
import sys

import numpy as np
import pytest

from lme_instances import draw_odd, draw_paths, problem_of
from margo.errors import MargoError
from margo.estimate import lme


def log_likelihood(frames, path, means, deviations):
    """sum_t log N(x_t; mu, sigma), from the definition."""
    z = (frames - means[path]) / deviations[path]
    return -0.5 * (z**2 + np.log(2 * np.pi * deviations[path] ** 2)).sum()


def matrices_of_paper(paths, m, width):
    """A_ij [LJ07] (24)-(27) of pair m, built frame by frame; each frame is normalised by its own Gaussian's sigma."""
    k, d = paths.means.shape
    a = np.zeros((d + k, d + k))
    for path, sign in ((paths.reference[m], 1), (paths.competitor[m], -1)):
        for x, g in zip(paths.frames[m], path):
            e = np.zeros(k)
            e[g] = -1
            column = np.r_[x / paths.deviations[g], e]
            a += sign * 0.5 * np.outer(column, column)
    return a


@pytest.fixture(scope="module")
def drawn():
    rng = np.random.default_rng(0)
    paths = draw_paths(rng, 9, 4, words=3, states=3, mixtures=2, spread=0.8)
    problem = problem_of(paths, 3.0)
    shift = 0.3 * rng.normal(size=paths.means.shape)
    return paths, problem, shift, rng.uniform(0, 0.5, len(shift))


def test_margins_are_those_of_the_moved_models(drawn):
    paths, problem, shift, _ = drawn
    assert not np.allclose(paths.deviations[0], paths.deviations[1])  # sigmas differ along the two paths
    for moved in (np.zeros_like(shift), shift):
        means = lme.projected_means(paths.means, paths.deviations, moved)
        expected = [
            log_likelihood(x, i, means, paths.deviations) - log_likelihood(x, j, means, paths.deviations)
            for x, i, j in zip(paths.frames, paths.reference, paths.competitor)
        ]
        np.testing.assert_allclose(lme.margins(problem, moved, np.zeros(len(moved))), expected, rtol=0, atol=1e-9)


def test_augmented_means_have_the_augmented_margins(drawn):
    paths, problem, shift, width = drawn
    means = lme.augmented_means(paths.means, paths.deviations, shift, width)
    deviations = np.column_stack([paths.deviations, np.ones(len(means))])
    expected = []
    for x, i, j in zip(paths.frames, paths.reference, paths.competitor):
        x = np.column_stack([x, np.zeros(len(x))])
        expected.append(log_likelihood(x, i, means, deviations) - log_likelihood(x, j, means, deviations))
    np.testing.assert_allclose(lme.margins(problem, shift, width), expected, rtol=0, atol=1e-9)


def test_the_matrices_of_the_paper_give_the_same_margins(drawn):
    """c_ij - A_ij.Z with Y = U'U + V, any psd V: only its diagonal counts, for the lower right of A_ij is diagonal."""
    paths, problem, shift, width = drawn
    k, d = shift.shape
    rng = np.random.default_rng(1)
    u0 = paths.means / paths.deviations
    factor = rng.normal(size=(k, k))
    v = factor @ factor.T
    v *= np.sqrt(width[:, None] * width / np.outer(np.diag(v), np.diag(v)))  # psd, with the diagonal wanted

    def z_of(u, extra):
        return np.block([[np.eye(d), u.T], [u, u @ u.T + extra]])

    q = np.zeros((d + k, d + k))
    for index in range(k):
        e = np.zeros(k)
        e[index] = -1
        q += np.outer(np.r_[u0[index], e], np.r_[u0[index], e])
    assert np.count_nonzero(q[d:, d:] - np.diag(np.diag(q[d:, d:]))) == 0
    moved = z_of(u0 + shift, v)
    np.testing.assert_allclose((q * moved).sum(), (shift**2).sum() + width.sum(), rtol=1e-12)
    margins = lme.margins(problem, shift, width)
    for m in range(problem.n_pairs):
        a = matrices_of_paper(paths, m, width)
        assert np.count_nonzero(a[d:, d:] - np.diag(np.diag(a[d:, d:]))) == 0
        c = problem.margins[m] + (a * z_of(u0, 0)).sum()
        assert c - (a * moved).sum() == pytest.approx(margins[m], abs=1e-9)


def good():
    problem = draw_odd(np.random.default_rng(0), 6, 5, 3, 1.0)
    return {name: getattr(problem, name) for name in problem.__dataclass_fields__}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"radius2": 0}, "radius2 is 0; give a squared radius above 0"),
        ({"radius2": float("nan")}, "radius2 is nan"),
        ({"margins": np.empty(0)}, "there are no pairs; keep at least one token"),
        ({"soft": 0.1}, "C must be at least 1 / pairs = 0.166667"),
        ({"soft": -1.0}, "give C above 0"),
        ({"n_gaussians": 0}, "n_gaussians is 0"),
        ({"n_gaussians": 2.5}, "give one integer"),
        ({"n_gaussians": 2}, "gaussian runs from 0 to 4; it must lie in 0 to 1"),
        ({"margins": np.ones(3)}, "pair runs from 0 to 5; it must lie in 0 to 2"),
        ({"margins": np.array([1, 2, np.nan, 4, 5, 6])}, "margins has 1 values that are not finite, the first at 2"),
        ({"counts": np.ones(2)}, "entries differ in number"),
        ({"gradients": np.ones(4)}, "gradients has shape (4,); it must have 2 dimensions"),
        ({"pair": np.array([0.5])}, "pair has type float64; give integers"),
    ],
)
def test_a_bad_problem_says_what_to_change(change, says):
    with pytest.raises(MargoError) as caught:
        lme.Problem(**(good() | change))
    assert says in str(caught.value)


def test_all_faults_are_named_at_once():
    with pytest.raises(MargoError) as caught:
        lme.Problem(**(good() | {"radius2": -1, "soft": 1e-3, "margins": np.full(6, np.inf)}))
    assert all(word in str(caught.value) for word in ("3 faults", "radius2", "soft", "margins"))


@pytest.mark.parametrize("bad", [{"method": "simplex"}, {"tolerance": 0}, {"tolerance": 2.0}])
def test_bad_options_of_solve_are_refused(bad):
    with pytest.raises(MargoError, match="choose one of|give a relative gap"):
        lme.solve(lme.Problem(**good()), **bad)


def test_unbalanced_counts_are_reported_and_solved_all_the_same():
    parts = good()
    parts["counts"] = parts["counts"] + np.eye(len(parts["counts"]))[0]
    solution = lme.solve(lme.Problem(**parts))
    assert solution.gap <= 1e-6
    assert any("1 pairs do not sum to zero" in note for note in solution.notes)


def test_naming_the_package_imports_nothing_heavy():
    heavy = "scipy|numba|cvxpy|numpy"
    code = f"import sys, re, margo.estimate.lme; sys.exit(any(re.match('({heavy})$', name) for name in sys.modules))"
    subprocess.run([sys.executable, "-c", code], check=True)
    code = "import sys; from margo.estimate.lme import solve; sys.exit(bool({'cvxpy', 'scipy'} & set(sys.modules)))"
    subprocess.run([sys.executable, "-c", code], check=True)

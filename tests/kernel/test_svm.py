"""The machines against scikit-learn's, against their optimality conditions, and warm against cold."""

import numpy as np
import pytest

from margo.kernel.multiclass import pairs
from margo.kernel.svm import against, from_pairs, solve_all, solve_binary


def two_classes(seed, n=80, dims=3, gap=1.0):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2, 1, -1)
    return rng.normal(size=(n, dims)) + gap * y[:, None] / np.sqrt(dims), y


@pytest.mark.parametrize("cost", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("dims", [1, 3, 200])
def test_binary_against_sklearn(dims, cost):
    from sklearn.svm import SVC

    z, y = two_classes(1, dims=dims)
    ours = solve_binary(z, y, cost, tolerance=1e-6)
    theirs = SVC(kernel="linear", C=cost, tol=1e-8).fit(z, y)
    w = theirs.coef_[0]
    assert ours.objective == pytest.approx(np.abs(theirs.dual_coef_).sum() - 0.5 * w @ w, rel=1e-6)
    np.testing.assert_allclose(ours.weights[:, 0], w, atol=1e-4 * np.abs(w).max())
    assert ours.bias[0] == pytest.approx(theirs.intercept_[0], abs=1e-3)


@pytest.mark.parametrize("dims", [3, 30])
def test_binary_kkt_conditions(dims):
    z, y = two_classes(2, dims=dims)
    machine = solve_binary(z, y, 1.0, tolerance=1e-9)
    alpha = machine.coefficients[:, 0] * y
    margins = y * (z @ machine.weights[:, 0] + machine.bias)
    assert abs(machine.coefficients.sum()) < 1e-7 and alpha.min() >= 0 and alpha.max() <= 1.0
    assert (margins[alpha < 1e-6] > 1 - 1e-5).all()
    assert (margins[alpha > 1 - 1e-6] < 1 + 1e-5).all()
    inside = (alpha > 1e-6) & (alpha < 1 - 1e-6)
    assert inside.any() and np.abs(margins[inside] - 1).max() < 1e-5


def test_interior_point_and_smo_agree_where_classes_are_unequal():
    z, y = two_classes(7, n=90)
    z, y = z[25:], np.where(np.arange(65) < 9, 1, -1)
    few = solve_binary(z, y, 3.0)  # 4 P <= N: interior point
    wide = solve_binary(np.hstack([z, np.zeros((65, 20))]), y, 3.0, tolerance=1e-8)  # the same samples by SMO
    assert few.objective == pytest.approx(wide.objective, rel=1e-7)
    np.testing.assert_allclose(few.weights, wide.weights[:3], atol=1e-5)


def test_warm_start_takes_fewer_steps_to_the_same_value():
    z, y = two_classes(3, n=200, dims=100)
    first = solve_binary(z, y, 1.0)
    moved = z + 1e-4 * np.random.default_rng(4).normal(size=z.shape)
    cold = solve_binary(moved, y, 1.0, tolerance=1e-6)
    assert solve_binary(moved, y, 1.0, first.coefficients, tolerance=1e-6).objective == pytest.approx(
        cold.objective, rel=1e-8
    )
    few = 20
    warm_early = solve_binary(moved, y, 1.0, first.coefficients, max_steps=few).objective
    assert warm_early > solve_binary(moved, y, 1.0, max_steps=few).objective
    assert warm_early == pytest.approx(cold.objective, rel=1e-4)


@pytest.mark.parametrize("cost", [0.1, 1.0])
def test_all_in_one_against_sklearn(cost):
    from sklearn.svm import LinearSVC

    rng = np.random.default_rng(5)
    y = rng.integers(0, 4, 120)
    z = rng.normal(size=(120, 5)) + 1.5 * np.eye(5)[y]
    ours = solve_all(z, y, cost, tolerance=1e-6, max_epochs=5000, bias=False)
    theirs = LinearSVC(multi_class="crammer_singer", C=cost, fit_intercept=False, tol=1e-8, max_iter=200_000).fit(z, y)

    def primal(w):
        f = z @ w
        rivals = f - f[np.arange(120), y][:, None] + 1.0
        rivals[np.arange(120), y] = 0.0
        return 0.5 * (w**2).sum() + cost * rivals.max(1).sum()

    assert ours.objective == pytest.approx(primal(theirs.coef_.T), rel=1e-4)
    assert ours.objective == pytest.approx(primal(ours.weights), rel=1e-5)  # no duality gap: it certifies itself
    assert np.abs(ours.coefficients.sum(1)).max() < 1e-9
    caps = np.where(np.eye(4)[y] > 0, cost, 0)
    assert (ours.coefficients <= caps + 1e-12).all()


def test_all_in_one_of_two_classes_is_the_binary_machine_without_bias():
    z, y = two_classes(6)
    whole = solve_all(z, (y > 0).astype(int), 1.0, tolerance=1e-6, max_epochs=5000, bias=False)
    difference = whole.weights[:, 1] - whole.weights[:, 0]
    # the pair (w/2, -w/2) has half the norm of w: the binary problem with twice the cost, no bias
    from sklearn.svm import LinearSVC

    theirs = LinearSVC(loss="hinge", C=2.0, fit_intercept=False, tol=1e-8, max_iter=200_000).fit(z, y)
    np.testing.assert_allclose(difference, theirs.coef_[0], rtol=1e-2, atol=1e-2)


def test_bias_is_the_weight_of_a_constant_feature():
    z, y = two_classes(8)
    y = (y > 0).astype(int)
    biased = solve_all(z, y, 1.0, tolerance=1e-6)
    plain = solve_all(np.hstack([z, np.ones((len(z), 1))]), y, 1.0, tolerance=1e-6, bias=False)
    np.testing.assert_allclose(np.vstack([biased.weights, biased.bias]), plain.weights)


def three_classes(seed=9, n=60):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    return rng.normal(size=(n, 4)) + 1.2 * np.eye(4)[y], y


@pytest.mark.parametrize("cost", [0.1, 1.0])
def test_each_rival_s_slack_is_the_printed_program(cost):
    """[L04] (17) by cvxpy, and no duality gap by our own count."""
    import cvxpy

    z, y = three_classes()
    ours = solve_all(z, y, cost, tolerance=1e-7, max_epochs=20000, bias=False, kind="each")
    w, slack = cvxpy.Variable((4, 3)), cvxpy.Variable((60, 3), nonneg=True)
    f = z @ w
    rules = [f[i, y[i]] >= f[i, m] + 2 - slack[i, m] for i in range(60) for m in range(3) if m != y[i]]
    charged = np.where(np.eye(3)[y] > 0, 0.0, cost)
    value = 0.5 * cvxpy.sum_squares(w) + cvxpy.sum(cvxpy.multiply(charged, slack))
    program = cvxpy.Problem(cvxpy.Minimize(value), rules)
    assert ours.objective == pytest.approx(program.solve(), rel=1e-5)
    np.testing.assert_allclose(ours.weights, w.value, atol=1e-3)
    gaps = np.maximum(0.0, 2 - (z @ ours.weights)[np.arange(60), y][:, None] + z @ ours.weights)
    gaps[np.arange(60), y] = 0.0
    assert ours.objective == pytest.approx(0.5 * (ours.weights**2).sum() + cost * gaps.sum(), rel=1e-6)


def test_each_of_two_classes_is_the_binary_machine():
    """The margin of 2 in (17) is what makes C mean the same."""
    from sklearn.svm import LinearSVC

    z, y = two_classes(6)
    made = solve_all(z, (y > 0).astype(int), 1.0, tolerance=1e-7, max_epochs=5000, bias=False, kind="each")
    theirs = LinearSVC(loss="hinge", C=1.0, fit_intercept=False, tol=1e-8, max_iter=200_000).fit(z, y)
    np.testing.assert_allclose(made.weights[:, 1], theirs.coef_[0], rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("kind", ["joint", "each"])
def test_pairs_are_a_start_to_the_same_solution(kind):
    z, y = three_classes(n=150)
    machines = {}
    for a, b in pairs(3):
        own = (y == a) | (y == b)
        machines[a, b] = solve_binary(z[own], np.where(y[own] == a, 1, -1)).coefficients
    start = against(from_pairs(machines, y, 3), y)
    cold, warm = (solve_all(z, y, 1.0, begun, tolerance=1e-5, max_epochs=50000, kind=kind) for begun in (None, start))
    assert warm.objective == pytest.approx(cold.objective, rel=1e-6)
    early = [solve_all(z, y, 1.0, begun, tolerance=1e-5, max_epochs=2, kind=kind).objective for begun in (None, start)]
    if kind == "each":
        assert early[1] > early[0], "the pairs' machines are no start"

"""Max-margin Gaussians: the problem against its print, SMO against a conic solver, certificates, missing values."""

import time

import cvxpy
import numpy as np
import pytest

from margo.classify import alternate, gmm, maxmargin, smo
from margo.classify.gmm import GmmOptions, log_joint
from margo.classify.maxmargin import MarginOptions
from margo.errors import MargoError
from margo.gaussian.pool import GaussianPool


def case(seed=0, classes=3, N=25, D=2, mixtures=2, cost=1.0, s=0.5, balance=0.0):
    rng = np.random.default_rng(seed)
    x = np.concatenate([rng.normal(1.2 * c, 1.0, (N, D)) for c in range(classes)])
    if balance:
        x = x * np.arange(1, D + 1)  # features of unequal spread
    y = np.repeat(np.arange(classes), N)
    model, _ = gmm.fit(x, y, GmmOptions(mixtures=mixtures, covariance="full", ridge=0.05), rng)
    return maxmargin.pose(model, x, y, cost, s, balance), model, x, y


def test_packed_products_are_matrix_products():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 3, 4, 4))
    a, b = a + a.transpose(0, 2, 1), b + b.transpose(0, 2, 1)
    np.testing.assert_allclose(maxmargin.unpack_matrices(maxmargin.pack_matrices(a), 4), a)
    products = (maxmargin.pack_matrices(a) * maxmargin.pack_matrices(b)).sum(1)
    np.testing.assert_allclose(products, (a * b).sum(axis=(1, 2)))


def test_objective_is_the_printed_one():
    problem, *_ = case()
    rng = np.random.default_rng(1)
    packed = rng.normal(size=(6, 6))
    psi = maxmargin.unpack_matrices(packed[:, :3], 2)
    total = 0.5 * sum((m**2).sum() for m in psi) + 0.5 * (packed[:, 3:] ** 2).sum()
    for x, y, r in zip(problem.x, problem.y, problem.responsible):
        f = [x @ psi[k] @ x + problem.s * (packed[k, 3:5] @ x + packed[k, 5]) for k in range(6)]
        assert r // 2 == y
        total += problem.cost * max(0.0, max(1.0 + f[r] - f[k] for k in range(6) if k // 2 != y))
    assert maxmargin.objective(problem, packed) == pytest.approx(total)


def conic(problem):
    """The same problem in cvxpy, matrices and all."""
    K, D = int(problem.offsets[-1]), problem.x.shape[1]
    psi = [cvxpy.Variable((D, D), PSD=True) for _ in range(K)]
    linear, constant = cvxpy.Variable((K, D)), cvxpy.Variable(K)
    slack = cvxpy.Variable(len(problem.x), nonneg=True)
    f = [
        cvxpy.sum(cvxpy.multiply(problem.x @ psi[k], problem.x), axis=1)
        + problem.s * (problem.x @ linear[k] + constant[k]) for k in range(K)
    ]  # fmt: skip
    constraints = []
    owner = np.repeat(np.arange(len(problem.offsets) - 1), np.diff(problem.offsets))
    for k in range(K):
        own = np.flatnonzero(problem.responsible == k)
        for r in range(K):
            if len(own) and owner[r] != owner[k]:
                constraints.append(f[k][own] <= f[r][own] - 1 + slack[own])
    ridge = sum(cvxpy.sum_squares(m) for m in psi) + cvxpy.sum_squares(linear) + cvxpy.sum_squares(constant)
    task = cvxpy.Problem(cvxpy.Minimize(0.5 * ridge + problem.cost * cvxpy.sum(slack)), constraints)
    task.solve(solver="CLARABEL")
    return task.value


@pytest.mark.parametrize("seed", range(3))
def test_smo_reaches_the_conic_optimum(seed):
    problem, *_ = case(seed, cost=2.0)
    state, _ = smo.fit(problem, MarginOptions(epochs=2000, gap=1e-5), np.random.default_rng(0))
    assert state.gap <= 1e-5
    assert state.primal == pytest.approx(conic(problem), rel=1e-4)
    assert np.linalg.eigvalsh(maxmargin.to_model(problem, state.phi).psi).min() >= -1e-8


def test_dual_is_feasible_and_rises_and_phi_is_its_sum():
    problem, *_ = case(4, cost=1.5)
    rng, state, last = np.random.default_rng(0), smo.begin(problem), 0.0
    for _ in range(30):
        state = smo.run_epoch(state, problem, rng.permutation(len(problem.x)))
        current = state.alpha.sum() - 0.5 * (state.phi**2).sum()
        assert current >= last - 1e-9 * abs(last)
        assert state.primal >= current
        last = current
    assert state.alpha.min() >= 0 and state.alpha.sum(axis=1).max() <= 1.5 * (1 + 1e-12)
    coefficients = state.alpha.copy()
    coefficients[np.arange(len(problem.x)), problem.responsible] -= state.alpha.sum(axis=1)
    part = maxmargin.pull(problem, coefficients)
    np.testing.assert_allclose(state.phi, part + state.gamma, atol=1e-9)
    np.testing.assert_allclose(state.phi, maxmargin.project(part, 2), atol=1e-9)
    owner = np.repeat(np.arange(3), 2)
    assert not state.alpha[owner == problem.y[:, None]].any()


def test_water_level_solves_the_sample_problem():
    rng = np.random.default_rng(0)
    for _ in range(300):
        wish, cost = rng.normal(0.5, 1.0, rng.integers(1, 8)), rng.uniform(0.05, 2.0)
        level = smo.water_level(wish, cost)
        taken = np.maximum(0.0, wish - level).sum()
        assert taken == pytest.approx(min(max(level, 0.0), cost), abs=1e-12)


def test_without_the_psd_step_matrices_are_indefinite():
    """The twin: the alpha part alone, which the paper's sample constraints were to keep semidefinite, is not."""
    problem, *_ = case(0, cost=2.0)
    state, _ = smo.fit(problem, MarginOptions(epochs=50), np.random.default_rng(0))
    psi = maxmargin.unpack_matrices((state.phi - state.gamma)[:, :3], 2)
    assert np.linalg.eigvalsh(psi).min() < -1e-3


def test_the_papers_alternation_stops_short_and_is_not_semidefinite():
    """Both faults of [DA08] 3.2 that the joint problem mends: no ridge on the rest, so the joint optimum is a bound."""
    problem, *_ = case(0, N=40, D=3, cost=2.0, s=20.0)  # large s: hardly any ridge on the linear part
    packed, reports = alternate.fit(problem, MarginOptions(epochs=200, cost=2.0), np.random.default_rng(0))
    objectives = np.array([-report["objective"] for report in reports])
    assert len(objectives) > 3 and (np.diff(objectives) <= 1e-9 * objectives[0]).all()  # never rises
    assert alternate.primal(problem, packed[:, :6], packed[:, 6:]) == pytest.approx(objectives[-1])
    assert reports[-1]["smallest_eigenvalue"] < -1e-4
    outer = np.stack([np.outer(x, x) for x in problem.x])
    products = np.einsum("nij,kij->nk", outer, maxmargin.unpack_matrices(packed[:, :6], 3))
    assert products.min() > -0.05  # the sample constraints (11) hold all the same
    joint, _ = smo.fit(problem, MarginOptions(epochs=3000, gap=1e-3, cost=2.0, scale=20.0), np.random.default_rng(0))
    assert objectives[-1] > 0.9 * joint.dual


def whole_program(problem, psi):
    """The least sum of slacks over the linear and constant parts, every constraint at once, by another solver."""
    K, D = len(psi), problem.x.shape[1]
    quadratic = np.einsum("nd,kde,ne->nk", problem.x, maxmargin.unpack_matrices(psi, D), problem.x)
    linear, constant = cvxpy.Variable((K, D)), cvxpy.Variable(K)
    slack = cvxpy.Variable(len(problem.x), nonneg=True)
    constraints = [cvxpy.abs(linear) <= alternate.LARGEST, cvxpy.abs(constant) <= alternate.LARGEST]
    for i, (x, y, own) in enumerate(zip(problem.x, problem.y, problem.responsible)):
        f = quadratic[i] + problem.s * (linear @ x + constant)
        constraints += [f[own] <= f[r] - 1 + slack[i] for r in range(K) if problem.start.pool.owners[r] != y]
    task = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum(slack)), constraints)
    return task.solve(solver="CLARABEL")


def test_the_alternations_program_is_solved_to_optimality():
    problem, *_ = case(1, N=12, cost=2.0)
    psi = 0.3 * np.random.default_rng(2).normal(size=(6, 3))
    tail = alternate.free_part(problem, psi, np.zeros((6, 3)))
    slacks = (alternate.primal(problem, psi, tail) - 0.5 * (psi**2).sum()) / problem.cost
    assert slacks == pytest.approx(whole_program(problem, psi), rel=1e-5)
    zeros = (alternate.primal(problem, psi, 0 * tail) - 0.5 * (psi**2).sum()) / problem.cost
    assert zeros > 1.2 * slacks  # doing nothing would be seen


def test_responsible_is_the_likeliest_gaussian_of_the_class():
    from scipy.stats import multivariate_normal

    problem, model, x, y = case(3, mixtures=3)
    pool = model.pool
    density = np.stack([multivariate_normal(mean, cov).logpdf(x) for mean, cov in
                        zip(pool.means, pool.covariances.dense())], axis=1) + pool.log_weights  # fmt: skip
    want = np.where(pool.owners == y[:, None], density, -np.inf).argmax(axis=1)
    np.testing.assert_array_equal(problem.responsible, want)
    assert (want != pool.offsets[y]).mean() > 0.3  # not always the first of its class


@pytest.mark.parametrize("every", [False, True])
def test_subgradient_by_central_differences(every):
    problem, model, *_ = case()
    packed = 0.1 * maxmargin.from_classifier(problem, model)
    scores = maxmargin.score_samples(problem.x, *maxmargin.unpack(problem, packed))
    gradient = packed - problem.cost * maxmargin.pull(problem, maxmargin.hinges(problem, scores, every)[1])
    for index in np.ndindex(packed.shape):
        values = []
        for sign in (1, -1):
            moved = packed.copy()
            moved[index] += sign * 1e-6
            values.append(maxmargin.objective(problem, moved, every))
        assert (values[0] - values[1]) / 2e-6 == pytest.approx(gradient[index], abs=1e-4, rel=1e-4)


def test_every_rival_has_a_hinge_in_sha_and_sauls_objective():
    problem, model, *_ = case()
    packed = 0.05 * maxmargin.from_classifier(problem, model)
    f = maxmargin.score_samples(problem.x, *maxmargin.unpack(problem, packed))
    total = 0.5 * (packed**2).sum()
    for i, (y, own) in enumerate(zip(problem.y, problem.responsible)):
        total += sum(problem.cost * max(0.0, 1 + f[i, own] - f[i, r]) for r in range(6) if r // 2 != y)
    assert maxmargin.objective(problem, packed, every=True) == pytest.approx(total)
    assert maxmargin.objective(problem, packed) < total


@pytest.mark.parametrize("seed", range(3))
def test_projected_gradient_comes_to_the_optimum(seed):
    """Within 1 % of SMO's certified optimum; what it reports is the best so far, of the point that comes back."""
    problem, model, *_ = case(seed, cost=2.0)
    packed, reports = maxmargin.descend(problem, maxmargin.from_classifier(problem, model), 1200)
    objectives = np.array([-report["objective"] for report in reports])
    assert (np.diff(objectives) <= 0).all()
    assert maxmargin.objective(problem, packed) == pytest.approx(objectives[-1], rel=1e-9)
    assert np.linalg.eigvalsh(maxmargin.to_model(problem, packed).psi).min() >= -1e-9
    state, _ = smo.fit(problem, MarginOptions(epochs=2000, gap=1e-4), np.random.default_rng(0))
    assert state.dual <= objectives[-1] <= 1.01 * state.dual
    theirs, _ = maxmargin.descend(problem, maxmargin.from_classifier(problem, model), 300, every=True)
    assert maxmargin.objective(problem, theirs, every=True) < maxmargin.objective(problem, packed, every=True)


def test_the_mean_of_the_iterates_comes_closer(monkeypatch):
    """Against the best iterate alone, which the mean is where the last one has all the weight."""
    problem, model, *_ = case(0, cost=2.0)
    start, found = maxmargin.from_classifier(problem, model), []
    for power in (maxmargin.POWER, 1e15):
        monkeypatch.setattr(maxmargin, "POWER", power)
        found.append(-maxmargin.descend(problem, start, 300)[1][-1]["objective"])
    state, _ = smo.fit(problem, MarginOptions(epochs=2000, gap=1e-4), np.random.default_rng(0))
    assert found[0] - state.dual < 0.8 * (found[1] - state.dual)


@pytest.mark.parametrize("balance", [0.5, 1.0])
def test_balance_evens_the_spread(balance):
    problem, _, x, _ = case(balance=balance)
    spread = problem.x.std(axis=0)
    assert spread[1] / spread[0] == pytest.approx((x[:, 1].std() / x[:, 0].std()) ** (1 - balance))
    assert (problem.x**2).sum(axis=1).mean() == pytest.approx(1.0)


@pytest.mark.parametrize("balance", [0.0, 0.4])
def test_likelihoods_as_scores(balance):
    problem, model, x, _ = case(balance=balance)
    packed = maxmargin.from_classifier(problem, model)
    ours = maxmargin.log_joint(maxmargin.to_model(problem, packed), x)
    theirs = log_joint(model, x, "component")
    difference = ours - theirs
    np.testing.assert_allclose(difference, difference[0, 0], atol=1e-8)


@pytest.mark.parametrize("balance", [0.0, 0.4])
def test_missing_values_are_expected(balance):
    """The mean score over many draws of the missing values from the mixture, given the observed ones."""
    problem, model, x, _ = case(D=3, balance=balance)
    state, _ = smo.fit(problem, MarginOptions(), np.random.default_rng(0))
    margin = maxmargin.to_model(problem, state.phi)
    sample = x[:1].copy()
    sample[0, [0, 2]] = np.nan
    rng = np.random.default_rng(0)
    # Importance sampling: draw (x_0, x_2) widely, weight by the density of the whole mixture at (x_0, x_1, x_2).
    wide = x.max(axis=0) + 5.0
    draws = rng.uniform(-wide, wide, (400000, 3))
    draws[:, 1] = x[0, 1]
    weights = np.exp(np.logaddexp.reduce(log_joint(model, draws), axis=1))
    want = weights @ maxmargin.scores(margin, draws) / weights.sum()
    np.testing.assert_allclose(maxmargin.scores(margin, sample)[0], want, rtol=0.02, atol=0.01)


def test_real_digits(corpora):
    """USPS in 50 principal components, one Gaussian a class: certificate, error and time; gradient needs longer."""
    from margo.classify.reduce import principal
    from margo.formats.tables import read_corpus

    tables = read_corpus(corpora / "usps")
    projection = principal(tables["train"].x, 50)
    x, y = projection(tables["train"].x), tables["train"].y
    test_x, test_y = projection(tables["test"].x), tables["test"].y
    rng = np.random.default_rng(0)
    model, _ = gmm.fit(x, y, GmmOptions(covariance="full", ridge=0.1), rng)
    assert abs(100 * (log_joint(model, test_x).argmax(1) != test_y).mean() - 5.78) < 0.5
    problem = maxmargin.pose(model, x, y, 3.0, 0.25)
    smo.run_epoch(smo.begin(problem), problem, np.arange(3))  # compile outside the clock
    began = time.process_time()
    state, _ = smo.fit(problem, MarginOptions(gap=0.01), rng)
    spent = time.process_time() - began
    assert state.gap <= 0.01 and spent < 60
    margin = maxmargin.to_model(problem, state.phi)
    assert np.linalg.eigvalsh(margin.psi).min() >= -1e-8
    assert 100 * (maxmargin.log_joint(margin, test_x).argmax(1) != test_y).mean() <= 5.5
    part = maxmargin.pose(model, x[::3], y[::3], 3.0, 0.25)
    best, _ = smo.fit(part, MarginOptions(gap=0.01), rng)
    packed, reports = maxmargin.descend(part, maxmargin.from_classifier(part, model), 500)
    assert -reports[10]["objective"] > 1.2 * best.primal  # a long way from where SMO is
    assert maxmargin.objective(part, packed) < 1.02 * best.primal


def test_the_component_rule_takes_the_best_gaussian():
    """[DA08] (5): two Gaussians in one place outdo a third together, not one by one."""
    pool = GaussianPool(np.zeros((3, 1)), np.ones((3, 1)), np.log([0.5, 0.5, 1.0]), np.array([0, 2, 3]))
    model = gmm.Classifier(pool, np.log([0.55, 0.45]))
    x = np.array([[0.0], [1.0]])
    density = -0.5 * (np.log(2 * np.pi) + x**2)
    np.testing.assert_allclose(log_joint(model, x), density + np.log([0.55, 0.45]))
    np.testing.assert_allclose(log_joint(model, x, "component"), density + np.log([0.55 * 0.5, 0.45]))
    assert log_joint(model, x).argmax(axis=1).tolist() == [0, 0]
    assert log_joint(model, x, "component").argmax(axis=1).tolist() == [1, 1]


def test_refusals():
    _, model, x, y = case()
    x = x.copy()
    x[3, 0] = np.nan
    with pytest.raises(MargoError, match="1 training samples have missing values"):
        maxmargin.pose(model, x, y, 1.0, 1.0)
    x[3, 0] = 0.0
    with pytest.raises(MargoError, match="1 samples have no label"):
        maxmargin.pose(model, x, np.where(np.arange(len(y)) == 1, -1, y), 1.0, 1.0)
    with pytest.raises(ValueError, match="--cost is 0"):
        MarginOptions(cost=0)

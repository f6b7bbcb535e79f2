"""Densities of the classifiers against scipy; missing values against models marginalised by hand."""

import time

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from margo.classify.gmm import Classifier, check_samples, log_joint, log_posteriors, marginalise
from margo.errors import MargoError
from margo.gaussian.covariances import TYPES, Diagonal, Full, LowRank, LowRankPrecision, log_with_gaps, low_rank
from margo.gaussian.lowrank import inverse_factors
from margo.gaussian.mixtures import log_components
from margo.gaussian.pool import GaussianPool


def random_covariances(kind, rng, K, D, R=2):
    if kind == "full":
        root = rng.normal(size=(K, D, D))
        return Full(root @ root.transpose(0, 2, 1) + 0.3 * np.eye(D))
    parts = rng.uniform(0.3, 2.0, (K, D)), rng.normal(size=(K, D, R))
    return TYPES[kind](*parts[: 1 if kind == "diagonal" else 2])


def random_classifier(kind, seed=0, D=6, sizes=(2, 3, 1), R=2, offset=0.0):
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    K = offsets[-1]
    weights = np.log(np.concatenate([rng.dirichlet(np.ones(size)) for size in sizes]))
    pool = GaussianPool(
        rng.normal(size=(K, D)) + offset, random_covariances(kind, rng, K, D, R), weights, offsets
    )
    return Classifier(pool, np.log(rng.dirichlet(np.ones(len(sizes)))))


@pytest.mark.parametrize("kind", TYPES)
def test_log_densities_are_scipys(kind):
    model = random_classifier(kind, offset=50.0)
    x = np.random.default_rng(1).normal(size=(20, 6)) + 50.0
    pool = model.pool
    want = [multivariate_normal(m, s).logpdf(x) for m, s in zip(pool.means, pool.covariances.dense())]
    np.testing.assert_allclose(pool.covariances.log_densities(x, pool.means), np.transpose(want), atol=1e-9)
    np.testing.assert_allclose(log_components(pool, x) - pool.log_weights, np.transpose(want), atol=1e-9)
    joint = log_joint(model, x)
    brute = [
        [np.log(sum(np.exp(pool.log_weights[k] + want[k][n]) for k in range(*pool.offsets[c : c + 2])))
         + model.log_priors[c] for c in range(3)] for n in range(20)
    ]  # fmt: skip
    np.testing.assert_allclose(joint, brute, atol=1e-9)
    np.testing.assert_allclose(np.exp(log_posteriors(joint)).sum(1), 1.0)
    best = log_joint(model, x, "component")
    brute = [
        [max(pool.log_weights[k] + want[k][n] for k in range(*pool.offsets[c : c + 2])) + model.log_priors[c]
         for c in range(3)] for n in range(20)
    ]  # fmt: skip
    np.testing.assert_allclose(best, brute, atol=1e-9)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("count", [1, 40])
def test_missing_values_are_integrated_out(kind, count):
    model = random_classifier(kind)
    rng = np.random.default_rng(2)
    x = rng.normal(size=(count, 6))
    x[rng.random(x.shape) < 0.5] = np.nan
    x[0, :] = [np.nan] * 6 if count > 1 else [1.0, np.nan, 0.3, np.nan, np.nan, -1.0]
    got = log_joint(model, x)
    for n, row in enumerate(x):
        seen = ~np.isnan(row)
        if seen.any():
            want = log_joint(marginalise(model, seen), row[None, seen])[0]
        else:
            want = model.log_priors
        np.testing.assert_allclose(got[n], want, atol=1e-9)


def test_marginalising_is_not_filling_in():
    """The twin that must fail: putting the mean in place of a missing value is another density."""
    model = random_classifier("dplr")
    x = np.array([[1.0, np.nan, 0.3, np.nan, np.nan, -1.0]])
    filled = np.where(np.isnan(x), model.pool.means.mean(0), x)
    assert np.abs(log_joint(model, x) - log_joint(model, filled)).max() > 0.1


@pytest.mark.parametrize("kind, rank", [("dplr", 25), ("dplr-precision", 24)])  # odd and even: the kernel pads to even
def test_missing_values_of_a_large_sample_are_integrated_out(kind, rank):
    model = random_classifier(kind, D=784, R=rank)
    rng = np.random.default_rng(3)
    x = rng.normal(size=(3, 784))
    x[rng.random(x.shape) < 0.5] = np.nan
    for row, got in zip(x, log_joint(model, x)):
        seen = ~np.isnan(row)
        want = log_joint(marginalise(model, seen), row[None, seen])[0]
        np.testing.assert_allclose(got, want, atol=1e-9, rtol=1e-12)


def test_a_matrix_that_is_not_positive_definite_is_named():
    scale, log_b, U, sign = LowRankPrecision(np.ones((2, 3)), np.zeros((2, 3, 1))).marginal_form
    U[1] = 2.0  # I - U U' of the second
    with pytest.raises(MargoError, match="Gaussian 1: .* not positive definite"):
        log_with_gaps(np.array([[0.5, np.nan, 1.0]]), np.zeros((2, 3)), scale, log_b, U, sign)


@pytest.mark.parametrize("precision", [False, True])
def test_full_rank_dplr_is_the_full_covariance(precision):
    full = random_covariances("full", np.random.default_rng(0), 6, 6)
    np.testing.assert_allclose(low_rank(full, 6, 1e-12, precision).dense(), full.dense(), rtol=1e-6, atol=1e-8)
    cut = low_rank(full, 2, 1e-6, precision)
    matrices, whole = (np.linalg.inv(m.dense()) if precision else m.dense() for m in (cut, full))
    np.testing.assert_allclose(np.diagonal(matrices, axis1=1, axis2=2), np.diagonal(whole, axis1=1, axis2=2))
    with pytest.raises(MargoError, match="dplr.* already"):
        low_rank(cut, 2, 1e-6)


@pytest.mark.parametrize("precision", [False, True])
def test_dplr_keeps_the_largest_eigenvectors(precision):
    """[R18] 4.2.1: S S' is the best approximation of its rank (Eckart-Young), far better than the other end's."""
    full = random_covariances("full", np.random.default_rng(3), 4, 6)
    matrices = np.linalg.inv(full.dense()) if precision else full.dense()
    cut = low_rank(full, 2, 1e-6, precision)
    for matrix, S in zip(matrices, cut.factor):
        values = np.linalg.eigvalsh(matrix)
        assert np.linalg.norm(matrix - S @ S.T) == pytest.approx(np.sqrt((values[:-2] ** 2).sum()))
        assert np.trace(S @ S.T) == pytest.approx(values[-2:].sum())


@pytest.mark.parametrize("kind", TYPES)
def test_every_type_agrees_with_its_own_matrices(kind):
    one = random_covariances(kind, np.random.default_rng(7), 4, 5)
    matrices = one.dense()
    np.testing.assert_allclose(one.variances, np.diagonal(matrices, axis1=1, axis2=2), rtol=1e-10)
    np.testing.assert_array_equal(one.take([2, 0]).dense(), matrices[[2, 0]])
    assert one.wrong == [] and one.kind == kind


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("offset", [0.0, 1e5])
def test_moments_are_expectations_over_what_is_missing(kind, offset):
    """Against conditional means and covariances sample by sample, about a centre far from the origin."""
    rng = np.random.default_rng(8)
    one = random_covariances(kind, rng, 3, 4)
    means, weights = rng.normal(size=(3, 4)) + offset, rng.random((30, 3))
    x = rng.normal(size=(30, 4)) + offset
    x[rng.random(x.shape) < 0.3] = np.nan
    moments = one.moments(x, means, weights, np.full(4, offset))
    matrices = one.dense()
    first, second = np.zeros((3, 4)), np.zeros((3, 4, 4))
    for k in range(3):
        for row, w in zip(x, weights[:, k]):
            seen, gap = ~np.isnan(row), np.isnan(row)
            gain = matrices[k][np.ix_(gap, seen)] @ np.linalg.inv(matrices[k][np.ix_(seen, seen)])
            y = np.where(seen, row, means[k]) - offset
            y[gap] += gain @ (row - means[k])[seen]
            rest = np.zeros((4, 4))
            rest[np.ix_(gap, gap)] = matrices[k][np.ix_(gap, gap)] - gain @ matrices[k][np.ix_(seen, gap)]
            first[k] += w * y
            second[k] += w * (np.outer(y, y) + rest)
    np.testing.assert_allclose(moments.occupancy, weights.sum(0))
    np.testing.assert_allclose(moments.first, first, atol=1e-8)
    want = np.diagonal(second, axis1=1, axis2=2) if kind == "diagonal" else second
    np.testing.assert_allclose(moments.second, want, atol=1e-8)


def test_moments_about_other_points_add_and_cancel():
    rng = np.random.default_rng(9)
    x, means = rng.normal(size=(40, 3)), rng.normal(size=(2, 3))
    up, down = rng.random((2, 40, 2))
    for one in (random_covariances("diagonal", rng, 2, 3), random_covariances("full", rng, 2, 3)):
        halves = [[one.moments(x[part], means, w[part], np.ones(3)) for part in (slice(15), slice(15, 40))]
                  for w in (up, down)]  # fmt: skip
        net = (halves[0][0] + halves[0][1]) - (halves[1][0] + halves[1][1])
        n, first, second = net.about(means)
        y = x[:, None] - means
        np.testing.assert_allclose(n, (up - down).sum(0), atol=1e-12)
        np.testing.assert_allclose(first, np.einsum("nk,nkd->kd", up - down, y), atol=1e-12)
        want = np.einsum("nk,nkd,nke->kde", up - down, y, y)
        want = np.diagonal(want, axis1=1, axis2=2) if one.kind == "diagonal" else want
        np.testing.assert_allclose(second, want, atol=1e-12)
    with pytest.raises(ValueError, match="different models"):
        net + one.moments(x, means, up, np.zeros(3))


def test_a_floor_holds_in_every_direction_and_leaves_what_is_above():
    rng = np.random.default_rng(10)
    floor = rng.uniform(0.2, 0.5, 4)
    full, low = random_covariances("full", rng, 3, 4), rng.normal(size=(4, 1))
    matrices = np.concatenate([full.matrices, [1e-3 * np.eye(4) + low @ low.T]])
    raised, count = Full(matrices).floored(floor)
    low = (np.linalg.eigvalsh(matrices / np.sqrt(np.outer(floor, floor))) < 1).any(axis=1)
    assert not low.all() and low[-1]
    np.testing.assert_array_equal(raised.matrices[~low], matrices[~low])
    assert count >= 3 and np.linalg.eigvalsh(raised.matrices - np.diag(floor)).min() > -1e-12
    variances = np.array([[0.1, 1.0, 2.0, 0.05]])
    diagonal, few = Diagonal(variances).floored(floor)
    both, same = Full(Diagonal(variances).dense()).floored(floor)
    assert few == same == 2
    np.testing.assert_allclose(both.variances, diagonal.variances, rtol=1e-12)


def test_one_large_sample_is_fast():
    """784 dimensions, 170 components of rank 25, half missing: 20 ms, where the paper's implementation took 500."""
    rng = np.random.default_rng(0)
    K, D, R = 170, 784, 25
    means, covariances = rng.normal(size=(K, D)), LowRank(rng.uniform(0.5, 2, (K, D)), 0.3 * rng.normal(size=(K, D, R)))
    pool = GaussianPool(means, covariances, np.full(K, -np.log(17)), np.arange(0, 171, 17))
    model = Classifier(pool, np.log(np.full(10, 0.1)))
    x = rng.normal(size=(1, D))
    x[0, rng.permutation(D)[: D // 2]] = np.nan
    log_joint(model, x)
    spent = []
    for _ in range(15):
        began = time.process_time()
        log_joint(model, x)
        spent.append(time.process_time() - began)
    assert min(spent) < 0.020  # about 0.005 on an idle core


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (np.zeros((3, 2)), [0, 1], "3 samples but 2 labels"),
        (np.zeros((0, 2)), [], "found shape"),
        (np.zeros((2, 2)), [0, 0], "at least 2 classes"),
        (np.zeros((2, 2)), [0, 2], "no sample of class 1"),
        ([[0, np.inf], [1, 1]], [0, 1], "infinite values, the first in sample 0, feature 1"),
        ([[0, np.nan], [1, np.nan]], [0, 1], "feature 1 has no value"),
    ],
)
def test_unusable_samples_are_refused(x, y, message):
    with pytest.raises(MargoError, match=message):
        check_samples(x, y)


def test_wrong_width_is_named():
    with pytest.raises(MargoError, match="5 features, the model was trained on 6"):
        log_joint(random_classifier("full"), np.zeros((1, 5)))


@pytest.mark.parametrize("dtype, near", [(np.float64, 1e-12), (np.float32, 1e-4)])
def test_inverse_factors_are_lapacks(dtype, near):
    matrices = random_covariances("full", np.random.default_rng(0), 5, 7).matrices
    got = inverse_factors(matrices.astype(dtype))
    assert got.dtype == dtype
    np.testing.assert_allclose(got, np.linalg.inv(np.linalg.cholesky(matrices)), atol=near)
    assert np.isnan(inverse_factors(-matrices)).any()

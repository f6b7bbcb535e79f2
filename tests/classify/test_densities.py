"""Densities of the classifiers against scipy; missing values against models marginalised by hand."""

import time

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from margo.classify.densities import log_dplr_missing, marginal_form
from margo.classify.gmm import (
    KINDS,
    Classifier,
    check_samples,
    covariances,
    log_components,
    log_joint,
    log_posteriors,
    marginalise,
    to_dplr,
)
from margo.errors import MargoError


def random_classifier(kind, seed=0, D=6, sizes=(2, 3, 1), R=2, offset=0.0):
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    K = offsets[-1]
    weights = [rng.dirichlet(np.ones(size)) for size in sizes]
    if kind == "full":
        root = rng.normal(size=(K, D, D))
        diagonal, factor = np.empty((K, 0)), root @ root.transpose(0, 2, 1) + 0.3 * np.eye(D)
    else:
        diagonal = rng.uniform(0.3, 2.0, (K, D))
        factor = rng.normal(size=(K, D, 0 if kind == "diagonal" else R))
    return Classifier(
        kind=kind, log_priors=np.log(rng.dirichlet(np.ones(len(sizes)))), offsets=offsets,
        log_weights=np.log(np.concatenate(weights)), means=rng.normal(size=(K, D)) + offset, diagonal=diagonal,
        factor=factor,
    )  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_log_densities_are_scipys(kind):
    model = random_classifier(kind, offset=50.0)
    x = np.random.default_rng(1).normal(size=(20, 6)) + 50.0
    want = [multivariate_normal(m, s).logpdf(x) for m, s in zip(model.means, covariances(model))]
    np.testing.assert_allclose(log_components(model, x), np.transpose(want), atol=1e-9)
    joint = log_joint(model, x)
    brute = [
        [np.log(sum(np.exp(model.log_weights[k] + want[k][n]) for k in range(*model.offsets[c : c + 2])))
         + model.log_priors[c] for c in range(3)] for n in range(20)
    ]  # fmt: skip
    np.testing.assert_allclose(joint, brute, atol=1e-9)
    np.testing.assert_allclose(np.exp(log_posteriors(joint)).sum(1), 1.0)
    best = log_joint(model, x, "component")
    brute = [
        [max(model.log_weights[k] + want[k][n] for k in range(*model.offsets[c : c + 2])) + model.log_priors[c]
         for c in range(3)] for n in range(20)
    ]  # fmt: skip
    np.testing.assert_allclose(best, brute, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
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
    filled = np.where(np.isnan(x), model.means.mean(0), x)
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
    scale, log_b, U, sign = marginal_form(np.ones((2, 3)), np.zeros((2, 3, 1)), True)
    U[1] = 2.0  # I - U U' of the second
    with pytest.raises(MargoError, match="Gaussian 1: .* not positive definite"):
        log_dplr_missing(np.array([[0.5, np.nan, 1.0]]), np.zeros((2, 3)), scale, log_b, U, sign)


@pytest.mark.parametrize("precision", [False, True])
def test_full_rank_dplr_is_the_full_covariance(precision):
    model = random_classifier("full")
    same = to_dplr(model, 6, 1e-12, precision)
    np.testing.assert_allclose(covariances(same), covariances(model), rtol=1e-6, atol=1e-8)
    cut = to_dplr(model, 2, 1e-6, precision)
    matrices = [np.linalg.inv(m) if precision else m for m in covariances(cut)]
    whole = [np.linalg.inv(m) if precision else m for m in covariances(model)]
    np.testing.assert_allclose(np.diagonal(matrices, axis1=1, axis2=2), np.diagonal(whole, axis1=1, axis2=2))


def test_one_large_sample_is_fast():
    """784 dimensions, 170 components of rank 25, half missing: 20 ms, where the paper's implementation took 500."""
    rng = np.random.default_rng(0)
    K, D, R = 170, 784, 25
    model = Classifier(
        "dplr", np.log(np.full(10, 0.1)), np.arange(0, 171, 17), np.full(K, -np.log(17)), rng.normal(size=(K, D)),
        rng.uniform(0.5, 2, (K, D)), 0.3 * rng.normal(size=(K, D, R)),
    )  # fmt: skip
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

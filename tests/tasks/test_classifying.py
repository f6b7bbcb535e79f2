"""How many numbers a classifier holds."""

import numpy as np
import pytest

from margo.classify.gmm import Classifier
from margo.classify.maxmargin import MaxMargin
from margo.gaussian.covariances import Diagonal, Full, LowRank
from margo.gaussian.pool import GaussianPool
from margo.tasks.classifying import parameters


def classifier(covariances, classes, each):
    K, D = covariances.variances.shape
    pool = GaussianPool(np.zeros((K, D)), covariances, np.full(K, -np.log(each)), np.arange(0, K + 1, each))
    return Classifier(pool, np.full(classes, -np.log(classes)))


def test_a_mixture_of_the_papers_size_holds_as_many_numbers_as_it_says():
    """[PW10] 5.2: 16404, of 4 classes with 100 diagonal Gaussians of 20 features."""
    assert parameters(classifier(Diagonal(np.ones((400, 20))), 4, 100)) == 16404


@pytest.mark.parametrize("covariances, matrix", [
    (Full(np.tile(np.eye(5), (6, 1, 1))), 15),  # a triangle
    (LowRank(np.ones((6, 5)), np.zeros((6, 5, 2))), 5 + 10),
])  # fmt: skip
def test_matrices_count_what_they_hold(covariances, matrix):
    assert parameters(classifier(covariances, 3, 2)) == 6 * (5 + matrix + 1) + 3


def test_a_max_margin_gaussian_is_a_triangle_a_vector_and_a_number():
    start = classifier(Full(np.tile(np.eye(5), (6, 1, 1))), 3, 2)
    forms = np.zeros((6, 5, 5)), np.zeros((6, 5)), np.zeros(6)
    assert parameters(MaxMargin(np.zeros(5), np.ones(5), np.arange(0, 7, 2), *forms, start)) == 6 * (15 + 5 + 1)

"""The scikit-learn face: its own checks, pipelines, searches, missing values."""

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from margo.classify.estimators import EBWClassifier, GMMClassifier, HybridClassifier, MaxMarginClassifier

ALL = [
    GMMClassifier(),
    EBWClassifier(iterations=20),
    HybridClassifier(epochs=3, batch=20),
    MaxMarginClassifier(epochs=10),
]


def not_applicable(estimator):
    """These train on complete samples but classify samples with gaps; the check knows only both or neither."""
    if isinstance(estimator, HybridClassifier | MaxMarginClassifier):
        return {"check_estimators_nan_inf": "NaN is a missing value in predict, not in fit"}
    return {}


@parametrize_with_checks(ALL, expected_failed_checks=not_applicable)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("estimator", ALL)
def test_iris_with_missing_values_at_test_time(estimator):
    x, y = load_iris(return_X_y=True)
    train_x, test_x, train_y, test_y = train_test_split(x, y, random_state=0, stratify=y)
    fitted = make_pipeline(StandardScaler(), estimator).fit(train_x, train_y)
    assert fitted.score(test_x, test_y) > 0.9
    holes = test_x.copy()
    holes[:, 0] = np.nan
    assert fitted.score(holes, test_y) > 0.85
    np.testing.assert_allclose(fitted.predict_proba(holes).sum(axis=1), 1.0)


def test_grid_search_over_a_pipeline():
    x, y = load_digits(return_X_y=True)
    x, y = x[:600], y[:600]
    search = GridSearchCV(
        make_pipeline(PCA(12, whiten=True, random_state=0), GMMClassifier(covariance="full")),
        {"gmmclassifier__ridge": [1e-3, 1.0]}, cv=3,
    ).fit(x, y)  # fmt: skip
    assert search.best_score_ == max(search.cv_results_["mean_test_score"]) > 0.85
    assert search.predict_proba(x[:5]).shape == (5, 10)


def test_training_with_missing_values():
    x, y = load_iris(return_X_y=True)
    holes = x.copy()
    holes[np.random.default_rng(0).random(x.shape) < 0.2] = np.nan
    for estimator in (GMMClassifier(covariance="full"), EBWClassifier(iterations=20)):
        assert estimator.fit(holes, y).score(x, y) > 0.93
    with pytest.raises(ValueError, match="NaN"):
        HybridClassifier().fit(holes, y)

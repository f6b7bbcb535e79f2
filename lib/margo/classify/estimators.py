"""The classifiers as scikit-learn estimators: ``fit predict predict_proba score``, for pipelines and searches.

NaN in ``X`` is a missing value, integrated out when classifying; :class:`GMMClassifier` and :class:`EBWClassifier`
train on such samples too.
"""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from margo.classify import ebw, em, gmm, hybrid, maxmargin
from margo.classify.options import EbwOptions, EmOptions, HybridOptions, MarginOptions
from margo.errors import MargoError


class _Bayes(ClassifierMixin, BaseEstimator):
    """What the estimators share; each has its own ``_train(x, y, rng)`` that returns a model."""

    _trains_on_gaps = True

    def fit(self, X, y):
        finite = "allow-nan" if self._trains_on_gaps else True
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_all_finite=finite)
        check_classification_targets(y)
        self.classes_, y = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"{type(self).__name__} needs samples of at least 2 classes, found 1 class")
        try:
            self.model_ = self._train(X, y, np.random.default_rng(self.random_state))
        except MargoError as error:
            raise ValueError(str(error)) from error
        return self

    def decision_function(self, X):
        """``log p(x, c)`` of every class [N, C], or their difference [N] for two classes."""
        joint = self._log_joint(X)
        return joint[:, 1] - joint[:, 0] if len(self.classes_) == 2 else joint

    def predict_log_proba(self, X):
        return gmm.log_posteriors(self._log_joint(X))

    def predict_proba(self, X):
        return np.exp(self.predict_log_proba(X))

    def predict(self, X):
        joint = self._log_joint(X)
        return self.classes_[joint.argmax(axis=1)]

    def _log_joint(self, X):
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=False)
        if isinstance(self.model_, maxmargin.MaxMargin):
            return maxmargin.log_joint(self.model_, X)
        return gmm.log_joint(self.model_, X)

    def _em(self, x, y, rng, **changes):
        settings = {"mixtures": self.mixtures, "covariance": self.covariance, "ridge": self.ridge}
        return em.fit(x, y, EmOptions(**{**settings, **changes}), rng, len(self.classes_))[0]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._trains_on_gaps
        return tags


class GMMClassifier(_Bayes):
    """Maximum likelihood by EM; parameters as in :class:`margo.classify.options.EmOptions`."""

    def __init__(self, mixtures=1, covariance="diagonal", tied=False, rank=25, restarts=1, ridge=1e-3,
                 uniform_priors=False, random_state=0):  # fmt: skip
        self.mixtures = mixtures
        self.covariance = covariance
        self.tied = tied
        self.rank = rank
        self.restarts = restarts
        self.ridge = ridge
        self.uniform_priors = uniform_priors
        self.random_state = random_state

    def _train(self, x, y, rng):
        return self._em(x, y, rng, tied=self.tied, rank=self.rank, restarts=self.restarts,
                        uniform_priors=self.uniform_priors)  # fmt: skip


class EBWClassifier(_Bayes):
    """Conditional likelihood (``criterion="cl"``) or margin (``"mm"``) by EBW from an EM start [PW10]."""

    covariance = "diagonal"

    def __init__(self, criterion="mm", mixtures=1, iterations=100, factor=5.0, exponent=0.5, backtrack=False,
                 ridge=1e-3, random_state=0):  # fmt: skip
        self.criterion = criterion
        self.mixtures = mixtures
        self.iterations = iterations
        self.factor = factor
        self.exponent = exponent
        self.backtrack = backtrack
        self.ridge = ridge
        self.random_state = random_state

    def _train(self, x, y, rng):
        options = EbwOptions(criterion=self.criterion, iterations=self.iterations, factor=self.factor,
                             exponent=self.exponent, backtrack=self.backtrack)  # fmt: skip
        return ebw.fit(self._em(x, y, rng), x, y, options)[0]


class HybridClassifier(_Bayes):
    """Likelihood with margin or conditional likelihood by ADAM, diagonal-plus-low-rank matrices [R18]."""

    _trains_on_gaps = False

    def __init__(self, objective="ll-lm", mixtures=1, covariance="full", rank=25, generative=0.2458, margin=59.7,
                 precision=True, rate=0.00207, batch=100, epochs=25, ridge=0.05, least=1e-3,
                 random_state=0):  # fmt: skip
        self.objective = objective
        self.mixtures = mixtures
        self.covariance = covariance
        self.rank = rank
        self.generative = generative
        self.margin = margin
        self.precision = precision
        self.rate = rate
        self.batch = batch
        self.epochs = epochs
        self.ridge = ridge
        self.least = least
        self.random_state = random_state

    def _train(self, x, y, rng):
        options = HybridOptions(
            objective=self.objective, rank=self.rank, generative=self.generative, margin=self.margin,
            precision=self.precision, rate=self.rate, batch=self.batch, epochs=self.epochs, ridge=self.least,
        )  # fmt: skip
        seed = 0 if self.random_state is None else self.random_state
        return hybrid.fit(self._em(x, y, rng), x, y, options, seed)[0]


class MaxMarginClassifier(_Bayes):
    """Max-margin Gaussians by SMO [DA08]; probabilities are those of the scores taken as log likelihoods."""

    _trains_on_gaps = False

    def __init__(self, mixtures=1, covariance="full", cost=3.0, scale=0.25, balance=0.4, epochs=60, gap=0.005,
                 ridge=0.1, random_state=0):  # fmt: skip
        self.mixtures = mixtures
        self.covariance = covariance
        self.cost = cost
        self.scale = scale
        self.balance = balance
        self.epochs = epochs
        self.gap = gap
        self.ridge = ridge
        self.random_state = random_state

    def _train(self, x, y, rng):
        from margo.classify import smo

        problem = maxmargin.pose(self._em(x, y, rng), x, y, self.cost, self.scale, self.balance)
        options = MarginOptions(cost=self.cost, scale=self.scale, epochs=self.epochs, gap=self.gap)
        return maxmargin.to_model(problem, smo.fit(problem, options, rng)[0].phi)

"""The classifiers as scikit-learn estimators: ``fit predict predict_proba score``, for pipelines and searches.

NaN in ``X`` is a missing value, integrated out when classifying; :class:`GMMClassifier` and :class:`EBWClassifier`
train on such samples too.
"""

from dataclasses import dataclass, fields

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from margo.classify import ebw_training, gmm, hybrid, maxmargin
from margo.classify.ebw_training import EbwOptions
from margo.classify.gmm import GmmOptions
from margo.classify.hybrid import HybridOptions
from margo.classify.maxmargin import MarginOptions
from margo.errors import MargoError

# scikit-learn's estimators are dataclasses but for comparing and showing themselves, which BaseEstimator does.
estimator = dataclass(eq=False, repr=False)


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

    def _options(self, kind, names=None, **changes):
        """Settings of a trainer: those of its knobs (or of ``names``) that the estimator has, and ``changes``."""
        names = names or [each.name for each in fields(kind) if hasattr(self, each.name)]
        return kind(**{name: getattr(self, name) for name in names} | changes)

    def _start(self, x, y, rng):
        """The maximum-likelihood classifier that the other trainers start from."""
        options = self._options(GmmOptions, ("mixtures", "covariance", "ridge"))
        return gmm.fit(x, y, options, rng, len(self.classes_))[0]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._trains_on_gaps
        return tags


@estimator
class GMMClassifier(_Bayes):
    """Maximum likelihood by EM; parameters and their defaults as in :class:`margo.classify.gmm.GmmOptions`."""

    mixtures: int = GmmOptions.mixtures
    covariance: str = GmmOptions.covariance
    tied: bool = GmmOptions.tied
    rank: int = GmmOptions.rank
    restarts: int = GmmOptions.restarts
    ridge: float = GmmOptions.ridge
    uniform_priors: bool = GmmOptions.uniform_priors
    random_state: int = 0

    def _train(self, x, y, rng):
        return gmm.fit(x, y, self._options(GmmOptions), rng, len(self.classes_))[0]


@estimator
class EBWClassifier(_Bayes):
    """Conditional likelihood (``criterion="cl"``) or margin (``"mm"``) by EBW from an EM start [PW10]."""

    criterion: str = EbwOptions.criterion
    mixtures: int = GmmOptions.mixtures
    iterations: int = EbwOptions.iterations
    factor: float = EbwOptions.factor
    exponent: float = EbwOptions.exponent
    backtrack: bool = EbwOptions.backtrack
    ridge: float = GmmOptions.ridge
    random_state: int = 0
    covariance = "diagonal"

    def _train(self, x, y, rng):
        return ebw_training.fit(self._start(x, y, rng), x, y, self._options(EbwOptions))[0]


@estimator
class HybridClassifier(_Bayes):
    """Likelihood with margin or conditional likelihood by ADAM, diagonal-plus-low-rank matrices [R18]; ``ridge`` is
    that of the EM start, ``least`` that of :class:`margo.classify.hybrid.HybridOptions`."""

    objective: str = HybridOptions.objective
    mixtures: int = GmmOptions.mixtures
    covariance: str = "full"
    rank: int = HybridOptions.rank
    generative: float = HybridOptions.generative
    margin: float = HybridOptions.margin
    precision: bool = HybridOptions.precision
    rate: float = HybridOptions.rate
    batch: int = HybridOptions.batch
    epochs: int = HybridOptions.epochs
    ridge: float = 0.05
    least: float = HybridOptions.ridge
    random_state: int = 0
    _trains_on_gaps = False

    def _train(self, x, y, rng):
        options = self._options(HybridOptions, ridge=self.least)
        seed = 0 if self.random_state is None else self.random_state
        return hybrid.fit(self._start(x, y, rng), x, y, options, seed)[0]


@estimator
class MaxMarginClassifier(_Bayes):
    """Max-margin Gaussians by SMO [DA08]; probabilities are those of the scores taken as log likelihoods."""

    mixtures: int = GmmOptions.mixtures
    covariance: str = "full"
    cost: float = 3.0
    scale: float = MarginOptions.scale
    balance: float = MarginOptions.balance
    epochs: int = MarginOptions.epochs
    gap: float = MarginOptions.gap
    ridge: float = 0.1
    random_state: int = 0
    _trains_on_gaps = False

    def _train(self, x, y, rng):
        from margo.classify import smo

        options = self._options(MarginOptions)
        problem = maxmargin.pose(self._start(x, y, rng), x, y, options.cost, options.scale, options.balance)
        return maxmargin.to_model(problem, smo.fit(problem, options, rng)[0].phi)

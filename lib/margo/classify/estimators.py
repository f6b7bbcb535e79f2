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


def estimator(names: str, *options, **defaults):
    """A class with the parameters ``names``: their ``defaults``, or those of the first ``options`` that have such a
    knob. It is a dataclass but for comparing and showing itself, which scikit-learn's base does."""

    def declared(cls):
        cls.__annotations__ = {}
        for name in [*names.split(), "random_state"]:
            known = [getattr(kind, name) for kind in options if hasattr(kind, name)]
            value = defaults[name] if name in defaults else known[0] if known else 0
            cls.__annotations__[name] = type(value)
            setattr(cls, name, value)
        return dataclass(eq=False, repr=False)(cls)

    return declared


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
        joint = self._log_joint(X)  # first, since it asks whether there has been training
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


@estimator("mixtures covariance tied rank restarts ridge uniform_priors", GmmOptions)
class GMMClassifier(_Bayes):
    """Maximum likelihood by EM; parameters and their defaults as in :class:`margo.classify.gmm.GmmOptions`."""

    def _train(self, x, y, rng):
        return gmm.fit(x, y, self._options(GmmOptions), rng, len(self.classes_))[0]


@estimator("criterion mixtures iterations factor exponent backtrack ridge", EbwOptions, GmmOptions)
class EBWClassifier(_Bayes):
    """Conditional likelihood (``criterion="cl"``) or margin (``"mm"``) by EBW from an EM start [PW10]."""

    covariance = "diagonal"

    def _train(self, x, y, rng):
        return ebw_training.fit(self._start(x, y, rng), x, y, self._options(EbwOptions))[0]


@estimator(
    "objective mixtures covariance rank generative margin precision rate batch epochs ridge least", HybridOptions,
    GmmOptions, covariance="full", ridge=0.05, least=HybridOptions.ridge,
)  # fmt: skip
class HybridClassifier(_Bayes):
    """Likelihood with margin or conditional likelihood by ADAM, diagonal-plus-low-rank matrices [R18]; ``ridge`` is
    that of the EM start, ``least`` that of :class:`margo.classify.hybrid.HybridOptions`."""

    _trains_on_gaps = False

    def _train(self, x, y, rng):
        options = self._options(HybridOptions, ridge=self.least)
        seed = 0 if self.random_state is None else self.random_state
        return hybrid.fit(self._start(x, y, rng), x, y, options, seed)[0]


@estimator(
    "mixtures covariance cost scale balance epochs gap ridge", MarginOptions, GmmOptions, covariance="full", cost=3.0,
    ridge=0.1,
)  # fmt: skip
class MaxMarginClassifier(_Bayes):
    """Max-margin Gaussians by SMO [DA08]; probabilities are those of the scores taken as log likelihoods."""

    _trains_on_gaps = False

    def _train(self, x, y, rng):
        from margo.classify import smo

        options = self._options(MarginOptions)
        problem = maxmargin.pose(self._start(x, y, rng), x, y, options.cost, options.scale, options.balance)
        return maxmargin.to_model(problem, smo.fit(problem, options, rng)[0].phi)

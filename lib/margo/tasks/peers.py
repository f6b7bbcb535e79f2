"""Classifiers of scikit-learn as references for ours."""

import time

import numpy as np

from margo.errors import MargoError
from margo.tasks import classifying
from margo.tasks.scoring import score_classes

GRIDS = {
    "svm-rbf": [{"C": C, "gamma": gamma} for C in (3.0, 10.0) for gamma in (0.3, 1.0)],  # gamma in parts of 1 / (D var)
    "knn": [{"n_neighbors": k} for k in (1, 3, 5)],
    "mlp": [{"alpha": alpha} for alpha in (1e-3, 1e-1)],
}
FEW = {  # for few samples, chosen by leaving out one group (speaker) at a time
    "svm-rbf": [{"C": C, "gamma": gamma} for C in (1.0, 3.0, 10.0, 30.0) for gamma in (0.03, 0.1, 0.3, 1.0)],
    "svm-linear": [{"C": 1.0}],
    "qda": [{"reg_param": part} for part in (0.03, 0.1, 0.3, 0.5)],
    "knn": [{"n_neighbors": k} for k in (1, 3, 5, 7, 11)],
}


def make(system: str, seed: int = 0, **settings):
    """An unfitted classifier."""
    from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.neural_network import MLPClassifier
    from sklearn.svm import SVC

    if system.startswith("svm-"):
        return SVC(kernel=system.removeprefix("svm-"), **settings)
    if system == "mlp":
        return MLPClassifier((100,), activation="tanh", max_iter=200, early_stopping=True, n_iter_no_change=20,
                             random_state=seed, **settings)  # fmt: skip
    return (QuadraticDiscriminantAnalysis if system == "qda" else KNeighborsClassifier)(**settings)


def choose(system: str, x, y, groups) -> dict:
    """Of ``FEW`` the settings with the fewest errors on left-out groups; the first of equals. One needs no choice."""
    folds = [groups == group for group in np.unique(groups)] if len(FEW[system]) > 1 else []

    def wrong(settings):
        return sum((make(system, **settings).fit(x[~out], y[~out]).predict(x[out]) != y[out]).sum() for out in folds)

    return min(FEW[system], key=wrong)


def scaled(settings: dict, x) -> dict:
    return settings | ({"gamma": settings["gamma"] / (x.shape[1] * x.var())} if "gamma" in settings else {})


def fitted(system: str, train, dev, seed: int, most: int):
    """``(classifier, settings, training samples)``: settings chosen on ``dev``, then trained on it too."""
    most = most if system == "svm-rbf" else len(train.y)
    keep = np.random.default_rng(seed).permutation(len(train.y))[:most]
    tried = [(make(system, seed, **scaled(settings, train.x)), settings) for settings in GRIDS[system]]
    errors = [(each.fit(train.x[keep], train.y[keep]).predict(dev.x) != dev.y).mean() for each, _ in tried]
    chosen = tried[int(np.argmin(errors))][1]
    x, y = np.concatenate([train.x[keep], dev.x]), np.concatenate([train.y[keep], dev.y])
    return make(system, seed, **scaled(chosen, x)).fit(x, y), chosen, len(y)


def parameters(classifier, features: int) -> int:
    """Numbers that a trained classifier holds: support vectors and their weights, samples, or weights of units."""
    if hasattr(classifier, "support_vectors_"):
        return classifier.support_vectors_.size + classifier.dual_coef_.size + classifier.intercept_.size
    if hasattr(classifier, "coefs_"):
        return sum(each.size for each in (*classifier.coefs_, *classifier.intercepts_))
    return int(classifier.n_samples_fit_) * features


def imputing(system: str, train, dev, seed: int, most: int):
    """A trained reference that takes the training mean for missing values: samples to classes."""
    classifier, mean = fitted(system, train, dev, seed, most)[0], train.x.mean(axis=0)
    return lambda x: classifier.predict(np.where(np.isnan(x), mean, x))


def score_peers(options, step) -> None:
    train, dev, test = (classifying.labelled(classifying.read_set(options.data, name, step))
                        for name in ("train", "dev", "test"))  # fmt: skip
    if any(np.isnan(table.x).any() for table in (train, dev, test)):
        raise MargoError("the references cannot classify samples with missing values")
    for system in options.systems:
        began = time.perf_counter()
        classifier, chosen, samples = fitted(system, train, dev, options.seed, options.most)
        predicted, held = classifier.predict(test.x), parameters(classifier, test.x.shape[1])
        extra = {"settings": chosen, "training_samples": samples, "parameters": held}
        extra |= {"task": options.task} if options.task else {}
        written = score_classes(
            step.out / system / "test", [test.names[c] for c in test.y], [[test.names[c] for c in predicted]],
            system=system, mixtures=1, set="test", seed=options.seed, seconds=time.perf_counter() - began, extra=extra,
        )  # fmt: skip
        for file in written:
            step.output(f"{system}/test/{file}")
        step.say(f"{system} {chosen}: {100 * (predicted != test.y).mean():.2f} % of test wrong, {held} parameters")

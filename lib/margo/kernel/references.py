"""Classifiers of scikit-learn that results are held against; each chosen by leaving out one speaker at a time."""

import itertools

import numpy as np

GRIDS = {
    "svm-rbf": {"C": (1.0, 3.0, 10.0, 30.0), "gamma": (0.03, 0.1, 0.3, 1.0)},
    "svm-linear": {"C": (1.0,)},
    "qda": {"reg_param": (0.03, 0.1, 0.3, 0.5)},
    "knn": {"n_neighbors": (1, 3, 5, 7, 11)},
}


def make(system: str, **settings):
    """An unfitted classifier."""
    from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.svm import SVC

    if system.startswith("svm-"):
        return SVC(kernel=system.removeprefix("svm-"), **settings)
    return (QuadraticDiscriminantAnalysis if system == "qda" else KNeighborsClassifier)(**settings)


def choose(system: str, x, y, groups) -> dict:
    """The settings with the fewest errors on left-out groups; the first of equals. One setting needs no choice."""
    names = list(GRIDS[system])
    candidates = [dict(zip(names, values)) for values in itertools.product(*GRIDS[system].values())]
    if len(candidates) == 1:
        return candidates[0]
    errors = []
    for settings in candidates:
        wrong = 0
        for group in np.unique(groups):
            out = groups == group
            wrong += int((make(system, **settings).fit(x[~out], y[~out]).predict(x[out]) != y[out]).sum())
        errors.append(wrong)
    return candidates[int(np.argmin(errors))]

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


def make(system: str, settings: dict, x, seed: int):
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.neural_network import MLPClassifier
    from sklearn.svm import SVC

    if system == "svm-rbf":
        return SVC(C=settings["C"], gamma=settings["gamma"] / (x.shape[1] * x.var()))
    if system == "knn":
        return KNeighborsClassifier(**settings)
    return MLPClassifier((100,), activation="tanh", max_iter=200, early_stopping=True, n_iter_no_change=20,
                         random_state=seed, **settings)


def score_peers(options, step) -> None:
    train, dev, test = (classifying.labelled(classifying.read_set(options.data, name, step))
                        for name in ("train", "dev", "test"))  # fmt: skip
    if any(np.isnan(table.x).any() for table in (train, dev, test)):
        raise MargoError("the references cannot classify samples with missing values")
    for system in options.systems:
        began = time.perf_counter()
        most = options.most if system == "svm-rbf" else len(train.y)
        keep = np.random.default_rng(options.seed).permutation(len(train.y))[:most]
        errors = [float((make(system, settings, train.x, options.seed).fit(train.x[keep], train.y[keep]).predict(dev.x)
                         != dev.y).mean()) for settings in GRIDS[system]]  # fmt: skip
        chosen = GRIDS[system][int(np.argmin(errors))]
        x, y = np.concatenate([train.x[keep], dev.x]), np.concatenate([train.y[keep], dev.y])
        predicted = make(system, chosen, x, options.seed).fit(x, y).predict(test.x)
        extra = {"settings": chosen, "training_samples": len(y)} | ({"task": options.task} if options.task else {})
        written = score_classes(
            step.out / system / "test", [test.names[c] for c in test.y], [[test.names[c] for c in predicted]],
            system=system, mixtures=1, set="test", seed=options.seed, seconds=time.perf_counter() - began, extra=extra,
        )  # fmt: skip
        for file in written:
            step.output(f"{system}/test/{file}")
        step.say(f"{system} {chosen}: {100 * (predicted != test.y).mean():.2f} % of test wrong")

"""Trained GMM classifiers: ``model.npz`` with named arrays and a ``meta`` that says which kind."""

import numpy as np

from margo.classify.gmm import Classifier
from margo.classify.maxmargin import MaxMargin
from margo.errors import refuse
from margo.formats.atomic import read_npz, write_npz
from margo.formats.reading import fitting, reading
from margo.gaussian.covariances import TYPES
from margo.gaussian.pool import GaussianPool

FORMAT = "margo-classifier-1"
GAUSSIAN = ("log_priors", "offsets", "log_weights", "means", "diagonal", "factor")
STORED = {  # names of the arrays in the file, and of what a type of covariance has in them
    "diagonal": {"diagonal": "variances"},
    "full": {"factor": "matrices"},
    "dplr": {"diagonal": "diagonal", "factor": "factor"},
    "dplr-precision": {"diagonal": "diagonal", "factor": "factor"},
}
MARGIN = ("centre", "scale", "offsets", "psi", "linear", "constant")


def arrays_of(model: Classifier | MaxMargin) -> tuple[str, dict[str, np.ndarray]]:
    """``(kind, named arrays)`` of a classifier."""
    if isinstance(model, MaxMargin):
        kind, start = arrays_of(model.start)
        start = {f"start_{name}": value for name, value in start.items()} | {"start_kind": np.array(kind)}
        return "max-margin", {name: np.asarray(getattr(model, name)) for name in MARGIN} | start
    pool, kind = model.pool, model.pool.covariances.kind
    arrays = {name: getattr(pool, name) for name in ("offsets", "log_weights", "means")}
    arrays |= {"diagonal": np.empty((pool.n_gaussians, 0)), "factor": np.empty((*pool.means.shape, 0))}
    arrays |= {name: getattr(pool.covariances, own) for name, own in STORED[kind].items()}
    return kind, {"log_priors": model.log_priors, **arrays}


def classifier_of(kind: str, arrays: dict[str, np.ndarray]) -> Classifier | MaxMargin:
    """The classifier of :func:`arrays_of`."""
    if kind == "max-margin":
        begun = {name: arrays[f"start_{name}"] for name in GAUSSIAN}
        start = classifier_of(str(arrays["start_kind"]), begun)
        return MaxMargin(**{name: arrays[name] for name in MARGIN}, start=start)
    covariances = TYPES[kind](**{own: arrays[name] for name, own in STORED[kind].items()})
    pool = GaussianPool(arrays["means"], covariances, arrays["log_weights"], arrays["offsets"])
    return Classifier(pool, arrays["log_priors"])


def write_classifier(path, model: Classifier | MaxMargin, names, criterion: str, **meta) -> None:
    """``names`` are those of the classes; ``criterion`` is what the model was trained for."""
    kind, arrays = arrays_of(model)
    write_npz(path, {"format": FORMAT, "kind": kind, "names": list(names), "criterion": criterion, **meta}, arrays)


def read_classifier(path) -> tuple[Classifier | MaxMargin, dict]:
    """``(classifier, meta)`` of :func:`write_classifier`, checked."""
    meta, arrays = read_npz(path)
    fitting(path, meta, {"format": {FORMAT}, "kind": {*TYPES, "max-margin"}, "names": [str]}, "a classifier of margo")
    kind = meta["kind"]
    needed = (*MARGIN, *(f"start_{name}" for name in GAUSSIAN)) if kind == "max-margin" else GAUSSIAN
    faults = [f"array {name} is missing" for name in needed if name not in arrays]
    with reading(path, "a classifier"):
        faults += [f"array {name} has values that are not finite" for name in needed
                   if name in arrays and not np.isfinite(arrays[name]).all()]  # fmt: skip
        refuse(faults, str(path))
        model = classifier_of(kind, arrays)
        refuse(shape_faults(model, len(meta["names"])), str(path))
    return model, meta


def shape_faults(model: Classifier | MaxMargin, classes: int) -> list[str]:
    """Arrays of ``model`` that do not have the shapes of ``classes`` classes and of one another."""
    if not isinstance(model, MaxMargin):
        found = {"classes of the pool": model.pool.n_states, "log_priors": model.log_priors.shape}
        return _unlike(found, {"classes of the pool": classes, "log_priors": (classes,)})
    count, dimension = model.start.pool.means.shape
    expected = {"centre": (dimension,), "scale": (dimension,), "offsets": (classes + 1,), "constant": (count,),
                "psi": (count, dimension, dimension), "linear": (count, dimension)}  # fmt: skip
    faults = _unlike({name: getattr(model, name).shape for name in expected}, expected)
    same = faults or np.array_equal(model.offsets, model.start.pool.offsets)
    return faults + shape_faults(model.start, classes) + ["offsets are not those of its start"] * (not same)


def _unlike(found: dict, expected: dict) -> list[str]:
    return [f"{name}: found {found[name]}, expected {each}" for name, each in expected.items() if found[name] != each]

"""Classifiers to files and back, and files that are none."""

import numpy as np
import pytest

from margo.classify import gmm, hybrid, maxmargin
from margo.classify.gmm import GmmOptions, log_joint
from margo.classify.hybrid import HybridOptions
from margo.errors import MargoError
from margo.formats.atomic import write_npz
from margo.formats.classifiers import read_classifier, write_classifier


def models():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 3)), np.arange(40) % 2
    diagonal, _ = gmm.fit(x, y, GmmOptions(mixtures=2), rng)
    full, _ = gmm.fit(x, y, GmmOptions(covariance="full"), rng)
    low, _ = hybrid.fit(full, x, y, HybridOptions(epochs=1, rank=1))
    problem = maxmargin.pose(full, x, y, 1.0, 0.5)
    margin = maxmargin.to_model(problem, maxmargin.from_classifier(problem, full))
    return x, {"diagonal": diagonal, "full": full, "dplr-precision": low, "max-margin": margin}


def test_round_trip_is_exact(tmp_path):
    x, made = models()
    x[0, 1] = np.nan
    for kind, model in made.items():
        write_classifier(tmp_path / "model.npz", model, ["a", "b"], "ml", mixtures=2)
        back, meta = read_classifier(tmp_path / "model.npz")
        assert meta["kind"] == kind and meta["names"] == ["a", "b"]
        joint = maxmargin.log_joint if kind == "max-margin" else log_joint
        assert np.array_equal(joint(back, x), joint(model, x))


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "model.npz"
    write_npz(path, {"format": "else"}, {})
    with pytest.raises(MargoError, match="not a classifier of margo"):
        read_classifier(path)
    write_npz(path, {"format": "margo-classifier-1", "kind": "full", "names": ["a"]}, {"means": np.array([np.nan])})
    with pytest.raises(MargoError, match="log_priors is missing[\\s\\S]*means has values that are not finite"):
        read_classifier(path)
    write_npz(path, {"format": "margo-classifier-1", "kind": "cubic"}, {})
    with pytest.raises(MargoError, match="kind is 'cubic'"):
        read_classifier(path)

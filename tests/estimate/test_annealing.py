"""Scaled log-likelihoods in the E-step: with one variance v for all states, a scale of s is a variance of v / s."""

import numpy as np
import pytest

from margo.estimate.ml import MlOptions, accumulate
from margo.gaussian.pool import single_gaussians
from margo.model.hmm import flat_start, whole_words


@pytest.mark.parametrize("scale", [1.0, 0.3, 0.02])
def test_a_scale_is_a_wider_variance(scale):
    rng = np.random.default_rng(0)
    utterances = [("u", rng.normal(size=(12, 3)), ["a", "b"]), ("v", rng.normal(size=(9, 3)), ["b"])]
    flat = flat_start(whole_words("ab"), 3, np.zeros(3), np.ones(3))
    means, variance = rng.normal(size=(6, 3)), rng.uniform(0.2, 0.6, 3)
    sharp, wide = (flat.with_pool(single_gaussians(means, np.tile(v, (6, 1)))) for v in (variance, variance / scale))
    options = MlOptions(double=True)
    found, expected = accumulate(sharp, utterances, options, scale), accumulate(wide, utterances, options)
    for name in ("occupancy", "first", "second", "transitions"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-10)
    if scale < 1:
        whole = accumulate(sharp, utterances, options)
        assert np.abs(whole.occupancy - found.occupancy).max() > 0.1  # the scale matters


@pytest.mark.parametrize("wrong", [{"anneal": -1}, {"anneal_from": 0.0}, {"anneal_from": 1.5}])
def test_options_are_checked(wrong):
    with pytest.raises(ValueError, match="--anneal"):
        MlOptions(**wrong)

"""MAP means tend to those of maximum likelihood with data, and to the model's own without."""

import numpy as np
import pytest

from contests import task
from margo.errors import MargoError
from margo.estimate.map_adaptation import map_update
from margo.estimate.ml import MlOptions, accumulate, update
from margo.estimate.stats import Stats


def adapted(tau, copies=1):
    hmms, data = task(5, "loop", utterances=12)
    stats = accumulate(hmms, data, MlOptions(double=True))
    total = stats
    for _ in range(copies - 1):
        total = total + stats
    seen = stats.occupancy > 1e-3
    return hmms, update(hmms, stats, MlOptions(dead_weight=0.0))[0], map_update(hmms, total, tau)[0], seen, stats


def test_with_data_they_are_those_of_maximum_likelihood():
    for tau, copies, close in ((0.0, 1, 1e-9), (10.0, 4096, 0.02)):
        hmms, ml, found, seen, stats = adapted(tau, copies)
        heard = seen & (stats.occupancy > 1)
        np.testing.assert_allclose(found.pool.means[heard], ml.pool.means[heard], atol=close)
        assert not np.allclose(found.pool.means[heard], hmms.pool.means[heard], atol=0.05)


def test_in_between_they_are_the_weighed_mean():
    hmms, ml, found, seen, stats = adapted(7.0)
    share = (stats.occupancy / (stats.occupancy + 7.0))[:, None]
    expected = share * ml.pool.means + (1 - share) * hmms.pool.means
    np.testing.assert_allclose(found.pool.means[seen], expected[seen], atol=1e-9)
    np.testing.assert_array_equal(found.pool.variances, hmms.pool.variances)


def test_without_data_they_stay_and_none_at_all_is_told():
    hmms, _, found, _, _ = adapted(1e12)
    np.testing.assert_allclose(found.pool.means, hmms.pool.means, atol=1e-6)
    with pytest.raises(MargoError, match="no usable utterance"):
        map_update(hmms, Stats.zeros(hmms), 1.0)

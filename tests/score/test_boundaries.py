"""Boundary errors on cases done by hand."""

import numpy as np
import pytest

from margo.errors import MargoError
from margo.score.boundaries import boundary_errors, boundary_score

LABELS = [(0.0, 0.1, "sil"), (0.1, 0.25, "aa"), (0.27, 0.4, "t"), (0.4, 0.5, "sil")]  # something left out before t
ALIGNED = [(0.0, 0.115, "sil"), (0.115, 0.26, "aa"), (0.26, 0.37, "t"), (0.37, 0.5, "sil")]


def test_errors_are_aligned_minus_labelled_where_labels_touch():
    np.testing.assert_allclose(boundary_errors(LABELS, ALIGNED), [0.015, -0.03], atol=1e-12)


def test_labels_in_milliseconds_still_touch():
    """A CTM file rounds start and duration, so that an end may miss the next start by a millisecond."""
    labels = [(0.0, 0.101, "a"), (0.1, 0.2, "b"), (0.201, 0.3, "c")]
    assert len(boundary_errors(labels, labels)) == 2


def test_other_symbols_are_refused():
    with pytest.raises(MargoError, match="symbols"):
        boundary_errors(LABELS, ALIGNED[:-1])
    with pytest.raises(MargoError, match="symbols"):
        boundary_errors(LABELS, [*ALIGNED[:-1], (0.37, 0.5, "aa")])


def test_summary():
    score = boundary_score(np.array([0.010, -0.020, 0.0201, -0.050, 0.0]))
    assert score["within"] == {0.010: 0.4, 0.020: 0.6, 0.030: 0.8}
    assert score["boundaries"] == 5
    assert score["mean"] == pytest.approx(0.10010 / 5) and score["median"] == pytest.approx(0.020)
    assert score["bias"] == pytest.approx(-0.0399 / 5)
    with pytest.raises(MargoError, match="no boundaries"):
        boundary_score(np.empty(0))

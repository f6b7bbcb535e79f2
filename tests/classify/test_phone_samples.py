"""Frames and segments of labelled speech, and the projections, against their definitions."""

import numpy as np
import pytest

from margo.classify.phone_samples import frame_labels, segment_features
from margo.classify.reduce import principal, standard
from margo.errors import MargoError

SEGMENTS = [(0.0, 0.1, "sil"), (0.1, 0.25, "aa"), (0.3, 0.31, "t")]


def test_frames_belong_to_the_segment_that_holds_their_centre():
    labels = frame_labels(SEGMENTS, 40, 0.01, 0.025)
    for t, label in enumerate(labels):
        centre = 0.01 * t + 0.0125
        want = [n for n, (start, end, _) in enumerate(SEGMENTS) if start <= centre < end]
        assert label == (want[0] if want else -1)
    assert set(labels) == {-1, 0, 1, 2}


def test_segment_features_are_92_averages():
    x = np.arange(40)[:, None] + np.arange(39) / 100
    rows = segment_features(x, SEGMENTS, 0.01, 0.025)
    assert rows.shape == (3, 92)
    centres = 0.01 * np.arange(40) + 0.0125
    start, end, _ = SEGMENTS[1]
    edges = [start, start + 0.3 * (end - start), start + 0.7 * (end - start), end]
    for part in range(3):
        inside = (centres >= edges[part]) & (centres < edges[part + 1])
        np.testing.assert_allclose(rows[1, 13 * part : 13 * part + 13], x[inside, :13].mean(0))
    near = (centres >= start - 0.015) & (centres < start + 0.015)
    np.testing.assert_allclose(rows[1, 39:52], x[near, 13:26].mean(0))
    after = (centres >= end) & (centres < end + 0.03)
    np.testing.assert_allclose(rows[1, 78:91], x[after, :13].mean(0))
    assert rows[1, 91] == pytest.approx(np.log(0.15))
    assert np.isfinite(segment_features(x[:3], SEGMENTS, 0.01, 0.025)).all()  # segments past the last frame


@pytest.mark.parametrize("whiten", [False, True])
def test_principal_components(whiten):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 6)) @ rng.normal(size=(6, 6)) + 5.0
    z = principal(x, 3, whiten)(x)
    covariance = np.cov(z.T, bias=True)
    if whiten:
        np.testing.assert_allclose(covariance, np.eye(3), atol=1e-8)
    else:
        assert (z**2).sum(1).mean() == pytest.approx(3.0)
        np.testing.assert_allclose(covariance, np.diag(np.diag(covariance)), atol=1e-8)
        kept = np.linalg.eigvalsh(np.cov(x.T, bias=True))[::-1][:3]
        np.testing.assert_allclose(np.diag(covariance) / np.diag(covariance)[0], kept / kept[0])
    x[:, 5] = x[:, 4]
    with pytest.raises(MargoError, match="6 principal components asked for, the data have 5"):
        principal(x, 6)


def test_standard_features_keep_gaps():
    x = np.array([[1.0, 7.0], [3.0, 7.0], [np.nan, 7.0]])
    np.testing.assert_allclose(standard(x)(x), [[-1, 0], [1, 0], [np.nan, 0]])

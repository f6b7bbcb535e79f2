"""LDA is scikit-learn's, MLLT and fMLLR raise what they maximise in every step and recover what is known."""

import numpy as np
import pytest

from margo.errors import MargoError
from margo.gaussian.pool import single_gaussians
from margo.transform import fmllr, mllt
from margo.transform.class_moments import ClassMoments, splice
from margo.transform.discriminant import lda


def labelled(seed=0, classes=4, dimension=5, frames=600):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, frames)
    mixing = rng.normal(size=(dimension, dimension))
    x = rng.normal(0, 2, (classes, dimension))[labels] + rng.normal(size=(frames, dimension)) @ mixing
    return x, labels


def moments_of(x, labels):
    total = ClassMoments.zeros(labels.max() + 1, x.shape[1])
    half, rest = ClassMoments.zeros(*total.sums.shape), ClassMoments.zeros(*total.sums.shape)
    half.add(x[:200], labels[:200])
    rest.add(x[200:], labels[200:])
    return total + half + rest


def test_splicing():
    x = np.arange(6.0).reshape(3, 2)
    assert splice(x, 1, 2).tolist() == [[0, 1, 0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5, 4, 5], [2, 3, 4, 5, 4, 5, 4, 5]]
    assert (splice(x, 0, 0) == x).all()


def test_lda_is_that_of_scikit_learn_up_to_sign_and_scale():
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    x, labels = labelled()
    ours = lda(moments_of(x, labels), 3)
    theirs = LinearDiscriminantAnalysis(solver="eigen", n_components=3).fit(x, labels).scalings_[:, :3].T
    for mine, yours in zip(ours, theirs):
        cosine = mine @ yours / np.linalg.norm(mine) / np.linalg.norm(yours)
        assert abs(cosine) == pytest.approx(1, abs=1e-9)


def test_lda_makes_the_covariance_within_classes_the_identity():
    x, labels = labelled()
    moments = moments_of(x, labels).projected(lda(moments_of(x, labels), 5))
    np.testing.assert_allclose(moments.scatters.sum(axis=0) / len(x), np.eye(5), atol=1e-9)
    with pytest.raises(MargoError, match="6 dimensions of 5"):
        lda(moments_of(x, labels), 6)
    with pytest.raises(MargoError, match="the same in all 600 frames, or follow from others"):
        lda(moments_of(np.concatenate([x, x[:, :1]], axis=1), labels), 2)


def test_mllt_rises_in_every_sweep_and_undoes_a_mixing():
    rng = np.random.default_rng(1)
    mixing = rng.normal(size=(4, 4))
    labels = np.repeat(np.arange(3), 4000)
    x = rng.normal(size=(12000, 4)) * rng.uniform(0.3, 3, (3, 4))[labels] @ mixing.T
    moments = moments_of(x, labels)
    matrix, values = mllt.mllt(moments.counts, moments.scatters, 30)
    assert (np.diff(values) > -1e-12).all() and values[-1] > values[0] + 0.1
    whole = matrix @ mixing  # a permutation, but for scale
    share = whole**2 / (whole**2).sum(axis=1, keepdims=True)
    assert share.max(axis=1).min() > 0.99 and len({*share.argmax(axis=1)}) == 4


def spoken(seed, frames=3000, dimension=3):
    rng = np.random.default_rng(seed)
    pool = single_gaussians(rng.normal(0, 3, (8, dimension)), rng.uniform(0.3, 2, (8, dimension)))
    who = rng.integers(0, 8, frames)
    return rng, pool, pool.means[who] + np.sqrt(pool.variances[who]) * rng.normal(size=(frames, dimension)), who


def test_fmllr_rises_in_every_sweep_and_recovers_a_known_transform():
    rng, pool, clean, who = spoken(2)
    true = np.concatenate([np.eye(3) + 0.3 * rng.normal(size=(3, 3)), rng.normal(size=(3, 1))], axis=1)
    heard = np.linalg.solve(true[:, :3], (clean - true[:, 3]).T).T  # so that true maps it back
    stats = fmllr.FmllrStats.zeros(3)
    gammas = np.eye(8)[who]
    stats.add(pool, heard[:1000], gammas[:1000], np.arange(8))
    rest = fmllr.FmllrStats.zeros(3)
    rest.add(pool, heard[1000:], gammas[1000:], np.arange(8))
    found, values = fmllr.fmllr(stats + rest)
    assert (np.diff(values) > -1e-7).all() and values[-1] > values[0]
    np.testing.assert_allclose(found, true, atol=0.06)
    np.testing.assert_allclose(fmllr.apply(found, heard), clean, atol=0.6)


def test_the_auxiliary_is_the_log_likelihood_of_the_frames_as_transformed():
    rng, pool, x, who = spoken(3, 50)
    stats = fmllr.FmllrStats.zeros(3)
    stats.add(pool, x, np.eye(8)[who], np.arange(8))

    def likelihood(transform):
        gap = x @ transform[:, :3].T + transform[:, 3] - pool.means[who]
        return (-0.5 * gap**2 / pool.variances[who]).sum() + len(x) * np.linalg.slogdet(transform[:, :3])[1]

    first, second = (np.eye(3, 4) + 0.2 * rng.normal(size=(3, 4)) for _ in range(2))
    assert fmllr.auxiliary(stats, first) - fmllr.auxiliary(stats, second) == pytest.approx(
        likelihood(first) - likelihood(second), abs=1e-8
    )


def test_fmllr_of_too_few_frames():
    _, pool, x, who = spoken(4, 2)
    stats = fmllr.FmllrStats.zeros(3)
    stats.add(pool, x, np.eye(8)[who], np.arange(8))
    assert (fmllr.fmllr(stats, least=100)[0] == np.eye(3, 4)).all()
    with pytest.raises(MargoError, match="2 frames do not span 3 dimensions"):
        fmllr.fmllr(stats)
    with pytest.raises(MargoError, match="a transform of 7 columns, expected 3 or 4 for features of 3"):
        fmllr.apply(np.ones((2, 7)), x)

"""Mixtures that grow: heaviest first, means kept, every type of covariance."""

import numpy as np

from margo.gaussian.pool import GaussianPool
from margo.gaussian.splitting import LEAST, POWER, shares, split


def test_splitting_is_heaviest_first_and_preserves_the_mean():
    pool = GaussianPool([[0.0], [4.0], [9.0]], [[1.0], [4.0], [1.0]], np.log([0.6, 0.4, 1.0]), [0, 2, 3])
    grown = split(pool, 3)
    assert grown.offsets.tolist() == [0, 3, 6]
    np.testing.assert_allclose(np.exp(grown.log_weights), [0.3, 0.4, 0.3, 0.25, 0.5, 0.25])
    np.testing.assert_allclose(grown.means[:3, 0], [0.2, 4.0, -0.2])
    # a component that was split counts 1 less, so the fresh half goes before the heavier, twice split one
    np.testing.assert_allclose(split(pool, 4).means[:4, 0], [0.2, 4.4, -0.2, 3.6])
    assert split(pool, 1).n_gaussians == 3


def test_a_full_covariance_is_split_as_far_apart_as_a_diagonal_one():
    """0.2 sqrt(D) standard deviations of the Gaussian itself either way, however its dimensions are correlated."""
    rng = np.random.default_rng(0)
    root = rng.normal(size=(3, 3))
    pool = GaussianPool([[1.0, 2.0, 3.0]], [root @ root.T + 0.01 * np.eye(3)], [0.0], [0, 1])
    grown = split(pool, 2)
    np.testing.assert_allclose(grown.means.mean(0), pool.means[0])
    np.testing.assert_array_equal(grown.covariances.matrices, pool.covariances.matrices[[0, 0]])
    gap = grown.means[0] - pool.means[0]
    distance = gap @ np.linalg.inv(pool.covariances.matrices[0]) @ gap
    np.testing.assert_allclose(distance, 3 * 0.2**2)
    diagonal = GaussianPool(pool.means, pool.variances, [0.0], [0, 1])
    same = GaussianPool(pool.means, diagonal.covariances.dense(), [0.0], [0, 1])
    np.testing.assert_allclose(split(diagonal, 4).means, split(same, 4).means)


def test_gaussians_are_shared_out_by_frames():
    frames = np.array([4000.0, 1000.0, 30.0, 0.0])
    sizes = shares(frames, np.array([1, 1, 1, 1]), 12)
    assert sizes.sum() == 12 and sizes[0] > sizes[1] > sizes[2] == sizes[3] == 1  # 30 frames are too few for two
    gains = frames**POWER / sizes  # nobody who has one more would rather have given it to another
    assert (gains[:2] <= (frames**POWER / np.maximum(sizes - 1, 1))[:2].min() + 1e-12).all()
    assert shares(frames, np.array([2, 3, 1, 1]), 5).tolist() == [2, 3, 1, 1]  # none is taken away
    assert (shares(frames, np.array([1, 1, 1, 1]), 10**6) * LEAST <= np.maximum(frames, LEAST)).all()


def test_states_grow_to_sizes_of_their_own():
    pool = GaussianPool([[0.0], [4.0], [9.0]], [[1.0], [4.0], [1.0]], np.log([0.6, 0.4, 1.0]), [0, 2, 3])
    grown, even = split(pool, np.array([2, 4])), split(pool, 4)
    assert grown.offsets.tolist() == [0, 2, 6]
    np.testing.assert_array_equal(grown.means[:2], pool.means[:2])
    np.testing.assert_array_equal(grown.means[2:], even.means[4:])

"""Parts of an image that do not touch."""

import numpy as np

from margo.classify.blocks import split_blocks, split_random


def image(rng, side=60):
    """Fields of four classes, and pixels of none."""
    labels = np.kron(rng.integers(0, 5, (6, 6)), np.ones((10, 10), int))
    assert labels.shape == (side, side)
    return labels


def test_no_training_pixel_is_beside_one_of_another_part():
    labels = image(np.random.default_rng(0))
    parts = split_blocks(labels, np.arange(1, 5), 6, (4, 1, 5), np.random.default_rng(1))
    assert (parts[labels == 0] == -1).all() and {*np.unique(parts)} == {-1, 0, 1, 2}
    for y, x in np.argwhere(parts == 0):
        around = parts[max(y - 1, 0) : y + 2, max(x - 1, 0) : x + 2]
        assert not np.isin(around, (1, 2)).any()
    for part in (1, 2):  # squares are whole: all of their labelled pixels are in the part
        squares = {(y // 6, x // 6) for y, x in np.argwhere(parts == part)}
        held = [parts[6 * a : 6 * a + 6, 6 * b : 6 * b + 6] for a, b in squares]
        assert all(np.isin(square, (-1, part)).all() for square in held)


def test_every_part_has_its_share_of_every_class():
    labels = image(np.random.default_rng(2))
    parts = split_blocks(labels, np.arange(1, 5), 4, (4, 1, 5), np.random.default_rng(3))
    for c in range(1, 5):
        counts = np.array([(parts[labels == c] == part).sum() for part in range(3)])
        assert counts.min() > 0 and abs(counts[2] / (labels == c).sum() - 0.5) < 0.2
    again = split_blocks(labels, np.arange(1, 5), 4, (4, 1, 5), np.random.default_rng(3))
    np.testing.assert_array_equal(parts, again)


def test_random_pixels_as_in_the_paper():
    labels = image(np.random.default_rng(4))
    parts = split_random(labels, np.arange(1, 5), 60, 1 / 6, np.random.default_rng(0))
    for c in range(1, 5):
        counts = [(parts[labels == c] == part).sum() for part in range(3)]
        assert counts[:2] == [50, 10] and sum(counts) == (labels == c).sum()

"""Pixels of an image in training, development and test parts that do not touch."""

import numpy as np

TRIES = 200  # random assignments, of which the most even is taken


def split_blocks(labels, classes, side: int, shares, rng) -> np.ndarray:
    """[H, W]: the part (0 train, 1 dev, 2 test) of each pixel of ``labels[H, W]``, -1 where it is none of ``classes``.

    The image is cut into squares of ``side`` pixels, and a square goes to one part as a whole: neighbours are alike,
    and samples beside training samples would test nothing. Pixels that touch a square of another part are left out of
    the training part. Of many random assignments that is taken whose rarest class in any part is nearest to its share.
    """
    H, W = labels.shape
    square = (np.arange(H) // side)[:, None] * -(-W // side) + np.arange(W) // side
    counts = np.stack([np.bincount(square[labels == c], minlength=int(square.max()) + 1) for c in classes], axis=1)
    shares = np.asarray(shares, float) / np.sum(shares)
    best, evenness = None, -np.inf
    for _ in range(TRIES):
        chosen = rng.choice(len(shares), size=len(counts), p=shares)
        held = np.stack([counts[chosen == part].sum(axis=0) for part in range(len(shares))])
        even = (held / (counts.sum(axis=0) * shares[:, None])).min()
        if even > evenness:
            best, evenness = chosen, even
    parts = best[square]
    return np.where(np.isin(labels, classes) & ~touches(parts), parts, -1)


def touches(parts) -> np.ndarray:
    """[H, W]: training pixels (0) with one of their eight neighbours in another part."""
    wide = np.pad(parts, 1, mode="edge")
    H, W = parts.shape
    other = [wide[a : a + H, b : b + W] != parts for a in range(3) for b in range(3)]
    return (parts == 0) & np.logical_or.reduce(other)


def split_random(labels, classes, per_class: int, dev: float, rng) -> np.ndarray:
    """[H, W] as :func:`split_blocks`, without regard to neighbours, as [PW10] 5.3: ``per_class`` pixels of each class
    to train and develop on (the part ``dev`` of them), the others to test on."""
    parts = np.full(labels.shape, -1)
    for c in classes:
        places = rng.permutation(np.flatnonzero(labels == c))
        count = min(per_class, len(places) // 2)
        held = round(dev * count)
        parts.flat[places[held:count]] = 0
        parts.flat[places[:held]] = 1
        parts.flat[places[count:]] = 2
    return parts

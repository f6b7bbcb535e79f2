"""The synthetic task of [PW10] 5.1: two interleaved spirals."""

import numpy as np

AMPLITUDE = 12.5
TURN = 1.25


def spirals(rng, per_class: int):
    """``x[2 N, 2]``, ``y[2 N]``: ``12.5 [+-t cos 4 pi t, +-t sin 4 pi t] + N(0, I)``, t uniform on (0, 1.25).

    The generator printed in [PW10] lacks an amplitude (as printed the classes can hardly be told apart); amplitude
    and range of t are fitted to the accuracies of its Table 1.
    """
    t = rng.uniform(0.0, TURN, size=2 * per_class)
    y = np.repeat([0, 1], per_class)
    sign = np.where(y == 0, 1.0, -1.0)
    curve = np.stack([t * np.cos(4 * np.pi * t), t * np.sin(4 * np.pi * t)], axis=1)
    return AMPLITUDE * sign[:, None] * curve + rng.normal(size=(2 * per_class, 2)), y

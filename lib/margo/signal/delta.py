"""Time derivatives of features by linear regression."""

import numpy as np


def regression(x: np.ndarray, window: int) -> np.ndarray:
    """Slope over +-``window`` frames, x [T + 2 window, D] -> [T, D]: sum_j j (x[t+j] - x[t-j]) / (2 sum_j j^2)."""
    frames = len(x) - 2 * window
    scale = 2.0 * sum(j * j for j in range(1, window + 1))
    slope = np.zeros((frames, x.shape[1]), x.dtype)
    for j in range(1, window + 1):
        slope += x.dtype.type(j / scale) * (x[window + j :][:frames] - x[window - j :][:frames])
    return slope


def repeat_edges(lengths: np.ndarray, count: int) -> np.ndarray:
    """Rows of recordings that stand one after the other, the first and the last of each ``count`` times more.

    >>> repeat_edges(np.array([2, 1]), 1).tolist()
    [0, 0, 1, 1, 2, 2, 2]
    """
    longer = lengths + 2 * count
    within = np.arange(longer.sum()) - np.repeat(np.cumsum(longer) - longer + count, longer)
    return np.repeat(np.cumsum(lengths) - lengths, longer) + np.clip(within, 0, np.repeat(lengths - 1, longer))


def add_deltas(
    statics: np.ndarray, order: int, window: int, repeat_once: bool = False, lengths: np.ndarray | None = None
) -> np.ndarray:
    """Statics [T, D] with derivatives 1 ... ``order`` beside them, [T, D (1 + order)].

    Edges are repeated before every derivative (HTK: accelerations are deltas of deltas), or with ``repeat_once`` only
    those of the statics, as far as the highest derivative needs (Kaldi). The two differ within ``order * window``
    frames of the edges. ``lengths`` are those of recordings that stand one after the other in ``statics``.
    """
    lengths = np.array([len(statics)]) if lengths is None else np.asarray(lengths)
    margin = window * (order if repeat_once else 1)
    own = np.arange(len(statics)) + np.repeat((2 * np.arange(len(lengths)) + 1) * margin, lengths)
    blocks, current, lost = [statics], statics, 0
    for number in range(order):
        if number == 0 or not repeat_once:
            current, lost = current[repeat_edges(lengths, margin)], 0
        current, lost = regression(current, window), lost + window
        blocks.append(current[own - lost])  # where recordings meet, slopes are of both: none of those is taken
        current = current if repeat_once else blocks[-1]
    return np.concatenate(blocks, axis=1)

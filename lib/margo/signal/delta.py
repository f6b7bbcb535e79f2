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


def repeat_edges(x: np.ndarray, count: int) -> np.ndarray:
    """The first and the last row ``count`` times more, [T, D] -> [T + 2 count, D]."""
    return np.pad(x, ((count, count), (0, 0)), mode="edge")


def add_deltas(statics: np.ndarray, order: int, window: int, repeat_once: bool = False) -> np.ndarray:
    """Statics [T, D] with derivatives 1 ... ``order`` beside them, [T, D (1 + order)].

    Edges are repeated before every derivative (HTK: accelerations are deltas of deltas), or with ``repeat_once`` only
    those of the statics, as far as the highest derivative needs (Kaldi). The two differ within ``order * window``
    frames of the edges.
    """
    blocks, current = [statics], statics
    if repeat_once:
        current = repeat_edges(statics, order * window)
    for remaining in range(order - 1, -1, -1):
        current = regression(current if repeat_once else repeat_edges(current, window), window)
        margin = remaining * window if repeat_once else 0
        blocks.append(current[margin : margin + len(statics)])
    return np.concatenate(blocks, axis=1)

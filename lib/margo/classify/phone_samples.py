"""Labelled frames and phone segments of an utterance as samples for classifiers."""

import numpy as np

STATIC = 13
PARTS = (0.3, 0.7)  # a segment is averaged in parts of 3 : 4 : 3 (Halberstadt & Glass 1997)
NEAR = 0.03  # seconds around a boundary


def frame_labels(segments, frames: int, shift: float, window: float) -> np.ndarray:
    """[T]: index of the segment ``(start, end, symbol)`` (seconds, in order) that holds each frame's centre, or -1."""
    centres = np.arange(frames) * shift + 0.5 * window
    starts = np.array([start for start, _, _ in segments])
    ends = np.array([end for _, end, _ in segments])
    index = np.searchsorted(starts, centres, side="right") - 1
    return np.where((index >= 0) & (centres < ends[np.maximum(index, 0)]), index, -1)


def segment_features(x, segments, shift: float, window: float) -> np.ndarray:
    """[segments, 92]: fixed-length features of each segment, after Halberstadt & Glass (1997).

    From frames ``x[T, >= 26]`` whose first 13 columns are static (12 cepstra and energy) and next 13 their deltas: the
    static averages of three parts of the segment, the delta averages around its two boundaries, the static averages
    of 30 ms before and after it, and its log duration: 39 + 26 + 26 + 1.
    """
    static, delta = x[:, :STATIC], x[:, STATIC : 2 * STATIC]
    rows = np.empty((len(segments), 7 * STATIC + 1))
    for n, (start, end, _) in enumerate(segments):
        length = end - start
        inner = [start, start + PARTS[0] * length, start + PARTS[1] * length, end]
        pieces = [_mean(static, a, b, shift, window) for a, b in zip(inner[:-1], inner[1:])]
        pieces += [_mean(delta, t - 0.5 * NEAR, t + 0.5 * NEAR, shift, window) for t in (start, end)]
        pieces += [_mean(static, start - NEAR, start, shift, window), _mean(static, end, end + NEAR, shift, window)]
        rows[n] = np.concatenate([*pieces, [np.log(max(length, shift))]])
    return rows


def _mean(x, start: float, end: float, shift: float, window: float) -> np.ndarray:
    """Mean of the frames with centres in [start, end), or the nearest frame where there is none."""
    first = int(np.ceil((start - 0.5 * window) / shift - 1e-9))
    last = int(np.ceil((end - 0.5 * window) / shift - 1e-9))
    first, last = max(first, 0), min(last, len(x))
    if first >= last:
        nearest = round((0.5 * (start + end) - 0.5 * window) / shift)
        return x[min(max(nearest, 0), len(x) - 1)]
    return x[first:last].mean(axis=0)

"""When frames are: a frame stands for the centre of its window."""

import numpy as np


def boundary_times(features: dict, frames: int) -> np.ndarray:
    """Seconds [T + 1] at which each of ``frames`` frames begins, and the last ends, midway between windows' centres.

    ``features`` is the record that :func:`margo.signal.front_end.describe` makes; frames that came ready-made count as
    10 ms each. The first frame begins at 0, the last ends with its window.
    """
    shift = features.get("shift_ms", 10.0) / 1000
    spare = features.get("window_ms", 1000 * shift) / 1000 - shift
    times = np.arange(frames + 1) * shift + spare / 2
    times[0], times[-1] = 0.0, frames * shift + spare
    return times

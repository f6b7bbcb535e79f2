"""Times of frames."""

import numpy as np

from margo.signal.times import boundary_times


def test_boundaries_lie_midway_between_centres():
    times = boundary_times({"shift_ms": 10.0, "window_ms": 25.0}, 4)
    centres = 0.0125 + 0.01 * np.arange(4)
    np.testing.assert_allclose(times[1:-1], (centres[:-1] + centres[1:]) / 2, atol=1e-12)
    np.testing.assert_allclose(times[[0, -1]], [0, 0.055], atol=1e-12)  # the fourth window ends at 30 + 25 ms


def test_frames_of_unknown_windows_follow_one_another():
    np.testing.assert_allclose(boundary_times({"variant": "given"}, 3), [0, 0.01, 0.02, 0.03], atol=1e-12)

"""Long recordings are cut where they are quiet."""

import numpy as np

from margo.signal.quiet_cuts import LONGEST, pieces


def test_pieces_follow_each_other_and_end_in_pauses():
    rate, rng = 1000, np.random.default_rng(0)
    samples = rng.standard_normal(200 * rate)
    loud = np.ones(len(samples), bool)
    for second in (3, 28, 57, 61, 90, 118, 150, 170):  # pauses of half a second
        loud[second * rate : int((second + 0.5) * rate)] = False
    samples[~loud] *= 0.01
    found = pieces(samples, rate)
    assert found[0][0] == 0 and found[-1][1] == len(samples)
    assert all(before[1] == after[0] for before, after in zip(found, found[1:]))
    assert all(15 * rate <= last - first <= LONGEST * rate for first, last in found)
    inner = [last for _, last in found[:-1]]
    assert [round(cut / rate - 0.25) for cut in inner][:4] == [28, 57, 90, 118] and not loud[inner[:4]].any()


def test_what_is_not_long_is_one_piece():
    assert pieces(np.ones(60_000), 1000) == [(0, 60_000)]
    assert len(pieces(np.zeros(60_001), 1000)) == 2

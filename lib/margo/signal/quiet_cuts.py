"""Long recordings in pieces, cut where they are quiet."""

import numpy as np

LONGEST = 60.0  # seconds that are taken in one piece
PIECE, SEARCHED = 30.0, 10.0  # seconds of a piece, give or take the seconds in which its end is looked for
QUIET = 0.3  # seconds over which loudness is averaged; a pause between words


def pieces(samples: np.ndarray, rate: int) -> list[tuple[int, int]]:
    """``(first, last)`` samples of pieces of samples [N], in order and without gaps; one piece if it is not long.

    A piece ends in the middle of the quietest 0.3 s that lie 25 to 35 s behind its start; so the last one has 15 s or
    more.
    """
    cuts, size = [0], int(QUIET * rate)
    while len(samples) - cuts[-1] > LONGEST * rate:
        first = cuts[-1] + int((PIECE - SEARCHED / 2) * rate)
        loud = np.cumsum(np.square(samples[first : first + int(SEARCHED * rate)], dtype=np.float64))
        cuts.append(first + int(np.argmin(loud[size:] - loud[:-size])) + size // 2)
    return list(zip(cuts, [*cuts[1:], len(samples)]))

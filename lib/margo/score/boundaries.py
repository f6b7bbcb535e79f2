"""How far the boundaries of an alignment lie from those of hand labels."""

from collections.abc import Sequence

import numpy as np

from margo.errors import MargoError

TOLERANCES = (0.010, 0.020, 0.030)  # seconds
TOUCHING = 0.002  # labels further apart than this have something left out between them; files hold milliseconds


def boundary_errors(labels: Sequence[tuple], aligned: Sequence[tuple]) -> np.ndarray:
    """Aligned minus labelled times [n] of the boundaries between neighbours, both sides as ``(start, end, symbol)``.

    Both must have the same symbols. Where something was left out of the labels between two neighbours there is no one
    time to compare with, and the boundary is not counted.
    """
    if [label[2] for label in labels] != [segment[2] for segment in aligned]:
        raise MargoError("the alignment's symbols are not those of the labels")
    return np.array([
        segment[0] - label[0]
        for before, label, segment in zip(labels, labels[1:], aligned[1:])
        if label[0] - before[1] < TOUCHING
    ])  # fmt: skip


def boundary_score(errors: np.ndarray, tolerances: Sequence[float] = TOLERANCES) -> dict:
    """``errors`` [n] in seconds summed up: their number (boundaries), mean and median absolute error, mean signed error
    (bias, positive: late), and the share within each tolerance; one exactly as far off is within it."""
    if not len(errors):
        raise MargoError("no boundaries to score")
    far = np.abs(errors)
    within = {float(limit): float((far <= limit + 1e-9).mean()) for limit in tolerances}
    return {"boundaries": len(far), "mean": float(far.mean()), "median": float(np.median(far)),
            "bias": float(np.mean(errors)), "within": within}  # fmt: skip

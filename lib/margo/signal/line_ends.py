"""Recordings that were converted like text: carriage returns became line feeds, and a pair of the two became one.

Each pair costs a byte, so that from there to the next one low and high bytes of 16-bit samples are exchanged with
their neighbours', which sounds as noise. Speech is smooth where the bytes are right, and so tells where they are not.
"""

from itertools import product

import numpy as np

CR, LF = 13, 10
LEAST = 64  # line feeds; in a recording as it was made, carriage returns are about as many
PENALTY = 50.0  # nats that a lost byte must gain
LONGEST = 8  # doubtful samples in a row for which all ways of restoring them are tried
NEAR = 32  # bytes around a place that was found, where a better one is looked for


def was_converted(samples: np.ndarray) -> bool:
    """Whether int16 ``samples`` [N] hold line feeds and not one carriage return among their bytes."""
    content = _bytes_of(samples)
    return bool((content == LF).sum() >= LEAST and not (content == CR).any())


def restore(samples: np.ndarray) -> tuple[np.ndarray, int]:
    """int16 ``samples`` [N] with their lost bytes put back, and how many those were.

    High bytes that were a carriage return are restored too, low ones (an error of 3 in 32768) are not.
    """
    content = _bytes_of(samples)
    lost = lost_before(content)
    whole = np.insert(content, lost, CR)
    return _restore_high_bytes(whole[: len(whole) // 2 * 2].view("<i2")), len(lost)


def lost_before(content: np.ndarray) -> list[int]:
    """The line feeds among the bytes ``content`` [n], by place, before which a carriage return was lost.

    The best path through two states, the place of samples' low bytes (even or odd), changing at line feeds only; costs
    are logarithms of the differences between neighbouring samples.
    """
    values = _values(content)  # of samples that would begin at each byte
    rough = np.log1p(np.abs(values[2:] - values[:-2]))
    begins = np.arange(len(rough)) % 2
    total = np.zeros((2, len(content) + 1))
    for phase in (0, 1):
        total[phase, 2 : 2 + len(rough)] = np.where(begins == phase, rough, 0.0)
    total = np.cumsum(total, axis=1)
    feeds = np.flatnonzero(content == LF)
    edges = np.concatenate([[0], feeds, [len(content)]])
    costs = (total[:, edges[1:]] - total[:, edges[:-1]]).T  # [feeds + 1, 2]
    best = np.array([0.0, np.inf]) + costs[0]
    changed = np.zeros((len(feeds), 2), dtype=bool)
    for number, cost in enumerate(costs[1:]):
        other = best[::-1] + PENALTY
        changed[number] = other < best
        best = np.minimum(best, other) + cost
    phase = int(np.argmin(best))
    places: list[int] = []
    for number in range(len(feeds) - 1, -1, -1):
        if changed[number, phase]:
            phase = 1 - phase
            near = feeds[np.abs(feeds - feeds[number]) <= NEAR]
            places.append(int(min(near, key=lambda place: _roughness(content, place, int(feeds[number]), phase))))
    return sorted(set(places))


def _roughness(content: np.ndarray, place: int, middle: int, phase: int) -> float:
    """Of the samples around ``middle``, low bytes at ``phase`` before it, with a byte put in before ``place``."""
    first = max(0, (middle - 2 * NEAR) // 2 * 2 + phase)
    piece = np.insert(content[first : middle + 2 * NEAR], place - first, CR)
    return float(np.log1p(np.abs(np.diff(_values(piece)[::2]))).sum())


def _restore_high_bytes(samples: np.ndarray) -> np.ndarray:
    """High bytes of line feeds, which may be carriage returns and so 768 too low: the smoothest way, run by run."""
    x = samples.astype(np.int64)
    doubtful = np.zeros(len(x) + 1, dtype=np.int8)
    doubtful[2:-3] = x[2:-2] >> 8 == LF
    steps = np.diff(doubtful, prepend=np.int8(0))
    for first, last in zip(np.flatnonzero(steps > 0), np.flatnonzero(steps < 0)):
        length = last - first
        ways = np.array(list(product((0, 1), repeat=length)) if length <= LONGEST else [(0,) * length, (1,) * length])
        tried = np.pad(ways, ((0, 0), (2, 2))) * ((CR - LF) << 8) + x[first - 2 : last + 2]
        best = np.argmin((np.diff(tried, 2, axis=1) ** 2).sum(axis=1))
        x[first:last] = tried[best, 2:-2]
    return x.astype("<i2")


def _bytes_of(samples: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(samples, dtype="<i2").view(np.uint8)


def _values(content: np.ndarray) -> np.ndarray:
    return content[:-1].astype(np.int32) | content[1:].view(np.int8).astype(np.int32) << 8

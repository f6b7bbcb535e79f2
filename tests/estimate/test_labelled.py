"""Starts from labelled segments against brute force."""

from dataclasses import replace

import numpy as np
import pytest

from margo.errors import MargoError
from margo.estimate.labelled import accumulate_segments, frame_segments
from margo.estimate.ml import MlOptions, split, update
from margo.gaussian.pool import single_gaussians
from margo.model.hmm import flat_start, whole_words
from oracles import log_gaussians, unit_paths

SEGMENTS = [("b", 0, 5), ("a", 5, 9), ("b", 9, 11), ("a", 12, 15)]  # the third is too short for three states


@pytest.fixture
def hmms():
    rng = np.random.default_rng(1)
    flat = flat_start(whole_words("ab"), 3, np.zeros(2), np.ones(2), skip=0.1)
    return flat.with_pool(single_gaussians(rng.normal(size=(6, 2)), rng.uniform(0.5, 2, (6, 2))))


@pytest.fixture
def x():
    return np.random.default_rng(2).normal(size=(15, 2)).astype(np.float32)


def summed(hmms, x, assigned):
    """Occupancy, first and second moments about zero, and transitions, of (states, transitions) for each segment."""
    occupancy, first, second = np.zeros(6), np.zeros((6, 2)), np.zeros((6, 2))
    transitions = np.zeros(len(hmms.log_transitions))
    for start, states, arcs in assigned:
        for t, state in enumerate(states):
            occupancy[state] += 1
            first[state] += x[start + t]
            second[state] += x[start + t].astype(float) ** 2
        for arc in arcs:
            transitions[arc] += 1
    return occupancy, first, second, transitions


def check(stats, expected):
    occupancy, first, second, transitions = expected
    n, centre = stats.occupancy[:, None], stats.centre
    np.testing.assert_array_equal(stats.occupancy, occupancy)
    np.testing.assert_allclose(stats.first + n * centre, first, atol=1e-9)
    np.testing.assert_allclose(stats.second + 2 * centre * stats.first + n * centre**2, second, atol=1e-9)
    np.testing.assert_array_equal(stats.transitions, transitions)


def test_frames_belong_where_the_centres_of_their_windows_lie():
    rng = np.random.default_rng(0)
    for _ in range(20):
        times = np.sort(rng.uniform(0, 1.1, 6)).round(4)
        labels = [(a, b, name) for a, b, name in zip(times, times[1:], "vwxyz")]
        centres = 0.01 * np.arange(95) + 0.0125
        expected = [
            (name, int(inside[0]), int(inside[-1]) + 1)
            for a, b, name in labels
            if len(inside := np.flatnonzero((centres >= a) & (centres < b)))
        ]
        assert frame_segments(labels, 95, 0.01, 0.025) == expected


def test_even_shares(hmms, x):
    size = 5  # entry, three states, exit
    chains = {0: [0, 0, 1, 1, 2], 5: [0, 0, 1, 2], 12: [0, 1, 2]}  # frame t of n in state floor(3 t / n)
    offset = {0: 25, 5: 0, 12: 0}  # of the unit's transitions, b being the second
    assigned = []
    for start, chain in chains.items():
        nodes = [0, *(state + 1 for state in chain), 4]
        arcs = [offset[start] + a * size + b for a, b in zip(nodes, nodes[1:])]
        assigned.append((start, [state + (3 if offset[start] else 0) for state in chain], arcs))
    stats = accumulate_segments(hmms, [(x, SEGMENTS)], even=True)
    check(stats, summed(hmms, x, assigned))
    assert (stats.frames, stats.utterances) == (12, 1)


def test_best_paths_are_those_of_enumeration(hmms, x):
    log_b = log_gaussians(hmms.pool, x.astype(float))
    assigned, total = [], 0.0
    for name, first, last in SEGMENTS:
        paths = [
            (log_prob + sum(log_b[first + t, s] for t, s in enumerate(states)), states, arcs)
            for log_prob, states, arcs in unit_paths(hmms, hmms.unit_index[name], last - first)
        ]
        if paths:
            score, states, arcs = max(paths)
            total += score
            assigned.append((first, states, arcs))
    assert len(assigned) == 4  # with skips, two frames are enough
    stats = accumulate_segments(hmms, [(x, SEGMENTS)], even=False)
    check(stats, summed(hmms, x, assigned))
    assert stats.objective == pytest.approx(total, rel=1e-5)


def test_segmental_k_means_never_falls():
    rng = np.random.default_rng(3)
    centres = {name: rng.normal(size=(3, 4)) for name in "abc"}
    utterances = []
    for _ in range(30):
        parts, segments, here = [], [], 0
        for name in rng.choice(list("abc"), 5):
            lengths = rng.integers(1, 6, 3)
            parts.append(np.repeat(centres[name], lengths, axis=0))
            segments.append((str(name), here, here + int(lengths.sum())))
            here += int(lengths.sum())
        x = np.concatenate(parts)
        utterances.append(((x + 0.7 * rng.normal(size=x.shape)).astype(np.float32), segments))
    hmms = flat_start(whole_words("abc"), 3, np.zeros(4), np.ones(4))
    hmms, _ = update(hmms, accumulate_segments(hmms, utterances, even=True), MlOptions(double=True))
    totals = []
    for _ in range(8):
        stats = accumulate_segments(hmms, utterances, even=False)
        totals.append(stats.objective)
        hmms, _ = update(hmms, stats, MlOptions(double=True))
    assert np.diff(totals).min() > -1e-3 and totals[-1] > totals[0] + 10
    found = np.concatenate([hmms.pool.means[unit.states] for unit in hmms.units])
    assert np.abs(found - np.concatenate([centres[unit.name] for unit in hmms.units])).max() < 0.4


def test_models_it_is_not_for_are_refused(hmms, x):
    with pytest.raises(MargoError, match="one Gaussian"):
        accumulate_segments(split(hmms, 2), [(x, SEGMENTS)], even=True)
    with pytest.raises(MargoError, match="ab"):
        accumulate_segments(replace(hmms, lexicon={"ab": ("a", "b")}), [(x, SEGMENTS)], even=True)

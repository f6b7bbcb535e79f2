"""The one statistic: its two sides, its centre, its sum."""

from dataclasses import fields

import numpy as np
import pytest

from contests import task
from margo.estimate.paths import Scored, find_paths, score_paths, searcher, slots, weigh_paths
from margo.estimate.stats import Stats


def paths_of(seed):
    hmms, data = task(seed, "loop")
    paths = find_paths(searcher(hmms, np.float64), data, 3)
    return hmms, paths.frames(data), paths, slots(paths)


def brute(hmms, x, paths, places, scored: Scored, weights):
    """Occupancies for and against, and net moments about the means, path by path and frame by frame."""
    pool = hmms.pool
    per_slot = np.zeros(len(places.state))
    for path, weight in enumerate(weights):
        for slot in places.slot[places.path_start[path] : places.path_start[path + 1]]:
            per_slot[slot] += weight
    sides = np.zeros((2, pool.n_gaussians))
    first, second = np.zeros((2, *pool.means.shape))
    for slot, weight in enumerate(per_slot):
        if abs(weight) > 1e-12:
            state = places.state[slot]
            for m, k in enumerate(range(pool.offsets[state], pool.offsets[state + 1])):
                share = weight * scored.posteriors[slot, m]
                gap = x[places.frame[slot]] - pool.means[k]
                sides[0 if share > 0 else 1, k] += abs(share)
                first[k] += share * gap
                second[k] += share * gap**2
    return sides, first, second


@pytest.mark.parametrize("seed", range(3))
def test_weighed_paths_are_the_sum_over_their_frames(seed):
    hmms, x, paths, places = paths_of(seed)
    weights = np.random.default_rng(seed).normal(size=len(paths.constants))
    scored = score_paths(hmms, x, paths, places)
    stats = weigh_paths(hmms, x, paths, places, scored, weights)
    sides, first, second = brute(hmms, x, paths, places, scored, weights)
    np.testing.assert_allclose(stats.occupancy, sides[0] - sides[1], atol=1e-12)
    np.testing.assert_allclose(stats.against, sides[1], atol=1e-12)
    np.testing.assert_allclose(stats.first, first, atol=1e-10)
    np.testing.assert_allclose(stats.second, second, atol=1e-10)
    counts = np.zeros((2, len(hmms.log_transitions)))
    for path, weight in enumerate(weights):
        for transition in paths.transitions[paths.transition_start[path] : paths.transition_start[path + 1]]:
            counts[0 if weight > 0 else 1, transition] += abs(weight)
    np.testing.assert_allclose(stats.transitions, counts[0] - counts[1], atol=1e-12)
    np.testing.assert_allclose(stats.transitions_against, counts[1], atol=1e-12)


def random_stats(hmms, seed, centre=None, own=True):
    rng = np.random.default_rng(seed)
    stats = Stats.zeros(hmms, centre)
    for field in fields(stats):
        value = getattr(stats, field.name)
        if isinstance(value, np.ndarray) and field.name != "centre":
            setattr(stats, field.name, rng.normal(size=value.shape))
    stats.objective, stats.errors, stats.frames, stats.utterances = rng.normal(), 3, 10 * seed + 1, seed
    stats.dropped = ((f"u{seed}", "short"),)
    stats.own = random_stats(hmms, seed + 100, centre, own=False) if own else None
    return stats


def test_every_field_is_summed_and_the_sum_is_associative():
    hmms, _ = task(0, "loop")
    a, b, c = (random_stats(hmms, seed) for seed in (1, 2, 3))
    for field in fields(Stats):
        if field.name not in ("centre", "own", "dropped"):
            total = getattr(a, field.name) + getattr(b, field.name)
            np.testing.assert_array_equal(getattr(a + b, field.name), total)
            np.testing.assert_array_equal(getattr((a + b).own, field.name), getattr(a.own + b.own, field.name))
            np.testing.assert_allclose(getattr((a + b) + c, field.name), getattr(a + (b + c), field.name), rtol=1e-12)
    assert (a + b + c).dropped == (("u1", "short"), ("u2", "short"), ("u3", "short"))
    with pytest.raises(ValueError, match="different models"):
        a + random_stats(hmms, 2, hmms.pool.means)


def test_moments_moved_to_other_points_are_those_taken_there():
    hmms, _ = task(1, "loop")
    rng = np.random.default_rng(0)
    frames, weights = rng.normal(size=(20, 3)), rng.normal(size=(20, hmms.pool.n_gaussians))
    goal = rng.normal(size=hmms.pool.means.shape)
    stats = Stats.zeros(hmms)
    stats.occupancy = weights.sum(0)
    stats.first, stats.second = weights.T @ (frames - stats.centre), weights.T @ (frames - stats.centre) ** 2
    gaps = frames[:, None] - goal
    occupancy, first, second = stats.about(goal)
    np.testing.assert_allclose(occupancy, weights.sum(0))
    np.testing.assert_allclose(first, np.einsum("tk,tkd->kd", weights, gaps), atol=1e-10)
    np.testing.assert_allclose(second, np.einsum("tk,tkd->kd", weights, gaps**2), atol=1e-10)

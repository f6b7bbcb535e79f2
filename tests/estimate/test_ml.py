"""Baum-Welch's laws, splitting, starts, and what becomes of bad data."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from margo.errors import MargoError
from margo.estimate.ml import DEFAULTS, Ml, MlOptions, accumulate, converged, update
from margo.estimate.start import Moments, moments
from margo.estimate.stats import Stats
from margo.gaussian.pool import GaussianPool
from margo.gaussian.splitting import split
from margo.model.hmm import Unit, flat_start, left_to_right, whole_words
from oracles import enumerate_all, log_gaussians, random_hmms

EXACT = MlOptions(double=True, dead_weight=0.0)


def sample(rng, hmms, words, times=1):
    """Frames drawn from the model of ``words``, whole-word units."""
    frames = []
    for word in words:
        unit = hmms.units[hmms.unit_index[hmms.lexicon[word][0].units[0]]]
        state = 0
        while state <= unit.n_states:
            if state:
                s = unit.states[state - 1]
                k = rng.choice(
                    np.arange(hmms.pool.offsets[s], hmms.pool.offsets[s + 1]),
                    p=np.exp(hmms.pool.log_weights[hmms.pool.offsets[s] : hmms.pool.offsets[s + 1]]),
                )
                frames.append(rng.normal(hmms.pool.means[k], np.sqrt(hmms.pool.variances[k])))
            state = rng.choice(unit.n_states + 2, p=np.exp(unit.log_transitions[state]))
    return np.array(frames)


def small_problem(seed, n=6, silence=True):
    rng = np.random.default_rng(seed)
    hmms = random_hmms(rng, words=2, silence=silence, mixtures=3)
    hmms = replace(hmms, variance_floor=np.full(hmms.pool.dimension, 0.02))
    utterances = []
    for i in range(n):
        words = [hmms.words[w] for w in rng.integers(0, 2, rng.integers(1, 4))]
        utterances.append((f"u{i}", rng.normal(0, 2, (int(rng.integers(12, 30)), hmms.pool.dimension)), words))
    return hmms, utterances


def objectives(hmms, utterances, options, steps, spoil=lambda hmms: hmms):
    values = []
    for _ in range(steps):
        hmms, report = update(hmms, accumulate(hmms, utterances, options), options)
        hmms = spoil(hmms)
        values.append(report["objective"])
    return np.array(values)


def baum_welch(hmms, utterances, iterations, options=DEFAULTS):
    """The criterion's own passes until it says that it is enough: the model and what was reported of each."""
    criterion, reports = Ml(replace(options, iterations=iterations)), []
    memory = criterion.begin(hmms)
    while memory is not None:
        stats = criterion.accumulate(memory, hmms, utterances)
        reports.append(criterion.report(stats, memory))
        hmms, memory, _ = criterion.update(hmms, stats, memory)
    return hmms, reports


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.sampled_from(["none", "state", "global"]), st.booleans())
def test_likelihood_never_falls(seed, tying, silence):
    hmms, utterances = small_problem(seed, silence=silence)
    options = replace(EXACT, tie_variances=tying)
    if tying != "none":  # the start must lie in the tied set
        hmms = hmms.with_pool(replace(hmms.pool, covariances=np.ones_like(hmms.pool.variances)))
    values = objectives(hmms, utterances, options, 6)
    assert (np.diff(values) >= -1e-9 * np.abs(values[1:])).all(), values


def test_a_wrong_update_makes_it_fall():
    """Mutation twin: an M-step with variances a third too large breaks the law, so the test above can fail."""
    hmms, utterances = small_problem(1)
    hmms, _ = baum_welch(hmms, utterances, 40, replace(EXACT, tolerance=1e-3))

    def spoil(hmms):
        return hmms.with_pool(replace(hmms.pool, covariances=1.3 * hmms.pool.variances))

    assert np.diff(objectives(hmms, utterances, EXACT, 2, spoil))[0] < -1e-3


def test_statistics_equal_all_paths():
    rng = np.random.default_rng(0)
    hmms = random_hmms(rng, silence=True, mixtures=2)
    x = rng.normal(0, 1.5, (5, hmms.pool.dimension))
    truth = enumerate_all(hmms, log_gaussians(hmms.pool, x), [(1, 0)])
    stats = accumulate(hmms, [("a", x, ["w1", "w0"])], EXACT)
    np.testing.assert_allclose(stats.transitions, truth.transitions, atol=1e-10)
    assert stats.objective == pytest.approx(truth.total, abs=1e-10)
    owners = hmms.pool.owners
    density = np.exp(
        hmms.pool.log_weights
        - 0.5
        * (np.log(2 * np.pi * hmms.pool.variances) + (x[:, None] - hmms.pool.means) ** 2 / hmms.pool.variances).sum(2)
    )
    share = density / np.stack([np.bincount(owners, row)[owners] for row in density])
    gamma = truth.occupancies[:, owners] * share  # [T, K]
    np.testing.assert_allclose(stats.occupancy, gamma.sum(0), atol=1e-10)
    centred = x - stats.centre
    np.testing.assert_allclose(stats.first, gamma.T @ centred, atol=1e-10)
    np.testing.assert_allclose(stats.second, gamma.T @ centred**2, atol=1e-10)


def test_single_precision_is_close_to_double():
    hmms, utterances = small_problem(2)
    single, double = accumulate(hmms, utterances), accumulate(hmms, utterances, EXACT)
    np.testing.assert_allclose(single.occupancy, double.occupancy, atol=1e-4)
    np.testing.assert_allclose(single.second, double.second, rtol=1e-4, atol=1e-3)
    assert single.objective == pytest.approx(double.objective, rel=1e-6)


def test_statistics_add_up():
    hmms, utterances = small_problem(3)
    whole = accumulate(hmms, utterances, EXACT)
    parts = accumulate(hmms, utterances[:2], EXACT) + accumulate(hmms, utterances[2:], EXACT)
    for name in ("occupancy", "first", "second", "transitions", "objective"):
        np.testing.assert_allclose(getattr(parts, name), getattr(whole, name), rtol=1e-10, atol=1e-12)
    assert (parts.frames, parts.utterances) == (whole.frames, whole.utterances)
    moved = hmms.with_pool(replace(hmms.pool, means=hmms.pool.means + 1))
    with pytest.raises(ValueError, match="different models"):
        whole + Stats.zeros(moved)


def test_the_same_chunk_gives_the_same_bytes():
    hmms, utterances = small_problem(4)
    first, second = accumulate(hmms, utterances), accumulate(hmms, utterances)
    assert first.second.tobytes() == second.second.tobytes()
    assert first.transitions.tobytes() == second.transitions.tobytes()


def test_known_parameters_are_recovered():
    rng = np.random.default_rng(5)
    truth = flat_start(whole_words("ab"), 3, np.zeros(2), np.ones(2))
    means = 6 * np.array([[0, 0], [1, 0], [1, 1], [0, 1], [-1, 0], [-1, -1.0]])
    variances = rng.uniform(0.5, 2, (6, 2))
    truth = truth.with_pool(GaussianPool(means, variances, np.zeros(6), np.arange(7)))
    a = np.array([[0, 1, 0, 0, 0], [0, 0.8, 0.2, 0, 0], [0, 0, 0.5, 0.5, 0], [0, 0, 0, 0.7, 0.3], [0, 0, 0, 0, 0]])
    with np.errstate(divide="ignore"):
        truth = replace(truth, units=(replace(truth.units[0], log_transitions=np.log(a)), truth.units[1]))
    words = [["a"] if i % 2 else ["b", "a"] for i in range(800)]
    utterances = [(str(i), sample(rng, truth, w).astype(np.float32), w) for i, w in enumerate(words)]
    whole = moments((x for _, x, _ in utterances), 2)
    start = flat_start(whole_words("ab"), 3, whole.mean, whole.variance, variance_floor=0.01 * whole.variance)
    found, reports = baum_welch(start, utterances, 30, MlOptions(tolerance=1e-5))
    assert len(reports) < 30
    np.testing.assert_allclose(found.pool.means, means, atol=0.15)
    # a variance estimated from n samples has a relative standard error of sqrt(2 / n)
    errors = np.abs(found.pool.variances / variances - 1) * np.sqrt(
        accumulate(found, utterances).occupancy[:, None] / 2
    )
    assert errors.max() < 4.5
    np.testing.assert_allclose(np.exp(found.units[0].log_transitions), a, atol=0.04)


def test_flat_start_learns_silence():
    """Words between pauses of unknown length: the optional silence finds the pauses by itself."""
    rng = np.random.default_rng(6)
    level = {"a": 3.0, "b": -3.0}
    utterances = []
    for i in range(60):
        words = [["a", "b"][w] for w in rng.integers(0, 2, 2)]
        parts = [rng.normal(0, 0.3, (rng.integers(4, 9), 1))]
        for word in words:
            parts += [
                rng.normal(level[word], 0.5, (rng.integers(5, 9), 1)),
                rng.normal(0, 0.3, (rng.integers(4, 9), 1)),
            ]
        utterances.append((str(i), np.concatenate(parts), words))
    whole = moments((x for _, x, _ in utterances), 1)
    hmms = flat_start(
        whole_words("ab"), 3, whole.mean, whole.variance, silence="sil", variance_floor=0.01 * whole.variance
    )
    hmms, _ = baum_welch(hmms, utterances, 15)
    silence = hmms.pool.means[hmms.units[hmms.unit_index["sil"]].states]
    assert np.abs(silence).max() < 0.5
    assert np.abs(hmms.pool.means[hmms.units[0].states].mean() - 3) < 0.5


def test_tied_variances_stay_tied():
    hmms, utterances = small_problem(7)
    stats = accumulate(hmms, utterances, EXACT)
    free, _ = update(hmms, stats, EXACT)
    by_state, _ = update(hmms, stats, replace(EXACT, tie_variances="state"))
    one, _ = update(hmms, stats, replace(EXACT, tie_variances="global"))
    assert np.ptp(one.pool.variances, axis=0).max() == 0 < np.ptp(free.pool.variances, axis=0).min()
    for first, last in zip(hmms.pool.offsets, hmms.pool.offsets[1:]):
        if stats.occupancy[first:last].any():
            assert np.ptp(by_state.pool.variances[first:last], axis=0).max() == 0
    weights = stats.occupancy[:, None]
    scatter = stats.second - stats.first**2 / np.maximum(weights, 1e-300)
    np.testing.assert_allclose(one.pool.variances[0], np.maximum(scatter.sum(0) / weights.sum(), 0.02))


def test_a_dead_component_is_revived_by_the_next_split():
    pool = GaussianPool([[0.0], [50.0]], [[1.0], [1.0]], np.log([0.5, 0.5]), [0, 2])
    hmms = replace(flat_start(whole_words("a"), 1, np.zeros(1), np.ones(1)), pool=pool)
    x = np.random.default_rng(0).normal(size=(40, 1))
    hmms, report = update(hmms, accumulate(hmms, [("a", x, ["a"])]))
    assert report["dead"] == 1 and hmms.pool.log_weights[1] == -np.inf and hmms.pool.means[1, 0] == 50
    assert np.isfinite(accumulate(hmms, [("a", x, ["a"])]).objective)
    again = split(hmms.pool, 2)
    np.testing.assert_allclose(np.exp(again.log_weights), [0.5, 0.5])
    assert again.means[0, 0] - again.means[1, 0] == pytest.approx(0.4 * np.sqrt(again.variances[0, 0]))


def test_bad_utterances_are_dropped_with_their_reason():
    hmms = flat_start(whole_words("ab"), 4, np.zeros(2), np.ones(2))
    good = np.random.default_rng(0).normal(size=(20, 2))
    nan, infinite = good.copy(), good.copy()
    nan[7, 1], infinite[3, 0] = np.nan, np.inf
    stats = accumulate(
        hmms,
        [
            ("fine", good, ["a"]),
            ("short", good[:3], ["a"]),
            ("unknown", good, ["a", "z"]),
            ("silent", good, []),
            ("nan", nan, ["b"]),
            ("infinite", infinite, ["b"]),
            ("none", good[:0], ["b"]),
            ("wide", np.zeros((20, 3)), ["b"]),
        ],
    )
    assert stats.utterances == 1 and stats.frames == 20
    reasons = dict(stats.dropped)
    assert reasons["short"].startswith("3 frames: no path")
    assert reasons["unknown"] == "not in the model: z"
    assert reasons["silent"] == "empty transcript"
    assert "frame 7" in reasons["nan"] and "frame 3" in reasons["infinite"]
    assert reasons["none"] == "no frames" and "(20, 3)" in reasons["wide"]
    assert update(hmms, stats)[1]["dropped"] == 7
    only = accumulate(hmms, [("fine", good, ["a"])])
    np.testing.assert_array_equal(only.first, stats.first)


def test_nothing_usable_is_an_error():
    hmms = flat_start(whole_words("a"), 4, np.zeros(2), np.ones(2))
    with pytest.raises(MargoError, match="no usable utterance: 1 frames: no path"):
        update(hmms, accumulate(hmms, [("x", np.zeros((1, 2)), ["a"])]))


def test_a_variance_of_zero_is_named_where_it_arises():
    hmms = flat_start(whole_words(["left", "right"]), 1, np.zeros(2), np.ones(2))
    constant = np.tile([1.0, 2.0], (9, 1))
    stats = accumulate(hmms, [("x", constant, ["right"])], EXACT)
    with pytest.raises(MargoError, match=r"unit right, state 1, component 1: variance of dimension 0 is .*occupancy 9"):
        update(hmms, stats, EXACT)
    floored, report = update(replace(hmms, variance_floor=np.full(2, 0.1)), stats, EXACT)
    assert report["floored"] == 2
    np.testing.assert_array_equal(floored.pool.variances[1], 0.1)
    stats.occupancy[0] = np.nan
    with pytest.raises(MargoError, match="unit left, state 1, component 1: occupancy nan"):
        update(hmms, stats, EXACT)


def test_units_without_data_keep_their_parameters():
    hmms = flat_start(whole_words(["seen", "unseen"]), 2, np.zeros(2), np.ones(2))
    x = np.random.default_rng(0).normal(size=(15, 2))
    found, _ = update(hmms, accumulate(hmms, [("x", x, ["seen"])]))
    np.testing.assert_array_equal(found.pool.means[2:], hmms.pool.means[2:])
    np.testing.assert_array_equal(found.units[1].log_transitions, hmms.units[1].log_transitions)
    assert not np.array_equal(found.pool.means[:2], hmms.pool.means[:2])


def test_counts_that_rounding_leaves_close_no_unit():
    """As of a pronunciation that nobody uses: its first state was entered and left by 1e-18, its exit by nothing."""
    hmms, utterances = small_problem(3)
    stats = accumulate(hmms, utterances)
    unit, start = hmms.units[0], hmms.transition_offsets[0]
    size = unit.n_states + 2
    rows = stats.transitions[start : start + size * size].reshape(size, size)
    rows[:] = 0.0
    rows[0, 1], rows[1, 1] = 5e-18, 3e-17
    updated, _ = update(hmms, stats)
    np.testing.assert_array_equal(updated.units[0].log_transitions, unit.log_transitions)
    rows[0, 1] = rows[1, 1] = 1e-6  # this much is a count: nothing ever left the state, which is refused
    with pytest.raises(MargoError, match=f"unit {unit.name}: its exit cannot be reached"):
        update(hmms, stats)


def test_tied_states_collect_from_both_units():
    shared = flat_start(whole_words("ab"), 2, np.zeros(1), np.ones(1))
    units = (shared.units[0], Unit("b", np.array([2, 1]), left_to_right(2)))
    hmms = replace(shared, units=units)
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(9, 1)), rng.normal(size=(12, 1))
    stats = accumulate(hmms, [("x", x, ["a"]), ("y", y, ["b"])], EXACT)
    assert stats.occupancy[:3].sum() == pytest.approx(21) and stats.occupancy[3] == 0


def test_moments_add_up():
    rng = np.random.default_rng(0)
    parts = [rng.normal(i, 1 + i, (10 * i + 5, 3)) for i in range(4)]
    bad = np.full((4, 3), np.nan)
    whole = moments([*parts, bad], 3)
    halves = moments(parts[:2], 3) + moments(parts[2:], 3) + Moments(0, np.zeros(3), np.zeros(3))
    for found in (whole, halves):
        np.testing.assert_allclose(found.mean, np.concatenate(parts).mean(0))
        np.testing.assert_allclose(found.variance, np.concatenate(parts).var(0))


def test_stop_rule():
    assert not converged(None, -50.0, 0.01)
    assert not converged(-50.0, -49.9, 0.01)
    assert converged(-50.0, -49.995, 0.01) and converged(-50.0, -50.1, 0.01)


@pytest.mark.parametrize("wrong", [{"tolerance": -1.0}, {"iterations": 0}, {"tie_variances": "some"}])
def test_options_are_checked(wrong):
    with pytest.raises(ValueError, match="expected"):
        MlOptions(**wrong)

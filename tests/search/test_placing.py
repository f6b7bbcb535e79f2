"""Boundaries between units: mean and deviation of their posterior against the enumeration of all ways to place them."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from margo.gaussian.likelihood import log_likelihoods, scorer
from margo.model.graph import align_graph, loop_graph
from margo.model.hmm import flat_start, whole_words
from margo.search import placing
from margo.search.confidence import node_units, unit_confidences
from margo.search.placing import unit_starts, units_alone
from margo.search.viterbi import Segment, align, viterbi
from oracles import log_gaussians, random_hmms, unit_paths


def weight(hmms, unit, scores, scale):
    """Sum over all ways through a unit that take exactly these frames [T, S]."""
    return sum(np.exp(log_prob + scale * sum(scores[t, state] for t, state in enumerate(states)))
               for log_prob, states, _ in unit_paths(hmms, unit, len(scores)))  # fmt: skip


def brute_force(hmms, units, scores, scale):
    """``(means, deviations)`` [U] of when units begin, from every way to place them in the frames."""
    frames, ways, likely = len(scores), [], []
    for inner in product(range(frames + 1), repeat=len(units) - 1):
        bounds = [0, *inner, frames]
        if (np.diff(bounds) >= 0).all():
            ways.append(bounds[:-1])
            likely.append(np.prod([weight(hmms, unit, scores[a:b], scale)
                                   for unit, a, b in zip(units, bounds, bounds[1:])]))  # fmt: skip
    ways, likely = np.array(ways, float), np.array(likely) / np.sum(likely)
    means = likely @ ways
    return means, np.sqrt(likely @ (ways - means) ** 2)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("scale", [1.0, 0.1])
def test_they_are_those_of_all_ways_to_place_the_units(seed, scale):
    rng = np.random.default_rng(seed)
    hmms = random_hmms(rng, silence=True, tee=seed == 2, ways=seed == 3)
    x = rng.normal(size=(8, hmms.pool.dimension))
    scores = log_gaussians(hmms.pool, x)
    graph = align_graph(hmms, ["w1", "w0"])
    path = align(graph, scores[:, graph.states])
    means, deviations = unit_starts(units_alone(hmms), path.units, scores[:, graph.states], graph.states, scale)
    units = [unit.index for unit in path.units]
    true, spread = brute_force(hmms, units, scores, scale)
    np.testing.assert_allclose(means, true, atol=1e-9)
    np.testing.assert_allclose(deviations, spread, atol=1e-6)
    assert len(units) > 1 and deviations[1:].max() > 0.1 and means[0] == deviations[0] == 0


def test_a_unit_that_may_take_no_frame_may_begin_behind_the_last():
    rng = np.random.default_rng(2)
    hmms = random_hmms(rng, silence=True, tee=True)
    scores = log_gaussians(hmms.pool, rng.normal(size=(6, hmms.pool.dimension)))
    tee = next(n for n, unit in enumerate(hmms.units) if unit.log_transitions[0, -1] > -np.inf)
    other = next(n for n in range(len(hmms.units)) if n != tee)
    units = [Segment(other, 0, 6), Segment(tee, 6, 6)]
    found = unit_starts(units_alone(hmms), units, scores, np.arange(hmms.pool.n_states), 0.2)
    np.testing.assert_allclose(found, brute_force(hmms, [other, tee], scores, 0.2), atol=1e-6)


def spoken(words=40, seed=5):
    """A long string of four words, each of its own mean, that take three to nine frames."""
    rng = np.random.default_rng(seed)
    hmms = flat_start(whole_words("abcd"), 2, np.zeros(2), np.ones(2))
    hmms = hmms.with_pool(replace(hmms.pool, means=rng.normal(0, 3, hmms.pool.means.shape)))
    said = [str(word) for word in rng.choice([*"abcd"], words)]
    frames = [rng.normal(np.repeat(hmms.pool.means[hmms.states_of(word)], rng.integers(2, 5, 2), axis=0))
              for word in said]  # fmt: skip
    graph = align_graph(hmms, said)
    scores = log_likelihoods(scorer(hmms.pool, graph.states), np.concatenate(frames).astype(np.float32))
    return hmms, graph, scores, align(graph, scores), np.cumsum([0, *(len(part) for part in frames[:-1])])


def test_many_units_are_placed_as_few(monkeypatch):
    hmms, graph, scores, path, _ = spoken()
    alone = units_alone(hmms)
    whole = unit_starts(alone, path.units, scores, graph.states, 0.3)
    monkeypatch.setattr(placing, "SPAN", 7)
    parts = unit_starts(alone, path.units, scores, graph.states, 0.3)
    np.testing.assert_allclose(parts, whole, atol=1e-6)
    monkeypatch.setattr(placing, "AROUND", 0)
    assert np.abs(unit_starts(alone, path.units, scores, graph.states, 0.3)[0] - whole[0]).max() > 1e-3


def test_they_are_in_order_and_as_far_from_the_truth_as_they_say():
    """Of frames that the model itself could have made, with nothing scaled."""
    errors = []
    for seed in range(20):
        hmms, graph, scores, path, true = spoken(seed=seed)
        means, deviations = unit_starts(units_alone(hmms), path.units, scores, graph.states, 1.0)
        assert (np.diff(means) >= 1).all()
        errors.append(((means - true) / np.maximum(deviations, 0.02))[1:])
    assert np.abs(np.concatenate(errors)).mean() < 1.2


def test_confidence_of_units_is_their_posterior_where_everything_competes():
    rng = np.random.default_rng(1)
    hmms = random_hmms(rng, silence=True)
    graph = loop_graph(hmms)
    scores = log_gaussians(hmms.pool, rng.normal(size=(9, hmms.pool.dimension)))[:, graph.states]
    states = [graph.states[column] in hmms.units[unit].states
              for column, unit in zip(graph.arcs.column, node_units(hmms, graph))]  # fmt: skip
    assert all(states) and {*node_units(hmms, graph).tolist()} == {*range(len(hmms.units))}
    path = viterbi(graph, scores)
    own = np.arange(len(hmms.units))
    sure = unit_confidences(hmms, graph, scores, path.units, 0.3, own)
    assert ((sure > 0) & (sure < 1)).all()
    merged = unit_confidences(hmms, graph, scores, path.units, 0.3, np.zeros_like(own))
    np.testing.assert_allclose(merged, 1, atol=1e-9)  # all of one kind: nothing competes

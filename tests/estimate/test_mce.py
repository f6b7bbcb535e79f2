"""MCE: loss by its definition, gradients by finite differences, descent that lowers the loss."""

from dataclasses import replace

import numpy as np
import pytest

from contests import check_gradient, string_scores, task
from margo.estimate import mmi, rprop
from margo.estimate.mce import Mce, MceOptions
from margo.estimate.moves import gradients, moved
from margo.estimate.paths import find_paths, path_constants, searcher, slots
from margo.gaussian.likelihood import log_likelihoods, scorer
from margo.model.grammar import recognition_graph, string_score
from margo.search.nbest import nbest

OPTIONS = MceOptions(competitors=3, eta=4.0, slope=1.5, offset=0.1)
SPREAD = 0.6


def loss_by_definition(hmms, data, options=OPTIONS):
    """Summed loss and errors from N-best lists and forced alignments, nothing shared with the code under test."""
    loss = errors = 0
    graph = recognition_graph(hmms)
    for _, x, words in data:
        scores = log_likelihoods(scorer(hmms.pool, graph.states, np.float64), x)
        rivals = [h.words for h in nbest(graph, scores, options.competitors + 1) if h.names != words]
        strings = [tuple(hmms.word_index[word] for word in words), *rivals[: options.competitors]]
        extra = [string_score(hmms, [hmms.words[word] for word in string]) for string in strings]
        g = (string_scores(hmms, x, strings) + extra) / len(x)
        d = -g[0] + np.log(np.mean(np.exp(options.eta * g[1:]))) / options.eta
        loss += 1 / (1 + np.exp(-options.slope * d / SPREAD - options.offset))
        errors += g[1:].max() >= g[0]
    return loss, errors


def stats_of(hmms, data, options=OPTIONS):
    paths = find_paths(searcher(hmms, np.float64), data, options.competitors)
    return Mce(options).weigh(SPREAD, hmms, paths.frames(data), paths, slots(paths))


@pytest.mark.parametrize("kind", ["isolated", "loop", "bigram"])
@pytest.mark.parametrize("seed", range(3))
def test_loss_and_gradient(kind, seed):
    hmms, data = task(seed, kind, silence=seed != 1)
    stats = stats_of(hmms, data)
    loss, errors = loss_by_definition(hmms, data)
    np.testing.assert_allclose(stats.objective, loss, rtol=1e-10)
    assert (stats.errors, stats.utterances) == (errors, len(data))
    gradient = gradients(hmms, stats)
    assert set(gradient) == {"means", "variances", "weights", "transitions"}
    check_gradient(hmms, gradient, lambda h: loss_by_definition(h, data)[0], np.random.default_rng(seed))


def test_gradient_check_notices_a_wrong_gradient():
    hmms, data = task(0, "loop")
    gradient = gradients(hmms, stats_of(hmms, data))
    wrong = {"means": gradient["means"] * (1 + 1e-4)}
    with pytest.raises(AssertionError):
        check_gradient(hmms, wrong, lambda h: loss_by_definition(h, data)[0], np.random.default_rng(0))


def test_chunks_add_up():
    hmms, data = task(4, "loop")
    whole, parts = stats_of(hmms, data), stats_of(hmms, data[:2]) + stats_of(hmms, data[2:])
    np.testing.assert_allclose(parts.first, whole.first, atol=1e-12)
    np.testing.assert_allclose(parts.transitions, whole.transitions, atol=1e-12)
    np.testing.assert_allclose(parts.objective, whole.objective)


def test_old_paths_are_scored_with_the_new_parameters():
    """Between searches only scores move: those of paths found with the model itself are the limit."""
    hmms, data = task(5, "loop")
    rng = np.random.default_rng(5)
    after = moved(hmms, {"means": 1e-7 * rng.normal(size=hmms.pool.means.shape),
                             "transitions": 1e-7 * rng.normal(size=hmms.log_transitions.shape)})  # fmt: skip
    old = find_paths(searcher(hmms, np.float64), data, 3)
    kept = replace(old, constants=path_constants(after, old, hmms))
    fresh = find_paths(searcher(after, np.float64), data, 3)
    np.testing.assert_allclose(kept.constants, fresh.constants, rtol=0, atol=1e-12)
    x = kept.frames(data)
    measures = [Mce(OPTIONS).measures(after, x, paths, slots(paths)) for paths in (kept, fresh)]
    np.testing.assert_allclose(*measures, atol=1e-12)


def test_an_utterance_that_does_not_fit_is_dropped_and_named():
    hmms, data = task(6, "loop")
    data[1] = ("short", data[1][1][:1], ("w0", "w1", "w2"))
    data[2] = ("unknown", data[2][1], ("w9",))
    paths = find_paths(searcher(hmms), data, 3)
    assert [name for name, _ in paths.dropped] == ["short", "unknown"]
    assert "w9" in paths.dropped[1][1] and paths.n_utterances == len(data) - 2


def test_a_transcript_that_the_grammar_forbids_is_dropped():
    hmms, data = task(6, "bigram")
    data[0] = ("forbidden", data[0][1], ("w0", "w1"))
    paths = find_paths(searcher(hmms), data, 3)
    assert paths.dropped == (("forbidden", "the grammar forbids its words"),)
    assert mmi.accumulate(hmms, data).dropped == paths.dropped


@pytest.mark.parametrize("kind", ["isolated", "loop"])
@pytest.mark.parametrize("parameters", [("means",), ("means", "variances", "weights", "transitions")])
def test_training_lowers_loss(kind, parameters):
    hmms, data = task(7, kind, utterances=12)
    options = MceOptions(parameters=parameters)
    criterion, losses = Mce(options), []
    memory = criterion.begin(hmms)
    for _ in range(15):
        stats = stats_of(hmms, data, options)
        losses.append(stats.objective)
        hmms, memory, _ = criterion.update(hmms, stats, memory)
    assert losses[-1] < 0.9 * losses[0]
    assert criterion.report(stats, memory)["objective"] == pytest.approx(losses[-1] / 12)


def test_variances_stay_above_the_floor():
    hmms, data = task(8, "loop")
    floor = 0.9 * hmms.pool.variances.min(axis=0)
    hmms = replace(hmms, variance_floor=floor)
    down = moved(hmms, {"variances": np.full(hmms.pool.means.shape, -3.0)})
    assert (down.pool.variances == np.broadcast_to(floor, down.pool.variances.shape)).all()


def test_rprop_finds_the_minimum_of_a_badly_scaled_bowl():
    scales, goal = np.array([1e-4, 1.0, 1e4]), np.array([0.3, -0.2, 0.1])
    x, state = np.zeros(3), rprop.start(3, 0.01, 0.05)
    for _ in range(60):
        change, state = rprop.descend(state, scales * (x - goal))
        x = x + change
    np.testing.assert_allclose(x, goal, atol=2e-3)


def test_rprop_steps():
    state = rprop.start(1, 0.01, 0.015)
    sizes = []
    for sign in (1, 1, 1, 1, -1, -1, -1):
        change, state = rprop.descend(state, np.array([float(sign)]))
        sizes.append(change[0])
    np.testing.assert_allclose(sizes, [-0.01, -0.012, -0.0144, -0.015, 0.0, 0.0075, 0.009])

"""Margin training: the smooth hinge, the objective by its definition, gradients, growth under EBW."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contests import check_gradient, string_scores, task
from margo.estimate.mm import Mm, MmOptions, smooth_hinge
from margo.estimate.moves import PARAMETERS, gradients
from margo.estimate.paths import find_paths, searcher, slots
from margo.gaussian.likelihood import log_likelihoods, scorer
from margo.model.grammar import recognition_graph, string_score
from margo.search.nbest import nbest

OPTIONS = MmOptions(competitors=3, eta=4.0, slope=0.8, parameters=PARAMETERS)
SPREAD = 0.6


def printed_hinge(y):
    """h of [PW10]."""
    return y + 0.5 if y <= 1 else 2 - 0.5 * (y - 2) ** 2 if y < 2 else 2.0


def objective_by_definition(hmms, data, options=OPTIONS):
    total, graph = 0.0, recognition_graph(hmms)
    for _, x, words in data:
        scores = log_likelihoods(scorer(hmms.pool, graph.states, np.float64), x)
        rivals = [h.words for h in nbest(graph, scores, options.competitors + 1) if h.names != words]
        strings = [tuple(hmms.word_index[word] for word in words), *rivals[: options.competitors]]
        extra = [string_score(hmms, [hmms.words[word] for word in string]) for string in strings]
        g = (string_scores(hmms, x, strings) + extra) / len(x)
        margin = np.exp(g[0]) / np.sum(np.exp(options.eta * g[1:])) ** (1 / options.eta)
        total += np.log(printed_hinge(margin ** (options.slope / SPREAD)))
    return total


def stats_of(hmms, data, options=OPTIONS):
    paths = find_paths(searcher(hmms, np.float64), data, options.competitors)
    return Mm(options).weigh(SPREAD, hmms, paths.frames(data), paths, slots(paths))


def test_smooth_hinge_is_the_printed_one_and_its_slope_the_derivative():
    log_y = np.linspace(-4, 2, 61)
    heights, slopes = smooth_hinge(log_y)
    np.testing.assert_allclose(heights, [np.log(printed_hinge(np.exp(value))) for value in log_y], atol=1e-12)
    there, back = smooth_hinge(log_y + 1e-6)[0], smooth_hinge(log_y - 1e-6)[0]
    np.testing.assert_allclose(slopes, (there - back) / 2e-6, atol=2e-6)
    assert (slopes[log_y > np.log(2)] == 0).all() and (slopes[log_y < np.log(2) - 1e-9] > 0).all()


@pytest.mark.parametrize("kind", ["isolated", "loop", "bigram"])
@pytest.mark.parametrize("seed", range(3))
def test_objective_and_gradient(kind, seed):
    hmms, data = task(seed, kind, silence=seed != 1)
    stats = stats_of(hmms, data)
    np.testing.assert_allclose(stats.objective, objective_by_definition(hmms, data), rtol=1e-9)
    check_gradient(
        hmms, gradients(hmms, stats), lambda h: objective_by_definition(h, data), np.random.default_rng(seed)
    )


@given(seed=st.integers(0, 10**6), kind=st.sampled_from(["isolated", "loop"]))
@settings(max_examples=20, deadline=None, derandomize=True)
def test_with_large_D_no_step_lowers_the_objective(seed, kind):
    """On the paths found before the step; finding better ones afterwards is another matter."""
    hmms, data = task(seed, kind, utterances=5)
    options = replace(OPTIONS, growth=1e4, parameters=("means", "variances", "weights"))
    paths = find_paths(searcher(hmms, np.float64), data, 3)
    x, places = paths.frames(data), slots(paths)
    before = Mm(options).weigh(SPREAD, hmms, x, paths, places)
    after, _, report = Mm(options).update(hmms, before, {})
    assert Mm(options).weigh(SPREAD, after, x, paths, places).objective >= before.objective - 1e-10
    assert report["moved"] < 0.1


@pytest.mark.parametrize("kind", ["isolated", "loop"])
def test_with_the_default_D_training_ends_higher(kind):
    options = MmOptions()
    hmms, data = task(9, kind, utterances=15)
    objectives = []
    for _ in range(8):
        stats = stats_of(hmms, data, options)
        objectives.append(stats.objective)
        hmms, _, _ = Mm(options).update(hmms, stats, {})
    assert objectives[-1] > objectives[0]


def test_what_is_won_by_far_does_not_count():
    hmms, data = task(10, "isolated", utterances=12)
    paths = find_paths(searcher(hmms, np.float64), data, OPTIONS.competitors)
    margins = Mm(OPTIONS).measures(hmms, paths.frames(data), paths, slots(paths))
    near = [one for one, margin in zip(data, margins) if margin * OPTIONS.slope / SPREAD < np.log(2)]
    assert 0 < len(near) < len(data)
    all_of_them = stats_of(hmms, data)
    np.testing.assert_allclose(stats_of(hmms, near).first, all_of_them.first, atol=1e-12)
    assert not np.allclose(stats_of(hmms, near[1:]).first, all_of_them.first)

"""MMI: its objective by enumeration, gradients by finite differences, growth under EBW."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contests import check_gradient, spoken, task
from margo.estimate import mmi, pieces
from margo.estimate.mmi import MmiOptions
from margo.estimate.moves import PARAMETERS, gradients
from margo.gaussian.likelihood import log_likelihoods, scorer
from margo.model.grammar import recognition_graph, string_score, weighed_grammar
from margo.model.graph import align_graph
from margo.search.forward_backward import posteriors
from margo.search.viterbi import align, viterbi
from oracles import enumerate_all, log_gaussians, loop_strings

OPTIONS = MmiOptions(acoustic_scale=0.4, boost=0.0, parameters=PARAMETERS, double=True)


def objective_on_graphs(hmms, data, kappa=OPTIONS.acoustic_scale):
    """Summed objective by the log-domain forward-backward on both graphs."""
    weighed = weighed_grammar(hmms, kappa)
    total, graph = 0.0, recognition_graph(weighed)
    for _, x, words in data:
        for sign, one in ((1, align_graph(hmms, words)), (-1, graph)):
            scores = log_likelihoods(scorer(hmms.pool, one.states, np.float64), x)
            total += sign * posteriors(one, scores, scale=kappa).log_likelihood[0]
        total += string_score(weighed, words)
    return total


@pytest.mark.parametrize("kind", ["isolated", "loop", "bigram"])
def test_objective_is_that_of_all_strings_enumerated(kind):
    hmms, data = task(1, kind, utterances=3, words=2, skips=False)
    expected = 0.0
    for name, x, words in data:
        x = x[:6]
        scores = log_gaussians(hmms.pool, x)
        spoken = tuple(hmms.word_index[word] for word in words)[:1]
        words = tuple(hmms.words[word] for word in spoken)

        def extra(string):
            return OPTIONS.acoustic_scale * string_score(hmms, [hmms.words[word] for word in string])

        strings = list(loop_strings(hmms, 1 if kind == "isolated" else 3))  # 6 frames, words of two states or more
        everything = enumerate_all(hmms, scores, strings, extra, OPTIONS.acoustic_scale)
        alone = enumerate_all(hmms, scores, [spoken], extra, OPTIONS.acoustic_scale)
        stats = mmi.accumulate(hmms, [(name, x, words)], OPTIONS)
        np.testing.assert_allclose(stats.objective, alone.total - everything.total, rtol=0, atol=1e-9)
        expected += alone.total - everything.total
    assert expected < -1e-3  # the reference is contested, so the comparison means something


@pytest.mark.parametrize("kind", ["isolated", "loop", "bigram"])
@pytest.mark.parametrize("seed", range(2))
def test_gradient(kind, seed):
    hmms, data = task(seed, kind, utterances=4, silence=seed == 0)
    stats = mmi.accumulate(hmms, data, OPTIONS)
    np.testing.assert_allclose(stats.objective, objective_on_graphs(hmms, data), rtol=1e-10)
    gradient = gradients(hmms, stats)
    check_gradient(hmms, gradient, lambda h: objective_on_graphs(h, data), np.random.default_rng(seed), 6, step=1e-4)


def test_boost_by_its_definition():
    """Boosting by b multiplies each path of the denominator by exp(-b A), A counted frame by frame."""
    hmms, data = task(3, "loop", utterances=1, words=2, skips=False)
    name, x, words = data[0][0], data[0][1][:6], data[0][2][:1]
    kappa, boost = 0.4, 0.7
    forced = align_graph(hmms, words)
    scores = log_gaussians(hmms.pool, x)
    (segment,) = align(forced, scores[:, forced.states]).words
    states = hmms.states_of(words[0])
    boosted = scores.copy()
    boosted[segment.start : segment.end, np.unique(states)] -= boost / kappa / (segment.end - segment.start)

    def extra(string):
        return kappa * string_score(hmms, [hmms.words[word] for word in string])

    alone = enumerate_all(hmms, scores, [(hmms.word_index[words[0]],)], extra, kappa).total
    everything = enumerate_all(hmms, boosted, list(loop_strings(hmms, 3)), extra, kappa).total
    options = MmiOptions(acoustic_scale=kappa, boost=boost, double=True)
    stats = mmi.accumulate(hmms, [(name, x, words)], options)
    np.testing.assert_allclose(stats.objective, alone - everything, atol=1e-9)
    assert (
        stats.objective
        > mmi.accumulate(hmms, [(name, x, words)], replace(options, boost=0.0)).objective
    )


@given(seed=st.integers(0, 10**6), kind=st.sampled_from(["isolated", "loop"]))
@settings(max_examples=25, deadline=None, derandomize=True)
def test_with_large_D_no_step_lowers_the_objective(seed, kind):
    hmms, data = task(seed, kind, utterances=5)
    options = replace(OPTIONS, growth=1e4)
    before = objective_on_graphs(hmms, data)
    after, _ = mmi.update(hmms, mmi.accumulate(hmms, data, options), options)
    assert objective_on_graphs(after, data) >= before - 1e-10 * abs(before)


def test_a_step_down_is_noticed():
    """The twin of the test above: the same step taken backwards lowers the objective."""
    hmms, data = task(11, "loop", utterances=5)
    options = replace(OPTIONS, growth=1e4, parameters=("means",))
    after, _ = mmi.update(hmms, mmi.accumulate(hmms, data, options), options)
    back = hmms.with_pool(replace(hmms.pool, means=2 * hmms.pool.means - after.pool.means))
    assert objective_on_graphs(back, data) < objective_on_graphs(hmms, data) < objective_on_graphs(after, data)


@pytest.mark.parametrize("kind", ["isolated", "loop", "bigram"])
@pytest.mark.parametrize("how", [{}, {"tau": 10.0}, {"parameters": ("means",)}, {"parameters": PARAMETERS}])
def test_with_the_default_D_training_ends_higher(kind, how):
    options = MmiOptions(double=True, **how)
    hmms, data = task(21, kind, utterances=15)
    objectives = []
    for _ in range(6):
        stats = mmi.accumulate(hmms, data, options)
        objectives.append(stats.objective)
        hmms, _ = mmi.update(hmms, stats, options)
    assert objectives[-1] > objectives[0]


def test_i_smoothing_pulls_towards_the_numerators_own_mean():
    hmms, data = task(31, "loop", utterances=10)
    options = replace(OPTIONS, tau=1e7, parameters=("means",))
    stats = mmi.accumulate(hmms, data, options)
    after, _ = mmi.update(hmms, stats, options)
    seen = stats.own.occupancy > 1e-3
    np.testing.assert_allclose(after.pool.means[seen], stats.own.means()[seen], atol=1e-3)


def test_errors_are_those_of_decoding():
    for kind in ("isolated", "loop", "bigram"):
        hmms, data = task(7, kind, utterances=40)
        graph = recognition_graph(hmms)
        wrong = 0
        for _, x, words in data:
            wrong += viterbi(graph, log_likelihoods(scorer(hmms.pool, graph.states, np.float64), x)).word_names != words
        assert mmi.accumulate(hmms, data, OPTIONS).errors == wrong
        assert 0 < wrong < len(data)


def test_one_utterance_too_short_is_dropped():
    hmms, data = task(2, "loop")
    data[0] = ("short", data[0][1][:1], ("w0", "w1", "w2"))
    stats = mmi.accumulate(hmms, data, OPTIONS)
    assert [name for name, _ in stats.dropped] == ["short"]
    rest = mmi.accumulate(hmms, data[1:], OPTIONS)
    np.testing.assert_allclose(stats.first, rest.first, atol=1e-12)


def test_the_log_domain_takes_over_where_the_linear_one_fails():
    """Frames so far from every state that linear numbers run out still give the exact objective and gradient."""
    hmms, data = task(5, "loop", utterances=2)
    data = [(name, 30.0 * x, words) for name, x, words in data]
    options = replace(OPTIONS, acoustic_scale=1.0)
    stats = mmi.accumulate(hmms, data, options)
    np.testing.assert_allclose(stats.objective, objective_on_graphs(hmms, data, 1.0), rtol=1e-9)
    assert stats.utterances == 2
    np.testing.assert_allclose(stats.occupancy.sum(), 0.0, atol=1e-6)


def totals(stats):
    return {name: getattr(stats, name) for name in
            ("objective", "occupancy", "first", "second", "against", "transitions", "transitions_against")}  # fmt: skip


@pytest.mark.parametrize("boost", [0.0, 0.7])
@pytest.mark.parametrize("kind", ["isolated", "loop", "bigram"])
def test_the_list_of_all_strings_is_the_exact_denominator(kind, boost, monkeypatch):
    """Caught: strings that are not weighted by their posteriors, or whose bigram is not scaled as in the graph."""
    hmms, data = task(1, kind, utterances=4, words=2, silence=kind == "loop")
    data = [(name, x[:6], words[:1]) for name, x, words in data]
    options = replace(OPTIONS, boost=boost, tau=1.0)
    exact = mmi.accumulate(hmms, data, options)
    monkeypatch.setattr(mmi, "CELLS", 0)
    mmi._compiled.cache_clear()
    listed = mmi.accumulate(hmms, data, options)
    assert listed.utterances == exact.utterances == len(data) and abs(exact.objective) > 1e-3 and not listed.dropped
    for name, value in totals(exact).items():
        np.testing.assert_allclose(totals(listed)[name], value, rtol=1e-9, atol=1e-9, err_msg=name)


def test_long_utterances_are_set_against_what_was_said_and_the_best_strings(monkeypatch):
    """Only those over the bound. Caught: a list without what was said, of which the posterior may then be above 1."""
    hmms, data = task(7, "loop", utterances=12)
    weighed, graph = weighed_grammar(hmms, OPTIONS.acoustic_scale), recognition_graph(hmms)
    exact = [mmi.accumulate(hmms, [row], OPTIONS) for row in data]
    longest = max(len(x) for _, x, _ in data)
    monkeypatch.setattr(mmi, "CELLS", graph.n_nodes * longest - 1)
    monkeypatch.setattr(mmi, "STRINGS", 1)
    wrong = 0
    for row, before in zip(data, exact):
        name, x, words = row
        after, expected = mmi.accumulate(hmms, [row], OPTIONS), before.objective
        if len(x) == longest:
            best = viterbi(graph, log_likelihoods(scorer(hmms.pool, graph.states, np.float64), x)).word_names
            logs = []
            for string in [words] + [best] * (best != words):
                forced = align_graph(hmms, string)
                scores = log_likelihoods(scorer(hmms.pool, forced.states, np.float64), x)
                logs.append(posteriors(forced, scores, scale=OPTIONS.acoustic_scale).log_likelihood[0]
                            + string_score(weighed, string))  # fmt: skip
            expected, wrong = logs[0] - np.logaddexp.reduce(logs), wrong + (best != words)
        np.testing.assert_allclose(after.objective, expected, rtol=1e-10, err_msg=name)
        assert after.errors == before.errors and after.utterances == 1
    assert 0 < wrong < len(data)

def test_an_utterance_too_long_for_strings_and_for_the_graph_is_dropped_with_another_way(monkeypatch):
    hmms, data = task(0, "loop", utterances=3)
    longest = max(data, key=lambda row: len(row[1]))
    nodes = recognition_graph(hmms).n_nodes
    bound = max(len(x) * pieces.chain_nodes(hmms, words) for _, x, words in data if len(x) < len(longest[1]))
    assert len(longest[1]) * pieces.chain_nodes(hmms, longest[2]) > bound
    monkeypatch.setattr(mmi, "CELLS", nodes * len(longest[1]) - 1)
    monkeypatch.setattr(pieces, "CELLS", bound)
    stats = mmi.accumulate(hmms, data, OPTIONS)
    kept = [row for row in data if len(row[1]) < len(longest[1])]
    assert len(stats.dropped) == len(data) - len(kept) and stats.utterances == len(kept)
    assert (longest[0], f"{len(longest[1])} frames times {nodes} nodes are too many for the denominator of MMI; "
            "train_mce and train_lme take N-best lists instead") in stats.dropped  # fmt: skip


@pytest.fixture(scope="module")
def long():
    """A model, an utterance of sixty words, and two short ones."""
    hmms, short = task(3, "loop", utterances=2)
    rng = np.random.default_rng(3)
    words = tuple(hmms.words[n] for n in rng.integers(0, 3, 60))
    return hmms, [("long", np.concatenate([spoken(hmms, word, rng) for word in words]), words), *short]


def in_pieces(monkeypatch, hmms, data):
    """A few words at a time, and much context, since scaled posteriors are soft; short utterances at once, as ever."""
    monkeypatch.setattr(pieces, "CELLS", max(len(x) * pieces.chain_nodes(hmms, words) for _, x, words in data[1:]))
    monkeypatch.setattr(pieces, "PIECE", 50_000)
    monkeypatch.setattr(pieces, "CONTEXT", 16)


@pytest.mark.parametrize("how", [{}, {"boost": 0.7}, {"tau": 5.0}, {"boost": 0.7, "parameters": ("means",)}])
def test_long_utterances_count_what_the_whole_does(long, monkeypatch, how):
    hmms, data = long
    options = replace(OPTIONS, **how)
    whole = mmi.accumulate(hmms, data, options)
    in_pieces(monkeypatch, hmms, data)
    taken = []
    monkeypatch.setattr(mmi, "long_posteriors", lambda *given: taken.append(1) or pieces.long_posteriors(*given))
    parts = mmi.accumulate(hmms, data, options)
    assert taken == [1]
    for one, other in [(parts, whole), *([(parts.own, whole.own)] if options.tau else [])]:
        for name in ("occupancy", "first", "second", "transitions", "against", "transitions_against"):
            expected = getattr(other, name)
            np.testing.assert_allclose(getattr(one, name), expected, atol=2e-4 * np.abs(expected).max(), err_msg=name)
    assert parts.objective == pytest.approx(whole.objective, abs=1e-4)
    assert (parts.frames, parts.utterances, parts.errors) == (whole.frames, whole.utterances, whole.errors)


def test_a_long_utterance_that_does_not_fit_is_dropped_and_named_and_the_others_are_used(long, monkeypatch):
    hmms, data = long
    in_pieces(monkeypatch, hmms, data)
    rest = mmi.accumulate(hmms, data[1:], OPTIONS)

    def check(data, reason):
        stats = mmi.accumulate(hmms, data, OPTIONS)
        assert stats.dropped == (("long", reason),) and stats.utterances == 2
        np.testing.assert_array_equal(stats.first, rest.first)

    (name, x, words), *short = data
    check([(name, x[:50], words), *short], "50 frames: no path through the model fits")

    def full(*_):
        raise MemoryError

    monkeypatch.setattr(mmi, "long_posteriors", full)
    check(data, f"{len(x)} frames need more memory than there is")

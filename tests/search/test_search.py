"""Forward, backward, posteriors, Viterbi, N-best and confidences against the enumeration of all paths."""

from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np
import pytest

from margo.errors import MargoError
from margo.gaussian.likelihood import log_likelihoods, scorer
from margo.model.graph import Graph, align_graph, bigram_graph, isolated_graph, loop_graph
from margo.model.hmm import HmmSet, flat_start, whole_words
from margo.search.best import best_path, best_score, trace
from margo.search.confidence import confidences, word_occupancies
from margo.search.forward_backward import backward_rows, forward_rows, posteriors
from margo.search.nbest import nbest
from margo.search.viterbi import align, viterbi, viterbi_score
from oracles import enumerate_all, log_gaussians, loop_strings, random_hmms

TIGHT = 1e-10
PENALTY = -0.7


def bigram_of(rng, hmms):
    size = len(hmms.words) + 1
    log_bigram = np.log(rng.dirichlet(np.ones(size), size))
    log_bigram[0, -1] = -np.inf  # the first word may not end a string
    return log_bigram


def cases():
    """(name, model, graph, frames, strings, extra score of a string): every grammar with every kind of model."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        hmms = random_hmms(rng, silence=seed not in (1, 4), tee=seed == 2, ways=seed > 3)
        frames = 5 if seed in (1, 4) else 4
        yield f"align-{seed}", hmms, align_graph(hmms, ["w1", "w0"]), frames, [(1, 0)], lambda s: 0.0
        yield f"isolated-{seed}", hmms, isolated_graph(hmms), frames, [(0,), (1,)], lambda s: 0.0
        strings = list(loop_strings(hmms, frames))
        yield f"loop-{seed}", hmms, loop_graph(hmms, PENALTY), frames, strings, lambda s: PENALTY * len(s)
        bigram = bigram_of(rng, hmms)

        def extra(string, bigram=bigram):
            pairs = zip([2, *string], [*string, 2])
            return sum(1.3 * bigram[i, j] for i, j in pairs) + PENALTY * len(string)

        yield f"bigram-{seed}", hmms, bigram_graph(hmms, bigram, 1.3, PENALTY), frames, strings, extra


@dataclass
class Case:
    """A model, a grammar's graph, likelihoods of all pool states and of the graph's, and the truth by enumeration."""

    name: str
    hmms: HmmSet
    graph: Graph
    scores: np.ndarray
    strings: list
    extra: object
    known: dict = field(default_factory=dict)

    @property
    def local(self):
        return self.scores[:, self.graph.states]

    def truth(self, scale=1.0):
        if scale not in self.known:
            self.known[scale] = enumerate_all(self.hmms, self.scores, self.strings, self.extra, scale)
        return self.known[scale]


def make(name, hmms, graph, frames, strings, extra):
    x = np.random.default_rng(len(name)).normal(0, 1.5, (frames, hmms.pool.dimension))
    return Case(name, hmms, graph, log_gaussians(hmms.pool, x), strings, extra)


CASES = [make(*case) for case in cases()]


@pytest.fixture(params=CASES, ids=[case.name for case in CASES])
def case(request):
    return request.param


def test_likelihoods_equal_the_textbook(case):
    hmms, graph = case.hmms, case.graph
    x = np.random.default_rng(3).normal(0, 1.5, (7, hmms.pool.dimension))
    x[2, 1] = x[5, 0] = np.nan
    found = log_likelihoods(scorer(hmms.pool, graph.states, np.float64), x)
    np.testing.assert_allclose(found, log_gaussians(hmms.pool, x)[:, graph.states], atol=TIGHT)


@pytest.mark.parametrize("scale", [1.0, 0.1])
def test_forward_backward_equals_all_paths(case, scale):
    hmms, graph, local, truth = case.hmms, case.graph, case.local, case.truth(scale)
    found = posteriors(graph, local, scale=scale)
    assert found.log_likelihood[0] == pytest.approx(truth.total, abs=TIGHT)
    np.testing.assert_allclose(found.occupancies, truth.occupancies[:, graph.states], atol=TIGHT)
    counts = graph.transition_counts(found.arc_counts, len(hmms.log_transitions))
    np.testing.assert_allclose(counts, truth.transitions, atol=TIGHT)
    alpha, beta = np.empty((2, len(local) + 1, graph.n_nodes))
    forward_rows(graph.arcs, local, scale, alpha)
    backward_rows(graph.arcs, local, scale, beta)
    assert alpha[-1, graph.arcs.end] == pytest.approx(truth.total, abs=TIGHT)
    assert beta[0, graph.arcs.start] == pytest.approx(truth.total, abs=TIGHT)
    emitted = np.exp(alpha + beta - truth.total)[1:, : graph.n_emitting].sum(axis=1)
    np.testing.assert_allclose(emitted, 1, atol=TIGHT)


def test_word_occupancies_equal_all_paths(case):
    graph, local, truth = case.graph, case.local, case.truth()
    found = word_occupancies(graph, local)
    np.testing.assert_allclose(found, truth.word_occupancies, atol=TIGHT)
    path = viterbi(graph, local)
    for segment, confidence in zip(path.words, confidences(graph, local, path.words)):
        expected = truth.word_occupancies[segment.start : segment.end, segment.index].mean()
        assert confidence == pytest.approx(expected, abs=TIGHT)


def test_viterbi_equals_the_best_of_all_paths(case):
    hmms, graph, local, truth = case.hmms, case.graph, case.local, case.truth()
    path = viterbi(graph, local)
    assert path.score == pytest.approx(truth.best, abs=TIGHT)
    assert viterbi_score(graph, local) == path.score
    assert tuple(path.states) == truth.best_states
    string = max(truth.strings, key=truth.strings.get)
    assert tuple(segment.index for segment in path.words) == string
    assert viterbi(graph, local, beam=1e4).score == path.score
    names = [hmms.units[s.index].name for s in path.units if hmms.units[s.index].name != hmms.silence]
    ways = product(*(hmms.lexicon[word] for word in path.word_names))
    assert tuple(names) in {tuple(name for way in each for name in way.units) for each in ways}
    assert path.units[0].start == 0 and path.units[-1].end == len(local)


@pytest.mark.parametrize("n", [1, 2, 5, 40])
def test_nbest_equals_the_best_of_all_strings(case, n):
    graph, local, truth = case.graph, case.local, case.truth()
    expected = sorted(truth.strings.values(), reverse=True)[:n]
    found = nbest(graph, local, n)
    np.testing.assert_allclose([h.score for h in found], expected, atol=TIGHT)
    assert len({h.words for h in found}) == len(found)
    for hypothesis in found:
        assert hypothesis.score == pytest.approx(truth.strings[hypothesis.words], abs=TIGHT)


def test_the_oracle_catches_a_wrong_arc(case):
    """Mutation twin: transitions a hundredth too likely, and every comparison above must fail."""
    graph, local, truth = case.graph, case.local, case.truth()
    arcs = graph.arcs
    wrong = replace(graph, arcs=arcs._replace(log_prob=arcs.log_prob + 0.01 * (arcs.transition >= 0)))
    assert abs(posteriors(wrong, local).log_likelihood[0] - truth.total) > 1e-3
    assert abs(viterbi_score(wrong, local) - truth.best) > 1e-3
    assert abs(nbest(wrong, local, 1)[0].score - truth.best) > 1e-3
    assert abs(posteriors(graph, local, scale=1.01).occupancies - truth.occupancies[:, graph.states]).max() > 1e-5


def test_batch_equals_one_by_one():
    rng = np.random.default_rng(0)
    hmms = random_hmms(rng)
    graph = align_graph(hmms, ["w0", "w1"])
    lengths = [9, 1, 4, 12]  # the second is too short for the model
    scores = rng.normal(-3, 2, (sum(lengths), len(graph.states)))
    bounds = np.concatenate([[0], np.cumsum(lengths)])
    together = posteriors(graph, scores, bounds)
    apart = [posteriors(graph, scores[a:b]) for a, b in zip(bounds, bounds[1:])]
    np.testing.assert_array_equal(together.log_likelihood, [p.log_likelihood[0] for p in apart])
    np.testing.assert_array_equal(together.occupancies, np.concatenate([p.occupancies for p in apart]))
    np.testing.assert_allclose(together.arc_counts, sum(p.arc_counts for p in apart), atol=1e-13)
    assert together.log_likelihood[1] == -np.inf and not together.occupancies[9].any()


def test_too_short_is_said_and_not_nan():
    hmms = flat_start(whole_words(["a", "b"]), 3, np.zeros(2), np.ones(2))
    graph = align_graph(hmms, ["a", "b"])
    scores = np.zeros((5, len(graph.states)))
    assert posteriors(graph, scores).log_likelihood[0] == -np.inf
    assert viterbi(graph, scores) is None and nbest(graph, scores) == []
    with pytest.raises(MargoError, match="5 frames are too few"):
        align(graph, scores)
    assert align(graph, np.zeros((6, len(graph.states)))).word_names == ("a", "b")


def test_no_frames_at_all():
    hmms = flat_start(whole_words(["a"]), 2, np.zeros(1), np.ones(1))
    graph = loop_graph(hmms)
    assert posteriors(graph, np.zeros((0, 2))).log_likelihood[0] == -np.inf
    assert viterbi(graph, np.zeros((0, 2))) is None


def test_long_and_sharp_does_not_underflow():
    """A scaled linear forward pass would lose the true path here: the greedy one is 2000 nats ahead half-way."""
    hmms = flat_start(whole_words(["a"]), 3, np.zeros(1), np.ones(1))
    graph = align_graph(hmms, ["a"])
    scores = np.full((60, 3), -5.0)
    scores[:30, 0], scores[:30, 1], scores[30:, 0], scores[30:, 1] = 0.0, -70.0, -500.0, 0.0
    found = posteriors(graph, scores)
    assert np.isfinite(found.log_likelihood[0])
    np.testing.assert_allclose(found.occupancies.sum(axis=1), 1, atol=1e-10)


def test_first_arc_wins_a_tie():
    hmms = flat_start(whole_words(["a", "b"]), 2, np.zeros(1), np.ones(1))
    graph = isolated_graph(hmms)
    assert viterbi(graph, np.zeros((5, 4))).word_names == ("a",)


def plain_viterbi(arcs, scores, wins):
    """Score and arcs of the best path, arc by arc; ``wins(a, b)`` says whether a later arc of value a beats b."""
    emitting, nodes = len(arcs.column), len(arcs.arc_start) - 1
    value, back = np.full((len(scores) + 1, nodes), -np.inf), np.full((len(scores) + 1, nodes), -1)
    value[0, arcs.start] = 0
    for row in range(len(scores) + 1):
        for node in range(0 if row else emitting, nodes):
            for arc in range(arcs.arc_start[node], arcs.arc_start[node + 1]):
                score = value[row - (node < emitting), arcs.source[arc]] + arcs.log_prob[arc]
                if score > -np.inf and wins(score, value[row, node]):
                    value[row, node], back[row, node] = score, arc
            if node < emitting:
                value[row, node] += scores[row - 1, arcs.column[node]]
    row, node, path = len(scores), arcs.end, []
    while value[row, node] > -np.inf and (row or node != arcs.start):
        path.append(back[row, node])
        row, node = row - (node < emitting), arcs.source[back[row, node]]
    return value[-1, arcs.end], path[::-1]


@pytest.mark.parametrize("seed", range(6))
def test_the_first_of_equal_arcs_wins_whatever_way_an_arc_is_done(seed):
    """Whole numbers make equals everywhere: staying, stepping, skipping, entering and passing silence over."""
    rng = np.random.default_rng(seed)
    hmms = random_hmms(rng, words=3, silence=seed % 3 != 2, tee=seed % 2 == 1)
    differ = 0
    for graph in (loop_graph(hmms), isolated_graph(hmms), align_graph(hmms, ["w1", "w0", "w1"])):
        arcs = graph.arcs._replace(log_prob=-rng.integers(0, 2, graph.n_arcs).astype(float))
        scores = -rng.integers(0, 2, (14, len(graph.states))).astype(float)
        back = np.empty((len(scores) + 1, graph.n_nodes), np.int32)
        score, path = plain_viterbi(arcs, scores, np.greater)
        assert best_path(arcs, scores, back) == best_score(arcs, scores) == score
        assert trace(arcs, back, arcs.end, True)[0].tolist() == path
        differ += plain_viterbi(arcs, scores, np.greater_equal)[1] != path  # where the last wins it is another
    assert differ


@pytest.mark.parametrize("seed", range(4))
def test_what_a_chain_knows_of_its_length_loses_nothing(seed):
    rng = np.random.default_rng(seed)
    hmms = random_hmms(rng, words=3, silence=seed % 2 == 0, tee=seed == 3)
    graph = align_graph(hmms, ["w2", "w0", "w2", "w1"])
    known = graph.arcs
    zeros = np.zeros_like(known.ahead)
    blind = replace(graph, arcs=known._replace(ahead=zeros, behind=zeros))
    assert known.ahead.any() and known.behind.any()
    losses = 0
    for frames in range(1, 16):
        scores = rng.normal(-3, 2, (frames, len(graph.states)))
        exact, other = posteriors(graph, scores), posteriors(blind, scores)
        for name in ("log_likelihood", "occupancies", "arc_counts"):
            np.testing.assert_array_equal(getattr(exact, name), getattr(other, name))
        assert viterbi_score(graph, scores) == viterbi_score(blind, scores)
        wrong = replace(graph, arcs=known._replace(ahead=known.ahead + 1))  # a frame too late
        losses += posteriors(wrong, scores).log_likelihood[0] != exact.log_likelihood[0]
    assert losses


def test_beam_can_lose_the_path():
    hmms = flat_start(whole_words(["a"]), 3, np.zeros(1), np.ones(1))
    graph = isolated_graph(hmms)
    scores = np.full((12, 3), -1.0)
    scores[:6, 0], scores[:6, 1:] = 0.0, -200.0
    scores[6:, 0], scores[6:, 1:] = -3.0, -200.0
    assert viterbi(graph, scores) is not None
    assert viterbi(graph, scores, beam=10.0) is None
    # A chain knows which states cannot end in time, and the beam does not measure by these.
    assert viterbi(align_graph(hmms, ["a"]), scores, beam=10.0).score == viterbi(graph, scores).score


def test_words_are_timed_without_the_silence_around_them():
    rng = np.random.default_rng(1)
    mean = {"a": -4.0, "b": 4.0, "sil": 0.0}
    start = flat_start(whole_words("ab"), 2, np.zeros(1), np.full(1, 0.1), silence="sil", silence_states=2)
    means = np.concatenate([np.full((unit.n_states, 1), mean[unit.name]) for unit in start.units])
    hmms = start.with_pool(replace(start.pool, means=means))
    spoken = [("sil", 5), ("a", 6), ("b", 4), ("sil", 3), ("b", 7), ("sil", 2)]
    x = np.concatenate([rng.normal(mean[name], 0.1, (n, 1)) for name, n in spoken])
    for graph in (loop_graph(hmms, -5.0), align_graph(hmms, ["a", "b", "b"])):
        path = viterbi(graph, log_likelihoods(scorer(hmms.pool, graph.states), x))
        assert path.word_names == ("a", "b", "b")
        assert [(s.start, s.end) for s in path.words] == [(5, 11), (11, 15), (18, 25)]
        assert [hmms.units[s.index].name for s in path.units] == [name for name, _ in spoken]


def test_nbest_strings_that_differ_in_silence_only_are_one():
    rng = np.random.default_rng(2)
    hmms = random_hmms(rng, words=2)
    graph = loop_graph(hmms)
    found = nbest(graph, rng.normal(-2, 1, (30, len(graph.states))), 20)
    assert len({h.names for h in found}) == len(found) == 20


def test_nbest_scores_equal_forced_alignments_on_longer_speech():
    """Also the pruning bound at work: many frames, many strings, sharp likelihoods."""
    rng = np.random.default_rng(3)
    hmms = random_hmms(rng, words=4, tied=False, mixtures=1, states=3)
    graph = loop_graph(hmms, -2.0)
    scores = 6 * rng.normal(-2, 1, (80, hmms.pool.n_states))
    found = nbest(graph, scores[:, graph.states], 30)
    values = [h.score for h in found]
    assert values == sorted(values, reverse=True)
    for h in found:
        forced = align_graph(hmms, h.names)
        assert h.score == pytest.approx(viterbi_score(forced, scores[:, forced.states]) - 2 * len(h.names), abs=1e-9)
    # Any single-word change of the best string that scores better than the last must be among them.
    best, listed = found[0].names, {h.names for h in found}
    for i in range(len(best)):
        for word in hmms.words:
            other = (*best[:i], word, *best[i + 1 :])
            forced = align_graph(hmms, other)
            if viterbi_score(forced, scores[:, forced.states]) - 2 * len(other) > found[-1].score + 1e-9:
                assert other in listed


def test_columns_are_checked():
    hmms = flat_start(whole_words(["a"]), 2, np.zeros(1), np.ones(1))
    with pytest.raises(ValueError, match=r"expects \[T, 2\]"):
        posteriors(loop_graph(hmms), np.zeros((4, 3)))


def test_hmmlearn_gives_the_same():
    """score, decode and predict_proba of a GMMHMM; a constant exit probability makes its open end ours."""
    hmmlearn = pytest.importorskip("hmmlearn.hmm")
    from margo.gaussian.pool import GaussianPool
    from margo.model.hmm import Unit

    rng = np.random.default_rng(4)
    n, m, d, leave = 4, 3, 5, 0.1
    peer = hmmlearn.GMMHMM(n_components=n, n_mix=m, covariance_type="diag")
    peer.startprob_, peer.transmat_ = rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(n), n)
    peer.weights_ = rng.dirichlet(np.ones(m), n)
    peer.means_, peer.covars_ = rng.normal(0, 2, (n, m, d)), rng.uniform(0.5, 2, (n, m, d))
    peer.n_features = d
    x = rng.normal(0, 2, (50, d))
    a = np.zeros((n + 2, n + 2))
    a[0, 1:-1], a[1:-1, 1:-1], a[1:-1, -1] = peer.startprob_, peer.transmat_ * (1 - leave), leave
    with np.errstate(divide="ignore"):
        log_a = np.log(a)
    pool = GaussianPool(
        peer.means_.reshape(-1, d),
        peer.covars_.reshape(-1, d),
        np.log(peer.weights_.ravel()),
        np.arange(0, n * m + 1, m),
    )
    hmms = HmmSet(pool, (Unit("a", np.arange(n), log_a),), {"a": ("a",)})
    graph = align_graph(hmms, ["a"])
    scores = log_likelihoods(scorer(pool, graph.states, np.float64), x)
    offset = (len(x) - 1) * np.log(1 - leave) + np.log(leave)
    found = posteriors(graph, scores)
    assert found.log_likelihood[0] - offset == pytest.approx(peer.score(x), rel=1e-8)
    np.testing.assert_allclose(found.occupancies, peer.predict_proba(x), atol=1e-8)
    score, states = peer.decode(x)
    path = viterbi(graph, scores)
    assert path.score - offset == pytest.approx(score, rel=1e-8)
    np.testing.assert_array_equal(path.states, states)

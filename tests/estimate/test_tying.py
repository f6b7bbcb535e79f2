"""Units in context score as what they were copied from; trees tie what sounds alike, and part what does not."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from margo.errors import MargoError
from margo.estimate import tying
from margo.estimate.tying import (
    EDGE,
    Leaf,
    TyingOptions,
    best_split,
    context_name,
    context_stats,
    contexts,
    in_context,
    leaf_table,
    log_likelihood,
    phones_of,
    questions,
    tie,
    tied,
)
from margo.gaussian.likelihood import log_likelihoods, scorer
from margo.gaussian.pool import single_gaussians
from margo.model.grammar import recognition_graph
from margo.model.graph import align_graph, loop_graph
from margo.model.hmm import HmmSet, Unit, flat_start, left_to_right
from margo.search.viterbi import viterbi

FLOOR = np.full(2, 1e-3)


def test_names_and_neighbours():
    assert contexts(["b", "iy"]) == [(EDGE, "b", "iy"), ("b", "iy", EDGE)]
    assert [context_name(*each) for each in contexts("abc")] == ["a+b", "a-b+c", "b-c"]
    assert context_name(*contexts(["a"])[0]) == "a"


def phones(seed=0):
    """Four words of two phones, b and d before and behind vowels; the frames of a depend on what is before it."""
    rng = np.random.default_rng(seed)
    lexicon = {"ba": ("b", "a"), "da": ("d", "a"), "ab": ("a", "b"), "do": [(("d", "o"), -0.1), (("d", "a"), -2.0)]}
    hmms = flat_start(lexicon, 1, np.zeros(2), np.ones(2), silence="sil", silence_states=1)
    means = {"b": (4, 0), "a": (0, 0), "d": (-4, 0), "o": (0, 6), "sil": (9, 9)}
    pool = single_gaussians(np.array([means[u.name] for u in hmms.units], float), np.ones((len(hmms.units), 2)))
    hmms = HmmSet(pool, hmms.units, hmms.lexicon, "sil", FLOOR)
    centres = {**means, ("b", "a"): (0, -1.5), ("d", "a"): (0, 1.5), ("#", "a"): (0, -1.4)}
    data = []
    for number, word in enumerate([*lexicon] * 25):
        frames = [rng.normal(means["sil"], 0.3, (3, 2))]
        for left, unit, _ in contexts({"do": ("d", "o")}.get(word, lexicon[word])):
            frames.append(rng.normal(centres.get((left, unit), centres[unit]), 0.3, (6, 2)))
        data.append((f"u{number}", np.concatenate(frames), (word,)))
    return hmms, data


def test_copies_score_as_what_they_were_copied_from():
    hmms, data = phones()
    copies, named = in_context(hmms)
    assert {*named} == {"b+a", "b-a", "d+a", "d-a", "a+b", "a-b", "d+o", "d-o", "sil"} and copies.words == hmms.words
    for make in (lambda h: loop_graph(h, -1.0), lambda h: align_graph(h, ["do", "ab"])):
        before, after = make(hmms), make(copies)
        scores = [viterbi(graph, log_likelihoods(scorer(h.pool, graph.states, np.float64), data[3][1])).score
                  for h, graph in ((hmms, before), (copies, after))]  # fmt: skip
        assert scores[0] == pytest.approx(scores[1], abs=1e-10)
    bad = HmmSet(hmms.pool, (*(Unit(n, [0], left_to_right(1)) for n in ("a", "b", "a-b")),),
                 {"x": ("a", "b"), "y": ("a-b",)})  # fmt: skip
    with pytest.raises(MargoError, match="a-b would be two"):
        in_context(bad)


def test_units_in_context_get_no_other():
    for strings, said in ((None, "already, as a-b[+]a:"), ([("aba",)], "already:")):
        hmms = flat_start({"aba": ("a", "b", "a")}, 1, np.zeros(2), np.ones(2))
        again, _ = in_context(hmms, strings)
        again = again if strings is None else replace(again, units=tuple(replace(unit, name=f"u{n}") for n, unit in
            enumerate(again.units)), lexicon={"aba": tuple(f"u{n}" for n in range(3))})  # fmt: skip
        with pytest.raises(MargoError, match=f"units in context {said} expected a model of phones alone"):
            in_context(again)


def test_trees_part_what_differs_and_tie_what_does_not():
    hmms, data = phones()
    copies, named = in_context(hmms)
    stats = context_stats(copies, data[:50]) + context_stats(copies, data[50:])
    assert stats.moments[:, 0].sum() == sum(len(x) for _, x, _ in data) and stats.dropped == ()
    model, report = tied(copies, named, stats, TyingOptions(leaves=6, least_frames=10, least_gain=10))
    states = {unit.name: unit.states[0] for unit in model.units}
    lexicon = {word: [[states[name] for name in way.units] for way in ways] for word, ways in model.lexicon.items()}
    after_b, after_d, after_edge = lexicon["ba"][0][1], lexicon["da"][0][1], lexicon["ab"][0][0]
    assert after_b == after_edge != after_d  # a sounds alike behind b and at the beginning
    assert lexicon["do"][1][1] == after_d  # of the second pronunciation, too
    assert lexicon["ba"][0][0] == lexicon["ab"][0][1]  # b is the same everywhere: no split gains enough
    assert report["leaves"] == model.pool.n_states == 6 and report["gain"] > 0
    np.testing.assert_allclose(model.pool.means[after_d], (0, 1.5), atol=0.1)


def test_every_split_is_the_best_of_all():
    rng = np.random.default_rng(3)
    sides = [*product("abc", "abc")]
    count = rng.integers(5, 30, 9).astype(float)
    mean, spread = rng.normal(0, 2, (9, 2)), rng.uniform(0.5, 2, (9, 2))
    moments = np.concatenate([count[:, None], count[:, None] * mean, count[:, None] * (spread + mean**2)], axis=1)
    asked = [frozenset("a"), frozenset("b"), frozenset("ab")]
    answers = np.array([[side[place] in names for side in sides] for place in (0, 1) for names in asked])
    gain, question = best_split(Leaf(np.arange(9), answers), moments, FLOOR, 1.0)
    gains = [log_likelihood(moments[a].sum(0), FLOOR) + log_likelihood(moments[~a].sum(0), FLOOR)
             - log_likelihood(moments.sum(0), FLOOR) for a in answers]  # fmt: skip
    assert gain == pytest.approx(max(gains)) and question == int(np.argmax(gains))
    before = -np.inf
    for leaves in range(1, 7):
        options = TyingOptions(leaves=leaves, least_frames=1, least_gain=0)
        rows = [leaf.rows for leaf in tie([Leaf(np.arange(9), answers)], moments, FLOOR, options)]
        assert sorted(np.concatenate(rows)) == [*range(9)]
        total = sum(log_likelihood(moments[r].sum(0), FLOOR) for r in rows)
        assert len(rows) == leaves and total > before
        before = total


def test_a_gaussian_fits_its_frames_as_by_the_density():
    x = np.random.default_rng(0).normal(1, 2, (40, 2))
    moments = np.concatenate([[40], x.sum(0), (x * x).sum(0)])
    expected = (-0.5 * (np.log(2 * np.pi * x.var(0)) + (x - x.mean(0)) ** 2 / x.var(0))).sum()
    assert log_likelihood(moments, FLOOR) == pytest.approx(expected)


def test_questions_join_what_sounds_alike_first():
    means = {"p": (0, 0), "b": (0.1, 0), "s": (5, 5), "z": (5, 5.2)}
    moments = {name: np.concatenate([[100], 100 * np.array(m), 100 * (1 + np.square(m))]) for name, m in means.items()}
    asked = questions(moments, FLOOR)
    assert frozenset("pb") in asked and frozenset("sz") in asked and frozenset([EDGE]) in asked
    assert all(frozenset(name) in asked for name in means) and frozenset("ps") not in asked


def test_questions_can_be_given():
    hmms, data = phones()
    copies, named = in_context(hmms)
    stats = context_stats(copies, data)
    options = TyingOptions(leaves=6, least_frames=10, least_gain=10)
    behind_d = [frozenset("d")]
    model, report = tied(copies, named, stats, options, behind_d)
    states = {unit.name: unit.states[0] for unit in model.units}
    assert report["questions"] == 2 and states["d-a"] != states[model.lexicon["ba"][0].units[1]]  # that, and the edge
    same, other = tied(copies, named, stats, options, [frozenset("b")])
    assert other["leaves"] < 7 and other["gain"] != pytest.approx(tied(copies, named, stats, options, [])[1]["gain"])


def test_rare_units_stay_whole_and_too_few_leaves_are_told():
    hmms, data = phones()
    copies, named = in_context(hmms)
    stats = context_stats(copies, data)
    model, _ = tied(copies, named, stats, TyingOptions(least_frames=200))  # a rare unit stays whole
    assert len({unit.states[0] for unit in model.units if named[unit.name][1] == "o"}) == 1
    quiet = context_stats(copies, [row for row in data if row[2] != ("do",)])
    with pytest.raises(MargoError, match="no frames of o on any best path"):
        tied(copies, named, quiet, TyingOptions())
    with pytest.raises(MargoError, match="--leaves is 3, expected at least 5"):
        tied(copies, named, stats, TyingOptions(leaves=3, least_frames=1))


def sentences(seed=0):
    """Two words each, half of them without a pause between: a sounds higher behind d, whichever word that is in."""
    rng = np.random.default_rng(seed)
    hmms, _ = phones()
    lexicon = {"ba": ("b", "a"), "ab": ("a", "b"), "od": ("o", "d"), "a": ("a",)}
    hmms = HmmSet(hmms.pool, hmms.units, lexicon, "sil", FLOOR)
    means = {unit.name: hmms.pool.means[unit.states[0]] for unit in hmms.units}
    data = []
    for number, (one, other, pause) in enumerate([*product(lexicon, lexicon, (True, False))] * 4):
        row = [*lexicon[one], *(["sil"] if pause else []), *lexicon[other]]
        frames = [rng.normal(means[unit] + (0, 1.5 * (left == "d" and unit == "a")), 0.3, (6, 2))
                  for left, unit in zip([EDGE, *row], row)]  # fmt: skip
        data.append((f"u{number}", np.concatenate(frames), (one, other)))
    return hmms, data


def test_neighbours_in_other_words_count_too():
    hmms, data = sentences()
    copies, named = in_context(hmms, [words for *_, words in data])
    for graph in (lambda h: align_graph(h, ["ab", "od", "a"]), recognition_graph):
        scores = [viterbi(made, log_likelihoods(scorer(h.pool, made.states, np.float64), data[5][1])).score
                  for h, made in ((hmms, graph(hmms)), (copies, graph(copies)))]  # fmt: skip
        assert scores[0] == pytest.approx(scores[1], abs=1e-10)
    stats = context_stats(copies, data)
    model, report = tied(copies, named, stats, TyingOptions(leaves=6, least_frames=10, least_gain=10))
    assert report["leaves"] == 6 and model.silence == "sil" and model.words == hmms.words
    place = {phone: number for number, phone in enumerate([*dict.fromkeys("baod"), EDGE])}

    def state(left, unit, right):
        return model.units[model.crossing[place[left], place[unit], place[right]]].states[0]

    for left, right in product("baod" + EDGE, repeat=2):  # those too that nobody said, as o before and behind a
        assert (state(left, "a", right) == state("d", "a", EDGE)) == (left == "d")
    np.testing.assert_allclose(model.pool.means[state("d", "a", "b")], (0, 1.5), atol=0.1)
    silent = model.units[model.unit_index["sil"]]
    np.testing.assert_allclose(model.pool.means[silent.states[0]], (9, 9), atol=0.1)
    spoken = viterbi(align_graph(model, ["od", "ab"]), np.zeros((4, 6)))  # too short for a pause
    assert [model.units[unit.index].states[0] for unit in spoken.units][2] == state("d", "a", "b")


def test_all_neighbours_get_the_leaf_whose_questions_they_answer(monkeypatch):
    hmms, data = sentences(1)
    copies, named = in_context(hmms, [words for *_, words in data])
    seen = []
    monkeypatch.setattr(tying, "leaf_table", lambda *given: seen.append((given, leaf_table(*given))) or seen[0][1])
    tied(copies, named, context_stats(copies, data), TyingOptions(leaves=12, least_frames=1, least_gain=0))
    ((_, _, leaves, _), table), names = seen[0], phones_of(named, "sil")
    assert len(leaves) > 6 and (table >= 0).all()  # every state of every phone between any neighbours has one
    for number, leaf in enumerate(leaves):
        for left, unit, right in (named[copies.units[row].name] for row in leaf.rows if row < len(copies.units) - 1):
            assert table[names.index(left), names.index(unit), names.index(right), 0] == number

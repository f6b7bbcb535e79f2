"""Automata of rules: the strings of an expression, no others, in the smallest number of states; and their graph."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from margo.errors import MargoError
from margo.model import automaton
from margo.model.automaton import NOTHING, of_rules
from margo.model.grammar import recognition_graph, rules_grammar, string_score, weights_of
from margo.search.nbest import nbest
from margo.search.viterbi import viterbi
from oracles import enumerate_all, log_gaussians, random_hmms

A, B, C = (("word", letter) for letter in "abc")


def strings(expression, most):
    """All strings of an expression of up to ``most`` words, by its definition."""
    kind, *parts = expression
    if kind == "word":
        return {(parts[0],)} if most else set()
    if kind == "any":
        return set().union(*(strings(part, most) for part in parts))
    if kind == "all":
        found = {()}
        for part in parts:
            found = {one + two for one in found for two in strings(part, most - len(one))}
        return found
    once = strings(parts[0], most)
    found = set(once)
    while more := {one + two for one in found for two in once if len(one + two) <= most} - found:
        found |= more
    return found


def random_rules(rng, depth):
    kind = rng.choice(["word", "all", "any", "some", "maybe"]) if depth else "word"
    if kind == "word":
        return ("word", str(rng.choice([*"abc"])))
    if kind == "some":
        return ("some", random_rules(rng, depth - 1))
    parts = [random_rules(rng, depth - 1) for _ in range(rng.integers(1, 4))]
    return ("any", NOTHING, *parts) if kind == "maybe" else (kind, *parts)


def accepted(found, most):
    return {string for size in range(most + 1) for string in product("abc", repeat=size)
            if found.string_score(string) == 0.0}  # fmt: skip


def test_an_automaton_has_the_strings_of_its_rules():
    rng = np.random.default_rng(0)
    for _ in range(60):
        rules = random_rules(rng, 3)
        found = of_rules(rules)
        assert accepted(found, 4) == strings(rules, 4) - {()}
        sources = [(way.source, way.word) for way in found.ways]
        assert len({*sources}) == len(sources)  # no word twice from a state

    with pytest.raises(MargoError, match="no string of words is possible"):
        of_rules(NOTHING)


def test_the_automaton_is_small_and_has_a_bound(monkeypatch):
    assert of_rules(("any", ("all", A, C), ("all", B, C))).states == 3
    assert of_rules(("some", A)).states == 2
    assert of_rules(("any", NOTHING, ("some", A))).states == 2  # a start of its own, which cannot end
    monkeypatch.setattr(automaton, "LARGEST", 5)
    many = ("all", ("any", NOTHING, ("some", ("any", A, B))), A, *[("any", A, B)] * 4)
    with pytest.raises(MargoError, match="more than 5 states"):
        of_rules(many)


def test_the_graph_gives_the_best_path_and_score_of_brute_force():
    rng = np.random.default_rng(1)
    hmms = random_hmms(rng, words=2, states=1, ways=True)
    one, two = (("word", word) for word in hmms.words)
    found = of_rules(("all", ("some", one), ("any", NOTHING, ("all", two, one))))
    hmms = replace(hmms, meta={"grammar": {**rules_grammar(found), "insertion_penalty": -0.7}})
    assert weights_of(hmms) == {"insertion_penalty": -0.7}
    scores = log_gaussians(hmms.pool, rng.normal(0, 1.5, (4, 2)))
    possible = [(0,), (0, 0), (0, 0, 0), (0, 0, 0, 0), (0, 1, 0), (0, 0, 1, 0)]
    truth = enumerate_all(hmms, scores, possible, lambda string: -0.7 * len(string))
    graph = recognition_graph(hmms)
    path = viterbi(graph, scores[:, graph.states])
    assert path.score == pytest.approx(truth.best, abs=1e-10) and tuple(path.states) == truth.best_states
    found = nbest(graph, scores[:, graph.states], 6)
    assert {each.words for each in found} == {*truth.strings}
    assert [each.score for each in found] == pytest.approx(sorted(truth.strings.values(), reverse=True), abs=1e-10)
    assert string_score(hmms, ["w0", "w1", "w0"]) == pytest.approx(-2.1) and string_score(hmms, ["w1"]) == -np.inf

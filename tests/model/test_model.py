"""Sets of units refuse what is wrong with them; topologies and graphs are what they should be."""

from dataclasses import replace

import numpy as np
import pytest

from margo.errors import MargoError
from margo.gaussian.pool import GaussianPool
from margo.model.graph import align_graph, bigram_graph, isolated_graph, loop_graph
from margo.model.hmm import HmmSet, Unit, flat_start, left_to_right, whole_words
from oracles import random_hmms


def pool_of() -> GaussianPool:
    return GaussianPool(np.zeros((3, 2)), np.ones((3, 2)), np.log([0.25, 0.75, 1.0]), [0, 2, 3])


def unit_with(**changes):
    a = np.exp(left_to_right(2))
    for place, value in changes.get("a", {}).items():
        a[place] = value
    with np.errstate(divide="ignore"):
        return Unit("u", changes.get("states", [0, 1]), np.log(a))


@pytest.mark.parametrize(
    ("unit", "said"),
    [
        (unit_with(a={(1, 2): 0.1}), "unit u, row 1: transitions sum to 0.7"),
        (unit_with(a={(1, 0): 0.1}), "enters the entry or leaves the exit"),
        (unit_with(a={(2, 3): 0.0, (2, 2): 1.0}), "its exit cannot be reached"),
        (unit_with(a={(1, 1): np.nan}), "a transition is not a probability"),
        (unit_with(states=[0, 7]), "the pool has 2"),
        (unit_with(states=[0]), "transitions have shape"),
        (Unit("u", [], np.zeros((2, 2))), "no emitting state"),
    ],
)
def test_a_bad_unit_is_refused(unit, said):
    with pytest.raises(MargoError, match=said):
        HmmSet(pool_of(), (unit,), {"w": ("u",)})


def test_a_bad_set_is_refused_with_all_faults():
    with pytest.raises(MargoError) as caught:
        HmmSet(pool_of(), (unit_with(), unit_with()), {"w": ("v",), "e": ()}, "sil", np.array([-1.0, 1.0]))
    for said in ("unit u appears twice", "word w: no unit named v", "word e: no units", "no unit named sil", "floor"):
        assert said in str(caught.value)


def test_topologies():
    a = np.exp(left_to_right(3, stay=0.5, skip=0.2))
    np.testing.assert_allclose(a[1], [0, 0.5, 0.3, 0.2, 0])
    np.testing.assert_allclose(a[2], [0, 0, 0.5, 0.3, 0.2])
    np.testing.assert_allclose(a[3], [0, 0, 0, 0.5, 0.5])
    with pytest.raises(MargoError, match="topology"):
        left_to_right(3, stay=0.9, skip=0.2)
    hmms = flat_start({"no": ("n", "ow"), "on": ("ow", "n")}, {"n": 2, "ow": 4}, np.zeros(2), np.ones(2), silence="sil")
    assert [unit.n_states for unit in hmms.units] == [2, 4, 3] and hmms.pool.n_states == 9
    assert align_graph(hmms, ["no"]).n_emitting == 6 + 2 * 3


def test_transition_vector_round_trip():
    hmms = random_hmms(np.random.default_rng(0))
    again = hmms.with_transitions(hmms.log_transitions.copy())
    for one, other in zip(hmms.units, again.units):
        np.testing.assert_array_equal(one.log_transitions, other.log_transitions)


def test_places_are_named_by_unit():
    hmms = replace(flat_start(whole_words("ab"), 1, np.zeros(2), np.ones(2)), pool=pool_of())
    assert hmms.place(1) == "unit a, state 1, component 2"
    assert hmms.place(2) == "unit b, state 1, component 1"


def test_words_are_checked():
    hmms = flat_start(whole_words("ab"), 1, np.zeros(2), np.ones(2))
    for words, said in ((["a", "z", "y"], "not in the model: y z"), ([], "empty transcript")):
        with pytest.raises(MargoError, match=said):
            align_graph(hmms, words)


def test_a_loop_without_frames_is_refused():
    with np.errstate(divide="ignore"):
        tee = np.log([[0, 0.5, 0.5], [0, 0.5, 0.5], [0, 0, 0]])
    hmms = HmmSet(pool_of(), (Unit("u", [0], tee),), {"w": ("u",)})
    align_graph(hmms, ["w"])
    with pytest.raises(MargoError, match="without a frame"):
        loop_graph(hmms)


def test_bigrams_are_checked():
    hmms = flat_start(whole_words("ab"), 1, np.zeros(2), np.ones(2))
    with pytest.raises(MargoError, match=r"\(3, 3\)"):
        bigram_graph(hmms, np.zeros((2, 2)))
    with pytest.raises(MargoError, match="NaN"):
        bigram_graph(hmms, np.full((3, 3), np.nan))


@pytest.mark.parametrize("compile_", [isolated_graph, loop_graph])
def test_graph_numbering(compile_):
    graph = compile_(random_hmms(np.random.default_rng(1), words=3))
    null = (graph.source >= graph.n_emitting) & (graph.destination >= graph.n_emitting)
    assert (graph.source[null] < graph.destination[null]).all()
    assert (np.diff(graph.destination) >= 0).all()
    np.testing.assert_array_equal(np.sort(graph.out_arc), np.arange(graph.n_arcs))
    assert graph.arc_start[graph.start] == graph.arc_start[graph.start + 1]
    used = graph.transition[graph.transition >= 0]
    assert graph.log_prob[graph.transition >= 0] == pytest.approx(
        random_hmms(np.random.default_rng(1), words=3).log_transitions[used]
    )

"""Words against other sounds."""

import numpy as np
import pytest

from margo.model.graph import isolated_graph
from margo.model.hmm import flat_start, whole_words
from margo.search.held import BELIEF, LEAST, STRANGER, evidence, fitted, unrest, word_odds
from margo.search.viterbi import Path, Segment, viterbi


@pytest.fixture
def graph():
    return isolated_graph(flat_start(whole_words(["a"]), 2, np.zeros(1), np.ones(1), stay=0.6))


@pytest.mark.parametrize("dwell", [1, 2, 79, 80, 1000])
def test_without_calibration_the_longest_dwell_decides(graph, dwell):
    """Two states that are told apart by their frames; the second lasts ``dwell``; a state is left at 0.4 a frame."""
    scores = np.zeros((3 + dwell, 2))
    scores[:3, 1] = scores[3:, 0] = -1e4
    seen = evidence(graph, scores, viterbi(graph, scores), np.zeros((len(scores), 1)), np.zeros(2))
    (odds,) = word_odds(seen, BELIEF)
    longest = max(3, dwell)
    expected = max((longest - 1) * np.log(0.6), LEAST[0])
    assert odds == pytest.approx(1 / (1 + np.exp(-40 - expected)), rel=1e-9)
    assert (odds > 0.5) == (longest < 80)  # 79 * log 0.6 = -40.4


def test_evidence_is_what_it_says(graph):
    """By hand: 1 frame in the first state and 3 in the second; the other state fits the second's frames better."""
    scores = np.array([[0.0, -5.0], [-1.0, -2.0], [-1.0, -4.0], [-1.0, -1.0]])
    path = viterbi(graph, scores)
    assert path.nodes.tolist() in ([0, 1, 1, 1], [0, 0, 0, 1])
    given = Path(0.0, np.array([0, 1, 1, 1]), np.array([0, 1, 1, 1]), (Segment(0, 0, 4),), (), ("a",))
    x, usual = np.array([[0.0], [1.0], [0.0], [1.0]]), np.array([1.0, -0.5])
    ((dwell, rest, fit, flow, kind),) = evidence(graph, scores, given, x, usual)
    assert dwell == pytest.approx(2 * np.log(0.6)) and rest == pytest.approx(np.log(0.25))
    assert fit == pytest.approx((0.0 + np.mean([-1.0, -3.0, 0.0])) / 2)  # a state counts once, however long it lasts
    assert flow == LEAST[3] > np.log(0.6 / 4)  # steps of 1, a variance of 1/4; to and fro is worse than noise
    assert kind == pytest.approx((0.0 - 1.0 + np.mean([-2.0, -4.0, -1.0]) + 0.5) / 2)
    assert evidence(graph, scores, given, x, usual - 9)[0, 4] == 0  # likelier than usual is not more of a word
    empty = Path(0.0, given.nodes, given.states, (Segment(0, 2, 2),), (), ("a",))
    assert (evidence(graph, scores, empty, np.zeros((4, 1)), usual) == LEAST).all()


def test_noise_leaps_and_speech_flows(graph):
    """2 of independent frames, whatever their size and place; little of slow ones; neither of a frame alone."""
    rng = np.random.default_rng(0)
    noise, slow = rng.normal(size=(2000, 3)), np.sin(np.arange(200) / 20)[:, None]
    assert unrest(noise) == pytest.approx(2, abs=0.1) and unrest(slow) < 0.01
    assert unrest(7 + 3 * noise) == pytest.approx(unrest(noise))
    assert unrest(noise[:1]) == unrest(np.ones((5, 2))) < 0.6
    path = Path(0.0, np.repeat([0, 1], 4), np.repeat([0, 1], 4), (Segment(0, 0, 8),), (), ("a",))
    flows = [evidence(graph, np.zeros((8, 2)), path, x, np.zeros(2))[0, 3] for x in (slow[:8], noise[:8])]
    assert flows[0] == 0 and flows[1] < -0.5


def test_evidence_without_a_factor_counts_nothing():
    """Models that were calibrated when there was less evidence are believed as they were."""
    seen = np.array([[-3.0, -0.4, -2.0, -1.0], [-9.0, -2.0, -7.0, 0.0]])
    assert np.array_equal(word_odds(seen, (6.0, 0.4, 0.5, 0.4)), word_odds(seen, (6.0, 0.4, 0.5, 0.4, 0.0)))


def test_the_belief_is_the_likeliest_and_never_turns_evidence_round():
    rng = np.random.default_rng(0)
    words = np.minimum(rng.normal([-3, -0.4, -2], [2, 0.2, 1.5], (300, 3)), 0)
    both = np.concatenate([words, STRANGER * words])
    sounds = np.minimum(rng.normal([-2, -2.0, -7], [9, 0.8, 3.0], (40, 3)), 0)
    belief = fitted(words, sounds)
    assert (np.array(belief[1:]) >= 0).all()
    right, wrong = word_odds(words, belief), word_odds(sounds, belief)
    assert (right > 0.5).mean() > 0.98 and (wrong < 0.5).mean() > 0.8

    def cost(belief):
        gone = 0.85 * np.log(word_odds(both, belief)).mean() + 0.15 * np.log(1 - word_odds(sounds, belief)).mean()
        return -gone + 1e-4 * np.square(belief[1:]).sum()

    for place in range(4):
        for step in (-0.05, 0.05):
            moved = np.array(belief) + step * (np.arange(4) == place)
            if (moved[1:] >= 0).all():
                assert cost(moved) >= cost(np.array(belief)) - 1e-7
    assert fitted(sounds, words)[1:] == pytest.approx([0, 0, 0], abs=0.2)  # what would speak against itself is not used


def test_words_of_a_stranger_are_heard_though_dev_has_one_speaker(monkeypatch):
    """Few words and noises with a gap between: where the boundary lies in it decides of all others."""
    rng = np.random.default_rng(1)
    words = rng.uniform(-1, 0, (50, 5)) * [6, 0.6, 10, 0.05, 30]
    sounds = np.minimum(rng.normal([-19, -1.8, -16, -0.95, -18], [8, 0.8, 4, 0.1, 8], (100, 5)), 0)
    strange = np.array([[-9.6, -0.4, -15.3, 0.0, -24.0], [-5.5, -0.5, -14.1, 0.0, -21.0]])
    belief = fitted(words, sounds)
    assert word_odds(strange, belief).min() > 0.5 > word_odds(sounds, belief).max()
    monkeypatch.setattr("margo.search.held.STRANGER", 1.0)
    assert word_odds(strange, fitted(words, sounds)).min() < 0.01

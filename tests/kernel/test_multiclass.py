"""Votes, ties, codes."""

import itertools

import numpy as np
import pytest

from margo.errors import MargoError
from margo.kernel.multiclass import decode, output_codes, pairs, vote


def decisions_of(orders: list[list[int]], n_classes: int) -> np.ndarray:
    """Pairwise decisions of samples that prefer the classes in the order given."""
    return np.array([[1.0 if order.index(a) < order.index(b) else -1.0 for a, b in pairs(n_classes)]
                     for order in orders])  # fmt: skip


def test_a_clear_order_wins_whatever_the_likelihoods_say():
    orders = [list(order) for order in itertools.permutations(range(4))]
    made = vote(decisions_of(orders, 4), np.random.default_rng(0).normal(size=(24, 4)))
    assert made.tolist() == [order[0] for order in orders]


def test_two_tied_classes_are_settled_by_their_own_machine():
    # 0 beats 1 and 3, 1 beats 2 and 3, 2 beats 0; 3 beats 2: votes 2 2 1 1, and 0 against 1 goes to 0
    decided = {(0, 1): 1, (0, 2): -1, (0, 3): 1, (1, 2): 1, (1, 3): 1, (2, 3): -1}
    row = np.array([[decided[pair] for pair in pairs(4)]], float)
    assert vote(row, np.array([[-9.0, 5.0, 9.0, 0.0]])).tolist() == [0]
    decided.update({(0, 1): -1, (0, 2): 1, (1, 2): -1})  # now 0 beats 2, 3; 1 beats 0, 3; 2 beats 1
    row = np.array([[decided[pair] for pair in pairs(4)]], float)
    assert vote(row, np.array([[9.0, -5.0, 0.0, 0.0]])).tolist() == [1]


def test_three_tied_classes_go_to_the_likelihoods_among_them():
    row = np.array([[1.0, -1.0, 1.0]])  # 0 beats 1, 2 beats 0, 1 beats 2
    for best in range(3):
        assert vote(row, np.eye(3)[[best]]).tolist() == [best]
    five = {(a, b): 1.0 for a, b in pairs(5)}
    five[0, 2] = -1.0  # 0, 1, 2 in a circle above 3 and 4
    row = np.array([[five[pair] for pair in pairs(5)]])
    assert vote(row, np.array([[0.0, 1.0, 2.0, 9.0, 9.0]])).tolist() == [2]


def test_negative_voting_ranks_alike():
    rng = np.random.default_rng(1)
    decisions = rng.normal(size=(50, 10))
    losses = np.zeros((50, 5), int)
    for column, (a, b) in enumerate(pairs(5)):
        losses[:, a] += decisions[:, column] <= 0
        losses[:, b] += decisions[:, column] > 0
    single = (losses == losses.min(1, keepdims=True)).sum(1) == 1
    assert single.any()
    made = vote(decisions, rng.normal(size=(50, 5)))
    assert (made[single] == losses[single].argmin(1)).all()


def test_codes_are_valid_and_correct_errors():
    rng = np.random.default_rng(2)
    code = output_codes(6, 15, rng)
    assert set(np.unique(code)) == {-1, 1} and code.shape == (6, 15)
    assert not (np.abs(code.sum(0)) == 6).any(), "a constant bit asks nothing"
    questions = {tuple(column * column[0]) for column in code.T}
    assert len(questions) == 15
    distance = min((code[a] != code[b]).sum() for a, b in pairs(6))
    mendable = (distance - 1) // 2
    assert mendable >= 2
    worst = np.full((6, 6), -10.0)
    for c in range(6):
        for flipped in itertools.combinations(range(15), mendable):
            heard = code[[c]].astype(float)
            heard[0, list(flipped)] *= -1
            assert decode(heard, code, worst[[c]]).tolist() == [c]
    with pytest.raises(MargoError, match="3 classes have 1 to 3"):
        output_codes(3, 4, rng)


def test_code_ties_go_to_the_likelihoods():
    code = np.array([[-1, -1], [1, 1], [-1, 1]])
    assert decode(np.array([[1.0, -1.0]]), code, np.array([[1.0, 2.0, 9.0]])).tolist() == [1]

"""From two-class machines to many classes: votes of pairs, error-correcting codes ([L04] 3)."""

import itertools

import numpy as np

from margo.errors import MargoError


def pairs(n_classes: int) -> list[tuple[int, int]]:
    """All pairs a < b, in the order of every array of pairwise decisions."""
    return list(itertools.combinations(range(n_classes), 2))


def vote(decisions: np.ndarray, log_lik: np.ndarray) -> np.ndarray:
    """Class of every sample by majority of the pairwise decisions [N, C(C-1)/2], positive for the pair's first class.

    Two tied classes are settled by their own machine, more by the likelihoods [N, C] of the ML models ([L04] 6.2).
    Votes against the loser (negative voting) rank the classes alike, since every class stands in C - 1 pairs.
    """
    number = {pair: column for column, pair in enumerate(pairs(log_lik.shape[1]))}
    votes = np.zeros(log_lik.shape, int)
    for (a, b), column in number.items():
        won = decisions[:, column] > 0
        votes[:, a] += won
        votes[:, b] += ~won
    chosen = votes.argmax(1)
    top = votes == votes.max(1, keepdims=True)
    for i in np.flatnonzero(top.sum(1) > 1):
        tied = np.flatnonzero(top[i])
        if len(tied) == 2:
            chosen[i] = tied[0] if decisions[i, number[tuple(tied.tolist())]] > 0 else tied[1]
        else:
            chosen[i] = tied[log_lik[i, tied].argmax()]
    return chosen


def output_codes(n_classes: int, n_bits: int, rng: np.random.Generator, tries: int = 1000) -> np.ndarray:
    """Code words [C, B] of -1 and +1: the best of ``tries`` random codes by its smallest distance between two words.

    No bit is constant, and no two bits ask the same question (a bit and its complement do).
    """
    most = 2 ** (n_classes - 1) - 1
    if not 1 <= n_bits <= most:
        raise MargoError(f"{n_bits} bits: {n_classes} classes have 1 to {most} different questions")
    best, best_distance = None, -1
    for _ in range(tries):
        # a question is a non-trivial subset with the first class outside: numbers 1 .. most
        questions = rng.choice(most, n_bits, replace=False) + 1
        bits = (questions[None, :] >> np.arange(n_classes - 1)[:, None]) & 1
        code = np.vstack([-np.ones((1, n_bits), int), 2 * bits - 1])
        distance = min((code[a] != code[b]).sum() for a, b in pairs(n_classes))
        if distance > best_distance:
            best, best_distance = code, distance
    return best


def decode(decisions: np.ndarray, code: np.ndarray, log_lik: np.ndarray) -> np.ndarray:
    """Class whose word in ``code`` [C, B] is nearest to the signs of ``decisions`` [N, B] in Hamming distance.

    Ties go to the likelihoods [N, C] of the ML models.
    """
    signs = np.where(decisions > 0, 1, -1)
    distance = (signs[:, None, :] != code[None]).sum(2)
    nearest = distance == distance.min(1, keepdims=True)
    return np.where(nearest, log_lik, -np.inf).argmax(1)

"""Statistics of an utterance that is too long to be done at once: some words at a time, with others around them.

The best path says at which frame each word begins (where all Gaussians are still the same it cannot: then they are
taken to be spread evenly). A piece is some words, the frames between its ends, and as context the words next to them;
what counts are the posteriors of its own words. How the path goes beyond the context matters so little that statistics
are those of the whole to many digits. The log-likelihood is that of all pieces less that of what neighbours share.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from margo.errors import MargoError
from margo.estimate.stats import Stats, add_gaussians
from margo.gaussian.likelihood import Scorer, evaluate, log_likelihoods
from margo.model.graph import Graph, align_graph, string_chain
from margo.model.hmm import HmmSet
from margo.search.forward_backward import posteriors
from margo.search.lengths import CELLS
from margo.search.strings import most_nodes
from margo.search.viterbi import Path, viterbi

NO_PATH = "{} frames: no path through the transcript's model fits"
NO_MEMORY = "{} frames need more memory than there is"
PIECE = 1 << 21  # nodes times frames that a piece has at most: few words take longer for their context, many for all
CONTEXT = 8  # words to either side, or half as many, and so on, where they are long


@dataclass(frozen=True)
class Piece:
    """Words ``own[0] .. own[1] - 1`` that count, within those that are searched; places among the utterance's words."""

    own: tuple[int, int]
    words: tuple[int, int]


def is_long(nodes: int, frames: int) -> bool:
    """Whether forward-backward over the whole would take too much memory."""
    return nodes * frames > CELLS


def chain_nodes(hmms: HmmSet, words) -> int:
    """Nodes of the words' model, at most."""
    return most_nodes(hmms.unit_arcs, np.array([hmms.word_index[word] for word in words]), np.array([0, len(words)]))


def long_stats(
    hmms: HmmSet, graph: Graph, compiled: Scorer, x: np.ndarray, words, scale: float, prune: float
) -> Stats:  # fmt: skip
    """What Baum-Welch counts in frames ``x`` [T, D] of ``words``; refuses frames that no path fits.

    ``graph`` is that of the transcript, ``compiled`` its states.
    """
    begins = word_begins(hmms, graph, compiled, x, words, scale)
    stats, counted = Stats.zeros(hmms), 0
    for piece in pieces(begins, np.bincount(owners_of(hmms, words)) + 2, PIECE):
        low, high = piece.words
        evaluation = evaluate(compiled, x[begins[low] : begins[high]])
        own = posteriors_of(hmms, graph.states, words, begins, piece, counted, evaluation.log_likelihoods, scale)
        add_gaussians(stats, compiled, evaluation, own.occupancies, prune)
        stats.transitions += own.transitions
        stats.objective += own.log_likelihood
        counted = high
    stats.frames, stats.utterances = len(x), 1
    return stats


def long_posteriors(
    hmms: HmmSet, states: np.ndarray, scores: np.ndarray, words, begins: np.ndarray, scale: float, out: np.ndarray
) -> tuple[float, np.ndarray]:  # fmt: skip
    """``(log-likelihood, transitions [P])`` of frames whose log-likelihoods under pool ``states`` [S'] are there as
    ``scores`` [T, S']; occupancies go into ``out`` [T, S'], which comes as zeros."""
    total, transitions, counted = 0.0, np.zeros(len(hmms.log_transitions)), 0
    for piece in pieces(begins, np.bincount(owners_of(hmms, words)) + 2, PIECE):
        place = slice(begins[piece.words[0]], begins[piece.words[1]])
        own = posteriors_of(hmms, states, words, begins, piece, counted, scores[place], scale)
        out[place] += own.occupancies
        transitions += own.transitions
        total += own.log_likelihood
        counted = piece.words[1]
    return total, transitions


class Own(NamedTuple):
    """What the words that count in a piece of T frames leave."""

    occupancies: np.ndarray  # [T, S']
    transitions: np.ndarray  # [P] expected counts
    log_likelihood: float  # of the piece, less that of what it shares with the pieces before


def posteriors_of(
    hmms: HmmSet, states: np.ndarray, words, begins: np.ndarray, piece: Piece, counted: int, scores: np.ndarray,
    scale: float,
) -> Own:  # fmt: skip
    """Forward-backward over a piece; ``counted``: the first word that no piece before has had, in its context or else;
    ``scores`` [T, S'] of its frames under pool ``states``."""
    low, high = piece.words
    part = align_graph(hmms, words[low:high], states)
    owner = owners_of(hmms, words[low:high]) + low
    mine = (owner >= piece.own[0]) & (owner < piece.own[1])
    labels = np.where(mine, part.arcs.column, -1)
    found = posteriors(part, scores, scale=scale, labels=labels, n_labels=len(states))
    arcs = part.arcs
    node = np.where(arcs.destination < len(mine), arcs.destination, arcs.source)
    of_mine = (node < len(mine)) & mine[np.minimum(node, len(mine) - 1)]
    transitions = part.transition_counts(found.arc_counts * of_mine, len(hmms.log_transitions))
    total = float(found.log_likelihood[0])
    if low < counted:  # what the piece before has counted too
        shared = align_graph(hmms, words[low:counted], states)
        total -= float(posteriors(shared, scores[: begins[counted] - begins[low]], scale=scale).log_likelihood[0])
    return Own(found.occupancies, transitions, total)


def word_begins(hmms: HmmSet, graph: Graph, compiled: Scorer, x: np.ndarray, words, scale: float) -> np.ndarray:
    """Frame [W + 1] at which each word begins, the first one at 0, and the last one's end."""
    if (hmms.pool.means == hmms.pool.means[0]).all():
        return np.linspace(0, len(x), len(words) + 1).round().astype(np.int64)
    scores = log_likelihoods(compiled, x)
    scores *= scale
    path = viterbi(graph, scores)
    if path is None:
        raise MargoError(NO_PATH.format(len(x)))
    return begins_of(path)


def begins_of(path: Path) -> np.ndarray:
    """Frame [W + 1] at which each word of a path begins, the first one at 0, and the last one's end."""
    return np.array([0, *(word.start for word in path.words[1:]), len(path.nodes)])


def owners_of(hmms: HmmSet, words) -> np.ndarray:
    """Which word (its place) each emitting node of the words' chain belongs to; a pause belongs to the word after it,
    the last one to the last word."""
    table = hmms.unit_arcs
    links, _, _ = string_chain(table, np.array([hmms.word_index[word] for word in words]))
    units, *_, places = links[links[:, 0] >= 0].T
    return np.repeat(places, table.state_start[units + 1] - table.state_start[units])


def pieces(begins: np.ndarray, nodes: np.ndarray, cells: int) -> Iterator[Piece]:
    """Pieces that have at most ``cells`` nodes times frames, with as much context as they can have."""
    words, ahead = len(nodes), np.concatenate([[0], np.cumsum(nodes)])

    def fits(first, last, context):
        low, high = max(0, first - context), min(words, last + context)
        return (ahead[high] - ahead[low]) * (begins[high] - begins[low]) <= cells

    first = 0
    while first < words:
        context = CONTEXT
        while context and not fits(first, first + 1, context):
            context //= 2
        last = first + 1
        while last < words and fits(first, last + 1, context):
            last += 1
        yield Piece((first, last), (max(0, first - context), min(words, last + context)))
        first = last

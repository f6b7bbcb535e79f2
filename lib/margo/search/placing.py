"""When the units of an alignment begin: mean and deviation of every boundary's posterior, over all paths."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from margo.model.graph import align_graph
from margo.model.hmm import HmmSet
from margo.search.confidence import all_occupancies
from margo.search.forward_backward import checked
from margo.search.viterbi import Segment

SPAN, AROUND = 64, 16  # units that are done at a time where there are more, and others around them


def units_alone(hmms: HmmSet) -> HmmSet:
    """The model with each unit for a word, and no silence but where it is asked for: chains of units are its words."""
    return replace(hmms, lexicon={unit.name: (unit.name,) for unit in hmms.units}, silence=None, crossing=None)


def unit_starts(
    alone: HmmSet, units: Sequence[Segment], log_likelihoods: np.ndarray, states: np.ndarray, scale: float
) -> tuple[np.ndarray, np.ndarray]:
    """``(means, deviations)`` [U], in frames, of when each of the ``units`` of a path begins; 0 of the first.

    All ways to share out the frames among these units count, each as likely as the model has it with log-likelihoods
    [T, S'] (columns: ``states``) scaled: frames are less independent than it takes them for. ``alone`` is the model as
    :func:`units_alone` makes it. Many units are done some at a time, the outer ends of those around them held where the
    path has them: what lies a dozen units away decides nothing.
    """
    means, deviations = np.zeros(len(units)), np.zeros(len(units))
    for first in range(0, len(units), SPAN):
        low, high = max(0, first - AROUND), min(len(units), first + SPAN + AROUND)
        start, own = units[low].start, slice(first - low, min(first + SPAN, len(units)) - low)
        frames = log_likelihoods[start : units[high - 1].end]
        mean, deviation = _chain_starts(alone, [unit.index for unit in units[low:high]], frames, states, scale)
        means[first : first + SPAN], deviations[first : first + SPAN] = start + mean[own], deviation[own]
    return means, deviations


def _chain_starts(alone: HmmSet, indices: list[int], log_likelihoods: np.ndarray, states: np.ndarray, scale: float):
    """Of a chain of units that takes all of the frames; a unit has begun where the frame is in it or one behind it."""
    graph = align_graph(alone, [alone.units[index].name for index in indices], states)
    places = np.repeat(np.arange(len(indices)), [alone.units[index].n_states for index in indices])
    scores = checked(graph, log_likelihoods)
    occupancies = all_occupancies(graph, scores, places, len(indices), scale)
    begun = np.cumsum(occupancies[:, ::-1], axis=1)[:, ::-1]  # [T, U]
    begun[:, 0] = 1.0
    begins = np.maximum(np.diff(begun, axis=0, prepend=0.0, append=1.0), 0.0)  # behind the last frame: none is in it
    frames = np.arange(len(begins), dtype=np.float64)
    means = frames @ begins
    return means, np.sqrt(((frames[:, None] - means) ** 2 * begins).sum(axis=0))

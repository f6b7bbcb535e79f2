"""Start of training from hand-labelled segments: even shares, then segmental k-means within each segment.

A segment is ``(unit, first, last)``: frames ``first .. last - 1`` are the named unit's. The statistics are those of
Baum-Welch with every frame wholly in one state, so that :func:`margo.estimate.ml.update` makes the model of them.
"""

from collections.abc import Iterable

import numpy as np

from margo.errors import MargoError
from margo.estimate.stats import Stats
from margo.gaussian.likelihood import log_likelihoods, scorer
from margo.model.graph import align_graph
from margo.model.hmm import HmmSet
from margo.search.viterbi import viterbi


def frame_segments(
    labels: Iterable[tuple[float, float, str]], frames: int, shift: float, window: float
) -> list[tuple[str, int, int]]:
    """Segments in frames from labels ``(start, end, unit)`` in seconds; a frame belongs where its window's centre lies.

    A label too short to have a frame of its own is left out.
    """
    segments = []
    for start, end, unit in labels:
        first, last = (int(np.ceil((time - window / 2) / shift - 1e-9)) for time in (start, end))
        first, last = max(first, 0), min(last, frames)
        if last > first:
            segments.append((unit, first, last))
    return segments


def accumulate_segments(hmms: HmmSet, utterances: Iterable[tuple], even: bool) -> Stats:
    """Statistics of utterances ``(x [T, D], segments)`` for a model of one Gaussian a state whose words are units.

    A segment's frames are shared out over its unit's states in equal parts (``even``), or by the best path through the
    unit. Segments too short for their unit are left out; ``frames`` counts what was used, and ``objective`` sums the
    paths' scores, which rise from pass to pass (it stays 0 for even shares).
    """
    _check(hmms)
    compiled = scorer(hmms.pool)
    graphs = {name: align_graph(hmms, [name]) for name in hmms.words}
    stats = Stats.zeros(hmms)
    for x, segments in utterances:
        scores = None if even else log_likelihoods(compiled, x)
        for name, first, last in segments:
            index = hmms.unit_index[name]
            unit = hmms.units[index]
            if even:
                positions = _even(last - first, unit.n_states)
            else:
                path = viterbi(graphs[name], scores[first:last, graphs[name].states])
                positions = path and path.nodes  # the emitting nodes of this graph are the unit's states in their order
                stats.objective += path.score if path else 0.0
            if positions is None:
                continue
            states = unit.states[positions]
            y = np.asarray(x[first:last], np.float64) - stats.centre
            np.add.at(stats.occupancy, states, 1.0)
            np.add.at(stats.first, states, y)
            np.add.at(stats.second, states, y * y)
            steps = np.concatenate([[0], positions + 1, [unit.n_states + 1]])
            followed = hmms.transition_offsets[index] + steps[:-1] * (unit.n_states + 2) + steps[1:]
            np.add.at(stats.transitions, followed, 1.0)
            stats.frames += len(y)
        stats.utterances += 1
    return stats


def _even(frames: int, states: int) -> np.ndarray | None:
    """State of each frame when ``frames`` are shared out in equal parts; None where some state would get none."""
    return np.arange(frames) * states // frames if frames >= states else None


def _check(hmms: HmmSet) -> None:
    if hmms.pool.n_gaussians != hmms.pool.n_states:
        raise MargoError("a start from segments needs a model of one Gaussian a state")
    compound = [word for word, names in hmms.lexicon.items() if names != (((word,), 0.0),)]
    if compound:
        raise MargoError(f"a start from segments needs words that are units of their own: {' '.join(compound[:5])}")

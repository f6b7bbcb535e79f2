"""Maximum mutual information, exactly: log posterior probability of what was said among all that can be said.

    F = sum_i log p(X_i, W_i) - log sum_W p(X_i, W)     p(X, W) = P(W)^kappa sum_paths prod a prod p(x_t | s_t)^kappa

P(W) is all that the grammar adds in recognition (a bigram's scale and insertion penalties are made for log-likelihoods
that are not scaled, so that kappa scales them as well).

The numerator runs over the string's own model, the denominator over the whole recognition graph; no lattices. Boosted
MMI multiplies every path of the denominator by exp(-boost A), A its accuracy: with l the number of frames of the
reference word w at frame t in the best alignment, a path earns 1/l at frame t if its state there is one of w's, so that
each word of the reference found in its place counts 1; silence earns nothing.

The update is extended Baum-Welch (:mod:`margo.estimate.ebw`) with D = growth * (occupancy in the denominator), and
I-smoothing: tau frames of each Gaussian's numerator mean and variance added to its numerator.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from margo.estimate.ebw_hmm import ebw_step
from margo.estimate.ml import unusable
from margo.estimate.options import MmiOptions
from margo.estimate.paths import misfit
from margo.estimate.signed import gradients
from margo.estimate.stats import Stats, add_contested, add_gaussians, add_moments
from margo.model.grammar import recognition_graph, string_score, weighed_grammar
from margo.model.graph import Graph, align_graph
from margo.model.hmm import HmmSet
from margo.model.likelihood import evaluate, flatten, scorer
from margo.model.room import Room
from margo.search.forward_backward import posteriors
from margo.search.scaled import scaled_posteriors
from margo.search.viterbi import best_scores, viterbi

BATCH = 1024  # frames that go through the products together
ROUNDING = 1e-12  # part of a path's score by which it may differ when summed in another order


@dataclass(eq=False)
class MmiStats:
    """Additive. ``net``: Gaussian statistics of the numerator less those of the denominator, times kappa (its
    log_likelihood is the objective); ``against`` [K]: those occupancies of the denominator alone; transitions_for and
    transitions_against [P]: expected counts; ``numerator``: its own statistics, kept only for I-smoothing;
    ``errors``: utterances recognised wrongly."""

    net: Stats
    against: np.ndarray
    transitions_for: np.ndarray
    transitions_against: np.ndarray
    numerator: Stats | None
    errors: int

    def __add__(self, other: "MmiStats") -> "MmiStats":
        return MmiStats(
            self.net + other.net,
            self.against + other.against,
            self.transitions_for + other.transitions_for,
            self.transitions_against + other.transitions_against,
            None if self.numerator is None else self.numerator + other.numerator,
            self.errors + other.errors,
        )


def accumulate(hmms: HmmSet, utterances, options: MmiOptions = MmiOptions()) -> MmiStats:  # noqa: B008
    """Statistics of ``(name, x[T, D], words)`` utterances."""
    space = _compiled(hmms, options)
    space.begin()
    stats = MmiStats(
        Stats.zeros(hmms),
        np.zeros(hmms.pool.n_gaussians),
        np.zeros(len(hmms.log_transitions)),
        np.zeros(len(hmms.log_transitions)),
        Stats.zeros(hmms) if options.tau else None,
        0,
    )
    groups: dict[tuple, list] = {}  # utterances with the same words are done together
    dropped = []
    for name, x, words in utterances:
        reason = unusable(hmms, x, words)
        if reason:
            dropped.append((name, reason))
        else:
            groups.setdefault(tuple(words), []).append((name, x))
    batch, frames = [], 0
    for words, members in groups.items():
        for name, x in members:
            if batch and frames + len(x) > BATCH:
                dropped += space.add(stats, batch)
                batch, frames = [], 0
            batch.append((name, x, words))
            frames += len(x)
    dropped += space.add(stats, batch) if batch else []
    space.finish(stats)
    stats.net.dropped = tuple(dropped)
    return stats


def update(hmms: HmmSet, stats: MmiStats, options: MmiOptions = MmiOptions()) -> tuple[HmmSet, dict]:  # noqa: B008
    """One EBW step; the report's objective is that of the model that came in, per utterance."""
    occupancy, first, second, transitions = _net(hmms, stats)
    if options.tau:
        own = _about_means(hmms, stats.numerator)
        seen = own[0] > 0
        safe = np.where(seen, own[0], 1.0)[:, None]
        weight = options.tau * options.acoustic_scale  # statistics are in units of kappa frames
        occupancy = occupancy + weight * seen
        first, second = first + weight * own[1] / safe, second + weight * own[2] / safe
    net, against = (occupancy, first, second, transitions), (stats.against, stats.transitions_against)
    updated, report = ebw_step(hmms, net, against, options.parameters, options.growth)
    objective = stats.net.log_likelihood / max(stats.net.utterances, 1)
    return updated, {
        "objective": objective,
        "train_errors": stats.errors,
        "utterances": stats.net.utterances,
        "frames": stats.net.frames,
        **report,
    }


def gradient(hmms: HmmSet, stats: MmiStats) -> dict[str, np.ndarray]:
    """Gradient of the summed objective, by kind of parameter (see :func:`margo.estimate.signed.gradients`)."""
    return gradients(hmms, *_net(hmms, stats))


def _net(hmms: HmmSet, stats: MmiStats) -> tuple[np.ndarray, ...]:
    return *_about_means(hmms, stats.net), stats.transitions_for - stats.transitions_against


def _about_means(hmms: HmmSet, stats: Stats) -> tuple[np.ndarray, ...]:
    """``(occupancy, first, second)`` moved from the statistics' centre to each Gaussian's mean."""
    n, gap = stats.occupancy[:, None], hmms.pool.means - stats.centre
    return stats.occupancy, stats.first - n * gap, stats.second - 2 * gap * stats.first + n * gap**2


@dataclass(frozen=True, eq=False)
class _Flat:
    """Log-likelihoods [T, S'], the largest of each frame [T], and their kappa-th powers relative to it [T, S']."""

    scores: np.ndarray
    peaks: np.ndarray
    linear: np.ndarray


@lru_cache(maxsize=1)
def _compiled(hmms: HmmSet, options: MmiOptions) -> "_Space":
    """The same for all chunks of a pass, which come one after the other."""
    return _Space(hmms, options)


class _Space:
    """A model compiled for a pass, and the sums of the chunk in hand."""

    def __init__(self, hmms: HmmSet, options: MmiOptions):
        self.hmms, self.options = hmms, options
        self.weighed = weighed_grammar(hmms, options.acoustic_scale)
        self.graph = recognition_graph(self.weighed)
        same = self.weighed.meta["grammar"] == hmms.meta.get("grammar")  # as where there is but one word
        self.decoder = self.graph if same else recognition_graph(hmms)
        self.compiled = scorer(hmms.pool, self.graph.states, np.float64 if options.double else np.float32)
        self.transitions = "transitions" in options.parameters
        self.room = Room()

    def begin(self) -> None:
        self.moments = np.zeros((self.compiled.gaussians.size, len(self.compiled.matrix)))
        self.against = np.zeros(self.compiled.gaussians.shape)

    def add(self, stats: MmiStats, batch) -> list[tuple[str, str]]:
        """Statistics of a batch; returns the utterances that had to be dropped."""
        kappa = self.options.acoustic_scale
        evaluation = evaluate(self.compiled, np.concatenate([x for _, x, _ in batch]), self.room)
        scores = evaluation.log_likelihoods
        lengths = np.array([len(x) for _, x, _ in batch])
        bounds = np.concatenate([[0], np.cumsum(lengths)])
        strings = [tuple(self.hmms.word_index[word] for word in words) for _, _, words in batch]
        above, below = (self.room.array(name, scores.shape, self.compiled.matrix.dtype) for name in ("above", "below"))
        flat = self.flattened("flat", scores)
        # The numerator of each run of utterances with the same words, then all denominators.
        objectives = np.array([string_score(self.weighed, words) for _, _, words in batch])
        spoken = np.array([string_score(self.hmms, words) for _, _, words in batch])  # scores of best paths
        starts = [i for i in range(len(batch)) if i == 0 or strings[i] != strings[i - 1]]
        for first, last in zip(starts, [*starts[1:], len(batch)]):
            forced = align_graph(self.hmms, batch[first][2], self.graph.states)
            own = np.arange(len(batch)) >= first
            own &= (np.arange(len(batch)) < last) & (objectives > -np.inf)
            totals = self.run(forced, flat, bounds, own, above, stats.transitions_for)
            objectives[own] += totals[own]
            spoken[own] += best_scores(forced, scores, bounds, own)[own]
        fits = objectives > -np.inf
        if self.options.boost:
            flat = self.flattened("boosted", scores - self.boosts(batch, scores, bounds, fits))
        totals = self.run(self.graph, flat, bounds, fits, below, stats.transitions_against)
        stats.net.log_likelihood += float((objectives[fits] - totals[fits]).sum())
        stats.net.utterances += int(fits.sum())
        stats.net.frames += int(lengths[fits].sum())
        best = best_scores(self.decoder, scores, bounds, fits)
        stats.errors += int((spoken < best - ROUNDING * np.abs(best))[fits].sum())
        for i in np.flatnonzero(~fits):
            above[bounds[i] : bounds[i + 1]] = below[bounds[i] : bounds[i + 1]] = 0
        if stats.numerator is not None:
            add_gaussians(stats.numerator, self.compiled, evaluation, kappa * above)
        add_contested(self.moments, self.against, evaluation, above, below)
        return [
            (batch[i][0], misfit(int(lengths[i]), string_score(self.hmms, batch[i][2]))) for i in np.flatnonzero(~fits)
        ]

    def finish(self, stats: MmiStats) -> None:
        """Hand over what the batches have summed."""
        kappa, gaussians = self.options.acoustic_scale, self.compiled.gaussians
        add_moments(stats.net, self.compiled, kappa * self.moments)
        stats.against[gaussians[gaussians >= 0]] += kappa * self.against[gaussians >= 0]

    def flattened(self, name: str, scores: np.ndarray) -> "_Flat":
        linear = self.room.array(name, scores.shape, self.compiled.matrix.dtype)
        return _Flat(scores, flatten(scores, self.options.acoustic_scale, linear), linear)

    def run(self, graph: Graph, flat: "_Flat", bounds, wanted, occupancies, transitions) -> np.ndarray:
        """Log totals [N] of the ``wanted`` utterances, posteriors and transition counts added; utterances for which
        the linear domain does not do are done in the log domain."""
        kappa = self.options.acoustic_scale
        counts = np.zeros(graph.n_arcs) if self.transitions else None
        totals = scaled_posteriors(graph, flat.linear, bounds, wanted, occupancies, counts)
        totals += kappa * np.add.reduceat(flat.peaks, bounds[:-1])
        if self.transitions:
            transitions += graph.transition_counts(counts, len(transitions))
        for i in np.flatnonzero(wanted & np.isnan(totals)):
            place = slice(bounds[i], bounds[i + 1])
            exact = posteriors(graph, flat.scores[place], scale=kappa)
            occupancies[place] += exact.occupancies
            totals[i] = exact.log_likelihood[0]
            if self.transitions:
                transitions += graph.transition_counts(exact.arc_counts, len(transitions))
        return totals

    def boosts(self, batch, scores: np.ndarray, bounds: np.ndarray, fits: np.ndarray) -> np.ndarray:
        """What boosting takes from the log-likelihoods [T, S'] of the denominator."""
        taken = np.zeros(scores.shape)
        for i in np.flatnonzero(fits):
            place = slice(bounds[i], bounds[i + 1])
            taken[place] = self.accuracies(batch[i][2], scores[place])
        return self.options.boost / self.options.acoustic_scale * taken

    def accuracies(self, words, scores: np.ndarray) -> np.ndarray:
        """What a path through each state earns at each frame, [T, S']."""
        forced = align_graph(self.hmms, words)
        path = viterbi(forced, scores[:, np.searchsorted(self.graph.states, forced.states)])
        earned = np.zeros(scores.shape)
        for segment in path.words:
            units = self.hmms.lexicon[self.hmms.words[segment.index]]
            states = np.concatenate([self.hmms.units[self.hmms.unit_index[unit]].states for unit in units])
            columns = np.searchsorted(self.graph.states, np.unique(states))
            earned[segment.start : segment.end, columns] = 1 / (segment.end - segment.start)
        return earned

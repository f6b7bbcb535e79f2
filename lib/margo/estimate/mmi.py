"""Maximum mutual information, exactly: log posterior probability of what was said among all that can be said.

    F = sum_i log p(X_i, W_i) - log sum_W p(X_i, W)     p(X, W) = P(W)^kappa sum_paths prod a prod p(x_t | s_t)^kappa

P(W) is all that the grammar adds in recognition (a bigram's scale and insertion penalties are made for log-likelihoods
that are not scaled, so that kappa scales them as well).

The numerator runs over the string's own model, the denominator over the whole recognition graph; no lattices. Where
that graph has too many nodes for an utterance, sum_W is over what was said and the N strings with the best paths.
Boosted MMI multiplies every path of the denominator by exp(-boost A), A its accuracy: with l the number of frames of
the reference word w at frame t in the best alignment, a path earns 1/l at frame t if its state there is one of w's, so
that each word of the reference found in its place counts 1; silence earns nothing.

The update is extended Baum-Welch (:mod:`margo.gaussian.ebw`) with D = growth * (occupancy in the denominator), and
I-smoothing: tau frames of each Gaussian's numerator mean and variance added to its numerator.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from margo.estimate.criterion import Criterion, IterationOptions
from margo.estimate.ml import by_words
from margo.estimate.moves import PARAMETERS, ebw_step
from margo.estimate.paths import misfit
from margo.estimate.pieces import NO_MEMORY, begins_of, chain_nodes, is_long, long_posteriors
from margo.estimate.stats import Stats, add_contested, add_gaussians, add_moments
from margo.gaussian.likelihood import batches, evaluate, flatten, log_likelihoods, scorer
from margo.gaussian.room import Room
from margo.knobs import knob
from margo.model.grammar import recognition_graph, string_score, weighed_grammar
from margo.model.graph import Graph, align_graph
from margo.model.hmm import HmmSet
from margo.search.forward_backward import posteriors
from margo.search.nbest import nbest
from margo.search.scaled import scaled_posteriors
from margo.search.viterbi import Path, best_scores, viterbi

BATCH = 1024  # frames that go through the products together
CELLS = 1 << 27  # nodes of the denominator's graph times frames of an utterance, at most: a gigabyte
STRINGS = 100  # that stand for the denominator of an utterance with more
TOO_LARGE = (
    "{frames} frames times {nodes} nodes are too many for the denominator of MMI; train_mce and train_lme take N-best "
    "lists instead"
)
ROUNDING = 1e-12  # part of a path's score by which it may differ when summed in another order


@dataclass(frozen=True)
class MmiOptions(IterationOptions):
    """Maximum mutual information by extended Baum-Welch."""

    acoustic_scale: float = knob(0.03, "kappa: log-likelihoods of frames are multiplied by this", above=0)
    growth: float = knob(2.0, "E: the smoothing constant D is this times the denominator's occupancy", above=0)
    tau: float = knob(0.0, "I-smoothing: frames of each Gaussian's own data added to its numerator", least=0)
    boost: float = knob(3.0, "boosted MMI: how much less a right word counts in the denominator", least=0)
    parameters: tuple[str, ...] = knob(("means", "variances"), "kinds of parameters to train", PARAMETERS)
    check: int = knob(2, "iterations between trials on the development data", least=1)
    double: bool = knob(False, "matrix products in float64 instead of float32")


class Mmi(Criterion):
    """Every pass is fresh. A step that lowered the objective was too long: D doubles from then on."""

    name = "mmi"

    def begin(self, hmms: HmmSet) -> dict:
        return {"objective": -np.inf, "caution": 1.0}

    def accumulate(self, memory: dict, hmms: HmmSet, utterances) -> Stats:
        return accumulate(hmms, utterances, self.options)

    def update(self, hmms: HmmSet, stats: Stats, memory: dict, corpus=None):
        caution = memory["caution"] * (2 if stats.objective < memory["objective"] else 1)
        hmms, report = update(hmms, stats, replace(self.options, growth=caution * self.options.growth))
        return hmms, {"objective": stats.objective, "caution": caution}, report


def accumulate(hmms: HmmSet, utterances, options: MmiOptions = MmiOptions()) -> Stats:
    """Statistics of ``(name, x[T, D], words)`` utterances."""
    space = _compiled(hmms, options)
    space.begin()
    stats = Stats.zeros(hmms)
    stats.own = Stats.zeros(hmms) if options.tau else None
    groups, dropped = by_words(hmms, utterances)
    ordered, long, nodes = [], [], space.graph.n_nodes
    for name, x, words in ((name, x, words) for words, members in groups.items() for name, x in members):
        if not is_long(chain_nodes(hmms, words), len(x)):
            ordered.append((name, x, words))
        elif len(x) * nodes > CELLS:
            dropped.append((name, TOO_LARGE.format(frames=len(x), nodes=nodes)))
        else:
            long.append((name, x, words))
    for name, x, words in long:
        try:
            reason = space.add_long(stats, x, words)
        except MemoryError:
            reason = NO_MEMORY.format(len(x))
        dropped += [(name, reason)] if reason else []
    for run in batches([len(x) for _, x, _ in ordered], BATCH):
        dropped += space.add(stats, ordered[run])
    space.finish(stats)
    stats.dropped = tuple(dropped)
    return stats


def update(hmms: HmmSet, stats: Stats, options: MmiOptions = MmiOptions()) -> tuple[HmmSet, dict]:
    """One EBW step, with I-smoothing."""
    if options.tau:
        means = hmms.pool.means
        (occupancy, first, second), own = stats.about(means), stats.own.about(means)
        seen = own[0] > 0
        safe = np.where(seen, own[0], 1.0)[:, None]
        weight = options.tau * options.acoustic_scale  # statistics are in units of kappa frames
        stats = replace(stats, centre=means, occupancy=occupancy + weight * seen, first=first + weight * own[1] / safe,
                        second=second + weight * own[2] / safe)  # fmt: skip
    return ebw_step(hmms, stats, options.parameters, options.growth)


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

    def add(self, stats: Stats, batch) -> list[tuple[str, str]]:
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
            totals = self.run(forced, flat, bounds, own, above, stats.transitions)
            objectives[own] += totals[own]
            spoken[own] += best_scores(forced, scores, bounds, own)[own]
        fits = objectives > -np.inf
        if self.options.boost:
            flat = self.flattened("boosted", scores - self.boosts(batch, scores, bounds, fits))
        wide = fits & (lengths * self.graph.n_nodes > CELLS)
        totals = self.run(self.graph, flat, bounds, fits & ~wide, below, stats.transitions_against)
        for i in np.flatnonzero(wide):
            totals[i] = self.run_listed(i, batch[i][2], flat, bounds, below, stats.transitions_against)
        stats.objective += float((objectives[fits] - totals[fits]).sum())
        stats.utterances += int(fits.sum())
        stats.frames += int(lengths[fits].sum())
        best = best_scores(self.decoder, scores, bounds, fits)
        stats.errors += int((spoken < best - ROUNDING * np.abs(best))[fits].sum())
        for i in np.flatnonzero(~fits):
            above[bounds[i] : bounds[i + 1]] = below[bounds[i] : bounds[i + 1]] = 0
        if stats.own is not None:
            add_gaussians(stats.own, self.compiled, evaluation, kappa * above)
        add_contested(self.moments, self.against, evaluation, above, below)
        return [
            (batch[i][0], misfit(int(lengths[i]), string_score(self.hmms, batch[i][2]))) for i in np.flatnonzero(~fits)
        ]

    def add_long(self, stats: Stats, x: np.ndarray, words) -> str:
        """Statistics of an utterance whose words have too many nodes to be searched at once: the numerator in pieces,
        the Gaussians' part some frames at a time. Returns why it had to be dropped, if so."""
        kappa, objective = self.options.acoustic_scale, string_score(self.weighed, words)
        scores, bounds, wanted = log_likelihoods(self.compiled, x), np.array([0, len(x)]), np.ones(1, bool)
        path = viterbi(align_graph(self.hmms, words, self.graph.states), scores)
        if path is None or not objective > -np.inf:
            return misfit(len(x), objective)
        best = best_scores(self.decoder, scores, bounds, wanted)[0]
        if self.options.boost:
            for place, columns, earned in self.earnings(path):
                scores[place, columns] -= self.options.boost / kappa * earned
        # The denominator takes most memory, so it comes before there are arrays of the numerator, and without all
        # digits of scores, which it has no use for but where the linear domain does not do.
        below = np.zeros(scores.shape, self.compiled.matrix.dtype)
        below_arcs = np.zeros(len(self.hmms.log_transitions))
        flat = self.flattened("flat", scores)
        flat = replace(flat, scores=scores.astype(below.dtype))
        del scores
        objective -= self.run(self.graph, flat, bounds, wanted, below, below_arcs)[0]
        del flat
        scores = log_likelihoods(self.compiled, x)
        above = np.zeros_like(below)
        total, above_arcs = long_posteriors(self.hmms, self.graph.states, scores, words, begins_of(path), kappa, above)
        objective += total
        for first in range(0, len(x), BATCH):
            place = slice(first, first + BATCH)
            evaluation = evaluate(self.compiled, x[place], self.room)
            if stats.own is not None:
                add_gaussians(stats.own, self.compiled, evaluation, kappa * above[place])
            add_contested(self.moments, self.against, evaluation, above[place], below[place])
        if self.transitions:
            stats.transitions += above_arcs
            stats.transitions_against += below_arcs
        stats.objective += float(objective)
        stats.utterances += 1
        stats.frames += len(x)
        stats.errors += int(path.score + string_score(self.hmms, words) < best - ROUNDING * abs(best))
        return ""

    def finish(self, stats: Stats) -> None:
        """Hand over what the batches have summed."""
        kappa, gaussians = self.options.acoustic_scale, self.compiled.gaussians
        add_moments(stats, self.compiled, kappa * self.moments)
        stats.against[gaussians[gaussians >= 0]] += kappa * self.against[gaussians >= 0]
        stats.transitions -= stats.transitions_against  # until now those for

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

    def run_listed(self, i: int, words, flat: "_Flat", bounds, occupancies, transitions) -> float:
        """As :meth:`run` of the whole graph, of utterance ``i`` alone and over what was said and the N best strings:
        the forward-backward of each, weighted by its posterior among them."""
        place, only = slice(bounds[i], bounds[i + 1]), np.arange(len(bounds) - 1) == i
        listed = nbest(self.decoder, flat.scores[place], STRINGS)
        strings = dict.fromkeys([tuple(words), *(one.names for one in listed)])
        occupied, counts = self.room.array("listed", occupancies.shape, occupancies.dtype), np.zeros(len(transitions))
        occupancies[place], total = 0, -np.inf
        for string in strings:
            passed = np.zeros(len(transitions))
            forced = align_graph(self.hmms, string, self.graph.states)
            score = string_score(self.weighed, string) + self.run(forced, flat, bounds, only, occupied, passed)[i]
            before, total = total, np.logaddexp(total, score)
            kept, share = np.exp(before - total), np.exp(score - total)
            occupancies[place] = kept * occupancies[place] + share * occupied[place]
            counts = kept * counts + share * passed
        transitions += counts
        return total

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
        for place, columns, value in self.earnings(path):
            earned[place, columns] = value
        return earned

    def earnings(self, path: Path) -> Iterator[tuple[slice, np.ndarray, float]]:
        """Frames and columns of the words of the reference's best path, and what their states earn there."""
        for segment in path.words:
            states = np.unique(self.hmms.states_of(self.hmms.words[segment.index]))
            yield (slice(segment.start, segment.end), np.searchsorted(self.graph.states, states),
                   1 / (segment.end - segment.start))  # fmt: skip

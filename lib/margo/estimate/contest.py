"""What MCE and margin training share: each utterance against its competitors, on Viterbi paths that are kept for a
while, and statistics of whatever is made of the contest.

With g the log score of a path divided by its number of frames T and c an utterance's competitors, both criteria are
functions of ``soft = 1/eta log sum_c exp(eta g_c) - g_ref``, times a slope over their measure's spread on the training
data at the start: one setting fits utterances of any length and features of any dimension.
"""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from margo.estimate.criterion import Criterion, IterationOptions
from margo.estimate.paths import Paths, Slots, find_paths, path_constants, score_paths, searcher, slots, weigh_paths
from margo.estimate.stats import Stats
from margo.knobs import knob
from margo.model.hmm import HmmSet


@dataclass(frozen=True)
class ContestOptions(IterationOptions):
    competitors: int = knob(3, "strings (or other words) that each utterance is set against", least=1)
    eta: float = knob(20.0, "how nearly the best competitor stands for all of them", above=0)
    BLIND = 18
    refresh: int = knob(6, "iterations between searches for competitors and their paths", least=1)


def competition(scores: np.ndarray, first: np.ndarray, lengths: np.ndarray, eta: float):
    """``(soft[N], best[N], shares[P])`` of scores [P] per frame: the eta-softmax of each utterance's competitors,
    ``1/eta log sum_c exp(eta g_c)``, less its reference's score; their best less the same; and the derivative of
    ``soft`` by each competitor's g (0 at references)."""
    counts = np.diff(first)
    owner = np.repeat(np.arange(len(counts)), counts)
    per_frame = scores / lengths[owner]
    reference = np.zeros(len(scores), bool)
    reference[first[:-1]] = True
    gaps = np.where(reference, -np.inf, per_frame - per_frame[first[:-1]][owner])
    best = np.maximum.reduceat(gaps, first[:-1]) if len(counts) else np.empty(0)
    terms = np.exp(eta * (gaps - best[owner]))
    totals = np.add.reduceat(terms, first[:-1]) if len(counts) else np.empty(0)
    return best + np.log(totals) / eta, best, terms / totals[owner]


class Contest(Criterion):
    """A criterion of the contest: gives :meth:`measures_of`, :meth:`value_of` and ``update``.

    Memory: found_with, the model that the current paths were found with; spread, of the measure at the start.
    """

    def measures_of(self, soft: np.ndarray, rivals: np.ndarray) -> np.ndarray:
        """What the criterion is a function of, [N], from ``soft`` [N] and the number of competitors."""
        raise NotImplementedError

    def value_of(self, measures: np.ndarray, spread: float) -> tuple[np.ndarray, np.ndarray]:
        """What each utterance adds to the objective, [N], and its derivative by ``soft`` [N]."""
        raise NotImplementedError

    def begin(self, hmms: HmmSet) -> dict:
        return {"found_with": None, "spread": 0.0}

    def measure(self, hmms: HmmSet, memory: dict, corpus, steps: int, final: bool) -> tuple[Stats, dict]:
        """The paths are found anew with ``hmms`` every ``refresh`` steps, else they are those of the last search (made
        again when a run is resumed); only their scores follow the model."""
        refresh = self.options.refresh
        if steps % refresh == 0 and (refresh == 1 or not final):
            memory = {**memory, "found_with": hmms}
        before = memory["found_with"]
        found = corpus.map(self.search, before, corpus.strings(before))
        kept = corpus.remember(before, lambda: corpus.scratch.parts(found))
        before = before if "transitions" in self.options.parameters else None
        if not memory["spread"]:
            measures = corpus.map(partial(on_paths, self.measures, before), hmms, kept)
            memory = {**memory, "spread": float(np.concatenate(list(measures)).std()) or 1.0}
        return corpus.total(partial(on_paths, partial(self.weigh, memory["spread"]), before), hmms, kept), memory

    def search(self, hmms: HmmSet, utterances, listed) -> tuple[Paths, Slots]:
        """Paths of a chunk; of them only what scoring needs, since they go to and from workers."""
        paths = find_paths(searcher(hmms), utterances, self.options.competitors, listed)
        places = slots(paths)
        nothing = np.empty(0, np.int32)
        if "transitions" not in self.options.parameters:
            paths = replace(paths, transitions=nothing, transition_start=np.zeros_like(paths.transition_start))
        return replace(paths, states=nothing, words=()), places

    def measures(self, hmms: HmmSet, x: np.ndarray, paths: Paths, places: Slots) -> np.ndarray:
        scores = score_paths(hmms, x, paths, places).scores
        soft, _, _ = competition(scores, paths.first, np.diff(paths.bounds), self.options.eta)
        return self.measures_of(soft, np.diff(paths.first) - 1)

    def weigh(self, spread: float, hmms: HmmSet, x: np.ndarray, paths: Paths, places: Slots) -> Stats:
        """Objective and its gradient's statistics of a chunk whose concatenated frames are ``x`` [T, D]."""
        lengths = np.diff(paths.bounds)
        scored = score_paths(hmms, x, paths, places)
        soft, best, shares = competition(scored.scores, paths.first, lengths, self.options.eta)
        values, slopes = self.value_of(self.measures_of(soft, np.diff(paths.first) - 1), spread)
        slopes = slopes / lengths  # by the scores
        weights = np.repeat(slopes, np.diff(paths.first)) * shares
        weights[paths.first[:-1]] = -slopes
        stats = weigh_paths(hmms, x, paths, places, scored, weights)
        stats.objective, stats.errors = float(values.sum()), int((best >= 0).sum())
        return stats

    def cost(self, report: dict, steps: int) -> float:
        # On paths that are not its own a model looks better than it is.
        return np.inf if steps % self.options.refresh else super().cost(report, steps)


def on_paths(function, before: HmmSet | None, hmms: HmmSet, utterances, kept: tuple[Paths, Slots]):
    """``function(hmms, x, paths, slots)`` on a chunk; ``before``: the model the paths were found with, if transitions
    have moved since."""
    paths, places = kept
    if before is not None:
        paths = replace(paths, constants=path_constants(hmms, paths, before))
    return function(hmms, paths.frames(utterances), paths, places)

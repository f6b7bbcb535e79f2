"""Maximum likelihood: Baum-Welch on all parameters, and mixture splitting.

A pass is :func:`accumulate` on chunks of utterances, a sum, and :func:`update`. An utterance is ``(name, x [T, D],
words)``. One that cannot be used is dropped with its reason, which the statistics carry; how many may be dropped is the
caller's affair.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from margo.errors import MargoError, refuse
from margo.estimate.criterion import Criterion
from margo.estimate.moves import check_result
from margo.estimate.pieces import NO_MEMORY, NO_PATH, is_long, long_stats
from margo.estimate.stats import Stats, add_gaussians
from margo.gaussian.covariances import PRODUCTS
from margo.gaussian.likelihood import batches, evaluate, scorer
from margo.gaussian.pool import GaussianPool
from margo.gaussian.splitting import shares, split
from margo.knobs import Knobs, knob
from margo.model.graph import align_graph
from margo.model.hmm import HmmSet
from margo.search.forward_backward import posteriors

BATCH = 1024  # frames of utterances with the same transcript that are taken at a time
ROUNDING = 1e-10  # counts of transitions that say nothing
TYING = ("none", "state", "global")


@dataclass(frozen=True)
class MlOptions(Knobs):
    """Baum-Welch, and mixtures that grow."""

    mixtures: int = knob(1, "Gaussians per state to end with", least=1, needs={"gaussians": False})
    gaussians: int = knob(0, "Gaussians in all to end with, more where more is said; 0: --mixtures each", least=0)
    covariance: str = knob("diagonal", "shape of the covariances; full ones need far more data", tuple(PRODUCTS))
    tie_variances: str = knob("none", "which Gaussians share one covariance: none, those of a state, all", TYING)
    variance_floor: float = knob(0.01, "smallest variance, as a part of the data's own (HTK's varFloor1)", least=0)
    dead_weight: float = knob(
        1e-5, "a component whose weight falls to this is dead until the next split (HTK's MINMIX)", least=0
    )
    prune: float = knob(0.0, "component posteriors up to this are left out (HTK: 4.5e-5)", least=0)
    iterations: int = knob(20, "most iterations at each number of mixtures", least=1)
    tolerance: float = knob(0.01, "stop when the log-likelihood per frame rises by less than this", least=0)
    double: bool = knob(False, "matrix products in float64 instead of float32")
    anneal: int = knob(
        0, "first passes behind a flat start, with one variance for all, while the log-likelihoods' scale rises to 1",
        least=0, needs={"init": False},
    )  # fmt: skip
    anneal_from: float = knob(0.01, "the scale that they start with", above=0, most=1, needs={"anneal": True})


DEFAULTS = MlOptions()


class Ml(Criterion):
    """Baum-Welch to convergence, mixtures doubled, and again, until there are as many as asked for.

    Memory: passes at this number of mixtures, negative while annealing, and the objective of the last one. The result
    is the last model.
    """

    name = "ml"
    picks = False
    limit = None
    diagonal = False

    def begin(self, hmms: HmmSet) -> dict:
        flat = (hmms.pool.means == hmms.pool.means[0]).all()
        return {"passes": -self.options.anneal if flat else 0, "objective": None}

    def scale(self, memory: dict) -> float:
        """Of the log-likelihoods of frames: 1, but less while annealing."""
        passes = memory["passes"]
        return self.options.anneal_from ** (-passes / self.options.anneal) if passes < 0 else 1.0

    def accumulate(self, memory: dict, hmms: HmmSet, utterances) -> Stats:
        return accumulate(hmms, utterances, self.options, self.scale(memory))

    def report(self, stats: Stats, memory: dict) -> dict:
        return {
            "objective": stats.objective / max(stats.frames, 1) / self.scale(memory),
            "frames": stats.frames,
            "utterances": stats.utterances,
            "dropped": len(stats.dropped),
            **({"scale": self.scale(memory)} if memory["passes"] < 0 else {}),
        }

    def update(self, hmms: HmmSet, stats: Stats, memory: dict, corpus=None):
        options, passes = self.options, memory["passes"] + 1
        mixtures = int(hmms.pool.sizes.max())
        # One variance for all while annealing: where some are wide, their states swallow what fits nowhere.
        tied = options if passes > 0 else replace(options, tie_variances="global")
        hmms, report = update(hmms, stats, tied)
        objective = report["objective"]
        report = {"floored": report["floored"], "dead": report["dead"], "mixtures": mixtures}
        if passes <= 0:
            return hmms, {"passes": passes, "objective": None}, report
        if passes < options.iterations and not converged(memory["objective"], objective, options.tolerance):
            return hmms, {"passes": passes, "objective": objective}, report
        if options.gaussians:
            larger = shared_out(hmms, stats.occupancy, options.gaussians)
        else:
            larger = hmms if mixtures >= options.mixtures else grown(hmms, options.mixtures)
        return larger, {"passes": 0, "objective": None} if larger is not hmms else None, report


def grown(hmms: HmmSet, mixtures: int) -> HmmSet:
    """``hmms`` with twice as many components a state, but not more than ``mixtures``."""
    now = int(hmms.pool.sizes.max())
    if mixtures < now:
        raise MargoError(f"--mixtures is {mixtures}, the model has {now} already")
    return hmms if mixtures == now else hmms.with_pool(split(hmms.pool, min(2 * now, mixtures)))


def shared_out(hmms: HmmSet, occupancy: np.ndarray, gaussians: int) -> HmmSet:
    """``hmms`` with at most twice as many Gaussians, and not more than ``gaussians`` in all, for the states that have
    more frames, ``occupancy`` [K] by Gaussian; the same where no state gets any."""
    pool = hmms.pool
    total = min(2 * pool.n_gaussians, gaussians)
    wanted = shares(np.add.reduceat(occupancy, pool.offsets[:-1]), pool.sizes, total)
    return hmms if (wanted == pool.sizes).all() else hmms.with_pool(split(pool, wanted))


def unusable(hmms: HmmSet, x: np.ndarray, words) -> str | None:
    """Why an utterance cannot be trained on, or None."""
    try:
        hmms.check_words(words)
    except MargoError as error:
        return str(error)
    if x.ndim != 2 or x.shape[1] != hmms.pool.dimension:
        return f"features have shape {x.shape}, the model expects [T, {hmms.pool.dimension}]"
    if len(x) == 0:
        return "no frames"
    if not np.isfinite(x).all():
        frame = int(np.flatnonzero(~np.isfinite(x).all(axis=1))[0])
        return f"frame {frame} holds a value that is not finite"
    return None


def by_words(hmms: HmmSet, utterances: Iterable[tuple]) -> tuple[dict[tuple, list], list[tuple[str, str]]]:
    """``({words: [(name, x), ...]}, dropped)``: those with the same words are done together."""
    groups: dict[tuple, list] = {}
    dropped = []
    for name, x, words in utterances:
        reason = unusable(hmms, x, words)
        if reason:
            dropped.append((name, reason))
        else:
            groups.setdefault(tuple(words), []).append((name, x))
    return groups, dropped


def accumulate(
    hmms: HmmSet, utterances: Iterable[tuple], options: MlOptions = DEFAULTS, scale: float = 1.0
) -> Stats:  # fmt: skip
    """Statistics of one pass of the E-step over ``utterances``.

    Utterances with the same transcript share a graph and go through the products together. ``scale`` below 1, of the
    log-likelihoods of frames, makes posteriors softer (annealing), and the objective that of the scaled ones.
    """
    stats = Stats.zeros(hmms)
    groups, dropped = by_words(hmms, utterances)
    dtype = np.float64 if options.double else np.float32
    for words, members in groups.items():
        graph = align_graph(hmms, words)
        compiled = scorer(hmms.pool, graph.states, dtype)
        arc_counts = np.zeros(graph.n_arcs)
        for name, x in [member for member in members if is_long(graph.n_nodes, len(member[1]))]:
            try:
                stats += long_stats(hmms, graph, compiled, x, words, scale, options.prune)
            except MargoError as error:
                dropped.append((name, str(error)))
            except MemoryError:
                dropped.append((name, NO_MEMORY.format(len(x))))
        members = [member for member in members if not is_long(graph.n_nodes, len(member[1]))]
        for run in batches([len(x) for _, x in members], BATCH):
            batch = members[run]
            evaluation = evaluate(compiled, np.concatenate([x for _, x in batch]))
            lengths = np.array([len(x) for _, x in batch])
            result = posteriors(graph, evaluation.log_likelihoods, np.concatenate([[0], np.cumsum(lengths)]), scale)
            add_gaussians(stats, compiled, evaluation, result.occupancies, options.prune)
            arc_counts += result.arc_counts
            counted = np.isfinite(result.log_likelihood)
            stats.objective += float(result.log_likelihood[counted].sum())
            stats.frames += int(lengths[counted].sum())
            stats.utterances += int(counted.sum())
            for i in np.flatnonzero(~counted):
                dropped.append((batch[i][0], NO_PATH.format(lengths[i])))
        stats.transitions += graph.transition_counts(arc_counts, len(stats.transitions))
    stats.dropped = tuple(dropped)
    return stats


def update(hmms: HmmSet, stats: Stats, options: MlOptions = DEFAULTS) -> tuple[HmmSet, dict]:
    """The M-step: the model that maximises the auxiliary function, and a report of what was done.

    Means, variances (about the new means, floored at ``hmms.variance_floor``), weights and transitions. A component
    whose weight falls to ``dead_weight`` gets weight zero and keeps its mean and variance; what saw no data keeps all.
    Report: objective (log-likelihood per frame of the model that came in), frames, utterances, dropped, floored
    (variances), dead (components).
    """
    pool = hmms.pool
    _check(hmms, stats)
    log_weights, alive = _weights(pool, stats.occupancy, options.dead_weight)
    occupancy = np.where(alive, stats.occupancy, 0.0)
    seen = occupancy > 0
    shift = stats.first / np.where(seen, occupancy, 1.0)[:, None]  # new mean about the centre
    means = np.where(seen[:, None], shift + stats.centre, pool.means)
    scatter, weight = _tie(pool, _scatter(stats, shift, seen), occupancy, options.tie_variances)
    counts = np.where(weight > 0, weight, 1.0).reshape(-1, *[1] * (scatter.ndim - 1))
    covariances, floored = pool.covariances.fitted(scatter / counts, weight <= 0), 0
    if hmms.variance_floor is not None:
        covariances, floored = covariances.floored(np.where(weight[:, None] > 0, hmms.variance_floor, 0.0))
    check_result(hmms, means, covariances, stats.occupancy)
    updated = replace(
        hmms.with_transitions(_transitions(hmms, stats.transitions)),
        pool=GaussianPool(means, covariances, log_weights, pool.offsets),
    )
    report = {
        "objective": stats.objective / max(stats.frames, 1),
        "frames": stats.frames,
        "utterances": stats.utterances,
        "dropped": len(stats.dropped),
        "floored": floored,
        "dead": int((~alive).sum()),
    }
    return updated, report


def converged(previous: float | None, current: float, tolerance: float) -> bool:
    """The stop rule: the log-likelihood per frame rose by less than ``tolerance`` (or fell)."""
    return previous is not None and current - previous < tolerance


def _weights(pool: GaussianPool, occupancy: np.ndarray, dead_weight: float) -> tuple[np.ndarray, np.ndarray]:
    """New log weights [K] and which components live; a state without data keeps its own."""
    owners = pool.owners
    totals = np.bincount(owners, occupancy, pool.n_states)[owners]
    old = np.exp(pool.log_weights)
    weights = np.where(totals > 0, occupancy / np.where(totals > 0, totals, 1.0), old)
    alive = weights > dead_weight if dead_weight else weights > 0
    weights = np.where(alive, weights, 0.0)
    weights /= np.bincount(owners, weights, pool.n_states)[owners]
    with np.errstate(divide="ignore"):
        return np.log(weights), alive


def _scatter(stats: Stats, shift: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Summed squares [K, D], or outer products [K, D, D], about the new means; 0 of what saw no data."""
    if stats.second.ndim == 2:
        return np.where(seen[:, None], stats.second - shift * stats.first, 0.0)
    return np.where(seen[:, None, None], stats.second - shift[:, :, None] * stats.first[:, None, :], 0.0)


def _tie(pool: GaussianPool, scatter: np.ndarray, occupancy: np.ndarray, tying: str) -> tuple[np.ndarray, np.ndarray]:
    """Sums of squares [K, ...] and occupancies [K] over all Gaussians that share a variance."""
    if tying == "none":
        return scatter, occupancy
    if tying == "global":
        return np.broadcast_to(scatter.sum(axis=0), scatter.shape), np.full(len(occupancy), occupancy.sum())
    starts, owners = pool.offsets[:-1], pool.owners
    return np.add.reduceat(scatter, starts, axis=0)[owners], np.add.reduceat(occupancy, starts)[owners]


def _transitions(hmms: HmmSet, counts: np.ndarray) -> np.ndarray:
    """New flat log transitions [P]; a row that was never left keeps its own, and one of which only what rounding leaves
    was seen: forward-backward cuts off posteriors that are as small, and so might leave no way out of a unit."""
    result = hmms.log_transitions.copy()
    for unit, start in zip(hmms.units, hmms.transition_offsets):
        size = unit.n_states + 2
        rows = counts[start : start + size * size].reshape(size, size)
        totals = rows.sum(axis=1, keepdims=True)
        seen = totals > ROUNDING
        with np.errstate(divide="ignore"):
            estimate = np.log(np.where(seen, rows / np.where(seen, totals, 1.0), 0.0))
        result[start : start + size * size] = np.where(seen, estimate, unit.log_transitions).ravel()
    return result


def _check(hmms: HmmSet, stats: Stats) -> None:
    if stats.frames == 0:
        reasons = sorted({reason for _, reason in stats.dropped})
        raise MargoError("no usable utterance" + (f": {'; '.join(reasons[:5])}" if reasons else ""))
    bad = ~np.isfinite(stats.occupancy) | (stats.occupancy < 0)
    refuse([f"{hmms.place(k)}: occupancy {stats.occupancy[k]}" for k in np.flatnonzero(bad)[:20]], "statistics")

"""From statistics to another model: gradients in the space in which HMMs are trained, steps in it, and extended
Baum-Welch on a whole HmmSet."""

from dataclasses import replace

import numpy as np

from margo.errors import refuse
from margo.estimate.stats import Stats
from margo.gaussian.covariances import Covariances, Diagonal
from margo.gaussian.ebw import ebw_probabilities, ebw_update, smoothing_constants
from margo.gaussian.pool import GaussianPool
from margo.model.grammar import weights_of, with_grammar
from margo.model.hmm import HmmSet

PARAMETERS = ("means", "variances", "weights", "transitions")


def gradients(hmms: HmmSet, stats: Stats) -> dict[str, np.ndarray]:
    """Gradient of ``sum_t,k gamma_tk log p(x_t, k) + sum counts log a`` in the space in which HMMs are trained.

    ``means`` [K, D] with respect to mu / sigma at fixed sigma, ``variances`` [K, D] to log sigma at fixed mu,
    ``weights`` [K] and ``transitions`` [P] to the logits whose softmax they are. This is the gradient of any criterion
    whose derivative by log p(x_t, k) and log a the statistics sum.
    """
    pool = hmms.pool
    occupancy, first, second = stats.about(pool.means)
    by_state = np.add.reduceat(occupancy, pool.offsets[:-1])[pool.owners]
    rows = row_groups(hmms)
    row_sums = np.bincount(rows, stats.transitions)[rows]
    return {
        "means": first / np.sqrt(pool.variances),
        "variances": second / pool.variances - occupancy[:, None],
        "weights": occupancy - np.exp(pool.log_weights) * by_state,
        "transitions": stats.transitions - np.exp(hmms.log_transitions) * row_sums,
    }


def moved(hmms: HmmSet, changes: dict[str, np.ndarray]) -> HmmSet:
    """``hmms`` with mu / sigma, log sigma, weight logits, transition logits changed by what ``changes`` holds."""
    pool = hmms.pool
    means, variances, log_weights = pool.means, pool.variances, pool.log_weights
    if "means" in changes:
        means = means + np.sqrt(variances) * changes["means"]
    if "variances" in changes:
        variances = np.maximum(variances * np.exp(2 * changes["variances"]), least_variances(hmms))
    if "weights" in changes:
        logits = log_weights + changes["weights"]
        peaks = np.maximum.reduceat(logits, pool.offsets[:-1])[pool.owners]
        sums = np.add.reduceat(np.exp(logits - peaks), pool.offsets[:-1])[pool.owners]
        log_weights = logits - peaks - np.log(sums)
    if "transitions" in changes:
        hmms = hmms.with_transitions(_normalised(hmms, hmms.log_transitions + changes["transitions"]))
    return replace(hmms, pool=GaussianPool(means, variances, log_weights, pool.offsets))


def blend(a: HmmSet, b: HmmSet, share: float) -> HmmSet | None:
    """A model between two of the same units, ``1 - share`` of a and ``share`` of b: means, log variances,
    probabilities of components and transitions, and the insertion penalty; None where shapes differ."""
    if a.pool.means.shape != b.pool.means.shape or len(a.log_transitions) != len(b.log_transitions):
        return None

    def between(values):
        return (1 - share) * values(a) + share * values(b)

    with np.errstate(divide="ignore"):
        transitions = np.log(between(lambda hmms: np.exp(hmms.log_transitions)))
        log_weights = np.log(between(lambda hmms: np.exp(hmms.pool.log_weights)))
    variances = np.exp(between(lambda hmms: np.log(hmms.pool.variances)))
    pool = GaussianPool(between(lambda hmms: hmms.pool.means), variances, log_weights, a.pool.offsets)
    penalty = {name: between(lambda hmms, name=name: weights_of(hmms)[name]) for name in weights_of(a)
               if name == "insertion_penalty"}  # fmt: skip
    return with_grammar(a.with_pool(pool).with_transitions(transitions), **penalty)


def ebw_step(hmms: HmmSet, stats: Stats, parameters, growth: float) -> tuple[HmmSet, dict]:
    """``(hmms, report)`` after a step of extended Baum-Welch (:mod:`margo.gaussian.ebw`) on the kinds in
    ``parameters``, with D = growth times what counts against; report: floored (variances), moved (largest change of a
    mean, in deviations)."""
    pool = hmms.pool
    net = stats.about(pool.means)
    occupancy = stats.occupancy
    constants = smoothing_constants(pool.variances, net, stats.against, growth)
    shift, variances = ebw_update(np.zeros_like(pool.means), pool.variances, net, constants)
    check_result(hmms, shift, Diagonal(variances), occupancy)
    means, log_weights, floored = pool.means, pool.log_weights, 0
    if "variances" in parameters:
        floor = least_variances(hmms)
        floored = int((variances < floor).sum())
        variances = np.maximum(variances, floor)
    else:
        variances = pool.variances
    if "means" in parameters:
        means = pool.means + shift
    if "weights" in parameters:
        log_weights = ebw_probabilities(log_weights, occupancy, stats.against, pool.owners, growth)
    if "transitions" in parameters:
        counts = stats.transitions, stats.transitions_against
        hmms = hmms.with_transitions(ebw_probabilities(hmms.log_transitions, *counts, row_groups(hmms), growth))
    largest = float(np.abs((means - pool.means) / np.sqrt(pool.variances)).max())
    updated = replace(hmms, pool=GaussianPool(means, variances, log_weights, pool.offsets))
    return updated, {"floored": floored, "moved": largest}


def check_result(hmms: HmmSet, means: np.ndarray, covariances: Covariances, occupancy: np.ndarray) -> None:
    """Refuse new means [K, D] or covariances that are not numbers, or not covariances, and name whose they are."""
    faults = []
    bad = [(k, d, means[k, d]) for k, d in np.argwhere(~np.isfinite(means))]
    for name, wrong in (("mean", bad), ("variance", covariances.wrong)):
        firsts = {k: (d, value) for k, d, value in reversed(wrong)}
        for k, (d, value) in sorted(firsts.items())[:20]:
            faults.append(f"{hmms.place(k)}: {name} of dimension {d} is {value:.6g}, occupancy {occupancy[k]:.6g}")
    refuse(faults, "update")


def row_groups(hmms: HmmSet) -> np.ndarray:
    """Which row of which unit's transition matrix each of the flat transitions is in, int [P]."""
    sizes = np.array([len(unit.log_transitions) for unit in hmms.units])
    return np.repeat(np.arange(sizes.sum()), np.repeat(sizes, sizes))


def least_variances(hmms: HmmSet) -> np.ndarray:
    """The least variances [K, D]; what already lies under the floor stays where it is."""
    return np.minimum(0.0 if hmms.variance_floor is None else hmms.variance_floor, hmms.pool.variances)


def _normalised(hmms: HmmSet, logits: np.ndarray) -> np.ndarray:
    """Log softmax over each row of each transition matrix; rows of the exit, all -inf, stay."""
    groups = row_groups(hmms)
    peaks = np.full(groups[-1] + 1, -np.inf)
    np.maximum.at(peaks, groups, logits)
    peaks = np.where(np.isfinite(peaks), peaks, 0.0)[groups]
    with np.errstate(divide="ignore", invalid="ignore"):
        sums = np.log(np.bincount(groups, np.exp(logits - peaks)))[groups]
        return np.where(np.isfinite(sums), logits - peaks - sums, -np.inf)

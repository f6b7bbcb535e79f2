"""One step of extended Baum-Welch on a whole HmmSet, for MMI and margin training."""

from dataclasses import replace

import numpy as np

from margo.estimate.ml import check_result
from margo.estimate.signed import row_groups
from margo.gaussian.ebw import ebw_probabilities, ebw_update, smoothing_constants
from margo.gaussian.pool import GaussianPool
from margo.model.hmm import HmmSet


def ebw_step(hmms: HmmSet, net, against, parameters, growth: float) -> tuple[HmmSet, dict]:
    """``(hmms, report)`` from net statistics about the current means and what of them counts against.

    net: ``(occupancy[K], first[K, D], second[K, D], transitions[P])``; against: ``(occupancy[K], transitions[P])``;
    ``parameters``: the kinds to train. Report: floored (variances), moved (largest change of a mean, in deviations).
    """
    pool = hmms.pool
    occupancy, first, second, transitions = net
    gaussians = occupancy, first, second
    constants = smoothing_constants(pool.variances, gaussians, against[0], growth)
    shift, variances = ebw_update(np.zeros_like(first), pool.variances, gaussians, constants)
    check_result(hmms, shift, variances, occupancy)
    means, log_weights, floored = pool.means, pool.log_weights, 0
    if "variances" in parameters:
        floor = np.zeros(pool.dimension) if hmms.variance_floor is None else hmms.variance_floor
        floor = np.minimum(floor, pool.variances)  # what already lies under the floor stays
        floored = int((variances < floor).sum())
        variances = np.maximum(variances, floor)
    else:
        variances = pool.variances
    if "means" in parameters:
        means = pool.means + shift
    if "weights" in parameters:
        log_weights = ebw_probabilities(log_weights, occupancy, against[0], pool.owners, growth)
    if "transitions" in parameters:
        hmms = hmms.with_transitions(
            ebw_probabilities(hmms.log_transitions, transitions, against[1], row_groups(hmms), growth)
        )
    moved = float(np.abs((means - pool.means) / np.sqrt(pool.variances)).max())
    updated = replace(hmms, pool=GaussianPool(means, variances, log_weights, pool.offsets))
    return updated, {"floored": floored, "moved": moved}

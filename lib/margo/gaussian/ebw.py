"""The extended Baum-Welch update of a set of diagonal Gaussians, shared by every criterion that uses it.

Statistics come as ``net = (n[K], first[K, D], second[K, D])``, what counts for less what counts against, about the
current means (:meth:`margo.gaussian.moments.Moments.about`): sums about them keep the digits that ``E[x^2] - E[x]^2``
would lose for data far from the origin. MMI, conditional likelihood and margin differ in how they weight the
observations, not in this update.
"""

import numpy as np

from margo.errors import MargoError

NOTHING = 1e-150  # of a sample


def smooth_hinge(log_y):
    """``log h(y)`` and ``d log h / d log y`` of the smooth hinge of [PW10] section 4: y + 1/2 up to 1,
    2 - (y - 2)^2 / 2 up to 2, then 2: what is won by far no longer counts.

    The derivative is s^n without its factor lambda; on 1 < y < 2 it is y (2 - y) / h(y) = (2 - y) / (2 - y / 2).
    """
    y = np.exp(np.minimum(log_y, np.log(2.0)))
    low, high = y <= 1.0, log_y >= np.log(2.0)
    h = np.where(low, y + 0.5, 2.0 - 0.5 * (y - 2.0) ** 2)
    slope = np.where(low, y / (y + 0.5), (2.0 - y) / (2.0 - 0.5 * y))
    return np.log(h), np.where(high, 0.0, slope)


def _counted(net):
    """``net`` without what is left of a Gaussian where all samples are won by far, and so hardly count: its squares
    would be 0."""
    n, first, second = (np.asarray(part, float) for part in net)
    counts = np.maximum(np.abs(n), np.maximum(np.abs(first), np.abs(second)).max(axis=1, initial=0.0)) > NOTHING
    return n * counts, first * counts[:, None], second * counts[:, None]


def smallest_D(variances, net) -> np.ndarray:
    """``[K]``: the bound above which every D keeps Gaussian k's denominator and all its variances positive.

    With net statistics (n, f, s) the new variance times (n + D)^2 is v D^2 + (s + n v) D + (n s - f^2): a quadratic in
    D that opens upwards, so its largest real root is the exact bound, where [PW10] and others double D by trial.
    Positive variances alone do not suffice: a D below -n gives them too, from a negative denominator.
    """
    n, f, s = _counted(net)
    b = s + n[:, None] * variances
    c = n[:, None] * s - f**2
    discriminant = b**2 - 4.0 * variances * c
    root = np.where(discriminant >= 0, (-b + np.sqrt(np.maximum(discriminant, 0.0))) / (2.0 * variances), -np.inf)
    return np.maximum(np.maximum(root.max(axis=1, initial=-np.inf), -n), 0.0)


def ebw_update(means, variances, net, D, floor=0.0):
    """New ``(means[K, D], variances[K, D])`` of [PW10] (9).

    ``D[K]`` (or one number) must exceed :func:`smallest_D`; Gaussians with no statistics and no D stay as they are.
    ``floor`` (number or ``[D]``) is the least variance let through.
    """
    n, f, s = _counted(net)
    D = np.broadcast_to(np.asarray(D, float), n.shape)
    idle = (np.abs(n + D) <= NOTHING) & (np.abs(f).max(axis=1, initial=0.0) == 0)
    total = np.where(idle, 1.0, n + D)[:, None]
    step = f / total
    updated = np.where(idle[:, None], variances, (s + D[:, None] * variances) / total - step**2)
    bad = (total[:, 0] <= 0) | ~(updated > 0).all(axis=1)
    if bad.any():
        k = int(np.argmax(bad))
        raise MargoError(
            f"EBW: D = {D[k]:.6g} is too small for Gaussian {k}: denominator {total[k, 0]:.6g}, smallest variance "
            f"{updated[k].min():.6g}, occupancy {n[k]:.6g} ({int(bad.sum())} of {len(n)} Gaussians)"
        )
    return means + step, np.maximum(updated, floor)


def smoothing_constants(variances, net, against, growth) -> np.ndarray:
    """``D[K]``: ``growth`` times what counts ``against`` each Gaussian [K], but at least twice :func:`smallest_D`."""
    return np.maximum(growth * against, 2.0 * smallest_D(variances, net))


def ebw_probabilities(log_probs, net, against, groups, growth):
    """New log probabilities of discrete distributions, [PW10] (4), with a ``D`` for each distribution.

    ``log_probs`` [J], ``net`` [J] = p dF/dp (counts for minus counts against), ``against`` [J], ``groups`` int [J]: the
    distribution of each. ``p <- (net + D p) / sum`` with D = growth * sum(against) + twice what keeps all positive.
    """
    probs = np.exp(log_probs)
    possible = probs > 0
    number = int(groups.max(initial=-1)) + 1
    least = np.zeros(number)
    np.maximum.at(least, groups[possible], -net[possible] / probs[possible])
    D = growth * np.bincount(groups, against, number) + 2.0 * least
    raised = np.where(possible, net + D[groups] * probs, 0.0)
    totals = np.bincount(groups, raised, number)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(totals[groups] > 0, np.log(raised / totals[groups]), log_probs)

"""The best primal and dual points met so far: iterates need not improve, certificates only do."""

import numpy as np

from margo.estimate.lme.certificate import best_level, dual_value, lightest, onto_simplex
from margo.estimate.lme.layout import Layout, pull, push


class Best:
    """w', q' with the highest objective and lambda with the lowest dual value, in the units of the layout."""

    def __init__(self, layout: Layout, scale: float):
        self.layout, self.scale = layout, scale  # the problem's scale, in multiples of the unit
        self.shift = np.zeros((len(layout.used), layout.gradients.shape[1]))
        self.width = np.zeros(len(layout.used))
        _, self.primal = best_level(layout.start, layout.soft)
        self.multipliers = lightest(layout.start, layout.soft)  # the optimum of a ball of radius zero
        self.dual, self.nu = np.inf, 0.0
        self.offer_dual(self.multipliers, *pull(layout, self.multipliers))

    def on(self, layout: Layout) -> "Best":
        """The same points, their values recomputed on another layout of the same problem (one of higher precision)."""
        other = Best(layout, self.scale)
        other.offer(self.shift, self.width, self.multipliers)
        return other

    def offer_primal(self, shift: np.ndarray, width: np.ndarray) -> None:
        """Take w' [U, D], q' [U] if, shrunk into the ball, they have the higher objective."""
        total = width.sum()
        if total > 1:
            factor = 1 / np.sqrt(total)
            shift, width = factor * shift, factor**2 * width
        self.offer_margins(shift, width, self.layout.start + push(self.layout, shift, width))

    def offer_margins(self, shift: np.ndarray, width: np.ndarray, values: np.ndarray) -> None:
        """The same for a point inside the ball whose margins are known."""
        _, objective = best_level(values, self.layout.soft)
        if objective > self.primal:
            self.shift, self.width, self.primal = shift, width, objective

    def offer_dual(self, multipliers: np.ndarray, b: np.ndarray, half: np.ndarray) -> float:
        """Take feasible multipliers [N] with pull(multipliers) = (b, half); returns the best nu for them."""
        value, nu = dual_value(b, half, 1.0, self.nu)
        value += self.layout.start @ multipliers
        if value < self.dual:
            self.multipliers, self.dual, self.nu = multipliers, value, nu
        return nu

    def offer(self, shift: np.ndarray, width: np.ndarray, multipliers: np.ndarray) -> None:
        """Take an interior iterate: its multipliers are made feasible first."""
        if not (np.isfinite(shift).all() and np.isfinite(multipliers).all()):
            return
        self.offer_primal(shift, width)
        multipliers = onto_simplex(multipliers, self.layout.soft)
        self.offer_dual(multipliers, *pull(self.layout, multipliers))

    @property
    def gap(self) -> float:
        """The problem's own relative gap."""
        objective = abs(self.primal + self.layout.origin / self.layout.unit)
        return (self.dual - self.primal) / max(objective, self.scale)

"""Knobs of generative kernels, with their defaults (standard library only: ``--help`` reads this)."""

from dataclasses import dataclass

SPACES = ("ll", "llr", "fisher", "ll-mean", "ll-mean-var", "llr-mean", "llr-mean-var")
METRICS = ("none", "diagonal", "block")


@dataclass(frozen=True)
class MarginOptions:
    """How a kernel is trained for maximum margin ([L04] section 5)."""

    cost: float = 1.0
    """C of the soft margin ([L04] (10))."""
    tolerance: float = 1e-4
    """Training stops when an accepted step lowers W by less than this part of W: the regulariser of the method."""
    iterations: int = 300
    """Most steps (accepted or backed off)."""
    step: float = 0.01
    """First step, as the length of the change in standardised parameters."""
    growth: float = 1.5
    """The step grows by this factor after W fell ..."""
    shrink: float = 0.5
    """... and shrinks by this one after W rose and the step was undone."""

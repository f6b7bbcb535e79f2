"""Large-margin estimation [LJ07]: ``Problem`` in, ``solve``, ``Solution`` out. README.md derives the method."""

from margo.estimate.lme.model import augmented_means, projected_means
from margo.estimate.lme.problem import Problem, Solution, margins
from margo.estimate.lme.solver import solve

__all__ = ["Problem", "Solution", "augmented_means", "margins", "projected_means", "solve"]

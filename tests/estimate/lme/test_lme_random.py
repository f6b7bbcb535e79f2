"""Three hundred random programs of every size and shape, each certified, none contradicting the cone program."""

import numpy as np
import pytest

from lme_instances import draw_odd
from margo.estimate import lme

COUNT = 300


def draw(index):
    """D 1-39 with low dimensions often (there the relaxation is loose), N 1-80, r^2/K 1e-4 to 1e2, hard and soft."""
    rng = np.random.default_rng([2007, index])
    dimension = int(rng.integers(1, 40) if index % 2 else rng.integers(1, 4))
    n, k = int(rng.integers(1, 81)), int(rng.integers(2, 60))
    soft = 1 / (rng.uniform(max(0.05, 1 / n), 1) * n) if index % 3 == 2 else None
    return draw_odd(rng, n, k, dimension, k * 10 ** rng.uniform(-4, 2), soft)


@pytest.mark.slow
def test_every_program_is_certified_and_agrees_with_the_cone_program():
    problems = [draw(index) for index in range(COUNT)]
    assert {problem.dimension for problem in problems} >= {1, 39}
    assert min(problem.margins.min() for problem in problems) < 0
    assert any(len(np.unique(problem.margins)) < problem.n_pairs for problem in problems)
    assert any(len(np.unique(problem.gaussian)) < problem.n_gaussians for problem in problems)
    loose = fell_back = 0
    for index, problem in enumerate(problems):
        solution = lme.solve(problem)
        values = lme.margins(problem, solution.shift, solution.augmentation)
        scale = max(1, abs(solution.objective))
        assert (solution.shift**2).sum() + solution.augmentation.sum() <= problem.radius2 * (1 + 1e-12), index
        assert -1e-12 * scale <= solution.bound - solution.objective <= 1e-6 * scale, (index, solution.notes)
        if problem.soft is None:
            assert values.min() == solution.rho, index
        assert solution.gap <= 1e-6, index
        loose += solution.augmentation.max() > 1e-6 * problem.radius2
        fell_back += solution.method == "conic"
        cone = lme.solve(problem, "socp", 1e-7)
        # each is feasible, so each stays below the other's bound
        assert cone.objective <= solution.bound + 1e-9 * scale, index
        assert solution.objective <= cone.bound + 1e-9 * scale, index
        assert solution.objective >= cone.objective - 2e-6 * scale, index
    assert loose >= 10
    assert 10 <= fell_back <= COUNT // 3

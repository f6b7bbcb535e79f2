"""Maximum-margin training of a generative kernel: machine and model in turn, W never rising ([L04] section 5)."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from margo.errors import MargoError
from margo.kernel.metric import METRICS, Metric, measure, score_gradient
from margo.kernel.svm import Machine, solve_binary
from margo.knobs import Knobs, knob

LEAST_STEP = 1e-8
"""A step backed off below this has found nothing to gain: training ends."""


@dataclass(frozen=True)
class DescentOptions(Knobs):
    """How a kernel is trained for maximum margin ([L04] section 5)."""

    cost: float = knob(1.0, "C of the soft margin", above=0)
    tolerance: float = knob(
        1e-4, "stop when a step lowers W by less than this part of it; a larger one regularises more", least=0
    )
    iterations: int = knob(
        300, "most steps, accepted or undone; 0 leaves the kernel as maximum likelihood made it", least=0
    )
    step: float = knob(0.01, "length of the first step, in standard deviations and logarithms of variances", above=0)
    growth: float = knob(1.5, "factor of the step after W fell", least=1)
    shrink: float = knob(0.5, "factor of the step after W rose and the step was undone", above=0, below=1)


@dataclass(frozen=True)
class KernelOptions(DescentOptions):
    """The score-space of two models, its metric, and how the kernel in it is trained."""

    space: str = knob(
        "llr", "score-space: likelihood ratio of two models, and derivatives", ("llr", "llr-mean", "llr-mean-var")
    )
    metric: str = knob("diagonal", "metric G of the space: none, its diagonal, its blocks", METRICS)


@dataclass(frozen=True)
class Iteration:
    """What one step of training did."""

    iteration: int
    objective: float
    """W after the step (of the state kept, where the step was undone)"""
    change: float
    """W kept minus W before: never positive"""
    step: float
    accepted: bool
    margin: float
    """2 / |w| ([L04] (4))"""
    train_errors: int


@dataclass(frozen=True)
class Trained:
    """Parameters and the decision that belongs to them, and how they came about."""

    theta: np.ndarray
    weights: np.ndarray
    """[P, M]"""
    bias: np.ndarray
    """[M]: the decision on raw scores is ``phi @ weights + bias``"""
    initial_weights: np.ndarray
    initial_bias: np.ndarray
    """The decision before the first step, on the scores of the starting parameters"""
    history: list[Iteration]

    def decide(self, phi: np.ndarray) -> np.ndarray:
        """[N, M]: positive for the first of two classes, or one value a class."""
        return phi @ self.weights + self.bias


def decision(phi: np.ndarray, metric: Metric, machine: Machine) -> tuple[np.ndarray, np.ndarray]:
    """``(weights [P, M], bias [M])`` on raw scores, from the machine of scores that the metric normalised."""
    weights = metric.solve((phi - metric.mean).T @ machine.coefficients)
    return weights, machine.bias - metric.mean @ weights


def margin_of(machine: Machine) -> float:
    """Distance between the two margins, ``2 / |w|`` ([L04] (4))."""
    return float(2.0 / max(np.linalg.norm(machine.weights), np.finfo(float).tiny))


def train(
    score: Callable,
    theta: np.ndarray,
    signs: np.ndarray,
    options: DescentOptions,
    measure_scores: Callable[[np.ndarray], Metric] = measure,
    solve: Callable = solve_binary,
    report: Callable[[Iteration], None] = lambda iteration: None,
) -> Trained:
    """Lower W by gradient steps on ``theta`` with back-off, the machine solved anew after each ([L04] 5.1).

    ``score(theta)`` returns ``(phi [N, P], pullback)``, with ``pullback(d_phi)`` the gradient by theta;
    ``measure_scores(phi)`` the metric; ``solve(z, signs, cost, start)`` a :class:`Machine` of the scores as the metric
    normalises them. A step that raises W is undone and shortened, so W never rises; training ends when an accepted
    step gains less than ``options.tolerance`` of W. With ``options.iterations`` = 0 the result is the initial machine.
    """

    def state(theta, start):
        try:
            phi, pullback = score(theta)
        except MargoError:  # a step so long that some variance is no longer a number above 0
            return None
        if not np.isfinite(phi).all():
            return None
        metric = measure_scores(phi)
        machine = solve(metric.factor(phi), signs, options.cost, start)
        return theta, phi, pullback, metric, machine

    def told(number, change, step, accepted):
        weights, bias = decision(phi, metric, machine)
        decisions = phi @ weights + bias
        classes = np.where(decisions[:, 0] > 0, 1, -1) if decisions.shape[1] == 1 else decisions.argmax(1)
        line = Iteration(
            number, machine.objective, change, step, accepted, margin_of(machine), int((classes != signs).sum())
        )
        report(line)
        return line

    theta, phi, pullback, metric, machine = state(theta, None)
    initial = decision(phi, metric, machine)
    history = [told(0, 0.0, 0.0, True)]
    step, direction, backed_off = options.step, None, False
    for number in range(1, options.iterations + 1):
        if direction is None:
            gradient = pullback(score_gradient(phi, machine.coefficients, metric))
            length = np.linalg.norm(gradient)
            if length == 0.0:
                break
            direction = gradient / length
        tried = state(theta - step * direction, machine.coefficients)
        change = tried[4].objective - machine.objective if tried else np.inf
        accepted = change <= 0.0
        used = step
        if accepted:
            theta, phi, pullback, metric, machine = tried
            step, direction = step * options.growth, None
        else:
            step, backed_off = step * options.shrink, True
        history.append(told(number, change if accepted else 0.0, used, accepted))
        # until the first back-off the step is still growing: a small gain then says nothing about convergence
        small = accepted and backed_off and -change < options.tolerance * abs(machine.objective)
        if small or step < LEAST_STEP:
            break
    return Trained(theta, *decision(phi, metric, machine), *initial, history)

"""Maximum-margin training of a generative kernel: machine and model in turn ([L04] section 5)."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from margo.errors import MargoError
from margo.kernel.metric import METRICS, RIDGE, Metric, measure, score_gradient
from margo.kernel.scorespace import SPACES, select_features
from margo.kernel.svm import Machine, solve_binary
from margo.knobs import Knobs, knob

SUPPORT = 1e-6  # part of C that a support vector's coefficient has at least
LEAST_STEP = 1e-8  # a step backed off below this has found nothing to gain: training ends


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
    step: str = knob(
        "backoff",
        "backoff: a step that raises W is undone, the next is shorter; constant: every gradient times one number (35)",
        ("backoff", "constant"),
    )
    length: float = knob(0.01, "length of the first step, in standard deviations and logarithms of variances", above=0)
    growth: float = knob(1.5, "factor of the step after W fell", least=1, needs={"step": ("backoff",)})
    shrink: float = knob(
        0.5, "factor of the step after W rose and the step was undone", above=0, below=1, needs={"step": ("backoff",)}
    )
    features: int = knob(0, "scores to keep, those of the largest Fisher ratios (54); 0 is all", least=0)
    ridge: float = knob(RIDGE, "part of its diagonal that is added to a block or full metric", least=0)


@dataclass(frozen=True)
class KernelOptions(DescentOptions):
    """The score-space of two models, its metric, and how the kernel in it is trained."""

    space: str = knob("llr", "score-space: likelihoods, their ratio, derivatives; fisher1 is of one model", SPACES)
    weights: bool = knob(False, "derivatives by the mixtures' weights in the score-space, too")
    second: bool = knob(False, "second derivatives by the means in the score-space, too")
    metric: str = knob("diagonal", "metric G of the space: none, its diagonal, its blocks, all of it", METRICS)

    @property
    def whole_space(self) -> str:
        """The space's name with all that is in it."""
        return "-".join([self.space, *["weight"] * self.weights, *["second"] * self.second])


@dataclass(frozen=True)
class Iteration:
    """What one step of training did."""

    iteration: int
    objective: float  # W after the step (of the state kept, where the step was undone)
    change: float  # W kept minus W before: never positive
    step: float
    accepted: bool
    margin: float  # distance between the two margins, 2 / |w| ([L04] (4))
    support: int  # samples that have some weight in the machine
    train_errors: int


@dataclass(frozen=True)
class Trained:
    """Parameters and the decision that belongs to them, and how they came about.

    weights [P, M], 0 for scores that were not kept, bias [M]; the initial ones are of the decision before the first
    step, on the scores of the starting parameters.
    """

    theta: np.ndarray
    weights: np.ndarray
    bias: np.ndarray
    initial_weights: np.ndarray
    initial_bias: np.ndarray
    history: list[Iteration]

    def decide(self, phi: np.ndarray) -> np.ndarray:
        """[N, M]: positive for the first of two classes, or one value a class."""
        return phi @ self.weights + self.bias


def decision(phi: np.ndarray, metric: Metric, machine: Machine) -> tuple[np.ndarray, np.ndarray]:
    """``(weights [P, M], bias [M])`` on raw scores, from the machine of scores that the metric normalised."""
    weights = metric.solve((phi - metric.mean).T @ machine.coefficients)
    return weights, machine.bias - metric.mean @ weights


def train(score, theta, signs, options: DescentOptions, metric: str = "diagonal", blocks=None, solve=solve_binary,
          report=lambda iteration: None) -> Trained:  # fmt: skip
    """Lower W by gradient steps on ``theta``, the machine solved anew after each ([L04] 5.1).

    ``score(theta)`` returns ``(phi [N, P], pullback)``, with ``pullback(d_phi)`` the gradient by theta; ``blocks`` [P]
    are those of a block metric; ``solve(z, signs, cost, start)`` a :class:`Machine` of the scores as the metric
    normalises them; ``report`` is told every :class:`Iteration`. With back-off a step that raises W is undone and
    shortened, so W never rises; training ends when an accepted step gains less than ``options.tolerance`` of W. With
    constant steps, theta - eta grad W (35), W may rise, and does. With ``options.iterations`` = 0 the result is the
    initial machine.
    """
    opened = score(theta)
    first = opened[0]
    keep = select_features(first, signs, options.features) if options.features else slice(None)
    measured = partial(measure, kind=metric, blocks=None if blocks is None else blocks[keep], ridge=options.ridge)

    def state(theta, start, scored=None):
        try:
            phi, pullback = scored or score(theta)
        except MargoError:  # a step so long that some variance is no longer a number above 0
            return None
        if not np.isfinite(phi).all():
            return None
        kept = phi[:, keep]
        space = measured(kept)
        return theta, kept, pullback, space, solve(space.factor(kept), signs, options.cost, start)

    def decided():
        weights, bias = decision(phi, space, machine)
        whole = np.zeros((first.shape[1], weights.shape[1]))
        whole[keep] = weights
        return whole, bias

    def told(number, change, step, accepted):
        weights, bias = decision(phi, space, machine)
        decisions = phi @ weights + bias
        classes = np.where(decisions[:, 0] > 0, 1, -1) if decisions.shape[1] == 1 else decisions.argmax(1)
        margin = float(2.0 / max(np.linalg.norm(machine.weights), np.finfo(float).tiny))
        support = int((np.abs(machine.coefficients).max(1) > SUPPORT * options.cost).sum())
        wrong = int((classes != signs).sum())
        line = Iteration(number, machine.objective, change, step, accepted, margin, support, wrong)
        report(line)
        return line

    theta, phi, pullback, space, machine = state(theta, None, opened)
    initial = decided()
    history = [told(0, 0.0, 0.0, True)]
    step, direction, backed_off, constant = options.length, None, False, options.step == "constant"
    for number in range(1, options.iterations + 1):
        if direction is None:
            d_phi = np.zeros_like(first)
            d_phi[:, keep] = score_gradient(phi, machine.coefficients, space)
            direction = pullback(d_phi)
            length = np.linalg.norm(direction)
            if length == 0.0:
                break
            if constant and number == 1:
                step /= length  # eta
            elif not constant:
                direction = direction / length
        tried = state(theta - step * direction, machine.coefficients)
        change = tried[4].objective - machine.objective if tried else np.inf
        accepted = tried is not None and (constant or change <= 0.0)
        used = step
        if accepted:
            theta, phi, pullback, space, machine = tried
            step, direction = step * (1.0 if constant else options.growth), None
        else:
            step, backed_off = step * options.shrink, True
        history.append(told(number, change if accepted else 0.0, used, accepted))
        # until the first back-off the step is still growing: a small gain then says nothing about convergence
        settled = accepted and (backed_off or constant)
        if (settled and abs(change) < options.tolerance * abs(machine.objective)) or step < LEAST_STEP:
            break
    return Trained(theta, *decided(), *initial, history)

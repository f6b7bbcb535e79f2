"""Knobs of generative kernels, with their defaults and help (standard library only: ``--help`` reads this)."""

from dataclasses import dataclass, field

SPACES = ("ll", "llr", "fisher", "ll-mean", "ll-mean-var", "llr-mean", "llr-mean-var")
METRICS = ("none", "diagonal", "block")


def knob(default, help: str, choices=None):
    return field(default=default, kw_only=True, metadata={"help": help, "choices": choices})


@dataclass(frozen=True)
class MarginOptions:
    """How a kernel is trained for maximum margin ([L04] section 5)."""

    cost: float = knob(1.0, "C of the soft margin")
    tolerance: float = knob(
        1e-4, "stop when a step lowers W by less than this part of it; a larger one regularises more"
    )
    iterations: int = knob(300, "most steps, accepted or undone; 0 leaves the kernel as maximum likelihood made it")
    step: float = knob(0.01, "length of the first step, in standard deviations and logarithms of variances")
    growth: float = knob(1.5, "factor of the step after W fell")
    shrink: float = knob(0.5, "factor of the step after W rose and the step was undone")

    def __post_init__(self):
        wrong = [
            f"--{name} is {getattr(self, name)}, expected {what}"
            for name, what, good in (
                ("cost", "a number above 0", self.cost > 0),
                ("tolerance", "at least 0", self.tolerance >= 0),
                ("iterations", "at least 0", self.iterations >= 0),
                ("step", "a number above 0", self.step > 0),
                ("growth", "at least 1", self.growth >= 1),
                ("shrink", "a number between 0 and 1", 0 < self.shrink < 1),
            )
            if not good
        ]
        if wrong:
            raise ValueError("; ".join(wrong))


@dataclass(frozen=True)
class KernelOptions(MarginOptions):
    """A score-space, its metric, and how the kernel in it is trained."""

    space: str = knob("llr", "score-space: likelihood ratio of two models, and derivatives", ("llr", "llr-mean",
                                                                                           "llr-mean-var"))  # fmt: skip
    metric: str = knob("diagonal", "metric G of the space: none, its diagonal, its blocks", METRICS)

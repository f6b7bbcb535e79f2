"""Knobs of the GMM classifiers, with their defaults and help (standard library only: ``--help`` reads this)."""

from dataclasses import dataclass, field

COVARIANCES = ("diagonal", "full", "dplr")
CRITERIA = ("cl", "mm")
OBJECTIVES = ("ll", "ll-lm", "ll-cll", "lm", "cll")


def knob(default, help: str, choices=None):
    return field(default=default, kw_only=True, metadata={"help": help, "choices": choices})


def require(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)


@dataclass(frozen=True)
class EmOptions:
    """Maximum likelihood by EM."""

    mixtures: int = knob(1, "Gaussians per class (fewer where a class has fewer distinct samples)")
    covariance: str = knob("diagonal", "shape of the covariances", COVARIANCES)
    tied: bool = knob(False, "one covariance for all Gaussians of all classes")
    rank: int = knob(25, "columns of the low-rank part of dplr covariances")
    start: str = knob("kmeans", "where the means start: k-means centres or random samples", ("kmeans", "random"))
    restarts: int = knob(1, "starts, of which the likeliest after training is kept")
    iterations: int = knob(100, "most iterations")
    tolerance: float = knob(1e-5, "stop when the log-likelihood per sample rises by less than this")
    ridge: float = knob(1e-3, "added to every variance, as a part of the data's mean variance ([DA08] (4))")
    uniform_priors: bool = knob(False, "equal class priors instead of the classes' frequencies")

    def __post_init__(self):
        require(self.mixtures >= 1, f"--mixtures is {self.mixtures}, expected at least 1")
        require(self.restarts >= 1, f"--restarts is {self.restarts}, expected at least 1")
        require(self.ridge >= 0, f"--ridge is {self.ridge}, expected at least 0")
        require(self.rank >= 1, f"--rank is {self.rank}, expected at least 1")


@dataclass(frozen=True)
class EbwOptions:
    """Conditional likelihood or margin by the extended Baum-Welch algorithm [PW10]."""

    criterion: str = knob("mm", "cl: conditional likelihood; mm: margin", CRITERIA)
    iterations: int = knob(200, "most iterations")
    factor: float = knob(5.0, "F: times the smallest D that keeps the model sound")
    exponent: float = knob(0.5, "lambda: scale of the log margin (mm)")
    sharpness: float = knob(10.0, "eta: how closely the competitors' soft maximum follows the maximum (mm)")
    backtrack: bool = knob(False, "double D until the criterion does not fall, instead of keeping the best iterate")
    tolerance: float = knob(1e-7, "stop when the criterion per sample changes by less than this")
    floor: float = knob(1e-3, "least variance, as a part of the feature's variance")

    def __post_init__(self):
        require(self.factor > 1, f"--factor is {self.factor}, expected more than 1")
        require(self.exponent > 0, f"--exponent is {self.exponent}, expected a positive number")
        require(self.sharpness > 0, f"--sharpness is {self.sharpness}, expected a positive number")


@dataclass(frozen=True)
class HybridOptions:
    """Likelihood with margin or conditional likelihood by ADAM on DPLR Gaussians [R18]."""

    objective: str = knob("ll-lm", "ll, lm, cll or a mixture of two", OBJECTIVES)
    generative: float = knob(0.2458, "lambda: part of the log-likelihood in a mixture")
    margin: float = knob(59.7, "gamma: desired log margin (lm)")
    sharpness: float = knob(10.0, "nu: how closely the competitors' soft maximum follows the maximum (lm)")
    labelled: float = knob(0.5, "kappa: part of the labelled samples in the likelihood, where some have no label")
    rank: int = knob(25, "columns of the low-rank part of the covariances (0: diagonal)")
    precision: bool = knob(True, "diagonal plus low rank in the precision instead of the covariance")
    ridge: float = knob(1e-3, "epsilon: least diagonal of the parametrised matrix")
    rate: float = knob(0.00207, "step size of ADAM")
    batch: int = knob(100, "samples a step")
    epochs: int = knob(25, "passes over the data")
    patience: int = knob(0, "stop after this many epochs without a better validation error (0: never)")
    decay: float = knob(0.05, "step size at the last epoch, as a part of the first")

    def __post_init__(self):
        require(0 <= self.generative <= 1, f"--generative is {self.generative}, expected a number from 0 to 1")
        require(0 <= self.labelled <= 1, f"--labelled is {self.labelled}, expected a number from 0 to 1")
        require(self.rank >= 0, f"--rank is {self.rank}, expected at least 0")
        require(self.ridge > 0, f"--ridge is {self.ridge}, expected a positive number")
        require(self.batch >= 1, f"--batch is {self.batch}, expected at least 1")


@dataclass(frozen=True)
class MarginOptions:
    """Max-margin Gaussians [DA08]."""

    cost: float = knob(1.0, "C: price of a margin violation")
    scale: float = knob(0.25, "s: weight of the linear and constant features; large: they carry no ridge")
    balance: float = knob(0.4, "features are divided by their standard deviation to this power (0: not, 1: wholly)")
    epochs: int = knob(60, "passes over the data")
    gap: float = knob(0.005, "stop at this relative duality gap")

    def __post_init__(self):
        require(self.cost > 0, f"--cost is {self.cost}, expected a positive number")
        require(self.scale > 0, f"--scale is {self.scale}, expected a positive number")
        require(0 <= self.balance <= 1, f"--balance is {self.balance}, expected a number from 0 to 1")

"""Knobs of maximum-likelihood training, with their defaults and help (standard library only: ``--help`` reads this)."""

from dataclasses import dataclass, field

TYING = ("none", "state", "global")


def knob(default, help: str, choices=None):
    return field(default=default, kw_only=True, metadata={"help": help, "choices": choices})


@dataclass(frozen=True)
class MlOptions:
    """Baum-Welch."""

    tie_variances: str = knob("none", "which Gaussians share one variance: none, those of a state, all", TYING)
    variance_floor: float = knob(0.01, "smallest variance, as a part of the data's own (HTK's varFloor1)")
    dead_weight: float = knob(
        1e-5, "a component whose weight falls to this is dead until the next split (HTK's MINMIX)"
    )
    prune: float = knob(0.0, "component posteriors up to this are left out (HTK: 4.5e-5)")
    iterations: int = knob(20, "most iterations at each number of mixtures")
    tolerance: float = knob(0.01, "stop when the log-likelihood per frame rises by less than this")
    double: bool = knob(False, "matrix products in float64 instead of float32")
    anneal: int = knob(
        0, "first passes behind a flat start, with one variance for all, while the log-likelihoods' scale rises to 1"
    )
    anneal_from: float = knob(0.01, "the scale that they start with")

    def __post_init__(self):
        for name in ("variance_floor", "dead_weight", "prune", "tolerance"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"--{name.replace('_', '-')} is {getattr(self, name)}, expected at least 0")
        if self.iterations < 1:
            raise ValueError(f"--iterations is {self.iterations}, expected at least 1")
        if self.anneal < 0 or not 0 < self.anneal_from <= 1:
            raise ValueError(f"--anneal is {self.anneal} from {self.anneal_from}, expected 0 or more from 0 to 1")
        if self.tie_variances not in TYING:
            raise ValueError(f"--tie-variances is {self.tie_variances}, expected one of {', '.join(TYING)}")


PARAMETERS = ("means", "variances", "weights", "transitions")


def _require(options, rules: dict) -> None:
    """``rules``: option -> (what it must be, test); all that are broken are named at once."""
    broken = [
        f"--{name.replace('_', '-')} is {getattr(options, name)}, expected {what}"
        for name, (what, test) in rules.items()
        if not test(getattr(options, name))
    ]
    if broken:
        raise ValueError("; ".join(broken))


POSITIVE = ("a positive number", lambda value: value > 0)
NOT_NEGATIVE = ("at least 0", lambda value: value >= 0)
ONE_OR_MORE = ("at least 1", lambda value: value >= 1)


@dataclass(frozen=True)
class MceOptions:
    """Minimum classification error."""

    competitors: int = knob(3, "strings (or other words) that each utterance is set against")
    slope: float = knob(3.0, "of the loss, over the standard deviation of the measure on train")
    offset: float = knob(0.0, "added inside the loss's sigmoid")
    eta: float = knob(20.0, "how nearly the best competitor stands for all of them")
    parameters: tuple[str, ...] = knob(("means",), "kinds of parameters to train", PARAMETERS)
    first_step: float = knob(0.05, "first step of Rprop, in standard deviations (means) or nats")
    most_step: float = knob(0.1, "largest step of Rprop")
    variance_step: float = knob(0.2, "steps of log standard deviations, as a part of those of means")
    iterations: int = knob(18, "iterations")
    refresh: int = knob(6, "iterations between searches for competitors and their paths")
    check: int = knob(6, "iterations between trials on the development data")

    def __post_init__(self):
        _require(self, {
            "competitors": ONE_OR_MORE, "slope": POSITIVE, "eta": POSITIVE, "first_step": POSITIVE,
            "most_step": POSITIVE, "variance_step": POSITIVE, "iterations": ONE_OR_MORE, "refresh": ONE_OR_MORE,
            "check": ONE_OR_MORE, "parameters": ("one or more kinds", len),
        })  # fmt: skip


@dataclass(frozen=True)
class MmiOptions:
    """Maximum mutual information by extended Baum-Welch."""

    acoustic_scale: float = knob(0.03, "kappa: log-likelihoods of frames are multiplied by this")
    growth: float = knob(2.0, "E: the smoothing constant D is this times the denominator's occupancy")
    tau: float = knob(0.0, "I-smoothing: frames of each Gaussian's own data added to its numerator")
    boost: float = knob(0.0, "boosted MMI: how much less a right word counts in the denominator")
    parameters: tuple[str, ...] = knob(("means", "variances"), "kinds of parameters to train", PARAMETERS)
    iterations: int = knob(6, "iterations")
    check: int = knob(2, "iterations between trials on the development data")
    double: bool = knob(False, "matrix products in float64 instead of float32")

    def __post_init__(self):
        _require(self, {
            "acoustic_scale": POSITIVE, "growth": POSITIVE, "tau": NOT_NEGATIVE, "boost": NOT_NEGATIVE,
            "iterations": ONE_OR_MORE, "check": ONE_OR_MORE, "parameters": ("one or more kinds", len),
        })  # fmt: skip


@dataclass(frozen=True)
class MmOptions:
    """Maximum margin by extended Baum-Welch."""

    competitors: int = knob(3, "strings (or other words) that each utterance is set against")
    slope: float = knob(1.0, "lambda of the margin, over the standard deviation of its logarithm on train")
    eta: float = knob(20.0, "how nearly the best competitor stands for all of them")
    growth: float = knob(6.0, "E: the smoothing constant D is this times what counts for and against a Gaussian")
    parameters: tuple[str, ...] = knob(("means",), "kinds of parameters to train", PARAMETERS)
    iterations: int = knob(18, "iterations")
    refresh: int = knob(6, "iterations between searches for competitors and their paths")
    check: int = knob(6, "iterations between trials on the development data")

    def __post_init__(self):
        _require(self, {
            "competitors": ONE_OR_MORE, "slope": POSITIVE, "eta": POSITIVE, "growth": POSITIVE,
            "iterations": ONE_OR_MORE, "refresh": ONE_OR_MORE, "check": ONE_OR_MORE,
            "parameters": ("one or more kinds", len),
        })  # fmt: skip

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

    def __post_init__(self):
        for name in ("variance_floor", "dead_weight", "prune", "tolerance"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"--{name.replace('_', '-')} is {getattr(self, name)}, expected at least 0")
        if self.iterations < 1:
            raise ValueError(f"--iterations is {self.iterations}, expected at least 1")
        if self.tie_variances not in TYING:
            raise ValueError(f"--tie-variances is {self.tie_variances}, expected one of {', '.join(TYING)}")

"""Knobs of large-margin training (standard library only: ``--help`` reads this)."""

from dataclasses import dataclass

from margo.estimate.options import knob

METHODS = ("auto", "dual", "conic", "gradient", "socp", "sdp", "gd")


@dataclass(frozen=True)
class LmeOptions:
    """Large-margin estimation, [LJ07] and MATH of :mod:`margo.estimate.lme`."""

    method: str = knob("auto", "solver of an epoch's program; gd is the baseline, ascent of a soft minimum", METHODS)
    tokens: str = knob("all", "support tokens: all, or this many with the smallest margins")
    threshold: float = knob(0.0, "take only tokens whose margin is at most this (gamma); 0 for no bound")
    hard: bool = knob(False, "maximise the smallest margin of tokens that are recognised, as the paper does")
    misrecognised: bool = knob(False, "with --hard, count misrecognised tokens too")
    nu: float = knob(0.3, "share of the pairs that decide the soft margin: C = 1 / (nu pairs)")
    radius: str = knob("auto", "r^2 / K of the ball around the means an epoch; auto adapts it")
    competitors: int = knob(3, "competing strings a token")
    per_frame: bool = knob(False, "divide margins by the number of frames")
    epochs: int = knob(5, "most epochs")
    tolerance: float = knob(1e-3, "relative gap to which an epoch's program is solved")

    def __post_init__(self):
        faults = []
        if self.tokens != "all" and not (self.tokens.isdigit() and int(self.tokens) > 0):
            faults.append(f"--tokens is {self.tokens}: give all, or a whole number above 0")
        if not 0 < self.nu <= 1:
            faults.append(f"--nu is {self.nu}: give a share above 0, up to 1")
        if self.radius != "auto":
            try:
                good = float(self.radius) > 0
            except ValueError:
                good = False
            if not good:
                faults.append(f"--radius is {self.radius}: give auto, or r^2 / K above 0 (0.001 to 0.1 is usual)")
        for name, least in (("competitors", 1), ("epochs", 1)):
            if getattr(self, name) < least:
                faults.append(f"--{name} is {getattr(self, name)}: give {least} or more")
        if self.threshold < 0 or not self.tolerance > 0:
            faults.append("--threshold and --tolerance must be positive")
        if faults:
            raise ValueError("; ".join(faults))

"""Large-margin training as a criterion: the program of each epoch in a ball around the means, a trust region.

With the means the deviations may move, as further coordinates of the same program (:func:`make_pairs` of
:mod:`margo.estimate.lme.tokens`), where it is exact to first order only. It also assumes that the Viterbi paths stay
what they were. So each step is followed by a search of the training
data; one that did not raise the true value of what the program maximises is taken back and tried in a smaller ball. A
radius that is given is not a region of trust: every step is taken as it is, unless --reject ends training at the first
that does not raise the value ([LJ07] Algorithm 1). Since single epochs zigzag, dev judges the mean of the last few too.
"""

from dataclasses import dataclass, replace

import numpy as np

from margo.estimate.criterion import Criterion, PatienceOptions
from margo.estimate.lme.ascent import ascend, soft_least
from margo.estimate.lme.model import move
from margo.estimate.lme.solver import METHODS, solve
from margo.estimate.lme.tokens import Pairs, choose_tokens, make_pairs, make_problem, value_of
from margo.estimate.paths import find_paths, searcher
from margo.knobs import knob, real, whole
from margo.model.hmm import HmmSet

QUANTILES = (5, 25, 50, 75, 95)  # per cent, of the margins shown by epoch
TRIES = 5  # balls, each half the last, before an epoch gives up
START_RADIUS = 0.1  # r^2 / K that auto begins with
LEAST_NU = 0.1  # that narrowing comes to
WIDE = 20  # times the share of tokens that a start gets wrong: the most that nu begins with
SHARPNESS, SHARPER, SHARPEST = 2.0, 1.5, 50.0  # of lme-gd's soft minimum: at first, times an epoch, at last


@dataclass(frozen=True)
class LmeOptions(PatienceOptions):
    """Large-margin estimation, [LJ07] and README.md of :mod:`margo.estimate.lme`."""

    method: str = knob("auto", "solver of an epoch's program; gd is the baseline, ascent of a soft minimum",
                       (*METHODS, "gd"))  # fmt: skip
    tokens: str = knob("all", "support tokens: all, or this many with the smallest margins")
    threshold: float = knob(0.0, "take only tokens whose margin is at most this (gamma); 0 for no bound", least=0)
    hard: bool = knob(False, "maximise the smallest margin of tokens that are recognised, as the paper does")
    misrecognised: bool = knob(False, "count misrecognised tokens too", needs={"hard": True})
    parameters: tuple[str, ...] = knob(("means", "variances"), "kinds of parameters to move; the paper's are means",
                                       ("means", "variances"))  # fmt: skip
    nu: float = knob(1.0, "share of the pairs that decide the soft margin at first: C = 1 / (nu pairs); less where the "
                       "start is good", above=0, most=1, needs={"hard": False})  # fmt: skip
    narrowing: float = knob(0.85, f"nu is multiplied by this after each epoch, down to {LEAST_NU}; 1 keeps it", above=0,
                            most=1, needs={"hard": False})  # fmt: skip
    radius: str = knob("auto", "r^2 / K of the ball around the means an epoch; auto adapts it, a number stays")
    reject: bool = knob(False, "end at the first epoch that does not raise the value (all are taken otherwise)")
    update: str = knob("augmentation", "what to do with the widths of a program that is not tight: [LJ07] IV-G",
                       ("augmentation", "projection"))  # fmt: skip
    average: int = knob(4, "dev judges the mean of the last this many epochs' means too", least=1)
    competitors: int = knob(3, "competing strings a token", least=1)
    per_frame: bool = knob(True, "divide margins by the number of frames; the paper's are not")
    epochs: int = knob(24, "most epochs", least=1)
    patience: int = knob(6, "end after this many epochs without a better model; 0: never", least=0)
    tolerance: float = knob(1e-3, "relative gap to which an epoch's program is solved", above=0)

    def faults(self) -> list[str]:
        faults = super().faults()
        if "means" not in self.parameters:
            faults.append(f"--parameters is {' '.join(self.parameters)}, expected means, or means variances")
        if self.tokens != "all" and not _positive(self.tokens, whole):
            faults.append(f"--tokens is {self.tokens}, expected all, or a whole number above 0")
        if self.radius != "auto" and not _positive(self.radius):
            faults.append(f"--radius is {self.radius}, expected auto, or r^2 / K above 0 (0.001 to 0.1 is usual)")
        if self.reject and self.radius == "auto":
            faults.append("--reject needs a --radius that is a number; auto rejects and tries a smaller ball")
        return faults


def _positive(text: str, number=real) -> bool:
    try:
        return number(text) > 0
    except ValueError:
        return False


def next_radius(radius: float, gained: float) -> float:
    """A larger ball where the step gave most of what was predicted, a smaller one where it gave little."""
    return radius * (1.5 if gained > 0.8 else 0.6 if gained < 0.4 else 1.0)


class Lme(Criterion):
    """An iteration is an epoch. Memory: the radius, r^2 / K of the ball to try next; nu, 0 where the margin is hard;
    sharpness of the soft minimum, in units of one over the margins' spread; recent, the last epochs' means and log
    variances [n, K, 2 D].

    nu falls from epoch to epoch: at first many pairs shape the model, as what generalises to speakers never heard
    does; in the end the few that are still wrong, or nearly, decide. A start that gets few tokens wrong begins there.
    """

    def __init__(self, options):
        super().__init__(options)
        self.name = "lme-gd" if options.method == "gd" else "lme-sdp"

    @property
    def limit(self) -> int:
        return self.options.epochs

    @property
    def widens(self) -> bool:
        return "variances" in self.options.parameters

    def begin(self, hmms: HmmSet) -> dict:
        radius = START_RADIUS if self.options.radius == "auto" else float(self.options.radius)
        nu = 0.0 if self.options.hard else self.options.nu
        return {"radius": radius, "nu": nu, "sharpness": SHARPNESS, "recent": self.recent(None, hmms)}

    def candidates(self, hmms: HmmSet, memory: dict) -> list[HmmSet]:
        if len(memory["recent"]) == 1:
            return [hmms]
        means, logs = np.split(memory["recent"].mean(axis=0), 2, axis=1)
        return [hmms, hmms.with_pool(replace(hmms.pool, means=means, covariances=np.exp(logs)))]

    def value(self, margins: np.ndarray, beta: float, nu: float) -> float:
        """What an epoch climbs and is judged by: the soft minimum of lme-gd, or what the program maximises."""
        return soft_least(margins, beta) if self.options.method == "gd" else value_of(margins, nu or None)

    def beta(self, margins: np.ndarray, memory: dict) -> float:
        return memory["sharpness"] / max(margins.std(), 1e-12 + 1e-9 * np.abs(margins).max())

    def measure(self, hmms: HmmSet, memory: dict, corpus, steps: int, final: bool) -> tuple[Pairs, dict]:
        pairs = self.search(hmms, corpus)
        if not steps and memory["nu"] > LEAST_NU:  # what is right already is not to be unlearnt
            wrong = float((pairs.token_margins < 0).mean())
            memory = {**memory, "nu": min(memory["nu"], max(LEAST_NU, WIDE * wrong))}
        return pairs, memory

    def search(self, hmms: HmmSet, corpus) -> Pairs:
        """Pairs of all training tokens on paths found with ``hmms`` itself; the last are kept for the next epoch."""
        none = Pairs.none((1 + self.widens) * hmms.pool.dimension, corpus.scratch.rows)
        return corpus.remember(hmms, lambda: corpus.total(self.pairs, hmms, corpus.strings(hmms), none).settled())

    def pairs(self, hmms: HmmSet, utterances, listed) -> Pairs:
        """Of a chunk."""
        paths = find_paths(searcher(hmms), utterances, self.options.competitors, listed)
        return make_pairs(hmms, paths.frames(utterances), paths, self.options.per_frame, self.widens)

    def support(self, pairs: Pairs) -> np.ndarray:
        """The tokens that count, bool [N]."""
        options = self.options
        number = None if options.tokens == "all" else int(options.tokens)
        recognised = options.hard and not options.misrecognised
        return choose_tokens(pairs.token_margins, number, options.threshold or None, recognised)

    def report(self, pairs: Pairs, memory: dict) -> dict:
        chosen, margins = self.support(pairs), pairs.token_margins
        support = pairs.margins[chosen[pairs.token]]
        return {
            "objective": self.value(support, self.beta(support, memory), memory["nu"]),
            "frames": int(pairs.frames.sum()),
            "tokens": int(chosen.sum()),
            "pairs": len(support),
            "margin_min": float(margins[chosen].min()),
            "margin_mean": float(margins.mean()),
            "train_errors": int((margins < 0).sum()),
            "margin_quantiles": np.percentile(margins, QUANTILES).round(4).tolist(),
            "dropped": len(pairs.dropped),
        }

    def update(self, hmms: HmmSet, pairs: Pairs, memory: dict, corpus):
        """The best means in the ball, if their margins, measured anew, are better than before; else in half of it.

        Report: predicted and reached value, rho, gap, widest (augmentation), solver, radius, and the solver's notes.
        """
        chosen, radius, adapts = self.support(pairs), memory["radius"], self.options.radius == "auto"
        support, gaussians = pairs.select(chosen), hmms.pool.n_gaussians
        beta, nu = self.beta(support.margins, memory), memory["nu"]
        before = self.value(support.margins, beta, nu)
        for _ in range(TRIES if adapts else 1):
            problem = make_problem(support, gaussians, radius * gaussians, nu or None)
            shift, widths, facts = self.solve(problem, beta)
            candidate = move(hmms, shift, widths if self.options.update == "augmentation" else 0 * widths, radius)
            reached = self.value(self.search(candidate, corpus).select(chosen).margins, beta, nu)
            report = {**facts, "before": before, "reached": reached, "widest": float(widths.max(initial=0.0)),
                      "radius": radius}  # fmt: skip
            if reached > before or not (adapts or self.options.reject):
                break
            radius /= 2
        else:  # no ball small enough: this is as far as the criterion goes
            return hmms, None, report
        if adapts:
            gained = (reached - before) / max(facts["predicted"] - before, 1e-12)
            radius = next_radius(radius, gained)
        memory = {"radius": radius, "sharpness": min(SHARPER * memory["sharpness"], SHARPEST),
                  "nu": self.options.narrowing * nu if nu > LEAST_NU else nu,
                  "recent": self.recent(memory["recent"], candidate)}  # fmt: skip
        return candidate, memory, report

    def recent(self, kept: np.ndarray | None, hmms: HmmSet) -> np.ndarray:
        """The last epochs' models with ``hmms`` behind them; it alone where it has just gained a dimension."""
        new = np.concatenate([hmms.pool.means, np.log(hmms.pool.variances)], axis=1)[None]
        known = kept is not None and kept.shape[1:] == new.shape[1:]
        return np.concatenate([kept, new])[-self.options.average :] if known else new

    def solve(self, problem, beta: float) -> tuple[np.ndarray, np.ndarray, dict]:
        """``(shift, widths, facts)`` of the epoch's program by the method asked for."""
        if self.options.method == "gd":
            shift, values = ascend(problem, beta)
            return shift, np.zeros(len(shift)), {"predicted": values[-1], "solver": "gd"}
        solution = solve(problem, self.options.method, self.options.tolerance)
        facts = {"predicted": solution.objective, "rho": solution.rho, "gap": solution.gap,
                 "solver": f"{solution.method} {solution.solver}"}  # fmt: skip
        if solution.notes:
            facts["notes"] = "; ".join(solution.notes)
        return solution.shift, solution.augmentation, facts

    def cost(self, report: dict, steps: int) -> float:
        """Misrecognised training tokens; of equals, and there may soon be none, the larger margin has the lower cost.
        The soft minimum of lme-gd grows sharper by the epoch, so that its own values do not compare."""
        margin = report["margin_min" if self.options.method == "gd" else "objective"]
        return report["train_errors"] + float(0.5 - np.arctan(margin) / np.pi)

    def plots(self, reports: list[dict]) -> list[dict]:
        """How the margins of all training tokens are spread, epoch by epoch; and what each epoch's program promised of
        its objective beside what was measured anew."""
        spread = [{"name": f"{percent} %", "x": [report["iteration"] - 1 for report in reports],
                   "y": [report["margin_quantiles"][i] for report in reports]} for i, percent in enumerate(QUANTILES)]
        steps = [report for report in reports if "reached" in report]
        gains = [
            {"name": name, "x": [report["iteration"] for report in steps], "y": [report[key] for report in steps]}
            for name, key in (("before", "before"), ("by the program", "predicted"), ("measured anew", "reached"))
        ]
        note = "That share of the training tokens has a smaller margin; below 0 a token is misrecognised."
        what = "smallest margin" if self.options.hard else "what is maximised"
        common = {"kind": "line", "x_label": "epoch", "y_label": "margin, nats" + " a frame" * self.options.per_frame}
        return [{"title": "margins of training tokens", "series": spread, "note": note, **common},
                {"title": f"{what} of the support tokens", "series": gains, **common}]  # fmt: skip

"""Large-margin training, an epoch at a time: search, pairs, program, step, and a look at what the step really did.

The program assumes that the Viterbi paths stay what they were. So after each step the training data are searched again,
and a step that did not raise the true value of what the program maximises is taken back and tried in a smaller ball.
"""

import time
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from margo.estimate.lme import solve
from margo.estimate.lme.ascent import ascend
from margo.estimate.lme.model import move
from margo.estimate.lme.tokens import Pairs, choose_tokens, make_pairs, make_problem, value_of
from margo.estimate.paths import find_paths, searcher
from margo.formats.models import pack_many, unpack_many
from margo.model.hmm import HmmSet
from margo.tasks import speech
from margo.tasks.passes import count_errors

QUANTILES = (5, 25, 50, 75, 95)  # per cent, of the margins shown by epoch
TRIES = 5  # balls, each half the last, before an epoch gives up
START_RADIUS = 0.05  # r^2 / K that auto begins with


def measure_chunk(hmms: HmmSet, competitors: int, per_frame: bool, chunk) -> Pairs:
    """Pairs of a chunk on paths found with ``hmms`` itself."""
    utterances = speech.load(chunk, hmms)
    paths = find_paths(searcher(hmms), utterances, competitors)
    return make_pairs(hmms, paths.frames(utterances), paths, per_frame)


@dataclass(frozen=True, eq=False)
class LmeState:
    """The current model and ball (r^2 / K), and the best model so far with its number of errors (dev, else train)."""

    hmms: HmmSet
    radius: float
    best: HmmSet
    best_errors: int


class LmeTraining:
    """Start, advance, save and load of the epoch loop."""

    def __init__(self, options, hmms: HmmSet, data: speech.Speech, dev: speech.Speech | None, where, step):
        self.options, self.hmms, self.data, self.dev = options, hmms, data, dev
        self.where, self.step = where, step
        self.told: set = set()
        self.last: tuple[HmmSet, Pairs] | None = None  # of the last search, to be used again by the next epoch

    def start(self) -> LmeState:
        radius = START_RADIUS if self.options.radius == "auto" else float(self.options.radius)
        return LmeState(self.hmms, radius, self.hmms, sum(self.errors(self.hmms, self.measure(self.hmms)).values()))

    def measure(self, hmms: HmmSet) -> Pairs:
        if self.last is None or self.last[0] is not hmms:
            function = partial(measure_chunk, hmms, self.options.competitors, self.options.per_frame)
            pairs = speech.total(function, self.data, self.where)
            speech.check_dropped(pairs.dropped, self.data, self.step, self.told)
            self.last = (hmms, pairs)
        return self.last[1]

    def errors(self, hmms: HmmSet, pairs: Pairs) -> dict[str, int]:
        """What the best model is picked by, their sum: word and string errors on dev; without dev, train errors."""
        if self.dev is None:
            return {"train_errors": int((pairs.token_margins < 0).sum())}
        words, _, strings, _ = speech.total(partial(count_errors, hmms), self.dev, self.where).tolist()
        return {"dev_errors": words, "dev_wrong": strings}

    def advance(self, epoch: int, state: LmeState):
        options, hmms = self.options, state.hmms
        nu = None if options.hard else options.nu
        clock = Clock()
        pairs = self.measure(hmms)
        clock.lap("decode")
        number = None if options.tokens == "all" else int(options.tokens)
        recognised = options.hard and not options.misrecognised
        chosen = choose_tokens(pairs.token_margins, number, options.threshold or None, recognised)
        support = pairs.select(chosen)
        before = value_of(support.margins, nu)
        clock.lap("build")
        radius, accepted = state.radius, False
        for _ in range(TRIES):
            problem = make_problem(support, hmms.pool.n_gaussians, radius * hmms.pool.n_gaussians, nu)
            clock.lap("build")
            shift, widths, facts = self.solve(problem)
            clock.lap("solve")
            candidate = move(hmms, shift, widths, radius)
            after = self.measure(candidate)
            clock.lap("decode")
            reached = value_of(after.select(chosen).margins, nu)
            accepted = reached > before
            if accepted:
                break
            radius /= 2
        if not accepted:  # no ball small enough: this is as far as the criterion goes
            candidate, after, reached = hmms, pairs, before
            self.last = (hmms, pairs)
        errors = self.errors(candidate, after)
        clock.lap("decode")
        report = {
            "objective": reached,
            "frames": int(pairs.frames.sum()),
            "tokens": int(chosen.sum()),
            "pairs": len(support.margins),
            "before": before,
            "predicted": facts["objective"],
            "margin_min": float(after.token_margins[chosen].min()),
            "margin_mean": float(after.token_margins.mean()),
            "rho": facts["rho"],
            "gap": facts["gap"],
            "widest": float(widths.max(initial=0.0)),
            "solver": facts["solver"],
            "radius": radius,
            "train_errors": int((after.token_margins < 0).sum()),
            "margin_quantiles": np.percentile(after.token_margins, QUANTILES).round(4).tolist(),
            **errors,
            **clock.report(),
        }
        if facts["notes"] and epoch == 1:
            self.step.say(f"{self.step.name}: {'; '.join(facts['notes'])}")
        gained = (reached - before) / max(facts["objective"] - before, 1e-12)
        radius = next_radius(radius, gained) if options.radius == "auto" else radius
        cost = sum(errors.values())
        best = candidate if cost < state.best_errors else state.best
        state = LmeState(candidate, radius, best, min(cost, state.best_errors))
        return state, report, not accepted or epoch == options.epochs

    def solve(self, problem):
        """``(shift, widths, facts)`` of the epoch's program by the method asked for."""
        if self.options.method == "gd":
            shift, values = ascend(problem)
            facts = {"objective": values[-1], "rho": None, "gap": None, "solver": "gd", "notes": ()}
            return shift, np.zeros(len(shift)), facts
        found = solve(problem, self.options.method, self.options.tolerance)
        facts = {"objective": found.objective, "rho": found.rho, "gap": found.gap,
                 "solver": f"{found.method} {found.solver}", "notes": found.notes}  # fmt: skip
        return found.shift, found.augmentation, facts

    def save(self, state: LmeState):
        models, arrays = pack_many({"now": state.hmms, "best": state.best})
        return {"models": models, "radius": state.radius, "best_errors": state.best_errors}, arrays

    def load(self, meta: dict, arrays: dict) -> LmeState:
        models = unpack_many(meta["models"], arrays)
        return LmeState(models["now"], meta["radius"], models["best"], meta["best_errors"])


def margin_plot(reports: list[dict]) -> dict:
    """How the margins of all training tokens are spread, epoch by epoch."""
    epochs = [report["iteration"] for report in reports]
    series = [
        {"name": f"{percent} %", "x": epochs, "y": [report["margin_quantiles"][i] for report in reports]}
        for i, percent in enumerate(QUANTILES)
    ]
    note = "That share of the training tokens has a smaller margin; below 0 a token is misrecognised."
    return {"title": "margins of training tokens", "kind": "line", "series": series, "x_label": "epoch",
            "y_label": "margin, nats", "note": note}  # fmt: skip


def next_radius(radius: float, gained: float) -> float:
    """A larger ball where the step gave most of what was predicted, a smaller one where it gave little."""
    return radius * (1.5 if gained > 0.8 else 0.6 if gained < 0.4 else 1.0)


def sweep(options, hmms: HmmSet, data: speech.Speech, dev: speech.Speech, where, step) -> list[dict]:
    """Dev errors (words and strings) after 0, 1, 2 ... epochs for each of ``options.radii``."""
    curves, start = [], None
    for radius in options.radii:
        training = LmeTraining(replace(options, radius=str(radius)), hmms, data, dev, where, step)
        training.last = start  # every sweep begins with the same search
        state, done, epoch = training.start(), False, 0
        start, errors = training.last, [state.best_errors]
        while not done:
            epoch += 1
            state, report, done = training.advance(epoch, state)
            errors.append(report["dev_errors"] + report["dev_wrong"])
            step.say(f"{step.name}: r^2/K {radius:g}, epoch {epoch}: {errors[-1]} dev errors")
        curves.append({"radius": radius, "dev_errors": errors})
    return curves


def sweep_plots(curves: list[dict]) -> list[dict]:
    """[LJ07] Figure 1, errors of the best epoch against the radius, and Figure 2, errors by epoch for each radius."""
    best = {"name": "best epoch", "x": [c["radius"] for c in curves], "y": [min(c["dev_errors"]) for c in curves]}
    by_epoch = [
        {"name": f"{c['radius']:g}", "x": list(range(len(c["dev_errors"]))), "y": c["dev_errors"]} for c in curves
    ]
    label = {"y_label": "dev errors (words + strings)", "kind": "line"}
    return [
        {"title": "errors against r²/K", "series": [best], "x_label": "r²/K", "x_log": True, **label},
        {"title": "errors by epoch, for each r²/K", "series": by_epoch, "x_label": "epoch", **label},
    ]


class Clock:
    """Wall seconds of the parts of an epoch."""

    def __init__(self):
        self.seconds, self.mark = {"decode": 0.0, "build": 0.0, "solve": 0.0}, time.perf_counter()

    def lap(self, part: str) -> None:
        now = time.perf_counter()
        self.seconds[part] += now - self.mark
        self.mark = now

    def report(self) -> dict:
        return {f"{part}_seconds": round(value, 3) for part, value in self.seconds.items()}

"""The one trainer of HMMs: pass, update, trial on dev, the best model kept, all saved after each iteration.

Iteration i first measures the model that i - 1 steps have made of the start (the first one: the start itself), and
reports it: what the criterion says of it and, every ``check`` iterations, its errors on dev. Then it takes a step. One
more pass than there are steps measures the last model. Where there are several starts, the next one follows when the
last has been trained to its end, and in the end dev judges the mean of the best models from all of them too. Each errs
in its own way, and was picked as the luckiest of many on dev, which the mean was not; so it is the result if it errs
less there than they do on average, and not clearly more than the best of them (:func:`may_be_chance`). Else the result
is the model that did best on dev; without dev, by the criterion's own cost on the training data; or the last one, if
the criterion does not pick. What a criterion is, :mod:`margo.estimate.criterion` says; the loop knows nothing else.
"""

from dataclasses import dataclass, replace

import numpy as np

from margo.formats.models import pack_many, unpack_many
from margo.runtime import epochs


@dataclass(frozen=True, eq=False)
class State:
    """The model; the number of its start, the iterations before that, the least cost from it and looks without a lower
    one since; the best model so far, its cost, the steps it took and from which start; and the criterion's memory, None
    once there is nothing more to do. Of several starts also the best model from this one, the mean of the best from
    those before and the sum of their costs; a source beyond the last start is that mean."""

    hmms: object
    best: object
    memory: dict | None
    lap: int = 0
    before: int = 0
    least: float = np.inf
    idle: int = 0
    cost: float = np.inf
    chosen: int = 0
    source: int = 0
    own: object = None
    mean: object = None
    costs: float = 0.0


def may_be_chance(cost: float, least: float) -> bool:
    """Whether so many errors may be as good as the fewest: not more by two roots of them, which is about a standard
    deviation of word errors and wrong strings together, where each wrong string counts twice at least."""
    return cost <= least + 2 * np.sqrt(least)


class Training:
    """Start, advance, save and load of the loop of epochs, for any criterion.

    ``starts``: functions, each of which makes a model to start from. ``errors(hmms)`` gives the model as dev would have
    its grammar's weights, with its errors there, a dict whose sum is to fall; None where there is no dev.
    """

    def __init__(self, criterion, starts, corpus, errors=None):
        self.criterion, self.starts, self.corpus, self.errors = criterion, starts, corpus, errors

    def start(self) -> State:
        hmms = self.starts[0]()
        return State(hmms, hmms, self.criterion.begin(hmms))

    def advance(self, iteration: int, state: State) -> tuple[State, dict, bool]:
        criterion, steps, began = self.criterion, iteration - 1 - state.before, self.corpus.seconds
        last = steps == criterion.limit
        final = last and self.errors is not None
        stats, memory = criterion.measure(state.hmms, state.memory, self.corpus, steps, final)
        report = criterion.report(stats, memory)
        state = self.judge(replace(state, memory=memory), report, steps, last)
        patience = getattr(criterion.options, "patience", 0)
        done = last or (patience > 0 and state.idle >= patience)
        if not done:
            hmms, memory, more = criterion.update(state.hmms, stats, memory, self.corpus)
            report |= more
            done = memory is None
            state = replace(state, hmms=hmms, memory=memory)
        if not criterion.picks:
            state = replace(state, best=state.hmms, chosen=iteration)
        if len(self.starts) > 1:
            report["start"] = state.lap + 1
        if done and self.errors and len(self.starts) > 1:
            state = self.joined(state, report, steps)
        if done and state.lap + 1 < len(self.starts):
            hmms = self.starts[state.lap + 1]()
            memory, done = criterion.begin(hmms), False
            state = replace(state, hmms=hmms, memory=memory, lap=state.lap + 1, before=iteration,
                            least=np.inf, idle=0)  # fmt: skip
        return state, report | {"pass_seconds": round(self.corpus.seconds - began, 3)}, done

    def judge(self, state: State, report: dict, steps: int, last: bool) -> State:
        """Keep the best model so far; its errors on dev, the fewest of the candidates, go into the report."""
        criterion, cost, judged = self.criterion, np.inf, state.hmms
        if not criterion.picks:
            return state
        if self.errors is None:
            cost = criterion.cost(report, steps)
        elif last or steps % getattr(criterion.options, "check", 1) == 0:
            for model in criterion.candidates(state.hmms, state.memory):
                weighed, errors = self.errors(model)
                if sum(errors.values()) < cost:
                    cost, judged = sum(errors.values()), weighed
                    report |= errors
        idle = 0 if cost < state.least else state.idle + bool(np.isfinite(cost))
        own = judged if cost < state.least and len(self.starts) > 1 else state.own
        state = replace(state, least=min(cost, state.least), idle=idle, own=own)
        if cost < state.cost:
            return replace(state, best=judged, cost=cost, chosen=steps, source=state.lap)
        return state

    def joined(self, state: State, report: dict, steps: int) -> State:
        """At the end of a start: its best model joins the mean, which dev judges after the last of them. Models that
        have come to differ in shape have no mean."""
        if state.lap:
            mean = self.criterion.blend(state.mean, state.own, 1 / (state.lap + 1)) if state.mean else None
        else:
            mean = state.own
        state = replace(state, mean=mean, costs=state.costs + state.least)
        if mean is not None and state.lap + 1 == len(self.starts):
            weighed, errors = self.errors(mean)
            report |= {f"mean_{name}": count for name, count in errors.items()}
            cost = sum(errors.values())
            if cost < state.costs / len(self.starts) and may_be_chance(cost, state.cost):
                return replace(state, best=weighed, cost=cost, chosen=max(steps, 1), source=len(self.starts))
        return state

    def save(self, state: State) -> tuple[dict, dict]:
        values = vars(state) | {f"memory {name}": value for name, value in (state.memory or {}).items()}
        del values["memory"]
        if state.best is state.hmms:  # once is enough
            del values["best"]
        return pack_many(values)

    def load(self, meta: dict, arrays: dict) -> State:
        values, memory, prefix = {}, {}, "memory "
        for name, value in unpack_many(meta, arrays).items():
            (memory if name.startswith(prefix) else values)[name.removeprefix(prefix)] = value
        return State(**{"best": values["hmms"], **values, "memory": memory})


def fit(step, criterion, starts, corpus, errors=None) -> tuple[State, list[dict]]:
    """Train to the end, from the last iteration that is saved in the step's folder; the last state and all reports."""
    training = Training(criterion, starts, corpus, errors)
    return epochs.train(step, training.start, training.advance, training.save, training.load)

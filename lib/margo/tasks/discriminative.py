"""MCE, MMI and margin training in epochs: passes over the corpus, trials on dev, the best model kept.

Iteration i first measures the model that iteration i - 1 left (the first one: the model training started from) and
reports it: objective, training errors, and every ``check`` iterations dev errors. Then it takes a step. One more pass
than there are steps measures the last model. The model that did best on dev is the result; without dev, the one with
the best objective.
"""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from margo.estimate import mce, mm, mmi
from margo.estimate.paths import find_paths, path_constants, searcher, slots
from margo.estimate.rprop import Rprop
from margo.formats.models import pack_many, unpack_many
from margo.model.hmm import HmmSet
from margo.runtime.parallel import map_chunks
from margo.tasks import passes, speech


def search_chunk(hmms: HmmSet, options, chunk):
    """``(paths, slots)`` of a chunk; of the paths only what scoring needs, since they go to and from workers."""
    paths = find_paths(searcher(hmms), speech.load(chunk, hmms), options.competitors)
    places = slots(paths)
    nothing = np.empty(0, np.int32)
    if "transitions" not in options.parameters:
        paths = replace(paths, transitions=nothing, transition_start=np.zeros_like(paths.transition_start))
    return replace(paths, states=nothing, words=()), places


def path_pass(hmms: HmmSet, found_with: HmmSet, function, item):
    """``function(hmms, x, paths, slots)`` on a chunk and its paths, which were found with another model."""
    chunk, paths, places = item
    x = paths.frames(speech.load(chunk, hmms))
    if len(paths.transitions):
        paths = replace(paths, constants=path_constants(hmms, paths, found_with))
    return function(hmms, x, paths, places)


def mmi_pass(hmms: HmmSet, options, chunk):
    return mmi.accumulate(hmms, speech.load(chunk, hmms), options)


@dataclass(frozen=True, eq=False)
class Memory:
    """What a criterion carries from one iteration to the next beside the model.

    found_with: the model that the current paths were found with; spread: of the misclassification measure or log margin
    at the start; optimisers: MCE's, by kind of parameter; objective: MMI's before the last step, and caution: how much
    larger than asked for its smoothing constant has become, since the objective fell.
    """

    found_with: HmmSet | None = None
    spread: float = 0.0
    optimisers: dict[str, Rprop] | None = None
    objective: float = -np.inf
    caution: float = 1.0


class Mmi:
    """Maximum mutual information: every pass is fresh. A step that lowered the objective was too long: D doubles."""

    better = 1  # the objective is to rise

    def __init__(self, options, data: speech.Speech, where):
        self.options, self.data, self.where = options, data, where

    def begin(self, hmms: HmmSet) -> Memory:
        return Memory()

    def measure(self, hmms: HmmSet, memory: Memory, fresh: bool):
        stats = speech.total(partial(mmi_pass, hmms, self.options), self.data, self.where)
        return stats, memory, stats.net.dropped

    def update(self, hmms: HmmSet, stats, memory: Memory):
        objective = stats.net.log_likelihood
        caution = memory.caution * (2 if objective < memory.objective else 1)
        hmms, report = mmi.update(hmms, stats, replace(self.options, growth=caution * self.options.growth))
        return hmms, replace(memory, objective=objective, caution=caution), report


class Contest:
    """What MCE and margin training share: competitors' paths, searched for anew now and then."""

    def __init__(self, options, data: speech.Speech, where):
        self.options, self.data, self.where = options, data, where
        self.paths: list[tuple] | None = None

    def measure(self, hmms: HmmSet, memory: Memory, fresh: bool):
        """Statistics of ``hmms``. The paths are found with ``hmms`` if ``fresh``, else (when a run is resumed, again)
        with the model they were last found with."""
        if fresh:
            memory, self.paths = replace(memory, found_with=hmms), None
        if self.paths is None:
            function = partial(search_chunk, memory.found_with, self.options)
            found = map_chunks(function, self.data.chunks, self.where)
            self.paths = [(chunk, *pair) for chunk, pair in zip(self.data.chunks, found)]
        if not memory.spread:
            parts = self.map(hmms, memory, partial(self.measures, eta=self.options.eta))
            memory = replace(memory, spread=float(np.concatenate(list(parts)).std()) or 1.0)
        stats = None
        for part in self.map(hmms, memory, partial(self.accumulate, spread=memory.spread, options=self.options)):
            stats = part if stats is None else stats + part
        return stats, memory, tuple(pair for _, paths, _ in self.paths for pair in paths.dropped)

    def map(self, hmms: HmmSet, memory: Memory, function):
        return map_chunks(partial(path_pass, hmms, memory.found_with, function), self.paths, self.where)


class Mce(Contest):
    better = -1  # the objective is a loss
    measures, accumulate = staticmethod(mce.measure), staticmethod(mce.accumulate)

    def begin(self, hmms: HmmSet) -> Memory:
        return Memory(optimisers=mce.start(hmms, self.options))

    def update(self, hmms: HmmSet, stats, memory: Memory):
        hmms, optimisers, report = mce.update(hmms, stats, memory.optimisers)
        return hmms, replace(memory, optimisers=optimisers), report


class Mm(Contest):
    better = 1
    measures, accumulate = staticmethod(mm.log_margins), staticmethod(mm.accumulate)

    def begin(self, hmms: HmmSet) -> Memory:
        return Memory()

    def update(self, hmms: HmmSet, stats, memory: Memory):
        hmms, report = mm.update(hmms, stats, self.options)
        return hmms, memory, report


@dataclass(frozen=True, eq=False)
class State:
    """The model, the best one so far with its cost (lower is better) and iteration, and the criterion's memory."""

    hmms: HmmSet
    best: HmmSet
    cost: float
    chosen: int
    memory: Memory


class Training:
    """Start, advance, save and load of the epoch loop, for any of the criteria above."""

    def __init__(self, criterion, options, hmms: HmmSet, data: speech.Speech, dev: speech.Speech | None, where, step):
        self.criterion, self.options, self.hmms, self.data, self.dev = criterion, options, hmms, data, dev
        self.where, self.step = where, step
        self.told: set = set()

    def start(self) -> State:
        return State(self.hmms, self.hmms, np.inf, 0, self.criterion.begin(self.hmms))

    def advance(self, iteration: int, state: State):
        options, before = self.options, iteration - 1  # steps taken so far
        last = before == options.iterations
        refresh = getattr(options, "refresh", 1)
        fresh = before % refresh == 0 and (not last or self.dev is None or refresh == 1)
        stats, memory, dropped = self.criterion.measure(state.hmms, state.memory, fresh)
        speech.check_dropped(dropped, self.data, self.step, self.told)
        hmms, memory, report = self.criterion.update(state.hmms, stats, memory)
        report["dropped"] = len(dropped)
        cost = np.inf
        if self.dev is None:
            # On paths that are not its own a model looks better than it is.
            cost = -self.criterion.better * report["objective"] if fresh else np.inf
        elif before % options.check == 0 or last:
            errors, _, wrong, _ = speech.total(partial(passes.count_errors, state.hmms), self.dev, self.where).tolist()
            report |= {"dev_errors": errors, "dev_wrong": wrong}
            cost = errors + wrong
        if cost < state.cost:
            state = replace(state, best=state.hmms, cost=cost, chosen=before)
        if not last:
            state = replace(state, hmms=hmms, memory=memory)
        return state, report, last

    def save(self, state: State):
        models = {"now": state.hmms, "best": state.best, "found_with": state.memory.found_with}
        metas, arrays = pack_many({name: hmms for name, hmms in models.items() if hmms is not None})
        kept = {name: getattr(state.memory, name) for name in ("spread", "objective", "caution")}
        meta = {"cost": state.cost, "chosen": state.chosen, "memory": kept, "models": metas, "optimisers": {}}
        for kind, optimiser in (state.memory.optimisers or {}).items():
            meta["optimisers"][kind] = [optimiser.first, optimiser.most]
            arrays |= {f"steps.{kind}": optimiser.steps, f"signs.{kind}": optimiser.signs}
        return meta, arrays

    def load(self, meta: dict, arrays: dict) -> State:
        models = unpack_many(meta["models"], arrays)
        optimisers = {
            kind: Rprop(arrays[f"steps.{kind}"], arrays[f"signs.{kind}"], first, most)
            for kind, (first, most) in meta["optimisers"].items()
        }
        memory = Memory(found_with=models.get("found_with"), optimisers=optimisers or None, **meta["memory"])
        return State(models["now"], models["best"], meta["cost"], meta["chosen"], memory)


def train(name: str, criterion, options, step) -> None:
    """The whole of a discriminative step: read, train, write the best model."""
    from margo.formats.models import write_model
    from margo.runtime import epochs

    data = speech.read(step.input(options.data, made_by="make_mfcc"))
    dev = speech.read(step.input(options.dev, made_by="make_mfcc")) if options.dev else None
    step.input(options.init, made_by="train_ml")
    hmms = passes.model_for(options.init, data)
    with step.place() as where:
        training = Training(criterion(options, data, where), options, hmms, data, dev, where, step)
        state, _ = epochs.train(step, training.start, training.advance, training.save, training.load)
        meta = {**hmms.meta, "criterion": name, "iteration": state.chosen}
        write_model(step.output("model.npz"), replace(state.best, meta=meta))
        epochs.finish(step)
    step.extra |= {"iteration": state.chosen, "cost": state.cost}
    step.say(f"{step.name}: the model after {state.chosen} iterations was the best on {'dev' if dev else 'train'}")

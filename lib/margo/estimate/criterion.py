"""What a criterion is: the one thing that tells one way of training HMMs from another.

A criterion is a small class that the trainer (:mod:`margo.runtime.trainer`) asks, iteration after iteration, to measure
the current model and then to take a step. It keeps nothing between calls: what it must remember goes in and out as
``memory``, a flat dict of numbers, arrays and models, so that every run can be saved and resumed alike. It sees the
data as a ``corpus``, which works through chunks of utterances ``(name, x[T, D], words)`` wherever the run has room:

    corpus.map(function, hmms, parts)     ``function(hmms, utterances[, part])`` of every chunk, in their order;
                                          ``parts`` has one entry a chunk; ``function`` must be importable, a method or
                                          partial of such
    corpus.total(function, hmms, parts)   their sum; utterances in its ``dropped`` are told, and refused if many
    corpus.remember(hmms, make)           ``make()``, kept until another model is asked for
    corpus.scratch                        room for what grows with the corpus (:mod:`margo.formats.scratch`)
    corpus.strings(hmms)                  ``parts``: strings that were listed for this very model before, or Nones

A new criterion gives :meth:`Criterion.accumulate` and :meth:`Criterion.update`, its name and its options; the other
functions have defaults that fit statistics of :class:`margo.estimate.stats.Stats` and an objective that is to rise.
"""

from dataclasses import dataclass
from functools import partial

from margo.estimate.moves import PARAMETERS, blend
from margo.knobs import Knobs, knob
from margo.model.hmm import HmmSet

MOST = 90  # iterations where dev says when to end


@dataclass(frozen=True)
class PatienceOptions(Knobs):
    patience: int = knob(0, "end after this many looks at dev (or data) without a better model; 0: never", least=0)


@dataclass(frozen=True)
class IterationOptions(PatienceOptions):
    """How long a criterion trains, and what; a criterion's own options override the defaults."""

    BLIND = 6
    """Iterations, unless they are given, where no dev set says when to end"""
    parameters: tuple[str, ...] = knob(("means",), "kinds of parameters to train", PARAMETERS)
    iterations: int | None = knob(None, f"most iterations (default: {MOST} where --dev ends it, else a few)", least=1)
    check: int = knob(3, "iterations between trials on the development data", least=1)
    patience: int = knob(5, "end after this many trials (or looks at the data) without a better model; 0: never",
                         least=0)  # fmt: skip

    def faults(self) -> list[str]:
        return [*super().faults(), *([] if self.parameters else ["--parameters is empty, expected one or more kinds"])]


class Criterion:
    """See the module's first lines; ``options`` are those of the whole step, the criterion's own among them."""

    name = ""  # goes into the model's meta
    better = 1  # the objective is to rise; -1: to fall
    diagonal = True  # whether it trains diagonal covariances alone
    picks = True  # whether the best model is the result, by dev or :meth:`cost`; else the last one is

    def __init__(self, options):
        self.options = options

    @property
    def limit(self) -> int | None:
        """Steps to take at most; None where :meth:`update` alone says when it is enough."""
        return self.options.iterations or (MOST if getattr(self.options, "dev", None) else self.options.BLIND)

    def begin(self, hmms: HmmSet) -> dict:
        """The memory before the first step from ``hmms``."""
        return {}

    def accumulate(self, memory: dict, hmms: HmmSet, utterances):
        """What to measure in a chunk: an additive value with ``dropped``, as Stats."""
        raise NotImplementedError

    def measure(self, hmms: HmmSet, memory: dict, corpus, steps: int, final: bool) -> tuple:
        """``(statistics, memory)`` of ``hmms``, which is ``steps`` steps from the start. ``final``: no step follows and
        dev judges the model, so that only the report hangs on it."""
        return corpus.total(partial(self.accumulate, memory), hmms), memory

    def report(self, stats, memory: dict) -> dict:
        """The statistics as a line of ``progress.jsonl``: at least objective and frames."""
        return {
            "objective": stats.objective / max(stats.utterances, 1),
            "train_errors": stats.errors,
            "utterances": stats.utterances,
            "frames": stats.frames,
            "dropped": len(stats.dropped),
        }

    def update(self, hmms: HmmSet, stats, memory: dict, corpus) -> tuple[HmmSet, dict | None, dict]:
        """``(hmms, memory, report)`` after a step; memory is None when there is nothing more to do."""
        raise NotImplementedError

    def candidates(self, hmms: HmmSet, memory: dict) -> list[HmmSet]:
        """The models that dev is to judge after a step; the first is ``hmms`` itself."""
        return [hmms]

    def blend(self, a: HmmSet, b: HmmSet, share: float) -> HmmSet | None:
        """A model between two, ``share`` of it the second; None where they have none."""
        return blend(a, b, share)

    def cost(self, report: dict, steps: int) -> float:
        """What picks the best model where there is no dev set, the lower the better; inf if it cannot be compared."""
        return -self.better * report["objective"]

    def plots(self, reports: list[dict]) -> list[dict]:
        """What the report is to show beside the curves of ``progress.jsonl`` (:mod:`margo.formats.plots`)."""
        return []

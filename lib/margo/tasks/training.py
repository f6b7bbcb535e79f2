"""The whole of a training step: read, train by some criterion, write the model that is the result."""

import json
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from margo.errors import MargoError
from margo.estimate.ml import grown
from margo.estimate.start import Moments, moments
from margo.formats.models import write_model
from margo.formats.plots import PLOTS, write_plots
from margo.knobs import Knobs, knob
from margo.model.bigram import bigram_counts, log_bigram
from margo.model.grammar import grammar
from margo.model.hmm import HmmSet, flat_start, whole_words
from margo.runtime import epochs, record
from margo.runtime.step import Parallel, Seeded, Trainer
from margo.runtime.trainer import fit
from margo.signal.front_end import same_features
from margo.tasks import passes, speech
from margo.tasks.labels import start_from_labels
from margo.tasks.tuning import tuned


@dataclass(frozen=True)
class TrainingOptions(Parallel, Seeded, Trainer, Knobs):
    """What every trainer reads and writes."""

    data: Path = knob(help="feature folder to train on")
    dev: Path | None = knob(None, "feature folder of the development set, which picks the iteration")
    init: Path = knob(help="folder of the model to start from")
    out: Path = knob(help="folder to write")


@dataclass(frozen=True)
class ContestedOptions(TrainingOptions):
    """Of trainers that set utterances against competing strings."""

    nbest: Path | None = knob(None, "N-best lists (nbest) of --init on --data, instead of the first search")


def train(criterion, options, step, start=None, finish=None) -> None:
    """Train by ``criterion(options)``, a class of :mod:`margo.estimate.criterion`, and write model.npz.

    ``start(options, data, where, step)`` makes the model to start from (that of ``--init`` by default),
    ``finish(hmms, options, where, step)`` may change the result before it is written.
    """
    criterion = criterion(options)
    data = speech.read(step.input(options.data, made_by="make_mfcc"))
    dev = speech.read(step.input(options.dev, made_by="make_mfcc")) if options.dev else None
    if options.init:
        step.input(options.init, made_by="train_ml")
    init = None if start else passes.model_for(options.init, data)
    lists = read_lists(options, step) if getattr(options, "nbest", None) else None
    with step.place() as where:
        corpus = speech.Corpus(data, where, step, init, lists)
        errors = partial(passes.dev_errors, data=dev, where=where) if dev and criterion.picks else None
        first = partial(start, options, data, where, step) if start else lambda: init
        state, reports = fit(step, criterion, first, corpus, errors)
        meta = {"criterion": criterion.name} | ({"iteration": state.chosen} if criterion.picks else {})
        hmms = replace(state.best, meta={**state.best.meta, **meta})
        hmms = finish(hmms, options, where, step) if finish else hmms
    write_model(step.output("model.npz"), hmms)
    if plots := criterion.plots(reports):
        step.output(PLOTS)
        write_plots(options.out, plots)
    epochs.finish(step)
    step.extra["chosen"] = state.chosen
    if criterion.picks:
        step.extra["cost"] = state.cost
        step.say(f"{step.name}: the model after {state.chosen} iterations was the best on {'dev' if dev else 'train'}")


def read_lists(options, step) -> dict[str, list[tuple[str, ...]]]:
    """The strings of every utterance from the folder ``--nbest``, once it is sure that they are those of the model
    ``--init`` on ``--data``, and enough."""
    folder = step.input(options.nbest, made_by="nbest")
    listing = record.of(folder)
    for kind, ours in (("model", options.init), ("data", options.data)):
        theirs = listing["options"][kind]
        if listing["inputs"][theirs] != step.inputs[str(ours)]:
            raise MargoError(f"--nbest {folder}: lists of {theirs}, which is not what {ours} is now; give the lists of "
                             "that, or none")  # fmt: skip
    if listing["options"]["n"] <= options.competitors:
        raise MargoError(f"--nbest {folder}: {listing['options']['n']} strings an utterance, --competitors "
                         f"{options.competitors} needs {options.competitors + 1}")  # fmt: skip
    with open(folder / "nbest.jsonl", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return {row["utt"]: [tuple(hypothesis["words"]) for hypothesis in row["hyps"]] for row in rows}


# -- Maximum likelihood ------------------------------------------------------------------------------------------------


NEW = {"init": False}  # what only a model that is made anew has use for


@dataclass(frozen=True)
class StartOptions(Knobs):
    """The models that maximum likelihood starts from without ``--init``, and their grammar."""

    GROUP = "start and grammar"
    start: str = knob("flat", "where training starts without --init", ("flat", "labels"), needs=NEW)
    labels: Path | None = knob(None, "CTM file of hand labels", needs={"start": ("labels",)})
    states: int = knob(12, "emitting states of a word", least=1, needs=NEW)
    skip: float = knob(0.0, "probability, at the start, of skipping a state; 0 allows no skips", least=0, needs=NEW)
    silence_states: int = knob(
        0, "states of an optional silence around and between words; 0 for none", least=0, needs=NEW
    )
    grammar: str = knob("auto", "what may be recognised", ("auto", "isolated", "loop", "bigram"), needs=NEW)
    insertion_penalty: float = knob(
        0.0, "added to the score for every word", needs={**NEW, "grammar": ("auto", "loop", "bigram")}
    )
    scale: float = knob(1.0, "factor of a bigram's log probabilities", needs={**NEW, "grammar": ("bigram",)})
    tune_scales: tuple[float, ...] = knob((), "scales of the bigram to try on --dev (none: --scale it is)")
    tune_penalties: tuple[float, ...] = knob(
        (0.0,), "insertion penalties to try with each of --tune-scales", needs={"tune_scales": True}
    )

    def faults(self) -> list[str]:
        faults = super().faults()
        if self.start == "labels" and not self.labels:
            faults.append("--start labels needs --labels")
        if self.tune_scales and not (self.dev and (self.init or self.grammar == "bigram")):
            faults.append("--tune-scales needs --dev and --grammar bigram")
        return faults


def first_model(options, data: speech.Speech, where, step) -> HmmSet:
    """The model of ``--init``, its mixtures doubled if more are asked for; else one a word, flat or from labels."""
    if options.init:
        return grown(passes.model_for(options.init, data), options.mixtures)
    whole = speech.total(partial(chunk_moments, data.features["dimension"]), data, where)
    hmms = flat_start(
        whole_words(data.vocabulary),
        options.states,
        whole.mean,
        whole.variance,
        silence="sil" if options.silence_states else None,
        silence_states=options.silence_states,
        skip=options.skip,
        variance_floor=options.variance_floor * whole.variance,
        meta={"features": data.features, "grammar": grammar_of(options, data), "criterion": "ml", "seed": options.seed},
    )
    if options.start == "labels":
        return start_from_labels(hmms, options.labels, data, where, options, step.say)
    return hmms


def chunk_moments(dimension: int, chunk) -> Moments:
    return moments((x for _, x, _ in speech.load(chunk)), dimension)


def grammar_of(options, data: speech.Speech) -> dict:
    """The grammar's table, from the options and the transcripts."""
    kind = options.grammar
    if kind == "auto":
        kind = "isolated" if data.isolated else "loop"
        if data.isolated and options.insertion_penalty:
            raise MargoError("--insertion-penalty does nothing: every transcript is one word")
    table = None
    if kind == "bigram":
        table = log_bigram(bigram_counts((item.words for item in data.items), data.vocabulary))
    return grammar(kind, options.insertion_penalty, table, options.scale)


def tuned_on_dev(hmms: HmmSet, options, where, step) -> HmmSet:
    """The model with its grammar as dev would have it, where that is asked for; the step records its errors there."""
    if not options.dev:
        return hmms
    dev = speech.read(options.dev)
    same_features(hmms.meta["features"], dev.features, f"{options.dev}: the features")
    if options.tune_scales:
        hmms = tuned(hmms, dev, options, step, where)
    errors, words, wrong, strings = speech.total(partial(passes.count_errors, hmms), dev, where).tolist()
    step.extra["dev"] = {"errors": errors, "words": words, "wrong": wrong, "strings": strings}
    step.say(f"{step.name}: {options.dev.name} {errors} of {words} words, {wrong} of {strings} strings wrong")
    return hmms

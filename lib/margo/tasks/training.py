"""The whole of a training step: read, train by some criterion, write the model that is the result."""

import os
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import ClassVar

from margo.errors import MargoError, refuse
from margo.estimate.ml import grown
from margo.estimate.start import Moments, moments
from margo.formats.grammars import read_grammar
from margo.formats.models import write_model
from margo.formats.plots import PLOTS, write_plots
from margo.formats.reading import MOST, fitting
from margo.formats.transcripts import read_nbest
from margo.knobs import Knobs, knob, real
from margo.model.bigram import bigram_counts, log_bigram
from margo.model.grammar import MOST as PAIRS
from margo.model.grammar import grammar, ngram_grammar, weights_of, with_grammar, with_weights
from margo.model.hmm import HmmSet, flat_start
from margo.model.ngram import SMOOTHINGS
from margo.runtime import epochs, record
from margo.runtime.step import Parallel, Seeded, Trainer
from margo.runtime.trainer import fit
from margo.signal.cepstral_warp import can_warp
from margo.signal.front_end import same_features
from margo.tasks import passes, speech, tuning
from margo.tasks.calibrating import calibrated
from margo.tasks.labels import start_from_labels
from margo.tasks.pronouncing import LexiconOptions, lexicon_of, reweighed

VOICES = (0.92, 1.08)  # of auto


@dataclass(frozen=True)
class TrainingOptions(tuning.WeightOptions, Parallel, Seeded, Trainer, Knobs):
    """What every trainer reads and writes."""

    data: Path = knob(help="feature folder to train on")
    dev: Path | None = knob(None, "feature folder of the development set, which picks iteration and grammar weights")
    init: Path = knob(help="folder of the model to start from")
    also: ClassVar[tuple[Path, ...]] = ()  # folders of other models to start from in turn, where a trainer takes some
    out: Path = knob(help="folder to write")


@dataclass(frozen=True)
class ContestedOptions(TrainingOptions):
    """Of trainers that set utterances against competing strings."""

    nbest: Path | None = knob(None, "N-best lists (nbest) of --init on --data, instead of the first search")
    voices: tuple[str, ...] = knob(
        ("none",), "train on each utterance in another voice too, its frequencies warped by one of these factors in "
        f"turn: numbers, auto ({' '.join(map(str, VOICES))} where the features are cepstra) or none",
    )  # fmt: skip

    def faults(self) -> list[str]:
        faults = super().faults()
        if self.voices not in (("auto",), ("none",)) and not (self.voices and all(map(is_warp, self.voices))):
            faults.append(f"--voices is {' '.join(self.voices)}, expected numbers from 0.5 to 2, auto or none")
        return faults


def is_warp(text: str) -> bool:
    try:
        return 0.5 <= real(text) <= 2 and real(text) != 1
    except ValueError:
        return False


def voiced(data: speech.Speech, voices: tuple[str, ...], step) -> speech.Speech:
    """The data with the other ``voices`` that are asked for, and can be made of their features."""
    if voices == ("none",):
        return data
    if not can_warp(data.features):
        why = f"{data.folder}: features that are not plain cepstra have no other voices"
        if voices != ("auto",):
            raise MargoError(f"{why}: leave out --voices, or give none")
        step.say(f"{step.name}: {why}")
        return data
    return data.with_voices(VOICES if voices == ("auto",) else tuple(map(real, voices)))


def train(criterion, options, step, start=None, folds=None, select=None) -> None:
    """Train by ``criterion(options)``, a class of :mod:`margo.estimate.criterion`, and write model.npz.

    ``start(options, data, where, step)`` makes the model to start from (that of ``--init`` by default). In the end dev
    chooses the grammar's weights; without dev ``folds(hmms, options, data, where)`` of the training data do, or they
    stay as they were. ``select(options, data, step)``: the part of the training data that can be used.
    """
    criterion = criterion(options)
    data = speech.read(step.input(options.data, made_by="make_mfcc"))
    data = select(options, data, step) if select else data
    dev = speech.read(step.input(options.dev, made_by="make_mfcc")) if options.dev else None
    if dev:
        same_features(data.features, dev.features, f"{options.dev}: the features")
    folders = [options.init, *options.also] if options.init else []
    for folder in folders:
        step.input(folder, made_by="train_ml")
    models = [] if start else [passes.model_for(folder, data) for folder in folders]
    for folder, model in zip(folders, models):
        if criterion.diagonal:
            model.pool.require("diagonal", f"{folder}: {criterion.name}")
    lists = read_lists(options, step, data, models[0]) if getattr(options, "nbest", None) else None
    corpus_data = voiced(data, getattr(options, "voices", ("none",)), step)
    with step.place() as where:
        corpus = speech.Corpus(corpus_data, where, step, models[0] if models else None, lists)
        errors = partial(tuning.judged, data=dev, where=where, options=options) if dev and criterion.picks else None
        starts = [lambda model=model: model for model in models]
        if start:
            starts = [partial(start, options, data, where, step)]
        state, reports = fit(step, criterion, starts, corpus, errors)
        meta = {"criterion": criterion.name} | ({"iteration": state.chosen} if criterion.picks else {})
        hmms = replace(state.best, meta={**state.best.meta, **meta})
        step.extra["chosen"] = state.chosen
        mean = state.source == len(starts)
        if options.also:
            step.extra["from"] = "the mean of all starts' best" if mean else str(folders[state.source])
        first = weights_of(models[0 if mean else state.source] if models else hmms)
        hmms = weighed(hmms, first, criterion, options, data, dev, folds, where, step)
    write_model(step.output("model.npz"), hmms)
    if plots := criterion.plots(reports):
        step.output(PLOTS)
        write_plots(options.out, plots)
    epochs.finish(step)
    if criterion.picks:
        step.extra["cost"] = state.cost
        begun = f" from {step.extra['from']}" if options.also else ""
        told = f"the model after {state.chosen} iterations{begun} was the best on {'dev' if dev else 'train'}"
        step.say(f"{step.name}: {'the mean of the best models from all starts is kept' if mean else told}")


def weighed(hmms: HmmSet, first: dict, criterion, options, data, dev, folds, where, step) -> HmmSet:
    """The model with its grammar's weights chosen, where its start had those of ``first``; a start that is kept, and
    has had them chosen, keeps them too."""
    begun = step.extra.get("from", options.init)
    kept = criterion.picks and step.extra["chosen"] == 0 and (Path(begun) / tuning.NAME).exists()
    if kept:
        hmms = with_grammar(hmms, **first)
    else:
        tunes = any(options.tries()[name] != ("none",) for name in first)
        parts = [(hmms, dev)] if dev else folds(hmms, options, data, where) if folds and tunes else []
        source = dev.folder.name if dev else f"{len(parts)} folds of {data.folder.name}"
        if parts and tunes:
            hmms = tuning.tuned(hmms, parts, source, options, where, step)
        if parts:
            parts = [(with_grammar(model, **weights_of(hmms)), unseen) for model, unseen in parts]
            hmms = calibrated(hmms, parts, source, where)
    step.extra["unchanged"] = criterion.picks and step.extra["chosen"] == 0 and weights_of(hmms) == first
    if dev and not criterion.picks:
        ((errors, wrong),) = tuning.count_errors([(hmms, dev)], [{}], where)
        sizes = {"words": sum(len(item.words) for item in dev.items), "strings": len(dev.items)}
        step.extra["dev"] = {"errors": errors, "wrong": wrong, **sizes}
        step.say(f"{step.name}: {dev.folder.name}: {tuning.told(step.extra['dev'], sizes)}")
    return hmms


def read_lists(options, step, data: speech.Speech, hmms: HmmSet) -> dict[str, list[tuple[str, ...]]]:
    """The strings of every utterance from the folder ``--nbest``; those that our nbest made must be of the model
    ``--init`` on ``--data``, and enough."""
    folder = step.input(options.nbest, made_by="nbest")
    if listing := record.of(folder):
        fitting(folder / record.NAME, listing, {"options": {"model": str, "data": str, "n": int}})
        for kind, ours in (("model", options.init), ("data", options.data)):
            if step.inputs[os.path.abspath(ours)] not in listing["inputs"].values():
                raise MargoError(f"--nbest {folder}: lists of {listing['options'][kind]}, which is not what {ours} is "
                                 "now; give the lists of that, or none")  # fmt: skip
        if listing["options"]["n"] <= options.competitors:
            raise MargoError(f"--nbest {folder}: {listing['options']['n']} strings an utterance, --competitors "
                             f"{options.competitors} needs {options.competitors + 1}")  # fmt: skip
    lists = read_nbest(folder / "nbest.jsonl")
    faults = [f"{item.name}: no list" for item in data.items if not lists.get(item.name)]
    faults += [f"{name}: {word} is not a word of the model" for name, strings in lists.items()
               for word in sorted({*chain(*strings)} - hmms.word_index.keys())]  # fmt: skip
    refuse(faults, str(folder / "nbest.jsonl"), MOST)
    return lists


WEIGHED = ("bigram", "trigram", "lm")  # grammars with log probabilities
NEW = {"init": False}  # what only a model that is made anew has use for


@dataclass(frozen=True)
class StartOptions(LexiconOptions, Knobs):
    """The models that maximum likelihood starts from without ``--init``, and their grammar."""

    GROUP = "start and grammar"
    start: str = knob("flat", "where training starts without --init", ("flat", "labels"), needs=NEW)
    labels: Path | None = knob(None, "CTM file of hand labels", needs={"start": ("labels",)})
    states: int = knob(12, "emitting states of a unit: a word, or with a lexicon a phone", least=1, needs=NEW)
    skip: float = knob(0.0, "probability, at the start, of skipping a state; 0 allows no skips", least=0, needs=NEW)
    silence_states: int = knob(
        0, "states of an optional silence around and between words; 0 for none", least=0, needs=NEW
    )
    grammar: str = knob(
        "auto", "what may be recognised; bigram and trigram are made of the transcripts, lm is the file --lm",
        ("auto", "isolated", "loop", "bigram", "trigram", "lm"), needs=NEW,
    )  # fmt: skip
    smoothing: str = knob(
        "auto", "of a bigram or trigram of the transcripts; auto is absolute discounting of all pairs where words are "
        "few, else Witten-Bell", ("auto", *SMOOTHINGS), needs={"grammar": ("bigram", "trigram")},
    )  # fmt: skip
    lm: Path | None = knob(
        None, "language model, an ARPA file of 1- to 3-grams, rules in JSGF, or a word network of HTK",
        needs={"grammar": ("lm",)},
    )  # fmt: skip
    insertion_penalty: float | None = knob(
        None, "added to the score for every word, instead of what --penalties would choose", unit="nats",
        needs={"grammar": ("auto", "loop", *WEIGHED)},
    )  # fmt: skip
    scale: float | None = knob(
        None, "factor of a bigram's log probabilities, instead of what --scales would choose", above=0
    )

    def faults(self) -> list[str]:
        faults = super().faults()
        if self.start == "labels" and not self.labels:
            faults.append("--start labels needs --labels")
        if self.scale is not None and not self.init and self.grammar not in WEIGHED:
            faults.append(f"--scale needs --grammar {' or '.join(WEIGHED)}")
        if self.grammar == "lm" and not self.lm:
            faults.append("--grammar lm needs --lm")
        return faults

    def tries(self) -> dict[str, tuple[str, ...]]:
        fixed = {name for name in ("insertion_penalty", "scale") if getattr(self, name) is not None}
        return super().tries() | dict.fromkeys(fixed, ("none",))


def first_model(options, data: speech.Speech, where, step) -> HmmSet:
    """The model of ``--init``, its mixtures doubled if more are asked for; else one a word, flat or from labels."""
    weights = {"insertion_penalty": options.insertion_penalty, "scale": options.scale}
    if options.init:
        hmms = passes.model_for(options.init, data)
        if options.pronunciations == "counted":
            hmms = reweighed(hmms, data, where)
        hmms = shaped(hmms, options.covariance)
        hmms = hmms if options.gaussians else grown(hmms, options.mixtures)
        return with_weights(hmms, **weights)
    whole = speech.total(partial(chunk_moments, data.features["dimension"]), data, where)
    lexicon = lexicon_of(options, data)
    hmms = flat_start(
        lexicon,
        options.states,
        whole.mean,
        whole.variance,
        silence=options.silence_unit if options.silence_states else None,
        silence_states=options.silence_states,
        skip=options.skip,
        variance_floor=options.variance_floor * whole.variance,
        meta={"features": data.features, "grammar": grammar_of(options, data, (*lexicon,)), "criterion": "ml",
              "seed": options.seed},  # fmt: skip
    )
    hmms = with_weights(hmms, **weights)
    if options.start == "labels":
        hmms = start_from_labels(hmms, options.labels, data, where, options, step.say)
    return shaped(hmms, options.covariance)


def shaped(hmms: HmmSet, covariance: str) -> HmmSet:
    """``hmms`` with covariances of this type: diagonal ones can become full, full ones not diagonal."""
    pool = hmms.pool
    if pool.covariances.kind == covariance:
        return hmms
    if pool.covariances.kind != "diagonal":
        raise MargoError(f"--covariance is {covariance}, the model of --init has {pool.covariances.kind} ones")
    return hmms.with_pool(replace(pool, covariances=pool.covariances.dense()))


def chunk_moments(dimension: int, chunk) -> Moments:
    return moments((x for _, x, _ in speech.load(chunk)), dimension)


def grammar_of(options, data: speech.Speech, words: tuple[str, ...]) -> dict:
    """The grammar's table, from the options and the transcripts."""
    kind = options.grammar
    if kind == "auto":
        kind = "isolated" if data.isolated else "loop"
    strings = (item.words for item in data.items)
    if kind == "bigram" and options.smoothing == "auto" and len(words) <= PAIRS:
        return grammar(kind, log_bigram=log_bigram(bigram_counts(strings, words)))
    if kind in ("bigram", "trigram"):
        smoothed = SMOOTHINGS["witten-bell" if options.smoothing == "auto" else options.smoothing]
        return ngram_grammar(smoothed(strings, words, 2 if kind == "bigram" else 3), words)
    return read_grammar(options.lm, words) if kind == "lm" else grammar(kind)

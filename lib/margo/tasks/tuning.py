"""Grammar weights: the insertion penalty of words, and a bigram's scale, as errors on held-out speech would have them.

The cost of a setting is word errors plus string errors. Held-out speech is the development set; where there is none,
folds of the training data, each decoded with a model that is updated from all but its own statistics.
"""

import re
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import product
from operator import add

import numpy as np

from margo.errors import MargoError
from margo.estimate import ml
from margo.formats.atomic import write_json
from margo.gaussian.likelihood import log_likelihoods_of_many, scorer
from margo.knobs import Knobs, knob
from margo.model.grammar import weights_of, with_grammar, with_weights
from margo.model.hmm import HmmSet
from margo.score.align import align as align_words
from margo.search.viterbi import viterbi
from margo.tasks import speech
from margo.tasks.passes import search_of

NAME = "grammar.json"  # of a model's folder: what was tried and chosen
LADDER = (20.0, 10.0, 0.0, -10.0, -20.0, -40.0, -60.0, -80.0, -120.0, -160.0, -240.0)  # penalties in nats
ERRORS = ("dev_errors", "dev_wrong")
NEAR = (0.0, 12.0, -12.0, 24.0, -24.0, 40.0, -40.0)  # nats from a model's penalty that trials in training try too
ROUNDS = 12  # of finer (or further) values, at most
FOLDS = 5
MOST = 2000  # utterances of all folds that are decoded
WORDS = ("auto", "none")
VALUE = re.compile(r"auto|none|[-+]?\d*\.?\d+(e[-+]?\d+)?")


@dataclass(frozen=True)
class WeightOptions(Knobs):
    """What is tried when training has ended, before the model is written."""

    GROUP = "grammar weights"
    penalties: tuple[str, ...] = knob(
        ("auto",), "insertion penalties to try on --dev at the end: numbers, auto (a ladder, then finer; trials in "
        "training try some near the model's own) or none (the start's is kept)", unit="nats", needs={"dev": True},
    )  # fmt: skip
    scales: tuple[str, ...] = knob(
        ("auto",), "factors of a bigram's log probabilities to try too: numbers, auto or none", needs={"dev": True}
    )

    def faults(self) -> list[str]:
        faults = super().faults()
        for name, values in (("--penalties", self.penalties), ("--scales", self.scales)):
            if not values or len(values) > 1 and set(WORDS) & set(values) or not all(map(VALUE.fullmatch, values)):
                faults.append(f"{name} is {' '.join(values)}, expected numbers, auto or none")
            elif name == "--scales" and not all(value in WORDS or float(value) > 0 for value in values):
                faults.append(f"--scales is {' '.join(values)}, expected more than 0")
        return faults

    def tries(self) -> dict[str, tuple[str, ...]]:
        """By entry of the grammar's table."""
        return {"insertion_penalty": self.penalties, "scale": self.scales}


def errors_by_weights(hmms: HmmSet, settings: list[dict], chunk) -> np.ndarray:
    """``[word errors, wrong strings]`` of a chunk under each of ``settings``, int [settings, 2].

    Likelihoods are evaluated once an utterance, however many settings there are.
    """
    searches = [search_of(with_grammar(hmms, **weights)) for weights in settings]
    compiled = scorer(hmms.pool, searches[0][0].states)  # all graphs have all states, in the same order
    strings: list[list] = [[] for _ in settings]
    for scores in log_likelihoods_of_many(compiled, [x for _, x, _ in speech.load(chunk, hmms)]):
        for hypotheses, (graph, beam, most) in zip(strings, searches):
            path = viterbi(graph, scores, beam, most)
            hypotheses.append(path.word_names if path else ())
    references = [item.words for item in chunk]
    errors = [align_words(references, hypotheses).errors for hypotheses in strings]
    return np.array([[each.sum(), (each > 0).sum()] for each in errors])


def count_errors(parts: list[tuple], settings: list[dict], where) -> list[list[int]]:
    """As :func:`errors_by_weights`, of ``parts``: pairs of a model and the speech that it is to decode."""
    counts = [speech.total(partial(errors_by_weights, hmms, settings), data, where) for hmms, data in parts]
    return sum(counts).tolist()


def errors_on(data: speech.Speech, hmms: HmmSet, where) -> dict[str, int]:
    """Word and string errors under the model's own grammar, as training reports them."""
    return dict(zip(ERRORS, *count_errors([(hmms, data)], [{}], where)))


def judged(hmms: HmmSet, data: speech.Speech, where, options: WeightOptions) -> tuple[HmmSet, dict[str, int]]:
    """The model, and its word and string errors on ``data``; under the best of some penalties near its own if they are
    to be tuned, of equals the nearest: training moves the best one far, and a model is to be judged as it will be used.
    """
    penalty = weights_of(hmms).get("insertion_penalty")
    tunes = penalty is not None and options.penalties == ("auto",)
    settings = [{"insertion_penalty": penalty + step} for step in NEAR] if tunes else [{}]
    counts = count_errors([(hmms, data)], settings, where)
    best = min(range(len(settings)), key=lambda n: sum(counts[n]))
    return with_grammar(hmms, **settings[best]), dict(zip(ERRORS, counts[best]))


def table(hmms: HmmSet, data: speech.Speech, penalties, scales, where) -> str:
    """Errors on ``data`` under every pair of weights, as lines of text; without some of them, the model's own."""
    if not any(item.words for item in data.items):
        raise MargoError(f"{data.folder}: no transcripts, which errors are counted by")
    pairs = product(sorted(scales) or [None], sorted(penalties) or [None])
    models = [with_weights(hmms, insertion_penalty=penalty, scale=scale) for scale, penalty in pairs]
    settings = [weights_of(model) for model in models]
    sizes = {"words": sum(len(item.words) for item in data.items), "strings": len(data.items)}
    rows = [["set", *settings[0], "word errors", "of", "wrong strings", "of"]]
    for weights, (errors, wrong) in zip(settings, count_errors([(hmms, data)], settings, where)):
        values = [f"{value:g}" for value in weights.values()]
        rows.append([data.folder.name, *values, *map(str, (errors, sizes["words"], wrong, sizes["strings"]))])
    widths = [max(map(len, column)) for column in zip(*rows)]
    return "".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths)) + "\n" for row in rows)


def fold_models(hmms: HmmSet, options, data: speech.Speech, where) -> list[tuple[HmmSet, speech.Speech]]:
    """``(model, fold)`` for folds of the speakers of ``data`` (of utterances, if there is but one speaker).

    Statistics are additive, so that one pass gives them fold by fold, and an update from those of the others is a model
    that has hardly seen the fold. Not more than ``MOST`` utterances are left in the folds.
    """
    speakers = sorted({item.speaker for item in data.items})
    owners = [item.speaker for item in data.items] if len(speakers) > 1 else [item.name for item in data.items]
    numbers = {owner: number % FOLDS for number, owner in enumerate(dict.fromkeys(sorted(owners)))}
    folds = [replace(data, items=tuple(item for item, owner in zip(data.items, owners) if numbers[owner] == fold))
             for fold in sorted(set(numbers.values()))]  # fmt: skip
    if len(folds) < 2:
        return []
    stats = [speech.total(partial(chunk_statistics, hmms, options), fold, where) for fold in folds]
    every = -(-len(data.items) // MOST)
    parts = []
    for number, fold in enumerate(folds):
        rest = reduce(add, (other for n, other in enumerate(stats) if n != number))
        parts.append((ml.update(hmms, rest, options)[0], replace(fold, items=fold.items[::every])))
    return parts


def chunk_statistics(hmms: HmmSet, options, chunk):
    return ml.accumulate(hmms, speech.load(chunk, hmms), options)


@dataclass(frozen=True)
class Axis:
    """One weight: its name in the grammar's table, its start, the values to begin with, and whether others follow.

    Distances are measured in ``u``: nats of a penalty, octaves of a scale.
    """

    name: str
    start: float
    values: tuple[float, ...]
    follows: bool

    def u(self, value: float) -> float:
        return float(np.log2(value)) if self.name == "scale" else value

    def near(self, tried: set[float], best: float) -> list[float]:
        """The best value, those half way to its neighbours among the ``tried`` ones (or they, if near enough), and
        where it is the last of them, one twice as far beyond."""
        places = sorted({self.u(value): value for value in tried})
        place, here = places.index(self.u(best)), self.u(best)
        finest, reach, most = (0.25, 0.5, 6) if self.name == "scale" else (max(5.0, abs(best) / 8), 5.0, 640)
        near = []
        for side in (-1, 1) if self.follows else ():
            if 0 <= place + side < len(places):
                gap = places[place + side] - here
                near.append(here + (gap / 2 if abs(gap) > finest else gap))
            else:
                behind = abs(here - places[place - side]) if 0 <= place - side < len(places) else reach
                near.append(here + side * 2 * behind)
        near = [u for u in near if abs(u) <= most]
        return [best, *(2.0**u if self.name == "scale" else u for u in near)]


def axes_of(hmms: HmmSet, tries: dict[str, tuple[str, ...]]) -> list[Axis]:
    """The weights of the model's grammar, with the values that ``tries`` names for each."""
    axes = []
    for name, start in weights_of(hmms).items():
        values = tries[name]
        first = {"auto": (*LADDER, start) if name == "insertion_penalty" else (start,), "none": (start,)}
        first = first[values[0]] if values[0] in WORDS else tuple(map(float, values))
        axes.append(Axis(name, start, tuple(dict.fromkeys(first)), values == ("auto",)))
    return axes


def search(axes: list[Axis], count) -> tuple[tuple, dict[tuple, list[int]]]:
    """``(best setting, errors of every setting tried)``; a setting has a value of each axis, ``count(settings)`` gives
    ``[word errors, wrong strings]`` of each. Of equals the one nearest to the start is best."""
    start = tuple(axis.start for axis in axes)
    tried: dict[tuple, list[int]] = {}
    allowed, fresh = set(), list(product(*(axis.values for axis in axes)))

    def rank(setting):
        away = sum(abs(axis.u(value) - axis.u(axis.start)) for axis, value in zip(axes, setting))
        return sum(tried[setting]), away, setting

    for _ in range(ROUNDS):
        allowed.update(fresh)
        fresh += [start] * (start not in allowed and start not in tried)  # to tell what was gained
        tried |= dict(zip(fresh, count(fresh)))
        best = min(allowed, key=rank)
        near = (axis.near({setting[n] for setting in allowed}, best[n]) for n, axis in enumerate(axes))
        fresh = [setting for setting in product(*near) if setting not in tried]
        if not fresh:
            break
    return best, tried


def tuned(hmms: HmmSet, parts: list[tuple], source: str, options, where, step) -> HmmSet:
    """The model with the grammar weights that make fewest errors on ``parts`` (see :func:`count_errors`), which
    ``source`` names; what was tried goes to ``grammar.json`` in the step's folder."""
    axes = axes_of(hmms, options.tries())
    names = [axis.name for axis in axes]
    best, tried = search(
        axes, lambda settings: count_errors(parts, [dict(zip(names, setting)) for setting in settings], where)
    )
    start, items = tuple(axis.start for axis in axes), [item for _, data in parts for item in data.items]
    rows = {setting: dict(zip((*names, "errors", "wrong"), (*setting, *errors))) for setting, errors in tried.items()}
    before, after = rows[start], rows[best]
    sizes = {"words": sum(len(item.words) for item in items), "strings": len(items)}
    write_json(step.output(NAME), {"chosen_on": source, **sizes, "before": before, "after": after,
                                    "tried": [rows[setting] for setting in sorted(rows, reverse=True)]})  # fmt: skip
    step.extra["weights"] = dict(zip(names, best))
    said = " and ".join(f"{name.replace('_', ' ')} {value:g}" for name, value in zip(names, best))
    step.say(f"{step.name}: {source} chooses {said}: {told(before, sizes)} before, {told(after, sizes)} now")
    return with_grammar(hmms, **dict(zip(names, best)))


def told(errors: dict, sizes: dict) -> str:
    return f"{errors['errors']} of {sizes['words']} words, {errors['wrong']} of {sizes['strings']} strings wrong"

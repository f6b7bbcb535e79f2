"""What trainers share beyond the loop of epochs, and the maximum-likelihood trainer itself."""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from margo.errors import MargoError
from margo.estimate import ml
from margo.estimate.start import Moments, moments
from margo.formats.models import pack, unpack
from margo.model.bigram import bigram_counts, log_bigram
from margo.model.grammar import grammar
from margo.model.hmm import HmmSet, flat_start, whole_words
from margo.signal.front_end import same_features
from margo.tasks import passes, speech
from margo.tasks.labels import start_from_labels


def accumulate_ml(hmms: HmmSet, options, scale: float, chunk):
    return ml.accumulate(hmms, speech.load(chunk), options, scale)


def chunk_moments(dimension: int, chunk) -> Moments:
    return moments((x for _, x, _ in speech.load(chunk)), dimension)


def errors_on(hmms: HmmSet, folder, where, step) -> dict:
    """Word and string errors of ``hmms`` on a feature folder, under its own grammar."""
    data = speech.read(step.input(folder, made_by="make_mfcc"))
    same_features(hmms.meta["features"], data.features, f"{folder}: the features")
    errors, words, wrong, strings = speech.total(partial(passes.count_errors, hmms), data, where).tolist()
    step.say(f"{step.name}: {Path(folder).name} {errors} of {words} words, {wrong} of {strings} strings wrong")
    return {"errors": errors, "words": words, "wrong": wrong, "strings": strings}


@dataclass(frozen=True, eq=False)
class MlState:
    """The model, its number of components a state, and how many passes there were at that number."""

    hmms: HmmSet
    mixtures: int
    passes: int  # negative while annealing
    objective: float | None


class MlTraining:
    """Start, advance, save and load of the epoch loop for maximum likelihood."""

    def __init__(self, options, data: speech.Speech, where, step):
        self.options, self.data, self.where, self.step = options, data, where, step
        self.told: set = set()

    def start(self) -> MlState:
        options = self.options
        if options.init:
            hmms = passes.model_for(options.init, self.data)
            mixtures = int(hmms.pool.sizes.max())
            if options.mixtures < mixtures:
                raise MargoError(f"--mixtures is {options.mixtures}, {options.init} has {mixtures} already")
            return self.grow(MlState(hmms, mixtures, 0, None))
        found = speech.total(partial(chunk_moments, self.data.features["dimension"]), self.data, self.where)
        hmms = flat_start(
            whole_words(self.data.vocabulary),
            options.states,
            found.mean,
            found.variance,
            silence="sil" if options.silence_states else None,
            silence_states=options.silence_states,
            skip=options.skip,
            variance_floor=options.variance_floor * found.variance,
            meta={"features": self.data.features, "grammar": self.grammar(), "criterion": "ml", "seed": options.seed},
        )
        if options.start == "labels":
            hmms = start_from_labels(hmms, options.labels, self.data, self.where, options, self.step.say)
            return MlState(hmms, 1, 0, None)
        return MlState(hmms, 1, -options.anneal, None)

    def grammar(self) -> dict:
        kind = self.options.grammar
        if kind == "auto":
            kind = "isolated" if self.data.isolated else "loop"
        table = None
        if kind == "bigram":
            table = log_bigram(bigram_counts((item.words for item in self.data.items), self.data.vocabulary))
        return grammar(kind, self.options.insertion_penalty, table, self.options.scale)

    def grow(self, state: MlState) -> MlState:
        """Double the components, up to those asked for."""
        mixtures = min(2 * state.mixtures, self.options.mixtures)
        if mixtures == state.mixtures:
            return state
        return MlState(ml.split(state.hmms, mixtures), mixtures, 0, None)

    def advance(self, iteration: int, state: MlState):
        scale = self.options.anneal_from ** (-state.passes / self.options.anneal) if state.passes < 0 else 1.0
        stats = speech.total(partial(accumulate_ml, state.hmms, self.options, scale), self.data, self.where)
        speech.check_dropped(stats.dropped, self.data, self.step, self.told)
        # One variance for all while annealing: where some are wide, their states swallow what fits nowhere.
        options = self.options if state.passes >= 0 else replace(self.options, tie_variances="global")
        hmms, report = ml.update(state.hmms, stats, options)
        report["mixtures"] = state.mixtures
        if state.passes < 0:
            report |= {"scale": scale, "objective": report["objective"] / scale}
            return MlState(hmms, state.mixtures, state.passes + 1, None), report, False
        enough = state.passes + 1 == self.options.iterations or ml.converged(
            state.objective, report["objective"], self.options.tolerance
        )
        state = MlState(hmms, state.mixtures, state.passes + 1, report["objective"])
        done = enough and state.mixtures == self.options.mixtures
        return (self.grow(state) if enough and not done else state), report, done

    def save(self, state: MlState):
        meta, arrays = pack(state.hmms)
        return {"hmms": meta, "mixtures": state.mixtures, "passes": state.passes, "objective": state.objective}, arrays

    def load(self, meta: dict, arrays: dict) -> MlState:
        return MlState(unpack(meta["hmms"], arrays), meta["mixtures"], meta["passes"], meta["objective"])

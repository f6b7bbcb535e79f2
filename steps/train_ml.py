"""Train HMMs by maximum likelihood: a start, Baum-Welch, and mixtures grown by splitting.

Without --init every word of the transcripts gets a left-to-right model, started flat: every state has the whole data's
mean and variance; or, with --start labels, from segments labelled by hand: frames shared out evenly over the states,
then segmental k-means. With --init training goes on from that model.
Components double until there are --mixtures a state, with Baum-Welch to convergence at each number. The grammar goes
into the model: one word where every transcript is one word, else a loop of words; or a bigram of the transcripts, its
scale and insertion penalty tuned on --dev where that is asked for.

Example: steps/train_ml.py --data exp/tidigits/mfcc/train --states 12 --silence-states 3 --out exp/tidigits/ml_1
"""

from dataclasses import dataclass
from pathlib import Path

from margo.estimate.options import MlOptions
from margo.runtime.step import Parallel, Seeded, Trainer, main, option


@dataclass(frozen=True)
class Options(MlOptions, Parallel, Seeded, Trainer):
    data: Path = option(help="feature folder to train on")
    dev: Path | None = option(None, help="feature folder of the development set, decoded at the end")
    init: str = option("", help="folder of the model to start from")
    out: Path = option(help="folder to write")
    mixtures: int = option(1, help="Gaussians per state to end with")
    start: str = option("flat", choices=("flat", "labels"), help="where training starts without --init")
    labels: Path | None = option(None, help="CTM file of hand labels, for --start labels")
    states: int = option(12, help="emitting states of a word")
    skip: float = option(0.0, help="probability, at the start, of skipping a state; 0 allows no skips")
    silence_states: int = option(0, help="states of an optional silence around and between words; 0 for none")
    grammar: str = option("auto", choices=("auto", "isolated", "loop", "bigram"), help="what may be recognised")
    insertion_penalty: float = option(0.0, help="added to the score for every word of a loop or bigram")
    scale: float = option(1.0, help="factor of a bigram's log probabilities")
    tune_scales: tuple[float, ...] = option((), help="scales of the bigram to try on --dev (none: --scale it is)")
    tune_penalties: tuple[float, ...] = option((0.0,), help="insertion penalties to try with each of --tune-scales")

    def __post_init__(self):
        super().__post_init__()
        for name, least in (("mixtures", 1), ("states", 1), ("silence_states", 0)):
            if getattr(self, name) < least:
                raise ValueError(f"--{name.replace('_', '-')} is {getattr(self, name)}, expected at least {least}")
        if self.start == "labels" and not self.labels:
            raise ValueError("--start labels needs --labels")
        if self.tune_scales and not (self.dev and self.grammar == "bigram"):
            raise ValueError("--tune-scales needs --dev and --grammar bigram")


def run(options: Options, step):
    from margo.formats.models import write_model
    from margo.runtime import epochs
    from margo.tasks import speech
    from margo.tasks.training import MlTraining, errors_on
    from margo.tasks.tuning import tuned

    data = speech.read(step.input(options.data, made_by="make_mfcc"))
    if options.init:
        step.input(options.init, made_by="train_ml")
    if options.dev:  # named before training begins: a finished run is told from another by all of its inputs
        step.input(options.dev, made_by="make_mfcc")
    if options.start == "labels":
        step.input_file(options.labels)
    with step.place() as where:
        training = MlTraining(options, data, where, step)
        state, _ = epochs.train(step, training.start, training.advance, training.save, training.load)
        hmms = tuned(state.hmms, options, where, step) if options.tune_scales else state.hmms
        write_model(step.output("model.npz"), hmms)
        epochs.finish(step)
        if options.dev:
            step.extra["dev"] = errors_on(hmms, options.dev, where, step)


if __name__ == "__main__":
    main(__doc__, Options, run)

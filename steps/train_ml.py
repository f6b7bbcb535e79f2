"""Train HMMs by maximum likelihood: a start, Baum-Welch, and mixtures grown by splitting.

Without --init every word of the transcripts gets a left-to-right model, started flat: every state has the whole data's
mean and variance; or, with --start labels, from segments labelled by hand: frames shared out evenly over the states,
then segmental k-means. With --lexicon words are made of units that they share, phones or letters, in one or several
pronunciations, and these are what training starts with. With --init training goes on from that model.
Components double until there are --mixtures a state, with Baum-Welch to convergence at each number. The grammar goes
into the model: one word where every transcript is one word, else a loop of words; or a bigram of the transcripts. Its
insertion penalty (and scale) are chosen on --dev; without it, on folds of the training speakers.

Example: steps/train_ml.py --data exp/tidigits/mfcc/train --states 12 --silence-states 3 --out exp/tidigits/ml_1
"""

from dataclasses import dataclass
from pathlib import Path

from margo.estimate.ml import Ml, MlOptions
from margo.knobs import knob
from margo.runtime.step import main
from margo.tasks.pronouncing import usable
from margo.tasks.training import StartOptions, TrainingOptions, first_model, train
from margo.tasks.tuning import fold_models


@dataclass(frozen=True)
class Options(MlOptions, StartOptions, TrainingOptions):
    dev: Path | None = knob(None, "feature folder of the development set, which chooses grammar weights")
    init: str = knob("", "folder of the model to start from")


def run(options: Options, step):
    if options.start == "labels":
        step.input_file(options.labels)
    if options.grammar == "lm":
        step.input_file(options.lm)
    train(Ml, options, step, first_model, fold_models, usable)


if __name__ == "__main__":
    main(__doc__, Options, run)

"""Train a GMM classifier for conditional likelihood or margin by the extended Baum-Welch algorithm ([PW10]).

Starts from a classifier of train_gmm with diagonal covariances; can be interrupted and goes on where it was. Passes
over the samples are split over --nj processes or a --cluster, with the same result.

Example: steps/train_ebw.py --criterion mm --init exp/spirals/0/gmm-ml_12 --data exp/spirals/data/0 \
--out exp/spirals/0/gmm-mm_12
"""

from dataclasses import dataclass
from pathlib import Path

from margo.classify.ebw_training import EbwOptions
from margo.runtime.step import Parallel, Seeded, knob, main


@dataclass(frozen=True)
class Options(EbwOptions, Seeded, Parallel):
    data: Path = knob(help="data folder with train.npz (and dev.npz)")
    init: Path = knob(help="folder of train_gmm to start from")
    out: Path = knob(help="folder to write")
    with_dev: bool = knob(False, "train on dev.npz too, once it has chosen what it had to")
    overwrite: bool = knob(False, "replace an unfinished run that had other settings")


def run(options: Options, step):
    from margo.formats.classifiers import write_classifier
    from margo.runtime import epochs
    from margo.tasks import classifying

    table = classifying.labelled(classifying.training_set(options.data, options.with_dev, step))
    model, meta = classifying.read_model(options.init, step, table.names)
    with step.place() as where:
        training = classifying.EbwTraining(model, table, options, where)
        state, reports = epochs.train(step, training.start, training.advance, training.save, training.load)
    best = state.best
    write_classifier(step.output("model.npz"), best, table.names, options.criterion, mixtures=meta["mixtures"])
    epochs.finish(step)
    step.say(f"{len(reports)} iterations, best criterion {state.best_objective / len(table.y):.5f} a sample, "
             f"{classifying.error_percent(best, table):.2f} % of {len(table.y)} training samples wrong")  # fmt: skip


if __name__ == "__main__":
    main(__doc__, Options, run)

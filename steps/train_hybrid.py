"""Train a GMM classifier for likelihood and margin (or conditional likelihood) at once ([R18]), by ADAM.

Starts from a classifier of train_gmm. dev.npz, where there is one, chooses the epoch; --with-dev trains on it instead,
for as many --epochs as there are. Samples without a label are used through (16).

Example: steps/train_hybrid.py --init exp/timit/hybrid-ll --data exp/timit/phones --out exp/timit/hybrid-ll-lm
"""

from dataclasses import dataclass
from pathlib import Path

from margo.classify.hybrid import HybridOptions
from margo.runtime.step import Seeded, knob, main


@dataclass(frozen=True)
class Options(HybridOptions, Seeded):
    data: Path = knob(help="data folder with train.npz (and dev.npz)")
    init: Path = knob(help="folder of train_gmm to start from")
    out: Path = knob(help="folder to write")
    with_dev: bool = knob(False, "train on dev.npz too, instead of choosing the epoch by it")
    overwrite: bool = knob(False, "replace an unfinished run that had other settings")


def run(options: Options, step):
    from margo.formats.classifiers import write_classifier
    from margo.runtime import epochs
    from margo.tasks import classifying

    table = classifying.training_set(options.data, options.with_dev, step)
    choosing = not options.with_dev and (options.data / "dev.npz").exists()
    dev = classifying.read_set(options.data, "dev", step) if choosing else None
    model, meta = classifying.read_model(options.init, step, table.names)
    training = classifying.HybridTraining(model, table, dev, options)
    state, reports = epochs.train(step, training.start, training.advance, training.save, training.load)
    best = training.result(state)
    write_classifier(step.output("model.npz"), best, table.names, options.objective, mixtures=meta["mixtures"],
                     best_epoch=state.best_epoch)  # fmt: skip
    epochs.finish(step)
    step.say(f"epoch {state.best_epoch} of {len(reports)} kept, {classifying.error_percent(best, table):.2f} % of "
             f"the training samples wrong")  # fmt: skip


if __name__ == "__main__":
    main(__doc__, Options, run)

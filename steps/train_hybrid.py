"""Train a GMM classifier for likelihood and margin (or conditional likelihood) at once ([R18]), by ADAM.

Starts from a classifier of train_gmm. dev.npz, where there is one, chooses the epoch; --epochs-of names a run whose
chosen epoch ends this one, for training on train and dev together. Samples without a label are used through (16).
"""

from dataclasses import dataclass
from pathlib import Path

from margo.classify.options import HybridOptions
from margo.runtime.step import Seeded, main, option


@dataclass(frozen=True)
class Options(HybridOptions, Seeded):
    data: Path = option(help="data folder with train.npz (and dev.npz)")
    init: Path = option(help="folder of train_gmm to start from")
    out: Path = option(help="folder to write")
    epochs_of: Path | None = option(None, help="folder of train_hybrid whose best epoch is the last of this run, "
                                               "which trains on train and dev")  # fmt: skip
    overwrite: bool = option(False, help="replace an unfinished run that had other settings")


def run(options: Options, step):
    from margo.formats.classifiers import write_classifier
    from margo.runtime import classifying, epochs

    both = options.epochs_of is not None
    table = classifying.training_set(options.data, both, step)
    dev = None if both or not (options.data / "dev.npz").exists() else classifying.read_set(options.data, "dev", step)
    last = options.epochs
    if both:
        _, chosen = classifying.read_model(options.epochs_of, step, table.names)
        last = chosen["best_epoch"]
    model, meta = classifying.read_model(options.init, step, table.names)
    training = classifying.HybridTraining(model, table, dev, options)

    def advance(epoch, state):
        state, report, done = training.advance(epoch, state)
        return state, report, done or epoch >= last

    state, reports = epochs.train(step, training.start, advance, training.save, training.load)
    best = training.result(state)
    write_classifier(step.output("model.npz"), best, table.names, options.objective, mixtures=meta["mixtures"],
                     best_epoch=state.best_epoch)  # fmt: skip
    epochs.finish(step)
    step.say(f"epoch {state.best_epoch} of {len(reports)} kept, {classifying.error_percent(best, table):.2f} % of "
             f"the training samples wrong")  # fmt: skip


if __name__ == "__main__":
    main(__doc__, Options, run)

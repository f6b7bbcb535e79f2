"""Train max-margin Gaussians ([DA08]): by SMO with a certificate, or by projected gradient for comparison.

Starts from a classifier of train_gmm, which says which Gaussian of its class is responsible for each sample.
--faithful alternates between matrices and the rest, with sample constraints, as the paper prints it. progress.jsonl has
the objective and the CPU seconds of every pass ([DA08] Figure 1).

Example: steps/train_margin.py --init exp/digits/gmm-ml_1 --data exp/digits/data/pca --out exp/digits/mm-smo_1
"""

from dataclasses import dataclass
from pathlib import Path

from margo.classify.maxmargin import MarginOptions
from margo.runtime.step import Seeded, knob, main


@dataclass(frozen=True)
class Options(MarginOptions, Seeded):
    data: Path = knob(help="data folder with train.npz (and dev.npz)")
    init: Path = knob(help="folder of train_gmm to start from")
    out: Path = knob(help="folder to write")
    with_dev: bool = knob(False, "train on dev.npz too, once it has chosen what it had to")


def run(options: Options, step):
    from margo.formats.classifiers import write_classifier
    from margo.runtime import epochs
    from margo.tasks import classifying

    table = classifying.labelled(classifying.training_set(options.data, options.with_dev, step))
    model, meta = classifying.read_model(options.init, step, table.names)
    best, reports = classifying.fit_margin(model, table, options, options.seed)
    write_classifier(step.output("model.npz"), best, table.names, options.method, mixtures=meta["mixtures"])
    epochs.write_progress(step, reports)
    step.say(f"{len(reports)} epochs, " + ", ".join(f"{key} {value:.5g}" for key, value in reports[-1].items())
             + f", {classifying.error_percent(best, table):.2f} % of the training samples wrong")  # fmt: skip


if __name__ == "__main__":
    main(__doc__, Options, run)

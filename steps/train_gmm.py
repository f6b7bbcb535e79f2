"""Train a GMM classifier by maximum likelihood (EM), one mixture a class, on labelled samples that may have gaps.

Reads train.npz of the data folder; writes model.npz.

Example: steps/train_gmm.py --data exp/spirals/data/0 --mixtures 12 --out exp/spirals/0/gmm-ml_12
"""

from dataclasses import dataclass
from pathlib import Path

from margo.classify.gmm import GmmOptions
from margo.runtime.step import Seeded, knob, main


@dataclass(frozen=True)
class Options(GmmOptions, Seeded):
    data: Path = knob(help="data folder with train.npz (and dev.npz)")
    out: Path = knob(help="folder to write")
    with_dev: bool = knob(False, "train on dev.npz too, once it has chosen what it had to")


def run(options: Options, step):
    import numpy as np

    from margo.classify import gmm
    from margo.formats.classifiers import write_classifier
    from margo.runtime import epochs
    from margo.tasks import classifying

    table = classifying.labelled(classifying.training_set(options.data, options.with_dev, step))
    model, reports = gmm.fit(table.x, table.y, options, np.random.default_rng(options.seed), len(table.names))
    write_classifier(step.output("model.npz"), model, table.names, "ml", mixtures=options.mixtures)
    epochs.write_progress(step, reports)
    step.say(f"{len(reports)} iterations, log-likelihood {reports[-1]['objective']:.4f} a sample, "
             f"{classifying.error_percent(model, table):.2f} % of {len(table.y)} training samples wrong")  # fmt: skip


if __name__ == "__main__":
    main(__doc__, Options, run)

"""Error of hybrid classifiers trained on few labels, with and without the rest of the training samples unlabelled.

For every number of labels and draw: EM on the labelled samples, then hybrid training on them alone (supervised) and on
all (semi-supervised, [R18] (16)), for each of --objectives. Writes labels.json and plots.json ([R18] Table 2).

Example: steps/sweep_labels.py --data exp/digits/data/pca --out exp/digits/labels
"""

from dataclasses import dataclass
from pathlib import Path

from margo.classify.hybrid import HybridOptions
from margo.runtime.step import Seeded, knob, main


@dataclass(frozen=True)
class Options(HybridOptions, Seeded):
    data: Path = knob(help="data folder with train.npz and test.npz")
    out: Path = knob(help="folder to write")
    labels: tuple[int, ...] = knob((100, 250, 500, 1000), "numbers of labelled samples", least=1)
    objectives: tuple[str, ...] = knob(("ll-lm",), "instead of --objective, one after the other", ("ll-lm", "ll-cll"))
    draws: int = knob(3, "draws of which samples have labels, averaged", least=1)
    start_ridge: float = knob(0.3, "ridge of the EM start, which has few samples a class", least=0)


def run(options: Options, step):
    from margo.formats.atomic import write_json
    from margo.formats.plots import write_plots
    from margo.tasks import classifying, sweeping

    train = classifying.labelled(classifying.read_set(options.data, "train", step))
    test = classifying.labelled(classifying.read_set(options.data, "test", step))
    rows, plots = sweeping.label_curves(train, test, options, step)
    write_json(step.output("labels.json"), rows)
    write_plots(options.out, plots)
    step.output("plots.json")


if __name__ == "__main__":
    main(__doc__, Options, run)

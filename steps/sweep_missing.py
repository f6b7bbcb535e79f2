"""Error of classifiers against the part of features missing from test samples, marginalised ([PW10] Fig. 4, [R18] 3).

The same features of the same samples are missing for every classifier; bands are one standard deviation over draws.
--references fill gaps with the training means. --ranks cuts the first model's covariances down to diagonal plus low
rank ([R18] Figure 3c: the time a sample takes). Writes missing.json and plots.json.

Example: steps/sweep_missing.py --model exp/timit/gmm-ml exp/timit/gmm-mm --data exp/timit/frames \
--out exp/timit/missing
"""

from dataclasses import dataclass
from pathlib import Path

from margo.runtime.step import Seeded, knob, main


@dataclass(frozen=True)
class Options(Seeded):
    model: tuple[Path, ...] = knob(help="folders of trainers")
    data: Path = knob(help="data folder with test.npz")
    out: Path = knob(help="folder to write")
    fractions: tuple[float, ...] = knob(
        (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8), "parts missing", least=0, below=1
    )
    repeats: int = knob(5, "draws of the missing features, averaged ([PW10] has 100)", least=1)
    samples: int = knob(1000, "test samples used, evenly chosen (0: all)", least=0)
    ranks: tuple[int, ...] = knob((), "the first model once more for each of these ranks", least=0)
    references: tuple[str, ...] = knob((), "classifiers of scikit-learn beside them", ("svm-rbf", "knn", "mlp"))
    most: int = knob(20000, "most training samples for svm-rbf", least=1)


def run(options: Options, step):
    from margo.formats.atomic import write_json
    from margo.formats.plots import write_plots
    from margo.tasks import classifying, peers, sweeping

    table = classifying.labelled(classifying.read_set(options.data, "test", step))
    deciders = sweeping.deciders(options.model, options.ranks, table, step)
    for system in options.references:
        train, dev = (classifying.labelled(classifying.read_set(options.data, name, step)) for name in ("train", "dev"))
        deciders[system] = peers.imputing(system, train, dev, options.seed, options.most)
    curves, plots = sweeping.missing_curves(deciders, table, options, step)
    write_json(step.output("missing.json"), curves)
    write_plots(options.out, plots)
    step.output("plots.json")


if __name__ == "__main__":
    main(__doc__, Options, run)

"""Error of hybrid classifiers trained on few labels, with and without the rest of the training samples unlabelled.

For every number of labels and draw: EM on the labelled samples, then hybrid training on them alone (supervised) and on
all (semi-supervised, [R18] (16)), for each of --objectives. Numbers of labels above that of the training samples are
left out. Writes labels.json and plots.json ([R18] Table 2); with --paper its figures, where corpus.json beside the data
folder names the same data.

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
    paper: Path | None = knob(None, "TOML file with the paper's figures")
    start_ridge: float = knob(0.3, "ridge of the EM start, which has few samples a class", least=0)


def run(options: Options, step):
    from margo.formats.atomic import write_json
    from margo.formats.paper import read_paper
    from margo.formats.plots import write_plots
    from margo.formats.reading import read_json
    from margo.tasks import classifying, sweeping

    train = classifying.labelled(classifying.read_set(options.data, "train", step))
    test = classifying.labelled(classifying.read_set(options.data, "test", step))
    corpus, paper = "", read_paper(step.input_file(options.paper)) if options.paper else None
    if paper:
        named = step.input_file(options.data.parent / "corpus.json")
        corpus = read_json(named, "what labels results", {"corpus": str, "synthetic": bool})["corpus"]

    def printed(kind, count):
        figure = paper and paper.find(kind, 1, "test", "err", corpus, f"{count} labels")
        return figure.percent if figure else None

    rows, plots = sweeping.label_curves(train, test, options, step, printed)
    write_json(step.output("labels.json"), rows)
    write_plots(options.out, plots)
    step.output("plots.json")


if __name__ == "__main__":
    main(__doc__, Options, run)

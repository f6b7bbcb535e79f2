"""Turn USPS, MNIST, CIFAR-10, or any CSV or HDF5 table with labels into data folders for classifiers; digits of
scikit-learn without --corpus.

Writes <out>/pca (principal components scaled together) and <out>/white (each of unit variance), both fitted on the
training part, and <out>/pixels (as they are, but for one common scale), each with train.npz, dev.npz and test.npz.
Where the corpus has no test part a quarter is kept for it.
A table with gaps or few features keeps its features, standardised.

Example: local/digits_data.py --corpus usps.h5 --out exp/digits/data
"""

from dataclasses import dataclass
from pathlib import Path

from margo.runtime.step import Seeded, knob, main

PAPERS = 50  # principal components in [DA08] and [R18], which has figures without them too


@dataclass(frozen=True)
class Options(Seeded):
    corpus: str = knob("", "usps.h5 or one like it, folder with MNIST's idx, .amat or CIFAR-10's files, or a .csv")
    test: str = knob("", "a .csv file with the test samples of a .csv corpus (default: a quarter of it)")
    name: str = knob("", "what the data set is called (default: known by what it holds, else as its file)")
    remake: str = knob("", "square images turned, or on a random background", ("rot", "back-rand"))
    out: Path = knob(help="folder to write")
    label: str = knob("", "label column of a CSV file (default: label, class, target, or the last)")
    components: int = knob(PAPERS, "principal components (0: standardised features instead)", least=0)
    dev: float = knob(1 / 6, "part of the training samples kept to choose settings with", above=0, below=1)


def run(options: Options, step):
    import numpy as np

    from margo.formats.atomic import write_json
    from margo.formats.tables import write_table
    from margo.tasks import preparing

    name, tables = preparing.load(options.corpus, options.label, options.test)
    if options.remake:
        tables = preparing.remade(tables, options.remake, np.random.default_rng([options.seed, 1]))
        name = f"{name}-{options.remake} (re-made)"
    if options.components != PAPERS:  # the papers' figures are of other features then
        name += f", {options.components} components" if options.components else ", no PCA"
    name = options.name or name
    parts = preparing.split(tables, options.dev, np.random.default_rng(options.seed))
    for folder, whiten in (("pca", False), ("white", True)):
        for part, table in preparing.projected(parts, options.components, whiten, step.say).items():
            write_table(step.output(f"{folder}/{part}.npz"), table)
    for part, table in preparing.as_pixels(parts).items():
        write_table(step.output(f"pixels/{part}.npz"), table)
    write_json(step.output("corpus.json"), {"corpus": name, "synthetic": False})
    step.say(f"{name}: " + ", ".join(f"{len(table.y)} {part}" for part, table in parts.items()))


if __name__ == "__main__":
    main(__doc__, Options, run)

"""Score scikit-learn's SVM, nearest neighbours and multi-layer perceptron on the same tables: references, not systems.

Settings are chosen on dev.npz from a small grid; the classifier then trains on train and dev.

Example: steps/test_peers.py --systems svm-rbf knn --data exp/digits/data/pca --out exp/digits/test/references
"""

from dataclasses import dataclass
from pathlib import Path

from margo.runtime.step import Seeded, main, option

SYSTEMS = ("svm-rbf", "knn", "mlp")


@dataclass(frozen=True)
class Options(Seeded):
    data: Path = option(help="data folder with train.npz, dev.npz and test.npz")
    out: Path = option(help="folder to write: one below it for each system")
    systems: tuple[str, ...] = option(SYSTEMS, choices=SYSTEMS, help="what to score")
    most: int = option(20000, help="most training samples for svm-rbf, whose time grows with their square")
    task: str = option("", help="which of a recipe's tasks this is")


def run(options: Options, step):
    from margo.tasks import peers

    peers.score_peers(options, step)


if __name__ == "__main__":
    main(__doc__, Options, run)

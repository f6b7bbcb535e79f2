"""Score scikit-learn's SVM, nearest neighbours and multi-layer perceptron on the same tables: references, not systems.

Settings are chosen on dev.npz from a small grid; the classifier then trains on train and dev.

Example: steps/test_peers.py --systems svm-rbf knn --data exp/digits/data/pca --out exp/digits/test/references
"""

from dataclasses import dataclass
from pathlib import Path

from margo.runtime.step import Seeded, knob, main

SYSTEMS = ("svm-rbf", "knn", "mlp")


@dataclass(frozen=True)
class Options(Seeded):
    data: Path = knob(help="data folder with train.npz, dev.npz and test.npz")
    out: Path = knob(help="folder to write: one below it for each system")
    systems: tuple[str, ...] = knob(SYSTEMS, "what to score", SYSTEMS)
    most: int = knob(20000, "most training samples for svm-rbf, whose time grows with their square", least=1)
    task: str = knob("", "which of a recipe's tasks this is")


def run(options: Options, step):
    from margo.tasks import peers

    peers.score_peers(options, step)


if __name__ == "__main__":
    main(__doc__, Options, run)

"""Classify the test samples with trained GMM classifiers and score them; several models are runs of one experiment.

Writes <out>/<set>/score.json and score/ for every set asked for, and predictions.csv of the first model.

Example: steps/test_gmm.py --model exp/spirals/0/gmm-mm_12 --data exp/spirals/data/0 --system gmm-mm \
--out exp/spirals/test/gmm-mm_12
"""

from dataclasses import dataclass
from pathlib import Path

from margo.runtime.step import Seeded, knob, main


@dataclass(frozen=True)
class Options(Seeded):
    model: tuple[Path, ...] = knob(help="folders of trainers")
    data: tuple[Path, ...] = knob(help="data folders, one for all models or one for each")
    out: Path = knob(help="folder to write")
    system: str = knob(help="name of the system in the results")
    sets: tuple[str, ...] = knob(("train", "test"), "what to score", ("train", "dev", "test"))
    rule: str = knob("mixture", "class by its mixture or best Gaussian", ("mixture", "component"))
    task: str = knob("", "which of a recipe's tasks this is")


def run(options: Options, step):
    from margo.tasks import classifying

    classifying.score_models(options, step)


if __name__ == "__main__":
    main(__doc__, Options, run)

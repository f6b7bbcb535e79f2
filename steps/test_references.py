"""Score classifiers of scikit-learn on the same data, for comparison: references, not systems of this project.

Settings are chosen by leaving out one training speaker at a time where the data name speakers. bayes classifies by the
true densities of the artificial task.

Example: steps/test_references.py --data exp/deterding/data/vowels.csv --out exp/deterding/score/references
"""

from dataclasses import dataclass
from pathlib import Path

from margo.runtime.step import Knobs, knob, main

SYSTEMS = ("svm-rbf", "svm-linear", "qda", "knn", "bayes")


@dataclass(frozen=True)
class Options(Knobs):
    data: tuple[Path, ...] = knob(help="CSV files with the columns split, speaker (to choose by), class, features")
    out: Path = knob(help="folder to write")
    systems: tuple[str, ...] = knob(("svm-rbf", "qda", "knn"), "what to score", SYSTEMS)


def run(options: Options, step):
    from margo.kernel.artificial import bayes
    from margo.tasks import mixture_kernels as kernels
    from margo.tasks.peers import choose, make

    files = kernels.read_runs(options.data, step)
    for system in options.systems:
        made, settings = {"train": [], "test": []}, {}
        for file in files:
            train = file["train"]
            if system == "bayes":
                predict = bayes
            else:
                settings = choose(system, train.x, train.y, train.groups)
                predict = make(system, **settings).fit(train.x, train.y).predict
            for split in made:
                made[split].append(predict(file[split].x))
        for split, predictions in made.items():
            truths = [file[split].y for file in files]
            kernels.write_result(step, system, 1, split, truths, predictions, files[0][split].groups,
                                 extra={"settings": settings})  # fmt: skip


if __name__ == "__main__":
    main(__doc__, Options, run)

"""Search settings of a trainer on dev.npz with Optuna; the trials are in study.db and a stopped search goes on there.

With --folds, and few samples in dev.npz, by cross-validation over train and dev. A trainer that starts from a model
gets one trained anew on the samples it may see, with the options that --init was trained with. With --folds it runs to
its end, so that what was held out chooses the settings and nothing else; without, dev.npz chooses the epoch of
train_hybrid too, as it does when that is run without --with-dev.

--space gives choices (cost=1,3,10), ranges (rate=1e-4:1e-2:log, margin=5:100) or whole numbers (rank=5..25). Choices
alone are tried one and all; ranges are searched by Optuna's sampler. Writes best.toml, which any trainer takes as
--conf, and trials.json.

Example: steps/tune.py --trainer train_gmm --data exp/digits/data/pca --space mixtures=1,2,4 --out exp/digits/tuned
"""

from dataclasses import dataclass
from pathlib import Path

from margo.runtime.step import Seeded, knob, main


@dataclass(frozen=True)
class Options(Seeded):
    trainer: str = knob(choices=("train_gmm", "train_ebw", "train_hybrid", "train_margin"), help="what to tune")
    data: Path = knob(help="data folder with train.npz and dev.npz")
    init: Path | None = knob(None, "folder of train_gmm whose options make the start (train_gmm needs none)")
    space: tuple[str, ...] = knob(help="name=values, once for every setting")
    fixed: tuple[str, ...] = knob((), "name=value for settings that are not searched")
    folds: int = knob(1, "cross-validate over train and dev in so many folds, where dev is small", least=1)
    small: int = knob(5000, "samples of dev below which it is small: too few to tell good settings apart", least=0)
    trials: int = knob(30, "trials in all, those of earlier runs included", least=1)
    out: Path = knob(help="folder to write")


def run(options: Options, step):
    from margo.tasks import tuning_classifiers as tuning

    tuning.search(options, step)


if __name__ == "__main__":
    main(__doc__, Options, run)

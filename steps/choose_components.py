"""Choose the number of Gaussians of each class: EM for every number, then those that err least on dev ([R18] 4.2.1).

Every class is trained with each of --components from several starts; since the classes' mixtures do not depend on one
another, combinations are weighed on dev.npz by changing one class at a time until none helps. Writes model.npz, from
which any trainer may start, and chosen.json.

Example: steps/choose_components.py --data exp/digits/data/white --components 1 2 4 --covariance full \
--out exp/digits/chosen
"""

from dataclasses import dataclass
from pathlib import Path

from margo.classify.gmm import GmmOptions
from margo.runtime.step import Seeded, knob, main


@dataclass(frozen=True)
class Options(GmmOptions, Seeded):
    data: Path = knob(help="data folder with train.npz and dev.npz")
    out: Path = knob(help="folder to write")
    components: tuple[int, ...] = knob((1, 2, 4), "numbers of Gaussians to try for each class", least=1)


def run(options: Options, step):
    from margo.formats.atomic import write_json
    from margo.formats.classifiers import write_classifier
    from margo.tasks import classifying, tuning_classifiers

    train, dev = (classifying.labelled(classifying.read_set(options.data, name, step)) for name in ("train", "dev"))
    model, chosen, error = tuning_classifiers.choose_components(train, dev, options)
    write_classifier(step.output("model.npz"), model, train.names, "ml", mixtures=max(chosen))
    write_json(step.output("chosen.json"), {"components": dict(zip(train.names, chosen)), "dev_error": error})
    step.say(f"{error:.3f} % of {len(dev.y)} dev samples wrong with {' '.join(map(str, chosen))} Gaussians a class")


if __name__ == "__main__":
    main(__doc__, Options, run)

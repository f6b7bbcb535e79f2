"""Choose systems of generative kernels by leaving out one training speaker at a time, train them on all, score them.

Every sound combination of the values given is a candidate: mixtures, score-space, kernel, machines. Rule of choice: the
candidates are ranked by their errors on left-out training speakers, the simpler of equals first, and the best of them
vote. How many (--together) is chosen by leaving out each speaker from the ranking as well: the fewest errors, the fewer
of equals. The test set is used after the choice, once. --centre takes each speaker's own mean from the features first,
which needs no labels but all samples of a speaker. Writes all candidates, best first, into tried.csv.

Example: steps/select_kernel.py --data exp/deterding/data/vowels.csv --out exp/deterding/score/chosen
"""

from dataclasses import dataclass
from pathlib import Path

from margo.runtime.step import Parallel, Seeded, knob, main


@dataclass(frozen=True)
class Options(Parallel, Seeded):
    data: Path = knob(help="CSV file with the columns split, speaker, class and features")
    out: Path = knob(help="folder to write")
    system: str = knob("svm-chosen", "name of the system")
    centre: bool = knob(False, "take each speaker's mean from the features")
    mixtures: tuple[int, ...] = knob((1, 2, 3, 4), "Gaussians per class to try", least=1)
    variances: tuple[str, ...] = knob(("tied", "own"), "to try: tied over all Gaussians, own for each", ("tied", "own"))
    floors: tuple[float, ...] = knob((0.01, 0.1), "least variances to try, parts of the data's", least=0)
    spaces: tuple[str, ...] = knob(("ll", "llr", "ll-mean", "llr-mean"), "score-spaces to try")
    schemes: tuple[str, ...] = knob(("pairs", "rest", "joint"), "ways to many classes to try; codes is a 4th")
    widths: tuple[float, ...] = knob((0.0, 0.5, 1.0), "Gaussian kernels over scores to try; 0 is linear", least=0)
    costs: tuple[float, ...] = knob((0.1, 1.0, 10.0), "C of the soft margin to try", above=0)
    iterations: tuple[int, ...] = knob((0, 10), "max-margin steps on the mixtures to try", least=0)
    starts: int = knob(1, "EM starts whose decisions are averaged", least=1)
    together: tuple[int, ...] = knob((1, 2, 4, 8, 16, 32, 64, 128), "numbers of the best to try as voters", least=1)


def run(options: Options, step):
    import numpy as np

    from margo.errors import MargoError
    from margo.formats.atomic import write_json, write_text
    from margo.formats.plots import PLOTS, write_plots
    from margo.formats.samples import read_samples
    from margo.kernel.joint import centre_groups
    from margo.kernel.selection import choose, classify, families, grid, plurality, rank
    from margo.tasks import mixture_kernels as kernels

    files = read_samples(step.input_file(options.data))
    train = files["train"]
    if not len(train.groups):
        raise MargoError(f"{options.data}: no column speaker, and so nobody to leave out")
    x = {split: centre_groups(one.x, one.groups) if options.centre else one.x for split, one in files.items()}
    data = (x["train"], train.y, train.groups)
    settings = grid(options.mixtures, options.variances, options.floors, options.spaces, options.schemes,
                    options.widths, options.costs, options.iterations)  # fmt: skip
    with step.place() as where:
        made = kernels.classify_left_out(data, settings, options.starts, options.seed, where, step)
    chosen, together = choose(settings, made, train.y, train.groups, options.together)
    errors = (made != train.y).sum(1)
    first, wrong = settings[chosen[0]], together[len(chosen)]
    choice = (f"vote of the best {len(chosen)} of {len(settings)} candidates, {wrong} errors of {len(train.y)} "
              f"({100 * wrong / len(train.y):.2f} %) on training speakers left out of training and ranking; the best "
              f"is {kernels.in_words(first)}")  # fmt: skip
    write_text(step.output("tried.csv"), kernels.tried_table(settings, errors, rank(settings, errors), chosen))
    write_json(step.output("choice.json"), {"choice": choice, "together": together})
    write_plots(step.out, [kernels.tried_plot(options.system, settings, errors / len(train.y), choice)])
    step.output(PLOTS)
    step.say(f"{options.system}: {choice}")
    both = np.concatenate([x["train"], x["test"]])
    found = {}
    for family in families([settings[index] for index in chosen]):
        found.update(zip(family, classify(*data[:2], both, family, options.starts, options.seed)))
    voted = plurality(np.stack([found[settings[index]] for index in chosen]), int(train.y.max()) + 1)
    for split, predictions in zip(files, np.split(voted, [len(train.y)])):
        one = files[split]
        kernels.write_result(step, options.system, first.mixtures, split, [one.y], [predictions], one.groups,
                             extra={"choice": choice})  # fmt: skip


if __name__ == "__main__":
    main(__doc__, Options, run)

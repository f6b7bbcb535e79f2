"""Score the ways from machines to many classes ([L04] 3) on one score-space: pairs, rest, codes, joint, each.

All see the log-likelihoods of every class's mixture: votes of pairwise machines (svm-ll-pairs), one against the rest
(svm-ll-rest), error-correcting output codes (svm-ll-codes), all-in-one machines with one slack a sample (svm-ll-joint,
Crammer and Singer) and with one for each rival (svm-ll-each, Weston and Watkins). Several --starts are runs of the same
experiment. Tables tell what longer codes and other assignments of their words bring, and how many passes the
all-in-one machines need from nothing and from the machines of pairs.

Example: steps/compare_schemes.py --data exp/deterding/data/vowels.csv --out exp/deterding/score/schemes
"""

from dataclasses import dataclass
from pathlib import Path

from margo.kernel.selection import SCHEMES
from margo.runtime.step import Seeded, knob, main


@dataclass(frozen=True)
class Options(Seeded):
    data: Path = knob(help="CSV file with the columns split, class and features")
    out: Path = knob(help="folder to write")
    mixtures: int = knob(2, "Gaussians per class", least=1)
    tied: bool = knob(True, "one variance for all Gaussians of all classes")
    cost: float = knob(1.0, "C of the soft margin", above=0)
    bits: int = knob(31, "bits of the output codes", least=1)
    starts: int = knob(5, "EM starts, each with codes of its own", least=1)
    schemes: tuple[str, ...] = knob(SCHEMES, "what to score", SCHEMES)
    lengths: tuple[int, ...] = knob((7, 15, 31, 63), "bits of output codes to compare, where classes allow", least=1)
    assignments: int = knob(5, "ways to give the words of a code to the classes; 0 compares none", least=0)


def run(options: Options, step):
    import numpy as np

    from margo.formats.plots import PLOTS, write_plots
    from margo.formats.samples import read_samples
    from margo.kernel.selection import Setting, classify
    from margo.tasks import mixture_kernels as kernels

    files = read_samples(step.input_file(options.data))
    train = files["train"]
    both = np.concatenate([one.x for one in files.values()])
    settings = [Setting(options.mixtures, options.tied, scheme=scheme, cost=options.cost) for scheme in options.schemes]
    runs = [classify(train.x, train.y, both, settings, 1, [options.seed, start], options.bits)
            for start in range(options.starts)]  # fmt: skip
    for scheme, found in zip(options.schemes, np.stack(runs, axis=1)):
        for split, predictions in zip(files, np.split(found, [len(train.x)], axis=1)):
            one = files[split]
            kernels.write_result(step, f"svm-ll-{scheme}", options.mixtures, split, [one.y] * options.starts,
                                 predictions, one.groups)  # fmt: skip
    write_plots(step.out, kernels.scheme_tables(files, settings[0], options))
    step.output(PLOTS)


if __name__ == "__main__":
    main(__doc__, Options, run)

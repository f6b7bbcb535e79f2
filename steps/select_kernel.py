"""Choose a system of generative kernels by leaving out one training speaker at a time, train it on all, and score it.

Every sound combination of the values given is a candidate: mixtures, score-space, kernel, machines. Rule of choice:
all are tried with one EM start; the --keep with the fewest errors on left-out training speakers are tried again, the
decisions of --starts EM starts averaged; the fewest errors win, the simpler of equals. The test set is read after the
choice, once. --centre takes each speaker's own mean from the features first, which needs no labels but all samples of a
speaker. Writes all candidates, best first, into tried.csv.
"""

from dataclasses import dataclass
from pathlib import Path

from margo.runtime.step import Parallel, Seeded, main, option


@dataclass(frozen=True)
class Options(Parallel, Seeded):
    data: Path = option(help="CSV file with the columns split, speaker, class and features")
    out: Path = option(help="folder to write")
    system: str = option("svm-chosen", help="name of the system")
    centre: bool = option(False, help="take each speaker's mean from the features")
    mixtures: tuple[int, ...] = option((1, 2, 3, 4), help="Gaussians per class to try")
    variances: tuple[str, ...] = option(("tied", "own"), help="to try: tied over all Gaussians, own for each")
    floors: tuple[float, ...] = option((0.01, 0.1), help="least variances to try, parts of the data's")
    spaces: tuple[str, ...] = option(("ll", "llr", "ll-mean", "llr-mean"), help="score-spaces to try")
    schemes: tuple[str, ...] = option(("pairs", "rest", "joint"), help="ways to many classes to try; codes is a 4th")
    widths: tuple[float, ...] = option((0.0, 0.5, 1.0), help="Gaussian kernels over scores to try; 0 is the linear one")
    costs: tuple[float, ...] = option((0.1, 1.0, 10.0), help="C of the soft margin to try")
    iterations: tuple[int, ...] = option((0, 10), help="max-margin steps on the mixtures to try")
    starts: int = option(10, help="EM starts whose decisions are averaged")
    keep: int = option(16, help="candidates that are tried again with all starts")


def run(options: Options, step):
    import numpy as np

    from margo.errors import MargoError
    from margo.formats.atomic import write_text
    from margo.formats.plots import PLOTS, write_plots
    from margo.formats.samples import read_samples
    from margo.kernel.joint import centre_groups
    from margo.kernel.systems import classify, grid, rank
    from margo.runtime import kernels

    files = read_samples(step.input_file(options.data))
    train = files["train"]
    if not len(train.groups):
        raise MargoError(f"{options.data}: no column speaker, and so nobody to leave out")
    x = {split: centre_groups(one.x, one.groups) if options.centre else one.x for split, one in files.items()}
    data = (x["train"], train.y, train.groups)
    settings = grid(options.mixtures, options.variances, options.floors, options.spaces, options.schemes,
                    options.widths, options.costs, options.iterations)  # fmt: skip
    with step.place() as where:
        errors = kernels.left_out_errors(data, settings, 1, options.seed, where, step)
        order = rank(settings, errors)
        best = [settings[index] for index in order[: options.keep]]
        again = kernels.left_out_errors(data, best, options.starts, options.seed, where, step)
    finalists = rank(best, again)
    chosen, wrong = best[finalists[0]], int(again[finalists[0]])
    rows = [(best[index], errors[order[index]], again[index]) for index in finalists]
    rows += [(settings[index], errors[index], None) for index in order[options.keep :]]
    write_text(step.output("tried.csv"), kernels.tried_table(rows))
    choice = (f"{kernels.in_words(chosen)}: {wrong} errors of {len(train.y)} ({100 * wrong / len(train.y):.2f} %) on "
              f"left-out training speakers, the fewest of {len(settings)} candidates")  # fmt: skip
    write_plots(step.out, [kernels.tried_plot(options.system, settings, errors / len(train.y), choice)])
    step.output(PLOTS)
    step.say(f"{options.system}: {choice}")
    both = np.concatenate([x["train"], x["test"]])
    made = classify(*data[:2], both, [chosen], options.starts, options.seed)[0]
    for split, predictions in zip(files, np.split(made, [len(train.y)])):
        one = files[split]
        kernels.write_result(step, options.system, chosen.mixtures, split, [one.y], [predictions], one.groups,
                             extra={"choice": choice, "settings": vars(chosen)})  # fmt: skip


if __name__ == "__main__":
    main(__doc__, Options, run)

"""Choose an all-in-one kernel by leaving out one training speaker at a time, train it on all, and score it.

One machine separates all classes at once in the space of their mixtures' log-likelihoods, several EM starts averaged.
Every combination of the numbers given is tried on left-out training speakers, and so is how many of the best of them to
add up (--most): the test set chooses nothing. --centre takes each speaker's own mean from the features first, which
needs no labels but all samples of a speaker.
"""

from dataclasses import dataclass
from pathlib import Path

from margo.runtime.step import Parallel, Seeded, main, option


@dataclass(frozen=True)
class Options(Parallel, Seeded):
    data: Path = option(help="CSV file with the columns split, speaker, class and features")
    out: Path = option(help="folder to write")
    system: str = option("svm-ll-joint", help="name of the system")
    centre: bool = option(False, help="take each speaker's mean from the features")
    mixtures: tuple[int, ...] = option((1, 2, 3, 4), help="Gaussians per class to try")
    costs: tuple[float, ...] = option((0.1, 0.3, 1.0), help="C of the soft margin to try")
    variances: tuple[str, ...] = option(("tied", "own"), help="to try: tied over all Gaussians, own for each")
    iterations: tuple[int, ...] = option((0,), help="max-margin steps on the mixtures to try")
    starts: int = option(5, help="EM starts whose decisions are averaged")
    most: int = option(8, help="most settings to add up; 1 for the best alone")


def run(options: Options, step):
    import itertools
    from functools import partial

    import numpy as np

    from margo.errors import MargoError
    from margo.formats.atomic import write_json
    from margo.formats.plots import PLOTS, write_plots
    from margo.formats.samples import read_samples
    from margo.kernel.joint import JointSetting, centre_groups, choose
    from margo.runtime import kernels
    from margo.runtime.parallel import map_chunks

    files = read_samples(step.input_file(options.data))
    train = files["train"]
    if not len(train.groups):
        raise MargoError(f"{options.data}: no column speaker, and so nobody to leave out")
    x = {split: centre_groups(one.x, one.groups) if options.centre else one.x for split, one in files.items()}
    # settings that share their mixtures go together: EM is run once for all of them
    families = [
        [JointSetting(m, v == "tied", c, iterations=i) for c, i in itertools.product(options.costs, options.iterations)]
        for m, v in itertools.product(options.mixtures, options.variances)
    ]
    settings = [setting for family in families for setting in family]
    data = (x["train"], train.y, train.groups)
    both = np.concatenate([x["train"], x["test"]])
    with step.place() as where:
        trying = map_chunks(partial(kernels.held_out, data, options), families, where)
        decisions = np.concatenate(list(step.progress(trying, len(families), "kinds of mixture tried")))
        chosen, errors, together = choose(decisions, train.y, options.most)
        wanted = [[setting for setting in family if settings.index(setting) in chosen] for family in families]
        making = map_chunks(partial(kernels.decided, data, both, options), [part for part in wanted if part], where)
        made = np.concatenate(list(making)).sum(0).argmax(1)
    tried = [{**vars(setting), "errors": int(wrong), "percent": 100 * wrong / len(train.y)}
             for setting, wrong in zip(settings, errors)]  # fmt: skip
    facts = {"held_out_percent": 100 * float(together[len(chosen) - 1]) / len(train.y),
             "settings": [tried[number] for number in chosen]}  # fmt: skip
    write_json(step.output("tried.json"), {"tried": tried, "together": together.tolist(), "chosen": chosen, **facts})
    write_plots(step.out, [kernels.table_of(options, tried)])
    step.output(PLOTS)
    step.say(f"{options.system}: {facts['held_out_percent']:.2f} % errors on left-out training speakers with "
             + "; ".join(kernels.in_words(settings[number]) for number in chosen))  # fmt: skip
    for split, predictions in zip(files, np.split(made, [len(train.y)])):
        one = files[split]
        kernels.write_result(step, options.system, settings[chosen[0]].mixtures, split, [one.y], [predictions],
                             one.groups, extra=facts)  # fmt: skip


if __name__ == "__main__":
    main(__doc__, Options, run)

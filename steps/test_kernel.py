"""Classify with the pairwise kernels of train_kernel, by majority vote, and score: <system>_<mixtures>/<set>.

Ties of two classes are settled by their own machine, of more by the maximum-likelihood mixtures. A row over several
runs is their mean. --ml true scores the maximum-likelihood mixtures that the kernels started from as well.

Example: steps/test_kernel.py --model exp/gaussians/kernel/llr_1 --data exp/gaussians/data \
--out exp/gaussians/score/llr_1
"""

from dataclasses import dataclass
from pathlib import Path

from margo.runtime.step import Knobs, knob, main


@dataclass(frozen=True)
class Options(Knobs):
    model: Path = knob(help="folder of train_kernel")
    data: tuple[Path, ...] = knob(help="the CSV files it was trained with, in the same order, or their folder")
    out: Path = knob(help="folder to write")
    system: str = knob("", "name of the trained system (default: svm-SPACE); before training it ends in -init")
    ml: bool = knob(False, "score the mixtures by themselves as well, as gmm-ml, and trained by MMI, as gmm-cl")


def run(options: Options, step):
    from margo.errors import MargoError
    from margo.gaussian.mixtures import log_mixtures
    from margo.kernel.multiclass import vote
    from margo.runtime import record
    from margo.tasks import mixture_kernels as kernels

    folder = step.input(options.model, made_by="train_kernel")
    meta, systems = kernels.read_systems(folder)
    files = kernels.read_runs(options.data, step)
    if len(files) != meta["files"]:
        raise MargoError(f"{folder} was trained on {meta['files']} data files, found {len(files)}")
    name = options.system or f"svm-{meta['space']}"
    seconds = (record.of(folder) or {}).get("seconds")
    trains = [files[number % len(files)]["train"] for number in range(meta["runs"])]
    mmi = [kernels.train_mmi(stages[0].prior, one) for stages, one in zip(systems, trains)] if options.ml else []
    for split in ("train", "test"):
        made = {f"{name}-init": [], name: []} | ({"gmm-ml": [], "gmm-cl": []} if options.ml else {})
        truths = [files[number % len(files)][split].y for number in range(meta["runs"])]
        for number, stages in enumerate(systems):
            x = files[number % len(files)][split].x
            log_lik = log_mixtures(stages[0].prior, x)
            for stage, system in zip((f"{name}-init", name), stages):
                made[stage].append(vote(system.decide(x), log_lik))
            if options.ml:
                made["gmm-ml"].append(log_lik.argmax(1))
                made["gmm-cl"].append(kernels.classify_mmi(mmi[number], x))
        groups = files[0][split].groups
        for stage, predictions in made.items():
            spent = seconds if stage == name else None
            kernels.write_result(step, stage, meta["mixtures"], split, truths, predictions, groups, spent)


if __name__ == "__main__":
    main(__doc__, Options, run)

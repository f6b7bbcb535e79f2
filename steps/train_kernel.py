"""Train generative kernels for maximum margin, one for each pair of classes, from mixtures trained by EM ([L04]).

Writes model.npz (the systems before and after max-margin training), progress.jsonl (W summed over pairs, averaged over
runs) and pairs.jsonl (every step of every pair). Several --data files or --starts are runs of the same experiment.

Example: steps/train_kernel.py --space llr-mean --data exp/gaussians/data --out exp/gaussians/kernel/svm-llr-mean_1
"""

from dataclasses import dataclass
from pathlib import Path

from margo.kernel.descent import KernelOptions
from margo.runtime.step import Parallel, Seeded, knob, main


@dataclass(frozen=True)
class Options(KernelOptions, Parallel, Seeded):
    data: tuple[Path, ...] = knob(help="CSV files with the columns split, class and features, or their folder")
    out: Path = knob(help="folder to write")
    mixtures: int = knob(1, "Gaussians per class", least=1)
    tied: bool = knob(False, "one variance for all Gaussians of all classes")
    starts: int = knob(1, "EM starts for each data file; one Gaussian per class has one start", least=1)


def run(options: Options, step):
    from functools import partial

    from margo.runtime.parallel import map_chunks
    from margo.tasks import mixture_kernels as kernels

    files = kernels.read_runs(options.data, step)
    starts = options.starts if options.mixtures > 1 else 1
    drawn = [(file["train"], start) for start in range(starts) for file in files]
    tasks = [(number, train, start) for number, (train, start) in enumerate(drawn)]
    arrays, lines = {}, []
    with step.place() as where:
        done = map_chunks(partial(kernels.train_run, options), tasks, where)
        for made, told in step.progress(done, len(tasks), "runs trained"):
            arrays |= made
            lines += told
    meta = {"space": options.whole_space, "mixtures": options.mixtures, "runs": len(tasks), "files": len(files)}
    kernels.write_systems(step.output("model.npz"), meta, arrays)
    progress = kernels.summed(lines)
    kernels.write_lines(step.output("pairs.jsonl"), lines)
    kernels.write_lines(step.output("progress.jsonl"), progress)
    named = f"{options.whole_space}, {options.mixtures} mixtures, {len(tasks)} runs"
    step.say(f"{named}: W {progress[0]['objective']:.1f} -> "
             f"{progress[-1]['objective']:.1f} in at most {len(progress) - 1} steps")  # fmt: skip


if __name__ == "__main__":
    main(__doc__, Options, run)

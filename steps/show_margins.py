"""Put W, margin, support vectors and steps of kernels side by side, as [L04] Tables 3 and 4; --curves draws Figure 4.

Reads pairs.jsonl of the folders SYSTEM_MIXTURES of train_kernel or train_word_kernel, and writes plots.json, which the
report shows.

Example: steps/show_margins.py --models exp/gaussians/kernel/svm-llr_1 exp/gaussians/kernel/svm-llr_2 \
--paper conf/paper/gaussians.toml --out exp/gaussians/margins
"""

from dataclasses import dataclass
from pathlib import Path

from margo.runtime.step import Knobs, knob, main


@dataclass(frozen=True)
class Options(Knobs):
    models: tuple[Path, ...] = knob(help="folders of train_kernel, named <system>_<mixtures>")
    curves: tuple[Path, ...] = knob((), "folders whose W by iteration is drawn together")
    paper: Path | None = knob(None, "TOML file with the paper's figures")
    title: str = knob("Objective and margin", "of the table")
    out: Path = knob(help="folder to write")


def run(options: Options, step):
    from margo.formats.paper import read_paper
    from margo.formats.plots import PLOTS, write_plots
    from margo.formats.systems import system_of
    from margo.tasks import mixture_kernels as kernels

    def lines(folder):
        return kernels.read_lines(step.input(folder, made_by="train_kernel"))

    paper = read_paper(step.input_file(options.paper)) if options.paper else None
    held = [(*system_of(folder), lines(folder)) for folder in options.models]
    plots = [kernels.margins_table(options.title, held, paper)]
    if options.curves:
        title = "W by iteration, constant steps and back-off ([L04] Figure 4)"
        tracks = [(folder.name, lines(folder)) for folder in options.curves]
        plots += [kernels.descent_table(title, tracks), kernels.descent_plot(title, tracks)]
    write_plots(step.out, plots)
    step.output(PLOTS)
    step.say(f"{len(held)} systems, {len(options.curves)} curves")


if __name__ == "__main__":
    main(__doc__, Options, run)

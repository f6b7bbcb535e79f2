"""Plot what trainers told of every iteration, several in one plot, into plots.json.

The objective of both methods against CPU seconds ([DA08] Figure 1; with --race also as a table), the criterion for
several F ([PW10] Figure 2), or the samples that are wrong, near and far by iteration ([PW10] Figure 3b).

Example: steps/plot_progress.py --model exp/digits/mm-grad_1 exp/digits/mm-smo_1 --x cpu_seconds --out exp/digits/speed
"""

from dataclasses import dataclass
from pathlib import Path

from margo.runtime.step import Knobs, knob, main


@dataclass(frozen=True)
class Options(Knobs):
    model: tuple[Path, ...] = knob(help="folders of trainers with progress.jsonl")
    out: Path = knob(help="folder to write plots.json into")
    x: str = knob("iteration", "what they are drawn against", ("iteration", "cpu_seconds", "passes"))
    fields: tuple[str, ...] = knob(("objective",), "what is drawn, by its names in progress.jsonl")
    points: int = knob(12, "most points a line, evenly chosen; up to 12 are a table in RESULTS.md too", least=2)
    race: bool = knob(False, "how far each is from the bound that one of them proved, at multiples of its CPU seconds")


def run(options: Options, step):
    from margo.formats.plots import write_plots
    from margo.tasks import sweeping

    for folder in options.model:
        step.input(folder, made_by="train_gmm")
    plots = sweeping.progress_plots(options.model, options.x, options.fields, options.points)
    if options.race:
        plots.append(sweeping.race_table(options.model))
    write_plots(options.out, plots)
    step.output("plots.json")


if __name__ == "__main__":
    main(__doc__, Options, run)

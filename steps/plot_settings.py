"""Plot measures of trained classifiers against a setting that they, or what they started from, were trained with.

The error against the ridge of EM ([DA08] Figures 2 and 3, Tables 1a and 2a), or likelihood, margin and error against
the part of the likelihood ([R18] Figure 1). Models in folders of one name (but for _N) are one line. Writes
settings.json and plots.json.

Example: steps/plot_settings.py --model exp/digits/ridge/1/gmm-ml_2 exp/digits/ridge/0.1/gmm-ml_2 --setting ridge \
--data exp/digits/data/pca --out exp/digits/ridges
"""

from dataclasses import dataclass
from pathlib import Path

from margo.runtime.step import Knobs, knob, main


@dataclass(frozen=True)
class Options(Knobs):
    model: tuple[Path, ...] = knob(help="folders of trainers")
    data: Path = knob(help="data folder with train.npz and test.npz")
    setting: str = knob(help="name of the option, as in their records: ridge, generative, ...")
    out: Path = knob(help="folder to write")
    measures: tuple[str, ...] = knob(("error",), "what is plotted", ("error", "likelihood", "margin"))
    margin: float = knob(100.0, "gamma: desired log margin whose loss is plotted")
    sets: tuple[str, ...] = knob(("test",), "of which samples", ("train", "dev", "test"))
    rule: str = knob("mixture", "class by its mixture or best Gaussian", ("mixture", "component"))
    log: bool = knob(False, "a logarithmic axis of the setting")


def run(options: Options, step):
    from margo.formats.atomic import write_json
    from margo.formats.plots import write_plots
    from margo.tasks import sweeping

    rows, plots = sweeping.settings_curves(options, step)
    write_json(step.output("settings.json"), rows)
    write_plots(options.out, plots)
    step.output("plots.json")


if __name__ == "__main__":
    main(__doc__, Options, run)

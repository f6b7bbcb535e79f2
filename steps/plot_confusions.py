"""Draw the confusions of a scored decoding for the report: of each symbol said, the share heard as each other.

Example: steps/plot_confusions.py --hyp exp/timit/decode/ml_1/test --out exp/timit/confusions/ml
"""

from dataclasses import dataclass
from pathlib import Path

from margo.runtime.step import Knobs, knob, main


@dataclass(frozen=True)
class Options(Knobs):
    hyp: Path = knob(help="folder of a decoding that was scored, with the folder score")
    out: Path = knob(help="folder to write plots.json into")
    title: str = knob("", "what was decoded (default: from the folder's name, <system>_<mixtures>/<set>)")


def run(options: Options, step):
    from margo.formats.plots import write_plots
    from margo.formats.scores import read_confusions
    from margo.score.rates import confusion_shares

    step.input(options.hyp / "score", made_by="score")
    symbols, counts = read_confusions(options.hyp)
    plot = {
        "title": f"Confusions, {options.title or f'{options.hyp.parent.name} on {options.hyp.name}'}",
        "kind": "heatmap",
        "x_label": "heard",
        "y_label": "said",
        "note": "Per cent of each symbol said; the last column holds deletions.",
        "values": confusion_shares(counts).round(2).tolist(),
        "rows": symbols,
        "columns": [*symbols, "deleted"],
    }
    write_plots(step.output("plots.json").parent, [plot])


if __name__ == "__main__":
    main(__doc__, Options, run)

"""Score an alignment against hand labels: how far its boundaries lie from theirs, and how many within 10, 20 and 30 ms.

Counted are boundaries between neighbours in the labels, where nothing was left out between them. Writes
boundaries.json, the same as text in boundaries, and a histogram for the report.

Example: steps/score_alignment.py --ali exp/timit/ali/ml_1 --data exp/timit/mfcc/train \
--labels exp/timit/data/train/phones.ctm --out exp/timit/boundaries
"""

from dataclasses import dataclass
from pathlib import Path

from margo.runtime.step import Knobs, knob, main


@dataclass(frozen=True)
class Options(Knobs):
    ali: Path = knob(help="folder of an alignment, with the file ali.ctm")
    data: Path = knob(help="feature folder that was aligned")
    labels: Path = knob(help="CTM file of hand labels")
    out: Path = knob(help="folder to write")


def run(options: Options, step):
    from margo.formats.atomic import write_json, write_text
    from margo.formats.plots import write_plots
    from margo.tasks import speech
    from margo.tasks.labels import boundary_report, errors_of_alignment

    data = speech.read(step.input(options.data, made_by="make_mfcc"))
    folder = step.input(options.ali, made_by="align")
    errors, missing = errors_of_alignment(folder / "ali.ctm", step.input_file(options.labels), data)
    facts, text, plot = boundary_report(errors, missing, f"{folder.name}, {data.folder.name}")
    write_json(step.output("boundaries.json"), facts)
    write_text(step.output("boundaries"), text)
    write_plots(step.output("plots.json").parent, [plot])
    print(f"{folder.name} {data.folder.name}: {text.splitlines()[0]}")


if __name__ == "__main__":
    main(__doc__, Options, run)

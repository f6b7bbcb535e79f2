"""Score an alignment against hand labels: how far its boundaries lie from theirs, how many within 10, 20, 30 and 50 ms.

Counted are boundaries between neighbours in the labels, where nothing was left out between them. Where the alignment
states deviations (boundaries.csv), also how many lie within one of them and within two. Writes boundaries.json, the
same as text in boundaries, and for the report a histogram and a table by pair of classes (--map).

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
    map: Path | None = knob(None, "TOML file with classes of symbols; without it each symbol is its own")
    map_table: str = knob("map", "table of that file to use", needs={"map": True})
    out: Path = knob(help="folder to write")


def run(options: Options, step):
    from margo.formats.atomic import write_json, write_text
    from margo.formats.boundary_table import TABLE, read_boundaries
    from margo.formats.plots import write_plots
    from margo.formats.transcripts import read_symbol_map
    from margo.tasks import speech
    from margo.tasks.labels import boundary_report, errors_of_alignment, stated_deviations

    data = speech.read(step.input(options.data, made_by="make_mfcc"))
    folder = step.input(options.ali, made_by="align")
    classes = read_symbol_map(step.input_file(options.map), options.map_table) if options.map else {}
    found, missing = errors_of_alignment(folder / "ali.ctm", step.input_file(options.labels), data)
    rows = read_boundaries(folder / TABLE) if (folder / TABLE).exists() else []
    title = f"{folder.name}, {data.folder.name}"
    facts, text, plots = boundary_report(found, stated_deviations(rows, found), missing, classes, title)
    write_json(step.output("boundaries.json"), facts)
    write_text(step.output("boundaries"), text)
    write_plots(step.output("plots.json").parent, plots)
    print(f"{title}: {text.splitlines()[0]}")


if __name__ == "__main__":
    main(__doc__, Options, run)

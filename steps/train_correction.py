"""Learn from hand labels how late boundaries are, by pair of classes, and how far stated deviations can be trusted.

Speakers are aligned by folds, each with a model that is updated from the others' statistics, since a model that has
heard a speaker places their boundaries better than it will a stranger's. Writes correction.json (align --correction).

Example: steps/train_correction.py --model exp/timit/aligner --data exp/timit/fine/train \
--labels exp/timit/data/train/phones.ctm --map conf/timit_classes.toml --map-table manner --out exp/timit/correction
"""

from dataclasses import dataclass
from pathlib import Path

from margo.knobs import knob
from margo.runtime.step import Parallel, main
from margo.tasks.aligning import PlacingOptions


@dataclass(frozen=True)
class Options(PlacingOptions, Parallel):
    model: Path = knob(help="folder of a model whose words are what the labels name")
    data: Path = knob(help="feature folder of the labelled speech")
    labels: Path = knob(help="CTM file of hand labels")
    map: Path | None = knob(None, "TOML file with classes of symbols; without it each symbol is its own")
    map_table: str = knob("map", "table of that file to use", needs={"map": True})
    out: Path = knob(help="folder to write")


def run(options: Options, step):
    from margo.formats.boundary_table import CORRECTION, write_correction
    from margo.formats.transcripts import read_symbol_map
    from margo.tasks import passes, speech
    from margo.tasks.labels import correction_of
    from margo.tasks.recognising import confidence_of

    step.input(options.model, made_by="train_ml")
    data = speech.read(step.input(options.data, made_by="make_mfcc"))
    hmms = passes.model_for(options.model, data)
    classes = read_symbol_map(step.input_file(options.map), options.map_table) if options.map else {}
    labels = step.input_file(options.labels)
    scales = confidence_of(hmms, options.model)[0], options.boundary_scale
    with step.place() as where:
        correction, many = correction_of(hmms, labels, data, scales, classes, where)
    write_correction(step.output(CORRECTION), correction)
    step.say(f"train_correction: {many} boundaries, {1000 * correction.late:+.1f} ms late, by pair of classes "
             f"{1000 * min(correction.pairs.values()):+.1f} to {1000 * max(correction.pairs.values()):+.1f} ms; "
             f"deviations times {correction.factor:.2f}")  # fmt: skip


if __name__ == "__main__":
    main(__doc__, Options, run)

"""Make tables for classifiers from labelled speech: a sample a frame, in broad classes, or a sample a phone segment.

Reads feature folders <mfcc>/{train,dev,test} and hand labels <labels>/{train,dev,test}/phones.ctm; writes train.npz,
dev.npz and test.npz, standardised by the training part or projected on its principal components.

Example: steps/make_tables.py --mfcc exp/timit/mfcc --labels exp/timit/data --map conf/timit_classes.toml \
--map-table broad6 --out exp/timit/frames
"""

from dataclasses import dataclass
from pathlib import Path

from margo.runtime.step import Knobs, knob, main


@dataclass(frozen=True)
class Options(Knobs):
    mfcc: Path = knob(help="folder of make_mfcc's folders train, dev and test")
    labels: Path = knob(help="folder of the data folders train, dev and test with phones.ctm")
    out: Path = knob(help="folder to write")
    kind: str = knob("frames", "what a sample is", ("frames", "segments"))
    map: Path = knob(help="TOML file with the table that maps phones to classes")
    map_table: str = knob(help="name of that table; phones mapped to nothing are left out")
    gender: str = knob("", "speakers of one gender only", ("m", "f"))
    most: int = knob(0, "most samples a set, evenly chosen; 0: all", least=0)
    principal: int = knob(0, "principal components kept, of unit variance; 0: all features, standardised", least=0)


def run(options: Options, step):
    from margo.classify.reduce import principal, standard
    from margo.formats.tables import Table, write_table
    from margo.tasks import sampling

    sets = {name: sampling.samples(options, name, step) for name in ("train", "dev", "test")}
    names = sampling.class_names(sets)
    x = sets["train"][0]
    projection = principal(x, options.principal, True) if options.principal else standard(x)
    for name, (x, labels) in sets.items():
        table = Table(projection(x), sampling.numbers(labels, names), names)
        write_table(step.output(f"{name}.npz"), table)
        step.say(f"{name}: {len(table.y)} {options.kind} of {table.x.shape[1]} features in {len(names)} classes")


if __name__ == "__main__":
    main(__doc__, Options, run)

"""Turn a hyperspectral image into tables of its pixels: a sample a pixel, a feature a band, standardised.

Without --corpus the image is Indian Pines (145 x 145 pixels, 200 bands, 16 classes), from the package tensorly, which
`make install` brings; --corpus and --labels take any other as .npy, .mat or .tif. Writes train.npz, dev.npz and
test.npz. Parts are squares of the image that do not touch (--split blocks), or pixels at random as in [PW10] 5.3.
Classes with too few pixels are left out and named; plots.json tells the report of them, and that the data are not the
paper's.

Example: local/pixels_data.py --out exp/pixels/data
"""

from dataclasses import dataclass
from pathlib import Path

from margo.runtime.step import Seeded, knob, main


@dataclass(frozen=True)
class Options(Seeded):
    corpus: str = knob("", "the cube, height x width x bands; without it Indian Pines")
    labels: str = knob("", "the labels of its pixels, height x width; 0 is none", needs={"corpus": True})
    name: str = knob("", "what the data set is called (default: as its file)")
    out: Path = knob(help="folder to write")
    split: str = knob("blocks", "squares of the image, or pixels at random", ("blocks", "random"))
    block: int = knob(9, "side of a square in pixels", least=2, needs={"split": ("blocks",)})
    shares: tuple[float, ...] = knob((4.0, 1.0, 5.0), "of train, dev and test among the squares", above=0)
    per_class: int = knob(5000, "pixels of a class to train on", least=2, needs={"split": ("random",)})
    least: int = knob(200, "labelled pixels below which a class is left out", least=1)


def run(options: Options, step):
    import numpy as np

    from margo.classify import blocks
    from margo.classify.reduce import standard
    from margo.errors import MargoError
    from margo.formats import cubes
    from margo.formats.atomic import write_json
    from margo.formats.plots import PLOTS, write_plots
    from margo.formats.tables import Table, write_table

    if bool(options.corpus) != bool(options.labels) or len(options.shares) != 3:
        raise MargoError("give --corpus and --labels together, and three --shares")
    places = (Path(options.corpus), Path(options.labels)) if options.corpus else cubes.indian_pines()
    cube, labels = cubes.read_cube(*map(step.input_file, places))
    called = cubes.PINES_NAMES if not options.corpus else [str(c) for c in range(1, int(labels.max()) + 1)]
    counts = np.bincount(labels.ravel(), minlength=len(called) + 1)[1:]
    kept = np.flatnonzero(counts >= options.least)
    if len(kept) < 2:
        raise MargoError(f"{places[1]}: {len(kept)} classes have {options.least} pixels or more, expected 2")
    few = [f"{called[c]} ({counts[c]} pixels)" for c in np.flatnonzero(counts < options.least)]
    rng = np.random.default_rng(options.seed)
    if options.split == "blocks":
        parts = blocks.split_blocks(labels, kept + 1, options.block, options.shares, rng)
    else:
        parts = blocks.split_random(labels, kept + 1, options.per_class, 1 / 6, rng)
    names, projection, held = tuple(called[c] for c in kept), standard(cube[parts == 0]), []
    for part, name in enumerate(("train", "dev", "test")):
        y = np.searchsorted(kept + 1, labels[parts == part])
        held.append(np.bincount(y, minlength=len(names)))
        lacks = [names[c] for c in np.flatnonzero(held[-1] == 0)]
        if lacks:
            raise MargoError(f"{name} has no pixel of {', '.join(lacks)}: another --seed, --block or --least")
        write_table(step.output(f"{name}.npz"), Table(projection(cube[parts == part]), y, names))
        step.say(f"{name}: {len(y)} pixels of {cube.shape[2]} bands in {len(names)} classes")
    if few:
        step.say(f"left out for want of pixels: {', '.join(few)}")
    name = options.name or (places[0].stem.lower() if options.corpus else "indian-pines")
    write_json(step.output("corpus.json"), {"corpus": name, "synthetic": False})
    write_plots(step.out, [classes_table(names, held, few, options)])
    step.output(PLOTS)


def classes_table(names, held, few: list[str], options: Options) -> dict:
    """A table of the pixels ``held[part][class]`` of each class; its note tells of what image, which are left out."""
    data = f"Of {Path(options.corpus).name}" if options.corpus else (
        "Indian Pines: other data than the Washington, D.C., Mall of [PW10] 5.3 (191 bands, 7 classes), whose figures "
        "are not comparable"
    )  # fmt: skip
    split = {"blocks": f"squares of {options.block} x {options.block} pixels that do not touch, where the paper takes "
                       "pixels at random", "random": "pixels at random, as in the paper"}[options.split]  # fmt: skip
    left = f"Left out, with fewer than {options.least} pixels: {', '.join(few)}" if few else "No class is left out"
    return {
        "title": "Pixels of each class", "kind": "table", "columns": ["class", "train", "dev", "test"],
        "cells": [[name, *(str(counts[c]) for counts in held)] for c, name in enumerate(names)],
        "note": f"{data}. Parts are {split}. {left}.",
    }  # fmt: skip


if __name__ == "__main__":
    main(__doc__, Options, run)

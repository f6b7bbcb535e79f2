"""Frames and phone segments of feature folders as labelled samples."""

import numpy as np

from margo.classify.phone_samples import frame_labels, segment_features
from margo.errors import MargoError
from margo.formats import datadir
from margo.formats.transcripts import read_symbol_map
from margo.tasks import speech
from margo.tasks.labels import frame_times, read_segments


def samples(options, name: str, step) -> tuple[np.ndarray, np.ndarray]:
    """``x[N, D]`` and class names [N] of one set."""
    data = speech.read(step.input(options.mfcc / name, made_by="make_mfcc"))
    path = options.labels / name / "phones.ctm"
    labels, times = read_segments(step.input_file(path)), frame_times(data.features, data.folder)
    classes = read_symbol_map(options.map, options.map_table)
    wanted = {row.name for row in datadir.read(data.folder) if options.gender in ("", row.gender)}
    xs, ys = [], []
    for chunk in data.chunks:
        for utterance, x, _ in speech.load([item for item in chunk if item.name in wanted]):
            segments = labels.get(utterance)
            if not segments:
                raise MargoError(f"{path}: no labels for {utterance}")
            symbols = np.array([classes.get(symbol, symbol) for _, _, symbol in segments])
            if options.kind == "frames":
                at = frame_labels(segments, len(x), *times)
                rows, y = x[at >= 0], symbols[at[at >= 0]]
            else:
                rows, y = segment_features(x, segments, *times), symbols
            xs.append(rows[y != ""])
            ys.append(y[y != ""])
    if not xs or not sum(map(len, ys)):
        who = f" of gender {options.gender}" if options.gender else ""
        raise MargoError(f"{data.folder}: no labelled {options.kind}{who}")
    x, y = np.concatenate(xs).astype(float), np.concatenate(ys)
    if options.most and options.most < len(y):
        rows = np.linspace(0, len(y) - 1, options.most).astype(int)
        x, y = x[rows], y[rows]
    return x, y


def class_names(sets: dict) -> tuple[str, ...]:
    """The classes of the training part; a class that occurs elsewhere only cannot be learned and is refused."""
    names = tuple(sorted({*sets["train"][1].tolist()}))
    for name, (_, labels) in sets.items():
        unknown = sorted({*labels.tolist()} - {*names})
        if unknown and name != "train":
            raise MargoError(f"{name} has classes that train has not: {', '.join(unknown)}")
    return names


def numbers(labels, names) -> np.ndarray:
    index = {label: number for number, label in enumerate(names)}
    return np.array([index[label] for label in labels.tolist()])

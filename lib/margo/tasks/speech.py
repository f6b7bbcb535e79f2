"""A feature folder as chunks of utterances, for everything that passes over a corpus.

Chunks are fixed by the data, so that sums over them do not depend on who made which: so many utterances, or fewer that
have so many frames. A chunk is light (names, words and places in an archive); its features are read where it is worked
on.
"""

import operator
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import cycle
from pathlib import Path

import numpy as np

from margo.errors import MargoError
from margo.formats import datadir, features
from margo.formats.scratch import Scratch
from margo.runtime.parallel import map_chunks
from margo.signal.cepstral_warp import warped_features

CHUNK = 100  # utterances
FRAMES = 60_000  # of a chunk, unless one utterance has more: ten minutes, 10 MB
MOST_DROPPED = 0.05  # share of utterances that may be dropped before a step fails
TOLD = 10  # dropped utterances named on the screen; step.log names them all


@dataclass(frozen=True, slots=True)
class Item:
    """An utterance and where its features are; of a large corpus there are so many that their size counts."""

    name: str
    words: tuple[str, ...]
    speaker: str
    place: tuple[str, int]  # archive, byte offset
    columns: int  # of its features
    frames: int = 0  # about: what there is room for in the archive
    warp: float = 1.0  # of its frequencies: another voice's, where it is not 1


@dataclass(frozen=True)
class Speech:
    """The utterances of a feature folder, sorted by name; ``features`` says how the features were made."""

    folder: Path
    features: dict
    items: tuple[Item, ...]

    @property
    def chunks(self) -> list[tuple[Item, ...]]:
        chunks, first, frames = [], 0, 0
        for number, item in enumerate(self.items):
            if number > first and (number - first == CHUNK or frames + item.frames > FRAMES):
                chunks.append(self.items[first:number])
                first, frames = number, 0
            frames += item.frames
        return [*chunks, self.items[first:]] if self.items else []

    @property
    def vocabulary(self) -> tuple[str, ...]:
        return tuple(sorted({word for item in self.items for word in item.words}))

    def with_voices(self, warps: tuple[float, ...]) -> "Speech":
        """These utterances, and each in another voice too: its frequencies warped by one of ``warps`` in turn
        (:mod:`margo.signal.cepstral_warp`). No name of a data folder has a space."""
        turns = zip(self.items, cycle(warps))
        copies = (replace(item, name=f"{item.name} x{warp:g}", warp=warp) for item, warp in turns)
        return replace(self, items=tuple(sorted((*self.items, *copies), key=lambda item: item.name)))

    @property
    def isolated(self) -> bool:
        """Whether every transcript is one word."""
        return all(len(item.words) == 1 for item in self.items)


def read(folder) -> Speech:
    """The feature folder, with every fault named at once."""
    folder = Path(folder)
    if os.path.lexists(folder / "cmvn.scp"):
        raise MargoError(f"{folder}: has cmvn.scp, which is not applied here: make_mfcc --cmvn speaker applies it")
    places = features.read_scp(folder)
    data, made = datadir.read(folder), features.read_options(folder)
    room, columns, same = features.sizes(places), made["dimension"], {}
    items = tuple(
        Item(row.name, same.setdefault(row.words, row.words), same.setdefault(row.speaker, row.speaker),
             places[row.name], columns, room[places[row.name]] // (4 * columns))
        for row in data
        if row.name in places
    )  # fmt: skip
    if not items:
        raise MargoError(f"{folder}: no utterance has features")
    return Speech(folder, made, items)


def load(chunk, hmms=None) -> list[tuple]:
    """``(name, x[T, D] float32, words)`` of every item of a chunk, as ``hmms`` sees it; NaN marks missing values."""
    utterances = ((item.name, heard(item, hmms), item.words) for item in chunk)
    return [(name, x if hmms is None else hmms.padded(x), words) for name, x, words in utterances]


def heard(item: Item, hmms) -> np.ndarray:
    """The features of an item [T, D]; in a virtual voice, those that a model of them would hear."""
    x = features.read_matrix(item.place, allow_missing=True, columns=item.columns)
    return x if item.warp == 1.0 else warped_features(x, hmms.meta["features"], item.warp)


def total(function, speech: Speech, where):
    """Sum of ``function(chunk)`` over the chunks, in their order."""
    return reduce(operator.add, map_chunks(function, speech.chunks, where))


def check_dropped(dropped, speech: Speech, step, told: set | None = None) -> None:
    """Name the utterances that could not be used; fail when they are more than a few."""
    told = set() if told is None else told
    for name, reason in dropped:
        if name not in told:
            told.add(name)
            tell = step.say if len(told) <= TOLD else step.log
            tell(f"{step.name}: {name} dropped: {reason}")
    if len(dropped) > MOST_DROPPED * len(speech.items):
        raise MargoError(
            f"{speech.folder}: {len(dropped)} of {len(speech.items)} utterances cannot be used, more than "
            f"{MOST_DROPPED:.0%}; the first: {dropped[0][0]}: {dropped[0][1]}"
        )


class Corpus:
    """Training data as criteria see them (:mod:`margo.estimate.criterion`).

    ``lists``: strings of every utterance by name, best first, that were found with the model ``start`` (None: no
    lists). ``seconds`` is the time spent in passes.
    """

    def __init__(self, data: Speech, where, step, start=None, lists: dict | None = None):
        self.data, self.where, self.step, self.lists, self.start = data, where, step, lists, start
        self.told: set = set()
        self.memory: tuple = (None, None)
        self.seconds = 0.0
        self.scratch = Scratch(getattr(step, "out", None))

    def map(self, function, hmms, parts=None):
        began = time.perf_counter()
        items = zip(self.data.chunks, *(() if parts is None else (parts,)))
        for result in map_chunks(partial(on_chunk, function, hmms), items, self.where):
            self.seconds += time.perf_counter() - began
            yield result
            began = time.perf_counter()

    def total(self, function, hmms, parts=None, start=None):
        results = self.map(function, hmms, parts)  # a chunk's result is nobody else's
        result = reduce(operator.iadd, results) if start is None else reduce(operator.iadd, results, start)
        check_dropped(result.dropped, self.data, self.step, self.told)
        return result

    def remember(self, hmms, make):
        if self.memory[0] is not hmms:
            self.memory = (None, None)  # of the two, only one at a time
            self.memory = (hmms, make())
        return self.memory[1]

    def strings(self, hmms) -> Iterator[dict | None]:
        known = self.lists is not None and hmms is self.start
        listed = self.lists if known else {}
        return ({item.name: listed[item.name] for item in chunk if item.name in listed} for chunk in self.data.chunks)


def on_chunk(function, hmms, item):
    """``function(hmms, utterances[, part])`` on ``(chunk[, part])``."""
    chunk, *part = item
    return function(hmms, load(chunk, hmms), *part)

"""A feature folder as chunks of utterances, for everything that passes over a corpus.

Chunks are fixed by the data, so that sums over them do not depend on who made which. A chunk is light (names, words and
places in an archive); its features are read where it is worked on.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from margo.errors import MargoError
from margo.formats import datadir, features
from margo.runtime.parallel import map_chunks

CHUNK = 100  # utterances
MOST_DROPPED = 0.05  # share of utterances that may be dropped before a step fails
TOLD = 10  # dropped utterances named on the screen; step.log names them all


@dataclass(frozen=True)
class Item:
    """An utterance and where its features are."""

    name: str
    words: tuple[str, ...]
    speaker: str
    place: tuple[str, int]  # archive, byte offset


@dataclass(frozen=True)
class Speech:
    """The utterances of a feature folder, sorted by name; ``features`` says how the features were made."""

    folder: Path
    features: dict
    items: tuple[Item, ...]

    @property
    def chunks(self) -> list[tuple[Item, ...]]:
        return [self.items[first : first + CHUNK] for first in range(0, len(self.items), CHUNK)]

    @property
    def vocabulary(self) -> tuple[str, ...]:
        return tuple(sorted({word for item in self.items for word in item.words}))

    @property
    def isolated(self) -> bool:
        """Whether every transcript is one word."""
        return all(len(item.words) == 1 for item in self.items)


def read(folder) -> Speech:
    """The feature folder, with every fault named at once."""
    folder = Path(folder)
    places = features.read_scp(folder)
    data = datadir.read(folder)
    items = tuple(
        Item(utterance.name, utterance.words, utterance.speaker, places[utterance.name])
        for utterance in data
        if utterance.name in places
    )
    if not items:
        raise MargoError(f"{folder}: no utterance has features")
    return Speech(folder, features.read_options(folder), items)


def load(chunk, hmms=None) -> list[tuple]:
    """``(name, x[T, D] float32, words)`` of every item of a chunk; NaN marks missing values.

    For a model that large-margin training augmented by a dimension ([LJ07] (59)), frames are zero there.
    """
    utterances = [(item.name, features.read_matrix(item.place, allow_missing=True), item.words) for item in chunk]
    if hmms is None or not hmms.meta.get("augmented"):
        return utterances
    return [(name, np.pad(x, ((0, 0), (0, 1))), words) for name, x, words in utterances]


def total(function, speech: Speech, where):
    """Sum of ``function(chunk)`` over the chunks, in their order."""
    result = None
    for part in map_chunks(function, speech.chunks, where):
        result = part if result is None else result + part
    return result


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

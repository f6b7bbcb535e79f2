"""Kaldi's alignments: transition-ids of utterances as a list (.scp), an archive, or text, also packed (.gz)."""

import gzip
from pathlib import Path

import numpy as np

from margo.errors import MargoError
from margo.formats.features import INT_ENTRY, INT_VECTOR, read_scp, read_vector
from margo.formats.reading import ALWAYS, not_text, open_file, reading, size_of

INFLATED = 100  # times the bytes of a packed file: ids stand in long runs
DIGITS = 9  # of an id


def read_alignments(path) -> dict[str, np.ndarray]:
    """Transition-ids [T] int32 of each utterance."""
    path = Path(path)
    if path.suffix == ".scp":
        return {name: read_vector(place) for name, place in read_scp(path.parent, path.name).items()}
    with open_file(path) as file, reading(path, "alignments"):
        data = _unpacked(file) if path.suffix == ".gz" else file.read()
        return _archive(data) if b"\0B" in data[:1000] else _text(data)


def _unpacked(file) -> bytes:
    most = max(ALWAYS, INFLATED * size_of(file))
    data = gzip.GzipFile(fileobj=file).read(most + 1)
    if len(data) > most:
        raise MargoError(f"more than {most} bytes in a packed file of {size_of(file)}")
    return data


def _archive(data: bytes) -> dict[str, np.ndarray]:
    vectors, at = {}, 0
    while at < len(data):
        start = data.find(b" ", at) + 1
        place, head = f"byte {at}", data[start : start + 7]
        if not start or head[:3] != INT_VECTOR or len(head) < 7:
            raise MargoError(f"{place}: expected a name and a vector of integers")
        count = int.from_bytes(head[3:], "little", signed=True)
        end = start + 7 + INT_ENTRY.itemsize * count
        if count < 0 or end > len(data):
            room = (len(data) - start - 7) // INT_ENTRY.itemsize
            raise MargoError(f"{place}: {count} integers, expected 0 to {room}")
        entries = np.frombuffer(data, INT_ENTRY, count, start + 7)
        if (entries["size"] != 4).any():
            raise MargoError(f"{place}: numbers of another size, expected 4 bytes")
        _add(vectors, data[at : start - 1].decode(), entries["value"].astype(np.int32), place)
        at = end
    return vectors


def _text(data: bytes) -> dict[str, np.ndarray]:
    vectors = {}
    for number, line in enumerate(data.split(b"\n"), 1):
        if words := not_text(line):
            raise MargoError(f"line {number}: {words}")
        name, *ids = line.decode().split() or [""]
        if not all(each.isascii() and each.isdigit() and len(each) <= DIGITS for each in ids):
            raise MargoError(f"line {number}: {name[:100]}: expected transition-ids")
        if name:
            _add(vectors, name, np.array(ids, np.int32), f"line {number}")
    return vectors


def _add(vectors: dict, name: str, ids: np.ndarray, place: str) -> None:
    if name in vectors:
        raise MargoError(f"{place}: {name} is there already")
    vectors[name] = ids

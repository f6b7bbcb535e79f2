"""Archives of feature matrices and state sequences in Kaldi's binary form, and the record of how features were made.

``feats.scp`` and ``ali.scp`` name their archive by its absolute path, so that Kaldi and kaldiio find it from anywhere;
read here, the archive beside the list comes first, so that experiments can be moved and copied. Lists made by Kaldi
itself, with absolute paths or paths from the current directory, are read as well.
"""

import math
import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from margo.errors import MargoError, refuse
from margo.formats.atomic import atomic
from margo.formats.reading import MOST, open_file, place_of, read_json, read_keyed, reading, take
from margo.knobs import LARGEST, brief
from margo.signal.cmvn import CmvnStats
from margo.signal.front_end import describe_given, options_of, unmapped

RECORD = "mfcc.json"
FLOAT_MATRIX = b"\0BFM \4"
INT_VECTOR = b"\0B\4"
INT_ENTRY = np.dtype([("size", "i1"), ("value", "<i4")])  # each number of an integer vector is preceded by its size
Place = tuple[str, int]  # archive, byte offset


def write_ark(ark, scp, items, *, allow_missing: bool = False) -> dict[str, int]:
    """Write ``(name, array)`` pairs to archive ``ark`` and their places to ``scp`` beside it; returns byte offsets.

    Real matrices [T, D] are written as float32, integer vectors [T] as int32. Refuses an empty archive, a name given
    twice or with white space, a dimension that changes, a matrix without frames, and values that are not finite (NaN
    marks a missing value where ``allow_missing``). Both files appear at the end, or neither if ``items`` raises.
    """
    ark, scp = Path(ark), Path(scp)
    if ark.parent.resolve() != scp.parent.resolve():
        raise MargoError(f"{scp}: not in the folder of its archive {ark}")
    offsets: dict[str, int] = {}
    columns, place = None, ark.resolve()
    with atomic(scp) as list_file, atomic(ark, "wb") as file:
        for name, array in items:
            array = np.asarray(array)
            columns = array.shape[-1] if columns is None and array.ndim == 2 else columns
            refuse(_unwritable(name, array, columns, offsets, allow_missing), str(ark))
            file.write(name.encode() + b" ")
            offsets[name] = file.tell()
            list_file.write(f"{name} {place}:{offsets[name]}\n")
            file.write(_encode(array))
        if not offsets:
            raise MargoError(f"{ark}: nothing to write")
    return offsets


def _unwritable(name: str, array: np.ndarray, columns: int | None, known, allow_missing: bool) -> list[str]:
    faults = []
    if name.split() != [name]:
        faults.append(f"name {name!r} is empty or holds white space")
    if name in known:
        faults.append(f"{name}: given twice")
    if array.size == 0:
        faults.append(f"{name}: shape {array.shape} holds nothing")
    elif np.issubdtype(array.dtype, np.integer):
        if array.ndim != 1:
            faults.append(f"{name}: integers of shape {array.shape}, expected a vector")
    elif array.ndim != 2 or array.shape[1] != columns:
        faults.append(f"{name}: shape {array.shape}, expected [frames, {columns}]")
    else:
        faults += _not_finite(name, array, allow_missing)
    return faults


def _not_finite(name: str, matrix: np.ndarray, allow_missing: bool) -> list[str]:
    bad = np.isinf(matrix) if allow_missing else ~np.isfinite(matrix)
    if not bad.any():
        return []
    frame, column = (int(index) for index in np.argwhere(bad)[0])
    return [f"{name}: {int(bad.sum())} values are not finite, the first in frame {frame}, column {column}"]


def _encode(array: np.ndarray) -> bytes:
    if array.ndim == 2:
        rows, columns = (np.array(n, "<i4").tobytes() for n in array.shape)
        return FLOAT_MATRIX + rows + b"\4" + columns + np.ascontiguousarray(array, "<f4").tobytes()
    entries = np.empty(len(array), INT_ENTRY)
    entries["size"], entries["value"] = 4, array
    return INT_VECTOR + np.array(len(array), "<i4").tobytes() + entries.tobytes()


def read_scp(folder, name: str = "feats.scp") -> dict[str, Place]:
    """``utterance -> (archive, byte offset)`` in the order of the list; every faulty line is named."""
    path = Path(folder) / name
    places: dict[str, Place] = {}
    faults = []
    known: dict[str, str | None] = {}
    table = read_keyed(path, lambda kind, number, words: faults.append(f"line {number}: {words}"))
    for key, (number, value) in table.items():
        place = place_of(value)
        if place is None:
            faults.append(f"line {number}: {brief(value)}, expected archive:offset")
            continue
        ark, offset = place
        if ark not in known:
            found = find_archive(ark, path.parent, key, offset)
            known[ark] = found and str(found)
        if known[ark] is None:
            faults.append(f"line {number}: {key}: no archive {ark}")
        else:
            places[key] = (known[ark], offset)
    refuse(faults, str(path), MOST)
    if not places:
        raise MargoError(f"{path}: is empty")
    return places


def sizes(places: dict[str, Place]) -> dict[Place, int]:
    """Bytes from each place to the next in its archive, or to the end of it: more than is there, if little."""
    offsets: dict[str, set[int]] = {}
    for ark, offset in places.values():
        offsets.setdefault(ark, set()).add(offset)
    found = {}
    for ark, many in offsets.items():
        ordered = sorted(many)
        ends = [*ordered[1:], max(os.path.getsize(ark), ordered[-1])]
        found |= {(ark, first): last - first for first, last in zip(ordered, ends)}
    return found


def find_archive(ark: str, folder: Path, key: str, offset: int) -> Path | None:
    """The archive that a list in ``folder`` calls ``ark``: beside the list if it is there, as where the folder was
    copied or moved; then another of that name is passed over, which does not hold ``key`` before ``offset``."""
    beside = folder / Path(ark).name
    if Path(ark).is_absolute() and os.path.isfile(beside) and not _holds(beside, key, offset):
        return Path(ark) if os.path.isfile(ark) else None
    places = (beside, Path(ark)) if Path(ark).is_absolute() else (folder / ark, Path(ark))
    return next((path for path in places if os.path.isfile(path)), None)


def _holds(ark: Path, key: str, offset: int) -> bool:
    name = key.encode() + b" "
    with open(ark, "rb") as file:
        file.seek(max(offset - len(name), 0))
        return file.read(len(name)) == name


def read_cmvn(folder) -> dict[str, CmvnStats]:
    """Kaldi's statistics for normalisation by speaker, of ``cmvn.scp``: matrices [2, D + 1] of sums and squares."""
    stats = {}
    for speaker, place in read_scp(folder, "cmvn.scp").items():
        with reading(Path(folder) / "cmvn.scp"):
            matrix, where = _read(place).astype(np.float64), f"{speaker}: {place[0]}:{place[1]}"
            if matrix.ndim != 2 or len(matrix) != 2 or matrix.shape[1] < 2 or not matrix[0, -1] > 0:
                raise MargoError(f"{where}: shape {matrix.shape}, expected sums and squares with their count")
            if not (np.abs(matrix) <= LARGEST).all() or (matrix[1] < 0).any():
                raise MargoError(f"{where}: sums that are not finite, or squares below 0")
        stats[speaker] = CmvnStats(matrix[0, -1], matrix[0, :-1], matrix[1, :-1])
    return stats


def read_matrix(place: Place, *, columns: int | None = None, allow_missing: bool = False) -> np.ndarray:
    """Features [T, D] float32 at ``place``; refuses another dimension than ``columns``, and values not finite.

    ``allow_missing`` lets NaN pass, which marks missing values.
    """
    where = f"{place[0]}:{place[1]}"
    matrix = _read(place)
    if matrix.ndim != 2 or matrix.dtype.kind != "f" or not matrix.size:
        raise MargoError(f"{where}: {matrix.dtype} of shape {matrix.shape}, expected features [frames, columns]")
    if columns is not None and matrix.shape[1] != columns:
        raise MargoError(f"{where}: features of dimension {matrix.shape[1]}, expected {columns}")
    with np.errstate(over="ignore"):  # what is too large is infinite now, and refused
        matrix = matrix.astype(np.float32, copy=False)
    refuse(_not_finite("features", matrix, allow_missing), where)
    return matrix


def read_vector(place: Place) -> np.ndarray:
    """Integers [T] int32 at ``place``, as in ``ali.ark``."""
    vector = _read(place)
    if vector.ndim != 1 or vector.dtype != np.int32:
        raise MargoError(f"{place[0]}:{place[1]}: {vector.dtype} of shape {vector.shape}, expected integers [frames]")
    return vector


def _read(place: Place) -> np.ndarray:
    path, offset = place
    with open_file(path) as file, reading(f"{path}:{offset}", "a Kaldi matrix or vector"):
        size = os.fstat(file.fileno()).st_size
        if not 0 <= offset < size:
            raise MargoError(f"the archive has {size} bytes")
        file.seek(offset)
        head = file.read(15)
        if head[:6] == FLOAT_MATRIX:
            rows, columns = (int.from_bytes(head[at : at + 4], "little", signed=True) for at in (6, 11))
            return _values(file, "<f4", (rows, columns), size)
        if head[:3] == INT_VECTOR:
            file.seek(offset + 7)
            count = int.from_bytes(head[3:7], "little", signed=True)
            entries = _values(file, INT_ENTRY, (count,), size)
            if (entries["size"] != 4).any():
                raise MargoError("numbers of another size, expected 4 bytes")
            return entries["value"].astype(np.int32)
        if head[:2] != b"\0B":
            raise MargoError(f"not a binary Kaldi matrix or vector (starts with {head[:4]!r})")
        from kaldiio.matio import read_matrix_or_vector  # of double precision, compressed

        file.seek(offset)
        return np.asarray(read_matrix_or_vector(SimpleNamespace(read=lambda count: take(file, count, size))))


def _values(file, kind, shape: tuple[int, ...], size: int) -> np.ndarray:
    if min(shape) < 0:
        raise MargoError(f"shape {shape}, expected no number below 0")
    return np.frombuffer(take(file, np.dtype(kind).itemsize * math.prod(shape), size), kind).reshape(shape)


def read_options(folder) -> dict:
    """How the features of ``folder`` were made; of features that came ready-made, their dimension."""
    path = Path(folder) / RECORD
    if not os.path.lexists(path):
        place = next(iter(read_scp(folder).values()))
        return describe_given(read_matrix(place, allow_missing=True).shape[1])
    record = read_json(path, "a record of features", {"dimension": int})
    if record.get("variant") != "given":
        options_of(unmapped(record), str(path))
    return record

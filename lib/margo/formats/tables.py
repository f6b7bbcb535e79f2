"""Labelled tables: USPS in HDF5, MNIST's four idx files, CSV with a label column.

All give ``{"train": Table, "test": Table}`` (CSV: one table, under "all"); a missing value is NaN, a missing label -1.
"""

import gzip
import math
import os
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from margo.errors import MargoError, refuse
from margo.formats.atomic import read_npz, write_npz
from margo.formats.reading import MOST, check_inflation, fitting, open_file, read_rows, reading, size_of
from margo.knobs import real

IDX_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
MNIST = {"train": ("train-images", "train-labels"), "test": ("t10k-images", "t10k-labels")}
FORMAT = "margo-table-1"
MISSING = {"", "?", "na", "nan"}


@dataclass(frozen=True)
class Table:
    """Samples ``x[N, D]`` and their classes ``y[N]``, numbers into ``names``; -1 is no label."""

    x: np.ndarray
    y: np.ndarray
    names: tuple[str, ...]


def write_table(path, table: Table, **meta) -> None:
    write_npz(path, {"format": FORMAT, "names": list(table.names), **meta}, {"x": table.x, "y": table.y})


def read_table(path) -> Table:
    """A table of :func:`write_table`."""
    meta, arrays = read_npz(path)
    names = fitting(path, meta, {"format": {FORMAT}, "names": [str]}, "a table of margo")["names"]
    with reading(path, "a table"):
        x, y = arrays["x"], arrays["y"]
        if x.ndim != 2 or x.dtype.kind not in "fiu" or y.shape != x.shape[:1] or y.dtype.kind != "i":
            raise MargoError(f"x is {x.dtype} {x.shape}, y {y.dtype} {y.shape}; expected [N, D] and whole numbers [N]")
        if np.isinf(x).any() or not ((y >= -1) & (y < len(names))).all():
            raise MargoError(f"expected finite values (or NaN: missing), and classes from -1 to {len(names) - 1}")
        return Table(x, y, tuple(names))


def read_corpus(path) -> dict[str, Table]:
    """Whatever ``path`` holds: a ``.h5``, ``.csv`` or ``.tsv`` file, or a folder with USPS's or MNIST's files."""
    path = Path(path)
    if path.is_dir():
        if held := sorted(path.glob("*.h5")):
            return read_usps(held[0])
        if any(path.glob("*-images*")):
            return read_mnist(path)
        raise MargoError(f"{path}: neither an .h5 file nor MNIST's train-images/t10k-images files in this folder")
    if not path.is_file():
        raise MargoError(f"{path}: no such file or folder")
    if path.suffix in (".h5", ".hdf5"):
        return read_usps(path)
    if path.suffix in (".csv", ".tsv", ".txt"):
        return {"all": read_csv(path)}
    raise MargoError(f"{path}: expected .h5, .csv or .tsv, or a folder with idx files")


def read_usps(path) -> dict[str, Table]:
    """HDF5 with groups ``train`` and ``test``, each with ``data[N, D]`` and ``target[N]``."""
    import h5py

    with open_file(path) as plain, reading(path, "HDF5"), h5py.File(plain, "r") as file:
        places = [f"{group}/{name}" for group in ("train", "test") for name in ("data", "target")]
        refuse([f"{place}: {fault}" for place in places for fault in _dataset_faults(file, place)], str(path))
        sets = [file[place] for place in places]
        check_inflation(path, sum(each.size * each.dtype.itemsize for each in sets), os.fstat(plain.fileno()).st_size)
        arrays = [each[()] for each in sets]
        return {"train": digits(path, "train", *arrays[:2]), "test": digits(path, "test", *arrays[2:])}


def _dataset_faults(file, place: str) -> list[str]:
    """Why there is no array of numbers at ``place`` that lies in the ``file`` itself."""
    import h5py

    group, name = place.split("/")
    for holder, key in ((file, group), (file.get(group), name)):
        if not isinstance(holder, h5py.Group) or key not in holder:
            return [f"not there (found {', '.join(holder if isinstance(holder, h5py.Group) else file)})"]
        if not isinstance(holder.get(key, getlink=True), h5py.HardLink):
            return ["a link, expected the values themselves"]
    held = file[place]
    if not isinstance(held, h5py.Dataset) or held.dtype.kind not in "fiu" or not held.shape:
        return ["expected an array of numbers"]
    if held.external or held.is_virtual:
        return ["its values are in other files, expected them here"]
    return []


def digits(path, group, x, y) -> Table:
    """A table of digits 0-9 from arrays, checked."""
    x, y = np.asarray(x, float).reshape(len(x), -1), np.asarray(y)
    faults = []
    if len(x) != len(y):
        faults.append(f"{group}: {len(x)} images but {len(y)} labels")
    if y.ndim != 1 or not np.issubdtype(y.dtype, np.integer) or not ((y >= 0) & (y <= 9)).all():
        faults.append(f"{group}: labels are not all digits 0 to 9")
    if not np.isfinite(x).all():
        faults.append(f"{group}: {int((~np.isfinite(x)).sum())} pixels are not finite")
    refuse(faults, str(path))
    return Table(x, y.astype(np.int64), tuple("0123456789"))


def read_mnist(folder) -> dict[str, Table]:
    """The four idx files (``train-images-idx3-ubyte`` ..., raw or ``.gz``, also ``train-images.idx3-ubyte``)."""
    places = {stem: min(Path(folder).glob(f"{stem}*"), default=None) for stems in MNIST.values() for stem in stems}
    refuse([f"{stem}-idx*-ubyte[.gz] is not there" for stem, path in places.items() if path is None], str(folder))
    return {
        group: digits(f"{places[images]} and {places[labels].name}", group,
                      read_idx(places[images], 3) / 255.0, read_idx(places[labels], 1))
        for group, (images, labels) in MNIST.items()
    }  # fmt: skip


def read_idx(path, dimensions: int) -> np.ndarray:
    """An idx file, gzipped or not: magic 0 0 TYPE NDIM, big-endian sizes, values."""
    path = Path(path)
    with open_file(path) as plain, reading(path, "idx"):
        size = size_of(plain)
        file = gzip.GzipFile(fileobj=plain) if path.suffix == ".gz" else plain
        head = file.read(4)
        if len(head) < 4 or head[:2] != b"\0\0" or head[2] not in IDX_TYPES:
            raise MargoError(f"not an idx file (starts with {head.hex()}, expected 0000 and a type)")
        if head[3] != dimensions:
            raise MargoError(f"{head[3]} dimensions, expected {dimensions}")
        sizes = file.read(4 * dimensions)
        if len(sizes) < 4 * dimensions:
            raise MargoError("cut off in its header")
        shape, kind = struct.unpack(f">{dimensions}I", sizes), np.dtype(IDX_TYPES[head[2]])
        expected = math.prod(shape) * kind.itemsize
        check_inflation(path, expected, size)
        values = file.read(expected + 1)
        if len(values) != expected:
            raise MargoError(f"{len(values)} bytes of values, its header promises {expected} ({shape})")
        return np.frombuffer(values, kind).reshape(shape).astype(kind.newbyteorder("="))


def read_csv(path, label: str = "") -> Table:
    """A table with a header line; the label column is ``label``, else ``label``, ``class``, ``target`` or the last.

    Empty cells, ``?``, ``NA`` and ``NaN`` are missing; a missing label makes an unlabelled sample. Every other cell
    must be a number.
    """
    path = Path(path)
    rows = read_rows(path, "\t" if path.suffix == ".tsv" else ",")
    if len(rows) < 2:
        raise MargoError(f"{path}: expected a header line and at least one sample, found {len(rows)} lines")
    header = [name.strip() for name in rows[0][1]]
    if label and label not in header:
        raise MargoError(f"{path}: no column {label!r}; it has {', '.join(header)}")
    last = len(header) - 1
    column = next((header.index(name) for name in (label, "label", "class", "target") if name in header), last)
    faults, values, labels = [], [], []
    for number, row in rows[1:]:
        if len(row) != len(header):
            faults.append(f"line {number}: {len(row)} cells, the header has {len(header)}")
            continue
        cells = [cell.strip() for cell in row]
        labels.append(cells.pop(column))
        numbers = []
        for name, cell in zip(header[:column] + header[column + 1 :], cells):
            try:
                numbers.append(np.nan if cell.lower() in MISSING else real(cell))
            except ValueError as error:
                faults.append(f"line {number}: column {name} {error}")
        values.append(numbers)
    refuse(faults, str(path), MOST)
    names = sorted({name for name in labels if name.lower() not in MISSING}, key=_by_number)
    number_of = {name: number for number, name in enumerate(names)}
    return Table(np.array(values), np.array([number_of.get(name, -1) for name in labels]), tuple(names))


def _by_number(name: str):
    try:
        return (0, real(name), name)
    except ValueError:
        return (1, 0.0, name)

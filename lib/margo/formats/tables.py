"""Labelled tables: USPS in HDF5, MNIST's four idx files, CSV with a label column.

All give ``{"train": Table, "test": Table}`` (CSV: one table, under "all"); a missing value is NaN, a missing label -1.
"""

import csv
import gzip
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from margo.errors import MargoError, refuse
from margo.formats.atomic import read_npz, write_npz

IDX_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
MNIST = {"train": ("train-images", "train-labels"), "test": ("t10k-images", "t10k-labels")}
MISSING = {"", "?", "na", "nan"}


@dataclass(frozen=True)
class Table:
    """Samples ``x[N, D]`` and their classes ``y[N]``, numbers into ``names``; -1 is no label."""

    x: np.ndarray
    y: np.ndarray
    names: tuple[str, ...]


def write_table(path, table: Table, **meta) -> None:
    write_npz(path, {"format": "margo-table-1", "names": list(table.names), **meta}, {"x": table.x, "y": table.y})


def read_table(path) -> Table:
    """A table of :func:`write_table`."""
    meta, arrays = read_npz(path)
    if meta.get("format") != "margo-table-1":
        raise MargoError(f"{path}: not a table of margo (format {meta.get('format')!r})")
    return Table(arrays["x"], arrays["y"], tuple(meta["names"]))


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

    try:
        with h5py.File(path, "r") as file:
            faults = [
                f"{group}/{name}: not there (found {', '.join(file.get(group, file).keys())})"
                for group in ("train", "test") for name in ("data", "target") if f"{group}/{name}" not in file
            ]  # fmt: skip
            refuse(faults, str(path))
            arrays = {group: (file[group]["data"][()], file[group]["target"][()]) for group in ("train", "test")}
    except OSError as error:
        raise MargoError(f"{path}: not an HDF5 file ({error})") from None
    return {group: digits(path, group, x, y) for group, (x, y) in arrays.items()}


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
        group: digits(folder, group, read_idx(places[images], 3) / 255.0, read_idx(places[labels], 1))
        for group, (images, labels) in MNIST.items()
    }


def read_idx(path, dimensions: int) -> np.ndarray:
    """An idx file, gzipped or not: magic 0 0 TYPE NDIM, big-endian sizes, values."""
    path = Path(path)
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else open(path, "rb") as file:
            content = file.read()
    except (OSError, EOFError) as error:
        raise MargoError(f"{path}: cannot be read ({error})") from None
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] not in IDX_TYPES:
        raise MargoError(f"{path}: not an idx file (starts with {content[:4].hex()}, expected 0000 and a type)")
    count = content[3]
    if count != dimensions:
        raise MargoError(f"{path}: {count} dimensions, expected {dimensions}")
    if len(content) < 4 + 4 * count:
        raise MargoError(f"{path}: cut off in its header")
    shape = struct.unpack(f">{count}I", content[4 : 4 + 4 * count])
    kind = np.dtype(IDX_TYPES[content[2]])
    values = np.frombuffer(content, np.uint8, offset=4 + 4 * count)
    expected = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
    if len(values) != expected:
        raise MargoError(f"{path}: {len(values)} bytes of values, its header promises {expected} ({shape})")
    return values.view(kind).reshape(shape).astype(kind.newbyteorder("="))


def read_csv(path, label: str = "") -> Table:
    """A table with a header line; the label column is ``label``, else ``label``, ``class``, ``target`` or the last.

    Empty cells, ``?``, ``NA`` and ``NaN`` are missing; a missing label makes an unlabelled sample. Every other cell
    must be a number.
    """
    path = Path(path)
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, delimiter="\t" if path.suffix == ".tsv" else ","))
    if len(rows) < 2:
        raise MargoError(f"{path}: expected a header line and at least one sample, found {len(rows)} lines")
    header = [name.strip() for name in rows[0]]
    if label and label not in header:
        raise MargoError(f"{path}: no column {label!r}; it has {', '.join(header)}")
    last = len(header) - 1
    column = next((header.index(name) for name in (label, "label", "class", "target") if name in header), last)
    faults, values, labels = [], [], []
    for number, row in enumerate(rows[1:], 2):
        if not row:
            continue
        if len(row) != len(header):
            faults.append(f"line {number}: {len(row)} cells, the header has {len(header)}")
            continue
        cells = [cell.strip() for cell in row]
        labels.append(cells.pop(column))
        numbers = []
        for name, cell in zip(header[:column] + header[column + 1 :], cells):
            try:
                numbers.append(np.nan if cell.lower() in MISSING else float(cell))
            except ValueError:
                faults.append(f"line {number}: column {name} is {cell!r}, expected a number")
        values.append(numbers)
    refuse(faults, str(path), most=20)
    names = sorted({name for name in labels if name.lower() not in MISSING}, key=_by_number)
    number_of = {name: number for number, name in enumerate(names)}
    return Table(np.array(values), np.array([number_of.get(name, -1) for name in labels]), tuple(names))


def _by_number(name: str):
    try:
        return (0, float(name), name)
    except ValueError:
        return (1, 0.0, name)

"""Labelled tables: HDF5 (USPS), MNIST's four idx files, the .amat files of its variants, CIFAR-10's binary files, CSV
with a label column.

All give ``{"train": Table, "test": Table}`` (CSV, and HDF5 without parts: one table, under "all"); a missing value is
NaN, a missing label -1.
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
from margo.knobs import LARGEST, real

IDX_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
MNIST = {"train": ("train-images", "train-labels"), "test": ("t10k-images", "t10k-labels")}
FORMAT = "margo-table-1"
MISSING = {"", "?", "na", "nan"}
CIFAR = {"train": [f"data_batch_{n}.bin" for n in range(1, 6)], "test": ["test_batch.bin"]}
CIFAR_NAMES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
PIXELS = 3072  # of an image of CIFAR-10
MOST_NUMBER = 2**53  # up to which floating-point labels are exact
KNOWN = {  # samples of each class in the training parts that papers have figures of
    "usps": (1194, 1005, 731, 658, 652, 556, 664, 645, 542, 644),
    "mnist": (5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949),
    "cifar10": (5000,) * 10,
}
VARIANTS = ("mnist_basic", "mnist_background_images", "mnist_background_random", "mnist_rotation_new",
            "mnist_rotation_back_image_new")  # fmt: skip
VARIANT_SHAPES = {"train": (12000, 784), "test": (50000, 784)}  # of each of them: Larochelle et al. (2007)


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
    """Whatever ``path`` holds: a ``.h5``, ``.csv``, ``.tsv`` or ``.amat`` file, or a folder with the files of USPS,
    MNIST, a variant of MNIST or CIFAR-10."""
    path = Path(path)
    if path.is_dir():
        if held := sorted(path.glob("*.h5")):
            return read_hdf5(held[0])
        if any(path.glob("*-images*")):
            return read_mnist(path)
        if any((path / name).is_file() for name in CIFAR["train"]):
            return read_cifar(path)
        if held := sorted(path.glob("*.amat")):
            return read_amat(held)
        raise MargoError(f"{path}: no .h5 or .amat files, nor MNIST's train-images/t10k-images or CIFAR-10's "
                         "data_batch files in this folder")  # fmt: skip
    if not path.is_file():
        raise MargoError(f"{path}: no such file or folder")
    if path.suffix in (".h5", ".hdf5"):
        return read_hdf5(path)
    if path.suffix in (".csv", ".tsv", ".txt"):
        return {"all": read_csv(path)}
    if path.suffix == ".amat":
        return read_amat([path])
    raise MargoError(f"{path}: expected .h5, .csv, .tsv or .amat, or a folder with idx files")


def name_of(path, tables: dict[str, Table]) -> str:
    """What a corpus is called: by what its training part holds, else by its file or folder.

    A name that papers have figures of goes to those very data alone: others under it are called a part of them. USPS,
    MNIST and CIFAR-10 are known by the samples of each class; variants of MNIST, whose samples are drawn from it, by
    the names of their folders together with the sizes of both parts.
    """
    counts = tuple(np.bincount(tables["train"].y[tables["train"].y >= 0]).tolist()) if "train" in tables else ()
    width = next(iter(tables.values())).x.shape[1]
    found = [name for name, known in KNOWN.items() if known == counts and (name != "cifar10" or width == PIXELS)]
    stem = Path(path).stem.lower()
    variant = stem in VARIANTS and {part: table.x.shape for part, table in tables.items()} == VARIANT_SHAPES
    return found[0] if found else f"{stem} (not the whole)" if stem in (*KNOWN, *VARIANTS) and not variant else stem


def read_hdf5(path) -> dict[str, Table]:
    """HDF5 with groups ``train`` and ``test``, each with ``data[N, D]`` and ``target[N]``, as of USPS; or with ``data``
    and ``target`` themselves. Classes are called by their numbers."""
    import h5py

    with open_file(path) as plain, reading(path, "HDF5"), h5py.File(plain, "r") as file:
        parts = {"all": ""} if "data" in file and "train" not in file else {"train": "train/", "test": "test/"}
        places = [f"{part}{name}" for part in parts.values() for name in ("data", "target")]
        refuse([f"{place}: {fault}" for place in places for fault in _dataset_faults(file, place)], str(path))
        sets = [file[place] for place in places]
        check_inflation(path, sum(each.size * each.dtype.itemsize for each in sets), os.fstat(plain.fileno()).st_size)
        arrays = [each[()] for each in sets]
        return numbered(path, {part: (arrays[2 * n], arrays[2 * n + 1]) for n, part in enumerate(parts)})


def _dataset_faults(file, place: str) -> list[str]:
    """Why there is no array of numbers at ``place`` that lies in the ``file`` itself."""
    import h5py

    group, _, name = place.rpartition("/")
    for holder, key in [(file, group), (file.get(group), name)] if group else [(file, name)]:
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


def numbered(path, parts: dict[str, tuple[np.ndarray, np.ndarray]]) -> dict[str, Table]:
    """Tables of ``{part: (x, y)}`` whose labels are whole numbers, any: a class for each that the first part has."""
    faults = [fault for part, (x, y) in parts.items() for fault in _array_faults(part, x, y)]
    for part, (_, y) in parts.items():
        if y.ndim != 1 or not (np.abs(y) <= MOST_NUMBER).all() or (y != np.round(y)).any():
            faults.append(f"{part}: labels are not all whole numbers")
    refuse(faults, str(path))
    labels = {part: y.astype(np.int64) for part, (_, y) in parts.items()}
    classes = np.unique(next(iter(labels.values())))
    strange = {part: sorted({*y.tolist()} - {*classes.tolist()}) for part, y in labels.items()}
    refuse([f"{part}: no sample to train on has label {', '.join(map(str, found[:MOST]))}"
            for part, found in strange.items() if found], str(path))  # fmt: skip
    return {part: Table(_samples(x), np.searchsorted(classes, labels[part]), tuple(map(str, classes.tolist())))
            for part, (x, _) in parts.items()}  # fmt: skip


def digits(path, group, x, y) -> Table:
    """A table of digits 0-9 from arrays, checked."""
    y = np.asarray(y)
    faults = _array_faults(group, x, y)
    if y.ndim != 1 or not np.issubdtype(y.dtype, np.integer) or not ((y >= 0) & (y <= 9)).all():
        faults.append(f"{group}: labels are not all digits 0 to 9")
    refuse(faults, str(path))
    return Table(_samples(x), y.astype(np.int64), tuple("0123456789"))


def _samples(x) -> np.ndarray:
    """[N, D] of arrays of images, each in a row."""
    return np.asarray(x, float).reshape(len(x), -1)


def _array_faults(group: str, x, y) -> list[str]:
    faults = []
    if len(x) != len(y):
        faults.append(f"{group}: {len(x)} images but {len(y)} labels")
    if bad := int((~(np.abs(_samples(x)) <= LARGEST)).sum()):
        faults.append(f"{group}: {bad} pixels are not numbers, or larger than {LARGEST:g}")
    return faults


def read_amat(paths) -> dict[str, Table]:
    """Text of Larochelle et al. (2007): a sample a line, its pixels and then its digit, in a file for train and one for
    test by their names; one file alone is split elsewhere."""
    tables = {}
    for path in paths:
        group = "all" if len(paths) == 1 else next((part for part in ("train", "test") if part in path.name), None)
        if group is None or group in tables:
            raise MargoError(f"{path}: expected one .amat file with train and one with test in its name")
        with open_file(path) as plain, reading(path, "a table of numbers"):
            rows = np.loadtxt(plain, ndmin=2)
        if rows.shape[1] < 2 or not np.isin(rows[:, -1], np.arange(10)).all():
            raise MargoError(f"{path}: expected lines of pixels and a digit, found {rows.shape[1]} columns")
        tables[group] = digits(path, group, rows[:, :-1], rows[:, -1].astype(np.int64))
    if len(tables) == 2 and tables["train"].x.shape[1] != tables["test"].x.shape[1]:
        raise MargoError(f"{paths[0]} and {paths[1].name} have samples of different widths")
    return tables


def read_cifar(folder) -> dict[str, Table]:
    """CIFAR-10's binary files: for each image a byte of its class and 3072 of its colours, here from 0 to 1."""
    lacks = [name for names in CIFAR.values() for name in names if not (Path(folder) / name).is_file()]
    refuse([f"{name} is not there" for name in lacks], str(folder))
    tables = {}
    for group, names in CIFAR.items():
        parts = []
        for name in names:
            path = Path(folder) / name
            with open_file(path) as plain, reading(path, "images of CIFAR-10"):
                size = size_of(plain)
                if not size or size % (PIXELS + 1):
                    raise MargoError(f"{size} bytes, expected images of {PIXELS + 1}")
                parts.append(np.frombuffer(plain.read(size), np.uint8).reshape(-1, PIXELS + 1))
                if (most := int(parts[-1][:, 0].max())) > 9:
                    raise MargoError(f"an image of class {most}, expected 0 to 9")
        rows = np.concatenate(parts)
        table = digits(folder, group, rows[:, 1:] / 255.0, rows[:, 0].astype(np.int64))
        tables[group] = Table(table.x, table.y, CIFAR_NAMES)
    return tables


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

"""Files appear whole or not at all: written beside their place, synced, then renamed."""

import hashlib
import json
import math
import os
import re
import stat
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path

from margo.errors import MargoError
from margo.formats.reading import check_inflation, fitting, json_value, open_file, reading, size_of

SUFFIX = ".margo-tmp"  # of files that are being written
LONGEST = 200  # bytes of a name; systems take 255, with what is put around it


def file_name(text: str) -> str:
    """``text``, a name from data, as the name of a file in one folder: what could lead elsewhere becomes %XX.

    >>> file_name("s1-a"), file_name("../../x"), file_name("*")
    ('s1-a', '%2E.%2F..%2Fx', '%2A')
    """
    name = re.sub(r'[%/\\\x00-\x1f\x7f:*?"<>|]|^\.', lambda match: f"%{ord(match[0]):02X}", text)
    if len(name.encode()) <= LONGEST:
        return name
    mark = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
    return f"{name.encode()[: LONGEST - len(mark) - 1].decode(errors='ignore')}-{mark}"


@contextmanager
def atomic(path, mode: str = "w"):
    """Open a temporary file in ``path``'s folder; on success sync it and rename it to ``path``."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", suffix=SUFFIX, dir=path.parent)
    try:
        with os.fdopen(handle, mode, **({} if "b" in mode else {"encoding": "utf-8", "newline": "\n"})) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def open_own(path):
    """``path`` open to be read and appended to, made where it is absent; a link, a pipe or a device, by which somebody
    else's file would be changed, is refused."""
    file = -1
    with suppress(OSError):  # what else is wrong with it open() says
        file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    if file >= 0 and stat.S_ISREG(os.fstat(file).st_mode):
        return os.fdopen(file, "a+", encoding="utf-8")
    if file >= 0:
        os.close(file)
    if os.path.lexists(path) and not stat.S_ISREG(os.lstat(path).st_mode):
        raise MargoError(f"{path}: is a link, a pipe or a folder, expected a file or none")
    return open(path, "a+", encoding="utf-8")


def write_text(path, text: str) -> None:
    with atomic(path) as file:
        file.write(text)


def write_json(path, value) -> None:
    write_text(path, json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def write_npz(path, meta: dict, arrays: dict) -> None:
    """Named arrays and a JSON ``meta``; the same content always gives the same bytes (no time stamps)."""
    import numpy as np  # here and below: --help of a step must not wait for it

    packed = {"meta": np.frombuffer(json.dumps(meta, sort_keys=True).encode(), np.uint8), **arrays}
    with atomic(path, "wb") as file:
        np.savez(file, allow_pickle=False, **packed)


def read_npz(path) -> tuple[dict, dict]:
    """``(meta, arrays)`` of a file of :func:`write_npz`; pickled content is refused."""
    import zipfile

    with open_file(path) as file, reading(path, "an archive of margo"):
        size = size_of(file)
        with zipfile.ZipFile(file) as archive:
            check_inflation(path, sum(member.file_size for member in archive.infolist()), size)
            arrays = {member.filename.removesuffix(".npy"): _array(archive, member) for member in archive.infolist()}
        return fitting(path, json_value(arrays.pop("meta").tobytes()), dict), arrays


def _array(archive, member):
    with archive.open(member) as file:
        check_array(file, member.file_size, member.filename)
    with archive.open(member) as file:
        return _npy().read_array(file, allow_pickle=False)


def check_array(file, size: int, name) -> None:
    """Refuse a ``.npy`` of ``size`` bytes whose header says something else than what it holds."""
    npy = _npy()
    header = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}[npy.read_magic(file)]
    shape, _, kind = header(file)
    if kind.hasobject or not kind.itemsize or math.prod(shape) * kind.itemsize != size - file.tell():
        raise ValueError(f"{name}: {kind} of shape {shape} in {size} bytes")


def _npy():
    from numpy.lib import format as npy

    return npy

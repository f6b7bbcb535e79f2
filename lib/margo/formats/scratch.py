"""What grows with a corpus and need not be in memory: arrays in unnamed files, which nobody else sees and which are
gone with the process that made them, however it ends.

Small ones never leave memory; where one goes depends on its size alone.
"""

import json
import os
import tempfile
from dataclasses import dataclass, fields, is_dataclass, replace

import numpy as np

MOST = 1 << 21  # bytes of an array that are kept in memory


class Scratch:
    """Room in ``folder`` (None: that of the system's temporary files)."""

    def __init__(self, folder=None, most: int = MOST):
        self.folder, self.most = folder, most

    def rows(self, columns: tuple = (), dtype=np.float64) -> "Rows":
        return Rows(self, columns, dtype)

    def parts(self, parts) -> "Parts":
        return Parts(self, parts)


class Rows:
    """An array [n, *columns] that grows at its end; read and written by slices, which are arrays of their own."""

    def __init__(self, scratch: Scratch, columns: tuple, dtype):
        self.scratch, self.dtype = scratch, np.dtype(dtype)
        self.held, self.file, self.count = np.empty((0, *columns), dtype), None, 0
        self.width = self.dtype.itemsize * int(np.prod(columns, dtype=int))

    @property
    def shape(self) -> tuple:
        return (self.count, *self.held.shape[1:])

    def __len__(self) -> int:
        return self.count

    def append(self, rows: np.ndarray) -> None:
        self[self.count : self.count + len(rows)] = rows

    def __getitem__(self, place: slice) -> np.ndarray:
        first, last, _ = place.indices(self.count)
        if self.file is None:
            return self.held[first:last]
        rows = np.empty((max(last - first, 0), *self.held.shape[1:]), self.dtype)
        view, done = memoryview(rows.reshape(-1).view(np.uint8)), 0
        while done < len(view):
            got = os.preadv(self.file.fileno(), [view[done:]], first * self.width + done)
            if not got:
                raise OSError(f"a scratch file ends after {first * self.width + done} bytes")
            done += got
        return rows

    def __setitem__(self, place: slice, rows: np.ndarray) -> None:
        """Write ``rows`` from ``place.start`` on, where there are rows already or behind the last one."""
        first, last = place.start, place.start + len(rows)
        if self.file is None and last * self.width > self.scratch.most:
            self.file = tempfile.TemporaryFile(dir=self.scratch.folder)  # noqa: SIM115 (open as long as this is)
            held, self.held = self.held[: self.count], self.held[:0].copy()
            self._write(0, held)
        if self.file is not None:
            self._write(first, rows)
        else:
            if last > len(self.held):
                self.held.resize((last, *self.held.shape[1:]), refcheck=False)
            self.held[first:last] = rows
        self.count = max(self.count, last)

    def _write(self, first: int, rows: np.ndarray) -> None:
        view, done = memoryview(np.ascontiguousarray(rows, self.dtype).reshape(-1).view(np.uint8)), 0
        while done < len(view):
            done += os.pwrite(self.file.fileno(), view[done:], first * self.width + done)

    def like(self, columns: tuple, dtype) -> "Rows":
        """Other rows in the same place."""
        return self.scratch.rows(columns, dtype)


@dataclass(frozen=True)
class _Put:
    """Where an array is, or (``text``) names as JSON."""

    first: int
    shape: tuple
    dtype: str
    text: bool = False


class Parts:
    """A list of dataclasses of arrays and names, or tuples of such, to be gone through again and again in its order."""

    def __init__(self, scratch: Scratch, parts):
        self.bytes = scratch.rows((), np.uint8)
        self.parts = [self._put(part) for part in parts]

    def __len__(self) -> int:
        return len(self.parts)

    def __iter__(self):
        return map(self._get, self.parts)

    def _put(self, part):
        if isinstance(part, np.ndarray):
            put = _Put(len(self.bytes), part.shape, part.dtype.str)
            self.bytes.append(np.ascontiguousarray(part).reshape(-1).view(np.uint8))
            return put
        if isinstance(part, tuple) and part and all(isinstance(each, str) for each in part):
            return replace(self._put(np.frombuffer(json.dumps(part).encode(), np.uint8)), text=True)
        return _each(self._put, part)

    def _get(self, part):
        if not isinstance(part, _Put):
            return _each(self._get, part)
        dtype = np.dtype(part.dtype)
        size = dtype.itemsize * int(np.prod(part.shape, dtype=int))
        found = self.bytes[part.first : part.first + size]
        return tuple(json.loads(found.tobytes())) if part.text else found.copy().view(dtype).reshape(part.shape)


def _each(function, part):
    """``part`` with what it is made of as ``function`` has it."""
    if is_dataclass(part):
        return replace(part, **{field.name: function(getattr(part, field.name)) for field in fields(part)})
    return tuple(map(function, part)) if isinstance(part, tuple) else part

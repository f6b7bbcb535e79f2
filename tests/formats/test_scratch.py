"""What is too large for memory goes to files, and comes back as it was."""

from dataclasses import dataclass

import numpy as np
import pytest

from margo.formats.scratch import Scratch


@dataclass(frozen=True)
class Part:
    names: tuple[str, ...]
    values: np.ndarray
    dropped: tuple[tuple[str, str], ...] = ()


@pytest.mark.parametrize("most", [10**9, 1000])
def test_rows_are_read_as_they_were_written(tmp_path, most):
    rows = Scratch(tmp_path, most).rows((3,), np.float32)
    rng = np.random.default_rng(0)
    whole = rng.normal(size=(0, 3)).astype(np.float32)
    for size in (5, 0, 70, 1, 200):
        more = rng.normal(size=(size, 3)).astype(np.float32)
        rows.append(more)
        whole = np.concatenate([whole, more])
    assert rows.shape == whole.shape and len(rows) == len(whole) and rows.dtype == whole.dtype
    for place in (slice(None), slice(3, 80), slice(270, 999), slice(4, 4)):
        assert np.array_equal(rows[place], whole[place])
    rows[10:] = whole[:4]
    whole[10:14] = whole[:4]
    assert np.array_equal(rows[:], whole)
    assert (rows.file is not None) == (most == 1000)
    assert not list(tmp_path.iterdir()), "nobody else sees the file, and nothing is left if this is killed"


def test_rows_may_be_written_from_behind(tmp_path):
    rows = Scratch(tmp_path, 100).rows((), np.int64)
    rows[999:] = np.array([7])
    rows[0:] = np.arange(500)
    assert len(rows) == 1000 and rows[:].tolist() == [*range(500), *[0] * 499, 7]


@pytest.mark.parametrize("most", [10**9, 50])
def test_parts_come_again_and_again(tmp_path, most):
    parts = [
        (Part((f"a{n}", "b", "ü"), np.arange(n, dtype=np.int32), (("x", "too short"),)), np.zeros((n, 2)))
        for n in range(5)
    ]
    kept = Scratch(tmp_path, most).parts(iter(parts))
    assert len(kept) == 5
    for _ in range(2):
        for (part, array), (own, zeros) in zip(kept, parts):
            assert (part.names, part.dropped) == (own.names, own.dropped)
            assert np.array_equal(part.values, own.values) and part.values.dtype == np.int32
            assert array.shape == zeros.shape and array.dtype == zeros.dtype
            part.values[:] = -1  # a copy: the next one to ask gets what was put

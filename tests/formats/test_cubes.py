"""Hyperspectral images: the same cube from every kind of file, and what is wrong with others."""

import io

import numpy as np
import pytest
import tifffile
from scipy.io import savemat

from margo.errors import MargoError
from margo.formats.cubes import indian_pines, read_array, read_cube


def test_npy_and_mat_hold_the_same(tmp_path):
    rng = np.random.default_rng(0)
    cube, labels = rng.integers(0, 9000, (5, 4, 7)).astype(np.int16), rng.integers(0, 3, (5, 4)).astype(np.uint8)
    np.save(tmp_path / "cube.npy", cube)
    np.save(tmp_path / "labels.npy", labels)
    savemat(tmp_path / "cube.mat", {"cube": cube, "note": np.ones((2, 2))})
    savemat(tmp_path / "labels.mat", {"gt": labels})
    for suffix in ("npy", "mat"):
        values, marks = read_cube(tmp_path / f"cube.{suffix}", tmp_path / f"labels.{suffix}")
        np.testing.assert_array_equal(values, cube)
        np.testing.assert_array_equal(marks, labels)


def test_bands_come_last_whatever_a_tiff_says(tmp_path):
    cube = np.arange(3 * 10 * 11, dtype=np.uint16).reshape(3, 10, 11)
    tifffile.imwrite(tmp_path / "cube.tif", cube, photometric="minisblack")
    np.save(tmp_path / "labels.npy", np.ones((10, 11), int))
    assert read_cube(tmp_path / "cube.tif", tmp_path / "labels.npy")[0].shape == (10, 11, 3)


@pytest.mark.parametrize("compression", [None, "zlib"])
def test_a_tiff_that_is_cut_off_or_declares_gigabytes_is_refused(compression, tmp_path):
    path = tmp_path / "cube.tif"
    cube = np.random.default_rng(0).integers(1, 9, (6, 40, 50)).astype(np.int16)
    tifffile.imwrite(path, cube, photometric="minisblack", compression=compression, metadata=None)
    raw = path.read_bytes()
    for part in (0.01, 0.3, 0.9):
        path.write_bytes(raw[: int(part * len(raw))])
        with pytest.raises(MargoError, match="cube.tif: "):
            read_array(path, 3)
    with tifffile.TiffFile(io.BytesIO(raw)) as image:
        places = [image.pages[0].tags[name].valueoffset for name in ("ImageLength", "ImageWidth")]
    spoilt = bytearray(raw)
    for place in places:
        spoilt[place : place + 2] = b"\xff\xff"
    path.write_bytes(spoilt)
    with pytest.raises(MargoError, match="cube.tif: declares .* bytes"):
        read_array(path, 3)


def test_faults_are_named(tmp_path):
    np.save(tmp_path / "cube.npy", np.ones((5, 4, 7)))
    np.save(tmp_path / "labels.npy", np.ones((4, 4), int))
    with pytest.raises(MargoError, match="5 x 4 pixels, its labels in .* are 4 x 4"):
        read_cube(tmp_path / "cube.npy", tmp_path / "labels.npy")
    with pytest.raises(MargoError, match="expected numbers in 2 dimensions"):
        read_cube(tmp_path / "cube.npy", tmp_path / "cube.npy")
    np.save(tmp_path / "labels.npy", np.array([[{}]]), allow_pickle=True)
    with pytest.raises(MargoError, match="cannot be read as an image"):
        read_cube(tmp_path / "cube.npy", tmp_path / "labels.npy")
    (tmp_path / "cube.png").write_bytes(b"")
    with pytest.raises(MargoError, match="expected .npy, .mat or .tif"):
        read_cube(tmp_path / "cube.png", tmp_path / "labels.npy")


def test_indian_pines():
    cube, labels = read_cube(*indian_pines())
    assert cube.shape == (145, 145, 200) and (labels > 0).sum() == 10249 and labels.max() == 16

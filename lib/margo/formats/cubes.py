"""Hyperspectral images: a cube ``[height, width, bands]`` and the labels ``[height, width]`` of its pixels.

Files are ``.npy``, ``.mat`` (of MATLAB 5 to 7.2) or ``.tif``; Indian Pines is in the package tensorly.
"""

import math
from io import BytesIO
from pathlib import Path

import numpy as np

from margo.errors import MargoError
from margo.formats.atomic import check_array
from margo.formats.reading import check_inflation, open_file, reading, size_of

MOST_CLASSES = 1000
PINES = "tensorly/datasets/data/Indian_pines_{}.npy"
# Names of the 16 classes of Indian Pines, in the order of their numbers from 1.
PINES_NAMES = (
    "alfalfa", "corn-notill", "corn-mintill", "corn", "grass-pasture", "grass-trees", "grass-pasture-mowed",
    "hay-windrowed", "oats", "soybean-notill", "soybean-mintill", "soybean-clean", "wheat", "woods", "buildings",
    "stone-steel",
)  # fmt: skip


def read_array(path, dimensions: int) -> np.ndarray:
    """The array of ``dimensions`` in a file; of several in a ``.mat`` the largest."""
    path = Path(path)
    with open_file(path) as plain, reading(path, "an image"):
        if path.suffix == ".npy":
            check_array(plain, size_of(plain), path.name)
            plain.seek(0)
            array = np.load(plain, allow_pickle=False)
        elif path.suffix == ".mat":
            from scipy.io import loadmat, whosmat

            check_inflation(path, sum(8 * math.prod(shape) for _, shape, _ in whosmat(plain)), size_of(plain))
            held = [each for each in loadmat(plain).values() if getattr(each, "ndim", 0) == dimensions]
            array = max((each for each in held if each.dtype.kind in "fiu"), key=np.size, default=np.empty(0))
        elif path.suffix in (".tif", ".tiff"):
            try:
                from tifffile import TiffFile
            except ImportError:
                raise MargoError("GeoTIFF files need tifffile: pip install 'margo-speech[geotiff]'") from None
            with TiffFile(BytesIO(plain.read())) as image:
                check_inflation(path, image.series[0].nbytes if image.series else 0, size_of(plain))
                array = image.asarray()
            if array.ndim == 3 and array.shape[0] < min(array.shape[1:]):  # bands come first in most of them
                array = array.transpose(1, 2, 0)
        else:
            raise MargoError("expected .npy, .mat or .tif")
        if array.ndim != dimensions or array.dtype.kind not in "fiu" or not array.size:
            raise MargoError(f"holds {array.dtype} {array.shape}, expected numbers in {dimensions} dimensions")
        return array


def read_cube(cube, labels) -> tuple[np.ndarray, np.ndarray]:
    """``(cube[H, W, B], labels[H, W])`` of two files; label 0 is none."""
    values, marks = read_array(cube, 3), read_array(labels, 2)
    if values.shape[:2] != marks.shape:
        raise MargoError(f"{cube}: {values.shape[0]} x {values.shape[1]} pixels, its labels in {labels} are "
                         f"{marks.shape[0]} x {marks.shape[1]}")  # fmt: skip
    finite = (np.abs(values) <= np.finfo(np.float32).max).all()
    if not finite or not np.isin(marks, np.arange(MOST_CLASSES + 1)).all():
        raise MargoError(f"{cube} and {labels}: expected finite values, and labels that are whole numbers from 0 to "
                         f"{MOST_CLASSES}")  # fmt: skip
    return values.astype(float), marks.astype(np.int64)


def indian_pines() -> tuple[Path, Path]:
    """Places of the cube and the labels in the package tensorly, whose code is not imported."""
    from importlib import metadata

    try:
        places = {str(file): Path(file.locate()) for file in metadata.files("tensorly") or ()}
        return places[PINES.format("corrected")], places[PINES.format("gt")]
    except (metadata.PackageNotFoundError, KeyError):
        raise MargoError("Indian Pines is in the package tensorly, which is not installed: run make install, or give "
                         "a cube with --corpus and its labels with --labels") from None  # fmt: skip

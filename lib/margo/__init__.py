"""Large-margin speech recognition, as recipes."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what type checkers see; it is loaded where it is used, below
    from margo.api import load, results, train

__all__ = ["load", "results", "train"]
__version__ = "0.1.0"

# Sums depend on the number of BLAS threads: one a process, set before anything imports numpy.
for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"


def _writable(folder: str) -> bool:
    import tempfile

    try:
        os.makedirs(folder, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _place_cache() -> None:
    """numba keeps what it compiles beside the code, else in the user's cache folder, and fails where neither can be
    written: then it is given a folder of the user's own among the temporary files, and they are told the first time."""
    import sys
    import tempfile

    beside = os.path.join(os.path.dirname(__file__), "search", "__pycache__")
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    if "NUMBA_CACHE_DIR" in os.environ:
        return
    if (Path(__file__).parent / "share").is_dir():  # installed from a wheel, which stays as it is
        if _writable(os.path.join(home, "margo")):
            os.environ["NUMBA_CACHE_DIR"] = os.path.join(home, "margo")
            return
    elif _writable(beside) or _writable(os.path.join(home, "numba")):
        return
    place = os.path.join(tempfile.gettempdir(), f"margo-{os.getuid()}")
    known = os.path.isdir(place)
    os.makedirs(place, mode=0o700, exist_ok=True)
    held = os.lstat(place)
    if held.st_uid != os.getuid() or held.st_mode & 0o022:  # somebody else's: compiled code is not taken from there
        known, place = False, tempfile.mkdtemp(prefix="margo-")
    os.environ["NUMBA_CACHE_DIR"] = place
    if not known:
        print(f"margo: {os.path.dirname(__file__)} and {home} cannot be written: compiled code is kept in {place} "
              "(NUMBA_CACHE_DIR names another place)", file=sys.stderr)  # fmt: skip


_place_cache()


def __getattr__(name: str) -> Any:  # what is offered to Python costs nothing where it is not used
    if name in __all__:
        from margo import api

        return getattr(api, name)
    raise AttributeError(f"module 'margo' has no attribute {name!r}")

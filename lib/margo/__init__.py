"""Large-margin speech recognition, as recipes."""

import os
from pathlib import Path

__version__ = "0.1.0"

# Sums depend on the number of BLAS threads: one a process, set before anything imports numpy.
for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"

if (Path(__file__).parent / "share").is_dir():  # installed from a wheel, which stays as it is: code is compiled to here
    _caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    os.environ.setdefault("NUMBA_CACHE_DIR", str(_caches / "margo"))


def __getattr__(name: str):  # what is offered to Python costs nothing where it is not used
    if name in ("load", "results", "train"):
        from margo import api

        return getattr(api, name)
    raise AttributeError(f"module 'margo' has no attribute {name!r}")

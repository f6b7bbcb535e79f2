"""Large-margin speech recognition, as recipes."""

import os

__version__ = "0.1.0"

# Sums depend on the number of BLAS threads: one a process, set before anything imports numpy.
for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"

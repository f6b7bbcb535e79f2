"""What steps do with folders: speech, tables of samples, kernels."""

import margo.runtime  # noqa: F401 (BLAS threads are set before anything imports numpy)

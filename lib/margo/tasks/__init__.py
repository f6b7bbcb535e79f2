"""What steps do with folders: speech, tables of samples, kernels."""

"""The cepstra of a voice with another vocal tract, from cepstra alone.

A warp of frequencies moves the log channels along the mel axis. Between their centres they are the cosine series of
the cepstra, so that what is heard at moved centres is linear in these, and in their derivatives.
"""

from dataclasses import fields
from functools import lru_cache

import numpy as np

from margo.signal.front_end import MfccOptions, options_of
from margo.signal.mfcc import centres, dct_matrix, mel, warped

PLAIN = {*(each.name for each in fields(MfccOptions)), "dimension"}  # what a record of features holds as they are made


def can_warp(record: dict) -> bool:
    """Whether features with this record are cepstra that :func:`warp_matrix` fits, and nothing else."""
    return {*record} == PLAIN and record["kind"] == "mfcc" and not record["cmvn_variance"]


def warped_features(x: np.ndarray, record: dict, warp: float) -> np.ndarray:
    """Features [T, D] as :func:`margo.signal.mfcc.mfcc` with ``warp`` would about make them of the same recording."""
    return x @ warp_matrix(options_of(record), warp)


@lru_cache(maxsize=16)
def warp_matrix(options: MfccOptions, warp: float) -> np.ndarray:
    """M [D, D] float32: rows of features times M have their frequencies :func:`margo.signal.mfcc.warped`; the log
    energy stays. With C the log channels' centres, C' where they lay before the warp and c = B(C)' m the cepstra:
    c' = B(C)' B(C') (B(C)' B(C))^-1 c."""
    middles = centres(options, options.sample_rate)
    step = mel(middles[1]) - mel(middles[0])
    before = (mel(warped(middles, 1 / warp, options.sample_rate / 2)) - mel(middles[0])) / step
    basis = dct_matrix(options)
    cepstra = (basis.T @ dct_matrix(options, before) / (basis**2).sum(axis=0)).T
    if options.energy != "0":
        cepstra[0], cepstra[:, 0] = 0.0, 0.0
        cepstra[0, 0] = 1.0
    order = np.r_[1 : len(cepstra), 0] if options.variant == "htk" else np.arange(len(cepstra))
    order = order if options.energy != "none" else order[order > 0]
    statics = cepstra[np.ix_(order, order)]
    return np.kron(np.eye(1 + options.deltas), statics).astype(np.float32)

"""What the audio and features behind a data folder's tables look like: the half of the validator that opens them.

Outcomes are listed in :mod:`margo.formats.datadir`, whose ``validate`` is the way in.
"""

from collections import Counter
from pathlib import Path

import numpy as np

from margo.errors import MargoError

OVERSHOOT = 0.5  # seconds a segment may end after its recording


def check_audio(data, sample_rate: int | None, faults) -> None:
    """Add the faults of every recording that is a file: header, length, rate, finite samples, segments inside it."""
    from margo.formats.audio import audio_info

    facts = {}  # recording -> what its header says; None if it has none
    for utterance in data:
        key = utterance.recording or utterance.name
        if utterance.audio is None or utterance.is_pipe or key in facts or not Path(utterance.audio).is_file():
            continue
        try:
            facts[key] = audio_info(utterance.audio)
        except MargoError as error:
            facts[key] = None
            faults.add("unreadable audio", f"{key}: {error}")
            continue
        if facts[key].samples == 0:
            faults.add("zero-length audio", f"{key}: {utterance.audio}")
        elif not _finite_audio(utterance.audio):
            faults.add("NaN or infinite audio", f"{key}: {utterance.audio}")
    rates = Counter(info.sample_rate for info in facts.values() if info is not None)
    expected = sample_rate if sample_rate is not None else max(rates, key=lambda rate: (rates[rate], rate), default=0)
    kind = "wrong sample rate" if sample_rate is not None else "mixed sample rates"
    for key in sorted(facts):
        if facts[key] is not None and facts[key].sample_rate != expected:
            faults.add(kind, f"{key}: {facts[key].sample_rate} Hz (expected {expected})")
    for utterance in data:
        info = facts.get(utterance.recording) if utterance.recording is not None else None
        if info is not None and info.samples:
            seconds = info.samples / info.sample_rate
            if max(utterance.start, (utterance.end or 0) - OVERSHOOT) >= seconds:
                end = "its end" if utterance.end is None else f"{utterance.end:g}"
                faults.add("segment outside its recording",
                           f"{utterance.name}: {utterance.start:g} to {end} of {seconds:g} s")  # fmt: skip


def _finite_audio(path: str) -> bool:
    """False if a floating-point file holds a NaN or an infinite sample; integer files cannot."""
    import soundfile

    try:
        with soundfile.SoundFile(path) as file:
            if file.subtype not in ("FLOAT", "DOUBLE"):
                return True
            return all(np.isfinite(block).all() for block in file.blocks(blocksize=1 << 20))
    except soundfile.LibsndfileError:
        return True  # a format of another decoder: integers


def check_feats(data, faults) -> None:
    """Add the faults of every feature matrix: readable, with frames, finite, of one dimension."""
    from kaldiio import load_mat

    dimensions: dict[str, int] = {}
    for utterance in data:
        if utterance.feats is None or "|" in utterance.feats:
            continue
        if not Path(utterance.feats.rpartition(":")[0] or utterance.feats).is_file():
            continue
        if _is_pickle(utterance.feats):
            faults.add("pickled features", f"{utterance.name}: {utterance.feats} is never loaded")
            continue
        try:
            matrix = np.asarray(load_mat(utterance.feats))
        except Exception as error:  # kaldiio raises whatever its parser meets
            faults.add("unreadable features", f"{utterance.name}: {utterance.feats} ({type(error).__name__}: {error})")
            continue
        if matrix.ndim != 2 or matrix.size == 0:
            faults.add("features without frames", f"{utterance.name}: shape {matrix.shape}")
            continue
        dimensions[utterance.name] = matrix.shape[1]
        if not np.isfinite(matrix).all():
            frame = int(np.flatnonzero(~np.isfinite(matrix).all(axis=1))[0])
            faults.add("NaN or infinite features", f"{utterance.name}: first at frame {frame}")
    expected = Counter(dimensions.values()).most_common(1)
    for name, dimension in dimensions.items():
        if dimension != expected[0][0]:
            faults.add("mixed feature dimensions", f"{name}: {dimension} (most have {expected[0][0]})")


def _is_pickle(feats: str) -> bool:
    """Whether the entry at ``path:offset`` is of the kinds kaldiio would unpickle, or may."""
    path, colon, offset = feats.rpartition(":")
    offset = offset.split("[")[0]
    with open(path if colon and offset.isdigit() else feats, "rb") as file:
        file.seek(int(offset) if colon and offset.isdigit() else 0)
        return file.read(3) in (b"PKL", b"NPY")

"""What the audio and features behind a data folder's tables look like: the half of the validator that opens them.

Outcomes are listed in :mod:`margo.formats.datadir`, whose ``validate`` is the way in.
"""

import os
from collections import Counter

import numpy as np

from margo.errors import MargoError
from margo.formats.reading import place_of, reading


def check_audio(data, sample_rate: int | None, faults) -> None:
    """Add the faults of every recording that is a file: header, length, rate, finite samples, segments inside it."""
    from margo.formats.audio import OVERSHOOT, audio_info

    facts = {}  # recording -> what its header says; None if it has none
    for utterance in data:
        key = utterance.recording or utterance.name
        if utterance.audio is None or utterance.is_pipe or key in facts or not os.path.isfile(utterance.audio):
            continue
        try:
            facts[key] = audio_info(utterance.audio)
            finite = facts[key].integer or _finite_audio(utterance.audio)
        except MargoError as error:
            facts[key] = None
            faults.add("unreadable audio", f"{key}: {error}")
            continue
        if facts[key].samples == 0:
            faults.add("zero-length audio", f"{key}: {utterance.audio}")
        elif not finite:
            faults.add("NaN or infinite audio", f"{key}: {utterance.audio}")
    rates = Counter(info.sample_rate for info in facts.values() if info is not None)
    expected = sample_rate if sample_rate is not None else max(rates, key=lambda rate: (rates[rate], rate), default=0)
    kind = "wrong sample rate" if sample_rate is not None else "mixed sample rates"
    for key in sorted(facts):
        if facts[key] is not None and facts[key].sample_rate != expected:
            faults.add(kind, f"{key}: {facts[key].sample_rate} Hz (expected {expected})")
    for utterance in data:
        info = facts.get(utterance.recording)
        if info is not None and info.samples:
            seconds = info.samples / info.sample_rate
            if max(utterance.start, (utterance.end or 0) - OVERSHOOT) >= seconds:
                end = "its end" if utterance.end is None else f"{utterance.end:g}"
                faults.add("segment outside its recording",
                           f"{utterance.name}: {utterance.start:g} to {end} of {seconds:g} s")  # fmt: skip


def _finite_audio(path: str) -> bool:
    """False if a floating-point file holds a NaN or an infinite sample."""
    import soundfile

    with reading(path, "audio"), soundfile.SoundFile(path) as file:
        return all(np.isfinite(block).all() for block in file.blocks(blocksize=1 << 20))


def check_feats(data, faults) -> None:
    """Add the faults of every feature matrix: readable, with frames, finite, of one dimension."""
    from margo.formats.features import read_matrix

    dimensions: dict[str, int] = {}
    for utterance in data:
        place = place_of(utterance.feats)
        if place is None or not os.path.isfile(place[0]):
            continue
        try:
            dimensions[utterance.name] = read_matrix(place).shape[1]
        except MargoError as error:
            faults.add("bad features", f"{utterance.name}: {error}".replace("\n ", ""))
    if dimensions:
        expected = Counter(dimensions.values()).most_common(1)[0][0]
        for name, dimension in dimensions.items():
            if dimension != expected:
                faults.add("mixed feature dimensions", f"{name}: {dimension} (most have {expected})")

"""A data folder to features, a chunk of utterances at a time."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from margo.errors import MargoError, refuse
from margo.formats import audio, features
from margo.formats.datadir import DataDir, Utterance
from margo.runtime.parallel import map_chunks
from margo.signal.cmvn import CmvnStats, accumulate, normalise
from margo.signal.front_end import MfccOptions, describe
from margo.signal.mfcc import check_options, checked_samples, cmvn_stats, finish_features, statics_of_many
from margo.tasks.speech import MOST_DROPPED

CHUNK = 50  # utterances that one worker does at a time, at most
BYTES = 1 << 26  # and of their audio, which is half an hour or so; a longer recording is a chunk of its own
RATE = 32_000  # bytes a second of a segment, of whatever rate and format
TOGETHER = 1 << 18  # samples of short recordings that go through the front end as one


@dataclass(frozen=True)
class Made:
    """What became of an utterance: features [T, D], or the reason why there are none."""

    name: str
    features: np.ndarray | None
    reason: str = ""


@dataclass(frozen=True)
class Front:
    """Everything a worker must know to make features."""

    options: MfccOptions
    sample_rate: int
    allow_pipes: bool
    channel: int | None = None  # the one to take of recordings with several
    speakers: dict[str, CmvnStats] | None = None  # the sums for ``cmvn = "speaker"``
    warps: dict[str, float] | None = None  # of speakers' frequencies


def features_of(data: DataDir, options: MfccOptions, allow_pipes: bool, where, channel: int | None = None, warps=None):
    """The record of the features of ``data``, and an iterator of what becomes of each utterance, in their order.

    A folder with ``feats.scp`` keeps the features it came with; else they are made of its audio, frequencies warped by
    the ``warps`` of speakers where these are given.
    """
    if warps is not None:
        lost = sorted({row.speaker for row in data} - warps.keys())
        refuse([f"no warp of {speaker}" for speaker in lost], f"{data.folder}: speakers without warp", most=10)
    if all(utterance.feats is not None for utterance in data):
        refuse(["they came ready-made"] * (warps is not None), f"{data.folder}: features whose frequencies stay")
        return _given(data, options)
    chunks = chunks_of(data.utterances)
    front = Front(options, sample_rate_of(data, options), allow_pipes, channel, warps=warps)
    check_options(options, front.sample_rate)
    if options.cmvn == "speaker":
        # Sums first, features in a second pass over the audio: nothing as large as the corpus is ever held.
        front = replace(front, speakers=_add(map_chunks(partial(speaker_stats, front), chunks, where)))
    made = (each for part in map_chunks(partial(make_features, front), chunks, where) for each in part)
    return describe(options, front.sample_rate), made


def chunks_of(utterances: tuple[Utterance, ...]) -> list[tuple[Utterance, ...]]:
    """Utterances that are worked on together, whose features are in memory together: fixed by the data alone."""
    chunks, first, held = [], 0, 0
    for number, utterance in enumerate(utterances):
        size = audio_bytes(utterance)
        if number > first and (number - first == CHUNK or held + size > BYTES):
            chunks.append(utterances[first:number])
            first, held = number, 0
        held += size
    return [*chunks, utterances[first:]] if utterances else []


def audio_bytes(utterance: Utterance) -> float:
    """About how much audio an utterance has; 0 of a pipe, and of what is not there, since nobody knows."""
    if utterance.end is not None:
        return (utterance.end - (utterance.start or 0)) * RATE
    try:
        return 0 if utterance.is_pipe else os.stat(utterance.audio).st_size
    except (OSError, ValueError):
        return 0


def check_losses(dropped: list[Made], data: DataDir) -> None:
    """Refuse to go on when more than a few utterances were dropped."""
    if len(dropped) > MOST_DROPPED * len(data):
        raise MargoError(f"{data.folder}: {len(dropped)} of {len(data)} utterances cannot be used, more than "
                         f"{MOST_DROPPED:.0%}; the first: {dropped[0].name}: {dropped[0].reason}")  # fmt: skip


def sample_rate_of(data: DataDir, options: MfccOptions) -> int:
    """The rate that is asked for, else that of the first recording that can be read."""
    if options.sample_rate:
        return options.sample_rate
    reason = "no recordings"
    for utterance in data:
        try:
            source = audio.run_pipe(utterance.audio) if utterance.is_pipe else utterance.audio
            return audio.audio_info(source, name=utterance.audio).sample_rate
        except MargoError as error:
            reason = str(error)
    raise MargoError(f"{data.folder}: none of {len(data)} recordings can be read; the last: {reason}")


def make_features(front: Front, chunk: tuple[Utterance, ...]) -> list[Made]:
    """Finished features of every utterance of a chunk."""
    made, options = [], front.options
    for group in _groups(front, chunk):
        good = [(utterance, samples) for utterance, samples in group if not isinstance(samples, MargoError)]
        finished = {}
        for (utterance, _), statics, whole in _statics(front, good):
            if options.cmvn == "none":
                finished[utterance.name] = whole
            else:
                stats = front.speakers[utterance.speaker] if front.speakers else None
                finished[utterance.name] = finish_features(statics, options, stats)
        made += [Made(utterance.name, finished.get(utterance.name), "" if utterance.name in finished else str(samples))
                 for utterance, samples in group]  # fmt: skip
    return made


def speaker_stats(front: Front, chunk: tuple[Utterance, ...]) -> dict[str, CmvnStats]:
    """Sums for normalisation of each speaker of a chunk; utterances that cannot be used are left out."""
    good = ([each for each in group if not isinstance(each[1], MargoError)] for group in _groups(front, chunk))
    return _add({utterance.speaker: cmvn_stats(statics, front.options)}
                for group in good for (utterance, _), statics, _ in _statics(front, group))  # fmt: skip


def _add(parts) -> dict[str, CmvnStats]:
    """Sums of each speaker, in the order of ``parts``."""
    sums: dict[str, CmvnStats] = {}
    for part in parts:
        for speaker, stats in part.items():
            sums[speaker] = sums[speaker] + stats if speaker in sums else stats
    return sums


def _statics(front: Front, group):
    """``((utterance, samples), static features, finished ones where nothing is normalised)`` of each of ``group``."""
    if not group:
        return
    warp = warp_of(front, group[0][0])
    statics, lengths = statics_of_many([samples for _, samples in group], front.sample_rate, front.options, warp)
    finished = finish_features(statics, front.options, None, lengths) if front.options.cmvn == "none" else statics
    for each, last, length in zip(group, np.cumsum(lengths), lengths):
        place = slice(last - length, last)
        yield each, statics[place], finished[place]


def warp_of(front: Front, utterance: Utterance) -> float:
    return front.warps[utterance.speaker] if front.warps else 1.0


def _groups(front: Front, chunk: tuple[Utterance, ...]):
    """Lists of ``(utterance, its samples or the error)``, as many as go together; a long one is alone, and those in a
    list have one warp."""
    group, held = [], 0
    for utterance, samples in _pieces(front, chunk):
        size = 0 if isinstance(samples, MargoError) else len(samples)
        if group and (held + size > TOGETHER or warp_of(front, utterance) != warp_of(front, group[0][0])):
            yield group
            group, held = [], 0
        group.append((utterance, samples))
        held += size
    if group:
        yield group


def _pieces(front: Front, chunk: tuple[Utterance, ...]):
    """``(utterance, samples or the error)`` of each; a recording of several segments in a row is read once."""
    recording, samples, rate = None, None, 0
    for utterance in chunk:
        try:
            if samples is None or utterance.audio != recording:
                recording, samples = utterance.audio, None
                samples, rate = audio.read_recording(recording, front.allow_pipes, rate=front.options.sample_rate,
                                                     channel=front.channel)  # fmt: skip
            if rate != front.sample_rate:
                raise MargoError(f"{recording}: sample rate is {rate} Hz, the folder's is {front.sample_rate} Hz "
                                 "(--sample-rate resamples)")  # fmt: skip
            piece = _piece(samples, rate, utterance)
        except MargoError as error:
            yield utterance, error
            continue
        try:
            yield utterance, checked_samples(piece, rate, front.options)
        except MargoError as error:  # of samples, which do not know where they came from
            yield utterance, MargoError(f"{recording}: {error}")


def _piece(samples: np.ndarray, rate: int, utterance: Utterance) -> np.ndarray:
    if utterance.start is None:
        return samples
    duration = None if utterance.end is None else utterance.end - utterance.start
    return audio.cut(samples, rate, utterance.start, duration, utterance.audio)


def _given(data: DataDir, options: MfccOptions) -> tuple[dict, Iterator[Made]]:
    """The record of ready-made features and the features, normalised where that is asked."""
    record = features.read_options(data.folder)
    stats, there = None, os.path.lexists(data.folder / "cmvn.scp")
    if there and options.cmvn == "none":
        raise MargoError(f"{data.folder}: has cmvn.scp, expected --cmvn speaker to apply it, or a folder without it")
    if options.cmvn == "speaker":
        if not there:
            raise MargoError(f"{data.folder}: --cmvn speaker of features that came ready-made needs cmvn.scp")
        stats = features.read_cmvn(data.folder)
        lost = sorted({row.speaker for row in data} - stats.keys())
        refuse([f"no statistics of {speaker}" for speaker in lost], str(data.folder / "cmvn.scp"), most=10)
    if options.cmvn != "none":
        record |= {key: getattr(options, key) for key in ("cmvn", "cmvn_mean", "cmvn_variance")}
    return record, _read_given(data, record["dimension"], options, stats)


def _read_given(data: DataDir, columns: int, options: MfccOptions, stats: dict | None) -> Iterator[Made]:
    places = features.read_scp(data.folder)
    for row in data:
        try:
            x = features.read_matrix(places[row.name], columns=columns)
            if options.cmvn != "none":
                own = stats[row.speaker] if stats else accumulate(x)
                if len(own.total) != columns:
                    raise MargoError(f"cmvn.scp: statistics of {len(own.total)} columns, expected {columns}")
                x = normalise(x, own, options.cmvn_mean, options.cmvn_variance)
            yield Made(row.name, x)
        except MargoError as error:
            yield Made(row.name, None, str(error))

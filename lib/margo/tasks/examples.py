"""Utterances that were got wrong, ready to be looked at and listened to."""

from io import BytesIO

import numpy as np

from margo.errors import MargoError
from margo.formats import datadir
from margo.formats.audio import cut, read_recording
from margo.score.align import align as align_words
from margo.signal.pictures import envelope, spectrogram
from margo.tasks.recognising import Recogniser

COLUMNS, ROWS = 500, 64  # of pictures, at most


def examples(model, data, wrong, most: int) -> tuple[list[dict], str]:
    """``(the first of wrong that can be shown, why others cannot)``; ``wrong``: name, words said, words heard.

    Each has ``name``, ``seconds``, ``rate``, ``wave``, ``spectrogram``, ``flac`` (its sound), ``said`` and ``heard``:
    words with times by the model's forced alignment, and whether they are ``right``; ``lead``: by how many nats what
    was heard fits better.
    """
    try:
        recogniser = Recogniser(model)
        utterances = {each.name: each for each in datadir.read(data)}
    except MargoError as error:
        return [], str(error)
    found, reason = [], ""
    for name, said, heard in wrong:
        if len(found) == most:
            break
        try:
            found.append({"name": name, **shown(recogniser, utterances[name], said, heard)})
        except (MargoError, KeyError) as error:
            reason = str(error)
    return found, reason


def shown(recogniser: Recogniser, utterance, said, heard) -> dict:
    import soundfile

    samples, rate = read_recording(utterance.audio, rate=recogniser.options.sample_rate)
    if utterance.start is not None:
        duration = None if utterance.end is None else utterance.end - utterance.start
        samples = cut(samples, rate, utterance.start, duration, utterance.audio)
    both = [recogniser.align((samples, rate), words) if words else {"words": [], "score": np.nan}
            for words in (said, heard)]  # fmt: skip
    pairs = align_words([said], [heard]).pairs(0)
    for side, aligned in enumerate(both):
        right = [pair[0] == pair[1] for pair in pairs if pair[side] is not None]
        aligned["words"] = [{**word, "right": fits} for word, fits in zip(aligned["words"], right)]
    sound = BytesIO()
    soundfile.write(sound, np.clip(samples, -32768, 32767).astype(np.int16), rate, format="FLAC")
    return {"seconds": len(samples) / rate, "rate": rate, "wave": envelope(samples, COLUMNS),
            "spectrogram": spectrogram(samples, rate, COLUMNS, ROWS), "flac": sound.getvalue(),
            "said": both[0]["words"], "heard": both[1]["words"],
            "lead": both[1]["score"] - both[0]["score"]}  # fmt: skip

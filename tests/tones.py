"""Words that are tones, and a model of them: small enough to be made by a test (synthetic)."""

import numpy as np

from margo.model.grammar import grammar
from margo.model.hmm import flat_start, whole_words
from margo.signal.front_end import MfccOptions, describe
from margo.signal.mfcc import compute_features

RATE = 8000


def tone(pitch, seconds=0.5, rng=None):
    """Samples float32 [N] of a tone with a little noise, scaled as 16-bit integers."""
    time = np.arange(int(RATE * seconds)) / RATE
    rng = np.random.default_rng(int(pitch)) if rng is None else rng
    return (3000 * np.sin(2 * np.pi * pitch * time) + 30 * rng.standard_normal(len(time))).astype(np.float32)


def quiet(seconds):
    """Noise in the last bits."""
    return np.round(np.random.default_rng(0).standard_normal(int(RATE * seconds))).astype(np.float32)


def tone_model(words, penalty=-5.0, silence=None):
    """Of ``words`` {name: pitches of its states}, and of ``silence``, where it has a name."""
    size = len(next(iter(words.values())))
    features = describe(MfccOptions(), RATE)
    hmms = flat_start(whole_words(list(words)), size, np.zeros(39), np.full(39, 4.0), silence=silence, silence_states=1,
                      meta={"features": features, "grammar": grammar("loop", penalty), "criterion": "ml"})  # fmt: skip
    for unit in hmms.units:
        if unit.name == silence:  # beside something loud, which energies are measured by
            x = compute_features(np.concatenate([tone(300), quiet(0.5)]), RATE, MfccOptions())
            hmms.pool.means[unit.states] = x[60:-10].mean(axis=0)
            continue
        for state, pitch in zip(unit.states, words[unit.name]):
            hmms.pool.means[state] = compute_features(tone(pitch), RATE, MfccOptions())[10:-10].mean(axis=0)
    return hmms

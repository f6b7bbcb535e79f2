"""Cepstra of another vocal tract: what is made of cepstra is near what the recording would give."""

import numpy as np
import pytest

from margo.signal.cepstral_warp import can_warp, warp_matrix, warped_features
from margo.signal.front_end import MfccOptions, describe, describe_given, dimension
from margo.signal.mfcc import checked_samples, finish_features, statics_of_many

RATE = 16000
FRONTS = [
    {},
    {"energy": "0"},
    {"energy": "none", "lifter": 0.0, "deltas": 1},
    {"variant": "kaldi", "energy": "0", "channels": 23, "low_freq": 20.0},
    {"variant": "kaldi", "use_power": True, "high_freq": -400.0},
]


def vowels(seconds=0.6):
    """Pulses through resonances that glide, on a little noise."""
    random = np.random.default_rng(3)
    time = np.arange(int(RATE * seconds)) / RATE
    sound = 0.003 * random.normal(size=len(time))
    for formant, swing in ((500, 150), (1500, 400), (2600, 200)):
        phase = 2 * np.pi * np.cumsum(formant + swing * np.sin(2 * np.pi * 2 * time)) / RATE
        sound += np.exp(-60 * (time % 0.009)) * np.sin(phase) * 600 / formant
    return sound / 8


def heard(options, warp):
    statics, _ = statics_of_many([checked_samples(vowels(), RATE, options)], RATE, options, warp)
    return finish_features(statics, options)


@pytest.mark.parametrize("front", FRONTS)
def test_a_warp_of_one_changes_nothing_and_warps_undo_each_other_in_small(front):
    options = MfccOptions(sample_rate=RATE, **front)
    one = warp_matrix(options, 1.0)
    assert one.shape == (dimension(options),) * 2
    np.testing.assert_allclose(one, np.eye(len(one)), atol=1e-6)
    there_and_back = warp_matrix(options, 1.02) @ warp_matrix(options, 1 / 1.02)
    columns = slice(0, 6)  # the last cepstra lose what the series leaves out
    np.testing.assert_allclose(there_and_back[columns, columns], np.eye(6), atol=0.02)


@pytest.mark.parametrize("front", FRONTS)
@pytest.mark.parametrize("warp", [0.92, 1.08])
def test_cepstra_are_warped_as_the_recording_would_be(front, warp):
    options = MfccOptions(sample_rate=RATE, **front)
    plain, true = heard(options, 1.0), heard(options, warp)
    made = warped_features(plain, describe(options, RATE), warp)

    def distance(a, b):
        return np.sqrt(((a - b) ** 2).mean())

    assert distance(made, true) < 0.6 * distance(plain, true)
    wrong = warped_features(plain, describe(options, RATE), 1 / warp)  # the mistake to make
    assert distance(wrong, true) > 1.3 * distance(plain, true)


def test_the_log_energy_stays():
    options = MfccOptions(sample_rate=RATE)
    plain = heard(options, 1.0)
    made = warped_features(plain, describe(options, RATE), 1.1)
    energies = [12, 25, 38]
    np.testing.assert_allclose(made[:, energies], plain[:, energies], rtol=1e-6)
    assert not np.allclose(made[:, 0], plain[:, 0], atol=0.1)


def test_what_cannot_be_warped_is_known():
    record = describe(MfccOptions(), RATE)
    assert can_warp(record)
    for other in ({"kind": "fbank"}, {"cmvn_variance": True}, {"vtln": "speaker"}):
        assert not can_warp({**record, **other})
    assert not can_warp(describe_given(39))

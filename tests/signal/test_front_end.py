"""Feature records: made, compared, turned back into options; bad options named."""

import json
import tomllib
from dataclasses import asdict, dataclass, replace

import pytest

from margo.errors import MargoError
from margo.signal.front_end import MfccOptions, describe, describe_given, options_of, plain_options, same_features


def test_record_survives_json_and_gives_the_options_back():
    options = replace(MfccOptions(), cmvn="speaker", channels=30)
    record = json.loads(json.dumps(describe(options, 8000)))
    assert record["dimension"] == 39 and record["sample_rate"] == 8000
    assert options_of(record) == replace(options, sample_rate=8000)
    same_features(record, describe(options, 8000))


@pytest.mark.parametrize("key, value", [("channels", 24), ("cmvn", "utterance"), ("preemphasis", 0.95)])
def test_a_difference_is_named_with_both_values(key, value):
    expected = describe(MfccOptions(), 16000)
    found = describe(replace(MfccOptions(), **{key: value}), 16000)
    message = f"test set were made otherwise.*: {key} is {value!r}, expected {expected[key]!r}"
    with pytest.raises(MargoError, match=message):
        same_features(expected, found, "features of the test set")


def test_all_differences_are_named_and_given_features_are_told_apart():
    with pytest.raises(MargoError, match="2 faults") as error:
        same_features(describe(MfccOptions(), 16000), describe(replace(MfccOptions(), lifter=0.0), 8000))
    assert "lifter" in str(error.value) and "sample_rate is 8000, expected 16000" in str(error.value)
    with pytest.raises(MargoError, match=r"ready-made, and no record \(mfcc.json\) tells"):
        same_features(describe(MfccOptions(), 16000), describe_given(39))
    with pytest.raises(MargoError, match="dimension is 26, expected 39"):
        same_features(describe_given(39), describe_given(26))
    with pytest.raises(MargoError, match="ready-made"):
        options_of(describe_given(39))


def test_a_bad_record_is_refused_with_every_fault():
    record = describe(MfccOptions(), 16000)
    del record["lifter"]
    record.update(channels="26", colour="red")
    with pytest.raises(MargoError, match="model.npz: 3 faults") as error:
        options_of(record, "model.npz")
    assert all(text in str(error.value) for text in ("lifter is missing", "unknown key colour", "channels is '26'"))
    with pytest.raises(MargoError, match="m: --variant is sphinx, expected one of htk, kaldi"):
        options_of({**describe(MfccOptions(), 16000), "variant": "sphinx"}, "m")


@pytest.mark.parametrize(
    "changes",
    [{"cepstra": 26}, {"cepstra": 0}, {"window_ms": 0.0}, {"preemphasis": 1.0}, {"energy": "e"}, {"deltas": 4},
     {"kind": "fbank", "energy": "0"}, {"delta_window": 0}, {"channels": 0}, {"silence_floor_db": 0.0}],
)  # fmt: skip
def test_bad_options_are_refused(changes):
    with pytest.raises(ValueError, match="|".join(changes).replace("_", "-")):
        replace(MfccOptions(), **changes)


def test_every_fault_is_told_at_once():
    with pytest.raises(ValueError, match="variant.*window-ms"):
        MfccOptions(variant="x", window_ms=-1.0)


def test_options_of_a_subclass():
    @dataclass(frozen=True)
    class More(MfccOptions):
        out: str = ""

    assert asdict(plain_options(More(out="x", channels=20))) == asdict(MfccOptions(channels=20))


def test_the_configuration_file_states_the_defaults(root):
    table = tomllib.loads((root / "conf" / "mfcc.toml").read_text())["make_mfcc"]
    assert MfccOptions(**table) == MfccOptions()

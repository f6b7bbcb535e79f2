"""What the front end can be asked for, and how two sets of features are told apart."""

from dataclasses import asdict, dataclass, fields

from margo.errors import MargoError, refuse
from margo.knobs import Knobs, knob, typed


@dataclass(frozen=True)
class MfccOptions(Knobs):
    """Front end; the defaults are HTK's MFCC_E_D_A with energy normalisation.

    ``variant`` decides what is a convention rather than a knob:

    ==================  ==========================================  ==========================================
    convention          htk                                         kaldi
    ==================  ==========================================  ==========================================
    window              Hamming                                     Povey (Hann to the power 0.85)
    floor of channels   1.0 (of 16-bit samples)                     float32 epsilon
    zeroth cepstrum     scaled by sqrt(2 / channels)                scaled by sqrt(1 / channels)
    energy or c0        after the cepstra                           before the cepstra
    normalisation       cepstra and c0, not the log energy          every column
    second deltas       deltas of deltas, edges repeated each time  edges of the statics repeated once
    ==================  ==========================================  ==========================================
    """

    GROUP = "front end"
    variant: str = knob("htk", "whose conventions hold", ("htk", "kaldi"))
    kind: str = knob("mfcc", "cepstra, log channels, or channels", ("mfcc", "fbank", "melspec"))
    sample_rate: int = knob(0, "rate to resample to; 0: the data's own", unit="Hz", least=0)
    window_ms: float = knob(25.0, "length of a frame", unit="ms", above=0)
    shift_ms: float = knob(10.0, "from frame to frame", unit="ms", above=0)
    preemphasis: float = knob(0.97, "weight of the sample before", least=0, below=1)
    zero_mean: bool = knob(False, "subtract each frame's mean")
    channels: int = knob(26, "triangles of the mel filter bank", least=1)
    low_freq: float = knob(0.0, "lower edge of the filter bank", unit="Hz", least=0)
    high_freq: float = knob(0.0, "upper edge; 0: half the sample rate, negative: that much below it", unit="Hz")
    use_power: bool = knob(False, "power spectrum instead of magnitudes")
    cepstra: int = knob(12, "cepstra beside the zeroth", needs={"kind": ("mfcc",)})
    lifter: float = knob(22.0, "liftering of cepstra; 0: none", least=0, needs={"kind": ("mfcc",)})
    energy: str = knob("E", "column beside the cepstra: log energy, zeroth cepstrum, none", ("E", "0", "none"))
    raw_energy: bool = knob(True, "energy of the samples before pre-emphasis and window", needs={"energy": ("E",)})
    normalise_energy: bool = knob(True, "log energy as 1 - energy_scale (maximum of the utterance - E)",
                                  needs={"energy": ("E",)})  # fmt: skip
    energy_scale: float = knob(0.1, "slope of normalised energy", needs={"normalise_energy": True})
    silence_floor_db: float = knob(50.0, "normalised energy is floored this far under the utterance's maximum",
                                   unit="dB", above=0, needs={"normalise_energy": True})  # fmt: skip
    deltas: int = knob(2, "derivatives beside the statics: 1 deltas, 2 accelerations too", least=0, most=3)
    delta_window: int = knob(2, "frames to each side that a derivative sees", least=1, needs={"deltas": True})
    cmvn: str = knob("none", "normalise statics over", ("none", "utterance", "speaker"))
    cmvn_mean: bool = knob(True, "normalise means", needs={"cmvn": ("utterance", "speaker")})
    cmvn_variance: bool = knob(False, "normalise variances", needs={"cmvn": ("utterance", "speaker")})

    def faults(self) -> list[str]:
        faults = super().faults()
        if self.kind == "mfcc" and not 1 <= self.cepstra < self.channels:
            faults.append(f"--cepstra is {self.cepstra}, expected 1 to channels - 1 = {self.channels - 1}")
        if self.kind != "mfcc" and self.energy == "0":
            faults.append(f"--energy is 0, expected E or none for {self.kind}")
        return faults


def plain_options(options: MfccOptions) -> MfccOptions:
    """The front end's options alone, of an instance of a class that adds others."""
    return MfccOptions(**{each.name: getattr(options, each.name) for each in fields(MfccOptions)})


def static_dimension(options: MfccOptions) -> int:
    """Columns before deltas."""
    return (options.cepstra if options.kind == "mfcc" else options.channels) + (options.energy != "none")


def dimension(options: MfccOptions) -> int:
    """Columns of the finished features D."""
    return static_dimension(options) * (1 + options.deltas)


def describe(options: MfccOptions, sample_rate: int) -> dict:
    """Canonical record kept with features and models: every option, the true sample rate and the dimension."""
    return {**asdict(plain_options(options)), "sample_rate": int(sample_rate), "dimension": dimension(options)}


def describe_given(columns: int) -> dict:
    """Record of features that came ready-made: only their dimension is known."""
    return {"variant": "given", "dimension": int(columns)}


MAPPED = ("vtln", "fmllr")  # keys that are added where each speaker's features are mapped by what was found of them


def unmapped(record: dict) -> dict:
    """A record without what was done for each speaker."""
    return {key: value for key, value in record.items() if key not in MAPPED}


def options_of(record: dict, source: str = "feature record") -> MfccOptions:
    """The options that a record of :func:`describe` was made with; ``source`` names its file in messages."""
    if record.get("variant") == "given":
        raise MargoError(f"{source}: these features were given ready-made; how to compute them is not known")
    if mapped := [key for key in MAPPED if key in record]:
        raise MargoError(f"{source}: features mapped for each speaker ({', '.join(mapped)}), which recordings alone "
                         "do not give")  # fmt: skip
    types = {each.name: each.type for each in fields(MfccOptions)} | {"dimension": int}
    values, faults = {}, [f"{key} is missing" for key in types if key not in record]
    for key, value in record.items():
        try:
            values[key] = typed(types[key], value)
        except KeyError:
            faults.append(f"unknown key {key}")
        except ValueError as error:
            faults.append(f"{key} {error}")
    refuse(faults, source)
    values.pop("dimension")
    try:
        return MfccOptions(**values)
    except ValueError as error:
        raise MargoError(f"{source}: {error}") from None


def same_features(expected: dict, given: dict, where: str = "features") -> None:
    """Raise MargoError naming every key in which two records of :func:`describe` differ, with both values; of
    features through another transform, or ready-made ones for a model of others, what they are."""
    through, wanted = (f"transform {each['lda']}" if "lda" in each else "no transform" for each in (given, expected))
    if through != wanted:
        raise MargoError(f"{where} have gone through {through} (transform_features), expected {wanted}")
    if given.get("variant") == "given" != expected.get("variant"):
        raise MargoError(f"{where} came ready-made, and no record (mfcc.json) tells that they are what the model "
                         "expects: make them with make_mfcc, or put the mfcc.json of such features beside them")
    faults = [
        f"{key} is {given.get(key, 'absent')!r}, expected {expected.get(key, 'absent')!r}"
        for key in sorted(expected.keys() | given.keys())
        if expected.get(key, "absent") != given.get(key, "absent")
    ]
    refuse(faults, f"{where} were made otherwise than the model expects")

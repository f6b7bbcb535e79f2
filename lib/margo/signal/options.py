"""What the front end can be asked for, and how two sets of features are told apart. Standard library only."""

from dataclasses import asdict, dataclass, field, fields

from margo.errors import MargoError, refuse

CHOICES = {
    "variant": ("htk", "kaldi"),
    "kind": ("mfcc", "fbank", "melspec"),
    "energy": ("E", "0", "none"),
    "cmvn": ("none", "utterance", "speaker"),
}


def knob(default, help: str, choices=None):
    return field(default=default, kw_only=True, metadata={"help": help, "choices": choices})


@dataclass(frozen=True)
class MfccOptions:
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

    variant: str = knob("htk", "whose conventions hold", CHOICES["variant"])
    kind: str = knob("mfcc", "cepstra, log channels, or channels", CHOICES["kind"])
    sample_rate: int = knob(0, "resample to this many Hz; 0: the data's own rate")
    window_ms: float = knob(25.0, "length of a frame in ms")
    shift_ms: float = knob(10.0, "from frame to frame in ms")
    preemphasis: float = knob(0.97, "weight of the sample before")
    zero_mean: bool = knob(False, "subtract each frame's mean")
    channels: int = knob(26, "triangles of the mel filter bank")
    low_freq: float = knob(0.0, "lower edge of the filter bank in Hz")
    high_freq: float = knob(0.0, "upper edge in Hz; 0: half the sample rate, negative: that much below it")
    use_power: bool = knob(False, "power spectrum instead of magnitudes")
    cepstra: int = knob(12, "cepstra beside the zeroth")
    lifter: float = knob(22.0, "liftering of cepstra; 0: none")
    energy: str = knob("E", "column beside the cepstra: log energy, zeroth cepstrum, none", CHOICES["energy"])
    raw_energy: bool = knob(True, "energy of the samples before pre-emphasis and window")
    normalise_energy: bool = knob(True, "log energy as 1 - energy_scale (maximum of the utterance - E)")
    energy_scale: float = knob(0.1, "slope of normalised energy")
    silence_floor_db: float = knob(50.0, "normalised energy is floored this far under the utterance's maximum")
    deltas: int = knob(2, "derivatives beside the statics: 1 deltas, 2 accelerations too")
    delta_window: int = knob(2, "frames to each side that a derivative sees")
    cmvn: str = knob("none", "normalise statics over", CHOICES["cmvn"])
    cmvn_mean: bool = knob(True, "normalise means")
    cmvn_variance: bool = knob(False, "normalise variances")

    def __post_init__(self) -> None:
        faults = _faults(self)
        if faults:
            raise ValueError("; ".join(faults))


def _faults(o: MfccOptions) -> list[str]:
    limits = [
        *((name, getattr(o, name) in allowed, f"one of {', '.join(allowed)}") for name, allowed in CHOICES.items()),
        ("sample_rate", o.sample_rate >= 0, "0 or more"),
        ("window_ms", o.window_ms > 0, "more than 0"),
        ("shift_ms", o.shift_ms > 0, "more than 0"),
        ("preemphasis", 0 <= o.preemphasis < 1, "at least 0 and below 1"),
        ("channels", o.channels >= 1, "1 or more"),
        ("cepstra", o.kind != "mfcc" or 1 <= o.cepstra < o.channels, f"1 to channels - 1 = {o.channels - 1}"),
        ("low_freq", o.low_freq >= 0, "0 or more"),
        ("lifter", o.lifter >= 0, "0 or more"),
        ("energy", o.kind == "mfcc" or o.energy != "0", f"E or none for {o.kind}"),
        ("silence_floor_db", o.silence_floor_db > 0, "more than 0"),
        ("deltas", 0 <= o.deltas <= 3, "0 to 3"),
        ("delta_window", o.delta_window >= 1, "1 or more"),
    ]
    return [f"{name} is {getattr(o, name)!r}, expected {want}" for name, good, want in limits if not good]


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


def options_of(record: dict, source: str = "feature record") -> MfccOptions:
    """The options that a record of :func:`describe` was made with; ``source`` names its file in messages."""
    if record.get("variant") == "given":
        raise MargoError(f"{source}: these features were given ready-made; how to compute them is not known")
    types = {each.name: each.type for each in fields(MfccOptions)} | {"dimension": int}
    faults = [f"{key} is missing" for key in types if key not in record]
    faults += [f"unknown key {key}" for key in record if key not in types]
    faults += [
        f"{key} is {value!r}, expected a value of type {types[key].__name__}"
        for key, value in record.items()
        if key in types and type(value) is not types[key] and not (types[key] is float and type(value) is int)
    ]
    refuse(faults, source)
    try:
        return MfccOptions(**{key: types[key](value) for key, value in record.items() if key != "dimension"})
    except ValueError as error:
        raise MargoError(f"{source}: {error}") from None


def same_features(expected: dict, found: dict, where: str = "features") -> None:
    """Raise MargoError naming every key in which two records of :func:`describe` differ, with both values."""
    faults = [
        f"{key} is {found.get(key, 'absent')!r}, expected {expected.get(key, 'absent')!r}"
        for key in sorted(expected.keys() | found.keys())
        if expected.get(key, "absent") != found.get(key, "absent")
    ]
    refuse(faults, f"{where} were made otherwise than the model expects")

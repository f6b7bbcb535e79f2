"""What the front end can be asked for, and how two sets of features are told apart. Standard library only."""

from dataclasses import asdict, dataclass, fields, replace

from margo.errors import MargoError, refuse

CHOICES = {
    "variant": ("htk", "kaldi"),
    "kind": ("mfcc", "fbank", "melspec"),
    "energy": ("E", "0", "none"),
    "cmvn": ("none", "utterance", "speaker"),
}


@dataclass(frozen=True)
class MfccOptions:
    """Front end, HTK's defaults with MFCC_E_D_A and energy normalisation. Frequencies in Hz, times in milliseconds.

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

    variant: str = "htk"
    kind: str = "mfcc"  # mfcc; fbank: log channels; melspec: channels
    sample_rate: int = 0  # 0: the data's own; else audio is resampled to it
    window_ms: float = 25.0
    shift_ms: float = 10.0
    preemphasis: float = 0.97
    zero_mean: bool = False  # subtract each window's mean first
    channels: int = 26
    low_freq: float = 0.0
    high_freq: float = 0.0  # 0: half the sample rate; negative: that much below it
    use_power: bool = False  # power spectrum rather than magnitudes
    cepstra: int = 12  # c1 ... c12
    lifter: float = 22.0  # 0: none
    energy: str = "E"  # E: log energy, 0: zeroth cepstrum, none
    raw_energy: bool = True  # energy before pre-emphasis and window
    normalise_energy: bool = True  # 1 - energy_scale (max - E), per utterance
    energy_scale: float = 0.1
    silence_floor_db: float = 50.0  # normalised energy is floored this far under the utterance's maximum
    deltas: int = 2  # 0: statics, 1: + deltas, 2: + accelerations
    delta_window: int = 2
    cmvn: str = "none"  # normalisation of the statics: none, utterance, speaker
    cmvn_mean: bool = True
    cmvn_variance: bool = False

    def __post_init__(self) -> None:
        refuse(_faults(self), "feature options")


def _faults(o: MfccOptions) -> list[str]:
    faults = [
        f"{name} is {getattr(o, name)!r}, expected one of {', '.join(allowed)}"
        for name, allowed in CHOICES.items()
        if getattr(o, name) not in allowed
    ]
    limits = [
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
    return faults + [f"{name} is {getattr(o, name)!r}, expected {want}" for name, good, want in limits if not good]


KALDI = MfccOptions(
    variant="kaldi", zero_mean=True, channels=23, low_freq=20.0, use_power=True, normalise_energy=False, deltas=0
)


def from_dict(table: dict, source: str = "feature options") -> MfccOptions:
    """Options of a parsed TOML or JSON ``table``; keys it lacks have the default of its ``variant``.

    ``source`` names the file in messages. Whole numbers are accepted for real ones, nothing else is converted.
    """
    types = {field.name: field.type for field in fields(MfccOptions)}
    faults = [f"unknown key {key}" for key in table if key not in types]
    values = {}
    for key in table.keys() & types.keys():
        value, expected = table[key], types[key]
        if expected is float and type(value) is int:
            value = float(value)
        if type(value) is not expected:
            faults.append(f"{key} is {value!r}, expected a value of type {expected.__name__}")
        values[key] = value
    refuse(sorted(faults), source)
    try:
        return replace(KALDI if values.get("variant") == "kaldi" else MfccOptions(), **values)
    except MargoError as error:
        raise MargoError(f"{source}: {error}") from None


def static_dimension(options: MfccOptions) -> int:
    """Columns before deltas."""
    return (options.cepstra if options.kind == "mfcc" else options.channels) + (options.energy != "none")


def dimension(options: MfccOptions) -> int:
    """Columns of the finished features D."""
    return static_dimension(options) * (1 + options.deltas)


def describe(options: MfccOptions, sample_rate: int) -> dict:
    """Canonical record kept with features and models: every option, the true sample rate and the dimension."""
    return {**asdict(options), "sample_rate": int(sample_rate), "dimension": dimension(options)}


def describe_given(columns: int) -> dict:
    """Record of features that came ready-made: only their dimension is known."""
    return {"variant": "given", "dimension": int(columns)}


def options_of(record: dict, source: str = "feature record") -> MfccOptions:
    """The options that a record of :func:`describe` was made with."""
    if record.get("variant") == "given":
        raise MargoError(f"{source}: these features were given ready-made, how to compute them is not known")
    return from_dict({key: value for key, value in record.items() if key != "dimension"}, source)


def same_features(expected: dict, found: dict, where: str = "features") -> None:
    """Raise MargoError naming every key in which two records of :func:`describe` differ, with both values."""
    faults = [
        f"{key} is {found.get(key, 'absent')!r}, expected {expected.get(key, 'absent')!r}"
        for key in sorted(expected.keys() | found.keys())
        if expected.get(key, "absent") != found.get(key, "absent")
    ]
    refuse(faults, f"{where} were made otherwise than the model expects")

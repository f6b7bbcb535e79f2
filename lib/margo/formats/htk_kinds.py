"""HTK's parameter kinds and HCopy's configuration, to and from the record of the front end.

``MFCC_E_D_A`` names a kind of features and qualifiers of it; the rest of what makes features is in HCopy's
configuration file, whose keys and defaults (HTK 3.4.1) :data:`KEYS` lists.
"""

import re

from margo.errors import MargoError, refuse
from margo.formats.atomic import write_text
from margo.formats.reading import MOST, read_lines, read_text
from margo.knobs import brief, real, whole
from margo.signal.front_end import MfccOptions, options_of

BASES = ("WAVEFORM", "LPC", "LPREFC", "LPCEPSTRA", "LPDELCEP", "IREFC", "MFCC", "FBANK", "MELSPEC", "USER", "DISCRETE",
         "PLP")  # fmt: skip
QUALIFIERS = {"E": 0o100, "N": 0o200, "D": 0o400, "A": 0o1000, "C": 0o2000, "Z": 0o4000, "K": 0o10000, "0": 0o20000,
              "V": 0o40000, "T": 0o100000}  # fmt: skip
STORAGE = {"C", "K"}  # compressed, with a checksum: ways to write the same values
COMPUTED = {"MFCC": "mfcc", "FBANK": "fbank", "MELSPEC": "melspec"}
KIND = re.compile(rf"<({'|'.join(BASES)})((?:_[{''.join(QUALIFIERS)}])*)>")
TRUTHS = {"T": True, "TRUE": True, "F": False, "FALSE": False}
# HCopy's key: option of the front end (None: not one of its), HTK's default, value in the option's unit.
KEYS = {
    "WINDOWSIZE": ("window_ms", 256_000.0, 1e-4),
    "TARGETRATE": ("shift_ms", None, 1e-4),
    "PREEMCOEF": ("preemphasis", 0.97, 1),
    "ZMEANSOURCE": ("zero_mean", False, None),
    "NUMCHANS": ("channels", 20, 1),
    "LOFREQ": ("low_freq", -1.0, 1),
    "HIFREQ": ("high_freq", -1.0, 1),
    "USEPOWER": ("use_power", False, None),
    "NUMCEPS": ("cepstra", 12, 1),
    "CEPLIFTER": ("lifter", 22, 1),
    "RAWENERGY": ("raw_energy", True, None),
    "ENORMALISE": ("normalise_energy", True, None),
    "ESCALE": ("energy_scale", 0.1, 1),
    "SILFLOOR": ("silence_floor_db", 50.0, 1),
    "DELTAWINDOW": ("delta_window", 2, 1),
}
# Keys that may have one value only here, and those that change nothing in the values.
FIXED = {"USEHAMMING": True, "SIMPLEDIFFS": False, "SOURCEKIND": "WAVEFORM", "ADDDITHER": 0.0, "WARPFREQ": 1.0}
INDIFFERENT = {"SOURCEFORMAT", "SOURCERATE", "TARGETKIND", "TARGETFORMAT", "SAVECOMPRESSED", "SAVEWITHCRC",
               "ACCWINDOW", "NATURALREADORDER", "NATURALWRITEORDER", "WARPLCUTOFF", "WARPUCUTOFF", "TRACE"}  # fmt: skip


def kind_of_code(code: int) -> str:
    """``MFCC_E_D_A`` of the code in a parameter file's header, without what only says how it is stored."""
    code &= 0xFFFF | 0o100000
    base = code & 0o77
    if base >= len(BASES):
        raise MargoError(f"parameter kind {code:#o}: no kind has the number {base}")
    return "_".join([BASES[base], *(name for name, bit in QUALIFIERS.items() if code & bit and name not in STORAGE)])


def kinds_told(path) -> set[str]:
    """The parameter kinds that a file of model definitions names."""
    return {same_kind(base + more) for base, more in KIND.findall(read_text(path).upper())}


def same_kind(kind: str) -> str:
    """One spelling of a kind: its qualifiers in HTK's order, without those that only say how it is stored."""
    base, *given = kind.upper().split("_")
    return "_".join([base, *(name for name in QUALIFIERS if name in given and name not in STORAGE)])


def kind_of(record: dict) -> str | None:
    """The kind of features with ``record``; None where HTK has no name for them."""
    if record.get("variant") != "htk":
        return None
    options = options_of(record)
    plain_mean = options.cmvn == "utterance" and options.cmvn_mean and not options.cmvn_variance
    if options.cmvn != "none" and not plain_mean:
        return None
    base = next(name for name, kind in COMPUTED.items() if kind == options.kind)
    given = [options.energy] * (options.energy != "none") + ["D", "A", "T"][: options.deltas] + ["Z"] * plain_mean
    return same_kind("_".join([base, *given]))


def read_hcopy(path) -> tuple[str, MfccOptions]:
    """``(parameter kind, front end)`` that a configuration file of HCopy asks for; all that cannot be done is named."""
    values, faults = {}, []
    for number, line in read_lines(path):
        text = line.partition("#")[0].strip()
        key, equals, value = (part.strip() for part in text.partition("="))
        key = key.rpartition(":")[2].strip().upper()  # HPARM: KEY
        if text and not (key and equals and value):
            faults.append(f"line {number}: {brief(text)}, expected KEY = value")
        elif text and key not in KEYS.keys() | FIXED.keys() | INDIFFERENT:
            faults.append(f"line {number}: {key[:60]} is not understood")
        elif text:
            values[key] = TRUTHS.get(value.upper(), value)
    kind = same_kind(str(values.get("TARGETKIND", "")))
    faults += _kind_faults(kind, str(values.get("TARGETKIND", "")))
    for key, wanted in FIXED.items():
        found = values.get(key, wanted)
        if isinstance(wanted, float):
            found = _real(key, found, faults)
        if found != wanted:
            faults.append(f"{key} is {values[key]}, expected {wanted}")
    options = {name: _setting(key, values, faults) for key, (name, _, _) in KEYS.items()}
    if "A" in kind.split("_") and _real("ACCWINDOW", values.get("ACCWINDOW", 2), faults) != options["delta_window"]:
        faults.append(f"ACCWINDOW is {values.get('ACCWINDOW', 2)}, expected DELTAWINDOW's {options['delta_window']}")
    period = _real("SOURCERATE", values.get("SOURCERATE", 0), faults)  # 100 ns
    faults += [f"SOURCERATE is {period:g}, expected 1 to 1e7"] * ("SOURCERATE" in values and not 1 <= period <= 1e7)
    refuse(faults, str(path), MOST)
    base, *given = kind.split("_")
    options |= {key: max(options[key], 0.0) for key in ("low_freq", "high_freq")}  # -1: no edge
    rate = round(1e7 / period) if period else 0
    try:
        return kind, MfccOptions(
            kind=COMPUTED[base], sample_rate=rate, energy=next((name for name in given if name in "E0"), "none"),
            deltas=sum(name in "DAT" for name in given), cmvn="utterance" if "Z" in given else "none", **options,
        )  # fmt: skip
    except ValueError as error:
        raise MargoError(f"{path}: {error}") from None


def _kind_faults(kind: str, told: str) -> list[str]:
    base, *given = kind.split("_")
    unknown = {*told.upper().split("_")[1:]} - QUALIFIERS.keys()
    if base not in COMPUTED:
        return [f"TARGETKIND is {kind or 'missing'}, expected {', '.join(COMPUTED)} with qualifiers"]
    faults = [f"TARGETKIND {kind}: _{name} cannot be made here" for name in given if name in "NV"]
    faults += [f"TARGETKIND {told[:60]}: _{name[:60]} is no qualifier" for name in sorted(unknown)]
    if [name for name in given if name in "DAT"] not in (["D", "A", "T"][:order] for order in range(4)):
        faults.append(f"TARGETKIND {kind}: derivatives without those they are made of")
    if {"E", "0"} <= {*given}:
        faults.append(f"TARGETKIND {kind}: energy and the zeroth cepstrum at once cannot be made here")
    return faults


def _real(key: str, value, faults: list[str], kind=real):
    try:
        return kind(str(value))
    except ValueError as error:
        faults.append(f"{key} {error}")
        return kind("0")


def _setting(key: str, values: dict, faults: list[str]):
    """The value of an option from the ``key`` it has in the file, or from HTK's default."""
    name, default, factor = KEYS[key]
    value = values.get(key, default)
    if factor is None:
        if not isinstance(value, bool):
            faults.append(f"{key} is {value}, expected T or F")
        return bool(value)
    if value is None:
        faults.append(f"no {key}")
        return 10.0
    if name in ("channels", "cepstra", "delta_window"):
        return _real(key, value, faults, whole)
    return round(_real(key, value, faults) * factor, 6)


def write_hcopy(path, record: dict) -> None:
    """HCopy's configuration for features with ``record`` (one that :func:`kind_of` has a name for)."""
    options, lines = options_of(record), ["SOURCEKIND = WAVEFORM", "SOURCEFORMAT = WAV"]
    lines.append(f"TARGETKIND = {kind_of(record)}")
    for key, (name, _, factor) in KEYS.items():
        value = getattr(options, name)
        if name in ("low_freq", "high_freq") and value == 0:
            continue  # HTK's default: no edge
        if name == "high_freq" and value < 0:
            value += record["sample_rate"] / 2
        lines.append(f"{key} = {('F', 'T')[value] if factor is None else f'{value / factor:.10g}'}")
    lines += [f"ACCWINDOW = {options.delta_window}", "USEHAMMING = T", "SAVECOMPRESSED = F", "SAVEWITHCRC = F"]
    write_text(path, "\n".join(lines) + "\n")

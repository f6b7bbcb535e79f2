"""Labels of the embedded TIMIT: the synthesiser's phoneme events as segments of TIMIT's 61 symbols."""

import numpy as np

# espeak-ng's mnemonics (American English) -> TIMIT symbols; a diphthong with r is shared out evenly.
VOWELS = {
    "0": "aa", "3": "axr", "3:": "er", "@": "ax", "@2": "ax", "@5": "ax", "@L": "el", "A:": "aa", "A@": "aa r",
    "E": "eh", "I": "ih", "I#": "ix", "I2": "ix", "O": "ao", "O2": "ao", "O:": "ao", "O@": "ao r", "OI": "oy",
    "U": "uh", "U@": "uh r", "V": "ah", "a": "ae", "a#": "ax", "aa": "ae", "aI": "ay", "aI3": "ay axr", "aI@": "ay ax",
    "aU": "aw", "e@": "eh r", "eI": "ey", "i": "iy", "i:": "iy", "i@": "iy ax", "i@3": "ih r", "o@": "ao r",
    "oU": "ow", "u:": "uw",
}  # fmt: skip
CONSONANTS = {
    "D": "dh", "N": "ng", "S": "sh", "T": "th", "Z": "zh", "f": "f", "h": "hh", "j": "y", "l": "l", "m": "m", "n": "n",
    "n-": "en", "r": "r", "r-": "r", "s": "s", "t#": "dx", "v": "v", "w": "w", "z": "z", "?": "q",
}  # fmt: skip
STOPS = {  # mnemonic -> closure and release
    "b": ("bcl", "b"), "d": ("dcl", "d"), "g": ("gcl", "g"), "p": ("pcl", "p"), "t": ("tcl", "t"), "t2": ("tcl", "t"),
    "k": ("kcl", "k"), "tS": ("tcl", "ch"), "dZ": ("dcl", "jh"),
}  # fmt: skip
PAUSES = {"_", "_:", "_!", "_|"}
SOUNDLESS = {";", ""}  # marks of the synthesiser that stand for no sound of their own

CLOSURE_PART = 0.7  # of a stop that is voiced through its closure
SHORTEST = 0.005  # seconds of silence that are a closure
PAUSE = 0.020  # seconds of silence within speech that are a pause


def label(phones: list[tuple[int, str]], samples: np.ndarray, rate: int) -> list[tuple[int, int, str]]:
    """``(start, end, TIMIT symbol)`` that tile ``samples`` without gaps.

    ``phones`` are the events (start sample, mnemonic). The synthesiser marks the burst of a voiceless stop: its closure
    is the run of silent samples before it. A voiced closure is the first part of the stop itself.
    """
    events = [(start, name) for start, name in phones if name not in SOUNDLESS]
    bounds = [start for start, _ in events] + [len(samples)]
    silent = np.abs(samples) < 1.5
    segments: list[tuple[int, int, str]] = []
    for number, (start, name) in enumerate(events):
        end = bounds[number + 1]
        if end <= start:
            continue
        if name in PAUSES:
            segments.append((start, end, "pau"))
        elif name in STOPS:
            closure, release = STOPS[name]
            closed = _silence_before(silent, start, segments[-1][0] if segments else 0)
            if closed >= SHORTEST * rate:
                if segments:
                    segments[-1] = (segments[-1][0], start - closed, segments[-1][2])
                segments += [(start - closed, start, closure), (start, end, release)]
            else:
                burst = start + round(CLOSURE_PART * (end - start))
                segments += [(start, burst, closure), (burst, end, release)]
        else:
            symbols = (VOWELS.get(name) or CONSONANTS[name]).split()
            cuts = np.linspace(start, end, len(symbols) + 1).round().astype(int)
            segments += [(int(a), int(b), symbol) for a, b, symbol in zip(cuts, cuts[1:], symbols)]
    return _with_silences(_with_pauses(segments, silent, rate), len(samples))


def _silence_before(silent: np.ndarray, position: int, limit: int) -> int:
    """Length of the run of silent samples that ends at ``position``, not past ``limit``."""
    sounding = np.flatnonzero(~silent[limit:position])
    return position - limit - (int(sounding[-1]) + 1 if len(sounding) else 0)


def _with_pauses(segments, silent, rate):
    """Cut what is silent at the end of a segment, if it is long, off as a pause."""
    result = []
    for start, end, symbol in segments:
        quiet = _silence_before(silent, end, start)
        if symbol == "pau" or symbol.endswith("cl") or not PAUSE * rate <= quiet < end - start:
            result.append((start, end, symbol))
        else:
            result += [(start, end - quiet, symbol), (end - quiet, end, "pau")]
    return result


def _with_silences(segments, length):
    """Join pauses, drop what is empty, and make the first and last stretch of silence ``h#``."""
    result: list[tuple[int, int, str]] = []
    for start, end, symbol in segments:
        if end <= start:
            continue
        if symbol == "pau" and result and result[-1][2] == "pau":
            result[-1] = (result[-1][0], end, "pau")
        else:
            result.append((start, end, symbol))
    if result and result[0][2] == "pau":
        result[0] = (0, result[0][1], "h#")
    elif result and result[0][0] > 0:
        result.insert(0, (0, result[0][0], "h#"))
    if result and result[-1][2] == "pau":
        result[-1] = (result[-1][0], length, "h#")
    return result

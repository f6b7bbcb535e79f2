"""Synthesise a small corpus in the layout and file format of TIDIGITS, ISOLET, TIMIT or AN4.

    python local/mini_corpus.py {tidigits|isolet|timit|an4} --out DIR [--size tiny|full] [--seed N] [--jobs N]
    python local/mini_corpus.py isolet --letters all --out DIR

Every speaker is a voice of its own (pitch, vocal-tract length, formants, breath, accent, speed); babble and coloured
noise are added at a signal-to-noise ratio drawn for each utterance. The same arguments give the same bytes. DIR appears
when it is whole, with ``margo-synthetic.json`` in it: what was made, how much, and a checksum over all files. Where DIR
is already what is asked for, made by this same generator, nothing is done. Nothing is downloaded.

The voice is espeak-ng (GPL-3, package ``espeakng-loader``), which only this program loads, in processes of its own.
"""

import argparse
import hashlib
import json
import shutil
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import active_children, get_context
from pathlib import Path
from signal import SIG_BLOCK, SIG_UNBLOCK, SIGINT, SIGTERM, default_int_handler, pthread_sigmask, signal

import numpy as np
import soxr

from mini_labels import label
from mini_voice import Spoken, Synthesiser, voice

ROOT = Path(__file__).resolve().parent.parent
SENTENCES = ROOT / "conf" / "mini_sentences.txt"
SPEAKER_LISTS = ROOT / "conf" / "timit_speakers.toml"
DICTIONARY = ROOT / "conf" / "mini_an4.dic"
MARKER = "margo-synthetic.json"
SHARDS = {"full": 4, "tiny": 2}  # processes a corpus is made in, each from a fresh synthesiser; the bytes depend on it
DIGITS = {"z": "zero", "o": "oh", "1": "one", "2": "two", "3": "three", "4": "four", "5": "five", "6": "six",
          "7": "seven", "8": "eight", "9": "nine"}  # fmt: skip
LETTERS = {"B": "bee", "C": "see", "D": "dee", "E": "e", "G": "gee", "P": "pee", "T": "tee", "V": "vee", "Z": "zee"}
SPELLED = {"A": "ay", **LETTERS, "F": "eff", "H": "aitch", "I": "eye", "J": "jay", "K": "kay", "L": "ell", "M": "em",
           "N": "en", "O": "owe", "Q": "cue", "R": "are", "S": "ess", "U": "you", "W": "double you", "X": "ex",
           "Y": "why"}  # fmt: skip
BABBLE = "one zero seven nine oh two eight three six five four bee gee see pee zee tee dee vee"


@dataclass(frozen=True)
class Conditions:
    """What makes a corpus easy or hard, and its file format."""

    number: int  # keeps the random numbers of the corpora apart
    rate: int  # samples a second
    snr: tuple[float, float]  # dB, drawn for each utterance
    spread: float  # of speakers, see mini_voice.voice
    speed: tuple[float, float]  # words a minute, drawn for each speaker
    accents: dict[str, float]  # shares
    tilt: float  # largest tilt of the microphone, drawn for each utterance: x[t] + tilt * x[t-1]
    around: tuple[float, float]  # seconds without speech before and after it, drawn for each utterance


WORLD = {"en-us": 0.6, "en-us-nyc": 0.1, "en-gb-scotland": 0.1, "en-gb-x-rp": 0.1, "en-gb-x-gbclan": 0.1}
AMERICA = {"en-us": 0.8, "en-us-nyc": 0.2}
CONDITIONS = {
    "tidigits": Conditions(1, 20000, (5.0, 20.0), 1.0, (112, 178), WORLD, 0.5, (0.06, 0.14)),
    "isolet": Conditions(2, 16000, (8.0, 32.0), 1.0, (96, 156), WORLD, 0.4, (0.1, 0.25)),
    "timit": Conditions(3, 16000, (9.0, 24.0), 1.3, (132, 188), AMERICA, 0.4, (0.1, 0.25)),
    "an4": Conditions(4, 16000, (9.0, 24.0), 1.3, (112, 168), AMERICA, 0.4, (0.1, 0.25)),
}


@dataclass(frozen=True)
class Speaker:
    """One speaker of a plan: where the files go and what is said; ``prompts`` are (file name without suffix, text)."""

    number: int
    name: str
    gender: str
    folder: str
    prompts: list[tuple[str, str]] = field(default_factory=list)


# -- plans: who says what -------------------------------------------------------------------------------------------
def plan_tidigits(size: str, rng: np.random.Generator) -> list[Speaker]:
    """``train/man/ah/1z3a.wav``. Training speakers that become the development set (every fifth) and test speakers
    say more than the rest, so that error rates can be told apart."""
    # speakers of each gender in train and test; for those who say less and more: productions of each single digit, and
    # strings of each length (2 3 4 5 7)
    train, test, less, more = {"full": (40, 13, ("a", 6), ("ab", 8)), "tiny": (5, 2, ("a", 1), ("a", 1))}[size]
    speakers: list[Speaker] = []
    for which, per_gender in (("train", train), ("test", test)):
        for gender, folder in (("m", "man"), ("f", "woman")):
            for index in range(per_gender):
                name = f"{chr(97 + len(speakers) // 26)}{chr(97 + len(speakers) % 26)}"
                productions, count = more if which == "test" or index % 5 == 4 else less
                names = [digit + production for digit in DIGITS for production in productions]
                for length in (2, 3, 4, 5, 7):
                    drawn: set[str] = set()
                    while len(drawn) < count:
                        drawn.add("".join(rng.choice(list(DIGITS), length)))
                    names += [string + "a" for string in sorted(drawn)]
                prompts = [(name_, " ".join(DIGITS[digit] for digit in name_[:-1])) for name_ in names]
                speakers.append(Speaker(len(speakers), name, gender, f"{which}/{folder}/{name}", prompts))
    return speakers


def plan_isolet(size: str, rng: np.random.Generator, letters: str = "eset") -> list[Speaker]:
    """``isolet1/fcmc0/fcmc0-B1-t.wav``: the E-set, or all letters. Parts 1 to 4 have the real ones' speakers, and parts
    1 to 3 say as much; 5 has twice the speakers, and of the E-set parts 4 and 5 say more, so that error rates can be
    told apart."""
    # part, speakers, productions of each letter
    parts = {
        "full": ((1, 30, 2), (2, 30, 2), (3, 30, 2), (4, 30, 10), (5, 60, 6)),
        "tiny": ((1, 4, 2), (2, 2, 2), (3, 2, 2), (4, 4, 2), (5, 4, 2)),
    }[size]
    spoken = LETTERS
    if letters == "all":
        spoken, parts = dict(sorted(SPELLED.items())), [(part, count, 2) for part, count, _ in parts]
    speakers: list[Speaker] = []
    for part, count, productions in parts:
        for index in range(count):
            gender = "fm"[index % 2]
            name = personal_name(gender, len(speakers))
            prompts = [(f"{name}-{letter}{production}-t", text)
                       for production in range(1, productions + 1) for letter, text in spoken.items()]  # fmt: skip
            speakers.append(Speaker(len(speakers), name, gender, f"isolet{part}/{name}", prompts))
    return speakers


def plan_timit(size: str, rng: np.random.Generator) -> list[Speaker]:
    """``TRAIN/DR1/FAAA0/SX7.WAV``; the development and core test speakers have the names the lists give."""
    import tomllib

    sentences = SENTENCES.read_text(encoding="utf-8").split("\n")[:-1]
    dialect, rest = sentences[:2], list(enumerate(sentences))[2:]
    lists = tomllib.loads(SPEAKER_LISTS.read_text(encoding="utf-8"))
    core = [name for names in lists["core_test"].values() for name in names]
    regions = {name: region for region, names in lists["core_test"].items() for name in names}
    train = [personal_name("fm"[number % 3 > 0], number) for number in range({"full": 72, "tiny": 8}[size])]
    if size == "tiny":
        core, lists["dev"] = core[:4], lists["dev"][:4]
    # No sentence is in two sets, as in the real corpus.
    sets = (("TRAIN", train, rest[48:]), ("TEST", lists["dev"], rest[:24]), ("TEST", core, rest[24:48]))
    speakers: list[Speaker] = []
    for which, names, pool in sets:
        for index, name in enumerate(names):
            chosen = rng.permutation(len(pool))[:8]
            numbered = [(f"S{'X' if place < 5 else 'I'}{pool[pick][0]}", pool[pick][1])
                        for place, pick in enumerate(chosen)]  # fmt: skip
            prompts = [("SA1", dialect[0]), ("SA2", dialect[1]), *numbered]
            folder = f"{which}/{regions.get(name, f'dr{index % 8 + 1}').upper()}/{name.upper()}"
            speakers.append(Speaker(len(speakers), name, name[0], folder, prompts))
    return speakers


def plan_an4(size: str, rng: np.random.Generator) -> list[Speaker]:
    """``wav/an4_clstk/faaa0/an12-faaa0-b.sph``: spelled strings and digits; what is said stands in ``etc``."""
    train, test, utterances = {"full": (56, 12, 14), "tiny": (14, 2, 6)}[size]
    digits = [word.upper() for sign, word in DIGITS.items() if sign != "o"]
    speakers: list[Speaker] = []
    for number in range(train + test):
        name = personal_name("fm"[number % 2], number)
        prompts = []
        for place in range(utterances):
            words = rng.choice(list(SPELLED) if place % 2 else digits, rng.integers(3, 8))
            prompts.append((f"an{number * utterances + place}-{name}-b", " ".join(map(str, words))))
        folder = f"wav/{'an4_clstk' if number < train else 'an4test_clstk'}/{name}"
        speakers.append(Speaker(number, name, name[0], folder, prompts))
    return speakers


def said(text: str) -> str:
    """AN4's words as the synthesiser is to be given them."""
    return " ".join(SPELLED.get(word, word.lower()) for word in text.split())


def write_lists(speakers: list[Speaker], out: Path) -> None:
    """AN4's ``etc``: the dictionary, and of each set its files and what is said in them."""
    (out / "etc").mkdir()
    shutil.copyfile(DICTIONARY, out / "etc" / "an4.dic")
    for which, folder in (("train", "an4_clstk"), ("test", "an4test_clstk")):
        rows = [(f"{speaker.folder.removeprefix('wav/')}/{name}", text, name) for speaker in speakers
                if speaker.folder.startswith(f"wav/{folder}/") for name, text in speaker.prompts]  # fmt: skip
        (out / "etc" / f"an4_{which}.fileids").write_text("".join(f"{file}\n" for file, _, _ in rows))
        lines = "".join(f"<s> {text} </s> ({name})\n" for _, text, name in rows)
        (out / "etc" / f"an4_{which}.transcription").write_text(lines)


def personal_name(gender: str, number: int) -> str:
    return f"{gender}{chr(97 + number // 676 % 26)}{chr(97 + number // 26 % 26)}{chr(97 + number % 26)}0"


# -- audio ----------------------------------------------------------------------------------------------------------
def noise_tracks(synthesiser: Synthesiser, rate: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Two tracks of 10 s with unit power: babble of eight voices, and noise whose spectrum falls by 3 dB an octave."""
    length = 10 * rate
    babble = np.zeros(length)
    words = BABBLE.split()
    for number in range(8):
        synthesiser.set_voice(voice(f"babble{number}", "fm"[number % 2], "en-us", 1.0, rng))
        text = " ".join(rng.choice(words, 28))
        samples = soxr.resample(synthesiser.say(text, 200).samples, synthesiser.rate, rate, "MQ")
        babble += np.resize(samples / samples.std(), length)
    spectrum = np.fft.rfft(rng.standard_normal(length))
    spectrum /= np.sqrt(np.maximum(np.arange(len(spectrum)), 50 * length // rate))
    pink = np.fft.irfft(spectrum, length)
    return [babble / babble.std(), pink / pink.std()]


def record(spoken: Spoken, source: int, conditions: Conditions, tracks, rng) -> tuple[np.ndarray, int]:
    """The utterance as a microphone has it: int16 samples [T] at the corpus's rate, and how many precede the speech."""
    rate = conditions.rate
    speech = soxr.resample(spoken.samples, source, rate, "MQ")
    power = np.mean(np.square(speech[np.abs(speech) > 100])) if np.any(np.abs(speech) > 100) else 1.0
    before, after = (rng.uniform(*conditions.around, 2) * rate).astype(int)
    signal = np.concatenate([np.zeros(before), speech, np.zeros(after)])
    share = rng.uniform(0, 1)
    noise = sum(
        np.sqrt(part) * np.take(track, np.arange(len(signal)) + rng.integers(len(track)), mode="wrap")
        for part, track in zip((share, 1 - share), tracks)
    )
    snr = rng.uniform(*conditions.snr)
    signal += noise * np.sqrt(power) * 10 ** (-snr / 20)
    signal[1:] += rng.uniform(-conditions.tilt, conditions.tilt) * signal[:-1]
    signal *= 10 ** (rng.uniform(-18, -4) / 20) * 32767 / np.abs(signal).max()
    return np.round(signal).astype("<i2"), int(before)


def write_sphere(path: Path, samples: np.ndarray, rate: int) -> None:
    """A NIST SPHERE file: a header of 1024 bytes, then little-endian 16-bit PCM."""
    fields = (
        ("channel_count", "-i", 1),
        ("sample_count", "-i", len(samples)),
        ("sample_rate", "-i", rate),
        ("sample_n_bytes", "-i", 2),
        ("sample_byte_format", "-s2", "01"),
        ("sample_sig_bits", "-i", 16),
        ("sample_coding", "-s3", "pcm"),
    )
    header = "NIST_1A\n   1024\n" + "".join(f"{name} {kind} {value}\n" for name, kind, value in fields) + "end_head\n"
    path.write_bytes(header.encode().ljust(1024) + samples.tobytes())


def write_riff(path: Path, samples: np.ndarray, rate: int) -> None:
    import wave

    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(samples.tobytes())


def write_labels(stem: Path, text: str, spoken: Spoken, source: int, rate: int, before: int, length: int) -> None:
    """TIMIT's ``.PHN .WRD .TXT``, in samples of the file; the silence added around the speech belongs to ``h#``."""

    def place(sample: int) -> int:
        return before + round(sample * rate / source)

    segments = [(place(a), place(b), symbol) for a, b, symbol in label(spoken.phones, spoken.samples, source)]
    if segments[0][2] == "h#":
        segments[0] = (0, *segments[0][1:])
    else:
        segments.insert(0, (0, segments[0][0], "h#"))
    if segments[-1][2] == "h#":
        segments[-1] = (segments[-1][0], length, "h#")
    else:
        segments.append((segments[-1][1], length, "h#"))
    stem.with_suffix(".PHN").write_text("".join(f"{a} {b} {symbol}\n" for a, b, symbol in segments))
    starts = [place(start) for start, _ in spoken.words] + [segments[-1][0]]
    words = [(a, b, word.lower().strip(".,?")) for (_, word), a, b in zip(spoken.words, starts, starts[1:])]
    stem.with_suffix(".WRD").write_text("".join(f"{a} {b} {word}\n" for a, b, word in words))
    stem.with_suffix(".TXT").write_text(f"0 {length} {text}\n")


def make_shard(corpus: str, speakers: list[Speaker], out: Path, seed: int, shard: int) -> None:
    """All files of ``speakers``, in order, from a fresh synthesiser: call once a process."""
    conditions = CONDITIONS[corpus]
    with tempfile.TemporaryDirectory() as scratch:
        synthesiser = Synthesiser(Path(scratch))
        tracks = noise_tracks(synthesiser, conditions.rate, np.random.default_rng([seed, conditions.number, 1, shard]))
        for speaker in speakers:
            rng = np.random.default_rng([seed, conditions.number, 2, speaker.number])
            accent = rng.choice(list(conditions.accents), p=list(conditions.accents.values()))
            synthesiser.set_voice(voice(speaker.name, speaker.gender, str(accent), conditions.spread, rng))
            speed = rng.uniform(*conditions.speed)
            folder = out / speaker.folder
            folder.mkdir(parents=True)
            for name, text in speaker.prompts:
                pitch, pitch_range = rng.uniform(38, 62), rng.uniform(25, 75)
                rate, noise_seed = round(speed * rng.uniform(0.85, 1.18)), int(rng.integers(1, 1 << 31))
                aloud = said(text) if corpus == "an4" else text
                spoken = synthesiser.say(aloud, rate, round(pitch), round(pitch_range), noise_seed)
                samples, before = record(spoken, synthesiser.rate, conditions, tracks, rng)
                if corpus == "isolet":
                    write_riff(folder / f"{name}.wav", samples, conditions.rate)
                    continue
                suffix = {"timit": ".WAV", "an4": ".sph"}.get(corpus, ".wav")
                write_sphere(folder / f"{name}{suffix}", samples, conditions.rate)
                if corpus == "timit":
                    write_labels(folder / name, text, spoken, synthesiser.rate, conditions.rate, before, len(samples))


# -- the whole ------------------------------------------------------------------------------------------------------
PLANS = {"tidigits": plan_tidigits, "isolet": plan_isolet, "timit": plan_timit, "an4": plan_an4}


def generator_digest() -> str:
    """What the bytes depend on beside the arguments: this program and its lists."""
    sources = [ROOT / "local" / name for name in ("mini_corpus.py", "mini_voice.py", "mini_labels.py")]
    sources += [SENTENCES, SPEAKER_LISTS, DICTIONARY]
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in sources)).hexdigest()


def checksum(folder: Path) -> tuple[int, str]:
    """How many files ``folder`` holds, and one SHA-256 over their names and contents."""
    total, count = hashlib.sha256(), 0
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and path.name != MARKER):
        total.update(f"{path.relative_to(folder).as_posix()}\0".encode())
        total.update(hashlib.sha256(path.read_bytes()).digest())
        count += 1
    return count, total.hexdigest()


def make(corpus: str, out: Path, size: str, letters: str, seed: int, jobs: int) -> dict:
    """Generate into ``out`` and return what its marker says."""
    asked = {"corpus": corpus, "size": size, "seed": seed, "generator": generator_digest()}
    more = {"letters": letters} if corpus == "isolet" else {}
    asked |= more
    marker = out / MARKER
    if marker.is_file():
        there = json.loads(marker.read_text())
        if {key: there.get(key) for key in asked} == asked:
            return there
    elif out.exists() and any(out.iterdir()):
        raise SystemExit(f"mini_corpus: {out} is not empty and holds no {MARKER}: it is not replaced")
    partial = out.with_name(out.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    speakers = PLANS[corpus](size, np.random.default_rng([seed, CONDITIONS[corpus].number, 0]), **more)
    count = SHARDS[size]
    shards = [(corpus, speakers[number::count], partial, seed, number) for number in range(count)]
    with ProcessPoolExecutor(jobs, get_context("spawn"), max_tasks_per_child=1) as pool:
        # Workers are born with Ctrl-C, which reaches the whole group, blocked: it is this process that ends them.
        pthread_sigmask(SIG_BLOCK, {SIGINT})
        coming = [pool.submit(make_shard, *shard) for shard in shards]
        try:
            pthread_sigmask(SIG_UNBLOCK, {SIGINT})
            for done in coming:
                done.result()
        except BaseException:
            for future in coming:
                future.cancel()
            for worker in active_children():
                worker.kill()
            raise
    if corpus == "an4":
        write_lists(speakers, partial)
    files, digest = checksum(partial)
    utterances = sum(len(speaker.prompts) for speaker in speakers)
    made = {**asked, "synthetic": True, "speakers": len(speakers), "utterances": utterances, "files": files,
            "sha256": digest}  # fmt: skip
    (partial / MARKER).write_text(json.dumps(made, indent=1) + "\n")
    if out.exists():
        shutil.rmtree(out)
    partial.rename(out)
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", choices=sorted(PLANS))
    parser.add_argument("--out", type=Path, required=True, help="folder to make")
    parser.add_argument("--size", choices=("tiny", "full"), default="full", help="tiny is for tests (default: full)")
    parser.add_argument("--letters", choices=("eset", "all"), default="eset", help="of isolet (default: eset)")
    parser.add_argument("--seed", type=int, default=0, help="seed of everything random (default: 0)")
    parser.add_argument("--jobs", type=int, default=2, help="processes to use; changes nothing made (default: 2)")
    options = parser.parse_args()
    if options.seed < 0 or options.jobs < 1:
        parser.error("--seed must be 0 or more, --jobs 1 or more")
    if options.letters == "all" and options.corpus != "isolet":
        parser.error(f"--letters all is for isolet, not for {options.corpus}")
    started = time.perf_counter()
    signal(SIGTERM, default_int_handler)  # so that workers are ended too
    try:
        made = make(options.corpus, options.out.resolve(), options.size, options.letters, options.seed, options.jobs)
    except KeyboardInterrupt:
        print("mini_corpus: interrupted", file=sys.stderr)
        sys.exit(130)
    except OSError as error:
        raise SystemExit(f"mini_corpus: {error.filename or options.out}: {error.strerror or error}") from None
    print(f"{options.out}: synthetic {made['corpus']}, {made['speakers']} speakers, {made['utterances']} utterances, "
          f"sha256 {made['sha256'][:16]}, {time.perf_counter() - started:.1f} s", file=sys.stderr)  # fmt: skip


if __name__ == "__main__":
    main()

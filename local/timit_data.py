"""TIMIT as Kaldi data folders train, dev and test, transcribed in 48 phones, with the hand labels' times.

Reads .../{train,test}/dr<n>/<speaker>/<sentence>.{wav,phn}, upper or lower case, SPHERE or RIFF. SA sentences are left
out. Train is the TRAIN part; dev and test are the speakers of conf/timit_speakers.toml (50 speakers, and the core test
set of 24, or with --test full all 168 speakers of TEST; dev is then the first of every eight sentences of each training
speaker, which are not trained on). Folders without TRAIN and TEST (dr<n>-<speaker>, as in NLTK's sample) need --partial
true. A quarter of the speakers, rounded down but at least one, are then test: at even distances in the order women
before men, dialect, name. All others train, and dev is the first of every eight sentences of each of them.

NLTK's sample was once converted like text, which cost nearly a quarter of its recordings a byte or more and made noise
of what follows. With --partial true recordings that bear the marks of that are restored, into the folder audio.

Beside the tables, each set has phones.ctm (48 phones, q left out) and phn (utterance, start, end in seconds, and one
of the 61 symbols, all of them).

Example: local/timit_data.py --corpus timit --out exp/timit/data
"""

import re
from dataclasses import dataclass
from pathlib import Path

from margo.runtime.step import Knobs, knob, main

CONF = Path(__file__).resolve().parent.parent / "conf"
SUFFIXES = (".wav", ".phn")
COMPLETE = {"training speakers": 462, "test speakers": 168, "train sentences": 3696, "dev sentences": 400,
            "core test sentences": 192}  # fmt: skip


@dataclass(frozen=True)
class Options(Knobs):
    corpus: Path = knob(help="TIMIT as on the disc, a sample of it, or the embedded corpus of mini_corpus.py")
    out: Path = knob(help="folder to write train, dev and test into")
    partial: bool = knob(False, "accept an incomplete corpus")
    phones: Path = knob(CONF / "timit_phones.toml", "which of the 61 symbols are which of the 48 and 39 phones")
    test: str = knob("core", "the core test set, or all of TEST as in [PW10]", ("core", "full"))
    speakers: Path = knob(CONF / "timit_speakers.toml", "speakers of dev and of the core test set")


@dataclass(frozen=True)
class Sentence:
    """The files of one sentence; ``part`` is train, test, or empty where the layout does not say."""

    part: str
    speaker: str
    name: str
    files: dict[str, Path]
    dialect: str = ""

    @property
    def key(self) -> str:
        return f"{self.speaker}-{self.name}"


def run(options: Options, step):
    from margo.errors import MargoError, refuse
    from margo.formats.corpora import count_faults, is_synthetic, write_sets
    from margo.formats.reading import read_toml
    from margo.formats.transcripts import read_symbol_map

    synthetic = is_synthetic(options.corpus, "timit")
    lists = read_toml(step.input_file(options.speakers), {"dev": [str], "core_test": {...: [str]}})
    to48 = read_symbol_map(step.input_file(options.phones), "to48")
    sentences, faults = find_sentences(options.corpus)
    if not sentences:
        raise MargoError(f"{options.corpus}: no TIMIT sentences (expected .../<speaker>/<sentence>.wav and .phn)")
    if any(sentence.part for sentence in sentences):
        sets = split_by_lists(sentences, lists) if options.test == "core" else split_by_parts(sentences)
    elif options.partial:
        sets = split_by_rule(sentences)
    else:
        raise MargoError(f"{options.corpus}: no TRAIN and TEST folders (--partial true splits a sample by rule)")
    lists = split_by_lists(sentences, lists)
    of_part = {part: {s.speaker for s in sentences if s.part == part} for part in ("train", "test")}
    counts = {"training speakers": len(of_part["train"]), "test speakers": len(of_part["test"]),
              "train sentences": len(lists["train"]), "dev sentences": len(lists["dev"]),
              "core test sentences": len(lists["test"])}  # fmt: skip
    lacking = count_faults(counts, COMPLETE)
    if not (options.partial or synthetic):
        faults += lacking
    labels = {}
    for chosen in sets.values():
        for sentence in chosen:
            try:
                labels[sentence.key] = read_labels(sentence, to48)
            except MargoError as error:
                faults.append(str(error))
    refuse(faults, f"{options.corpus}: not TIMIT as on the disc (--partial true accepts less)")
    restored = restore_converted(sets, step) if options.partial else {}
    rows = {
        which: [utterance(s, labels[s.key], to48, restored.get(s.key, s.files[".wav"])) for s in chosen]
        for which, chosen in sets.items()
    }
    # A paper's figures stand beside the whole corpus alone.
    called = "timit (not the whole)" if lacking and not synthetic else "timit"
    for name in write_sets(options.out, rows, called, synthetic):
        step.output(name)
    for which, chosen in sets.items():
        write_label_files(step, which, chosen, labels, to48)
        speakers, phones = len({s.speaker for s in chosen}), sum(len(row.words) for row in rows[which])
        step.say(f"{which}: {speakers} speakers, {len(chosen)} sentences, {phones} phones")


def find_sentences(corpus: Path) -> tuple[list[Sentence], list[str]]:
    """All sentences but SA, sorted by part, speaker and name; and a fault for each that lacks a file or has two."""
    from margo.formats.corpora import files_below

    files: dict[tuple, dict[str, Path]] = {}
    dialects: dict[str, str] = {}
    faults = []
    for path, parts in files_below(corpus, SUFFIXES):
        if len(parts) < 2:
            continue
        speaker = re.fullmatch(r"(?:dr\d-)?([fm][a-z]{3}\d)", parts[-2])
        sentence = re.fullmatch(r"(s[aix]\d+)(\.[a-z]+)", parts[-1])
        if speaker is None or sentence is None or sentence[1].startswith("sa"):
            continue
        part = parts[-4] if len(parts) >= 4 and parts[-4] in ("train", "test") else ""
        dialect = re.search(r"\bdr\d\b", "/".join(parts[-3:-1]))
        dialects[speaker[1]] = dialect[0] if dialect else ""
        there = files.setdefault((part, speaker[1], sentence[1]), {})
        if sentence[2] in there:
            faults.append(f"{path}: also found as {there[sentence[2]]}")
        there[sentence[2]] = path
    for (_, speaker, name), there in files.items():
        for missing in sorted(set(SUFFIXES) - set(there)):
            faults.append(f"{speaker} {name}: no {missing} file")
    whole = [(key, there) for key, there in sorted(files.items()) if len(there) == len(SUFFIXES)]
    return [Sentence(*key, there, dialects[key[1]]) for key, there in whole], faults


def split_by_lists(sentences: list[Sentence], lists: dict) -> dict[str, list[Sentence]]:
    core = {name for names in lists["core_test"].values() for name in names}
    test = [sentence for sentence in sentences if sentence.part == "test"]
    return {
        "train": [sentence for sentence in sentences if sentence.part == "train"],
        "dev": [sentence for sentence in test if sentence.speaker in lists["dev"]],
        "test": [sentence for sentence in test if sentence.speaker in core],
    }


def split_by_parts(sentences: list[Sentence]) -> dict[str, list[Sentence]]:
    """Test is all of TEST; dev is one in eight sentences of each training speaker."""
    spoken: dict[str, list[Sentence]] = {}
    for sentence in sentences:
        if sentence.part == "train":
            spoken.setdefault(sentence.speaker, []).append(sentence)
    return {
        "train": [sentence for own in spoken.values() for n, sentence in enumerate(own) if n % 8],
        "dev": [sentence for own in spoken.values() for sentence in own[::8]],
        "test": [sentence for sentence in sentences if sentence.part == "test"],
    }


def split_by_rule(sentences: list[Sentence]) -> dict[str, list[Sentence]]:
    """A sample without parts: a quarter of the speakers is test; dev is one in eight sentences of the others."""
    from margo.errors import MargoError

    spoken: dict[tuple, list[Sentence]] = {}
    for sentence in sentences:
        spoken.setdefault((sentence.speaker[0], sentence.dialect, sentence.speaker), []).append(sentence)
    speakers = [spoken[key] for key in sorted(spoken)]  # by sex, dialect and name
    if len(speakers) < 2:
        raise MargoError(
            f"sentences of {sentences[0].speaker} alone: expected two speakers or more, one of them to test"
        )
    many = max(1, len(speakers) // 4)
    test = {(2 * number + 1) * len(speakers) // (2 * many) for number in range(many)}
    sets: dict[str, list[Sentence]] = {"train": [], "dev": [], "test": []}
    for place, own in enumerate(speakers):
        for number, sentence in enumerate(own):
            held_out = number % 8 == 0 and len(own) > 1
            sets["test" if place in test else "dev" if held_out else "train"].append(sentence)
    if not sets["dev"]:
        raise MargoError("one sentence for each speaker to train on: expected two or more, one of them for dev")
    return {which: sorted(chosen, key=lambda sentence: sentence.key) for which, chosen in sets.items()}


def read_labels(sentence: Sentence, to48: dict[str, str]) -> list[tuple[float, float, str]]:
    """``(start, end, symbol)`` in seconds of a ``.phn`` file; refuses what is not a sequence of the 61 symbols."""
    from margo.errors import refuse
    from margo.formats.audio import audio_info
    from margo.formats.reading import read_lines
    from margo.knobs import brief, whole

    path = sentence.files[".phn"]
    rate = audio_info(sentence.files[".wav"]).sample_rate
    labels, faults, last = [], [], 0
    for number, line in read_lines(path):
        try:
            start, end, symbol = line.lower().split()
            start, end = whole(start), whole(end)
        except ValueError:
            faults.append(f"line {number}: {brief(line)} (expected: start end symbol)")
            continue
        if symbol not in to48:
            faults.append(f"line {number}: {symbol!r} is not one of the {len(to48)} symbols")
        if not last <= start < end:
            faults.append(f"line {number}: from {start} to {end} after {last}")
        labels.append((start / rate, end / rate, symbol))
        last = end
    refuse(faults or ([] if labels else ["no labels"]), str(path))
    return labels


def restore_converted(sets: dict[str, list[Sentence]], step) -> dict[str, Path]:
    """Recordings that a conversion of line ends spoilt, restored; sentence -> file written."""
    from io import BytesIO

    import numpy as np
    import soundfile

    from margo.formats.atomic import atomic
    from margo.formats.audio import read_audio
    from margo.signal.line_ends import restore, was_converted

    written, lost = {}, 0
    for sentence in (s for chosen in sets.values() for s in chosen):
        samples, rate = read_audio(sentence.files[".wav"])
        samples = np.round(samples).astype(np.int16)
        if not was_converted(samples):
            continue
        whole, many = restore(samples)
        written[sentence.key] = step.output(f"audio/{sentence.key}.wav").resolve()
        sound = BytesIO()
        soundfile.write(sound, whole, rate, format="WAV", subtype="PCM_16")
        with atomic(written[sentence.key], "wb") as file:
            file.write(sound.getvalue())
        lost += many > 0
    if written:
        step.say(f"{len(written)} recordings were converted like text; restored, {lost} of them with bytes lost")
    return written


def utterance(sentence: Sentence, labels, to48: dict[str, str], audio: Path):
    from margo.formats.datadir import Utterance

    phones = tuple(to48[symbol] for _, _, symbol in labels if to48[symbol])
    return Utterance(sentence.key, sentence.speaker, phones, str(audio.resolve()), gender=sentence.speaker[0])


def write_label_files(step, which: str, sentences: list[Sentence], labels: dict, to48: dict[str, str]) -> None:
    from margo.formats.atomic import write_text
    from margo.formats.ctm import TimedWord, write_ctm

    timed = [(s.key, *label) for s in sorted(sentences, key=lambda s: s.key) for label in labels[s.key]]
    kept = [TimedWord(key, start, end - start, to48[symbol]) for key, start, end, symbol in timed if to48[symbol]]
    write_ctm(step.output(f"{which}/phones.ctm"), kept)
    lines = [f"{key} {start:.7f} {end:.7f} {symbol}\n" for key, start, end, symbol in timed]
    write_text(step.output(f"{which}/phn"), "".join(lines))


if __name__ == "__main__":
    main(__doc__, Options, run)

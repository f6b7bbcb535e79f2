"""Kaldi data folders: ``wav.scp text utt2spk spk2utt [segments] [feats.scp] [spk2gender]``.

:func:`read` returns a :class:`DataDir` or raises one :class:`MargoError` with every fault of the tables;
:func:`validate` returns the same faults and, where asked, those of the audio and features the tables name;
:func:`write` writes the tables sorted, each file whole or not at all.

What happens to what is not as it should be:

===========================  ===================================================================================
found                        outcome
===========================  ===================================================================================
unsorted tables              accepted; a DataDir is sorted by utterance name (byte order, as Kaldi sorts)
CRLF line ends, UTF-8 mark   accepted, removed
blank lines                  accepted, skipped
duplicate key                fault: the second line is named, the first holds
not text (UTF-8)             fault with file and line
missing file                 fault: ``text``, and ``wav.scp`` or ``feats.scp``, are needed; ``utt2spk`` or ``spk2utt``
empty file, empty value      fault with file (and line); so is a transcript without words
utterance missing in a file  fault, in whichever file it lacks; ``spk2utt`` must agree with ``utt2spk``
segments                     times must satisfy 0 <= start < end, the recording must be in ``wav.scp``; an end of -1
                             is the recording's end; an end up to 0.5 s past the recording is cut, more is a fault
pipe in ``wav.scp``          fault unless ``allow_pipes``, never run by this module; a pipe in ``feats.scp``: fault
relative path                taken from the current directory where it exists there (as Kaldi), else from the folder;
                             an archive in ``feats.scp`` from the folder first (there margo writes it), then from here
absent audio or archive      fault, the first place looked at is named
unreadable audio             fault with the decoder's words
zero-length audio            fault (also a feature matrix without frames)
wrong sample rate            fault if a rate is demanded and the file has another; if none is demanded, files of
                             different rates in one folder are a fault
NaN or infinite values       fault, in floating-point audio and in features
pickled features             fault, never loaded
feature dimensions           fault if they differ within the folder
===========================  ===================================================================================
"""

import os
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from margo.errors import MargoError, refuse
from margo.formats.atomic import write_text
from margo.formats.reading import place_of, read_keyed
from margo.knobs import brief, real

EXAMPLES = 3  # shown of each kind of fault
TABLES = ("wav.scp", "segments", "text", "utt2spk", "spk2utt", "spk2gender", "feats.scp")


@dataclass(frozen=True, slots=True)
class Utterance:
    """One row of a data folder; ``audio`` is a path, or a command that ends in ``|``; ``feats`` is ``path:offset``.

    ``recording``, ``start`` and ``end`` (seconds; ``end`` None is the recording's end) are set for segments only.
    """

    name: str
    speaker: str
    words: tuple[str, ...] = ()
    audio: str | None = None
    recording: str | None = None
    start: float | None = None
    end: float | None = None
    gender: str | None = None
    feats: str | None = None

    @property
    def is_pipe(self) -> bool:
        return self.audio is not None and is_pipe(self.audio)


@dataclass(frozen=True)
class DataDir:
    """A data folder in memory: utterances sorted by name."""

    folder: Path
    utterances: tuple[Utterance, ...]

    def __len__(self) -> int:
        return len(self.utterances)

    def __iter__(self):
        return iter(self.utterances)

    @cached_property
    def by_name(self) -> dict[str, Utterance]:
        return {utterance.name: utterance for utterance in self.utterances}

    @cached_property
    def by_speaker(self) -> dict[str, tuple[Utterance, ...]]:
        groups: dict[str, list[Utterance]] = {}
        for utterance in self.utterances:
            groups.setdefault(utterance.speaker, []).append(utterance)
        return {speaker: tuple(groups[speaker]) for speaker in sorted(groups)}

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """Every word of every transcript, sorted."""
        return tuple(sorted({word for utterance in self.utterances for word in utterance.words}))


@dataclass(frozen=True)
class Fault:
    """Everything of one kind that is wrong in a folder."""

    kind: str
    count: int
    examples: tuple[str, ...]

    def __str__(self) -> str:
        more = f"; and {self.count - len(self.examples)} more" if self.count > len(self.examples) else ""
        return f"{self.kind} ({self.count}): {'; '.join(self.examples)}{more}"


class _Faults:
    """Collects faults by kind, in the order of their first appearance."""

    def __init__(self):
        self.found: dict[str, list[str]] = {}

    def add(self, kind: str, example: str) -> None:
        self.found.setdefault(kind, []).append(example)

    def grouped(self) -> list[Fault]:
        return [Fault(kind, len(all_), tuple(all_[:EXAMPLES])) for kind, all_ in self.found.items()]


def is_pipe(audio: str) -> bool:
    return audio.rstrip().endswith("|")


def read(folder, *, allow_pipes: bool = False, need_text: bool = True) -> DataDir:
    """The data folder ``folder``; raises one error that lists all faults of its tables. Opens no audio."""
    folder = Path(folder)
    data, faults = _load(folder, allow_pipes, need_text)
    refuse([str(fault) for fault in faults.grouped()], f"{folder}: not a sound data folder")
    return data


def validate(
    folder, *, allow_pipes: bool = False, need_text: bool = True, sample_rate: int | None = None,
    check_audio: bool = True, check_feats: bool = True,
) -> list[Fault]:  # fmt: skip
    """All faults of ``folder``, grouped by kind; an empty list for a sound folder.

    ``check_audio`` opens every audio file's header (and the samples of floating-point files), ``check_feats`` reads
    every feature matrix. Recordings that are pipes are not run, so nothing is said about their content.
    """
    from margo.formats import datacheck

    data, faults = _load(Path(folder), allow_pipes, need_text)
    if check_audio:
        datacheck.check_audio(data, sample_rate, faults)
    if check_feats:
        datacheck.check_feats(data, faults)
    return faults.grouped()


def write(folder, utterances) -> None:
    """Write the tables of ``utterances``, sorted; a table that does not apply is removed if an older one is there.

    ``segments``, ``spk2gender`` and ``feats.scp`` are written when at least one utterance has them.
    """
    folder = Path(folder)
    rows = sorted(utterances, key=lambda utterance: utterance.name)
    refuse(_unwritable(rows), f"{folder}: these utterances cannot be written")
    tables: dict[str, dict[str, str]] = {name: {} for name in TABLES}
    speakers = DataDir(folder, tuple(rows)).by_speaker
    tables["spk2utt"] = {speaker: " ".join(row.name for row in own) for speaker, own in speakers.items()}
    for row in rows:
        tables["text"][row.name] = " ".join(row.words)
        tables["utt2spk"][row.name] = row.speaker
        if row.audio is not None:
            tables["wav.scp"][row.recording or row.name] = row.audio
        if row.recording is not None:
            tables["segments"][row.name] = f"{row.recording} {_seconds(row.start)} {_seconds(row.end)}"
        if row.gender is not None:
            tables["spk2gender"][row.speaker] = row.gender
        if row.feats is not None:
            tables["feats.scp"][row.name] = row.feats
    for name, table in tables.items():
        if table:
            write_text(folder / name, "".join(f"{key} {table[key]}".rstrip() + "\n" for key in sorted(table)))
        else:
            (folder / name).unlink(missing_ok=True)


def _seconds(value: float | None) -> str:
    return "-1" if value is None else f"{value:.9g}"


def _unwritable(rows: list[Utterance]) -> list[str]:
    """What would not come back from the tables as it went in."""
    faults = [] if rows else ["no utterances"]
    faults += [f"{name}: given {count} times" for name, count in Counter(r.name for r in rows).items() if count > 1]
    recordings: dict[str, str | None] = {}
    genders: dict[str, str | None] = {}
    for row in rows:
        for what in (row.name, row.speaker, row.recording, *row.words):
            if what is not None and (not what or what.split() != [what]):
                faults.append(f"{row.name}: {what!r} is empty or holds white space")
        if recordings.setdefault(row.recording or row.name, row.audio) != row.audio:
            faults.append(f"{row.name}: recording {row.recording or row.name} has two audio files")
        if genders.setdefault(row.speaker, row.gender) != row.gender:
            faults.append(f"{row.name}: speaker {row.speaker} has two genders")
    if len({row.recording is None for row in rows}) > 1:
        faults.append("some utterances are segments and some whole recordings")
    return faults


def _table(folder: Path, name: str, faults: _Faults) -> dict[str, str] | None:
    """``key -> rest of line`` of one table; None if the file is absent."""
    if not os.path.lexists(folder / name):  # whatever else has its name is refused, not passed over
        return None
    wrong = []
    table = read_keyed(folder / name, lambda kind, number, words: wrong.append((kind, f"{name}:{number}: {words}")))
    empty = "empty transcript" if name == "text" else "empty value"
    wrong += [(empty, f"{name}:{number}: {key}") for key, (number, value) in table.items() if not value]
    for fault in wrong or [("empty file", name)] * (not table):
        faults.add(*fault)
    return {key: value for key, (_, value) in table.items()}


def _load(folder: Path, allow_pipes: bool, need_text: bool) -> tuple[DataDir, _Faults]:
    """The folder as far as it can be read, and the faults of its tables."""
    if not folder.is_dir():
        raise MargoError(f"{folder}: no such data folder")
    faults = _Faults()
    tables = {name: _table(folder, name, faults) for name in TABLES}
    if not need_text:
        faults.found.pop("empty transcript", None)
    if tables["wav.scp"] is None and tables["feats.scp"] is None:
        faults.add("missing file", "wav.scp (or feats.scp)")
    if tables["text"] is None and need_text:
        faults.add("missing file", "text")
    speakers = _speakers(tables, faults)
    segments = _segments(tables, faults)
    audio = {name: _audio_of(name, value, folder, allow_pipes, faults)
             for name, value in (tables["wav.scp"] or {}).items() if value}  # fmt: skip
    known: dict = {}  # archives, by what the table calls them
    feats = {name: _feats_of(name, value, folder, known, faults) for name, value in (tables["feats.scp"] or {}).items()}
    genders = _genders(tables, speakers, faults)
    present = {
        "utt2spk": speakers if tables["utt2spk"] is not None or tables["spk2utt"] is not None else None,
        "segments": segments,
        "wav.scp": audio if tables["wav.scp"] is not None and segments is None else None,
        "text": tables["text"],
        "feats.scp": feats if tables["feats.scp"] is not None else None,
    }
    utterances = []
    for name in sorted(_common({key: set(table) for key, table in present.items() if table is not None}, faults)):
        recording, start, end = (segments or {}).get(name, (None, None, None))
        speaker, words = speakers.get(name, name), (tables["text"] or {}).get(name, "").split()
        utterances.append(Utterance(name, speaker, tuple(words), audio.get(recording or name), recording, start, end,
                                    genders.get(speaker), feats.get(name)))  # fmt: skip
    return DataDir(folder, tuple(utterances)), faults


def _common(present: dict[str, set[str]], faults: _Faults) -> set[str]:
    """Names that every table present holds; a fault for each name that some lack."""
    every = set().union(*present.values())
    for name, keys in present.items():
        for missing in sorted(every - keys):
            holder = next(other for other, theirs in present.items() if missing in theirs)
            faults.add(f"utterance missing in {name}", f"{missing} (it is in {holder})")
    return set.intersection(*present.values()) if present else set()


def _speakers(tables: dict, faults: _Faults) -> dict[str, str]:
    """``utterance -> speaker`` from utt2spk, checked against spk2utt, or from spk2utt alone."""
    given, inverse = tables["utt2spk"], tables["spk2utt"]
    if given is None and inverse is None:
        faults.add("missing file", "utt2spk")
        return {}
    turned: dict[str, str] = {}
    for speaker, names in (inverse or {}).items():
        for name in names.split():
            if name in turned:
                faults.add("duplicate key", f"spk2utt: {name} belongs to {turned[name]} and {speaker}")
            turned.setdefault(name, speaker)
    if given is None:
        return turned
    for name, speaker in given.items():
        if len(speaker.split()) > 1:
            faults.add("more than one speaker", f"utt2spk: {name}: {speaker}")
    if inverse is not None:
        for name in sorted(set(given) | set(turned)):
            one, other = given.get(name), turned.get(name)
            if one != other:
                words = f"{name}: utt2spk says {one or 'nothing'}, spk2utt {other or 'nothing'}"
                faults.add("spk2utt disagrees with utt2spk", words)
    return given


def _segments(tables: dict, faults: _Faults) -> dict[str, tuple[str, float, float | None]] | None:
    if tables["segments"] is None or tables["wav.scp"] is None and tables["feats.scp"] is not None:
        return None  # where there are features alone, they are per utterance already: there is nothing to cut
    segments = {}
    for name, value in tables["segments"].items():
        try:
            recording, start, end = value.split()
            start, end = real(start), real(end)
        except ValueError:
            faults.add("bad segment", f"segments: {name}: {brief(value)} (expected: recording start end)")
            continue
        to_end = end == -1
        if start < 0 or not (to_end or start < end):
            faults.add("bad segment", f"segments: {name}: from {start:g} to {end:g} s (expected 0 <= start < end)")
        if recording not in (tables["wav.scp"] or {}):
            faults.add("recording missing in wav.scp", f"{recording} (segment {name})")
            continue
        segments[name] = (recording, start, None if to_end else end)
    return segments


def _genders(tables: dict, speakers: dict[str, str], faults: _Faults) -> dict[str, str]:
    genders = tables["spk2gender"] or {}
    for speaker, gender in genders.items():
        if gender not in ("m", "f"):
            faults.add("bad gender", f"spk2gender: {speaker}: {gender!r} (expected m or f)")
    if tables["spk2gender"] is not None:
        for speaker in sorted(set(speakers.values()) - set(genders)):
            faults.add("speaker missing in spk2gender", speaker)
    return genders


def resolve(value: str, folder: Path) -> str:
    """A path of a table of ``folder``: as it stands if absolute or there from here, else inside ``folder``."""
    return value if os.path.exists(value) or not os.path.exists(folder / value) else str(folder / value)


def _audio_of(name: str, value: str, folder: Path, allow_pipes: bool, faults: _Faults) -> str:
    if is_pipe(value):
        if not allow_pipes:
            faults.add("pipe in wav.scp", f"wav.scp: {name}: {value!r} is run with --allow-pipes true only")
        return value
    path = resolve(value, folder)
    if not os.path.isfile(path):
        faults.add("audio file missing", f"wav.scp: {name}: {value}")
    return path


def _feats_of(name: str, value: str, folder: Path, known: dict, faults: _Faults) -> str:
    place = place_of(value)
    if "|" in value:
        faults.add("pipe in feats.scp", f"{name}: {brief(value)}")
    elif place is None:
        faults.add("bad feats.scp", f"{name}: {brief(value)} (expected archive:offset)")
    else:
        from margo.formats.features import find_archive

        if place[0] not in known:
            known[place[0]] = find_archive(place[0], folder, name, place[1])
        if known[place[0]] is not None:
            return f"{known[place[0]]}:{place[1]}"
        faults.add("feature archive missing", f"feats.scp: {name}: {value}")
    return value

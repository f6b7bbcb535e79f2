"""Manifests of lhotse to a Kaldi data folder: recordings with supervisions, or cuts (extra lhotse).

The audio stays where it is. What lhotse would only do while it loads (changes of speed, mixtures of cuts, padding) is
refused: save such cuts as audio first.

Example: local/lhotse_data.py --recordings recordings.jsonl.gz --supervisions supervisions.jsonl.gz --out data/mine
"""

from dataclasses import dataclass
from pathlib import Path

from margo.runtime.step import Knobs, knob, main


@dataclass(frozen=True)
class Options(Knobs):
    recordings: Path | None = knob(None, "manifest of recordings (.jsonl, .jsonl.gz)")
    supervisions: Path | None = knob(None, "manifest of what is said in them")
    cuts: Path | None = knob(None, "manifest of cuts, instead of the two")
    out: Path = knob(help="data folder to write")

    def faults(self):
        pair = bool(self.recordings), bool(self.supervisions)
        fits = not any(pair) if self.cuts else all(pair)
        return super().faults() + ["expected --recordings and --supervisions, or --cuts"] * (not fits)


def run(options: Options, step):
    from lhotse.serialization import load_manifest_lazy_or_eager

    from margo.errors import refuse
    from margo.formats import datadir
    from margo.formats.reading import reading

    manifests = {}
    for path in filter(None, (options.recordings, options.supervisions, options.cuts)):
        with reading(step.input_file(path), "a manifest of lhotse"):
            manifests[path] = list(load_manifest_lazy_or_eager(path))
    if options.cuts:
        parts, faults = of_cuts(manifests[options.cuts])
    else:
        parts, faults = of_recordings(manifests[options.recordings], manifests[options.supervisions])
    rows = [row for part in parts for row in row_of(*part, (options.cuts or options.recordings).parent, faults)]
    refuse(faults, f"{options.out}: not written", most=20)
    datadir.write(options.out, rows)
    for path in sorted(options.out.iterdir()):
        if path.name in datadir.TABLES:
            step.output(path.name)
    step.say(f"lhotse_data: {len(rows)} utterances of {len({row.speaker for row in rows})} speakers")


def of_recordings(recordings: list, supervisions: list) -> tuple[list[tuple], list[str]]:
    """``(recording, supervision, its start)`` of all, and faults."""
    known = {recording.id: recording for recording in recordings}
    faults = [f"{each.id}: no recording {each.recording_id}" for each in supervisions if each.recording_id not in known]
    return [(known[each.recording_id], each, each.start) for each in supervisions if each.recording_id in known], faults


def of_cuts(cuts: list) -> tuple[list[tuple], list[str]]:
    parts, faults = [], []
    for cut in cuts:
        if getattr(cut, "recording", None) is None:
            faults.append(f"{cut.id}: a {type(cut).__name__}, expected a cut of one recording")
        else:
            parts += [(cut.recording, each, cut.start + each.start) for each in cut.supervisions]
    return parts, faults


def row_of(recording, supervision, start: float, folder: Path, faults: list[str]) -> list:
    """The utterance of a supervision; none, and a fault more, where it cannot be had as it is."""
    from margo.formats.datadir import Utterance

    if recording.transforms:
        faults.append(f"{supervision.id}: {recording.id} is changed while it loads, expected audio as it is")
    if len(recording.sources) != 1 or recording.sources[0].type not in ("file", "command"):
        faults.append(f"{supervision.id}: {recording.id} is {len(recording.sources)} sources "
                      f"({recording.sources[0].type}), expected one file or command")  # fmt: skip
        return []
    if not (supervision.text or "").split():
        faults.append(f"{supervision.id}: no text")
        return []
    source = recording.sources[0]
    audio = f"{source.source} |" if source.type == "command" else str(place_of(source.source, folder))
    end = min(start + supervision.duration, recording.duration)
    return [Utterance("_".join(supervision.id.split()), supervision.speaker or supervision.id,
                      tuple(supervision.text.split()), audio, recording.id, max(start, 0.0), end,
                      {"male": "m", "female": "f"}.get((supervision.gender or "").lower()))]  # fmt: skip


def place_of(source: str, folder: Path) -> Path:
    """From the current directory, as lhotse has it, else from the manifest's."""
    return (folder / source if not Path(source).exists() and (folder / source).exists() else Path(source)).resolve()


if __name__ == "__main__":
    main(__doc__, Options, run)

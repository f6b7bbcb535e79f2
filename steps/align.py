"""Align recordings with what was said in them: when each word begins and ends, and how sure that is.

A recording and its words, in quotes or in a text file: the words are printed, doubtful ones first, and written to
--textgrid for Praat and --eaf for ELAN. A folder of recordings, each with its words in a file of the same name (.lab or
.txt; or .TextGrid or .eaf, each label of a tier in its own time), as for other aligners: a TextGrid each below --out,
and doubtful.csv, the least certain first; tiers that came with a recording are kept. The confidence of a word or unit
is its posterior with all that the grammar allows as competition, averaged over its frames. A boundary's time is the
mean of its posterior over all paths through the units, its deviation that of the same.

With --data, a feature folder: ali.ark/.scp (state of each frame on the best path, an index into the model's pool),
words in ali.ctm, units in phones.ctm, boundaries between units with their deviations in boundaries.csv;
durations.json says how long each word's tokens are.

Example: steps/align.py --model exp/tidigits/ml_1 rec.wav "six five two" --textgrid rec.TextGrid
"""

from dataclasses import dataclass
from pathlib import Path

from margo.knobs import Knobs, knob
from margo.runtime.step import Parallel, main
from margo.tasks.aligning import PlacingOptions

OF_PEOPLE = {"data": False}


@dataclass(frozen=True)
class Options(PlacingOptions, Parallel, Knobs):
    model: Path = knob(help="folder of the model")
    recording: tuple[str, ...] = knob((), positional=True, group="files", help="a recording and its words, or a text "
                                      "file with them; or a folder of recordings with files of words")  # fmt: skip
    data: Path | None = knob(None, "feature folder, instead of recordings")
    out: Path | None = knob(None, "folder to write, of --data and of a folder of recordings")
    times: str = knob("mean", "of boundaries: the mean over all paths, or those of the best path", ("mean", "path"))
    correction: Path | None = knob(None, "folder of train_correction", needs={"times": ("mean",)})
    scale: float | None = knob(None, "acoustic scale of the confidences (default: the model's, else 0.1)", above=0,
                               below=float("inf"))  # fmt: skip
    textgrid: str = knob("", "of one recording, the TextGrid to write; with --data, true: one for each utterance")
    eaf: str = knob("", "of one recording, the ELAN file to write; of a folder, true: one for each", needs=OF_PEOPLE)
    short: bool = knob(False, "write TextGrids in Praat's short form", needs=OF_PEOPLE)
    tier: str = knob("", "of words in TextGrid and ELAN files, the tier (the first one)", needs=OF_PEOPLE)
    doubtful: float = knob(0.5, "words with less confidence are listed", least=0, most=1)
    channel: int | None = knob(None, "of several channels take this one, counted from 0", least=0, needs=OF_PEOPLE)

    def faults(self):
        faults = super().faults()
        if (self.data is None) == (not self.recording) or len(self.recording) > 2:
            faults.append("expected either a recording and its words (in quotes), a folder of recordings, or --data")
        if self.data and (not self.out or self.textgrid not in ("", "true", "false")):
            faults.append("--data needs --out; its --textgrid is true or false")
        return faults


def run(options: Options, step):
    from margo.errors import MargoError

    if options.data:
        return align_corpus(options, step)
    whole = Path(options.recording[0])
    if not whole.is_dir():
        return align_one(options, step)
    if len(options.recording) > 1 or not options.out or options.textgrid:
        raise MargoError(f"{whole}: a folder of recordings needs --out, and neither words nor --textgrid")
    return align_folder(options, step)


def align_one(options: Options, step):
    from os.path import isfile  # which takes texts too long for a name

    from margo.errors import MargoError
    from margo.formats.reading import read_text
    from margo.tasks import aligning

    audio, *words = options.recording
    if words and isfile(words[0]):
        words = [read_text(words[0])]
    done = aligning.timed(recogniser(options, step), options.channel, aligning.beside(audio, options.tier, *words[:1]))
    if isinstance(done, str):
        raise MargoError(done)
    aligning.write_tiers(done, options.textgrid or None, options.eaf or None, options.short)
    for sure, _, start, end, word in aligning.doubtful([done], options.doubtful):
        print(f"doubtful: {start:.3f} {end:.3f} {word} {sure:.4f}")
    for word in done.words:
        print(f"{word['start']:.3f} {word['end']:.3f} {word['word']} {word['confidence']:.4f}")


def align_folder(options: Options, step):
    from functools import partial

    from margo.errors import MargoError
    from margo.runtime.parallel import map_chunks
    from margo.tasks import aligning

    folder = Path(options.recording[0])
    said, faults = aligning.recordings(folder, options.tier)
    function, done = partial(aligning.timed, recogniser(options, step), options.channel), []
    with step.place() as where:
        for each in step.progress(map_chunks(function, said, where), len(said), "align"):
            if isinstance(each, str):
                faults.append(each)
                continue
            place = each.said.audio.relative_to(folder)
            try:
                grid = step.output(str(place.with_suffix(aligning.GRID)))
                elan = step.output(str(place.with_suffix(aligning.ELAN))) if options.eaf == "true" else None
                aligning.write_tiers(each, grid, elan, options.short)
                done.append(each)
            except MargoError as error:
                faults.append(str(error))
    rows = aligning.doubtful(done, options.doubtful)
    write_doubtful(step.output("doubtful.csv"), rows)
    words = sum(len(each.words) for each in done)
    step.say(f"align: {len(done)} recordings, {words} words, {len(rows)} of them doubtful (doubtful.csv)")
    if faults:
        raise MargoError(f"{len(faults)} recordings were not aligned:\n" + "\n".join(faults))


def write_doubtful(path, rows: list[tuple]) -> None:
    import csv

    from margo.formats.atomic import atomic

    with atomic(path) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("confidence", "recording", "start", "end", "word"))
        for sure, name, start, end, word in rows:
            writer.writerow((f"{sure:.4f}", name, f"{start:.3f}", f"{end:.3f}", word))


def recogniser(options: Options, step):
    from margo.tasks.recognising import Placing, Recogniser

    step.input(options.model, made_by="train_ml", current=False)  # what it was trained on may have moved on
    placed = options.boundary_scale if options.times == "mean" else None
    return Recogniser(options.model, options.scale, placing=Placing(placed, correction_for(options, step)))


def correction_for(options: Options, step):
    from margo.formats.boundary_table import read_correction

    return read_correction(step.input(options.correction, made_by="train_correction")) if options.correction else None


def align_corpus(options: Options, step):
    from functools import partial

    from margo.formats.atomic import file_name, write_json
    from margo.formats.boundary_table import TABLE, write_boundaries
    from margo.formats.ctm import write_ctm
    from margo.formats.features import write_ark
    from margo.runtime.parallel import map_chunks
    from margo.tasks import passes, speech
    from margo.tasks.recognising import confidence_of

    step.input(options.model, made_by="train_ml")
    data = speech.read(step.input(options.data, made_by="make_mfcc"))
    hmms = passes.model_for(options.model, data)
    correction = correction_for(options, step)
    placed = options.boundary_scale if options.times == "mean" else None
    scale = confidence_of(hmms, options.model, options.scale)[0]
    function = partial(passes.alignments, hmms, scale, boundary_scale=placed)
    done, dropped = [], []
    with step.place() as where:
        for part in step.progress(map_chunks(function, data.chunks, where), len(data.chunks), "align"):
            done += part[0]
            dropped += part[1]
    speech.check_dropped(dropped, data, step)

    write_ark(step.output("ali.ark"), step.output("ali.scp"), ((a.name, a.states) for a in done))
    write_ctm(step.output("ali.ctm"), passes.times_of(data.features, done, "words", correction))
    write_ctm(step.output("phones.ctm"), passes.times_of(data.features, done, "units", correction))
    if placed:
        rows = (row for each in done for row in passes.boundary_rows(data.features, each, correction))
        write_boundaries(step.output(TABLE), rows)
    write_json(step.output("durations.json"), {"words": passes.durations(hmms, data.features, done)})
    if options.textgrid == "true":
        for utterance in done:
            path = step.output(f"textgrid/{file_name(utterance.name)}.TextGrid")
            passes.write_grid(path, data.features, utterance, correction)
    frames = sum(len(utterance.states) for utterance in done)
    score = sum(utterance.score for utterance in done) / max(frames, 1)
    step.say(f"align: {len(done)} utterances, {frames} frames, {score:.4f} nats a frame")


if __name__ == "__main__":
    main(__doc__, Options, run)

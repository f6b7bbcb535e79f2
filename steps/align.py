"""Align utterances with their transcripts: ali.ark/.scp (state of each frame), words in ali.ctm, units in phones.ctm.

States are indices into the model's pool. A boundary's time is midway between the centres of two frames' windows. A
word's confidence is its posterior with all that the grammar allows as competition, averaged over its frames.
durations.json says how long each word's tokens are. --textgrid writes a Praat file for each utterance too.

Example: steps/align.py --model exp/tidigits/ml_1 --data exp/tidigits/mfcc/train --out exp/tidigits/ali/ml_1
"""

from dataclasses import dataclass
from pathlib import Path

from margo.knobs import Knobs, knob
from margo.runtime.step import Parallel, main


@dataclass(frozen=True)
class Options(Parallel, Knobs):
    model: Path = knob(help="folder of the model")
    data: Path = knob(help="feature folder")
    out: Path = knob(help="folder to write")
    scale: float = knob(0.1, "acoustic scale of the confidences", above=0, below=float("inf"))
    textgrid: bool = knob(False, "write textgrid/<utterance>.TextGrid too")


def run(options: Options, step):
    from functools import partial

    from margo.formats.atomic import file_name, write_json
    from margo.formats.ctm import write_ctm
    from margo.formats.features import write_ark
    from margo.runtime.parallel import map_chunks
    from margo.tasks import passes, speech

    step.input(options.model, made_by="train_ml")
    data = speech.read(step.input(options.data, made_by="make_mfcc"))
    hmms = passes.model_for(options.model, data)
    function = partial(passes.alignments, hmms, options.scale)
    done, dropped = [], []
    with step.place() as where:
        for part in step.progress(map_chunks(function, data.chunks, where), len(data.chunks), "align"):
            done += part[0]
            dropped += part[1]
    speech.check_dropped(dropped, data, step)

    write_ark(step.output("ali.ark"), step.output("ali.scp"), ((a.name, a.states) for a in done))
    write_ctm(step.output("ali.ctm"), passes.times_of(data.features, done, "words"))
    write_ctm(step.output("phones.ctm"), passes.times_of(data.features, done, "units"))
    write_json(step.output("durations.json"), {"words": passes.durations(hmms, data.features, done)})
    if options.textgrid:
        for utterance in done:
            path = step.output(f"textgrid/{file_name(utterance.name)}.TextGrid")
            passes.write_grid(path, data.features, utterance)
    frames = sum(len(utterance.states) for utterance in done)
    score = sum(utterance.score for utterance in done) / max(frames, 1)
    step.say(f"align: {len(done)} utterances, {frames} frames, {score:.4f} nats a frame")


if __name__ == "__main__":
    main(__doc__, Options, run)

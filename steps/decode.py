"""Recognise the utterances of one or more feature folders with a model; writes OUT/<set>/hyp.

A set is named after its feature folder. The model's own grammar is used; scores are log-likelihoods of the best path.

Example: steps/decode.py --model exp/tidigits/mce_1 --data exp/tidigits/mfcc/dev exp/tidigits/mfcc/test \
--out exp/tidigits/decode/mce_1
"""

from dataclasses import dataclass
from pathlib import Path

from margo.runtime.step import Parallel, knob, main


@dataclass(frozen=True)
class Options(Parallel):
    model: Path = knob(help="folder of the model")
    data: tuple[Path, ...] = knob(help="feature folders")
    out: Path = knob(help="folder to write")
    beam: float = knob(0.0, "give up states this far under the best of their frame; 0 searches everything", least=0)


def run(options: Options, step):
    from functools import partial

    from margo.formats.atomic import write_text
    from margo.formats.transcripts import write_transcripts
    from margo.runtime.parallel import map_chunks
    from margo.tasks import passes, speech

    step.input(options.model, made_by="train_ml")
    with step.place() as where:
        for folder in options.data:
            data = speech.read(step.input(folder, made_by="make_mfcc"))
            hmms = passes.model_for(options.model, data)
            function = partial(passes.decode, hmms, options.beam or float("inf"))
            parts = step.progress(map_chunks(function, data.chunks, where), len(data.chunks), f"decode {folder.name}")
            rows = [row for part in parts for row in part]
            lost = [(name, "no path fits its frames") for name, words, _, _ in rows if words is None]
            speech.check_dropped(lost, data, step)
            write_transcripts(step.output(f"{folder.name}/hyp"), {name: words or () for name, words, _, _ in rows})
            lines = [f"{name} {score:.4f} {frames}\n" for name, _, score, frames in rows]
            write_text(step.output(f"{folder.name}/scores"), "".join(lines))
            step.say(f"decode: {options.model.name} on {folder.name}: {len(rows)} utterances")


if __name__ == "__main__":
    main(__doc__, Options, run)

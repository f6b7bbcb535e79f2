"""Transcribe audio files with a trained model: a line a file, or --ctm times, or --json everything.

The model's folder holds all that is needed: how features are made, the words and the grammar. Of silence, and of
sounds held longer than any word is, nothing is printed. A file named - is standard input; recordings of more than a
minute are taken in pieces, cut where they are quiet.

Example: steps/recognise.py --model exp/tidigits/mce_1 one.wav two.wav --ctm true
"""

from dataclasses import dataclass
from pathlib import Path

from margo.runtime.step import Knobs, knob, main


@dataclass(frozen=True)
class Options(Knobs):
    model: Path = knob(help="folder of the model")
    files: tuple[Path, ...] = knob(positional=True, help="audio files; - reads one from standard input")
    ctm: bool = knob(False, "print word times and confidences, CTM form", group="output")
    json: bool = knob(False, "print a JSON object a file", group="output")
    scale: float = knob(0.1, "acoustic scale of the confidences", above=0)
    channel: int | None = knob(None, "of files with several channels take this one, counted from 0", least=0)

    def faults(self):
        return super().faults() + ["--ctm and --json: expected one of them"] * (self.ctm and self.json)


def run(options: Options, step):
    import json
    import sys

    from margo.errors import MargoError
    from margo.formats.ctm import TimedWord, ctm_line
    from margo.tasks.recognising import Recogniser

    step.input(options.model, made_by="train_ml", current=False)  # what it was trained on may have moved on
    recogniser = Recogniser(options.model, options.scale)
    failed = []
    for file in options.files:
        try:
            recording = sys.stdin.buffer.read() if str(file) == "-" else file
            result = recogniser.transcribe(recording, options.channel)
        except MargoError as error:
            failed.append(str(error))
            continue
        if options.json:
            print(json.dumps({"file": str(file), **result}))
        elif options.ctm:
            name = "_".join(file.stem.split())  # a CTM's fields are told apart by white space
            for word in result["words"]:
                print(ctm_line(TimedWord(name, word["start"], word["duration"], word["word"], word["confidence"])))
        else:
            print(f"{file}: {result['text']}".rstrip(" "))
    if failed:
        raise MargoError("\n".join(failed))


if __name__ == "__main__":
    main(__doc__, Options, run)

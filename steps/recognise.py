"""Transcribe audio files with a trained model: a line a file, or --ctm times, or --json everything.

The model's folder holds all that is needed: how features are made, the words and the grammar. Of silence, and of
sounds held longer than any word is, nothing is printed. A file named - is standard input; recordings of more than a
minute are taken in pieces, cut where they are quiet. With --live true, - is a stream of 16-bit samples at the model's
rate, and mic the microphone (extra live): a line whenever somebody pauses, and what is heard until then meanwhile.

Example: steps/recognise.py --model exp/tidigits/mce_1 one.wav two.wav --ctm true
"""

from dataclasses import dataclass
from pathlib import Path

from margo.runtime.step import Knobs, knob, main


@dataclass(frozen=True)
class Options(Knobs):
    model: Path = knob(help="folder of the model")
    files: tuple[Path, ...] = knob(positional=True, help="audio files; - reads one from standard input")
    live: bool = knob(False, "recognise while it is said: FILES is - (a stream) or mic (the microphone)")
    ctm: bool = knob(False, "print word times and confidences, CTM form", group="output")
    json: bool = knob(False, "print a JSON object a file", group="output")
    scale: float | None = knob(None, "acoustic scale of the confidences (default: the model's, else 0.1)", above=0)
    lm: Path | None = knob(None, "recognise by this ARPA file, JSGF grammar or HTK word network, not the model's own")
    channel: int | None = knob(None, "of files with several channels take this one, counted from 0", least=0)

    def faults(self):
        faults = ["--ctm and --json: expected one of them"] * (self.ctm and self.json)
        if self.live and (self.ctm or len(self.files) != 1 or str(self.files[0]) not in ("-", "mic")):
            faults.append("--live: expected - or mic, and no --ctm")
        return super().faults() + faults


def run(options: Options, step):
    import json
    import sys

    from margo.errors import MargoError
    from margo.formats.ctm import TimedWord, ctm_line
    from margo.tasks.recognising import Recogniser

    step.input(options.model, made_by="train_ml", current=False)  # what it was trained on may have moved on
    recogniser = Recogniser(options.model, options.scale, options.lm)
    if options.live:
        live(options, recogniser)
        return
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


def live(options: Options, recogniser):
    """Words as they come; what is not settled goes to standard error, or to --json's lines marked so."""
    import json
    import sys

    from margo.tasks.listening import listen, microphone_blocks, raw_blocks

    rate = recogniser.options.sample_rate or 16000
    blocks = microphone_blocks(rate) if str(options.files[0]) == "mic" else raw_blocks(sys.stdin.buffer, rate)
    for settled, words in listen(recogniser, blocks, rate):
        text = " ".join(word["word"] for word in words)
        if options.json:
            print(json.dumps({"settled": settled, "text": text, "words": words}), flush=True)
        elif settled:
            print(f"{words[0]['start']:.2f} {text}", flush=True)
        elif sys.stderr.isatty():
            print(f"\r\033[K{text} ...", end="\r", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main(__doc__, Options, run)

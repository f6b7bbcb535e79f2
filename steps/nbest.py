"""The N best distinct strings of each utterance, with exact scores, as nbest.jsonl.

Example: steps/nbest.py --model exp/tidigits/ml_1 --data exp/tidigits/mfcc/train --n 5 --out exp/tidigits/nbest/ml_1
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
    n: int = knob(5, "strings an utterance", least=1)


def run(options: Options, step):
    import json
    from functools import partial

    from margo.formats.atomic import atomic
    from margo.runtime.parallel import map_chunks
    from margo.tasks import passes, speech

    step.input(options.model, made_by="train_ml")
    data = speech.read(step.input(options.data, made_by="make_mfcc"))
    function = partial(passes.nbest_lists, passes.model_for(options.model, data), options.n)
    without = []
    with step.place() as where, atomic(step.output("nbest.jsonl")) as file:
        for rows in step.progress(map_chunks(function, data.chunks, where), len(data.chunks), "N-best"):
            file.writelines(json.dumps(row) + "\n" for row in rows)
            without += [(row["utt"], "no string fits its frames, or the memory") for row in rows if not row["hyps"]]
    speech.check_dropped(without, data, step)
    step.say(f"nbest: {len(data.items)} utterances, {options.n} strings each")


if __name__ == "__main__":
    main(__doc__, Options, run)

"""The N best distinct strings of each utterance, with exact scores, as nbest.jsonl.

Example: steps/nbest.py --model exp/tidigits/ml_1 --data exp/tidigits/mfcc/train --n 5 --out exp/tidigits/nbest/ml_1
"""

from dataclasses import dataclass
from pathlib import Path

from margo.runtime.step import Parallel, main, option


@dataclass(frozen=True)
class Options(Parallel):
    model: Path = option(help="folder of the model")
    data: Path = option(help="feature folder")
    out: Path = option(help="folder to write")
    n: int = option(5, help="strings an utterance")

    def __post_init__(self):
        if self.n < 1:
            raise ValueError(f"--n is {self.n}, expected 1 or more")


def run(options: Options, step):
    import json
    from functools import partial

    from margo.formats.atomic import atomic
    from margo.runtime.parallel import map_chunks
    from margo.tasks import passes, speech

    step.input(options.model, made_by="train_ml")
    data = speech.read(step.input(options.data, made_by="make_mfcc"))
    function = partial(passes.nbest_lists, passes.model_for(options.model, data), options.n)
    with step.place() as where, atomic(step.output("nbest.jsonl")) as file:
        for rows in step.progress(map_chunks(function, data.chunks, where), len(data.chunks), "N-best"):
            file.writelines(json.dumps(row) + "\n" for row in rows)
    step.say(f"nbest: {len(data.items)} utterances, {options.n} strings each")


if __name__ == "__main__":
    main(__doc__, Options, run)

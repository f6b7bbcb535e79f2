"""Let word kernels decide between the two likeliest words of a place in connected speech ([L04] 7), and score that.

The N best strings of an utterance that differ from the best in one word make a network with a rival for some places.
Where a place's two words are a pair of the kernels, the kernel decides on the frames that the best path gives the
place; all other words stay as they are. Writes <system>_<mixtures>/<set> for the model alone and with kernels.

Example: steps/rescore_words.py --model exp/spelling/ml_2 --kernel exp/spelling/kernel/svm-llr-mean_1 \
--data exp/spelling/mfcc/test --out exp/spelling/score/rescored
"""

from dataclasses import dataclass
from pathlib import Path

from margo.runtime.step import Parallel, Seeded, knob, main


@dataclass(frozen=True)
class Options(Parallel, Seeded):
    model: Path = knob(help="folder of the model that recognises")
    kernel: Path = knob(help="folder of train_word_kernel, of words cut out of such speech")
    data: Path = knob(help="feature folder, named train, dev or test")
    out: Path = knob(help="folder to write")
    n: int = knob(20, "strings an utterance", least=2)
    within: float = knob(0.0, "a rival counts if its string scores at most this much less; 0: any (nats)", least=0)
    task: str = knob("connected", "name of the task in tables of results")


def run(options: Options, step):
    from functools import partial

    from margo.runtime.parallel import map_chunks
    from margo.tasks import passes, speech, word_kernels
    from margo.tasks.scoring import score_transcripts

    step.input(options.model, made_by="train_ml")
    folder = step.input(options.kernel, made_by="train_word_kernel")
    data = speech.read(step.input(options.data, made_by="make_mfcc"))
    hmms, letters = passes.model_for(options.model, data), passes.model_for(folder, data)
    meta, pairs = word_kernels.read_pairs(folder, len(letters.words))
    rescore = partial(word_kernels.rescore_chunk, hmms, letters, meta, pairs, options.n, options.within)
    with step.place() as where:
        found = [row for part in map_chunks(rescore, data.chunks, where) for row in part]
    mixtures, space = int(hmms.pool.sizes.max()), meta["space"]
    said = {item.name: item.words for item in data.items}
    systems = {"ml": 1, f"ml-svm-{space}-init": 2, f"ml-svm-{space}": 3}
    for system, column in systems.items():
        target = f"{system}_{mixtures}/{options.data.name}"
        facts, written = score_transcripts(
            step.out / target, said, {row[0]: row[column] for row in found}, system=system, mixtures=mixtures,
            set=options.data.name, speakers={item.name: item.speaker for item in data.items}, seed=options.seed,
            extra={"task": options.task},
        )  # fmt: skip
        for file in written:
            step.output(f"{target}/{file}")
        step.say(f"{system}_{mixtures} {options.data.name}: %WER {facts['words'].percent:.2f} "
                 f"[ {facts['words'].errors} / {facts['words'].total} ]")  # fmt: skip
    asked = sum(row[4] for row in found)
    step.say(f"{asked} places had two words of a pair; {sum(row[1] != row[3] for row in found)} strings changed")


if __name__ == "__main__":
    main(__doc__, Options, run)

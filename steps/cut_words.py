"""Cut single words out of connected speech by alignment: a feature folder of one word an utterance.

Each utterance is aligned with its transcript; the frames of every word of --words (all by default) become an utterance
of their own, named after the old one and the word's place in it. Deltas are those of the whole utterance.

Example: steps/cut_words.py --model exp/spelling/ml_2 --data exp/spelling/mfcc/test --words B C D \
--out exp/spelling/cut/test
"""

from dataclasses import dataclass
from pathlib import Path

from margo.runtime.step import Parallel, knob, main


@dataclass(frozen=True)
class Options(Parallel):
    model: Path = knob(help="folder of the model that aligns")
    data: Path = knob(help="feature folder of connected words")
    out: Path = knob(help="folder to write")
    words: tuple[str, ...] = knob((), "words to cut out; none is all")
    least: int = knob(1, "frames that a token has at least; shorter ones are left out and counted", least=1)


def run(options: Options, step):
    from margo.errors import MargoError
    from margo.formats.atomic import write_json
    from margo.formats.features import RECORD, write_ark
    from margo.formats.reading import read_json
    from margo.tasks import passes, speech, word_kernels

    step.input(options.model, made_by="train_ml")
    data = speech.read(step.input(options.data, made_by="make_mfcc"))
    hmms = passes.model_for(options.model, data)
    unknown = sorted({*options.words} - {*hmms.words})
    if unknown:
        raise MargoError(f"--words: {' '.join(unknown)}: the model has no such words (it has {' '.join(hmms.words)})")
    with step.place() as where:
        tokens, dropped = word_kernels.cut(hmms, data, options.words or hmms.words, where)
    speech.check_dropped(dropped, data, step)
    kept = [token for token in tokens if len(token.x) >= options.least]
    if not kept:
        raise MargoError(f"{options.data}: no token of {' '.join(options.words)} has {options.least} frames")
    write_ark(step.output("feats.ark"), step.output("feats.scp"), ((token.name, token.x) for token in kept))
    word_kernels.write_tables(step, kept)
    if (options.data / RECORD).is_file():
        write_json(step.output(RECORD), read_json(options.data / RECORD))
    step.say(f"{len(kept)} tokens of {len({token.word for token in kept})} words, {len({t.speaker for t in kept})} "
             f"speakers; {len(tokens) - len(kept)} shorter than {options.least} frames left out")  # fmt: skip


if __name__ == "__main__":
    main(__doc__, Options, run)

"""Estimate a language model from transcripts and write it as an ARPA file, OUT/lm.arpa, for train_ml --lm and others.

Words are those of the transcripts, or with --lexicon those of a dictionary: transcripts that have others are left out
and told. With --test the model's perplexity on other transcripts is printed: the end of a string counts as a word,
words that the model does not know are left out and counted.

Example: steps/make_lm.py --data exp/an4/data/train --order 3 --smoothing kneser-ney --out exp/an4/lm
"""

from dataclasses import dataclass
from pathlib import Path

from margo.runtime.step import Knobs, knob, main


@dataclass(frozen=True)
class Options(Knobs):
    data: Path = knob(help="folder with the transcripts (text)")
    order: int = knob(2, "words of its longest n-grams", least=1, most=3)
    smoothing: str = knob("kneser-ney", "what unseen words get", ("kneser-ney", "witten-bell"))
    lexicon: Path | None = knob(None, "dictionary whose words it is of: Kaldi's, HTK's or CMU's")
    test: Path | None = knob(None, "folder with transcripts to measure the perplexity on")
    out: Path = knob(help="folder to write")


def run(options: Options, step):
    from margo.errors import MargoError
    from margo.formats.arpa import write_arpa
    from margo.formats.lexicon import read_lexicon
    from margo.formats.transcripts import read_transcripts
    from margo.model.ngram import SMOOTHINGS, perplexity

    strings = [words for words in read_transcripts(step.input_file(options.data / "text")).values() if words]
    known = {word for words in strings for word in words}
    if options.lexicon:
        known = {*read_lexicon(step.input_file(options.lexicon))[0]}
    used = [words for words in strings if known.issuperset(words)]
    if not used:
        raise MargoError(f"{options.data / 'text'}: no transcript whose words are all known")
    if len(used) < len(strings):
        others = sorted({word for words in strings for word in words} - known)
        named = f"{' '.join(others[:10])}{' ...' * (len(others) > 10)}"
        step.say(f"make_lm: {len(strings) - len(used)} of {len(strings)} transcripts left out: {len(others)} words are "
                 f"not in {options.lexicon}: {named}")  # fmt: skip
    ngram = SMOOTHINGS[options.smoothing](used, sorted(known), options.order)
    write_arpa(step.output("lm.arpa"), ngram)
    sizes = [sum(len(key) == length for key in ngram.log_probs) for length in range(1, options.order + 1)]
    step.say(f"make_lm: {' + '.join(map(str, sizes))} n-grams of {len(used)} transcripts")
    if options.test:
        spoken = read_transcripts(step.input_file(options.test / "text")).values()
        found, words, unknown = perplexity(ngram, spoken)
        step.extra["perplexity"] = {"value": found, "words": words, "unknown": unknown}
        step.say(f"make_lm: perplexity {found:.2f} of {words} words and ends, {unknown} words unknown")


if __name__ == "__main__":
    main(__doc__, Options, run)

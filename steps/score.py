"""Score hypotheses against transcripts: word and string error rates, intervals, alignments, confusions.

Costs and ties of the alignment are sclite's (substitution 4, insertion and deletion 3; a substitution is preferred over
an insertion, an insertion over a deletion, from the end). An utterance without a hypothesis counts as deleted whole and
is named; a hypothesis without a transcript is refused.

Example: steps/score.py --hyp exp/tidigits/decode/ml_1/test --data exp/tidigits/mfcc/test
"""

from dataclasses import dataclass
from pathlib import Path

from margo.formats.reading import file_in
from margo.runtime.step import Seeded, knob, main


@dataclass(frozen=True)
class Options(Seeded):
    hyp: Path = knob(help="folder of a decoding, with the file hyp; or such a file")
    data: Path = knob(help="data folder, with the files text and utt2spk; or a file like text")
    out: Path | None = knob(None, "folder named score to write, score.json goes beside it (default: HYP/score)")
    map: Path | None = knob(None, "TOML file with a table that merges symbols of both sides, or removes them")
    map_table: str = knob("map", "name of that table", needs={"map": True})
    unit: str = knob("", "what is scored (default: phone with --map, else word)", ("word", "phone"))
    by: str = knob("utterance", "what the 95 % intervals draw", ("utterance", "speaker"))
    system: str = knob("", "name of the system (default: from the folder's name, <system>_<mixtures>/<set>)")
    mixtures: int = knob(0, "components per state (default: from the folder's name)", least=0)
    set: str = knob("", "what was decoded: train, dev, test ... (default: the folder's name)")

    def __post_init__(self):
        if self.out is None:
            object.__setattr__(self, "out", file_in(self.hyp, "hyp").parent / "score")
        if not self.unit:
            object.__setattr__(self, "unit", "phone" if self.map else "word")
        super().__post_init__()

    def faults(self):
        said = f"--out {self.out}: the folder must be named score; score.json is written beside it"
        return super().faults() + [said] * (self.out.name != "score")


def run(options: Options, step):
    from margo.formats.transcripts import map_symbols, read_symbol_map, read_transcripts, read_utt2spk
    from margo.tasks.scoring import place_of, score_transcripts, training_seconds

    hyp = file_in(step.input(options.hyp, made_by="decode"), "hyp")
    text = file_in(options.data, "text")
    folder, speakers = hyp.parent, text.with_name("utt2spk")
    references, hypotheses = read_transcripts(step.input_file(text)), read_transcripts(hyp)
    extra = {}
    if options.map:
        symbol_map = read_symbol_map(options.map, options.map_table)
        references = {name: map_symbols(words, symbol_map) for name, words in references.items()}
        hypotheses = {name: map_symbols(words, symbol_map) for name, words in hypotheses.items()}
        extra["map"] = options.map.name
    system, mixtures, decoded = options.system, options.mixtures, options.set
    if not (system and mixtures and decoded):
        named = place_of(folder)
        system, mixtures, decoded = system or named[0], mixtures or named[1], decoded or named[2]
    facts, written = score_transcripts(
        options.out.parent, references, hypotheses, system=system, mixtures=mixtures, set=decoded,
        speakers=read_utt2spk(speakers) if speakers.exists() else None, by=options.by, unit=options.unit,
        seed=options.seed, seconds=training_seconds(folder), extra=extra,
    )  # fmt: skip
    for name in written:
        step.output(f"../{name}" if name == "score.json" else name.removeprefix("score/"))
    if facts["missing"]:
        step.say(f"{len(facts['missing'])} utterances have no hypothesis and count as deleted whole: "
                 f"{' '.join(facts['missing'][:5])}{' ...' * (len(facts['missing']) > 5)}")  # fmt: skip
    words, strings = facts["words"], facts["strings"]
    print(f"{system}_{mixtures} {decoded}: %WER {words.percent:.2f} [ {words.errors} / {words.total} ] "
          f"95 % {words.ci95[0]:.2f} to {words.ci95[1]:.2f}; "
          f"%SER {strings.percent:.2f} [ {strings.errors} / {strings.total} ]")  # fmt: skip


if __name__ == "__main__":
    main(__doc__, Options, run)

"""Compare two scored systems, A and B, on the same utterances: is one better, and could it be chance?

Matched pairs tests the errors per utterance (Gillick and Cox's MAPSSWE with utterances as segments), McNemar's test the
utterances that only one system gets wrong, the sign test those where one has fewer errors; the bootstrap gives the
interval of the difference. The verdict takes McNemar's test where every transcript is one word, else matched pairs.

Example: steps/compare.py exp/tidigits/decode/ml_1/test exp/tidigits/decode/mce_1/test
"""

from dataclasses import dataclass
from pathlib import Path

from margo.runtime.step import Seeded, knob, main


@dataclass(frozen=True)
class Options(Seeded):
    a: Path = knob(positional=True, help="folder of a score: one that holds score.json, or the score folder in it")
    b: Path = knob(positional=True, help="folder of the score to compare it with")
    by: str = knob("utterance", "units of the tests, but for McNemar's", ("utterance", "speaker"))
    data: Path | None = knob(None, "data folder whose utt2spk names the speakers", needs={"by": ("speaker",)})
    level: float = knob(0.05, "largest p that is called a difference", least=0, most=1)
    out: Path | None = knob(None, "folder to write compare.json to (default: none is written)")

    def faults(self):
        alone = self.by == "speaker" and self.data is None
        return super().faults() + ["--by speaker needs --data, the folder with utt2spk"] * alone


def run(options: Options, step):
    from margo.formats.atomic import write_json
    from margo.formats.transcripts import read_utt2spk
    from margo.report.comparing import compare_folders, table

    speakers = read_utt2spk(options.data / "utt2spk") if options.by == "speaker" else None
    result = compare_folders(options.a, options.b, speakers, options.level, options.seed)
    print(table(result))
    if step.out is not None:
        write_json(step.output("compare.json"), result)


if __name__ == "__main__":
    main(__doc__, Options, run)

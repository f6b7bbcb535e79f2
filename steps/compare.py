"""Compare two scored systems, A and B, on the same utterances: is one better, and could it be chance?

Matched pairs tests the errors per utterance (Gillick and Cox's MAPSSWE with utterances as segments), McNemar's test the
utterances that only one system gets wrong, the sign test those where one has fewer errors; the bootstrap gives the
interval of the difference. The verdict takes McNemar's test where every transcript is one word, else matched pairs.
"""

from dataclasses import dataclass
from pathlib import Path

from margo.runtime.step import Seeded, main, option


@dataclass(frozen=True)
class Options(Seeded):
    a: Path = option(positional=True, help="folder of a score: one that holds score.json, or the score folder in it")
    b: Path = option(positional=True, help="folder of the score to compare it with")
    by: str = option("utterance", choices=("utterance", "speaker"), help="units of the tests, but for McNemar's")
    data: Path | None = option(None, help="data folder whose utt2spk names the speakers, for --by speaker")
    level: float = option(0.05, help="largest p that is called a difference")
    out: Path | None = option(None, help="folder to write compare.json to (default: none is written)")

    def __post_init__(self):
        if self.by == "speaker" and self.data is None:
            raise ValueError("--by speaker needs --data, the folder with utt2spk")


def run(options: Options, step):
    from margo.formats.atomic import write_json
    from margo.formats.transcripts import read_utt2spk
    from margo.tasks.comparing import compare_folders, table

    speakers = read_utt2spk(options.data / "utt2spk") if options.by == "speaker" else None
    result = compare_folders(options.a, options.b, speakers, options.level, options.seed)
    print(table(result))
    if step.out is not None:
        write_json(step.output("compare.json"), result)


if __name__ == "__main__":
    main(__doc__, Options, run)

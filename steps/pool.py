"""Pool decodings of several runs that tested different utterances, as when every speaker is left out in turn.

Writes OUT/data/test with the test sets of all runs, and OUT/decode/<model>/test/hyp for every model that all decoded.

Example: steps/pool.py --exp exp/words/ann exp/words/bob --out exp/words/all
"""

from dataclasses import dataclass
from pathlib import Path

from margo.runtime.step import Knobs, knob, main


@dataclass(frozen=True)
class Options(Knobs):
    exp: tuple[Path, ...] = knob(help="experiment folders of the runs")
    out: Path = knob(help="folder to write")


def run(options: Options, step):
    from margo.errors import MargoError
    from margo.formats.atomic import write_json
    from margo.formats.transcripts import write_transcripts
    from margo.report.collect import read_corpus

    corpora = {read_corpus(exp) for exp in options.exp}
    if len(corpora) > 1:
        raise MargoError(f"runs on different corpora: {', '.join(sorted(name for name, _ in corpora))}")
    for table in ("text", "utt2spk"):
        tables = (exp / "data" / "test" / table for exp in options.exp)
        write_transcripts(step.output(f"data/test/{table}"), union(tables))
    write_json(step.output("data/corpus.json"), dict(zip(("corpus", "synthetic"), corpora.pop())))
    models = [{path.parent.parent.name for path in exp.glob("decode/*/test/hyp")} for exp in options.exp]
    pooled = sorted(set.intersection(*models))
    for model in pooled:
        folders = [step.input(exp / "decode" / model / "test", made_by="decode") for exp in options.exp]
        write_transcripts(step.output(f"decode/{model}/test/hyp"), union(folder / "hyp" for folder in folders))
    step.say(f"pool: {len(pooled)} models, {len(options.exp)} runs")


def union(paths) -> dict[str, tuple[str, ...]]:
    """All lines of some transcripts; an utterance may be in one of them only."""
    from margo.errors import MargoError
    from margo.formats.transcripts import read_transcripts

    table: dict[str, tuple[str, ...]] = {}
    for path in paths:
        lines = read_transcripts(path)
        twice = sorted(lines.keys() & table.keys())
        if twice:
            raise MargoError(f"{path}: {len(twice)} utterances were in another run's test set too, such as {twice[0]}")
        table |= lines
    return table


if __name__ == "__main__":
    main(__doc__, Options, run)

"""Find the warp of each speaker's frequencies under which a model likes their speech best (vocal tract length).

Every warp is tried on some utterances of each speaker, along their transcripts or what was recognised (--hyp), by the
likelihood of the best paths. make_mfcc --warps makes features of it: train on those of all training speakers, then find
the warps of others with the model that came of it.

Example: steps/find_warps.py --model exp/words/ml_1 --data exp/words/data/test --out exp/words/warps/test
"""

from dataclasses import dataclass
from pathlib import Path

from margo.knobs import knob
from margo.runtime.step import Parallel, main
from margo.tasks.warping import WarpOptions


@dataclass(frozen=True)
class Options(WarpOptions, Parallel):
    model: Path = knob(help="folder of the model")
    data: Path = knob(help="data folder, with recordings")
    hyp: Path | None = knob(None, "folder of what decode recognised, instead of transcripts")
    allow_pipes: bool = knob(False, "run the commands in wav.scp")
    out: Path = knob(help="folder to write")


def run(options: Options, step):
    from margo.formats import datadir
    from margo.formats.models import read_model
    from margo.formats.reading import file_in
    from margo.formats.transcripts import read_transcripts
    from margo.tasks.warping import NAME, best_warps, write_warps

    hmms = read_model(file_in(step.input(options.model, made_by="train_ml"), "model.npz"))
    data = datadir.read(step.input(options.data, made_by="data"), allow_pipes=options.allow_pipes)
    said = {row.name: row.words for row in data}
    if options.hyp:
        said = read_transcripts(file_in(step.input(options.hyp, made_by="decode"), "hyp"))
    with step.place() as where:
        warps = best_warps(hmms, data, options, said, where, options.allow_pipes)
    write_warps(step.output(NAME), warps)
    told = ", ".join(f"{speaker} {warp:g}" for speaker, warp in [*warps.items()][:10])
    step.say(f"find_warps: {told}{', ...' * (len(warps) > 10)}")


if __name__ == "__main__":
    main(__doc__, Options, run)

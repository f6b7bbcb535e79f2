"""Features of a Kaldi data folder: feats.ark/.scp, how they were made (mfcc.json), and the folder's own tables.

With --warps, frequencies of each speaker are warped (vocal tract length normalisation, see find_warps).
A folder that comes with feats.scp keeps those features, normalised with its cmvn.scp where --cmvn is speaker. An
utterance that cannot be used is dropped and named; more than 5 % of them, and the step fails.

Example: steps/make_mfcc.py --data exp/tidigits/data/train --conf conf/mfcc.toml --out exp/tidigits/mfcc/train
"""

from dataclasses import dataclass, replace
from pathlib import Path

from margo.runtime.step import Parallel, knob, main
from margo.signal.front_end import MfccOptions, plain_options


@dataclass(frozen=True)
class Options(Parallel, MfccOptions):
    data: Path = knob(help="data folder: wav.scp text utt2spk, segments where there are any")
    out: Path = knob(help="folder to write")
    allow_pipes: bool = knob(False, "run the commands in wav.scp")
    warps: Path | None = knob(None, "folder of find_warps, with a warp for each speaker")
    channel: int | None = knob(None, "of recordings with several channels take this one, counted from 0", least=0)


def run(options: Options, step):
    from margo.formats import datadir
    from margo.formats.atomic import write_json
    from margo.formats.features import RECORD, write_ark
    from margo.tasks.featuring import check_losses, features_of
    from margo.tasks.speech import TOLD
    from margo.tasks.warping import WARPED, read_warps

    data = datadir.read(step.input(options.data, made_by="data"), allow_pipes=options.allow_pipes)
    warps = read_warps(step.input(options.warps, made_by="find_warps")) if options.warps else None
    frames, dropped = 0, []

    def kept(features):
        nonlocal frames
        for each in step.progress(features, len(data), "make_mfcc"):
            if each.features is None:
                dropped.append(each)
                tell = step.say if len(dropped) <= TOLD else step.log
                tell(f"make_mfcc: {each.name} dropped: {each.reason}")
            else:
                frames += len(each.features)
                yield each.name, each.features
        check_losses(dropped, data)

    with step.place() as where:
        record, features = features_of(data, plain_options(options), options.allow_pipes, where, options.channel, warps)
        offsets = write_ark(step.output("feats.ark"), step.output("feats.scp"), kept(features))
    ark = (options.out / "feats.ark").resolve()
    rows = [
        replace(row, audio=None, recording=None, start=None, end=None, feats=f"{ark}:{offsets[row.name]}")
        for row in data
        if row.name in offsets
    ]
    datadir.write(options.out, rows)
    for table in ("text", "utt2spk", "spk2utt", *(["spk2gender"] if rows[0].gender else [])):
        step.output(table)
    write_json(step.output(RECORD), record | (WARPED if warps else {}))
    step.say(f"make_mfcc: {len(rows)} utterances, {frames} frames of {record['dimension']}, {len(dropped)} dropped")


if __name__ == "__main__":
    main(__doc__, Options, run)

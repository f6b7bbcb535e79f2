"""Take in models, features and labels of HTK: OUT/model.npz of definitions, OUT/data of parameter files and labels.

A dictionary makes words of the models, a word network their grammar (one word, any string, or which word may follow
which); HCopy's configuration tells how features are made, so that recognise can make them. The files are kept in
OUT/htk, and export_htk gives them back byte for byte as long as nothing has changed.

Example: steps/import_htk.py --hmmdefs macros hmmdefs --dict dict --net wdnet --hcopy hcopy.conf --mfc files.scp \
--mlf ref.mlf --out exp/htk
"""

from dataclasses import dataclass
from pathlib import Path

from margo.runtime.step import Knobs, knob, main


@dataclass(frozen=True)
class Options(Knobs):
    hmmdefs: tuple[Path, ...] = knob((), "files of definitions (text), macros first")
    dict: Path | None = knob(None, "dictionary; without it each model is a word", needs={"hmmdefs": True})
    net: Path | None = knob(None, "word network (SLF); without it any string of words", needs={"hmmdefs": True})
    hcopy: Path | None = knob(None, "HCopy's configuration: how the features are made")
    mfc: tuple[Path, ...] = knob((), "parameter files, folders of them, or lists (.scp)")
    mlf: Path | None = knob(None, "master label file of the parameter files' words", needs={"mfc": True})
    out: Path = knob(help="folder to write")
    sample_rate: int = knob(0, "of the audio, where --hcopy has no SOURCERATE; 0: each file's own", unit="Hz", least=0)
    silence: str = knob("", "model of silence, where no word of the dictionary without output names it")
    insertion_penalty: float | None = knob(None, "HVite's -p, added for every word", needs={"hmmdefs": True})
    scale: float | None = knob(None, "HVite's -s, factor of the network's log probabilities", needs={"hmmdefs": True})

    def faults(self):
        wrong = ["expected --hmmdefs or --mfc"] * (not self.hmmdefs and not self.mfc)
        return super().faults() + wrong + ["--mfc needs --mlf"] * (bool(self.mfc) and self.mlf is None)


def run(options: Options, step):
    from margo.formats import datadir
    from margo.formats.atomic import write_json
    from margo.formats.ctm import write_ctm
    from margo.formats.features import RECORD, write_ark
    from margo.formats.htk import read_parameters
    from margo.formats.models import write_model
    from margo.tasks import htk_exchange as htk

    kind, record = None, None
    sources = dict(zip(htk.kept_names(options.hmmdefs), options.hmmdefs)) if options.hmmdefs else {}
    sources |= {name: given for role, name in htk.NAMES.items() if (given := getattr(options, role))}
    for name, path in sources.items():
        htk.copy(step.input_file(path), step.output(f"{htk.KEPT}/{name}"))
    if options.hmmdefs:
        hmms, notes = htk.import_model(
            options.hmmdefs, options.dict, options.net, options.hcopy, options.sample_rate, options.silence or None,
            insertion_penalty=options.insertion_penalty, scale=options.scale,
        )  # fmt: skip
        write_model(step.output("model.npz"), hmms)
        kind, record = hmms.meta["htk_kind"], hmms.meta["features"]
        told = f"{len(hmms.words)} words, {hmms.pool.n_gaussians} Gaussians, {hmms.meta['grammar']['kind']} grammar"
        step.say("\n".join([*notes, f"import_htk: {told}, {kind}"]))
    if options.mfc:
        paths = htk.parameter_paths(options.mfc)
        if record is None:
            columns = read_parameters(step.input_file(paths[0]))[0].shape[1]
            record = htk.feature_record(options.hcopy, options.sample_rate, set(), columns)
        words, timed = htk.labels(step.input_file(options.mlf), [path.stem for path in paths])
        offsets = write_ark(step.output("data/feats.ark"), step.output("data/feats.scp"),
                            htk.parameters(paths, record, kind or htk.kind_of(record)))  # fmt: skip
        ark = (step.out / "data" / "feats.ark").resolve()
        datadir.write(step.out / "data", [datadir.Utterance(name, name, words[name], feats=f"{ark}:{offset}")
                                          for name, offset in offsets.items()])  # fmt: skip
        for table in ("text", "utt2spk", "spk2utt"):
            step.output(f"data/{table}")
        write_json(step.output(f"data/{RECORD}"), record)
        if timed:
            write_ctm(step.output("data/labels.ctm"), timed)
        step.say(f"import_htk: {len(offsets)} utterances in {step.out / 'data'}")


if __name__ == "__main__":
    main(__doc__, Options, run)

"""Take in a GMM model of Kaldi in text form, and alignments made with it: OUT/model.npz, OUT/ali.

The model is what gmm-copy --binary=false writes, of phones without context (trees are left aside); an alignment's
transition-ids become states of the pool (OUT/ali/ali.ark) and phones in time (OUT/ali/phones.ctm).

Example: steps/import_kaldi.py --mdl final.txt --phones phones.txt --lexicon lexicon.txt --silence SIL --out exp/kaldi
"""

from dataclasses import dataclass
from pathlib import Path

from margo.runtime.step import Knobs, knob, main


@dataclass(frozen=True)
class Options(Knobs):
    mdl: Path = knob(help="model in text form")
    phones: Path | None = knob(None, "phones.txt; without it phones are called by their numbers")
    lexicon: Path | None = knob(None, "lexicon.txt: a word and its phones a line; without it each phone is a word")
    features: Path | None = knob(None, "feature folder whose mfcc.json tells how the features are made")
    ali: Path | None = knob(None, "alignments: a list (.scp), an archive, or text, also packed (.gz)")
    out: Path = knob(help="folder to write")
    silence: str = knob("", "phone that may stand between words")


def run(options: Options, step):
    from margo.errors import MargoError, refuse
    from margo.formats.ctm import write_ctm
    from margo.formats.features import read_options, write_ark
    from margo.formats.kaldi_alignments import read_alignments
    from margo.formats.kaldi_models import transitions_of
    from margo.formats.models import write_model
    from margo.tasks import kaldi_exchange as kaldi
    from margo.tasks import passes

    files = [step.input_file(path) if path else None for path in (options.mdl, options.phones, options.lexicon)]
    record = read_options(options.features) if options.features else None
    hmms = kaldi.import_model(*files, options.silence or None, record)
    write_model(step.output("model.npz"), hmms)
    step.say(f"import_kaldi: {len(hmms.units)} phones, {len(hmms.words)} words, {hmms.pool.n_gaussians} Gaussians")
    if options.ali is None:
        return
    ids, done, faults = transitions_of(hmms), [], []
    for name, sequence in read_alignments(step.input_file(options.ali)).items():
        try:
            states, units = kaldi.states_and_units(ids, sequence)
        except MargoError as error:
            faults.append(f"{name}: {error}")
            continue
        told = tuple((hmms.units[each.index].name, each.start, each.end) for each in units)
        done.append(passes.Aligned(name, 0.0, states, (), told))
    refuse(faults, str(options.ali), most=10)
    write_ark(step.output("ali/ali.ark"), step.output("ali/ali.scp"), ((each.name, each.states) for each in done))
    write_ctm(step.output("ali/phones.ctm"), passes.times_of(hmms.meta["features"], done, "units"))
    step.say(f"import_kaldi: {len(done)} alignments")


if __name__ == "__main__":
    main(__doc__, Options, run)

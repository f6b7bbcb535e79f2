"""Write a model for Kaldi, final.mdl in text form with phones.txt, words.txt and lexicon.txt, and alignments with it.

Units become phones without context, pool states pdfs; trees are left aside. Alignments (--ali, a folder that align made
with the model) become transition-ids, ali.ark and ali.scp.

Example: steps/export_kaldi.py --model exp/tidigits/ml_1 --ali exp/tidigits/ali/ml_1 --out exp/tidigits/kaldi/ml_1
"""

from dataclasses import dataclass
from pathlib import Path

from margo.runtime.step import Knobs, knob, main


@dataclass(frozen=True)
class Options(Knobs):
    model: Path = knob(help="folder of the model")
    ali: Path | None = knob(None, "folder of alignments made with it")
    out: Path = knob(help="folder to write")


def run(options: Options, step):
    from margo.errors import MargoError
    from margo.formats.features import write_ark
    from margo.formats.models import read_model
    from margo.formats.reading import file_in
    from margo.tasks import kaldi_exchange as kaldi

    hmms = read_model(file_in(step.input(options.model, made_by="train_ml"), "model.npz"))
    try:
        kaldi.export_model(hmms, step.output)
    except MargoError as error:
        raise MargoError(f"{options.model}: {error}") from None
    if options.ali is not None:
        folder = step.input(options.ali, made_by="align")
        write_ark(step.output("ali.ark"), step.output("ali.scp"), kaldi.exported_alignments(hmms, folder))
    print(f"gmm-copy --binary=true {options.out / 'final.mdl'} final.mdl")


if __name__ == "__main__":
    main(__doc__, Options, run)

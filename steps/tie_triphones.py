"""Make a model of phones in context from one of phones: copies for all neighbours, states tied by trees.

Frames are those of the best paths of --data under --init. Of each phone's states the trees ask what the neighbours to
the left and to the right are; questions are sets of phones that sound alike in the data, or those of --questions,
Kaldi's questions.txt: the phones of one set a line. The model has one Gaussian a
state; train_ml --init trains it and lets its mixtures grow. Its grammar and words are those of --init. With --onto it
is a model of other features of the same utterances, along the same paths.

Example: steps/tie_triphones.py --init exp/an4/mono_8 --data exp/an4/mfcc/train --leaves 500 --out exp/an4/tied
"""

from dataclasses import dataclass
from pathlib import Path

from margo.estimate.tying import TyingOptions
from margo.knobs import knob
from margo.runtime.step import Parallel, main


@dataclass(frozen=True)
class Options(TyingOptions, Parallel):
    init: Path = knob(help="folder of the model of phones")
    data: Path = knob(help="feature folder that it was trained on")
    onto: Path | None = knob(None, "feature folder whose frames the new model is of, instead of --data")
    questions: Path | None = knob(None, "file of sets of phones to ask for, a line each, instead of those of the data")
    out: Path = knob(help="folder to write")


def run(options: Options, step):
    from dataclasses import replace

    from margo.estimate.tying import context_stats, in_context, tied
    from margo.formats.models import write_model
    from margo.formats.questions import read_questions
    from margo.tasks import passes, speech
    from margo.tasks.transforming import other_chunks, stats_onto

    step.input(options.init, made_by="train_ml")
    data = speech.read(step.input(options.data, made_by="make_mfcc"))
    phones = passes.model_for(options.init, data)
    given = options.questions and read_questions(step.input_file(options.questions), phones.unit_index)
    copies, named = in_context(phones, [item.words for item in data.items] if options.across else None)
    onto = speech.read(step.input(options.onto, made_by="make_mfcc")) if options.onto else None
    with step.place() as where:
        corpus = speech.Corpus(data, where, step)
        if onto:
            stats = corpus.total(stats_onto, copies, other_chunks(data, onto))
            copies = replace(copies, meta={**copies.meta, "features": onto.features})
        else:
            stats = corpus.total(context_stats, copies)
    hmms, report = tied(copies, named, stats, options, given)
    write_model(step.output("model.npz"), hmms)
    step.extra["tying"] = report
    step.say("tie_triphones: {leaves} states of {units} units, for {copies} copies; {questions} questions, {gain:.3f} "
             "nats a frame gained".format(**report))  # fmt: skip


if __name__ == "__main__":
    main(__doc__, Options, run)

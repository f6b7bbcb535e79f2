"""Score the ways from machines to many words on one score-space of all words' HMMs: pairs, rest, codes, joint, each.

As compare_schemes does for vectors ([L04] 3 and 7), with the models as maximum likelihood made them: every machine sees
the log-likelihoods of all words and, by --space, their derivatives. Systems are named svm-SPACE-SCHEME.

Example: steps/compare_word_schemes.py --init exp/isolet/ml_1 --data exp/isolet/mfcc/train --test exp/isolet/mfcc/test \
--out exp/isolet/score/schemes
"""

from dataclasses import dataclass
from pathlib import Path

from margo.kernel.scorespace import SPACES
from margo.kernel.selection import SCHEMES
from margo.runtime.step import Parallel, Seeded, knob, main


@dataclass(frozen=True)
class Options(Parallel, Seeded):
    init: Path = knob(help="folder of the maximum-likelihood model")
    data: Path = knob(help="feature folder to train the machines on")
    test: Path = knob(help="feature folder to score, named dev or test")
    out: Path = knob(help="folder to write")
    space: str = knob("ll-mean", "score-space of all words", [space for space in SPACES if space.split("-")[0] == "ll"])
    cost: float = knob(1.0, "C of the soft margin", above=0)
    bits: int = knob(31, "bits of the output codes, fewer where words allow fewer", least=1)
    schemes: tuple[str, ...] = knob(SCHEMES, "what to score", SCHEMES)
    lengths: tuple[int, ...] = knob((15, 31, 63), "bits of output codes to compare, where words allow", least=1)
    assignments: int = knob(0, "ways to give the words of a code to the words said; 0 compares none", least=0)
    task: str = knob("", "name of the task in tables of results, where a run has several")


def run(options: Options, step):
    import numpy as np

    from margo.formats.plots import PLOTS, write_plots
    from margo.kernel.multiclass import output_codes
    from margo.kernel.selection import decide_rows, kernel_features, settle
    from margo.tasks import mixture_kernels as kernels
    from margo.tasks import passes, speech, word_kernels
    from margo.tasks.scoring import score_transcripts

    step.input(options.init, made_by="train_ml")
    train, test = (speech.read(step.input(place, made_by="make_mfcc")) for place in (options.data, options.test))
    hmms = passes.model_for(options.init, train)
    with step.place() as where:
        (phi, _, y), (rest, names, truth) = (word_kernels.scores_of(hmms, data, options.space, step, where)
                                             for data in (train, test))  # fmt: skip
    rows, log_lik = kernel_features(np.concatenate([phi, rest]), len(y), 0.0), rest[:, : len(hmms.words)]
    bits = min(options.bits, 2 ** (len(hmms.words) - 1) - 1)
    code = output_codes(len(hmms.words), bits, np.random.default_rng(options.seed))
    said, mixtures = {item.name: item.words for item in test.items}, int(hmms.pool.sizes.max())
    for scheme in options.schemes:
        classes = settle(scheme, decide_rows(rows, y, scheme, options.cost, code), log_lik, code)
        system = f"svm-{options.space}-{scheme}"
        target = f"{system}_{mixtures}/{options.test.name}"
        facts, written = score_transcripts(
            step.out / target, said, {name: (hmms.words[word],) for name, word in zip(names, classes)}, system=system,
            mixtures=mixtures, set=options.test.name, speakers={item.name: item.speaker for item in test.items},
            seed=options.seed, extra={"task": options.task} if options.task else None,
        )  # fmt: skip
        for file in written:
            step.output(f"{target}/{file}")
        step.say(f"{system}_{mixtures} {options.test.name}: %WER {facts['words'].percent:.2f}")
    write_plots(step.out, kernels.tables_of_schemes(rows, y, log_lik, truth, options, options.task))
    step.output(PLOTS)


if __name__ == "__main__":
    main(__doc__, Options, run)

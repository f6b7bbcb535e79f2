"""Recognise single words by the votes of the pairwise HMM kernels of train_word_kernel, and score them.

Writes <system>_<mixtures>/<set> for every feature folder, before training (the system's name then ends in -init) and
after. Ties of two words are settled by their own machine, of more by the likelihoods of the HMMs. Of the set test also
a table of all pairs: their own tokens that are wrong by the HMMs, before and after, and W.

Example: steps/test_word_kernel.py --model exp/isolet/kernel/svm-llr-mean_1 --data exp/isolet/mfcc/test \
--out exp/isolet/score/svm-llr-mean_1
"""

from dataclasses import dataclass
from pathlib import Path

from margo.runtime.step import Parallel, Seeded, knob, main


@dataclass(frozen=True)
class Options(Parallel, Seeded):
    model: Path = knob(help="folder of train_word_kernel")
    data: tuple[Path, ...] = knob(help="feature folders named train, dev or test")
    out: Path = knob(help="folder to write")
    system: str = knob("", "name of the trained system (default: svm-SPACE); before training it ends in -init")
    ml: bool = knob(False, "score the models that the kernels started from as well, as ml")
    task: str = knob("", "name of the task in tables of results, where a run has several")


def run(options: Options, step):
    from functools import partial

    import numpy as np

    from margo.formats.plots import PLOTS, write_plots
    from margo.kernel.multiclass import vote
    from margo.runtime import record
    from margo.runtime.parallel import map_chunks
    from margo.tasks import mixture_kernels as kernels
    from margo.tasks import passes, speech, word_kernels
    from margo.tasks.scoring import score_transcripts

    folder = step.input(options.model, made_by="train_word_kernel")
    for place in options.data:
        data = speech.read(step.input(place, made_by="make_mfcc"))
        hmms = passes.model_for(folder, data)
        meta, pairs = word_kernels.read_pairs(folder, len(hmms.words))
        mixtures = int(hmms.pool.sizes.max())
        name = options.system or f"svm-{meta['space']}"
        word_kernels.check_isolated(data)
        said = {item.name: item.words for item in data.items}
        with step.place() as where:
            found = list(map_chunks(partial(word_kernels.decide_chunk, hmms, meta, pairs), data.chunks, where))
        speech.check_dropped([fault for _, dropped, _ in found for fault in dropped], data, step)
        names = [name for some, _, _ in found for name in some]
        *decisions, log_lik = (np.concatenate(parts) for parts in zip(*(made for *_, made in found if made)))
        made = {stage: vote(one, log_lik) for stage, one in zip((f"{name}-init", name), decisions)}
        made |= {"ml": log_lik.argmax(1)} if options.ml else {}
        for stage, classes in made.items():
            heard = {utt: (hmms.words[word],) for utt, word in zip(names, classes)}
            target = f"{stage}_{mixtures}/{place.name}"
            facts, written = score_transcripts(
                step.out / target, said, heard, system=stage,
                mixtures=mixtures, set=place.name, speakers={item.name: item.speaker for item in data.items},
                seed=options.seed, seconds=(record.of(folder) or {}).get("seconds") if stage == name else None,
                extra={"task": options.task} if options.task else None,
            )  # fmt: skip
            for file in written:
                step.output(f"{target}/{file}")
            step.say(f"{stage}_{mixtures} {place.name}: %WER {facts['words'].percent:.2f} "
                     f"[ {facts['words'].errors} / {facts['words'].total} ]")  # fmt: skip
        if place.name == "test":
            title = f"{name}, {mixtures} mixtures{options.task and ', ' + options.task}: each pair's own test tokens"
            truth = np.array([hmms.word_index[said[utt][0]] for utt in names])
            lines = kernels.read_lines(folder)
            write_plots(step.out, [word_kernels.pairs_table(title, hmms.words, lines, truth, *decisions, log_lik)])
            step.output(PLOTS)


if __name__ == "__main__":
    main(__doc__, Options, run)

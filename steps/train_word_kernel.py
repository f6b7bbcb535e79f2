"""Train HMM score-space kernels for maximum margin, one for each pair of words, from maximum-likelihood HMMs ([L04] 7).

For corpora of single words. Each utterance becomes one vector: the log-likelihood ratio of two words' models and its
derivatives. Writes model.npz (the HMMs), kernels.npz (parameters and machines of every pair before and after training),
progress.jsonl (W summed over pairs) and pairs.jsonl (every step of every pair).

Example: steps/train_word_kernel.py --init exp/isolet/ml_1 --data exp/isolet/mfcc/train \
--out exp/isolet/kernel/svm-llr-mean_1
"""

from dataclasses import dataclass
from pathlib import Path

from margo.kernel.descent import KernelOptions
from margo.runtime.step import Parallel, knob, main


@dataclass(frozen=True)
class Options(KernelOptions, Parallel):
    init: Path = knob(help="folder of the maximum-likelihood model")
    data: Path = knob(help="feature folder to train on")
    out: Path = knob(help="folder to write")
    window: int = knob(-1, "frames apart up to which time correlation enters second derivatives; -1 is all", least=-1)
    per_frame: bool = knob(True, "divide the scores of an utterance by its length")


def run(options: Options, step):
    from functools import partial

    from margo.formats.models import write_model
    from margo.runtime.parallel import map_chunks
    from margo.tasks import mixture_kernels as kernels
    from margo.tasks import passes, speech, word_kernels

    step.input(options.init, made_by="train_ml")
    data = speech.read(step.input(options.data, made_by="make_mfcc"))
    hmms = passes.model_for(options.init, data)
    frames, labels = word_kernels.read_frames(data, hmms, step)
    count = len(hmms.words) * (len(hmms.words) - 1) // 2
    with step.place() as where:
        chunks = word_kernels.pair_chunks(frames, labels, len(hmms.words))
        training = map_chunks(partial(word_kernels.train_chunk, hmms, options), chunks, where)
        made = list(step.progress(training, count, "pairs trained"))
    meta = {"space": options.whole_space, "per_frame": options.per_frame, "pairs": count}
    write_model(step.output("model.npz"), hmms)
    word_kernels.write_pairs(step.output("kernels.npz"), meta, made)
    lines = [line for *_, told in made for line in told]
    progress = kernels.summed(lines)
    kernels.write_lines(step.output("pairs.jsonl"), lines)
    kernels.write_lines(step.output("progress.jsonl"), progress)
    lowered = sum(told[-1]["objective"] < told[0]["objective"] for *_, told in made)
    before, after = progress[0]["objective"], progress[-1]["objective"]
    step.say(f"{options.whole_space}: W {before:.3f} -> {after:.3f}, lower in {lowered} of {count} pairs")


if __name__ == "__main__":
    main(__doc__, Options, run)

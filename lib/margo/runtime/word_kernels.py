"""What the steps of word kernels share: utterances as frames, pairs as chunks, their files."""

from pathlib import Path

import numpy as np

from margo.errors import MargoError
from margo.formats.atomic import read_npz, write_npz
from margo.kernel.hmm_pairs import WordPair, train_word_pair
from margo.kernel.hmm_scorespace import Frames, silence_states, word_model
from margo.kernel.multiclass import pairs
from margo.model.hmm import HmmSet
from margo.model.likelihood import log_likelihoods, scorer
from margo.runtime import speech

FORMAT = "margo-word-kernel-1"
PARTS = ("theta", "keep", "weights", "bias")


def read_frames(data: speech.Speech, hmms: HmmSet, step) -> tuple[Frames, list[str], np.ndarray]:
    """``(frames, names, word numbers)`` of a corpus of single words; those that cannot be scored are dropped."""
    if not data.isolated:
        raise MargoError(f"{data.folder}: transcripts of more than one word; pairwise kernels classify single words")
    shortest = max(hmms.units[hmms.unit_index[name]].n_states for name in {u for w in hmms.lexicon.values() for u in w})
    compiled = scorer(hmms.pool, silence_states(hmms), dtype=np.float64)
    matrices, fixed, names, labels, dropped = [], [], [], [], []
    for chunk in data.chunks:
        for name, x, words in speech.load(chunk, hmms):
            hmms.check_words(words)
            if len(x) < shortest:
                dropped.append((name, f"{len(x)} frames, a word has {shortest} states"))
                continue
            if np.isnan(x).any():
                dropped.append((name, "missing values"))
                continue
            matrices.append(np.asarray(x, np.float64))
            fixed.append(log_likelihoods(compiled, matrices[-1]))
            names.append(name)
            labels.append(hmms.word_index[words[0]])
    speech.check_dropped(dropped, data, step)
    bounds = np.concatenate([[0], np.cumsum([len(x) for x in matrices])]).astype(np.int64)
    return Frames(np.concatenate(matrices), bounds, np.concatenate(fixed)), names, np.array(labels)


def pair_chunks(frames: Frames, labels: np.ndarray, n_words: int):
    """``(pair, frames of both words, signs)`` of every pair, one at a time."""
    for a, b in pairs(n_words):
        own = np.flatnonzero((labels == a) | (labels == b))
        yield (a, b), frames.take(own), np.where(labels[own] == a, 1, -1)


def train_chunk(hmms: HmmSet, options, chunk) -> tuple[tuple, WordPair, WordPair, list[dict]]:
    """The kernel of one pair: ``(pair, initial, trained, lines)``."""
    pair, frames, signs = chunk
    start = [word_model(hmms, hmms.words[word]) for word in pair]
    lines = []
    initial, trained, _ = train_word_pair(
        start, frames, signs, options.space, options, metric=options.metric,
        window=options.window if options.window >= 0 else None, per_frame=options.per_frame, features=options.features,
        report=lambda line: lines.append({"run": 0, "pair": list(pair), **vars(line)}),
    )  # fmt: skip
    return pair, initial, trained, lines


def decide_chunk(hmms: HmmSet, meta: dict, frames: Frames, chunk) -> tuple[np.ndarray, np.ndarray]:
    """Decisions [N] of one ``(pair, initial, trained)`` before and after training."""
    pair, initial, trained = chunk
    start = [word_model(hmms, hmms.words[word]) for word in pair]
    return tuple(one.decide(start, frames, meta["space"], meta["per_frame"]) for one in (initial, trained))


def write_pairs(path, meta: dict, made) -> None:
    arrays = {f"{stage}{number}_{part}": getattr(one, part) for number, (_, *both, _) in enumerate(made)
              for stage, one in zip(("initial", "final"), both) for part in PARTS}  # fmt: skip
    write_npz(path, {"format": FORMAT, **meta}, arrays)


def read_pairs(folder, n_words: int) -> tuple[dict, list[tuple]]:
    """``(meta, [(pair, initial, trained)])`` of a model folder."""
    path = Path(folder) / "kernels.npz"
    meta, arrays = read_npz(path)
    if meta.get("format") != FORMAT:
        raise MargoError(f"{path}: not a model of train_word_kernel (format {meta.get('format')!r})")
    made = []
    for number, pair in enumerate(pairs(n_words)):
        both = [WordPair(*(arrays[f"{stage}{number}_{part}"] for part in PARTS)) for stage in ("initial", "final")]
        made.append((pair, *both))
    return meta, made

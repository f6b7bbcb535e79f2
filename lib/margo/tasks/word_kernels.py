"""What the steps of word kernels share: utterances as frames, pairs as chunks, their files."""

from pathlib import Path

import numpy as np

from margo.errors import MargoError
from margo.formats.atomic import read_npz, write_npz
from margo.formats.reading import fitting, reading
from margo.gaussian.likelihood import log_likelihoods, scorer
from margo.kernel.hmm_pairs import WordPair, train_word_pair
from margo.kernel.hmm_scorespace import Frames, score, silence_states, word_model
from margo.kernel.multiclass import pairs
from margo.kernel.scorespace import layout
from margo.model.hmm import HmmSet
from margo.tasks import speech

FORMAT = "margo-word-kernel-2"
PARTS = ("theta", "weights", "bias")


def chunk_frames(hmms: HmmSet, chunk) -> tuple[Frames | None, list[str], list[int], list[tuple[str, str]]]:
    """``(frames, names, word numbers, dropped)`` of a chunk of single words; None where nothing can be scored."""
    shortest = max(unit.n_states for unit in hmms.units if unit.name != hmms.silence)
    matrices, names, labels, dropped = [], [], [], []
    for name, x, words in speech.load(chunk, hmms):
        hmms.check_words(words)
        if len(x) < shortest:
            dropped.append((name, f"{len(x)} frames, a word has {shortest} states"))
        elif np.isnan(x).any():
            dropped.append((name, "missing values"))
        else:
            matrices.append(np.asarray(x, np.float64))
            names.append(name)
            labels.append(hmms.word_index[words[0]])
    if not matrices:
        return None, names, labels, dropped
    bounds = np.concatenate([[0], np.cumsum([len(x) for x in matrices])]).astype(np.int64)
    x, silence = np.concatenate(matrices), silence_states(hmms)
    fixed = log_likelihoods(scorer(hmms.pool, silence, dtype=np.float64), x) if len(silence) else np.empty((len(x), 0))
    return Frames(x, bounds, fixed), names, labels, dropped


def check_isolated(data: speech.Speech) -> None:
    if not data.isolated:
        raise MargoError(f"{data.folder}: transcripts of more than one word; pairwise kernels classify single words")


def read_frames(data: speech.Speech, hmms: HmmSet, step) -> tuple[Frames, np.ndarray]:
    """``(frames, word numbers)`` of a corpus of single words; those that cannot be scored are dropped."""
    check_isolated(data)
    hmms.pool.require("diagonal", "a word kernel")
    parts = [chunk_frames(hmms, chunk) for chunk in data.chunks]
    speech.check_dropped([fault for *_, dropped in parts for fault in dropped], data, step)
    frames = [part for part, *_ in parts if part]
    lengths = np.concatenate([np.diff(part.bounds) for part in frames])
    bounds = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    together = (np.concatenate([getattr(part, name) for part in frames]) for name in ("x", "fixed"))
    labels = np.array([label for _, _, labels, _ in parts for label in labels])
    return Frames(next(together), bounds, next(together)), labels


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
        start, frames, signs, options.whole_space, options, metric=options.metric,
        window=options.window if options.window >= 0 else None, per_frame=options.per_frame,
        report=lambda line: lines.append({"run": 0, "pair": list(pair), **vars(line)}),
    )  # fmt: skip
    return pair, initial, trained, lines


def decide_chunk(hmms: HmmSet, meta: dict, made, chunk) -> tuple[list, list, tuple | None]:
    """``(names, dropped, (before [N, Q], after [N, Q], log-likelihoods [N, V]))`` of a chunk of utterances.

    Before training every pair uses the same models: each word is scored once, and a pair's scores are put together.
    """
    frames, names, _, dropped = chunk_frames(hmms, chunk)
    if frames is None:
        return names, dropped, None
    models = [word_model(hmms, word) for word in hmms.words]
    ratio, parts = layout(meta["space"], 2)
    scores = [score([model], frames, "-".join(["ll", *parts]), per_frame=meta["per_frame"])[0] for model in models]
    before, after = [], []
    for (a, b), initial, trained in made:
        both = np.concatenate([scores[a][:, :1], scores[b][:, :1]], axis=1)
        phi = np.concatenate([both @ ratio, scores[a][:, 1:], scores[b][:, 1:]], axis=1)
        before.append(phi @ initial.weights + initial.bias)
        after.append(trained.decide([models[a], models[b]], frames, meta["space"], meta["per_frame"]))
    log_lik = np.stack([phi[:, 0] for phi in scores], axis=1)
    return names, dropped, (np.stack(before, axis=1), np.stack(after, axis=1), log_lik)


def write_pairs(path, meta: dict, made) -> None:
    arrays = {f"{stage}{number}_{part}": getattr(one, part) for number, (_, *both, _) in enumerate(made)
              for stage, one in zip(("initial", "final"), both) for part in PARTS}  # fmt: skip
    write_npz(path, {"format": FORMAT, **meta}, arrays)


def read_pairs(folder, n_words: int) -> tuple[dict, list[tuple]]:
    """``(meta, [(pair, initial, trained)])`` of a model folder."""
    path = Path(folder) / "kernels.npz"
    meta, arrays = read_npz(path)
    fitting(path, meta, {"format": {FORMAT}, "space": str, "per_frame": bool})

    def machine(stage, number):
        return WordPair(*(arrays[f"{stage}{number}_{part}"] for part in PARTS))

    with reading(path, "a model of train_word_kernel"):
        return meta, [(pair, machine("initial", n), machine("final", n)) for n, pair in enumerate(pairs(n_words))]

"""What the steps of word kernels share: utterances as frames, pairs as chunks, their files."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from margo.errors import MargoError
from margo.formats.atomic import read_npz, write_npz, write_text
from margo.formats.reading import fitting, reading
from margo.gaussian.likelihood import log_likelihoods, scorer
from margo.kernel.hmm_pairs import WordPair, train_word_pair
from margo.kernel.hmm_scorespace import Frames, score, silence_states, word_model
from margo.kernel.multiclass import pairs, vote
from margo.kernel.scorespace import layout
from margo.model.grammar import recognition_graph
from margo.model.hmm import HmmSet
from margo.runtime.parallel import map_chunks
from margo.search.nbest import nbest
from margo.tasks import speech
from margo.tasks.mixture_kernels import check_numbers, tracks_of
from margo.tasks.passes import alignments, best_paths

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
    After it each pair has models of its own, and few are asked: a word that wins all its pairs has the vote whatever
    the others say. Asked are the pairs of the word that has the vote before training and of the word said (for tables),
    and all where the first of these loses one; of the rest the decisions stay as before.
    """
    frames, names, labels, dropped = chunk_frames(hmms, chunk)
    if frames is None:
        return names, dropped, None
    models = [word_model(hmms, word) for word in hmms.words]
    ratio, parts = layout(meta["space"], 2)
    scores = [score([model], frames, "-".join(["ll", *parts]), per_frame=meta["per_frame"])[0] for model in models]
    before = np.empty((len(names), len(made)))
    for column, ((a, b), initial, _) in enumerate(made):
        both = np.concatenate([scores[a][:, :1], scores[b][:, :1]], axis=1)
        phi = np.concatenate([both @ ratio, scores[a][:, 1:], scores[b][:, 1:]], axis=1)
        before[:, column] = phi @ initial.weights + initial.bias
    log_lik = np.stack([phi[:, 0] for phi in scores], axis=1)
    after, held = before.copy(), np.array([pair for pair, *_ in made])

    def ask(wanted):
        for column in np.flatnonzero(wanted.any(0)):
            (a, b), _, trained = made[column]
            own = np.flatnonzero(wanted[:, column])
            some, both = frames.take(own), [models[a], models[b]]
            after[own, column] = trained.decide(both, some, meta["space"], meta["per_frame"])

    leader = vote(before, log_lik)[:, None]
    of_leader = (held == leader[:, None]).any(2)
    first = of_leader | (held == np.array(labels)[:, None, None]).any(2)
    ask(first)
    beaten = (of_leader & ((after > 0) != (held[:, 0] == leader))).any(1, keepdims=True)
    ask(beaten & ~first)
    return names, dropped, (before, after, log_lik)


def scores_of(hmms: HmmSet, data: speech.Speech, space: str, step, where) -> tuple[np.ndarray, list[str], np.ndarray]:
    """``(phi [N, P], names, word numbers)`` of single words in the space of all words' models, scores a frame."""
    check_isolated(data)
    hmms.pool.require("diagonal", "a word kernel")
    parts = list(map_chunks(partial(score_chunk, hmms, space), data.chunks, where))
    speech.check_dropped([fault for *_, dropped in parts for fault in dropped], data, step)
    phi = np.concatenate([made for made, *_ in parts if made is not None])
    names, labels = ([one for part in parts for one in part[place]] for place in (1, 2))
    return phi, names, np.array(labels)


def score_chunk(hmms: HmmSet, space: str, chunk) -> tuple:
    frames, names, labels, dropped = chunk_frames(hmms, chunk)
    models = [word_model(hmms, word) for word in hmms.words]
    return frames and score(models, frames, space)[0], names, labels, dropped


def pairs_table(title: str, words, lines: list[dict], truth, before, after, log_lik) -> dict:
    """The binary subsets of [L04] 7: for every pair of ``words`` the tokens of the two that its models and its own
    machine get wrong, ``truth`` [N], decisions [N, Q] before and after, log-likelihoods [N, V], and W in ``lines`` of
    training."""
    tracks, cells = tracks_of(lines), []
    for column, (a, b) in enumerate(pairs(len(words))):
        own = np.flatnonzero((truth == a) | (truth == b))
        decided = log_lik[own, a] - log_lik[own, b], before[own, column], after[own, column]
        wrong = [int(((made > 0) != (truth[own] == a)).sum()) for made in decided]
        first, last = (tracks[0, a, b][end]["objective"] for end in (0, -1))
        cells.append([f"{words[a]} {words[b]}", str(len(own)), *map(str, wrong), f"{first:.4f}", f"{last:.4f}"])
    columns = ["pair", "tokens", "wrong by ML", "before", "after", "W before", "W after"]
    return {"title": title, "kind": "table", "columns": columns, "cells": cells}


@dataclass(frozen=True, eq=False)
class Token:
    """A word cut out of an utterance: its frames x [T, D]."""

    name: str
    speaker: str
    word: str
    x: np.ndarray


def cut(hmms: HmmSet, data: speech.Speech, words, where) -> tuple[list[Token], list[tuple[str, str]]]:
    """``(tokens, dropped)``: every token of ``words`` in the utterances, by forced alignment."""
    parts = list(map_chunks(partial(cut_chunk, hmms, set(words)), data.chunks, where))
    return [token for made, _ in parts for token in made], [fault for _, dropped in parts for fault in dropped]


def cut_chunk(hmms: HmmSet, words: set, chunk) -> tuple[list[Token], list[tuple[str, str]]]:
    done, dropped = alignments(hmms, 0.1, chunk)
    frames = {name: x for name, x, _ in speech.load(chunk)}
    speakers = {item.name: item.speaker for item in chunk}
    tokens = [Token(f"{one.name}-{place:02d}{word}", speakers[one.name], word, frames[one.name][start:end])
              for one in done for place, (word, start, end, _) in enumerate(one.words) if word in words]  # fmt: skip
    return tokens, dropped


def write_tables(step, tokens: list[Token]) -> None:
    """``text``, ``utt2spk`` and ``spk2utt`` of tokens whose features are written."""
    rows = sorted(tokens, key=lambda token: token.name)
    speakers: dict[str, list[str]] = {}
    for row in rows:
        speakers.setdefault(row.speaker, []).append(row.name)
    write_text(step.output("text"), "".join(f"{row.name} {row.word}\n" for row in rows))
    write_text(step.output("utt2spk"), "".join(f"{row.name} {row.speaker}\n" for row in rows))
    lines = [f"{speaker} {' '.join(names)}\n" for speaker, names in sorted(speakers.items())]
    write_text(step.output("spk2utt"), "".join(lines))


def rivals(best: tuple[str, ...], strings, floor: float) -> dict[int, str]:
    """``place -> word`` of ``strings``, ``(words, score)`` with the best first, that differ from the first in one word
    and score at least ``floor``: of several for a place the likeliest."""
    found: dict[int, str] = {}
    for words, value in strings:
        if len(words) == len(best) and value >= floor:
            other = [place for place, (a, b) in enumerate(zip(best, words)) if a != b]
            if len(other) == 1:
                found.setdefault(other[0], words[other[0]])
    return found


def rescore_chunk(hmms: HmmSet, letters: HmmSet, meta: dict, made, n: int, within: float, chunk) -> list[tuple]:
    """``(name, best string, rescored before training, and after, places asked)`` of each utterance.

    ``letters`` are the models that the kernels ``made`` of pairs started from.
    """
    graph = recognition_graph(hmms)
    kernels = {frozenset(letters.words[word] for word in pair): (pair, both) for pair, *both in made}
    models = {word: word_model(letters, word) for word in letters.words}
    shortest = max(model.pool.n_states for model in models.values())
    rows = []
    for name, x, scores, path in best_paths(hmms, (graph, np.inf, 0), chunk):
        best = tuple(path.word_names) if path else ()
        strings = [(hypothesis.names, hypothesis.score) for hypothesis in nbest(graph, scores, n)] if path else []
        floor = strings[0][1] - within if strings and within else -np.inf
        texts, asked = [list(best), list(best)], 0
        for place, rival in rivals(best, strings, floor).items():
            pair, both = kernels.get(frozenset((best[place], rival)), (None, ()))
            span = path.words[place]
            if pair is None or span.end - span.start < shortest:
                continue
            asked += 1
            part = np.asarray(x[span.start : span.end], float)
            frames = Frames(part, np.array([0, len(part)]), np.empty((len(part), 0)))
            named = [letters.words[word] for word in pair]
            for text, one in zip(texts, both):
                decided = one.decide([models[word] for word in named], frames, meta["space"], meta["per_frame"])[0]
                text[place] = named[0] if decided > 0 else named[1]
        rows.append((name, best, *(tuple(text) for text in texts), asked))
    return rows


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
        check_numbers(arrays, dimensions=1)
        return meta, [(pair, machine("initial", n), machine("final", n)) for n, pair in enumerate(pairs(n_words))]

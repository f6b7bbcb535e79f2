"""The lexicon of a training run: which words there are, how they are said, and what becomes of the others."""

from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from margo.errors import MargoError, refuse
from margo.formats.lexicon import grapheme_lexicon, read_lexicon
from margo.formats.reading import MOST
from margo.gaussian.likelihood import log_likelihoods, scorer
from margo.knobs import Knobs, knob
from margo.model.graph import align_graph
from margo.model.hmm import HmmSet, Pronunciation, whole_words
from margo.search.viterbi import viterbi
from margo.tasks import speech

LETTERS = "graphemes"  # instead of a file
UNKNOWN = ("error", "skip", "grapheme")
TOLD = 10  # words named on the screen where all is well


@dataclass(frozen=True)
class LexiconOptions(Knobs):
    """Words made of units that they share; without a lexicon each word is a unit of its own."""

    GROUP = "lexicon"
    lexicon: Path | None = knob(
        None, f"pronunciations: Kaldi's lexicon(p).txt, HTK's or CMU's dictionary; or {LETTERS}, of the transcripts' "
        "words by their letters", needs={"init": False},
    )  # fmt: skip
    unknown: str = knob(
        "error", "a transcript's word without pronunciation: error, skip its utterances, or say it by its letters",
        UNKNOWN, needs={"lexicon": True},
    )  # fmt: skip
    silence_unit: str = knob(
        "sil", "name of the unit of silence; words that are nothing else are silent", needs={"init": False}
    )
    vocabulary: str = knob(
        "lexicon", "words that can be recognised: all of the lexicon, or those of the transcripts",
        ("lexicon", "transcripts"), needs={"lexicon": True},
    )  # fmt: skip
    pronunciations: str = knob(
        "kept", "probabilities of a word's pronunciations in the model of --init: kept, or counted in its alignments "
        "of --data", ("kept", "counted"), needs={"init": True},
    )  # fmt: skip


def lexicon_of(options, data: speech.Speech) -> dict[str, tuple[Pronunciation, ...]]:
    """Words with their pronunciations, sorted; every word of the transcripts of ``data`` unless ``--unknown skip``."""
    said = data.vocabulary
    if options.lexicon is None:
        return whole_words(said)
    if str(options.lexicon) == LETTERS:
        return grapheme_lexicon(said)
    words = said_words(options)
    missing = [word for word in said if word not in words]
    if options.unknown == "grapheme":
        words |= grapheme_lexicon(missing)
    elif options.unknown == "error":
        counts = unknown_words(data, words)
        refuse([f"{word}: {count} times in {data.folder / 'text'}" for word, count in counts.items()],
               f"{options.lexicon}: words of the transcripts without pronunciation (--unknown skip leaves out their "
               "utterances, --unknown grapheme says them by their letters)", MOST)  # fmt: skip
    if options.vocabulary == "transcripts":
        words = {word: words[word] for word in said if word in words}
    check_heard(options.lexicon, words, data)
    return dict(sorted(words.items()))


def said_words(options) -> dict[str, tuple[Pronunciation, ...]]:
    """The words of ``--lexicon`` that are not silent."""
    words, silent = read_lexicon(options.lexicon)
    return {word: ways for word, ways in words.items()
            if word not in silent and any({*way.units} != {options.silence_unit} for way in ways)}  # fmt: skip


def unknown_words(data: speech.Speech, words) -> dict[str, int]:
    """How often each word that is not among ``words`` occurs in the transcripts, the most frequent first."""
    return dict(Counter(word for item in data.items for word in item.words if word not in words).most_common())


def check_heard(path, words: dict, data: speech.Speech) -> None:
    """Refuse units that no word of the transcripts has in any pronunciation: nothing could train them."""
    said = {*data.vocabulary}
    heard = {unit for word, ways in words.items() if word in said for way in ways for unit in way.units}
    users: dict[str, list[str]] = {}
    for word, ways in words.items():
        for unit in {unit for way in ways for unit in way.units} - heard:
            users.setdefault(unit, []).append(word)
    refuse([f"{unit}: in {', '.join(sorted(names)[:5])}{', ...' * (len(names) > 5)}, no word of {data.folder / 'text'}"
            for unit, names in sorted(users.items())],
           f"{path}: units without data (--vocabulary transcripts leaves out such words)", MOST)  # fmt: skip


def usable(options, data: speech.Speech, step) -> speech.Speech:
    """``data`` without utterances that have unknown words, where these are to be skipped; unknown words are told."""
    if options.lexicon is None or str(options.lexicon) == LETTERS:
        return data
    path = step.input_file(options.lexicon)
    words = said_words(options)
    counts = unknown_words(data, words)
    if options.unknown == "error" or not counts:
        return data
    items, done = data.items, "said by their letters"
    if options.unknown == "skip":
        items = tuple(item for item in data.items if all(word in words for word in item.words))
        done = f"{len(data.items) - len(items)} of {len(data.items)} utterances left out"
    if not items:
        raise MargoError(f"{path}: no utterance of {data.folder} has pronunciations of all its words")
    names = ", ".join(f"{word} ({count})" for word, count in [*counts.items()][:TOLD])
    step.say(f"{step.name}: {done}: {len(counts)} words of {data.folder / 'text'} have no pronunciation: {names}"
             f"{', ...' * (len(counts) > TOLD)}")  # fmt: skip
    return replace(data, items=items)


def ways_taken(hmms: HmmSet, chunk) -> Counter:
    """How often the best paths of a chunk take each pronunciation, by word and phones
    (:class:`margo.model.hmm.UnitArcs`)."""
    taken: Counter = Counter()
    phone = hmms.unit_arcs.phone
    for _, x, words in speech.load(chunk, hmms):
        try:
            graph = align_graph(hmms, words)
        except MargoError:
            continue
        path = viterbi(graph, log_likelihoods(scorer(hmms.pool, graph.states), x))
        for segment in path.words if path else ():
            phones = tuple(phone[unit.index] for unit in path.units
                           if segment.start <= unit.start < segment.end and hmms.units[unit.index].name != hmms.silence)
            taken[hmms.words[segment.index], phones] += 1
    return taken


def reweighed(hmms: HmmSet, data: speech.Speech, where) -> HmmSet:
    """The model with probabilities of pronunciations as often as they are taken in ``data``, one added to each."""
    counts = speech.total(partial(ways_taken, hmms), data, where)
    table, phone = {}, hmms.unit_arcs.phone
    for word, ways in hmms.lexicon.items():
        spoken = [tuple(phone[[hmms.unit_index[name] for name in way.units]]) for way in ways]
        seen = np.array([counts[word, phones] + 1.0 for phones in spoken])
        logs = np.log(seen / seen.sum()) if len(ways) > 1 else [way.log_prob for way in ways]
        table[word] = tuple(Pronunciation(way.units, float(value)) for way, value in zip(ways, logs))
    return replace(hmms, lexicon=table)

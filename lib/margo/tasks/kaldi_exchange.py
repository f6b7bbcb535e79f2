"""Kaldi's text models and alignments to margo's folders and back."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from margo.errors import MargoError
from margo.formats.atomic import write_text
from margo.formats.ctm import read_ctm
from margo.formats.features import read_scp, read_vector
from margo.formats.kaldi_models import Transitions, read_model_text, read_symbols, transitions_of, write_model_text
from margo.formats.lexicon import read_lexicon, write_lexicon
from margo.model.grammar import grammar
from margo.model.hmm import HmmSet
from margo.search.viterbi import Segment
from margo.signal.front_end import describe_given


def import_model(path, phones=None, lexicon=None, silence: str | None = None, record: dict | None = None) -> HmmSet:
    """The model of a text file; features are ready-made ones unless their ``record`` is given."""
    table = read_lexicon(lexicon)[0] if lexicon else None
    hmms = read_model_text(path, read_symbols(phones) if phones else None, table, silence)
    record = record or describe_given(hmms.pool.dimension)
    if record["dimension"] != hmms.pool.dimension:
        raise MargoError(f"{path}: dimension {hmms.pool.dimension}, the features have {record['dimension']}")
    return replace(hmms, meta={"features": record, "grammar": grammar("loop"), "criterion": "kaldi"})


def export_model(hmms: HmmSet, place) -> None:
    """final.mdl (text), phones.txt, words.txt and lexicon.txt, lexiconp.txt where words have several pronunciations,
    written to ``place(name)``."""
    if hmms.meta.get("augmented"):
        raise MargoError("large-margin training has given this model a dimension, which the features do not have")
    if hmms.crossing is not None:
        raise MargoError("units of this model depend on the words around them, which no lexicon can tell")
    write_model_text(place("final.mdl"), hmms)
    symbols = {"phones.txt": [unit.name for unit in hmms.units], "words.txt": hmms.words}
    for name, names in symbols.items():
        write_text(place(name), "".join(f"{symbol} {n}\n" for n, symbol in enumerate(["<eps>", *names])))
    sure = all(len(ways) == 1 and ways[0].log_prob == 0 for ways in hmms.lexicon.values())
    write_lexicon(place("lexicon.txt" if sure else "lexiconp.txt"), hmms.lexicon)


def states_and_units(ids: Transitions, sequence: np.ndarray) -> tuple[np.ndarray, list[Segment]]:
    """Pool states [T] and the units passed through of a sequence of transition-ids [T].

    Kaldi may put the loops of a state behind the transition out of it; the unit then ends behind them.
    """
    sequence = np.asarray(sequence)
    if len(sequence) == 0 or sequence.min() < 1 or sequence.max() >= len(ids.unit):
        raise MargoError(f"transition-ids expected from 1 to {len(ids.unit) - 1}")
    unit, position, target = ids.unit[sequence], ids.position[sequence], ids.target[sequence]
    loops = target == position
    out = target == _sizes(ids)[unit]
    same = (unit[1:] == unit[:-1]) & (position[1:] == position[:-1])
    reordered = bool((same & loops[1:] & ~loops[:-1]).any())
    ends, leaving = [], False
    for frame in range(len(sequence)):
        leaving |= bool(out[frame])
        goes_on = reordered and frame + 1 < len(sequence) and same[frame] and loops[frame + 1]
        if leaving and not goes_on:
            ends.append(frame + 1)
            leaving = False
    if not ends or ends[-1] != len(sequence):
        raise MargoError("ends within a phone")
    starts = [0, *ends[:-1]]
    return ids.pdf[sequence], [Segment(int(unit[start]), start, end) for start, end in zip(starts, ends)]


def _sizes(ids: Transitions) -> np.ndarray:
    """Emitting states of each unit."""
    sizes = np.zeros(ids.unit.max() + 1, np.int64)
    np.maximum.at(sizes, ids.unit[1:], ids.position[1:] + 1)
    return sizes


def transition_ids(hmms: HmmSet, ids: Transitions, states: np.ndarray, units: list[int]) -> np.ndarray:
    """Transition-ids int32 [T] of an alignment: pool states [T] along units (indices). Where one unit ends the states
    themselves tell; times in a CTM need not be those of the path."""
    ways: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for number, key in enumerate(zip(ids.unit.tolist(), ids.position.tolist())):
        ways.setdefault(key, []).append((int(ids.target[number]), number))
    chains = {(0, 0): None} if units and len(states) and hmms.units[units[0]].states[0] == states[0] else {}
    for frame in range(len(states)):
        after: dict[tuple[int, int], tuple] = {}  # by place among the units and position: the chain of ids so far
        for (place, position), chain in chains.items():
            for target, number in ways.get((units[place], position), ()):
                there = (place + 1, 0) if target == hmms.units[units[place]].n_states else (place, target)
                if frame + 1 == len(states):
                    fits = there == (len(units), 0)
                else:
                    fits = there[0] < len(units) and hmms.units[units[there[0]]].states[there[1]] == states[frame + 1]
                if fits:
                    after.setdefault(there, (chain, number))
        chains = after
    if not chains:
        raise MargoError("its states do not go through its units")
    (chain,), sequence = chains.values(), []
    while chain:
        chain, number = chain
        sequence.append(number)
    return np.array(sequence[::-1], np.int32)


def exported_alignments(hmms: HmmSet, folder) -> Iterator[tuple[str, np.ndarray]]:
    """``(utterance, transition-ids)`` of a folder of alignments: states of ali.scp, units of phones.ctm."""
    ids, units = transitions_of(hmms), {}
    for row in read_ctm(Path(folder) / "phones.ctm"):
        units.setdefault(row.utterance, []).append(hmms.unit_index[row.word])
    for name, place in read_scp(folder, "ali.scp").items():
        try:
            yield name, transition_ids(hmms, ids, read_vector(place), units.get(name, []))
        except MargoError as error:
            raise MargoError(f"{folder}: {name}: {error}") from None

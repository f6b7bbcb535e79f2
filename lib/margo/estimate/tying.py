"""Units in context: copies for every pair of neighbours, and states tied by decision trees.

Neighbours are those within a word, or with ``across`` those in other words too, as far as no silence is between.

As in Young, Odell and Woodland (1994): the states of all copies of a phone start in one leaf; again and again the leaf
is split, by a question about the neighbour to the left or to the right, whose split makes the frames most likely with
one Gaussian a leaf. Copies that nobody has heard answer the same questions and so have states too.
"""

import heapq
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import chain, pairwise

import numpy as np

from margo.errors import MargoError
from margo.estimate.ml import DEFAULTS, unusable
from margo.gaussian.likelihood import log_likelihoods, scorer
from margo.gaussian.pool import GaussianPool, single_gaussians
from margo.knobs import Knobs, knob
from margo.model.graph import align_graph
from margo.model.hmm import HmmSet, Pronunciation, Unit
from margo.search.viterbi import viterbi

EDGE = "#"  # the neighbour of a word's first and last unit, or of an utterance's, and beside silence
IN_CONTEXT = re.compile(".+-.+[+].+")


@dataclass(frozen=True)
class TyingOptions(Knobs):
    across: bool = knob(False, "neighbours in the words before and behind count, too, where no silence is between")
    leaves: int = knob(500, "states of all units together, at most", least=1)
    least_frames: float = knob(100.0, "frames that each of them has at least", above=0)
    least_gain: float = knob(50.0, "what a split adds to the log-likelihood at least", unit="nats", least=0)


def contexts(units: Iterable[str]) -> list[tuple[str, str, str]]:
    """``(left, unit, right)`` of each unit of a word."""
    row = [EDGE, *units, EDGE]
    return [*zip(row, row[1:], row[2:])]


def context_name(left: str, unit: str, right: str) -> str:
    """As HTK writes it: ``l-u+r``, without what lies outside of the word."""
    return f"{'' if left == EDGE else f'{left}-'}{unit}{'' if right == EDGE else f'+{right}'}"


def core(name: str) -> str:
    """The unit of a :func:`context_name`."""
    return name.rpartition("-")[2].partition("+")[0]


def contexts_across(hmms: HmmSet, strings: Iterable[tuple[str, ...]]) -> dict[tuple[str, str, str], None]:
    """``(left, unit, right)`` of all units of ``strings``, in any pronunciations, with and without silence between the
    words, in order of first use."""
    said = {word: [way.units for way in ways] for word, ways in hmms.lexicon.items()}
    triples = dict.fromkeys(triple for string in strings
                            for triple in zip((None, *string), string, (*string[1:], None)))  # fmt: skip
    found = {}
    for before, word, behind in triples:
        lefts = dict.fromkeys([EDGE, *(units[-1] for units in said.get(before, ()))])
        rights = dict.fromkeys([EDGE, *(units[0] for units in said.get(behind, ()))])
        for units in said[word]:
            found |= dict.fromkeys((a, b, c) for left in lefts for right in rights
                                   for a, b, c in zip((left, *units), units, (*units[1:], right)))  # fmt: skip
    return found


def in_context(hmms: HmmSet, strings=None) -> tuple[HmmSet, dict[str, tuple[str, str, str]]]:
    """The model with a copy of each unit for all neighbours that it has in the lexicon, and ``(left, unit, right)`` of
    each copy by its name. Copies have the states of what they were copied from: the model scores all as before.

    With ``strings`` of words neighbours in other words count, those that units have there; for others any copy is used.
    """
    known = next((unit.name for unit in hmms.units if IN_CONTEXT.fullmatch(unit.name)), None)
    if known or hmms.crossing is not None:
        raise MargoError(f"units in context already{f', as {known}' * bool(known)}: expected a model of phones alone")
    named: dict[str, tuple[str, str, str]] = {}
    alone = (each for ways in hmms.lexicon.values() for way in ways for each in contexts(way.units))
    for each in chain(alone, contexts_across(hmms, strings or ())):
        if named.setdefault(context_name(*each), each) != each:
            raise MargoError(f"units in context: {context_name(*each)} would be two: units named with - or +")
    lexicon = {word: tuple(Pronunciation(tuple(context_name(*each) for each in contexts(way.units)), way.log_prob)
                           for way in ways) for word, ways in hmms.lexicon.items()}  # fmt: skip
    origin = {name: hmms.units[hmms.unit_index[unit]] for name, (_, unit, _) in named.items()}
    units = [replace(unit, name=name) for name, unit in origin.items()]
    crossing = None
    if strings is not None:
        crossing = crossing_table(phones_of(named), {each: number for number, each in enumerate(named.values())})
    if hmms.silence is not None and hmms.silence not in named:
        units.append(hmms.units[hmms.unit_index[hmms.silence]])
        named[hmms.silence] = (EDGE, hmms.silence, EDGE)
    return replace(hmms, units=tuple(units), lexicon=lexicon, crossing=crossing), named


def phones_of(named: dict[str, tuple[str, str, str]], silence: str | None = None) -> list[str]:
    """The units that have copies, but silence, in order of first use, and the edge: as neighbours are numbered."""
    return [*dict.fromkeys(unit for _, unit, _ in named.values() if unit != silence), EDGE]


def crossing_table(phones: list[str], units: dict[tuple[str, str, str], int]) -> np.ndarray:
    """:attr:`HmmSet.crossing` of units by ``(left, unit, right)``; the first one of a phone where none is given."""
    place = {phone: number for number, phone in enumerate(phones)}
    table = np.full((len(phones), len(phones) - 1, len(phones)), -1)
    for (left, phone, right), unit in units.items():
        own = table[:, place[phone]]
        if (own < 0).all():
            own[:] = unit
        own[place[left], place[right]] = unit
    return table


@dataclass(eq=False)
class ContextStats:
    """Moments [E, 1 + 2 D] (count, sums, sums of squares) of the frames that best paths have in each
    emitting state of each unit, E of all units in their order; additive."""

    moments: np.ndarray
    dropped: tuple = ()

    def __add__(self, other: "ContextStats") -> "ContextStats":
        return ContextStats(self.moments + other.moments, self.dropped + other.dropped)


def context_stats(hmms: HmmSet, utterances, others: dict | None = None) -> ContextStats:
    """Of ``(name, x[T, D], words)`` utterances; of the frames in ``others`` [T, D'] by name, where these are given,
    along the paths of the utterances' own."""
    table, dropped = hmms.unit_arcs, []
    dimension = next(iter(others.values())).shape[1] if others else hmms.pool.dimension
    moments = np.zeros((len(table.states), 1 + 2 * dimension))
    for name, x, words in utterances:
        path, reason = None, unusable(hmms, x, words)
        if not reason:
            graph = align_graph(hmms, words)
            path = viterbi(graph, log_likelihoods(scorer(hmms.pool, graph.states), x))
        if path is None:
            dropped.append((name, reason or f"{len(x)} frames: no path through the transcript's model fits"))
            continue
        y = np.asarray(others[name] if others else x, np.float64)
        if len(y) != len(x):
            raise MargoError(f"{name}: {len(x)} frames in one folder, {len(y)} in the other")
        rows = np.empty(len(x), np.int64)
        for unit, start, end in ((segment.index, segment.start, segment.end) for segment in path.units):
            places = (path.states[start:end, None] == hmms.units[unit].states).argmax(axis=1)
            rows[start:end] = table.state_start[unit] + places
        np.add.at(moments, rows, np.concatenate([np.ones((len(y), 1)), y, y * y], axis=1))
    return ContextStats(moments, tuple(dropped))


def log_likelihood(moments: np.ndarray, floor: np.ndarray) -> np.ndarray:
    """Of the frames behind ``moments`` [..., 1 + 2 D] under the diagonal Gaussian that fits them best; 0 of none."""
    count, dimension = moments[..., 0], len(floor)
    safe = np.maximum(count, 1e-10)[..., None]
    mean = moments[..., 1 : 1 + dimension] / safe
    variance = np.maximum(moments[..., 1 + dimension :] / safe - mean**2, floor)
    return -0.5 * count * (dimension * (1 + np.log(2 * np.pi)) + np.log(variance).sum(axis=-1))


def questions(moments: dict[str, np.ndarray], floor: np.ndarray) -> list[frozenset[str]]:
    """Sets of units that sound alike, from their ``moments`` [1 + 2 D]: each alone, and again and again the two sets
    together that lose the least likelihood by sharing a Gaussian; and the edge of a word."""
    sets = [(frozenset([name]), value) for name, value in sorted(moments.items())]
    asked = [frozenset([EDGE]), *(names for names, _ in sets)]
    while len(sets) > 2:
        values = np.array([value for _, value in sets])
        alone = log_likelihood(values, floor)
        loss = alone[:, None] + alone - log_likelihood(values[:, None] + values, floor)
        loss[np.tril_indices(len(sets))] = np.inf
        a, b = np.unravel_index(int(loss.argmin()), loss.shape)
        both = (sets[a][0] | sets[b][0], sets[a][1] + sets[b][1])
        sets = [each for n, each in enumerate(sets) if n not in (a, b)] + [both]
        asked.append(both[0])
    return asked


@dataclass(frozen=True, eq=False)
class Leaf:
    """Rows of the statistics that share a state."""

    rows: np.ndarray
    answers: np.ndarray  # bool [Q, rows]
    path: tuple[tuple[int, bool], ...] = ()  # questions on the way to it, and their answers

    def answering(self, question: int, yes: bool) -> "Leaf":
        """The part that has this answer to a question."""
        chosen = self.answers[question] == yes
        return Leaf(self.rows[chosen], self.answers[:, chosen], (*self.path, (question, yes)))


def best_split(leaf: Leaf, moments: np.ndarray, floor: np.ndarray, least_frames: float) -> tuple[float, int]:
    """``(gain, number)`` of the question that parts the leaf best; gain 0 where none may."""
    own = moments[leaf.rows]
    yes = leaf.answers @ own
    no = own.sum(axis=0) - yes
    gains = log_likelihood(yes, floor) + log_likelihood(no, floor) - log_likelihood(own.sum(axis=0), floor)
    gains[(yes[:, 0] < least_frames) | (no[:, 0] < least_frames)] = 0.0
    best = int(gains.argmax())
    return float(gains[best]), best


def tie(roots: list[Leaf], moments: np.ndarray, floor: np.ndarray, options: TyingOptions) -> list[Leaf]:
    """The leaves when the best split of all is made again and again; ``roots`` are leaves already."""
    leaves: dict[int, Leaf] = dict(enumerate(roots))
    waiting: list[tuple] = []

    def look(number):
        gain, question = best_split(leaves[number], moments, floor, options.least_frames)
        if gain > options.least_gain:
            heapq.heappush(waiting, (-gain, number, question))

    for number in leaves:
        look(number)
    while waiting and len(leaves) < options.leaves:
        _, number, question = heapq.heappop(waiting)
        leaf, new = leaves[number], len(leaves)
        leaves[number], leaves[new] = leaf.answering(question, True), leaf.answering(question, False)
        look(number)
        look(new)
    return [*leaves.values()]


def tied(
    hmms: HmmSet, named: dict, stats: ContextStats, options: TyingOptions, given: list[frozenset[str]] | None = None
) -> tuple[HmmSet, dict]:
    """``(model, report)``: units in context (:func:`in_context`) with states of their own, one Gaussian each, shared by
    those that a decision tree does not part. Copies with the same states become one unit, named after the first.

    Questions are those of the data (:func:`questions`), or the sets that are ``given`` and the edge of a word.
    """
    moments, start = stats.moments, hmms.unit_arcs.state_start
    dimension, whole = moments.shape[1] // 2, moments.sum(axis=0) / max(moments[:, 0].sum(), 1)
    floor = DEFAULTS.variance_floor * (whole[1 + dimension :] - whole[1 : 1 + dimension] ** 2)
    centres: dict[tuple[str, int], list[int]] = {}
    for unit, (name, n_states) in enumerate((unit.name, unit.n_states) for unit in hmms.units):
        for position in range(n_states):
            centres.setdefault((named[name][1], position), []).append(start[unit] + position)
    sums: dict[str, np.ndarray] = {}
    for (phone, _), rows in centres.items():
        sums[phone] = sums.get(phone, 0) + moments[rows].sum(axis=0)
    silent = {phone for (phone, _), rows in centres.items() if moments[rows, 0].sum() == 0}
    if silent:
        raise MargoError(f"units in context: no frames of {', '.join(sorted(silent))} on any best path")
    heard = {phone: value for phone, value in sums.items() if phone != hmms.silence}
    asked = questions(heard, floor) if given is None else [frozenset([EDGE]), *given]
    owner = np.repeat(np.arange(len(hmms.units)), np.diff(start))
    sides = [[named[unit.name][side] for unit in hmms.units] for side in (0, 2)]
    answers = np.array([[name in names for name in side] for side in sides for names in asked])  # [2 Q, units]
    roots = [Leaf(np.array(rows), answers[:, owner[rows]]) for rows in centres.values()]
    if len(roots) > options.leaves:
        raise MargoError(f"--leaves is {options.leaves}, expected at least {len(roots)}: one a state of each unit")
    leaves = tie(roots, moments, floor, options)
    leaf_of = np.empty(len(moments), np.int64)
    for number, leaf in enumerate(leaves):
        leaf_of[leaf.rows] = number
    totals = np.array([moments[leaf.rows].sum(axis=0) for leaf in leaves])
    means = totals[:, 1 : 1 + dimension] / np.maximum(totals[:, :1], 1e-10)
    variances = np.maximum(totals[:, 1 + dimension :] / np.maximum(totals[:, :1], 1e-10) - means**2, floor)
    pool, states = single_gaussians(means, variances), [leaf_of[first:last] for first, last in pairwise(start)]
    if hmms.crossing is None:
        model = merged(hmms, pool, states, floor)
    else:
        quiet = states[hmms.unit_index[hmms.silence]] if hmms.silence is not None else None
        model = crossed(hmms, pool, named, leaf_table(hmms, named, leaves, asked), quiet, floor)
    gain = float(log_likelihood(totals, floor).sum() - sum(log_likelihood(moments[r].sum(axis=0), floor)
                                                           for r in centres.values()))  # fmt: skip
    frames = int(moments[:, 0].sum())
    return model, {"leaves": len(leaves), "units": len(model.units), "copies": len(hmms.units), "frames": frames,
                   "questions": len(asked), "gain": gain / max(frames, 1)}  # fmt: skip


def leaf_table(hmms: HmmSet, named: dict, leaves: list[Leaf], asked: list[frozenset[str]]) -> np.ndarray:
    """Leaf int [P + 1, P, P + 1, N] of each emitting state (-1 behind the last one) of each phone between all
    neighbours, those too that nobody has heard: a leaf is for all that answer its questions as it does."""
    phones = phones_of(named, hmms.silence)
    place = {phone: number for number, phone in enumerate(phones)}
    members = np.array([[phone in names for phone in phones] for names in asked])
    table = np.full((len(phones), len(phones) - 1, len(phones), max(unit.n_states for unit in hmms.units)), -1)
    start = hmms.unit_arcs.state_start
    for number, leaf in enumerate(leaves):
        unit = int(np.searchsorted(start, leaf.rows[0], side="right")) - 1
        phone = named[hmms.units[unit].name][1]
        if phone == hmms.silence:
            continue
        reached = np.ones((2, len(phones)), bool)  # neighbours to the left and to the right
        for question, yes in leaf.path:
            side, which = divmod(question, len(asked))
            reached[side] &= members[which] == yes
        table[:, place[phone], :, leaf.rows[0] - start[unit]][np.ix_(*reached)] = number
    return table


def crossed(
    hmms: HmmSet, pool: GaussianPool, named: dict, table: np.ndarray, quiet: np.ndarray | None, floor: np.ndarray
) -> HmmSet:
    """``hmms`` with another pool, and units whose states are those of ``table`` (:func:`leaf_table`), those with the
    same ones united; each is named after the first neighbours it has. ``quiet``: the states of silence."""
    phones = phones_of(named, hmms.silence)
    place = {phone: number for number, phone in enumerate(phones)}
    origin = {named[unit.name][1]: unit for unit in hmms.units}
    flat = table.reshape(-1, table.shape[-1])
    rows, first, crossing = np.unique(flat, axis=0, return_index=True, return_inverse=True)
    crossing = crossing.reshape(table.shape[:3])
    units = []
    for states, neighbours in zip(rows, zip(*np.unravel_index(first, crossing.shape))):
        own = origin[phones[neighbours[1]]]
        name = context_name(*(phones[number] for number in neighbours))
        units.append(replace(own, name=name, states=states[: own.n_states]))

    def alone(way: Pronunciation) -> Pronunciation:
        numbers = ([place[phone] for phone in each] for each in contexts(named[name][1] for name in way.units))
        return Pronunciation(tuple(units[crossing[tuple(each)]].name for each in numbers), way.log_prob)

    lexicon = {word: tuple(map(alone, ways)) for word, ways in hmms.lexicon.items()}
    if quiet is not None:
        units.append(replace(origin[hmms.silence], states=quiet))
    return HmmSet(pool, tuple(units), lexicon, hmms.silence, floor, hmms.meta, crossing)


def merged(hmms: HmmSet, pool: GaussianPool, states: list[np.ndarray], floor: np.ndarray) -> HmmSet:
    """``hmms`` with another pool, and these states of its units, those with the same ones united."""
    first: dict[tuple, Unit] = {}
    known = {}
    for unit, own in zip(hmms.units, states):
        known[unit.name] = first.setdefault(tuple(own.tolist()), replace(unit, states=own)).name
    lexicon = {word: tuple(Pronunciation(tuple(known[name] for name in way.units), way.log_prob) for way in ways)
               for word, ways in hmms.lexicon.items()}  # fmt: skip
    return HmmSet(pool, tuple(first.values()), lexicon, hmms.silence, floor, hmms.meta)

"""Units with their transitions, the words made of them, and the pool they share."""

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from margo.errors import MargoError, refuse
from margo.gaussian.pool import GaussianPool, single_gaussians
from margo.model.automaton import Automaton, Way
from margo.model.ngram import Ngram


@dataclass(frozen=True, eq=False)
class Unit:
    """A hidden Markov model of a word or phone, HTK's way.

    states int [N]: pool states of its emitting states (units may share them); log_transitions [N + 2, N + 2]: row 0
    leaves the non-emitting entry, column N + 1 enters the non-emitting exit; entry to exit directly is a tee.
    """

    name: str
    states: np.ndarray
    log_transitions: np.ndarray

    def __post_init__(self):
        object.__setattr__(self, "states", np.ascontiguousarray(self.states, np.int64))
        object.__setattr__(self, "log_transitions", np.ascontiguousarray(self.log_transitions, np.float64))

    @property
    def n_states(self) -> int:
        return len(self.states)

    def validate(self, pool_states: int) -> list[str]:
        """Faults of this unit beside a pool of ``pool_states`` states."""
        size, log_a = self.n_states + 2, self.log_transitions
        if self.n_states == 0:
            return [f"unit {self.name}: no emitting state"]
        if log_a.shape != (size, size):
            return [f"unit {self.name}: transitions have shape {log_a.shape}, not {(size, size)}"]
        faults = []
        if self.states.min() < 0 or self.states.max() >= pool_states:
            faults.append(f"unit {self.name}: states {self.states.tolist()}, the pool has {pool_states}")
        if np.isnan(log_a).any() or (log_a > 1e-3).any():
            return [*faults, f"unit {self.name}: a transition is not a probability"]
        if (log_a[:, 0] > -np.inf).any() or (log_a[-1] > -np.inf).any():
            faults.append(f"unit {self.name}: a transition enters the entry or leaves the exit")
        sums = np.exp(log_a[:-1]).sum(axis=1)
        for row in np.flatnonzero(np.abs(sums - 1) > 1e-3):
            faults.append(f"unit {self.name}, row {row}: transitions sum to {sums[row]:.6g}, not 1")
        if not faults and _fewest_frames(log_a > -np.inf)[2] > size:
            faults.append(f"unit {self.name}: its exit cannot be reached from its entry")
        return faults


class Pronunciation(NamedTuple):
    """Names of the units of a word, one way to say it, and the log probability that it is said so."""

    units: tuple[str, ...]
    log_prob: float = 0.0


@dataclass(frozen=True, eq=False)
class HmmSet:
    """Everything that scores speech: pool, units, and the lexicon word -> its pronunciations.

    A word that is given as names of units has this one pronunciation. ``silence`` names the unit that may stand at both
    ends and between words. ``variance_floor`` [D] holds in every update. ``meta`` is JSON-like and travels with the
    model (features, criterion, seed ...). Word indices everywhere are positions in ``words``, transition indices
    positions in the concatenated, flattened ``log_transitions``.

    ``crossing`` int [P + 1, P, P + 1]: the unit of each of P phones between two neighbours, where those in other words
    count; neighbour P is silence or an utterance's edge. The lexicon then has the units of words said alone.
    """

    pool: GaussianPool
    units: tuple[Unit, ...]
    lexicon: dict[str, tuple[Pronunciation, ...]]
    silence: str | None = None
    variance_floor: np.ndarray | None = None
    meta: dict = field(default_factory=dict)
    crossing: np.ndarray | None = None

    def __post_init__(self):
        object.__setattr__(self, "units", tuple(self.units))
        object.__setattr__(self, "lexicon", pronounced(self.lexicon))
        if self.variance_floor is not None:
            object.__setattr__(self, "variance_floor", np.ascontiguousarray(self.variance_floor, np.float64))
        refuse(self.validate(), "model")

    def validate(self) -> list[str]:
        faults = [fault for unit in self.units for fault in unit.validate(self.pool.n_states)]
        names = Counter(unit.name for unit in self.units)
        faults += [f"unit {name} appears twice" for name in sorted(names) if names[name] > 1]
        for word, ways in self.lexicon.items():
            faults += [f"word {word}: no units"] * (not ways or not all(way.units for way in ways))
            parts = dict.fromkeys(part for way in ways for part in way.units)
            faults += [f"word {word}: no unit named {part}" for part in parts if part not in self.unit_index]
            faults += [f"word {word}: log probability {way.log_prob} of a pronunciation" for way in ways
                       if not -np.inf < way.log_prob <= 1e-6]  # fmt: skip
            faults += [f"word {word}: a pronunciation is there twice"] * (len({way.units for way in ways}) < len(ways))
        if self.silence is not None and self.silence not in self.unit_index:
            faults.append(f"silence: no unit named {self.silence}")
        floor = self.variance_floor
        if floor is not None and (floor.shape != (self.pool.dimension,) or not (floor >= 0).all()):
            faults.append(f"variance floor: expected {self.pool.dimension} numbers, none negative")
        return faults or self._crossing_faults()

    def _crossing_faults(self) -> list[str]:
        """Of the table of units by their neighbours: it has those of every word, and a unit stands for one phone."""
        table = self.crossing
        if table is None:
            return []
        phones = table.shape[1] if table.ndim == 3 else -1
        if table.shape != (phones + 1, phones, phones + 1) or table.dtype.kind != "i":
            return [f"crossing: {table.dtype} {table.shape}, expected integers [P + 1, P, P + 1]"]
        if table.size == 0 or table.min() < 0 or table.max() >= len(self.units):
            return [f"crossing: expected units 0 to {len(self.units) - 1}"]
        shared = np.bincount(np.concatenate([np.unique(table[:, phone]) for phone in range(phones)]))
        twice = (self.units[unit].name for unit in np.flatnonzero(shared > 1))
        faults = [f"crossing: unit {name} stands for two phones" for name in twice]
        known = {self.units[unit].name for unit in np.unique(table)}
        if self.silence in known:
            faults.append(f"crossing: silence {self.silence} is a phone with neighbours")
        for word, ways in self.lexicon.items():
            unknown = dict.fromkeys(part for way in ways for part in way.units if part not in known)
            faults += [f"word {word}: no phone of unit {part}" for part in unknown]
        return faults

    @cached_property
    def words(self) -> tuple[str, ...]:
        return tuple(self.lexicon)

    @cached_property
    def word_index(self) -> dict[str, int]:
        return {word: index for index, word in enumerate(self.lexicon)}

    @cached_property
    def unit_index(self) -> dict[str, int]:
        return {unit.name: index for index, unit in enumerate(self.units)}

    @cached_property
    def transition_offsets(self) -> np.ndarray:
        """Where each unit's transitions start in the flat vector, int [units + 1]."""
        return np.concatenate([[0], np.cumsum([unit.log_transitions.size for unit in self.units])]).astype(np.int64)

    @cached_property
    def log_transitions(self) -> np.ndarray:
        """All transitions, flat [P]."""
        return np.concatenate([unit.log_transitions.ravel() for unit in self.units])

    @cached_property
    def unit_arcs(self) -> "UnitArcs":
        """The transitions that are possible, of all units, for compiling graphs."""
        return _unit_arcs(self)

    @cached_property
    def log_bigram(self) -> np.ndarray:
        """The bigram of the model's grammar as an array [V + 1, V + 1] (see :func:`margo.model.grammar.grammar`)."""
        rows = self.meta["grammar"]["log_bigram"]
        return np.array([[-np.inf if value is None else value for value in row] for row in rows])

    @cached_property
    def ngram(self) -> Ngram:
        """The n-gram of the model's grammar."""
        rows, order = self.meta["grammar"]["ngrams"], self.meta["grammar"]["order"]
        return Ngram(order, {tuple(words): value for words, value, _ in rows if value is not None},
                     {tuple(words): backoff for words, _, backoff in rows if backoff is not None})  # fmt: skip

    @cached_property
    def automaton(self) -> Automaton:
        """The automaton of the model's grammar, an n-gram or rules."""
        table = self.meta["grammar"]
        if table["kind"] == "ngram":
            return self.ngram.automaton
        return Automaton(table["states"], table["start"], [Way(*way) for way in table["ways"]])

    def with_pool(self, pool: GaussianPool) -> "HmmSet":
        return replace(self, pool=pool)

    def with_transitions(self, log_transitions: np.ndarray) -> "HmmSet":
        """The same set with the flat transition vector [P] replaced."""
        parts = zip(self.units, np.split(log_transitions, self.transition_offsets[1:-1]))
        units = (replace(unit, log_transitions=part.reshape(unit.log_transitions.shape)) for unit, part in parts)
        return replace(self, units=tuple(units))

    def padded(self, x: np.ndarray) -> np.ndarray:
        """Frames x [T, D] as this model sees them: with one more dimension, of zeros, if large-margin training has
        augmented it ([LJ07] (59))."""
        return np.pad(x, ((0, 0), (0, 1))) if self.meta.get("augmented") else x

    def least_frames(self, word: str) -> int:
        """Frames of the shortest path through the model of a word."""
        ways = ([self.unit_index[name] for name in way.units] for way in self.lexicon[word])
        return min(int(self.unit_arcs.fewest[units].sum()) for units in ways)

    def states_of(self, word: str) -> np.ndarray:
        """Pool states of all pronunciations of a word, one behind the other; between any neighbours."""
        units = [self.unit_index[name] for way in self.lexicon[word] for name in way.units]
        if self.crossing is not None:
            ways = (self.unit_arcs.phone[[self.unit_index[name] for name in way.units]] for way in self.lexicon[word])
            units = np.concatenate([self.between(phones) for phones in ways])
        return np.concatenate([self.units[unit].states for unit in units])

    def between(self, phones: np.ndarray) -> np.ndarray:
        """Units that a word of these ``phones`` has between any neighbours."""
        rows = zip((slice(None), *phones), phones, (*phones[1:], slice(None)))
        return np.concatenate([np.unique(self.crossing[row]) for row in rows])

    def place(self, gaussian: int) -> str:
        """``unit u, state s, component m`` of a pool Gaussian, s from 1 within the first unit that uses it."""
        state = int(np.searchsorted(self.pool.offsets, gaussian, side="right")) - 1
        component = gaussian - self.pool.offsets[state] + 1
        for unit in self.units:
            for position in np.flatnonzero(unit.states == state):
                return f"unit {unit.name}, state {position + 1}, component {component}"
        return f"unused pool state {state}, component {component}"

    def check_words(self, words) -> None:
        """Raise when a transcript is empty or has words that the model does not know."""
        if not len(words):
            raise MargoError("empty transcript")
        unknown = sorted({word for word in words if word not in self.lexicon})
        if unknown:
            raise MargoError(f"not in the model: {' '.join(unknown)}")


class UnitArcs(NamedTuple):
    """The U units of a set as flat arrays, E emitting states in all, A arcs by destination and source within a unit."""

    state_start: np.ndarray  # [U + 1] emitting states of each unit
    states: np.ndarray  # [E] their pool states
    arc_start: np.ndarray  # [E + U + 1] arcs into state i of all, of unit u, at i + u; into the exit behind its last
    source: np.ndarray  # [A] counted from 0 within the unit; -1 is its entry
    destination: np.ndarray  # [A] likewise; -1 is its exit
    log_prob: np.ndarray  # [A]
    transition: np.ndarray  # [A] index into ``HmmSet.log_transitions``
    ahead: np.ndarray  # [E] fewest frames from the unit's entry to a state, its own included,
    behind: np.ndarray  # [E] from there to the exit,
    fewest: np.ndarray  # [U] and through the unit
    word_start: np.ndarray  # [V + 1] pronunciations of each word
    way_start: np.ndarray  # [Q + 1] units of each pronunciation
    way_units: np.ndarray
    way_log_prob: np.ndarray  # [Q]
    silence: int  # its unit or -1
    phone: np.ndarray  # [U] what a unit stands for whatever its neighbours, -1: no phone; without ``crossing`` itself
    crossing: np.ndarray  # ``HmmSet.crossing``, empty where there is none


def _unit_arcs(hmms: HmmSet) -> UnitArcs:
    sources, destinations, transitions, counts, lengths = [], [], [], [], []
    for unit, offset in zip(hmms.units, hmms.transition_offsets):
        possible, exit_ = unit.log_transitions > -np.inf, unit.n_states + 1
        columns, rows = np.nonzero(possible.T)
        sources.append(rows - 1)
        destinations.append(np.where(columns == exit_, -1, columns - 1))
        transitions.append(offset + rows * (exit_ + 1) + columns)
        counts.append(possible[:, 1:].sum(axis=0))
        lengths.append(_fewest_frames(possible))
    transition = np.concatenate(transitions)
    ahead, behind, fewest = zip(*lengths)
    ways = [way for ways in hmms.lexicon.values() for way in ways]
    return UnitArcs(
        state_start=np.cumsum([0, *(unit.n_states for unit in hmms.units)]),
        states=np.concatenate([unit.states for unit in hmms.units]),
        arc_start=np.concatenate([[0], np.cumsum(np.concatenate(counts))]),
        source=np.concatenate(sources), destination=np.concatenate(destinations),
        log_prob=hmms.log_transitions[transition], transition=transition,
        ahead=np.concatenate(ahead), behind=np.concatenate(behind), fewest=np.array(fewest),
        word_start=np.cumsum([0, *map(len, hmms.lexicon.values())]),
        way_start=np.cumsum([0, *(len(way.units) for way in ways)]),
        way_units=np.array([hmms.unit_index[name] for way in ways for name in way.units], np.int64),
        way_log_prob=np.array([way.log_prob for way in ways], np.float64),
        silence=hmms.unit_index.get(hmms.silence, -1), **_phones(hmms),
    )  # fmt: skip


def _phones(hmms: HmmSet) -> dict[str, np.ndarray]:
    if hmms.crossing is None:
        return {"phone": np.arange(len(hmms.units)), "crossing": np.empty((0, 0, 0), np.int64)}
    phone = np.full(len(hmms.units), -1)
    for number in range(hmms.crossing.shape[1]):
        phone[hmms.crossing[:, number]] = number
    return {"phone": phone, "crossing": np.ascontiguousarray(hmms.crossing, np.int64)}


def _fewest_frames(possible: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """``(ahead[N], behind[N], fewest)`` of a unit with ``possible`` transitions bool [N + 2, N + 2]; above N + 2 where
    there is no way."""
    size = len(possible)
    never = size + 1
    costs = np.where(possible, 1, never)  # an arc into a state takes its frame,
    costs[:, -1] = np.where(possible[:, -1], 0, never)  # into the exit none
    ahead, behind = np.full(size, never), np.full(size, never)
    ahead[0] = behind[-1] = 0
    for _ in range(size):
        ahead = np.minimum(ahead, (ahead[:, None] + costs).min(axis=0))
        behind = np.minimum(behind, (costs + behind).min(axis=1))
    return ahead[1:-1], behind[1:-1], int(ahead[-1])


def left_to_right(states: int, stay: float = 0.6, skip: float = 0.0) -> np.ndarray:
    """Log transitions [N + 2, N + 2] of a left-to-right model: stay, go on by one, or skip one emitting state."""
    if not (states > 0 and stay > 0 and skip >= 0 and stay + skip < 1):
        raise MargoError(f"topology: {states} states, stay {stay}, skip {skip}")
    a = np.zeros((states + 2, states + 2))
    a[0, 1] = 1
    for state in range(1, states + 1):
        onward = skip if state + 2 <= states + 1 else 0.0
        a[state, state] = stay
        a[state, state + 1] = 1 - stay - onward
        if onward:
            a[state, state + 2] = onward
    with np.errstate(divide="ignore"):
        return np.log(a)


def flat_start(
    lexicon: dict, states: int | dict[str, int], mean: np.ndarray, variance: np.ndarray,
    silence: str | None = None, silence_states: int = 3, stay: float = 0.6, skip: float = 0.0,
    variance_floor: np.ndarray | None = None, meta: dict | None = None,
) -> HmmSet:  # fmt: skip
    """One Gaussian a state, all with the global ``mean`` and ``variance`` [D]; units in order of first use.

    ``states`` is one number for all units or one for each; a whole-word system has ``lexicon = {word: (word,)}``.
    """
    lexicon = pronounced(lexicon)
    names = list(dict.fromkeys(part for ways in lexicon.values() for way in ways for part in way.units))
    if silence is not None and silence not in names:
        names.append(silence)
    units, first = [], 0
    for name in names:
        number = silence_states if name == silence else states[name] if isinstance(states, dict) else states
        units.append(Unit(name, np.arange(first, first + number), left_to_right(number, stay, skip)))
        first += number
    pool = single_gaussians(np.tile(mean, (first, 1)), np.tile(variance, (first, 1)))
    return HmmSet(pool, tuple(units), lexicon, silence, variance_floor, meta or {})


def pronounced(lexicon: dict) -> dict[str, tuple[Pronunciation, ...]]:
    """A lexicon whose words may be given as names of units, or as pronunciations, as the latter."""
    table = {}
    for word, ways in lexicon.items():
        plain = not ways or isinstance(ways[0], str)
        table[word] = tuple(Pronunciation(tuple(units), float(log_prob))
                            for units, log_prob in ([(ways, 0.0)] if plain else ways))  # fmt: skip
    return table


def whole_words(words) -> dict[str, tuple[str, ...]]:
    """The lexicon in which each word is its own unit."""
    return {word: (word,) for word in words}

"""Units with their transitions, the words made of them, and the pool they share."""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from margo.errors import MargoError, refuse
from margo.gaussian.pool import GaussianPool, single_gaussians


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
            faults.append(f"unit {self.name}: a transition is not a probability")
            return faults
        if (log_a[:, 0] > -np.inf).any() or (log_a[-1] > -np.inf).any():
            faults.append(f"unit {self.name}: a transition enters the entry or leaves the exit")
        sums = np.exp(log_a[:-1]).sum(axis=1)
        for row in np.flatnonzero(np.abs(sums - 1) > 1e-3):
            faults.append(f"unit {self.name}, row {row}: transitions sum to {sums[row]:.6g}, not 1")
        if not faults and _shortest(log_a > -np.inf) is None:
            faults.append(f"unit {self.name}: its exit cannot be reached from its entry")
        return faults


@dataclass(frozen=True, eq=False)
class HmmSet:
    """Everything that scores speech: pool, units, and the lexicon word -> names of its units.

    ``silence`` names the unit that may stand at both ends and between words. ``variance_floor`` [D] holds in every
    update. ``meta`` is JSON-like and travels with the model (features, criterion, seed ...). Word indices everywhere
    are positions in ``words``, transition indices positions in the concatenated, flattened ``log_transitions``.
    """

    pool: GaussianPool
    units: tuple[Unit, ...]
    lexicon: dict[str, tuple[str, ...]]
    silence: str | None = None
    variance_floor: np.ndarray | None = None
    meta: dict = field(default_factory=dict)

    def __post_init__(self):
        object.__setattr__(self, "units", tuple(self.units))
        object.__setattr__(self, "lexicon", {word: tuple(names) for word, names in self.lexicon.items()})
        if self.variance_floor is not None:
            object.__setattr__(self, "variance_floor", np.ascontiguousarray(self.variance_floor, np.float64))
        refuse(self.validate(), "model")

    def validate(self) -> list[str]:
        faults = [fault for unit in self.units for fault in unit.validate(self.pool.n_states)]
        names = [unit.name for unit in self.units]
        faults += [f"unit {name} appears twice" for name in sorted({name for name in names if names.count(name) > 1})]
        for word, parts in self.lexicon.items():
            if not parts:
                faults.append(f"word {word}: no units")
            faults += [f"word {word}: no unit named {part}" for part in parts if part not in self.unit_index]
        if self.silence is not None and self.silence not in self.unit_index:
            faults.append(f"silence: no unit named {self.silence}")
        floor = self.variance_floor
        if floor is not None and (floor.shape != (self.pool.dimension,) or not (floor >= 0).all()):
            faults.append(f"variance floor: expected {self.pool.dimension} numbers, none negative")
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
    def arc_table(self) -> "ArcTable":
        """The transitions that are possible, of all units, for compiling graphs."""
        return _arc_table(self)

    def with_pool(self, pool: GaussianPool) -> "HmmSet":
        return replace(self, pool=pool)

    def with_transitions(self, log_transitions: np.ndarray) -> "HmmSet":
        """The same set with the flat transition vector [P] replaced."""
        units = tuple(
            replace(unit, log_transitions=log_transitions[start : start + unit.log_transitions.size].reshape(
                unit.log_transitions.shape))
            for unit, start in zip(self.units, self.transition_offsets)
        )  # fmt: skip
        return replace(self, units=units)

    def padded(self, x: np.ndarray) -> np.ndarray:
        """Frames x [T, D] as this model sees them: with one more dimension, of zeros, if large-margin training has
        augmented it ([LJ07] (59))."""
        return np.pad(x, ((0, 0), (0, 1))) if self.meta.get("augmented") else x

    def least_frames(self, word: str) -> int:
        """Frames of the shortest path through the model of a word."""
        units = (self.units[self.unit_index[name]] for name in self.lexicon[word])
        return sum(_shortest(unit.log_transitions > -np.inf) for unit in units)

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


@dataclass(frozen=True, eq=False)
class ArcTable:
    """Arcs of unit u are ``start[u]:start[u + 1]``, its emitting states ``state_start[u]:state_start[u + 1]``.

    source and destination count a unit's emitting states from 0; a source of -1 is its entry, a destination of -1 its
    exit. log_prob, transition (index into ``HmmSet.log_transitions``), states (pool states).
    """

    start: np.ndarray
    source: np.ndarray
    destination: np.ndarray
    log_prob: np.ndarray
    transition: np.ndarray
    state_start: np.ndarray
    states: np.ndarray


def _arc_table(hmms: HmmSet) -> ArcTable:
    sources, destinations, transitions = [], [], []
    for unit, offset in zip(hmms.units, hmms.transition_offsets):
        rows, columns = np.nonzero(unit.log_transitions > -np.inf)
        sources.append(rows - 1)
        destinations.append(np.where(columns == unit.n_states + 1, -1, columns - 1))
        transitions.append(offset + rows * (unit.n_states + 2) + columns)
    transition = np.concatenate(transitions)
    return ArcTable(
        start=np.cumsum([0, *map(len, sources)]),
        source=np.concatenate(sources),
        destination=np.concatenate(destinations),
        log_prob=hmms.log_transitions[transition],
        transition=transition,
        state_start=np.cumsum([0, *(unit.n_states for unit in hmms.units)]),
        states=np.concatenate([unit.states for unit in hmms.units]),
    )


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
    lexicon: dict[str, tuple[str, ...]],
    states: int | dict[str, int],
    mean: np.ndarray,
    variance: np.ndarray,
    silence: str | None = None,
    silence_states: int = 3,
    stay: float = 0.6,
    skip: float = 0.0,
    variance_floor: np.ndarray | None = None,
    meta: dict | None = None,
) -> HmmSet:
    """One Gaussian a state, all with the global ``mean`` and ``variance`` [D]; units in order of first use.

    ``states`` is one number for all units or one for each; a whole-word system has ``lexicon = {word: (word,)}``.
    """
    names = list(dict.fromkeys(part for parts in lexicon.values() for part in parts))
    if silence is not None and silence not in names:
        names.append(silence)
    units, first = [], 0
    for name in names:
        if name == silence:
            number = silence_states
        else:
            number = states[name] if isinstance(states, dict) else states
        units.append(Unit(name, np.arange(first, first + number), left_to_right(number, stay, skip)))
        first += number
    pool = single_gaussians(np.tile(mean, (first, 1)), np.tile(variance, (first, 1)))
    return HmmSet(pool, tuple(units), lexicon, silence, variance_floor, meta or {})


def whole_words(words) -> dict[str, tuple[str, ...]]:
    """The lexicon in which each word is its own unit."""
    return {word: (word,) for word in words}


def _shortest(possible: np.ndarray) -> int | None:
    """Emitting states on the shortest way from entry to exit over ``possible`` transitions; None if there is none."""
    reached = possible[0].copy()
    for passed in range(len(possible) - 1):
        if reached[-1]:
            return passed
        reached |= possible[reached].any(axis=0)
    return None

"""Search graphs as flat arrays, compiled from an HmmSet.

Nodes 0 .. E-1 emit one frame each time they are entered; the null nodes behind them emit nothing and are numbered so
that every null-to-null arc goes upwards. A unit's entry and exit stay null nodes, so each arc stands for at most one
transition parameter. Time is counted in frames consumed: an arc into an emitting node takes one, an arc into a null
node none.
"""

from dataclasses import dataclass

import numpy as np

from margo.errors import MargoError
from margo.model.hmm import HmmSet


@dataclass(frozen=True, eq=False)
class Graph:
    """Arcs sorted by destination, in order of creation within one: where searches meet equals, the first arc wins.

    states int [S']: the pool states the graph uses, the columns of the likelihoods it is searched with; state int [E]:
    column of each emitting node; node_word int [E]: word the node belongs to, -1 for silence; arc_start int [n + 1],
    source, log_prob, transition (index into ``HmmSet.log_transitions``, or -1), word and unit (entered by that arc, or
    -1), destination: all [A]; out_start int [n + 1], out_arc int [A]: arcs by source.
    """

    states: np.ndarray
    state: np.ndarray
    node_word: np.ndarray
    arc_start: np.ndarray
    source: np.ndarray
    destination: np.ndarray
    log_prob: np.ndarray
    transition: np.ndarray
    word: np.ndarray
    unit: np.ndarray
    out_start: np.ndarray
    out_arc: np.ndarray
    start: int
    end: int
    words: tuple[str, ...]

    @property
    def n_emitting(self) -> int:
        return len(self.state)

    @property
    def n_nodes(self) -> int:
        return len(self.arc_start) - 1

    @property
    def n_arcs(self) -> int:
        return len(self.source)

    def transition_counts(self, arc_counts: np.ndarray, n_transitions: int) -> np.ndarray:
        """Sum expected arc counts [A] into transition parameters [P]."""
        used = self.transition >= 0
        return np.bincount(self.transition[used], arc_counts[used], n_transitions)


def align_graph(hmms: HmmSet, words) -> Graph:
    """Forced alignment: the words in order, silence optional at both ends and between words."""
    hmms.check_words(words)
    build = _Builder(hmms)
    here = build.optional_silence(build.start)
    for word in words:
        here = build.optional_silence(build.word_behind(here, hmms.word_index[word]))
    return build.finish(here)


def isolated_graph(hmms: HmmSet, log_prior: np.ndarray | None = None) -> Graph:
    """Exactly one of the words, with optional silence around it; ``log_prior`` [V] is added to each."""
    build = _Builder(hmms)
    hub, tail = build.optional_silence(build.start), build.null()
    for word in range(len(hmms.words)):
        build.arc(build.word_behind(hub, word, 0.0 if log_prior is None else log_prior[word]), tail)
    return build.finish(build.optional_silence(tail))


def loop_graph(hmms: HmmSet, insertion_penalty: float = 0.0) -> Graph:
    """One or more words in any order; ``insertion_penalty`` is added to the score for every word."""
    build = _Builder(hmms)
    hub, tail = build.null(), build.null()
    build.arc(build.optional_silence(build.start), hub)
    for word in range(len(hmms.words)):
        build.arc(build.word_behind(hub, word, insertion_penalty), tail)
    tail = build.optional_silence(tail)
    build.arc(tail, hub)
    return build.finish(tail)


def bigram_graph(hmms: HmmSet, log_bigram: np.ndarray, scale: float = 1.0, insertion_penalty: float = 0.0) -> Graph:
    """One or more words under a bigram.

    ``log_bigram`` [V + 1, V + 1]: row v is the previous word and row V the start; column v the next word and column V
    the end. Each word costs ``scale * log_bigram + insertion_penalty``, the end no penalty; -inf forbids.
    """
    size = len(hmms.words) + 1
    log_bigram = np.asarray(log_bigram, np.float64)
    if log_bigram.shape != (size, size):
        raise MargoError(f"bigram has shape {log_bigram.shape}, the model's words ask for {(size, size)}")
    if np.isnan(log_bigram).any():
        raise MargoError("bigram holds NaN")
    build = _Builder(hmms)
    entries, exits = zip(*(build.word(word) for word in range(size - 1)))
    final = build.null()
    for row, tail in enumerate([*exits, build.start]):
        tail = build.optional_silence(tail)
        for word in np.flatnonzero(log_bigram[row, :-1] > -np.inf).tolist():
            build.enter(tail, entries[word], word, scale * log_bigram[row, word] + insertion_penalty)
        if row < size - 1 and log_bigram[row, -1] > -np.inf:
            build.arc(tail, final, scale * log_bigram[row, -1])
    return build.finish(final)


class _Builder:
    """Collects copies of units and the arcs between them; :meth:`finish` makes arrays of all at once.

    Null nodes are negative numbers until then.
    """

    def __init__(self, hmms: HmmSet):
        self.hmms = hmms
        self.copies: list[tuple] = []  # unit, word, first emitting node, entry, exit
        self.arcs: list[tuple] = []  # source, destination, log_prob, word, unit
        self.emitting = 0
        self.nulls = 0
        self.start = self.null()

    def null(self) -> int:
        self.nulls += 1
        return -self.nulls

    def arc(self, source: int, destination: int, log_prob: float = 0.0, word: int = -1, unit: int = -1) -> None:
        self.arcs.append((source, destination, log_prob, word, unit))

    def unit(self, unit_index: int, word: int) -> tuple[int, int]:
        """A copy of a unit for ``word`` (-1: none); returns its entry and exit."""
        entry, exit_ = self.null(), self.null()
        self.copies.append((unit_index, word, self.emitting, entry, exit_))
        self.emitting += self.hmms.units[unit_index].n_states
        return entry, exit_

    def word(self, word: int) -> tuple[int, int]:
        """A copy of a word; returns entry and exit. The arc into it is :meth:`enter`'s."""
        first, *others = (self.hmms.unit_index[name] for name in self.hmms.lexicon[self.hmms.words[word]])
        entry, here = self.unit(first, word)
        for unit_index in others:
            head, tail = self.unit(unit_index, word)
            self.arc(here, head, unit=unit_index)
            here = tail
        return entry, here

    def enter(self, here: int, entry: int, word: int, log_prob: float) -> None:
        """An arc from ``here`` into a word's entry."""
        self.arc(here, entry, log_prob, word, self.hmms.unit_index[self.hmms.lexicon[self.hmms.words[word]][0]])

    def word_behind(self, here: int, word: int, log_prob: float = 0.0) -> int:
        entry, tail = self.word(word)
        self.enter(here, entry, word, log_prob)
        return tail

    def optional_silence(self, here: int) -> int:
        """Silence or nothing behind ``here``; without a silence unit just ``here``."""
        if self.hmms.silence is None:
            return here
        index = self.hmms.unit_index[self.hmms.silence]
        entry, tail = self.unit(index, -1)
        after = self.null()
        self.arc(here, after)
        self.arc(here, entry, unit=index)
        self.arc(tail, after)
        return after

    def finish(self, last: int) -> Graph:
        end = self.null()
        self.arc(last, end)
        table = self.hmms.arc_table
        unit, word, base, entry, exit_ = np.array(self.copies, np.int64).T
        inner, copy = _runs(table.start[unit], table.start[unit + 1] - table.start[unit])
        states, owner = _runs(table.state_start[unit], table.state_start[unit + 1] - table.state_start[unit])
        outer = np.array(self.arcs, np.float64).T
        nowhere = np.full(len(inner), -1)
        source = np.where(table.source[inner] < 0, entry[copy], base[copy] + table.source[inner])
        destination = np.where(table.destination[inner] < 0, exit_[copy], base[copy] + table.destination[inner])
        ends = np.concatenate([[source, destination], outer[:2].astype(np.int64)], axis=1)
        order = _null_order(ends, self.nulls)
        # Null nodes were numbered -1, -2 ...: as indices these count from behind, hence the reversal.
        number = np.concatenate([np.arange(self.emitting), self.emitting + order[::-1]])
        source, destination = number[ends]
        by_destination = np.argsort(destination, kind="stable")

        def arranged(inside, outside):
            return np.concatenate([inside, outside])[by_destination]

        source, n_nodes = source[by_destination], self.emitting + self.nulls
        used = np.zeros(self.hmms.pool.n_states, np.int64)
        used[table.states[states]] = 1
        column = np.cumsum(used) - 1
        none = np.full(outer.shape[1], -1)
        return Graph(
            states=np.flatnonzero(used),
            state=column[table.states[states]],
            node_word=word[owner],
            arc_start=_starts(destination, n_nodes),
            source=source,
            destination=destination[by_destination],
            log_prob=arranged(table.log_prob[inner], outer[2]),
            transition=arranged(table.transition[inner], none),
            word=arranged(nowhere, outer[3].astype(np.int64)),
            unit=arranged(nowhere, outer[4].astype(np.int64)),
            out_start=_starts(source, n_nodes),
            out_arc=np.argsort(source, kind="stable"),
            start=int(number[self.start]),
            end=int(number[end]),
            words=self.hmms.words,
        )


def _runs(starts: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``starts[i] ... starts[i] + lengths[i] - 1`` for all i in a row, and the i of each."""
    owner = np.repeat(np.arange(len(lengths)), lengths)
    return np.arange(len(owner)) - (np.cumsum(lengths) - lengths - starts)[owner], owner


def _starts(keys: np.ndarray, number: int) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(np.bincount(keys, minlength=number))])


def _null_order(ends: np.ndarray, nulls: int) -> np.ndarray:
    """Place of each null node (in order of creation) such that null-to-null arcs go upwards, int [nulls]."""
    sources, destinations = -1 - ends[:, (ends < 0).all(axis=0)]
    if (sources < destinations).all():
        return np.arange(nulls)
    waiting = np.bincount(destinations, minlength=nulls)
    followers: list[list[int]] = [[] for _ in range(nulls)]
    for source, destination in zip(sources.tolist(), destinations.tolist()):
        followers[source].append(destination)
    ready = np.flatnonzero(waiting == 0).tolist()
    place = np.full(nulls, -1)
    for position in range(nulls):
        if not ready:
            raise MargoError("graph: a loop can be run through without a frame (a word of tee models only)")
        node = ready.pop(0)
        place[node] = position
        for follower in followers[node]:
            waiting[follower] -= 1
            if waiting[follower] == 0:
                ready.append(follower)
    return place

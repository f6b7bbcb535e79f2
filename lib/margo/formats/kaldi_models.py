"""Kaldi's GMM models in text form (``gmm-copy --binary=false``): transition model and diagonal GMMs; trees left aside.

A transition-state is a triple of phone, HMM state and pdf, counted from 1 in the file's order; transition-ids number
the transitions out of each in turn, in the topology's order, also from 1.
"""

from dataclasses import dataclass

import numpy as np

from margo.errors import MargoError, refuse
from margo.formats.atomic import write_text
from margo.formats.reading import check_inflation, read_bytes, read_lines, read_text, reading
from margo.gaussian.pool import GaussianPool
from margo.knobs import brief, real, whole
from margo.model.hmm import HmmSet, Unit

DIGITS = ".9g"  # of float32, and some more


@dataclass(frozen=True)
class Transitions:
    """Transition-ids as arrays over them; entry 0 stands for none."""

    unit: np.ndarray  # int [I + 1] unit, in the order of the set's
    position: np.ndarray  # int [I + 1] emitting state of the unit, from 0
    target: np.ndarray  # int [I + 1] the state it goes to; the number of states: out of the unit
    pdf: np.ndarray  # int [I + 1]


def transitions_of(hmms: HmmSet) -> Transitions:
    """The transition-ids of a set whose units all begin in their first state."""
    rows, faults = [(-1, -1, -1, -1)], []
    for number, unit in enumerate(hmms.units):
        possible = unit.log_transitions > -np.inf
        if possible[0].nonzero()[0].tolist() != [1]:
            faults.append(f"unit {unit.name}: can be entered elsewhere than in its first state")
        for position, state in enumerate(unit.states.tolist()):
            rows += [(number, position, int(target) - 1, state) for target in possible[position + 1].nonzero()[0]]
    refuse(faults, "Kaldi's topologies cannot say this")
    return Transitions(*np.array(rows).T)


def write_model_text(path, hmms: HmmSet) -> None:
    """Phones are the units, numbered from 1 in their order; pdfs are pool states."""
    ids = transitions_of(hmms)
    lines = ["<TransitionModel> ", "<Topology> "]
    triples, log_probs = [], [0.0]
    for number, unit in enumerate(hmms.units):
        lines += ["<TopologyEntry> ", "<ForPhones> ", f"{number + 1} ", "</ForPhones> "]
        for position, state in enumerate(unit.states.tolist()):
            targets = ids.target[(ids.unit == number) & (ids.position == position)]
            logs = unit.log_transitions[position + 1, targets + 1]
            moves = " ".join(f"<Transition> {target} {p:{DIGITS}}" for target, p in zip(targets, np.exp(logs)))
            lines.append(f"<State> {position} <PdfClass> {position} {moves} </State> ")
            triples.append(f"{number + 1} {position} {state} ")
            log_probs += logs.tolist()
        lines += [f"<State> {unit.n_states} </State> ", "</TopologyEntry> "]
    lines += ["</Topology> ", f"<Triples> {len(triples)} ", *triples, "</Triples> ", "<LogProbs> ", _vector(log_probs),
              "</LogProbs> ", "</TransitionModel> "]  # fmt: skip
    lines.append(f"<DIMENSION> {hmms.pool.dimension} <NUMPDFS> {hmms.pool.n_states} ")
    write_text(path, "\n".join(lines + [line for state in range(hmms.pool.n_states) for line in _gmm(hmms, state)]))


def _gmm(hmms: HmmSet, state: int) -> list[str]:
    pool = hmms.pool
    pool.require("diagonal", "a Kaldi file")
    own = np.arange(pool.offsets[state], pool.offsets[state + 1])
    own = own[pool.log_weights[own] > -np.inf]
    means, inverse = pool.means[own], 1.0 / pool.variances[own]
    constants = pool.log_weights[own] - 0.5 * (
        pool.dimension * np.log(2 * np.pi) - np.log(inverse).sum(axis=1) + (means**2 * inverse).sum(axis=1))
    return ["<DiagGMM> ", f"<GCONSTS> {_vector(constants)}", f"<WEIGHTS> {_vector(np.exp(pool.log_weights[own]))}",
            f"<MEANS_INVVARS>  [{_matrix(means * inverse)}", f"<INV_VARS>  [{_matrix(inverse)}",
            "</DiagGMM> "]  # fmt: skip


def _vector(values) -> str:
    return " [ " + " ".join(f"{value:{DIGITS}}" for value in values) + " ]"


def _matrix(rows) -> str:
    return "".join("\n  " + " ".join(f"{value:{DIGITS}}" for value in row) + " " for row in rows) + "]"


def read_symbols(path) -> dict[int, str]:
    """``number -> symbol`` of a file such as phones.txt."""
    symbols, faults = {}, []
    for number, line in read_lines(path):
        try:
            symbol, value = line.split()
            known = symbols.setdefault(whole(value), symbol)
            faults += [f"line {number}: {value} is {known[:60]} already"] * (known != symbol)
        except ValueError:
            faults.append(f"line {number}: {brief(line.strip())}, expected: symbol number")
    refuse(faults, str(path), most=10)
    return symbols


def read_model_text(path, symbols: dict[int, str] | None = None, lexicon=None, silence: str | None = None) -> HmmSet:
    """The phones of a text model as units, named by ``symbols``; each is a word of its own without ``lexicon``.

    Refused where a phone's state has several pdfs, as under a tree that asks for neighbours.
    """
    reader = _Reader(path)
    topologies, states = reader.transition_model()
    pool = reader.pool()
    units = reader.units(topologies, states, symbols or {}, pool.n_states)
    if lexicon is None:
        lexicon = {unit.name: (unit.name,) for unit in units if unit.name != silence}
    with reading(path):
        return HmmSet(pool, units, lexicon, silence)


class _Reader:
    """Words of the file in turn."""

    def __init__(self, path):
        self.path, self.at = path, 0
        if read_bytes(path).startswith(b"\0B"):
            raise MargoError(f"{path}: not text, expected a model of gmm-copy --binary=false")
        text = read_text(path)
        self.size = len(text)
        self.words = text.replace("[", " [ ").replace("]", " ] ").split()

    @property
    def word(self) -> str:
        return self.words[self.at] if self.at < len(self.words) else "the end of the file"

    def fail(self, expected: str):
        raise MargoError(f"{self.path}: word {self.at + 1}: expected {expected}, found {self.word[:40]}")

    def expect(self, *words: str) -> None:
        for word in words:
            if self.word != word:
                self.fail(word)
            self.at += 1

    def until(self, end: str, kind=whole) -> np.ndarray:
        """The numbers up to the word ``end``, which is passed too."""
        first = self.at
        while self.word != end:
            if self.at >= len(self.words):
                self.fail(end)
            self.at += 1
        try:
            values = np.array([kind(word) for word in self.words[first : self.at]], int if kind is whole else None)
        except ValueError:
            self.at = first
            self.fail(f"numbers up to {end}")
        self.at += 1
        return values

    def number(self) -> int:
        try:
            value = whole(self.word)
        except ValueError:
            self.fail("a whole number")
        self.at += 1
        return value

    def transition_model(self):
        """``({phone: [targets of each state]}, [(phone, state, pdf, log probabilities)])``."""
        self.expect("<TransitionModel>", "<Topology>")
        topologies: dict[int, list[list[int]]] = {}
        while self.word == "<TopologyEntry>":
            self.expect("<TopologyEntry>", "<ForPhones>")
            phones, entry = self.until("</ForPhones>"), []
            while self.word == "<State>":
                self.expect("<State>", str(len(entry)))
                if self.word == "<PdfClass>":
                    self.at += 2
                entry.append(self.targets())
            self.expect("</TopologyEntry>")
            topologies |= {phone: entry for phone in phones.tolist()}
        self.expect("</Topology>")
        if self.word not in ("<Triples>", "<Tuples>"):
            self.fail("<Triples>")
        width = 3 if self.word == "<Triples>" else 4
        closing = self.word.replace("<", "</")
        self.at += 1
        count = self.number()
        rows = self.until(closing)
        if len(rows) != count * width:
            raise MargoError(f"{self.path}: {len(rows)} numbers in {closing}, expected {count} rows of {width}")
        rows = rows.reshape(-1, width)
        self.expect("<LogProbs>", "[")
        logs = self.until("]", real)[1:]  # the first stands for none
        self.expect("</LogProbs>", "</TransitionModel>")
        faults = [f"phone {row[0]}, state {row[1]}: two pdfs, {row[2]} and {row[3]}" for row in rows
                  if width == 4 and row[2] != row[3]]  # fmt: skip
        faults += [f"phone {phone}, state {state}: not in the topology" for phone, state in rows[:, :2].tolist()
                   if not 0 <= state < len(topologies.get(phone, ()))]  # fmt: skip
        faults += ["no states"] * (not len(rows))
        refuse(faults, str(self.path), most=10)
        sizes = [len(topologies[phone][state]) for phone, state in rows[:, :2].tolist()]
        if len(logs) != sum(sizes):
            raise MargoError(f"{self.path}: {len(logs)} log probabilities, the topology has {sum(sizes)} transitions")
        ends = np.cumsum(sizes)
        return topologies, [(*row[:3], part) for row, part in zip(rows.tolist(), np.split(logs, ends[:-1]))]

    def targets(self) -> list[int]:
        found = []
        while self.word == "<Transition>":
            self.at += 1
            found.append(self.number())
            self.at += 1  # its first probability; <LogProbs> has the trained one
        self.expect("</State>")
        return found

    def units(self, topologies, states, symbols, pdfs: int) -> tuple[Unit, ...]:
        phones: dict[int, dict[int, tuple]] = {}
        faults = []
        for phone, state, pdf, logs in states:
            if state in phones.setdefault(phone, {}):
                faults.append(f"phone {symbols.get(phone, phone)}, state {state}: pdfs {phones[phone][state][0]} and "
                              f"{pdf}: models of phones in context are not read")  # fmt: skip
            phones[phone][state] = (pdf, logs)
            faults += [f"phone {phone}: pdf {pdf}, there are {pdfs}"] * (not 0 <= pdf < pdfs)
        for phone, held in phones.items():
            wanted = {target for state in held for target in topologies[phone][state]} | {*range(len(held))}
            if not wanted <= {*held, len(held)} or len(held) in held:
                faults.append(f"phone {phone}: states {brief(sorted(held))}, its topology has {brief(sorted(wanted))}")
        refuse(faults, str(self.path), most=5)
        check_inflation(self.path, sum(8 * (len(held) + 2) ** 2 for held in phones.values()), self.size)
        units = []
        for phone, held in sorted(phones.items()):
            size = len(held)
            log_a = np.full((size + 2, size + 2), -np.inf)
            log_a[0, 1] = 0.0
            for state, (_, logs) in held.items():
                log_a[state + 1, np.array(topologies[phone][state]) + 1] = logs
            units.append(Unit(symbols.get(phone, str(phone)), [held[state][0] for state in range(size)], log_a))
        return tuple(units)

    def pool(self) -> GaussianPool:
        self.expect("<DIMENSION>")
        dimension = self.number()
        if dimension < 1:
            raise MargoError(f"{self.path}: <DIMENSION> is {dimension}, expected at least 1")
        self.expect("<NUMPDFS>")
        weights, means, inverses = [], [], []
        for _ in range(self.number()):
            if self.word not in ("<DiagGMM>", "<DiagGMMBegin>"):
                self.fail("<DiagGMM> (a model of diagonal GMMs)")
            closing = self.word.replace("<", "</").replace("Begin", "End")
            self.at += 1
            if self.word == "<GCONSTS>":
                self.expect("<GCONSTS>", "[")
                self.until("]", str)  # they follow from the rest
            self.expect("<WEIGHTS>", "[")
            weights.append(self.until("]", real))
            for name, held in (("<MEANS_INVVARS>", means), ("<INV_VARS>", inverses)):
                self.expect(name, "[")
                values = self.until("]", real)
                if len(values) != len(weights[-1]) * dimension:
                    self.fail(f"{len(weights[-1])} rows of {dimension} in {name}")
                held.append(values.reshape(-1, dimension))
            self.expect(closing)
        if self.at < len(self.words):
            self.fail("the end of the file")
        offsets = np.cumsum([0, *map(len, weights)])
        with reading(self.path, "a model"), np.errstate(all="ignore"):  # what is no number then is refused
            inverse, log_weights = np.concatenate(inverses), np.log(np.concatenate(weights))
            return GaussianPool(np.concatenate(means) / inverse, 1.0 / inverse, log_weights, offsets)

"""HTK's files: model definitions (text), parameter files, master label files. Parameters in and out.

Read: one-stream diagonal models with macros for states (~s), mixtures (~m), means (~u), variances (~v) and transitions
(~t). A macro's state is one pool state wherever it is used, so tied states stay tied. Mixtures that HTK did not write
(weight under 1e-5) are kept as dead components. Anything else is refused with file, line and what was found.
"""

import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from margo.errors import MargoError
from margo.formats.atomic import write_text
from margo.formats.htk_strings import quoted, string_at, strings
from margo.formats.reading import read_bytes, read_lines, read_text, reading
from margo.gaussian.pool import GaussianPool
from margo.knobs import real, whole
from margo.model.hmm import HmmSet, Unit

TOKEN = re.compile(r"""<[^<>\n]*>|~\w|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|(?:[^\s<"\\]+|\\\S)+|\S""")
FILE_NAMED = re.compile(r'[/*]|\.(lab|rec)"$')
TIME = re.compile(r"(-?[0-9]+)\s+(?=\S)")
COUNTED = 16  # values of components that the file only counts, for each token of it
VARIANCE_FLOOR = "varFloor1"
DEAD = 1e-5  # HTK's MINMIX: it does not write mixtures of this weight or less
STRUCTURE = ("<BEGINHMM>", "<NUMSTATES>", "<STATE>", "<TRANSP>", "<ENDHMM>")  # what is not an option


@dataclass(frozen=True)
class Label:
    """A line of a label file: times in 100 ns (None without), name, and what follows it."""

    name: str
    start: int | None = None
    end: int | None = None
    rest: tuple[str, ...] = ()


def read_hmmdefs(*paths, lexicon: dict[str, tuple[str, ...]] | None = None, silence: str | None = None) -> HmmSet:
    """The models of one or more text files (say macros and hmmdefs); each is a word of its own without ``lexicon``."""
    reader = _Models()
    for path in paths:
        reader.read(Path(path))
    if not reader.units:
        raise MargoError(f"{paths[-1]}: no ~h model found")
    offsets = np.concatenate([[0], np.cumsum([len(state) for state in reader.states])])
    units = tuple(Unit(name, states, log_a) for name, (states, log_a) in reader.units.items())
    if lexicon is None:
        lexicon = {unit.name: (unit.name,) for unit in units if unit.name != silence}
    floor = reader.macros.get(("v", VARIANCE_FLOOR))
    with reading(paths[-1], "models of HTK"), np.errstate(divide="ignore", invalid="ignore"):
        weights, means, variances = map(np.array, zip(*(component for state in reader.states for component in state)))
        log_weights = np.log(weights)
        return HmmSet(GaussianPool(means, variances, log_weights, offsets), units, lexicon, silence, floor)


def write_hmmdefs(path, hmms: HmmSet, kind: str = "USER", macros=None) -> None:
    """Write ``hmms`` as a text file of HTK; states used more than once become ~s macros, the floor a ~v macro.

    ``macros`` is the file for what is not of one model, as HTK has it; without, all goes to ``path``.
    """
    dimension = hmms.pool.dimension
    head = ["~o", f"<STREAMINFO> 1 {dimension}", f"<VECSIZE> {dimension}<NULLD><{kind}><DIAGC>"]
    used = np.bincount(np.concatenate([unit.states for unit in hmms.units]), minlength=hmms.pool.n_states)
    shared = {int(state) for state in np.flatnonzero(used > 1)}
    common, lines = [], []
    if hmms.variance_floor is not None:
        common += [f'~v "{VARIANCE_FLOOR}"', f"<VARIANCE> {dimension}", _row(hmms.variance_floor)]
    for state in sorted(shared):
        common += [f'~s "s{state}"', *_state_lines(hmms.pool, state)]
    for unit in hmms.units:
        lines += [f"~h {quoted(unit.name)}", "<BEGINHMM>", f"<NUMSTATES> {unit.n_states + 2}"]
        for position, state in enumerate(unit.states.tolist()):
            lines.append(f"<STATE> {position + 2}")
            lines += [f'~s "s{state}"'] if state in shared else _state_lines(hmms.pool, state)
        lines.append(f"<TRANSP> {unit.n_states + 2}")
        lines += [_row(row) for row in np.exp(unit.log_transitions)]
        lines.append("<ENDHMM>")
    if macros is not None:
        write_text(macros, "\n".join(head + common) + "\n")
        common = []
    write_text(path, "\n".join(head + common + lines) + "\n")


def read_parameters(path) -> tuple[np.ndarray, int, int]:
    """An uncompressed parameter file: float32 [T, D], frame shift in 100 ns, HTK's kind code."""
    data = read_bytes(path)
    if len(data) < 12:
        raise MargoError(f"{path}: {len(data)} bytes, an HTK header has 12")
    frames, shift = np.frombuffer(data, ">i4", 2).tolist()
    size, kind = np.frombuffer(data, ">i2", 2, 8).tolist()
    if kind & 0o2000 or kind & 0o77 in (0, 5):
        raise MargoError(f"{path}: kind {kind:#o} is compressed or not of float values")
    if frames < 0 or size <= 0 or size % 4 or len(data) < 12 + frames * size:
        raise MargoError(f"{path}: {len(data)} bytes, the header promises {frames} frames of {size} bytes")
    values = np.frombuffer(data, ">f4", frames * size // 4, 12).reshape(frames, size // 4).astype(np.float32)
    if not np.isfinite(values).all():
        raise MargoError(f"{path}: {int((~np.isfinite(values)).sum())} values are not finite")
    return values, shift, kind


def read_mlf(path) -> dict[str, list[Label]]:
    """A master label file: labels by the pattern's last part without its extension. A quoted line among labels is
    one of them unless it names a file."""
    lines = read_lines(path)
    if not lines or lines[0][1].strip() != "#!MLF!#":
        raise MargoError(f"{path}:1: expected #!MLF!#")
    result: dict[str, list[Label]] = {}
    labels: list[Label] | None = None
    for number, line in lines[1:]:
        text = line.strip()
        if text.startswith('"') and text.endswith('"') and (labels is None or FILE_NAMED.search(text)):
            name, labels = Path(text.strip('"')).stem, []
            if name in result:
                raise MargoError(f"{path}:{number}: {name} is there already")
            result[name] = labels
        elif text == ".":
            labels = None
        elif labels is None:
            raise MargoError(f"{path}:{number}: a label outside any file: {text[:60]}")
        else:
            with reading(f"{path}:{number}", "a label"):
                labels.append(_label(text))
    return result


def _label(line: str) -> Label:
    times = []
    while len(times) < 2 and (found := TIME.match(line)):
        times.append(whole(found[1]))
        line = line[found.end() :]
    start, end = (*times, None, None)[:2]
    name, *rest = strings(line)
    return Label(name, start, end, tuple(rest))


def _row(values) -> str:
    return " " + " ".join(map(_number, np.asarray(values, float).tolist()))


def _number(value: float) -> str:
    """As HTK writes it where that says it all (so that what was read is written alike), else with more digits."""
    short = f"{value:.6e}"
    return short if abs(float(short) - value) <= 1e-14 * abs(value) else f"{value:.9e}"


def _state_lines(pool: GaussianPool, state: int) -> list[str]:
    """A state's mixture; components that HTK would take for dead are left out, as HTK does."""
    pool.require("diagonal", "an HTK file")
    first, last = pool.offsets[state], pool.offsets[state + 1]
    lines = [f"<NUMMIXES> {last - first}"] if last - first > 1 else []
    for k in range(first, last):
        weight = float(np.exp(pool.log_weights[k]))
        if last - first > 1 and weight <= DEAD:
            continue
        if last - first > 1:
            lines.append(f"<MIXTURE> {k - first + 1} {_number(weight)}")
        lines += [f"<MEAN> {pool.dimension}", _row(pool.means[k])]
        lines += [f"<VARIANCE> {pool.dimension}", _row(pool.variances[k])]
        lines.append(f"<GCONST> {pool.dimension * np.log(2 * np.pi) + np.log(pool.variances[k]).sum():.6e}")
    return lines


class _Models:
    """A recursive-descent reader; macros live across files as in HTK."""

    def __init__(self):
        self.macros: dict[tuple[str, str], object] = {}
        self.room = 0  # for values of components
        self.states: list[list] = []  # pool states: lists of (weight, mean, variance)
        self.units: dict[str, tuple] = {}

    def read(self, path: Path) -> None:
        self.text, self.path = read_text(path, "HTK models in text (binary ones are not read)"), path
        self.tokens = [(match.group(), match.start()) for match in TOKEN.finditer(self.text)]
        self.at = 0
        self.room += COUNTED * len(self.tokens)
        while self.at < len(self.tokens):
            self.macro()

    def peek(self) -> str:
        return self.tokens[self.at][0].upper() if self.at < len(self.tokens) else "the end of the file"

    def take(self) -> str:
        if self.at >= len(self.tokens):
            self.fail("more")
        self.at += 1
        return self.tokens[self.at - 1][0]

    def fail(self, expected: str, at: int | None = None):
        at = self.at if at is None else at
        found, position = self.tokens[at] if at < len(self.tokens) else ("the end of the file", len(self.text))
        line = self.text.count("\n", 0, position) + 1
        raise MargoError(f"{self.path}:{line}: expected {expected}, found {found[:40]}")

    def name(self) -> str:
        at, token = self.at, self.take()
        with suppress(ValueError):
            name, end = string_at(token, 0)
            if end == len(token):
                return name
        self.fail("a name", at)

    def expect(self, keyword: str) -> None:
        if self.peek() != keyword:
            self.fail(keyword)
        self.at += 1

    def integer(self, low: int, high: int) -> int:
        at, token = self.at, self.take()
        try:
            value = whole(token)
        except ValueError:
            value = low - 1
        if not low <= value <= high:
            self.fail(f"a number from {low} to {high}", at)
        return value

    def numbers(self, count: int) -> np.ndarray:
        values = []
        with suppress(ValueError):  # those before it are in the list
            values += (real(token) for token, _ in self.tokens[self.at : self.at + count])
        if len(values) != count:
            self.fail(f"{count} numbers", self.at + len(values))
        self.at += count
        return np.array(values)

    def macro(self) -> None:
        kind = self.take()
        if kind == "~o":
            self.options()
            return
        if kind not in ("~h", "~s", "~m", "~u", "~v", "~t"):
            self.fail("a macro (~o ~h ~s ~m ~u ~v ~t)", self.at - 1)
        name = self.name()
        if kind == "~h":
            self.units[name] = self.hmm()
        else:
            self.macros[kind[1], name] = self.part(kind[1])

    def options(self) -> None:
        """Options, global or of one model: only one stream of diagonal Gaussians is understood."""
        while self.peek().startswith("<") and self.peek() not in STRUCTURE:
            keyword = self.take().upper()
            if keyword == "<STREAMINFO>":
                self.integer(1, 1)
                self.integer(1, 100_000)
            elif keyword == "<VECSIZE>":
                self.integer(1, 100_000)
            elif keyword in ("<FULLC>", "<LLTC>", "<XFORMC>", "<INVDIAGC>"):
                self.fail("<DIAGC>", self.at - 1)

    def part(self, kind: str):
        """The macro that is called for here or, if it stands here itself, the body of a state and so on."""
        if self.peek() != f"~{kind}".upper():
            bodies = {"s": self.state, "m": self.mixture, "u": self.mean, "v": self.variance, "t": self.transitions}
            return bodies[kind]()
        self.at += 1
        at, name = self.at, self.name()
        if (kind, name) not in self.macros:
            self.fail(f"a macro ~{kind} defined before", at)
        return self.macros[kind, name]

    def hmm(self):
        self.expect("<BEGINHMM>")
        self.options()
        self.expect("<NUMSTATES>")
        size = self.integer(3, 10_000)
        self.options()
        states = [-1] * (size - 2)
        while self.peek() == "<STATE>":
            self.at += 1
            position = self.integer(2, size - 1)
            states[position - 2] = self.part("s")
        if -1 in states:
            self.fail(f"<STATE> {states.index(-1) + 2}")
        log_a = self.part("t")
        if len(log_a) != size:
            self.fail(f"<TRANSP> {size}", self.at - 1)
        self.expect("<ENDHMM>")
        return states, log_a

    def state(self) -> int:
        """Index of the pool state that stands here, which a macro shares."""
        count = 1
        if self.peek() == "<NUMMIXES>":
            self.at += 1
            count = self.integer(1, 100_000)
        components: list = [None] * count
        if self.peek() == "<MIXTURE>":
            while self.peek() == "<MIXTURE>":
                self.at += 1
                place = self.integer(1, count) - 1
                weight = self.numbers(1)[0]
                components[place] = (weight, *self.part("m"))
        elif count == 1:
            components[0] = (1.0, *self.part("m"))
        living = [component for component in components if component is not None]
        if not living:
            self.fail("<MIXTURE>")
        self.room -= count * len(living[0][1])
        if self.room < 0:
            self.fail("mixtures, most of which are there", self.at - 1)
        components = [(0.0, *living[0][1:]) if component is None else component for component in components]
        self.states.append(components)
        return len(self.states) - 1

    def mixture(self):
        mean, variance = self.part("u"), self.part("v")
        if len(variance) != len(mean):
            self.fail(f"<VARIANCE> {len(mean)}", self.at - 1)
        if self.peek() == "<GCONST>":
            self.at += 1
            self.numbers(1)
        return mean, variance

    def mean(self):
        self.expect("<MEAN>")
        return self.numbers(self.integer(1, 100_000))

    def variance(self):
        self.expect("<VARIANCE>")
        return self.numbers(self.integer(1, 100_000))

    def transitions(self):
        self.expect("<TRANSP>")
        size = self.integer(3, 10_000)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log(self.numbers(size * size).reshape(size, size))

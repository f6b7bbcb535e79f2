"""HTK's word network (SLF), to and from a grammar's table."""

import re

import numpy as np

from margo.errors import MargoError, refuse
from margo.formats.atomic import write_text
from margo.formats.htk_strings import escaped, fields
from margo.formats.lexicon import SILENCE
from margo.formats.reading import MOST, read_lines, read_text
from margo.knobs import brief, real, whole
from margo.model.automaton import END, Automaton, Way
from margo.model.grammar import grammar, rules_grammar
from margo.model.hmm import HmmSet

NULL = "!NULL"
LARGEST = 1e30  # log probability of an arc, so that those of a way stay finite together


def write_net(path, hmms: HmmSet) -> None:
    """The word network of the model's own grammar; all that the grammar adds to scores stands on its arcs (``l=``).

    Silence is optional at both ends and between words, and costs nothing, as in the graphs of
    :mod:`margo.model.graph`; so HVite is to be run with ``-p 0.0 -s 1.0``.
    """
    log_pairs, words = pair_table(hmms), hmms.words
    nodes, arcs = [NULL, NULL, *words], []
    behind = []  # node that each word, and the start, is left from
    for tail in [*range(2, 2 + len(words)), 0]:
        behind.append(tail)
        if hmms.silence is not None and (tail == 0 or (log_pairs[tail - 2] > -np.inf).any()):
            nodes += [SILENCE, NULL]
            arcs += [(tail, len(nodes) - 1, 0.0), (tail, len(nodes) - 2, 0.0), (len(nodes) - 2, len(nodes) - 1, 0.0)]
            behind[-1] = len(nodes) - 1
    for row, tail in enumerate(behind):
        for column in np.flatnonzero(log_pairs[row] > -np.inf).tolist():
            if row == column == len(words):
                continue  # no words at all
            arcs.append((tail, 1 if column == len(words) else 2 + column, log_pairs[row, column]))
    lines = ["VERSION=1.0", f"N={len(nodes)} L={len(arcs)}"]
    lines += [f"I={number} W={escaped(word)}" for number, word in enumerate(nodes)]
    lines += [f"J={number} S={start} E={end} l={value:.9g}" for number, (start, end, value) in enumerate(arcs)]
    write_text(path, "\n".join(lines) + "\n")


def pair_table(hmms: HmmSet) -> np.ndarray:
    """What the model's grammar adds for each word behind each, [V + 1, V + 1]; V is the start, and the end."""
    table, size = hmms.meta.get("grammar", {"kind": "loop"}), len(hmms.words)
    pairs = np.zeros((size + 1, size + 1))
    if table["kind"] == "isolated":
        pairs[:size, :size] = -np.inf
    elif table["kind"] == "rules":
        raise MargoError("the model's grammar is of rules: no table of pairs, which a word network is written of")
    elif table["kind"] == "ngram":
        pairs = table["scale"] * hmms.ngram.pairs(hmms.words)
    elif table["kind"] == "bigram":
        pairs = table["scale"] * hmms.log_bigram
    pairs[:, :size] += table.get("insertion_penalty", 0.0)
    pairs[size, size] = -np.inf
    return pairs


def is_net(path) -> bool:
    """Whether the file begins as a word network does, behind comments: with its version, or numbers of nodes, arcs."""
    return re.match(r"\s*(#[^\n]*\n\s*)*(VERSION|N)=", read_text(path)) is not None


def read_net(path, words: tuple[str, ...], silent: set[str]) -> tuple[dict, bool]:
    """``(grammar's table, is silence obligatory somewhere?)`` of a word network over ``words``.

    One word, any string of words, or what words may follow which, with the log probability of their arcs: a bigram;
    rules where a word stands at places with different words behind it.
    """
    nodes, arcs = _lattice(path)
    unknown = sorted({word for word in nodes.values() if word not in {NULL, *words, *silent}})
    refuse([f"{word} is not a word of the model" for word in unknown], str(path), MOST)
    ahead: dict = {node: [] for node in nodes}
    for start, end, value in arcs:
        ahead[start].append((end, value))
    passed = {node for node, word in nodes.items() if word == NULL or word in silent}
    entered = {end for _, end, _ in arcs}
    starts = [node for node in nodes if node not in entered]
    ends = {node for node in nodes if not ahead[node]}
    if len(starts) != 1 or not ends:
        raise MargoError(f"{path}: {len(starts)} nodes without an arc into them, expected one, and an end")
    skipped = {node for node in passed if nodes[node] in silent}
    after, obligatory = {}, False
    for node in [*starts, *(node for node in nodes if node not in passed)]:
        after[node], bare = _follow(node, ahead, passed, ends), _follow(node, ahead, passed - skipped, ends, skipped)
        if after[node] is None or bare is None:
            raise MargoError(f"{path}: a ring of nodes without words whose log probabilities add up to more than 0")
        obligatory |= {nodes.get(end) for end in after[node]} != {nodes.get(end) for end in bare}
    begins = after[starts[0]] if starts[0] in passed else {starts[0]: 0.0}
    inner = {node: found for node, found in after.items() if node not in passed}
    return _pairs(nodes, begins, inner, words) or _rules(nodes, begins, inner), obligatory


def _pairs(nodes: dict, begins: dict, after: dict, words: tuple[str, ...]) -> dict | None:
    """The grammar's table of words that may follow each other, None where the word before does not say all."""
    index = {word: number for number, word in enumerate(words)}
    pairs, seen = np.full((len(words) + 1, len(words) + 1), -np.inf), {}
    for place, found in [(len(words), begins), *((index[nodes[node]], found) for node, found in after.items())]:
        row = np.full(len(words) + 1, -np.inf)
        for end, value in found.items():
            column = len(words) if end is None else index[nodes[end]]
            row[column] = max(row[column], value)
        if place in seen and not np.array_equal(seen[place], row):
            return None
        pairs[place] = seen[place] = row
    return _named(pairs)


def _rules(nodes: dict, begins: dict, after: dict) -> dict:
    """The grammar's table of a network as an automaton, a state for each word's node and one for the start."""
    number = {node: state for state, node in enumerate(after, 1)}
    ways = [Way(0, nodes[end], number[end], value) for end, value in begins.items() if end is not None]
    for node, found in after.items():
        ways += [Way(number[node], END if end is None else nodes[end], number.get(end, 0), value)
                 for end, value in found.items()]  # fmt: skip
    return rules_grammar(Automaton(1 + len(after), 0, ways))


def _follow(node, ahead: dict, passed: set, ends: set, skip=frozenset()) -> dict | None:
    """The best log probability with which each word's node, or the end (None), follows ``node``; None if a ring makes
    all better for ever."""
    best, words = {node: 0.0}, {}
    better = dict(best)
    for _ in range(len(passed) + 2):  # more arcs than a way without a ring has
        before, better = better, {}
        for here, reached in before.items():
            for end, value in ahead[here]:
                if end in passed and reached + value > best.get(end, -np.inf):
                    best[end] = better[end] = reached + value
                elif end not in passed and end not in skip:
                    words[end] = max(words.get(end, -np.inf), reached + value)
    ended = [value for place, value in best.items() if place in ends]
    return None if better else words | ({None: max(ended)} if ended else {})


def _named(pairs: np.ndarray) -> dict:
    """The table of ``pairs``: isolated or a loop where it is one."""
    inner, first, last = pairs[:-1, :-1], pairs[-1, :-1], pairs[:-1, -1]
    if (inner == -np.inf).all() and (first == 0).all() and (last == 0).all():
        return grammar("isolated")
    if first[0] > -np.inf and (first == first[0]).all() and (inner == first[0]).all() and (last == 0).all():
        return grammar("loop", float(first[0]))
    return grammar("bigram", 0.0, pairs)


def _lattice(path) -> tuple[dict[int, str], list[tuple[int, int, float]]]:
    """Words by node, and arcs ``(start, end, log probability)``, of an SLF file."""
    nodes, arcs, faults, sizes, factor = {}, [], [], {}, 1.0
    for number, line in read_lines(path):
        try:
            given = fields(line)
        except ValueError as error:
            faults.append(f"line {number}: {brief(line.strip())}: {error}")
            continue
        try:
            if given.keys() & {"SUBLAT", "L"} and "N" not in given:
                faults.append(f"line {number}: {brief(line.strip())}: sub-networks are not read")
            elif "I" in given:
                node = whole(given["I"])
                faults += [f"line {number}: node {node} is there already"] * (node in nodes)
                nodes[node] = given.get("W", given.get("WORD", NULL))
            elif "J" in given:
                start, end = (whole(given.get(name[0], given.get(name, ""))) for name in ("START", "END"))
                arcs.append((start, end, real(given.get("l", given.get("language", "0")))))
                if given.keys() & {"W", "WORD", "d", "a"}:
                    faults.append(f"line {number}: words or scores on arcs, expected words on nodes")
            elif "base" in given:
                base = real(given["base"])
                factor = float(np.log(base)) if base > 0 else 0.0
                faults += [f"line {number}: base {base:g}, expected more than 0, not 1"] * (factor == 0)
            sizes |= {key: whole(given[key]) for key in ("N", "L") if "N" in given and key in given}
        except ValueError:
            faults.append(f"line {number}: {brief(line.strip())}, expected I= W=, or J= S= E= l=")
    faults += [f"arc {a} to {b}: no such node" for a, b, _ in arcs if a not in nodes or b not in nodes]
    faults += [f"arc {a} to {b}: log probability {value * factor:.3g}" for a, b, value in arcs
               if abs(value * factor) > LARGEST]  # fmt: skip
    faults += [f"{key} is {sizes[key]}, the file has {len(held)}" for key, held in (("N", nodes), ("L", arcs))
               if sizes.get(key, len(held)) != len(held)]  # fmt: skip
    faults += ["no nodes"] * (not nodes)
    refuse(faults, str(path), most=10)
    return nodes, [(a, b, value * factor) for a, b, value in arcs]

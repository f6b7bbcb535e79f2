"""Which word strings are possible and what each costs: a table in the model's ``meta``, its graph, a string's score."""

from dataclasses import replace

import numpy as np

from margo.errors import MargoError
from margo.model.automaton import END, Automaton, Way
from margo.model.crossing import crossing_graph
from margo.model.graph import Graph, automaton_graph, bigram_graph, isolated_graph, loop_graph
from margo.model.hmm import HmmSet
from margo.model.ngram import Ngram
from margo.model.tree import automaton_tree, loop_tree

KINDS = ("isolated", "loop", "bigram", "ngram", "rules")
MOST = 1000  # words of a bigram that is kept as a table of all pairs
FEW = 500  # words that need no tree


def grammar(kind: str, insertion_penalty: float = 0.0, log_bigram=None, scale: float = 1.0) -> dict:
    """The table that ``hmms.meta["grammar"]`` holds, fit for JSON.

    ``isolated``: one word; ``loop``: any string; ``bigram``: any string under ``log_bigram`` [V + 1, V + 1] times
    ``scale`` (see :func:`margo.model.graph.bigram_graph`; None stands for -inf). ``insertion_penalty`` is added for
    every word of a string in a loop or bigram.
    """
    if kind not in KINDS:
        raise MargoError(f"grammar is {kind!r}, expected one of {' '.join(KINDS)}")
    table = {"kind": kind}
    if kind != "isolated":
        table["insertion_penalty"] = float(insertion_penalty)
    if kind == "bigram":
        if log_bigram is None:
            raise MargoError("a bigram grammar needs its table of log probabilities")
        rows = np.asarray(log_bigram, float).tolist()
        table["scale"] = float(scale)
        table["log_bigram"] = [[value if value > -np.inf else None for value in row] for row in rows]
    return table


def ngram_grammar(ngram: Ngram, words) -> dict:
    """The table of a language model over ``words``: all pairs where it remembers one word and these are not too many,
    else its n-grams as they are; a word that it does not name is its unknown word, or cannot be recognised."""
    if ngram.order < 3 and len(words) <= MOST:
        return grammar("bigram", log_bigram=ngram.pairs(words))
    ngram = ngram.over(words)
    keys = sorted({*ngram.log_probs} | {*ngram.log_backoffs}, key=lambda key: (len(key), key))
    finite = {key: value for key, value in ngram.log_probs.items() if value > -np.inf}
    rows = [[list(key), finite.get(key), ngram.log_backoffs.get(key)] for key in keys]
    return {"kind": "ngram", "insertion_penalty": 0.0, "scale": 1.0, "order": ngram.order, "ngrams": rows}


def rules_grammar(automaton: Automaton) -> dict:
    """The table of an automaton all of whose ways have words (:func:`margo.model.automaton.of_rules`)."""
    return {"kind": "rules", "insertion_penalty": 0.0, "states": automaton.states, "start": automaton.start,
            "ways": [list(way) for way in automaton.ways]}  # fmt: skip


def with_table(hmms: HmmSet, table: dict) -> HmmSet:
    """The model with another grammar's table, and as far as that has them its own weights."""
    other = replace(hmms, meta={**hmms.meta, "grammar": table})
    return with_grammar(other, **{name: weights_of(hmms).get(name, value) for name, value in weights_of(other).items()})


def with_grammar(hmms: HmmSet, **changes) -> HmmSet:
    """The model with entries of its grammar's table changed."""
    return replace(hmms, meta={**hmms.meta, "grammar": {**hmms.meta.get("grammar", {"kind": "loop"}), **changes}})


def weights_of(hmms: HmmSet) -> dict[str, float]:
    """What weighs the model's grammar, by name in its table: insertion_penalty, and scale of a bigram."""
    table = hmms.meta.get("grammar", {"kind": "loop"})
    defaults = {"isolated": {}, "loop": {"insertion_penalty": 0.0}, "rules": {"insertion_penalty": 0.0}}
    defaults = defaults.get(table["kind"], {"insertion_penalty": 0.0, "scale": 1.0})
    return {name: table.get(name, value) for name, value in defaults.items()}


def with_weights(hmms: HmmSet, **weights: float | None) -> HmmSet:
    """The model with those of the weights that are given (not None); refused where its grammar does not have them."""
    weights = {name: float(value) for name, value in weights.items() if value is not None}
    for name in weights.keys() - weights_of(hmms).keys():
        kind = hmms.meta.get("grammar", {"kind": "loop"})["kind"]
        raise MargoError(f"--{name.replace('_', '-')} does nothing: the model's grammar is {kind}")
    return with_grammar(hmms, **weights) if weights else hmms


def weighed_grammar(hmms: HmmSet, factor: float) -> HmmSet:
    """The model with all that its grammar adds to scores (bigram, insertion penalty) times ``factor``."""
    return with_grammar(hmms, **{name: factor * value for name, value in weights_of(hmms).items()})


def recognition_graph(hmms: HmmSet) -> Graph:
    """The graph of everything that the model's own grammar allows; a loop of its words where it has none."""
    table = hmms.meta.get("grammar", {"kind": "loop"})
    penalty = table.get("insertion_penalty", 0.0)
    if hmms.crossing is not None:
        return crossing_graph(hmms, automaton_of(hmms), table.get("scale", 1.0), penalty)
    if table["kind"] == "isolated":
        return isolated_graph(hmms)
    if table["kind"] == "loop":
        return loop_graph(hmms, penalty)
    if table["kind"] in ("ngram", "rules"):
        return automaton_graph(hmms, hmms.automaton, table.get("scale", 1.0), penalty)
    return bigram_graph(hmms, hmms.log_bigram, table["scale"], penalty)


def automaton_of(hmms: HmmSet) -> Automaton:
    """The model's grammar as an automaton, whatever its kind; one of a bigram's pairs has a state for each word."""
    table, words = hmms.meta.get("grammar", {"kind": "loop"}), hmms.words
    if table["kind"] in ("ngram", "rules"):
        return hmms.automaton
    if table["kind"] == "bigram":
        size, rows = len(words), hmms.log_bigram
        ways = [Way(row, words[word] if word < size else END, word, float(rows[row, word]))
                for row, word in np.argwhere(rows > -np.inf).tolist() if min(row, word) < size]  # fmt: skip
        return Automaton(size + 1, size, ways)
    again = (0,) if table["kind"] == "isolated" else (0, 1)
    return Automaton(2, 0, [*(Way(state, word, 1, 0.0) for state in again for word in words), Way(1, END, 1, 0.0)])


def search_graph(hmms: HmmSet) -> Graph:
    """:func:`recognition_graph` for the best path alone: of a large vocabulary the words stand in a prefix tree, unless
    every state of its n-gram has all words behind it, which would be as many trees, or their units know their
    neighbours in other words."""
    table = hmms.meta.get("grammar", {"kind": "loop"})
    many = len(hmms.words) > FEW and hmms.crossing is None
    penalty = table.get("insertion_penalty", 0.0)
    if many and table["kind"] == "loop":
        return loop_tree(hmms, penalty)
    if many and table["kind"] == "ngram" and (hmms.ngram.order == 1 or hmms.ngram.backs_off):
        return automaton_tree(hmms, hmms.automaton, table["scale"], penalty)
    return recognition_graph(hmms)


def string_score(hmms: HmmSet, words) -> float:
    """What the graph adds to the score of a string of words (names), beside transitions and frames."""
    table = hmms.meta.get("grammar", {"kind": "loop"})
    if table["kind"] == "isolated":
        return 0.0
    score = table.get("insertion_penalty", 0.0) * len(words)
    if table["kind"] in ("ngram", "rules"):
        score += table.get("scale", 1.0) * hmms.automaton.string_score(words)
    if table["kind"] == "bigram":
        rows, indices = hmms.log_bigram, [hmms.word_index[word] for word in words]
        end = len(rows) - 1
        score += table["scale"] * sum(rows[a, b] for a, b in zip([end, *indices], [*indices, end]))
    return float(score)

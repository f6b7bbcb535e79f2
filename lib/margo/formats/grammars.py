"""What may be recognised, from a file: rules in JSGF, or a language model as an ARPA file."""

from margo.formats.arpa import read_arpa
from margo.formats.jsgf import is_jsgf, read_jsgf
from margo.formats.reading import reading
from margo.model.automaton import of_rules
from margo.model.grammar import ngram_grammar, rules_grammar


def read_grammar(path, words) -> dict:
    """The grammar's table over ``words`` (:mod:`margo.model.grammar`) of a file, which says itself what it is."""
    if not is_jsgf(path):
        return ngram_grammar(read_arpa(path), words)
    rules = read_jsgf(path, words)
    with reading(path):
        return rules_grammar(of_rules(rules))

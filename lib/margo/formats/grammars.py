"""What may be recognised, from a file: rules in JSGF, a word network of HTK, or a language model as an ARPA file."""

from margo.formats.arpa import read_arpa
from margo.formats.htk_net import is_net, read_net
from margo.formats.jsgf import is_jsgf, read_jsgf
from margo.formats.lexicon import SILENCE
from margo.formats.reading import reading
from margo.model.automaton import of_rules
from margo.model.grammar import ngram_grammar, rules_grammar

SILENT = frozenset([SILENCE, "SENT-START", "SENT-END", "!ENTER", "!EXIT", "<s>", "</s>"])  # in networks of HTK's tools


def read_grammar(path, words) -> dict:
    """The grammar's table over ``words`` (:mod:`margo.model.grammar`) of a file, which says itself what it is."""
    if is_net(path):
        return read_net(path, words, {*SILENT} - {*words})[0]
    if not is_jsgf(path):
        return ngram_grammar(read_arpa(path), words)
    rules = read_jsgf(path, words)
    with reading(path):
        return rules_grammar(of_rules(rules))

"""Kaldi's text models: one as Kaldi writes it, what is written comes back, and what is refused."""

import numpy as np
import pytest

from margo.errors import MargoError
from margo.formats.kaldi_models import read_model_text, read_symbols, transitions_of, write_model_text
from margo.gaussian.likelihood import log_likelihoods, scorer
from oracles import random_hmms

TEXT = """<TransitionModel> 
<Topology> 
<TopologyEntry> 
<ForPhones> 
1 2 
</ForPhones> 
<State> 0 <PdfClass> 0 <Transition> 0 0.5 <Transition> 1 0.5 </State> 
<State> 1 <PdfClass> 1 <Transition> 1 0.5 <Transition> 2 0.5 </State> 
<State> 2 </State> 
</TopologyEntry> 
</Topology> 
<Triples> 4 
1 0 0 
1 1 1 
2 0 2 
2 1 1 
</Triples> 
<LogProbs> 
 [ 0 -0.2876821 -1.386294 -0.5108256 -0.9162907 -0.1053605 -2.302585 -0.6931472 -0.6931472 ]
</LogProbs> 
</TransitionModel> 
<DIMENSION> 2 <NUMPDFS> 3 <DiagGMM> 
<GCONSTS>  [ -2.5 -3.5 ]
<WEIGHTS>  [ 0.25 0.75 ]
<MEANS_INVVARS>  [
  1 2 
  3 4 ]
<INV_VARS>  [
  0.5 0.25 
  1 2 ]
</DiagGMM> 
<DiagGMM> 
<GCONSTS>  [ -2.5 ]
<WEIGHTS>  [ 1 ]
<MEANS_INVVARS>  [
  0 0 ]
<INV_VARS>  [
  1 1 ]
</DiagGMM> 
<DiagGMM> 
<GCONSTS>  [ -2.5 ]
<WEIGHTS>  [ 1 ]
<MEANS_INVVARS>  [
  5 5 ]
<INV_VARS>  [
  1 1 ]
</DiagGMM> 
"""  # noqa: W291 (as Kaldi ends its lines)


def test_a_model_as_kaldi_writes_it(tmp_path):
    (tmp_path / "final.mdl").write_text(TEXT)
    (tmp_path / "phones.txt").write_text("<eps> 0\nSIL 1\nAH 2\n")
    hmms = read_model_text(tmp_path / "final.mdl", read_symbols(tmp_path / "phones.txt"), silence="SIL")
    assert [unit.name for unit in hmms.units] == ["SIL", "AH"] and hmms.words == ("AH",)
    assert hmms.units[0].states.tolist() == [0, 1] and hmms.units[1].states.tolist() == [2, 1]  # a shared pdf
    np.testing.assert_allclose(hmms.pool.means[:2], [[2, 8], [3, 2]])
    np.testing.assert_allclose(hmms.pool.variances[:2], [[2, 4], [1, 0.5]])
    np.testing.assert_allclose(np.exp(hmms.units[1].log_transitions),
                               [[0, 1, 0, 0], [0, 0.9, 0.1, 0], [0, 0, 0.5, 0.5], [0, 0, 0, 0]], atol=1e-6)  # fmt: skip
    ids = transitions_of(hmms)
    assert list(zip(ids.unit[1:], ids.position[1:], ids.target[1:], ids.pdf[1:]))[4:6] == [(1, 0, 0, 2), (1, 0, 1, 2)]


def test_what_is_written_comes_back_and_scores_alike(tmp_path):
    hmms = random_hmms(np.random.default_rng(0), mixtures=3)
    x = np.random.default_rng(1).normal(size=(20, hmms.pool.dimension))
    try:
        write_model_text(tmp_path / "m", hmms)
    except MargoError as error:  # units that can be skipped or entered late are no topology of Kaldi's
        assert "can be entered elsewhere" in str(error)
        units = []
        for unit in hmms.units:
            log_a = unit.log_transitions.copy()
            log_a[0] = -np.inf
            log_a[0, 1] = 0.0
            units.append(type(unit)(unit.name, unit.states, log_a))
        hmms = type(hmms)(hmms.pool, tuple(units), hmms.lexicon, hmms.silence)
        write_model_text(tmp_path / "m", hmms)
    names = {number + 1: unit.name for number, unit in enumerate(hmms.units)}
    again = read_model_text(tmp_path / "m", names, hmms.lexicon, hmms.silence)
    np.testing.assert_allclose(np.exp(again.log_transitions), np.exp(hmms.log_transitions), rtol=1e-6)
    assert [unit.states.tolist() for unit in again.units] == [unit.states.tolist() for unit in hmms.units]
    every = np.arange(hmms.pool.n_states)
    np.testing.assert_allclose(log_likelihoods(scorer(again.pool, every), x),
                               log_likelihoods(scorer(hmms.pool, every), x), rtol=1e-5, atol=1e-5)  # fmt: skip


def test_constants_are_kaldis(tmp_path):
    """GCONSTS = log w - D/2 log 2 pi + 1/2 sum log 1/v - 1/2 sum m^2/v."""
    (tmp_path / "a").write_text(TEXT)
    hmms = read_model_text(tmp_path / "a")
    write_model_text(tmp_path / "b", hmms)
    line = next(line for line in (tmp_path / "b").read_text().splitlines() if line.startswith("<GCONSTS>"))
    expected = np.log([0.25, 0.75]) - np.log(2 * np.pi) + 0.5 * np.log([0.5 * 0.25, 2.0])
    expected -= 0.5 * np.array([2**2 * 0.5 + 8**2 * 0.25, 3**2 + 2**2 * 2])
    np.testing.assert_allclose([float(word) for word in line.split()[2:-1]], expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("2 1 1 \n</Triples>", "2 0 1 \n</Triples>", "phone 2, state 0: pdfs 2 and 1: models of phones in context"),
        ("-0.2876821 ", "", "7 log probabilities, the topology has 8 transitions"),
        ("<Triples> 4", "<Triples> 5", "12 numbers in </Triples>, expected 5 rows of 3"),
        ("<WEIGHTS>  [ 1 ]", "<WEIGHTS>  [ 1 ", "expected numbers up to ]"),
        ("<DIMENSION> 2", "<DIMENSION> two", "expected a whole number, found two"),
        ("<DiagGMM> \n<GCONSTS>  [ -2.5 -3.5 ]", "<FullGMM> ", "expected <DiagGMM>"),
        ("2 0 2 ", "2 0 7 ", "phone 2: pdf 7, there are 3"),
        ("2 0 2 ", "2 0 -1 ", "phone 2: pdf -1, there are 3"),
        ("2 0 2 ", "2 9 2 ", "phone 2, state 9: not in the topology"),
        ("<Transition> 2 0.5", "<Transition> 7 0.5", "its topology has"),
        ("<INV_VARS>  [\n  0.5", "<INV_VARS>  [\n  0", "variance inf, not a positive number"),
        ("<DIMENSION> 2", "<DIMENSION> 0", "<DIMENSION> is 0, expected at least 1"),
        ("<NUMPDFS> 3", "<NUMPDFS> 99999999999", "expected <DiagGMM>"),
        ("<NUMPDFS> 3", "<NUMPDFS> 2", "expected the end of the file, found <DiagGMM>"),
        ("</TransitionModel>", "", "expected </TransitionModel>, found <DIMENSION>"),
    ],
)
def test_models_that_are_refused(tmp_path, old, new, said):
    assert old in TEXT
    (tmp_path / "m").write_text(TEXT.replace(old, new, 1))
    with pytest.raises(MargoError, match=said):
        read_model_text(tmp_path / "m")
    (tmp_path / "b").write_bytes(b"\0B<TransitionModel> \xff\xfe")
    with pytest.raises(MargoError, match="not text, expected a model of gmm-copy --binary=false"):
        read_model_text(tmp_path / "b")


def test_a_phone_of_very_many_states_is_refused_before_it_takes_memory(tmp_path):
    size = 3000  # transitions of 72 MB, of a file of some 200 kB
    states = "".join(f"<State> {n} <Transition> {n + 1} 1 </State>\n" for n in range(size))
    head, rest = TEXT.split("<State> 0", 1)
    text = f"{head}{states}<State> {size} </State>\n" + rest[rest.index("</TopologyEntry>") :]
    rows = "".join(f"1 {n} 0\n" for n in range(size))
    logs = "<LogProbs> [ " + "0 " * (size + 1) + "]"
    end = text[text.index("</LogProbs>") :]
    text = f"{text[: text.index('<Triples>')]}<Triples> {size}\n{rows}</Triples> {logs} {end}"
    (tmp_path / "m").write_text(text)
    with pytest.raises(MargoError, match="declares 72096032 bytes of values"):
        read_model_text(tmp_path / "m")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a 1\nb ²\n", "line 2: 'b ²', expected: symbol number"),
        ("a 1\nb 1\n", "line 2: 1 is a already"),
        ("a 1 2\n", "line 1"),
    ],
)
def test_symbols_that_are_refused(tmp_path, text, said):
    (tmp_path / "phones.txt").write_text(text)
    with pytest.raises(MargoError, match=said):
        read_symbols(tmp_path / "phones.txt")

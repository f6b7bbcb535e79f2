"""HTK's files: written and read again, read with macros, and refused with file and line."""

from dataclasses import replace

import numpy as np
import pytest

from margo.errors import MargoError
from margo.formats.htk import Label, read_hmmdefs, read_mlf, read_parameters, write_hmmdefs
from oracles import random_hmms

TIED = """~o <STREAMINFO> 1 2 <VECSIZE> 2<NULLD><USER><DIAGC>
~v "varFloor1" <VARIANCE> 2 0.01 0.02
~v "wide" <VARIANCE> 2 4.0 9.0
~t "go" <TRANSP> 3  0 1 0  0 0.5 0.5  0 0 0
~s "shared" <NUMMIXES> 3
  <MIXTURE> 1 0.75 <MEAN> 2 1 2 ~v "wide"
  <MIXTURE> 3 0.25 <MEAN> 2 -1 -2 <VARIANCE> 2 1 1 <GCONST> 3.6
~h "yes" <BEGINHMM> <NUMSTATES> 3 <STATE> 2 ~s "shared" ~t "go" <ENDHMM>
~h "no" <BEGINHMM> <NUMSTATES> 4
 <STATE> 2 ~s "shared"
 <STATE> 3 <MEAN> 2 5 6 <VARIANCE> 2 1 2
 <TRANSP> 4  0 0.5 0.5 0  0 0.9 0.1 0  0 0 0.9 0.1  0 0 0 0 <ENDHMM>
"""


def test_macros_and_ties(tmp_path):
    (tmp_path / "hmmdefs").write_text(TIED)
    hmms = read_hmmdefs(tmp_path / "hmmdefs")
    assert hmms.words == ("yes", "no") and hmms.pool.n_states == 2
    assert hmms.units[0].states.tolist() == [0] and hmms.units[1].states.tolist() == [0, 1]
    np.testing.assert_allclose(np.exp(hmms.pool.log_weights), [0.75, 0, 0.25, 1])  # mixture 2 was not written: dead
    np.testing.assert_array_equal(hmms.pool.variances[0], [4, 9])
    np.testing.assert_array_equal(hmms.variance_floor, [0.01, 0.02])
    assert np.exp(hmms.units[1].log_transitions[0, 2]) == 0.5


def test_written_models_are_read_again(tmp_path):
    hmms = random_hmms(np.random.default_rng(0), mixtures=3)
    hmms = replace(hmms, variance_floor=np.array([0.1, 0.2]))
    write_hmmdefs(tmp_path / "hmmdefs", hmms)
    again = read_hmmdefs(tmp_path / "hmmdefs", lexicon=hmms.lexicon, silence="sil")
    assert [unit.name for unit in again.units] == [unit.name for unit in hmms.units]
    used = {}
    for one, other in zip(hmms.units, again.units):
        np.testing.assert_allclose(np.exp(other.log_transitions), np.exp(one.log_transitions), atol=1e-9)
        for mine, theirs in zip(one.states.tolist(), other.states.tolist()):
            assert used.setdefault(mine, theirs) == theirs  # tied states stay tied
            a, b = hmms.pool.offsets[mine : mine + 2], again.pool.offsets[theirs : theirs + 2]
            for name in ("means", "variances"):
                np.testing.assert_allclose(
                    getattr(again.pool, name)[b[0] : b[1]], getattr(hmms.pool, name)[a[0] : a[1]], rtol=1e-8
                )
    np.testing.assert_allclose(again.variance_floor, hmms.variance_floor)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("<MEAN> 2 5 6", "<MEAN> 2 5 six", ":11: expected 2 numbers, found six"),
        ("<STATE> 3 <MEAN>", "<STATE> 4 <MEAN>", ":11: expected a number from 2 to 3, found 4"),
        ('~t "go" <ENDHMM>', '~t "gone" <ENDHMM>', ":8: expected a macro ~t defined before"),
        ("<DIAGC>", "<FULLC>", ":1: expected <DIAGC>, found <FULLC>"),
        ("<STREAMINFO> 1 2", "<STREAMINFO> 2 1 1", ":1: expected a number from 1 to 1, found 2"),
        ("0 0 0 0 <ENDHMM>", "0 0 0 0", "expected <ENDHMM>, found the end of the file"),
        ('~v "wide" <VAR', '~x "wide" <VAR', ":3: expected a macro"),
        ("<TRANSP> 4  0 0.5 0.5 0", "<TRANSP> 4  0 0.5 0.1 0", "unit no, row 0: transitions sum to 0.6"),
        ("<VARIANCE> 2 1 2\n", "<VARIANCE> 2 1 0\n", "variance 0.0, not a positive number"),
    ],
)
def test_bad_definitions_are_refused_with_their_line(tmp_path, old, new, said):
    assert old in TIED
    (tmp_path / "hmmdefs").write_text(TIED.replace(old, new))
    with pytest.raises(MargoError, match=said) as caught:
        read_hmmdefs(tmp_path / "hmmdefs")
    assert "hmmdefs" in str(caught.value)


def test_files_that_are_not_models(tmp_path):
    with pytest.raises(MargoError, match="no such file"):
        read_hmmdefs(tmp_path / "none")
    (tmp_path / "binary").write_bytes(b"\xff\x00\xfe")
    with pytest.raises(MargoError, match="binary"):
        read_hmmdefs(tmp_path / "binary")
    (tmp_path / "empty").write_text("~o <DIAGC>")
    with pytest.raises(MargoError, match="no ~h model"):
        read_hmmdefs(tmp_path / "empty")


def parameter_file(path, x, kind=6, promise=None):
    header = np.array([len(x) if promise is None else promise, 100000], ">i4").tobytes()
    path.write_bytes(header + np.array([x.shape[1] * 4, kind], ">i2").tobytes() + x.astype(">f4").tobytes())
    return path


def test_parameter_files(tmp_path):
    x = np.random.default_rng(0).normal(size=(7, 3)).astype(np.float32)
    found, shift, kind = read_parameters(parameter_file(tmp_path / "a.mfc", x))
    np.testing.assert_array_equal(found, x)
    assert (shift, kind, found.dtype) == (100000, 6, np.float32)
    with pytest.raises(MargoError, match="promises 9 frames"):
        read_parameters(parameter_file(tmp_path / "b.mfc", x, promise=9))
    with pytest.raises(MargoError, match="compressed"):
        read_parameters(parameter_file(tmp_path / "c.mfc", x, kind=6 | 0o2000))
    (tmp_path / "d.mfc").write_bytes(b"123")
    with pytest.raises(MargoError, match="3 bytes"):
        read_parameters(tmp_path / "d.mfc")


def test_master_label_files(tmp_path):
    (tmp_path / "a.mlf").write_text('#!MLF!#\n"*/x.rec"\n0 100 yes -3.5\n100 200 no\n.\n"*/y.lab"\nyes\n7\n.\n')
    assert read_mlf(tmp_path / "a.mlf") == {
        "x": [Label("yes", 0, 100, ("-3.5",)), Label("no", 100, 200)],
        "y": [Label("yes"), Label("7")],
    }
    (tmp_path / "q.mlf").write_text("""#!MLF!#\n"*/x.lab"\n0 9 \\'cause -1\n"7"\n\\"q\ndon't\n.\n""")
    assert read_mlf(tmp_path / "q.mlf") == {"x": [Label("'cause", 0, 9, ("-1",)), *map(Label, ("7", '"q', "don't"))]}
    (tmp_path / "b.mlf").write_text('#!MLF!#\n"*/x.rec"\n.\nyes\n')
    with pytest.raises(MargoError, match="b.mlf:4: a label outside any file: yes"):
        read_mlf(tmp_path / "b.mlf")
    (tmp_path / "c.mlf").write_text("yes\n")
    with pytest.raises(MargoError, match="c.mlf:1"):
        read_mlf(tmp_path / "c.mlf")

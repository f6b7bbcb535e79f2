"""HTK's files taken in and given back: its words and scores, the same arrays, the same bytes."""

import re
import runpy
import sys
from dataclasses import replace

import numpy as np
import pytest

from margo.errors import MargoError
from margo.formats.htk import read_mlf
from margo.formats.models import read_model, write_model
from margo.model.grammar import grammar, with_grammar
from margo.model.hmm import flat_start, whole_words
from margo.tasks.htk_exchange import KEPT, copy, export_model, import_model, kept_names, labels, parameter_paths


@pytest.fixture(scope="module")
def htk(references):
    return references / "htk"


def run(root, monkeypatch, name, *words):
    monkeypatch.setattr(sys, "argv", [f"{name}.py", *map(str, words)])
    runpy.run_path(str(root / "steps" / f"{name}.py"), run_name="__main__")


def files_of(htk, mixtures):
    model = htk / f"model_{mixtures}mix"
    return ["--hmmdefs", model / "macros", model / "hmmdefs", "--dict", htk / "dict", "--net", htk / "wdnet",
            "--hcopy", htk / "hcopy.conf"]  # fmt: skip


@pytest.mark.parametrize("mixtures", [1, 8])
def test_what_htk_recognises_is_decoded_with_its_scores(htk, root, tmp_path, monkeypatch, mixtures):
    run(root, monkeypatch, "import_htk", *files_of(htk, mixtures), "--mfc", htk / "files.scp", "--mlf", htk / "ref.mlf",
        "--out", tmp_path / "in")  # fmt: skip
    run(root, monkeypatch, "decode", "--model", tmp_path / "in", "--data", tmp_path / "in" / "data", "--out",
        tmp_path / "d")  # fmt: skip
    hyp = dict(line.split() for line in (tmp_path / "d" / "data" / "hyp").read_text().splitlines())
    scores = [line.split() for line in (tmp_path / "d" / "data" / "scores").read_text().splitlines()]
    expected = read_mlf(htk / f"rec_{mixtures}mix.mlf")
    assert hyp == {name: row[0].name for name, row in expected.items()} and len(hyp) == 20
    for name, score, _ in scores:
        assert float(score) == pytest.approx(float(expected[name][0].rest[0]), rel=1e-5)


NUMBER = r"-?\d\.\d+e[+-]\d\d"


def strict(path):
    """Arrays of a file of definitions in exactly the lines that HTK 3.4.1 writes; any other line is an error."""
    arrays, wanted = {"mean": [], "variance": [], "weight": [], "transp": []}, []
    lines = path.read_text().splitlines()
    assert lines[:2] == ["~o", "<STREAMINFO> 1 39"]
    assert lines[2] == "<VECSIZE> 39<NULLD><MFCC_E_D_A><DIAGC>"
    for number, line in enumerate(lines[3:], 4):
        if wanted:
            kind, left = wanted.pop()
            assert re.fullmatch(f"( {NUMBER})+", line), f"{path}:{number}"
            row = np.array(line.split(), float)
            arrays[kind].append(row)
            assert len(row) == (39 if kind != "transp" else left[1]), f"{path}:{number}"
            if kind == "transp" and left[0] > 1:
                wanted = [("transp", (left[0] - 1, left[1]))]
        elif found := re.fullmatch(r"<(MEAN|VARIANCE)> 39", line):
            wanted = [(found[1].lower(), None)]
        elif found := re.fullmatch(r"<TRANSP> (\d+)", line):
            wanted = [("transp", (int(found[1]), int(found[1])))]
        elif found := re.fullmatch(rf"<MIXTURE> \d+ ({NUMBER})", line):
            arrays["weight"].append(np.array([float(found[1])]))
        else:
            known = r'~[hvs] "\w+"|<BEGINHMM>|<ENDHMM>|<NUMSTATES> \d+|<STATE> \d+|<NUMMIXES> \d+'
            assert re.fullmatch(rf"{known}|<GCONST> {NUMBER}", line), f"{path}:{number}: {line}"
    return {kind: np.concatenate(rows) for kind, rows in arrays.items() if rows}


@pytest.mark.parametrize("mixtures", [1, 8])
def test_what_was_read_is_given_back(htk, root, tmp_path, monkeypatch, capsys, mixtures):
    """Byte for byte from what was kept; by the writer, in HTK's own lines, the same arrays."""
    run(root, monkeypatch, "import_htk", *files_of(htk, mixtures), "--out", tmp_path / "in")
    run(root, monkeypatch, "export_htk", "--model", tmp_path / "in", "--out", tmp_path / "out")
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "HVite -C config -H macros -H hmmdefs -S files.scp -i rec.mlf -w wdnet -p 0.0 -s 1.0 dict words"
    source = {name: htk / f"model_{mixtures}mix" / name for name in ("macros", "hmmdefs")}
    source |= {name: htk / name for name in ("dict", "wdnet", "hcopy.conf")}
    for name, path in source.items():
        assert (tmp_path / "out" / name).read_bytes() == path.read_bytes(), name
    assert sorted((tmp_path / "out" / "words").read_text().split()) == sorted((htk / "words").read_text().split())
    assert (tmp_path / "out" / "config").read_text() == "TARGETKIND = MFCC_E_D_A\n"
    hmms = read_model(tmp_path / "in" / "model.npz")
    (tmp_path / "anew").mkdir()
    export_model(hmms, tmp_path / "nothing kept", lambda name: tmp_path / "anew" / name)
    for name in ("macros", "hmmdefs"):
        found, expected = strict(tmp_path / "anew" / name), strict(source[name])
        assert found.keys() == expected.keys()
        for kind, values in expected.items():
            np.testing.assert_array_equal(found[kind], values)


def test_what_changed_is_written_and_the_rest_is_as_it_was(htk, tmp_path):
    model = [htk / "model_1mix" / name for name in ("macros", "hmmdefs")]
    hmms, notes = import_model(model, htk / "dict", htk / "wdnet", htk / "hcopy.conf", sample_rate=8000)
    assert not notes and hmms.meta["features"]["sample_rate"] == 8000
    kept = tmp_path / KEPT
    kept.mkdir()
    for name, path in zip([*kept_names(model), "dict", "wdnet", "hcopy.conf"],
                          [*model, htk / "dict", htk / "wdnet", htk / "hcopy.conf"]):  # fmt: skip
        copy(path, kept / name)
    moved = hmms.with_pool(type(hmms.pool)(hmms.pool.means + 1, hmms.pool.variances, hmms.pool.log_weights,
                                           hmms.pool.offsets))  # fmt: skip
    other = with_grammar(hmms, kind="loop", insertion_penalty=-20.0)
    for changed, differs in ((moved, {"hmmdefs"}), (other, {"wdnet"})):
        out = tmp_path / min(differs)
        out.mkdir()
        export_model(changed, kept, lambda name, out=out: out / name)
        assert {name.name for name in kept.iterdir() if (out / name.name).read_bytes() != name.read_bytes()} == differs
    np.testing.assert_allclose(strict(tmp_path / "hmmdefs" / "hmmdefs")["mean"], moved.pool.means.ravel(), rtol=1e-8)


def test_hvites_weights_of_connected_words(htk):
    model = [htk / "strings" / "model_8mix" / name for name in ("macros", "hmmdefs")]
    hmms, _ = import_model(model, htk / "dict", htk / "strings" / "wdnet", insertion_penalty=-50.0)
    assert hmms.meta["grammar"] == {"kind": "loop", "insertion_penalty": -50.0}
    assert hmms.meta["htk_kind"] == "MFCC_E_D_A" and hmms.meta["features"] == {"variant": "given", "dimension": 39}
    with pytest.raises(MargoError, match="insertion-penalty does nothing: the model's grammar is isolated"):
        import_model(model, htk / "dict", htk / "wdnet", insertion_penalty=-50.0)


@pytest.mark.parametrize("given, line", [({}, "-p 0.0 -s 1.0"), ({"insertion_penalty": -50.0}, "-p -50.0 -s 1.0")])
def test_hvites_weights_stay_beside_a_network_that_is_given_back(htk, tmp_path, given, line):
    """What stands on the arcs is not told again as -p; what came with -p does not change the network's bytes."""
    model = [htk / "strings" / "model_8mix" / name for name in ("macros", "hmmdefs")]
    first, _ = import_model(model, htk / "dict", htk / "strings" / "wdnet", insertion_penalty=-30.0)
    export_model(first, tmp_path / "nothing kept", place_in(tmp_path / KEPT))  # a network with -30 on its arcs
    files = [tmp_path / KEPT / name for name in ("macros", "hmmdefs", "dict", "wdnet")]
    hmms, _ = import_model(files[:2], *files[2:], **given)
    assert hmms.meta["grammar"]["insertion_penalty"] == -30.0 + given.get("insertion_penalty", 0.0)
    assert hmms.meta["grammar"]["kind"] == "loop"
    told = export_model(hmms, tmp_path / KEPT, place_in(tmp_path / "again"))
    assert (tmp_path / "again" / "wdnet").read_bytes() == files[3].read_bytes()
    assert f"-w wdnet {line} dict words" in told[0]
    scaled, _ = import_model(files[:2], *files[2:], scale=2.0)
    assert scaled.meta["grammar"] == {"kind": "loop", "insertion_penalty": -60.0}


def test_words_with_quotes_and_backslashes_come_back(tmp_path):
    """Of models, dictionary, list and network: HTK's escapes, where a split as in a shell loses or refuses words."""
    words = ("don't", "'cause", "a#b", "\\x", '"q', "a'\"\\", "7", "\u00e9t\u00e9")
    hmms = flat_start(whole_words(words), 3, np.zeros(2), np.ones(2), silence="'s")
    hmms = replace(hmms, meta={"grammar": grammar("loop", -2.5), "features": {"variant": "given", "dimension": 2}})
    export_model(hmms, tmp_path / "nothing kept", place_in(tmp_path / "out"))
    files = [tmp_path / "out" / name for name in ("macros", "hmmdefs", "dict", "wdnet")]
    back, notes = import_model(files[:2], *files[2:])
    assert back.words == tuple(sorted(words)) and not notes and back.silence == "'s"
    assert back.lexicon == hmms.lexicon and back.meta["grammar"] == hmms.meta["grammar"]
    assert {unit.name for unit in back.units} == {*words, "'s"}
    listed = (tmp_path / "out" / "words").read_text().splitlines()
    assert {*listed} == {"don't", "\\'cause", "a#b", "\\\\x", '\\"q', "a'\"\\\\", "7", "\u00e9t\u00e9", "\\'s"}
    assert '~h "a\'\\"\\\\"' in files[1].read_text()


def place_in(folder):
    folder.mkdir()
    return lambda name: folder / name


def test_labels_with_times_are_kept(htk):
    words, timed = labels(htk / "strings" / "rec_p-50.0.mlf", ["george_test0000"])
    assert words == {"george_test0000": ("eight", "three", "four", "two")}
    assert (timed[1].word, timed[1].start, timed[1].duration) == ("three", pytest.approx(0.52), pytest.approx(0.42))
    assert labels(htk / "ref.mlf", ["0_george_0"]) == ({"0_george_0": ("zero",)}, [])
    with pytest.raises(MargoError, match="x: no labels"):
        labels(htk / "ref.mlf", ["x"])


def test_what_does_not_fit_together_is_refused(htk, tmp_path):
    model = [htk / "model_1mix" / name for name in ("macros", "hmmdefs")]
    with pytest.raises(MargoError, match=r"TARGETKIND is MFCC_E_D_A_Z, the models are of MFCC_E_D_A$"):
        import_model(model, hcopy=htk / "variants" / "MFCC_E_D_A_Z" / "hcopy.conf")
    with pytest.raises(MargoError, match="MFCC_0 has 13 columns, expected 39"):
        import_model(model, hcopy=htk / "variants" / "MFCC_no_lifter" / "hcopy.conf")
    with pytest.raises(MargoError, match="no parameter files"):
        parameter_paths([tmp_path])
    hmms, _ = import_model(model)
    wide = with_grammar(hmms, kind="loop")
    wide.meta["augmented"] = True
    with pytest.raises(MargoError, match="has given this model a dimension"):
        export_model(wide, tmp_path, lambda name: tmp_path / name)
    write_model(tmp_path / "model.npz", hmms)

"""Score folders: the forms others read, and what comes back."""

import csv
import json
import re

import numpy as np
import pytest

from margo.errors import MargoError
from margo.formats.scores import read_per_utt, read_score, write_details, write_score
from margo.score.interval import Rate, pooled_rate
from margo.score.rates import score

NAMES = ["u2", "u1", "u3"]
REFERENCES = [["one", "two", "three"], ["four"], ["five", "six"]]
HYPOTHESES = [["one", "three"], ["four"], ["five", "nine", "oh"]]
COMMON = {"system": "ml", "mixtures": 4, "set": "test"}


def test_wer_file_has_kaldis_form(tmp_path):
    written = write_score(
        tmp_path, Rate(12, 2857, (0.2, 0.67)), metric="wer", ser=Rate(11, 870, (0.5, 2.0)), counts=(1, 2, 9), **COMMON
    )
    assert (tmp_path / "score" / "wer").read_text().splitlines()[:2] == [
        "%WER 0.42 [ 12 / 2857, 1 ins, 2 del, 9 sub ]",
        "%SER 1.26 [ 11 / 870 ]",
    ]
    assert (tmp_path / "score" / "ci").read_text().startswith("%WER 0.42 95% Conf Interval [ 0.20, 0.67 ]\n%SER")
    assert all((tmp_path / name).is_file() for name in written)
    value = json.loads((tmp_path / "score.json").read_text())
    assert value == read_score(tmp_path) == read_score(tmp_path / "score")
    assert value["ser"] == {"percent": 1.2644, "errors": 11, "total": 870, "ci95": [0.5, 2.0]}
    assert (value["insertions"], value["deletions"], value["substitutions"]) == (1, 2, 9)


def test_classification_file(tmp_path):
    write_score(tmp_path, Rate(179, 462, (34.0, 43.0)), metric="err", **COMMON)
    assert (tmp_path / "score" / "err").read_text() == "%ERR 38.74 [ 179 / 462 ]\n"
    assert not (tmp_path / "score" / "wer").exists()


def test_a_row_of_several_runs_is_their_mean(tmp_path):
    rates = [Rate(errors, 400, (0, 0)) for errors in (40, 44, 60)]
    write_score(tmp_path, pooled_rate(rates), metric="err", runs=[rate.percent for rate in rates], **COMMON)
    value = read_score(tmp_path)
    assert value["runs"] == [10, 11, 15] and value["percent"] == 12
    assert value["percent"] == pytest.approx(100 * value["errors"] / value["total"])
    assert value["ci95"][0] < 10 and value["ci95"][1] > 15  # three runs that far apart say little


def test_every_fault_of_a_score_is_named(tmp_path):
    with pytest.raises(MargoError) as error:
        write_score(tmp_path, Rate(3, 6, (0, 100)), system="ml", mixtures=-1, set="", metric="per", counts=(1, 1, 2),
                    runs=[10.0])  # fmt: skip
    assert "5 faults" in str(error.value)
    with pytest.raises(MargoError, match="score.json: no such file"):
        read_score(tmp_path)
    (tmp_path / "score.json").write_text('{"system": "ml"}')
    with pytest.raises(MargoError, match="7 faults"):
        read_score(tmp_path)


def test_details_agree_with_the_totals(tmp_path):
    alignments = score(REFERENCES, HYPOTHESES, np.random.default_rng(0)).alignments
    write_details(tmp_path, NAMES, alignments, ["s1", "s2", "s1"])
    back = read_per_utt(tmp_path)
    assert list(back) == ["u1", "u2", "u3"]
    assert back["u2"][0] == ("one", "two", "three") and list(back["u2"][1]) == [2, 0, 0, 1]
    total = sum(counts for _, counts in back.values())
    assert list(total) == [4, 1, 1, 1]  # correct, substituted, inserted, deleted

    lines = (tmp_path / "score" / "per_utt").read_text().splitlines()
    assert lines[4:8] == ["u2 ref one two three", "u2 hyp one *** three", "u2 op  C   D   C", "u2 #csid 2 0 0 1"]

    ops = (tmp_path / "score" / "ops").read_text().splitlines()
    counted = {kind: sum(int(line.split()[-1]) for line in ops if line.startswith(kind))
               for kind in ("correct", "substitution", "insertion", "deletion")}  # fmt: skip
    assert counted == {"correct": 4, "substitution": 1, "insertion": 1, "deletion": 1}
    assert "deletion two <eps> 1" in ops

    rows = list(csv.reader((tmp_path / "score" / "confusion.csv").open()))
    cells = {(row[0], column): int(value) for row in rows[1:] for column, value in zip(rows[0][1:], row[1:])}
    assert cells["two", "<eps>"] == 1 and cells["four", "four"] == 1
    assert sum(cells.values()) == total.sum()

    speakers = (tmp_path / "score" / "per_spk").read_text().splitlines()
    assert re.fullmatch(r"s1 +2 +5 +3 +1 +1 +1 +3 +2 +60\.00", speakers[1])


def test_spoiled_per_utt_is_refused(tmp_path):
    (tmp_path / "score").mkdir()
    (tmp_path / "score" / "per_utt").write_text("u ref one\nu #csid 1 x 0 0\n")
    with pytest.raises(MargoError, match="per_utt:2"):
        read_per_utt(tmp_path)
    (tmp_path / "score" / "per_utt").write_text("u ref one\n")
    with pytest.raises(MargoError, match="needs as many words in its ref"):
        read_per_utt(tmp_path)

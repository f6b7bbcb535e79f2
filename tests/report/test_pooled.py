"""Systems over all numbers of mixtures: sums, and a test of sums by utterance."""

import numpy as np
import pytest

from margo.formats.systems import read_systems
from margo.report.pooled import pooled_rows
from margo.score.significance import matched_pairs


def scored(exp, system, mixtures, errors, which="test"):
    """A score of utterances of three words each, with so many substitutions."""
    folder = exp / f"{system}_{mixtures}" / which
    (folder / "score").mkdir(parents=True)
    lines = []
    for number, wrong in enumerate(errors):
        operations = "S " * wrong + "C " * (3 - wrong)
        lines += [f"u{number} ref a b c", f"u{number} hyp {'x ' * wrong}{' '.join('abc'[wrong:])}",
                  f"u{number} op {operations}", f"u{number} #csid {3 - wrong} {wrong} 0 0"]  # fmt: skip
    (folder / "score" / "per_utt").write_text("".join(" ".join(line.split()) + "\n" for line in lines))
    total = 3 * len(errors)
    score = {"system": system, "mixtures": mixtures, "set": which, "metric": "wer", "errors": sum(errors),
             "total": total, "percent": 100 * sum(errors) / total, "ci95": [0.0, 1.0]}  # fmt: skip
    return folder, score


@pytest.fixture
def scores(tmp_path):
    made = {("ml", 1): [3, 2, 1, 0, 2, 3], ("ml", 2): [2, 2, 1, 0, 1, 3], ("mce", 1): [1, 2, 0, 0, 1, 2],
            ("mce", 2): [1, 1, 0, 1, 0, 2], ("lme-sdp", 1): [1, 1, 0, 0, 1, 2],
            ("lme-sdp", 2): [0, 1, 0, 0, 0, 2]}  # fmt: skip
    return made, [scored(tmp_path, *name, errors) for name, errors in made.items()]


def test_errors_of_all_sizes_are_summed_and_tested_by_utterance(scores):
    made, folders = scores
    rows = {row["system"]: row for row in pooled_rows(folders, read_systems())}
    assert list(rows) == ["ml", "mce", "lme-sdp"]
    sums = {name: np.array(made[name, 1]) + made[name, 2] for name in rows}
    for name, row in rows.items():
        assert (row["errors"], row["total"], row["mixtures"]) == (sums[name].sum(), 36, "1 2")
        assert row["percent"] == pytest.approx(100 * sums[name].sum() / 36)
    versus = rows["lme-sdp"]["versus_start"]
    assert versus["system"] == "mce" and versus["relative"] == pytest.approx(100 * (8 / 11 - 1), abs=0.01)
    assert versus["p"] == pytest.approx(matched_pairs(sums["mce"] - sums["lme-sdp"]), rel=0.01)
    assert rows["lme-sdp"]["versus"]["system"] == "ml" and "versus" not in rows["ml"]


def test_only_systems_of_all_sizes_are_pooled(scores, tmp_path):
    _, folders = scores
    more = [*folders, scored(tmp_path, "mmi", 1, [1] * 6), scored(tmp_path, "mmi", 4, [0] * 6, "dev")]
    assert [row["system"] for row in pooled_rows(more, read_systems())] == ["ml", "mce", "lme-sdp"]
    assert pooled_rows([each for each in folders if each[1]["mixtures"] == 1], read_systems()) == []

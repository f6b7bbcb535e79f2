"""The papers' figures as data."""

import re
from collections import Counter
from pathlib import Path

import pytest

from margo.errors import MargoError
from margo.formats.paper import read_paper

CONF = Path(__file__).parents[2] / "conf" / "paper"


@pytest.mark.parametrize("path", sorted(CONF.glob("*.toml")), ids=lambda path: path.stem)
def test_every_file_reads_and_is_sane(path):
    paper = read_paper(path)
    assert paper.figures and paper.protocol
    keys = [(f.system, f.mixtures, f.set, f.metric, f.corpus, f.task) for f in paper.figures]
    assert len(keys) == len(set(keys))
    assert all(figure.source.startswith("[") for figure in paper.figures)


def test_accuracy_becomes_error_and_a_missing_cell_is_none():
    isolet = read_paper(CONF / "isolet.toml")
    assert isolet.find("lme-sdp-paper", 2, "test", "wer", "isolet").percent == pytest.approx(100 - 95.19)
    assert isolet.find("lme-sdp-paper", 8, "test", "wer", "isolet") is None
    assert isolet.find("ml", 1, "train", "wer", "isolet") is None


def test_a_task_has_figures_of_its_own():
    timit = read_paper(CONF / "timit.toml")
    assert timit.find("gmm-ml", 100, "test", "err", "timit", "fe-6").percent == pytest.approx(100 - 82.84)
    assert timit.find("gmm-ml", 100, "test", "err", "timit", "ma-4").percent == pytest.approx(100 - 90.17)
    assert timit.find("gmm-ml", 4, "test", "err", "timit", "ma-4") is None  # of other size than the paper's
    assert timit.find("gmm-ml", 100, "test", "err", "timit (not the whole)", "ma-4") is None
    digits = read_paper(CONF / "digits.toml")
    light, strong = (digits.find("gmm-ml", 1, "test", "err", "usps", task) for task in ("", "large lambda"))
    assert (light.percent, strong.percent) == (5.83, 7.22)
    assert digits.find("hybrid-ll", 1, "test", "err", "mnist", "large lambda") is None  # not those of another task
    assert digits.find("semi-supervised (ll-lm)", 1, "test", "err", "mnist", "100 labels").percent == 5.08


def test_every_row_of_the_tables_is_there():
    """[R18] Table 1: 14 rows of ten (TIMIT is elsewhere), 2: 8 numbers of labels in 4 ways; [DA08]: 4 sizes, 3 ways."""
    figures = read_paper(CONF / "digits.toml").figures
    tables = Counter(re.sub(", .*", "", figure.source) for figure in figures)
    assert tables == {"[R18] Table 1": 140, "[R18] Table 2": 32} | {
        f"[DA08] Table {table}": 12 for table in ("1(a)", "1(b)", "2(a)", "2(b)")
    }


def test_relative_reductions_printed_in_the_paper_follow_from_our_figures():
    """[LJ07] prints LME's relative reduction over MCE beside its error rates: a check on every typed digit."""
    paper = read_paper(CONF / "tidigits.toml")
    printed = {
        ("wer", "lme-gd"): [47, 60, 43, 39, 24, 27],
        ("wer", "lme-sdp-paper"): [61, 70, 62, 53, 45, 40],
        ("ser", "lme-gd"): [44, 57, 44, 38, 26, 27],
        ("ser", "lme-sdp-paper"): [59, 69, 60, 52, 43, 41],
    }
    for (metric, system), reductions in printed.items():
        for mixtures, reduction in zip((1, 2, 4, 8, 16, 32), reductions):
            ours, mce = (paper.find(s, mixtures, "test", metric, "tidigits").percent for s in (system, "mce"))
            assert 100 * (1 - ours / mce) == pytest.approx(reduction, abs=1.01)


def test_figures_without_mixtures_match_any_and_corpora_are_kept_apart():
    digits = read_paper(CONF / "digits.toml")
    assert digits.find("hybrid-lm", 7, "test", "err", "mnist").percent == 1.51
    assert digits.find("gmm-ml", 1, "test", "err", "usps").percent == 5.83
    assert digits.find("gmm-ml", 1, "test", "err", "mnist").percent == 3.93
    assert digits.find("gmm-ml", 1, "test", "err", "sklearn") is None


def test_faults_are_listed_together(tmp_path):
    bad = tmp_path / "bad.toml"
    bad.write_text(
        'paper = "x"\nreference = "y"\nprotocol = "z"\n'
        '[[table]]\nsource = "s"\nmetric = "per"\nset = "test"\nmixtures = [1, 2]\npercent = { ml = [1.0] }\n'
    )
    with pytest.raises(MargoError, match="2 faults") as error:
        read_paper(bad)
    assert "metric is 'per'" in str(error.value) and "expected 2 percentages" in str(error.value)

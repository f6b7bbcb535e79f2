"""Long utterances in maximum likelihood: what pieces count is what the whole does."""

import numpy as np
import pytest

from contests import spoken, task
from margo.estimate import ml, pieces
from margo.estimate.ml import MlOptions, accumulate, update

OPTIONS = MlOptions(double=True)


@pytest.fixture(scope="module")
def long():
    """A model and one utterance of sixty words."""
    hmms, _ = task(3, "loop", utterances=1)
    rng = np.random.default_rng(3)
    words = [hmms.words[n] for n in rng.integers(0, 3, 60)]
    return hmms, np.concatenate([spoken(hmms, word, rng) for word in words]).astype(np.float32), words


def in_pieces(monkeypatch, piece, context=8):
    monkeypatch.setattr(pieces, "CELLS", 1)
    monkeypatch.setattr(pieces, "PIECE", piece)
    monkeypatch.setattr(pieces, "CONTEXT", context)


@pytest.mark.parametrize("size, scale, context", [(30_000, 1.0, 8), (60_000, 1.0, 8), (60_000, 0.7, 16)])
def test_pieces_count_what_the_whole_does(long, monkeypatch, size, scale, context):
    """The softer posteriors are, the more context they need."""
    hmms, x, words = long
    whole = accumulate(hmms, [("a", x, words)], OPTIONS, scale)
    in_pieces(monkeypatch, size, context)
    assert len(list(pieces.pieces(np.linspace(0, len(x), 61), np.full(60, 8), size))) > 1
    parts = accumulate(hmms, [("a", x, words)], OPTIONS, scale)
    for name in ("occupancy", "first", "second", "transitions"):
        expected = getattr(whole, name)
        np.testing.assert_allclose(getattr(parts, name), expected, atol=1e-5 * np.abs(expected).max(), err_msg=name)
    assert parts.objective == pytest.approx(whole.objective, abs=1e-3)
    assert (parts.frames, parts.utterances, parts.dropped) == (whole.frames, whole.utterances, ())


def test_context_is_what_makes_them_so(long, monkeypatch):
    hmms, x, words = long
    whole = accumulate(hmms, [("a", x, words)], OPTIONS)
    off = {}
    for context in (0, 8):
        in_pieces(monkeypatch, 60_000, context)
        off[context] = np.abs(accumulate(hmms, [("a", x, words)], OPTIONS).occupancy - whole.occupancy).max()
    assert off[8] < 1e-2 * off[0]


def test_every_word_is_counted_once():
    begins = np.array([0, 5, 9, 400, 410, 420, 900, 905])
    nodes = np.full(7, 6)
    made = list(pieces.pieces(begins, nodes, 2000))
    assert [piece.own[0] for piece in made][0] == 0 and made[-1].own[1] == 7
    assert all(one.own[1] == other.own[0] for one, other in zip(made, made[1:]))
    assert all(piece.words[0] <= piece.own[0] < piece.own[1] <= piece.words[1] for piece in made)


def test_a_flat_start_takes_words_to_be_spread_evenly(long, monkeypatch):
    """All paths are equally good then: the first of them, all words in the last frames, would be none to begin with."""
    hmms, x, words = long
    flat = hmms.with_pool(type(hmms.pool)(np.zeros_like(hmms.pool.means), np.ones_like(hmms.pool.variances),
                                          hmms.pool.log_weights, hmms.pool.offsets))  # fmt: skip
    in_pieces(monkeypatch, 60_000)
    stats = accumulate(flat, [("a", x, words)], OPTIONS)
    assert stats.occupancy.sum() == pytest.approx(len(x), rel=0.1)  # a start: paths are as if spread evenly
    before = -np.inf
    for _ in range(4):
        flat, report = update(flat, stats, OPTIONS)
        stats = accumulate(flat, [("a", x, words)], OPTIONS)
        assert stats.objective > before - 1e-3
        before = stats.objective


def test_what_does_not_fit_is_dropped_and_named_and_the_others_are_used(long, monkeypatch):
    hmms, x, words = long
    in_pieces(monkeypatch, 60_000)
    stats = accumulate(hmms, [("short", x[:20], words), ("good", x, words)], OPTIONS)
    assert stats.dropped == (("short", "20 frames: no path through the transcript's model fits"),)
    assert stats.utterances == 1

    def full(*_, **__):
        raise MemoryError

    monkeypatch.setattr(ml, "long_stats", full)
    stats = accumulate(hmms, [("long", x, words)], OPTIONS)
    assert stats.dropped == (("long", f"{len(x)} frames need more memory than there is"),)

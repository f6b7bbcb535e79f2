"""model.npz there and back, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest

from margo.errors import MargoError
from margo.formats.atomic import read_npz, write_npz
from margo.formats.models import pack, read_model, unpack, write_model
from margo.model.hmm import HmmSet
from oracles import random_hmms


@pytest.fixture
def hmms():
    made = random_hmms(np.random.default_rng(0))
    return HmmSet(made.pool, made.units, made.lexicon, made.silence, np.full(2, 0.01), {"criterion": "ml", "seed": 3})


def test_round_trip(tmp_path, hmms):
    write_model(tmp_path / "model.npz", hmms)
    again = read_model(tmp_path / "model.npz")
    for name in ("means", "variances", "log_weights", "offsets"):
        assert getattr(again.pool, name).tobytes() == getattr(hmms.pool, name).tobytes()
    for one, other in zip(hmms.units, again.units):
        assert one.name == other.name and one.states.tolist() == other.states.tolist()
        np.testing.assert_array_equal(one.log_transitions, other.log_transitions)
    assert again.lexicon == hmms.lexicon and again.words == hmms.words
    assert again.silence == "sil" and again.meta == hmms.meta
    np.testing.assert_array_equal(again.variance_floor, hmms.variance_floor)


def test_the_same_model_gives_the_same_bytes(tmp_path, hmms):
    write_model(tmp_path / "a.npz", hmms)
    write_model(tmp_path / "b.npz", read_model(tmp_path / "a.npz"))
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def spoil(tmp_path, hmms, meta_changes=(), **changes):
    write_model(tmp_path / "model.npz", hmms)
    meta, arrays = read_npz(tmp_path / "model.npz")
    arrays = {name: value for name, value in {**arrays, **changes}.items() if value is not None}
    write_npz(tmp_path / "bad.npz", {**meta, **dict(meta_changes)}, arrays)
    return tmp_path / "bad.npz"


@pytest.mark.parametrize(
    ("meta", "arrays", "said"),
    [
        ({"kind": "other"}, {}, "not a model of margo"),
        ({"version": 99}, {}, "model format 99, this margo reads 1"),
        ({}, {"means": None, "offsets": None}, "lacks means, offsets"),
        ({}, {"unit_states": np.zeros(1, int)}, "unit_states has shape"),
        ({"units": ["u0"]}, {}, "1 unit names for 4 units"),
        ({"lexicon": [["w", ["nowhere"]]]}, {}, "no unit named nowhere"),
    ],
)
def test_a_bad_file_is_named(tmp_path, hmms, meta, arrays, said):
    with pytest.raises(MargoError, match=said) as caught:
        read_model(spoil(tmp_path, hmms, meta, **arrays))
    assert "bad.npz" in str(caught.value)


def test_bad_numbers_are_named(tmp_path, hmms):
    variances = hmms.pool.variances.copy()
    variances[0, 1] = -1
    with pytest.raises(MargoError, match=r"bad.npz: .*state 0, component 0, dimension 1: variance -1.0"):
        read_model(spoil(tmp_path, hmms, variances=variances))


def test_missing_and_foreign_files(tmp_path):
    with pytest.raises(MargoError, match="no such file"):
        read_model(tmp_path / "none.npz")
    (tmp_path / "folder.npz").mkdir()
    with pytest.raises(MargoError, match="folder.npz: is a folder, expected a file"):
        read_model(tmp_path / "folder.npz")
    (tmp_path / "text.npz").write_text("hello")
    with pytest.raises(MargoError, match="cannot be read as an archive of margo"):
        read_model(tmp_path / "text.npz")


def test_full_covariances_come_back_and_files_without_any_are_refused(tmp_path):
    hmms = random_hmms(np.random.default_rng(1))
    full = hmms.with_pool(replace(hmms.pool, covariances=hmms.pool.covariances.dense()))
    write_model(tmp_path / "model.npz", full)
    again = read_model(tmp_path / "model.npz").pool
    assert again.covariances.kind == "full"
    np.testing.assert_array_equal(again.covariances.matrices, full.pool.covariances.matrices)
    meta, arrays = pack(full)
    with pytest.raises(MargoError, match="lacks variances"):
        unpack(meta, {name: array for name, array in arrays.items() if name != "matrices"})


@pytest.mark.parametrize(
    "way", [[0, "w9", 0, 0.0], [0, "w0", 7, 0.0], [0.5, "w0", 0, 0.0], [0, "w0", 0], [0, "w0", 0, "w0"], []]
)
def test_rules_that_are_no_automaton_are_refused(tmp_path, way):
    hmms = random_hmms(np.random.default_rng(0))
    table = {"kind": "rules", "states": 2, "start": 0, "ways": [[0, "w0", 1, -1.0], [1, "</s>", 0, 0]]}
    write_model(tmp_path / "good.npz", replace(hmms, meta={"grammar": table}))
    assert read_model(tmp_path / "good.npz").automaton.string_score(["w0"]) == -1.0
    write_model(tmp_path / "bad.npz", replace(hmms, meta={"grammar": {**table, "ways": [way]}}))
    with pytest.raises(MargoError, match="grammar: expected states, a start, and ways"):
        read_model(tmp_path / "bad.npz")

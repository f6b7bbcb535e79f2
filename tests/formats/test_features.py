"""Archives: round trips, with kaldiio on either side; what is refused, and how it is named."""

import json
import os
import shutil

import kaldiio
import numpy as np
import pytest

from margo.errors import MargoError
from margo.formats.atomic import write_json
from margo.formats.features import read_cmvn, read_matrix, read_options, read_scp, read_vector, write_ark
from margo.signal.cmvn import normalise
from margo.signal.front_end import MfccOptions, describe, describe_given


@pytest.fixture
def matrices():
    rng = np.random.default_rng(0)
    return {f"utt-{i}": rng.standard_normal((3 + i, 5)).astype(np.float32) for i in range(4)}


def write(folder, items, name="feats", **how):
    return write_ark(folder / f"{name}.ark", folder / f"{name}.scp", items, **how)


def test_round_trip_after_the_folder_was_moved(tmp_path, matrices):
    offsets = write(tmp_path / "a", matrices.items())
    shutil.move(tmp_path / "a", tmp_path / "b")
    places = read_scp(tmp_path / "b")
    assert list(places) == list(matrices)
    for name, (ark, offset) in places.items():
        assert offset == offsets[name] and np.array_equal(read_matrix((ark, offset), columns=5), matrices[name])


def test_kaldiio_reads_what_we_write(tmp_path, matrices, monkeypatch):
    states = {name: np.arange(len(x)) * 7 for name, x in matrices.items()}
    write(tmp_path, matrices.items())
    write(tmp_path, states.items(), "ali")
    monkeypatch.chdir("/")  # from anywhere
    for theirs in (kaldiio.load_scp(str(tmp_path / "feats.scp")), dict(kaldiio.load_ark(str(tmp_path / "feats.ark")))):
        assert list(theirs) == list(matrices)
        assert all(np.array_equal(theirs[name], matrices[name]) for name in matrices)
    theirs = kaldiio.load_scp(str(tmp_path / "ali.scp"))
    assert all(theirs[name].dtype == np.int32 and np.array_equal(theirs[name], states[name]) for name in states)


def test_same_bytes_as_kaldiio(tmp_path, matrices):
    write(tmp_path, matrices.items())
    kaldiio.save_ark(str(tmp_path / "k.ark"), matrices)
    assert (tmp_path / "feats.ark").read_bytes() == (tmp_path / "k.ark").read_bytes()
    vectors = {"a": np.array([3, -1, 2**31 - 1], np.int32)}
    write(tmp_path, vectors.items(), "ali")
    kaldiio.save_ark(str(tmp_path / "k.ark"), vectors)
    assert (tmp_path / "ali.ark").read_bytes() == (tmp_path / "k.ark").read_bytes()
    assert np.array_equal(read_vector(read_scp(tmp_path, "ali.scp")["a"]), vectors["a"])


def test_we_read_what_kaldiio_writes(tmp_path, matrices):
    wide = {name: x.astype(np.float64) for name, x in matrices.items()}
    for kind, items, tolerance in [(None, wide, 1e-7), (2, matrices, 0.05), (3, matrices, 1e-3)]:
        kaldiio.save_ark(str(tmp_path / "x.ark"), items, scp=str(tmp_path / "feats.scp"), compression_method=kind)
        for name, place in read_scp(tmp_path).items():
            found = read_matrix(place)
            assert found.dtype == np.float32 and np.allclose(found, matrices[name], atol=tolerance)


def test_the_archive_beside_the_list_comes_first(tmp_path, matrices, monkeypatch):
    write(tmp_path / "a", matrices.items())
    write(tmp_path / "b", [(name, x + 1) for name, x in matrices.items()])
    monkeypatch.chdir(tmp_path / "b")
    assert np.array_equal(read_matrix(read_scp(tmp_path / "a")["utt-0"]), matrices["utt-0"])
    (tmp_path / "c").mkdir()  # a list of Kaldi's, with paths from the current directory
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c" / "feats.scp").write_text("utt-0 a/feats.ark:6\n")
    assert np.array_equal(read_matrix(read_scp(tmp_path / "c")["utt-0"]), matrices["utt-0"])


def test_a_copied_folder_reads_its_own_archive(tmp_path, matrices):
    """Though its list names the other's, which is still there; and a strange archive of that name is passed over."""
    write(tmp_path / "a", matrices.items())
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    (tmp_path / "c").mkdir()
    for place, holder in (("b", "b"), ("c", "a")):
        if place == "c":
            write(tmp_path / "c", [("other", np.ones((2, 5)))])
            shutil.copy(tmp_path / "a" / "feats.scp", tmp_path / "c")
        ark, _ = read_scp(tmp_path / place)["utt-2"]
        assert ark == str(tmp_path / holder / "feats.ark")


def test_kaldis_statistics_by_speaker(tmp_path, matrices):
    x = matrices["utt-3"].astype(np.float64)
    sums = np.zeros((2, 6))
    sums[0, :5], sums[0, 5], sums[1, :5] = x.sum(axis=0), len(x), (x**2).sum(axis=0)
    kaldiio.save_ark(str(tmp_path / "c.ark"), {"ann": sums}, scp=str(tmp_path / "cmvn.scp"))
    stats = read_cmvn(tmp_path)["ann"]
    np.testing.assert_allclose(normalise(x, stats, True, True).std(axis=0), 1, rtol=1e-5)
    kaldiio.save_ark(str(tmp_path / "c.ark"), {"ann": sums[:1]}, scp=str(tmp_path / "cmvn.scp"))
    with pytest.raises(MargoError, match=r"shape \(1, 6\), expected sums and squares"):
        read_cmvn(tmp_path)


def test_missing_values_only_where_allowed(tmp_path, matrices):
    matrices["utt-1"][2, 3] = np.nan
    with pytest.raises(MargoError, match="utt-1: 1 values are not finite, the first in frame 2, column 3"):
        write(tmp_path, matrices.items())
    assert os.listdir(tmp_path) == []
    write(tmp_path, matrices.items(), allow_missing=True)
    place = read_scp(tmp_path)["utt-1"]
    with pytest.raises(MargoError, match=f"feats.ark:{place[1]}: .*frame 2, column 3"):
        read_matrix(place)
    assert np.isnan(read_matrix(place, allow_missing=True)[2, 3])
    matrices["utt-1"][2, 3] = np.inf
    with pytest.raises(MargoError, match="not finite"):
        write(tmp_path, matrices.items(), allow_missing=True)


@pytest.mark.parametrize(
    "items, message",
    [
        ([("a", np.ones((2, 3))), ("b", np.ones((2, 4)))], r"b: shape \(2, 4\), expected \[frames, 3\]"),
        ([("a", np.ones((2, 3))), ("a", np.ones((2, 3)))], "a: given twice"),
        ([("a b", np.ones((2, 3)))], "holds white space"),
        ([("a", np.ones((0, 3)))], "holds nothing"),
        ([("a", np.ones((2, 3), int))], "expected a vector"),
        ([], "nothing to write"),
    ],
)
def test_what_cannot_be_written(tmp_path, items, message):
    with pytest.raises(MargoError, match=message):
        write(tmp_path, items)
    assert os.listdir(tmp_path) == []


def test_nothing_is_left_when_the_source_fails(tmp_path, matrices):
    write(tmp_path, matrices.items())
    before = (tmp_path / "feats.ark").read_bytes()

    def failing():
        yield "x", np.ones((2, 5))
        raise RuntimeError("disk on fire")

    with pytest.raises(RuntimeError):
        write(tmp_path, failing())
    assert (tmp_path / "feats.ark").read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == ["feats.ark", "feats.scp"]


def test_bad_lists_name_every_line(tmp_path, matrices):
    write(tmp_path, matrices.items())
    good = (tmp_path / "feats.scp").read_text()
    (tmp_path / "feats.scp").write_text(good + "x no.ark:3\ny feats.ark\nz cat feats.ark |\n" + good.splitlines()[0])
    with pytest.raises(MargoError, match="feats.scp: 4 faults") as error:
        read_scp(tmp_path)
    for text in ("line 5: x: no archive no.ark", "line 6: 'feats.ark'", "line 7", "line 8: utt-0 is there already"):
        assert text in str(error.value)
    (tmp_path / "feats.scp").write_text("\n")
    with pytest.raises(MargoError, match="feats.scp: is empty"):
        read_scp(tmp_path)
    with pytest.raises(MargoError, match="no such file"):
        read_scp(tmp_path / "nowhere")


def test_bad_archives(tmp_path, matrices):
    write(tmp_path, matrices.items())
    ark = tmp_path / "feats.ark"
    places = read_scp(tmp_path)
    with pytest.raises(MargoError, match="dimension 5, expected 39"):
        read_matrix(places["utt-0"], columns=39)
    with pytest.raises(MargoError, match="not a binary Kaldi matrix"):
        read_matrix((str(ark), 1))
    with pytest.raises(MargoError, match="expected integers"):
        read_vector(places["utt-0"])
    ark.write_bytes(ark.read_bytes()[:-8])
    with pytest.raises(MargoError, match="cut off: 112 of 120 bytes"):
        read_matrix(places["utt-3"])
    ark.write_bytes(b"a PKLabc")
    with pytest.raises(MargoError, match="not a binary Kaldi matrix"):  # never unpickled
        read_matrix((str(ark), 2))
    with pytest.raises(MargoError, match="no such file"):
        read_matrix((str(tmp_path / "no.ark"), 0))


def test_the_record_travels_with_the_features(tmp_path, matrices):
    write(tmp_path, matrices.items())
    assert read_options(tmp_path) == describe_given(5)
    record = describe(MfccOptions(), 16000)
    write_json(tmp_path / "mfcc.json", record)
    assert read_options(tmp_path) == record == json.loads((tmp_path / "mfcc.json").read_text())
    (tmp_path / "mfcc.json").write_text("{")
    with pytest.raises(MargoError, match="mfcc.json: cannot be read as a record of features"):
        read_options(tmp_path)
    (tmp_path / "mfcc.json").write_text("{}")
    with pytest.raises(MargoError, match="mfcc.json: not a record"):
        read_options(tmp_path)

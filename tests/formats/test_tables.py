"""Tables from USPS, MNIST and CSV layouts, whole and broken."""

import gzip
import struct

import h5py
import numpy as np
import pytest

from margo.errors import MargoError
from margo.formats.tables import KNOWN, Table, name_of, read_corpus, read_csv, read_table, write_table


def idx(array) -> bytes:
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.astype(np.uint8).tobytes()


def mnist_files(folder, zipped=False, dotted=False):
    rng = np.random.default_rng(0)
    content = {}
    for stem, count in (("train", 30), ("t10k", 20)):
        x, y = rng.integers(0, 256, (count, 4, 5)), np.arange(count) % 10
        content[stem] = x, y
        for what, array in (("images", x), ("labels", y)):
            name = f"{stem}-{what}{'.' if dotted else '-'}idx{array.ndim}-ubyte"
            data = idx(array)
            if zipped:
                with gzip.open(folder / f"{name}.gz", "wb") as file:
                    file.write(data)
            else:
                (folder / name).write_bytes(data)
    return content


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("dotted", [False, True])
def test_mnist_files(tmp_path, zipped, dotted):
    content = mnist_files(tmp_path, zipped, dotted)
    tables = read_corpus(tmp_path)
    for group, stem in (("train", "train"), ("test", "t10k")):
        x, y = content[stem]
        np.testing.assert_allclose(tables[group].x, x.reshape(len(x), 20) / 255.0)
        assert np.array_equal(tables[group].y, y)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / "t10k-labels-idx1-ubyte").unlink(), "t10k-labels-idx.*is not there"),
        (lambda f: (f / "train-images-idx3-ubyte").write_bytes(b"\x89PNG"), "not an idx file"),
        (lambda f: (f / "train-images-idx3-ubyte").write_bytes(idx(np.zeros((3, 4, 5)))[:-1]), "59 bytes.*promises 60"),
        (lambda f: (f / "train-images-idx3-ubyte").write_bytes(idx(np.zeros((3, 4, 5)))), "3 images but 30 labels"),
        (lambda f: (f / "train-images-idx3-ubyte").write_bytes(idx(np.zeros(3))), "1 dimensions, expected 3"),
        (lambda f: (f / "train-labels-idx1-ubyte").write_bytes(idx(np.full(30, 77))), "not all digits"),
    ],
)
def test_broken_mnist_is_named(tmp_path, damage, message):
    mnist_files(tmp_path)
    damage(tmp_path)
    with pytest.raises(MargoError, match=message):
        read_corpus(tmp_path)


def test_usps_layout(tmp_path):
    with h5py.File(tmp_path / "usps.h5", "w") as file:
        for group, count in (("train", 12), ("test", 10)):
            file.create_dataset(f"{group}/data", data=np.ones((count, 256)))
            file.create_dataset(f"{group}/target", data=np.arange(count) % 10)
    for path in (tmp_path, tmp_path / "usps.h5"):
        assert read_corpus(path)["train"].x.shape == (12, 256)
    with h5py.File(tmp_path / "usps.h5", "a") as file:
        del file["test/target"]
    with pytest.raises(MargoError, match="test/target: not there"):
        read_corpus(tmp_path)
    (tmp_path / "usps.h5").write_text("no")
    with pytest.raises(MargoError, match="cannot be read as HDF5"):
        read_corpus(tmp_path)


@pytest.mark.parametrize("labels", [np.array([-1, 1]), np.array([10, 2000]), np.array([0.0, 7.0])])
def test_any_hdf5_table_with_labels_will_do(tmp_path, labels):
    """Classes are whatever whole numbers there are, in their order; not digits alone, nor only in two parts."""
    y = labels[[1, 0, 0, 1]]
    with h5py.File(tmp_path / "parts.h5", "w") as file:
        for group in ("train", "test"):
            file.create_dataset(f"{group}/data", data=np.arange(12.0).reshape(4, 3))
            file.create_dataset(f"{group}/target", data=y)
    with h5py.File(tmp_path / "one.h5", "w") as file:
        file.create_dataset("data", data=np.arange(12.0).reshape(4, 3))
        file.create_dataset("target", data=y)
    for table in (read_corpus(tmp_path / "parts.h5")["test"], read_corpus(tmp_path / "one.h5")["all"]):
        assert table.names == tuple(str(int(label)) for label in labels) and table.y.tolist() == [1, 0, 0, 1]
    with h5py.File(tmp_path / "parts.h5", "a") as file:
        file["test/target"][0] = 5
    with pytest.raises(MargoError, match="test: no sample to train on has label 5"):
        read_corpus(tmp_path / "parts.h5")
    with h5py.File(tmp_path / "one.h5", "a") as file:
        del file["target"]
        file.create_dataset("target", data=[0.5, 1, 1, 0])
    with pytest.raises(MargoError, match="all: labels are not all whole numbers"):
        read_corpus(tmp_path / "one.h5")


def test_real_usps(corpora):
    tables = read_corpus(corpora / "usps")
    assert (tables["train"].x.shape, tables["test"].x.shape) == ((7291, 256), (2007, 256))


def test_csv(tmp_path):
    path = tmp_path / "pixels.csv"
    path.write_text("a,class,b\n1,water,2\n?,roof,4\n5,,6\n")
    table = read_csv(path)
    assert table.names == ("roof", "water")
    assert list(table.y) == [1, 0, -1]
    np.testing.assert_array_equal(table.x, [[1, 2], [np.nan, 4], [5, 6]])
    path.write_text("b,a,kind\n10,1,0\n9,2,1\n")
    assert read_csv(path).names == ("0", "1")
    assert read_csv(path, "b").names == ("9", "10")
    with pytest.raises(MargoError, match="no column 'c'; it has b, a, kind"):
        read_csv(path, "c")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,label\n1,x\n2\n", "line 3: 1 cells, the header has 2"),
        ("a,label\none,x\n", "line 2: column a is 'one', expected a number"),
        ("a,label\n", "found 1 lines"),
    ],
)
def test_bad_csv_is_named(tmp_path, text, message):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(MargoError, match=message):
        read_corpus(tmp_path / "t.csv")


def test_nothing_there(tmp_path):
    with pytest.raises(MargoError, match="no .h5 or .amat files, nor"):
        read_corpus(tmp_path)
    with pytest.raises(MargoError, match="no such file"):
        read_corpus(tmp_path / "x")


def test_round_trip(tmp_path):
    table = Table(np.array([[1.0, np.nan]]), np.array([0]), ("only",))
    write_table(tmp_path / "t.npz", table)
    back = read_table(tmp_path / "t.npz")
    np.testing.assert_array_equal(back.x, table.x)
    assert back.names == ("only",)


def test_amat(tmp_path):
    """Larochelle's variants: pixels, then the digit; train and test by the names of the files."""
    rng = np.random.default_rng(0)
    for part, count in (("train", 12), ("test", 10)):
        rows = np.column_stack([rng.random((count, 9)), np.arange(count) % 10])
        np.savetxt(tmp_path / f"mnist_rot_{part}.amat", rows)
    tables = read_corpus(tmp_path)
    assert tables["train"].x.shape == (12, 9) and tables["test"].y.tolist() == list(range(10))
    assert read_corpus(tmp_path / "mnist_rot_train.amat").keys() == {"all"}
    np.savetxt(tmp_path / "mnist_rot_test.amat", rng.random((3, 10)))
    with pytest.raises(MargoError, match="expected lines of pixels and a digit"):
        read_corpus(tmp_path)
    (tmp_path / "mnist_rot_test.amat").write_text("a b\n")
    with pytest.raises(MargoError, match="cannot be read as a table of numbers"):
        read_corpus(tmp_path)


def test_cifar(tmp_path):
    images = np.arange(3 * 3073, dtype=np.uint8).reshape(3, 3073)
    images[:, 0] = [2, 9, 0]
    for name in (*(f"data_batch_{n}" for n in range(1, 6)), "test_batch"):
        (tmp_path / f"{name}.bin").write_bytes(images.tobytes())
    tables = read_corpus(tmp_path)
    assert tables["train"].x.shape == (15, 3072) and tables["test"].y.tolist() == [2, 9, 0]
    assert tables["test"].names[9] == "truck" and tables["test"].x[0, 0] == images[0, 1] / 255
    (tmp_path / "data_batch_2.bin").write_bytes(images.tobytes()[:-1])
    with pytest.raises(MargoError, match="9218 bytes, expected images of 3073"):
        read_corpus(tmp_path)
    (tmp_path / "data_batch_2.bin").unlink()
    with pytest.raises(MargoError, match="data_batch_2.bin is not there"):
        read_corpus(tmp_path)


def test_a_data_set_is_called_what_it_is():
    """Neither its width nor its file's name make it one that papers have figures of."""
    y = np.repeat(np.arange(10), KNOWN["mnist"])
    whole = {"train": Table(np.zeros((len(y), 784)), y, tuple("0123456789"))}
    assert name_of("/data/some-folder", whole) == "mnist"
    part = {"train": Table(whole["train"].x[1:], y[1:], whole["train"].names)}
    assert name_of("/data/fashion", part) == "fashion"
    assert name_of("/data/MNIST", part) == "mnist (not the whole)"
    assert name_of("birds.csv", {"all": part["train"]}) == "birds"


def test_a_variant_of_mnist_is_known_by_its_name_and_its_sizes():
    """A folder that is called like one, or images as many, are not enough."""
    def parts(train, test):
        return {name: Table(np.zeros((count, 784)), np.zeros(count, int), ("0",)) for name, count in
                (("train", train), ("test", test))}  # fmt: skip

    assert name_of("/data/mnist_basic", parts(12000, 50000)) == "mnist_basic"
    assert name_of("/data/mnist_basic", parts(10000, 50000)) == "mnist_basic (not the whole)"
    assert name_of("mnist_rotation_new.h5", {"all": parts(12000, 1)["train"]}) == "mnist_rotation_new (not the whole)"
    assert name_of("/data/mine", parts(12000, 50000)) == "mine"

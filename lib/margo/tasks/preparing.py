"""Tables made ready for classifiers: loaded, split, projected."""

from pathlib import Path

import numpy as np

from margo.classify.reduce import principal, standard
from margo.errors import MargoError
from margo.formats.tables import Table, name_of, read_corpus, read_csv


def load(corpus: str, label: str = "", test: str = "") -> tuple[str, dict[str, Table]]:
    """``(name, tables)`` of a corpus, with the CSV file ``test`` for its test part where one is given; or of
    scikit-learn's embedded digits where none is named."""
    if not corpus:
        from sklearn.datasets import load_digits

        x, y = load_digits(return_X_y=True)
        return "digits", {"all": Table(x / 16.0, y.astype(np.int64), tuple("0123456789"))}
    path = Path(corpus)
    written = path.suffix in (".csv", ".tsv", ".txt")
    if test and not written:
        raise MargoError(f"--test {test}: {path} is not a .csv table, and has its own test part")
    tables = {"all": read_csv(path, label)} if written else read_corpus(path)
    if test:
        train, held = tables["all"], read_csv(test, label)
        if held.x.shape[1] != train.x.shape[1] or not {*held.names} <= {*train.names}:
            raise MargoError(f"{test}: {held.x.shape[1]} features, classes {', '.join(held.names)}; {path} has "
                             f"{train.x.shape[1]}, and {', '.join(train.names)}")  # fmt: skip
        numbers = np.array([*map(train.names.index, held.names), -1])
        tables = {"train": train, "test": Table(held.x, numbers[held.y], train.names)}
    return name_of(path, tables), tables


def remade(tables: dict[str, Table], kind: str, rng) -> dict[str, Table]:
    """Square images turned at random (``rot``) or on a random background (``back-rand``), after Larochelle et al.
    (2007): their variants of MNIST, re-made."""
    side = round(next(iter(tables.values())).x.shape[1] ** 0.5)
    if any(table.x.shape[1] != side * side for table in tables.values()):
        raise MargoError(f"--remake {kind} needs square images")
    return {name: Table(VARIANTS[kind](table.x, side, rng), table.y, table.names) for name, table in tables.items()}


def turned(x, side: int, rng) -> np.ndarray:
    """Each image turned by an angle uniform from 0 to 2 pi."""
    from scipy.ndimage import rotate

    images = x.reshape(-1, side, side)
    angles = rng.uniform(0.0, 360.0, len(x))
    shown = [rotate(image, angle, reshape=False, order=1) for image, angle in zip(images, angles)]
    return np.clip(np.stack(shown).reshape(len(x), -1), 0.0, x.max())


def scattered(x, side: int, rng) -> np.ndarray:
    """Each pixel at least a value drawn uniformly from the range of all."""
    return np.maximum(x, rng.uniform(0.0, x.max(), x.shape))


VARIANTS = {"rot": turned, "back-rand": scattered}


def split(tables: dict[str, Table], dev: float, rng) -> dict[str, Table]:
    """Train, dev and test; samples without a label stay in train."""
    if "all" in tables:
        rest, test = _part(tables["all"], 0.25, rng)
    else:
        rest, test = tables["train"], tables["test"]
    train, held = _part(rest, dev, rng)
    return {"train": train, "dev": held, "test": test}


def _part(table: Table, fraction: float, rng) -> tuple[Table, Table]:
    """A table without, and the table of, a random ``fraction`` of its labelled samples."""
    known = np.flatnonzero(table.y >= 0)
    count = round(fraction * len(known))
    if not 0 < count < len(known):
        raise MargoError(f"{len(known)} labelled samples are too few to keep {fraction:.0%} of them apart")
    taken = np.zeros(len(table.y), bool)
    taken[rng.permutation(known)[:count]] = True
    return tuple(Table(table.x[rows], table.y[rows], table.names) for rows in (~taken, taken))


def projected(parts: dict[str, Table], components: int, whiten: bool, say) -> dict[str, Table]:
    """All parts by the projection of the training part."""
    x = parts["train"].x
    gaps = any(np.isnan(table.x).any() for table in parts.values())
    if components and not gaps and components <= x.shape[1]:
        projection = principal(x, components, whiten)
    else:
        reason = "it has missing values" if gaps else f"it has {x.shape[1]} features"
        if components:
            say(f"features are kept and standardised instead of {components} principal components: {reason}")
        projection = standard(x)
    return {name: Table(projection(table.x), table.y, table.names) for name, table in parts.items()}


def as_pixels(parts: dict[str, Table]) -> dict[str, Table]:
    """All parts divided by one number, the root of the training part's mean variance: constants of the trainers then
    mean the same for any data, a missing feature is a missing pixel, and a picture can be drawn of a sample."""
    scale = np.sqrt(np.nanvar(parts["train"].x, axis=0).mean())
    return {name: Table((table.x / scale).astype(np.float32), table.y, table.names) for name, table in parts.items()}

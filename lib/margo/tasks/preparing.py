"""Tables made ready for classifiers: loaded, split, projected."""

from pathlib import Path

import numpy as np

from margo.classify.reduce import principal, standard
from margo.errors import MargoError
from margo.formats.tables import Table, read_corpus, read_csv


def load(corpus: str, label: str = "") -> tuple[str, dict[str, Table]]:
    """``(name, tables)`` of a corpus, or of scikit-learn's embedded digits where none is named."""
    if not corpus:
        from sklearn.datasets import load_digits

        x, y = load_digits(return_X_y=True)
        return "digits", {"all": Table(x / 16.0, y.astype(np.int64), tuple("0123456789"))}
    path = Path(corpus)
    if path.suffix in (".csv", ".tsv", ".txt"):
        return path.stem, {"all": read_csv(path, label)}
    tables = read_corpus(path)
    return ("mnist" if tables["train"].x.shape[1] == 784 else "usps"), tables


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

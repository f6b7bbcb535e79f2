"""model.npz: an HmmSet as named arrays and a JSON ``meta``; never pickled."""

import numpy as np

from margo.errors import MargoError
from margo.formats.atomic import read_npz, write_npz
from margo.gaussian.pool import GaussianPool
from margo.model.hmm import HmmSet, Unit

KIND = "margo hmm set"
VERSION = 1
ARRAYS = ("means", "variances", "log_weights", "offsets", "unit_states", "unit_sizes", "log_transitions")


def write_model(path, hmms: HmmSet) -> None:
    """Write ``hmms``; the same model always gives the same bytes."""
    write_npz(path, *pack(hmms))


def pack(hmms: HmmSet) -> tuple[dict, dict[str, np.ndarray]]:
    """``(meta, arrays)`` that hold all of ``hmms``."""
    arrays = {
        "means": hmms.pool.means,
        "variances": hmms.pool.variances,
        "log_weights": hmms.pool.log_weights,
        "offsets": hmms.pool.offsets,
        "unit_states": np.concatenate([unit.states for unit in hmms.units]),
        "unit_sizes": np.array([unit.n_states for unit in hmms.units], np.int64),
        "log_transitions": hmms.log_transitions,
    }
    if hmms.variance_floor is not None:
        arrays["variance_floor"] = hmms.variance_floor
    meta = {
        "kind": KIND,
        "version": VERSION,
        "units": [unit.name for unit in hmms.units],
        "lexicon": [[word, list(parts)] for word, parts in hmms.lexicon.items()],
        "silence": hmms.silence,
        "meta": hmms.meta,
    }
    return meta, arrays


def pack_many(values: dict) -> tuple[dict, dict[str, np.ndarray]]:
    """``(meta, arrays)`` of named models, arrays and JSON values, for iteration files."""
    meta, arrays = {"models": {}, "plain": {}}, {}
    for name, value in values.items():
        if isinstance(value, HmmSet):
            meta["models"][name], parts = pack(value)
            arrays |= {f"{name}.{key}": array for key, array in parts.items()}
        elif isinstance(value, np.ndarray):
            arrays[name] = value
        else:
            meta["plain"][name] = value
    return meta, arrays


def unpack_many(meta: dict, arrays: dict[str, np.ndarray]) -> dict:
    """The values of :func:`pack_many`."""
    values, left = dict(meta["plain"]), dict(arrays)
    for name, model in meta["models"].items():
        own = [key for key in left if key.startswith(f"{name}.")]
        values[name] = unpack(model, {key.removeprefix(f"{name}."): left.pop(key) for key in own})
    return values | left


def read_model(path) -> HmmSet:
    """The HmmSet of :func:`write_model`'s file; anything else is refused with its name and what was found."""
    meta, arrays = read_npz(path)
    try:
        return unpack(meta, arrays)
    except (MargoError, ValueError, KeyError, TypeError) as error:
        raise MargoError(f"{path}: {error}") from None


def unpack(meta: dict, arrays: dict[str, np.ndarray]) -> HmmSet:
    """The HmmSet of :func:`pack`."""
    if not isinstance(meta, dict) or meta.get("kind") != KIND:
        raise MargoError("not a model of margo")
    if meta.get("version") != VERSION:
        raise MargoError(f"model format {meta.get('version')}, this margo reads {VERSION}")
    missing = [name for name in ARRAYS if name not in arrays]
    if missing:
        raise MargoError(f"lacks {', '.join(missing)}")
    return _assemble(meta, arrays)


def _assemble(meta: dict, arrays: dict) -> HmmSet:
    sizes = arrays["unit_sizes"]
    if len(sizes) != len(meta["units"]):
        raise ValueError(f"{len(meta['units'])} unit names for {len(sizes)} units")
    states, transitions = np.cumsum([0, *sizes]), np.cumsum([0, *(sizes + 2) ** 2])
    for name, length in (("unit_states", states[-1]), ("log_transitions", transitions[-1])):
        if arrays[name].shape != (length,):
            raise ValueError(f"{name} has shape {arrays[name].shape}, expected {(int(length),)}")
    units = tuple(
        Unit(
            name,
            arrays["unit_states"][states[i] : states[i + 1]],
            arrays["log_transitions"][transitions[i] : transitions[i + 1]].reshape(sizes[i] + 2, sizes[i] + 2),
        )
        for i, name in enumerate(meta["units"])
    )
    pool = GaussianPool(arrays["means"], arrays["variances"], arrays["log_weights"], arrays["offsets"])
    lexicon = {word: tuple(parts) for word, parts in meta["lexicon"]}
    return HmmSet(pool, units, lexicon, meta["silence"], arrays.get("variance_floor"), meta["meta"])

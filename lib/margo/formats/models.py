"""model.npz: an HmmSet as named arrays and a JSON ``meta``; never pickled."""

import numpy as np

from margo.errors import MargoError, refuse
from margo.formats.atomic import read_npz, write_npz
from margo.formats.reading import misfits, reading
from margo.gaussian.pool import GaussianPool
from margo.model.grammar import KINDS
from margo.model.hmm import HmmSet, Unit, pronounced
from margo.model.ngram import END, START

KIND = "margo hmm set"
VERSION = 1
COVARIANCES = {"diagonal": "variances", "full": "matrices"}  # the array of each type; a pool knows them by their shape
LAYOUT = {  # of ``meta``
    "units": [str],
    "lexicon": [[(str, [str], [[([str], float)]])]],  # word and units, or word and [units, log probability] of each way
    "silence": (str, None),
    "meta": {"grammar?": {"kind": set(KINDS), "insertion_penalty?": float, "scale?": float,
                          "log_bigram?": [[(float, None)]], "order?": int,
                          "ngrams?": [[([str], float, None)]], "states?": int, "start?": int,
                          "ways?": [[(str, float)]]}, "features?": dict},
}  # fmt: skip
OPTIONAL = ("variance_floor", "crossing")
ARRAYS = ("means", "log_weights", "offsets", "unit_states", "unit_sizes", "log_transitions")


def write_model(path, hmms: HmmSet) -> None:
    """Write ``hmms``; the same model always gives the same bytes."""
    write_npz(path, *pack(hmms))


def pack(hmms: HmmSet) -> tuple[dict, dict[str, np.ndarray]]:
    """``(meta, arrays)`` that hold all of ``hmms``."""
    covariances = COVARIANCES[hmms.pool.covariances.kind]
    arrays = {
        "means": hmms.pool.means,
        covariances: getattr(hmms.pool.covariances, covariances),
        "log_weights": hmms.pool.log_weights,
        "offsets": hmms.pool.offsets,
        "unit_states": np.concatenate([unit.states for unit in hmms.units]),
        "unit_sizes": np.array([unit.n_states for unit in hmms.units], np.int64),
        "log_transitions": hmms.log_transitions,
    }
    arrays |= {name: getattr(hmms, name) for name in OPTIONAL if getattr(hmms, name) is not None}
    lexicon = [[word, _plain(ways)] for word, ways in hmms.lexicon.items()]
    meta = {"kind": KIND, "version": VERSION, "units": [unit.name for unit in hmms.units], "lexicon": lexicon}
    return {**meta, "silence": hmms.silence, "meta": hmms.meta}, arrays


def _plain(ways) -> list:
    """Pronunciations for JSON; the units alone where there is one that is sure."""
    one = len(ways) == 1 and ways[0].log_prob == 0
    return list(ways[0].units) if one else [[list(way.units), way.log_prob] for way in ways]


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
    with reading(path, "a model"):
        return unpack(meta, arrays)


def unpack(meta: dict, arrays: dict[str, np.ndarray]) -> HmmSet:
    """The HmmSet of :func:`pack`."""
    if not isinstance(meta, dict) or meta.get("kind") != KIND:
        raise MargoError("not a model of margo")
    if meta.get("version") != VERSION:
        raise MargoError(f"model format {meta.get('version')}, this margo reads {VERSION}")
    missing = [name for name in ARRAYS if name not in arrays]
    missing += [] if set(arrays) & set(COVARIANCES.values()) else ["variances"]
    if missing:
        raise MargoError(f"lacks {', '.join(missing)}")
    refuse(misfits(meta, LAYOUT), "meta")
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
    covariances = next(arrays[name] for name in COVARIANCES.values() if name in arrays)
    pool = GaussianPool(arrays["means"], covariances, arrays["log_weights"], arrays["offsets"])
    lexicon = pronounced(dict(meta["lexicon"]))
    table, size = meta["meta"].get("grammar", {}), len(lexicon) + 1
    rows, words = table.get("log_bigram", ()), {*lexicon, START, END}
    if table.get("kind") == "ngram" and (
        not {"scale", "order", "ngrams"} <= table.keys() or not 1 <= table["order"] <= 3
        or any(len(row) != 3 or type(row[0]) is not list or not words.issuperset(row[0]) for row in table["ngrams"])
    ):  # fmt: skip
        raise MargoError("grammar: expected scale, order, and ngrams of the lexicon's words with two numbers each")
    if table.get("kind") == "rules":
        _check_rules(table, {*lexicon, END})
    if table.get("kind") == "bigram" and ("scale" not in table or [len(row) for row in rows] != [size] * size):
        raise MargoError(f"grammar: expected its scale, and log_bigram of {size} rows of {size} numbers")
    optional = {name: arrays[name] for name in OPTIONAL if name in arrays}
    return HmmSet(pool, units, lexicon, meta["silence"], meta=meta["meta"], **optional)


def _check_rules(table: dict, words: set[str]) -> None:
    """Refuse an automaton whose ways are not between its states, over ``words``."""
    ways = table.get("ways", [[]])
    states = range(min(table.get("states", 0), 1 + 2 * len(ways)))  # more would be in none

    def is_way(way: list) -> bool:
        kinds = [type(each) for each in way]
        good = kinds[:3] == [int, str, int] and kinds[3:] in ([int], [float])
        return good and way[0] in states and way[2] in states and way[1] in words

    if table.get("start") not in states or len(states) != table["states"] or not all(map(is_way, ways)):
        raise MargoError("grammar: expected states, a start, and ways [state, word of the lexicon, state, number]")

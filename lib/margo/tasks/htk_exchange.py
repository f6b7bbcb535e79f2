"""Models, features and labels from HTK's files to margo's folders and back."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from margo.errors import MargoError, refuse
from margo.formats.atomic import atomic
from margo.formats.ctm import TimedWord
from margo.formats.htk import read_hmmdefs, read_mlf, read_parameters, write_hmmdefs
from margo.formats.htk_kinds import kind_of, kind_of_code, kinds_told, read_hcopy, write_hcopy
from margo.formats.htk_net import read_net, write_net
from margo.formats.htk_strings import escaped
from margo.formats.lexicon import read_lexicon, write_lexicon
from margo.formats.models import pack
from margo.formats.reading import read_text
from margo.model.grammar import grammar, weights_of, with_weights
from margo.model.hmm import HmmSet
from margo.signal.front_end import describe, describe_given

KEPT = "htk"  # folder in a model's: the files that it was read from
UNIT = 1e-7  # seconds that HTK counts in
NAMES = {"dict": "dict", "net": "wdnet", "hcopy": "hcopy.conf"}


def kept_names(hmmdefs) -> list[str]:
    """What files of definitions are called where they are kept: macros ... hmmdefs."""
    return [f"macros{n or ''}" for n in range(len(hmmdefs) - 1)] + ["hmmdefs"]


def import_model(hmmdefs, dictionary=None, net=None, hcopy=None, sample_rate: int = 0, silence: str | None = None,
                 **weights) -> tuple[HmmSet, list[str]]:  # fmt: skip
    """``(model, what to tell)`` of HTK's files; without ``dictionary`` each model but ``silence`` is a word of its own,
    without ``net`` words may form any string."""
    notes: list[str] = []
    lexicon, silent = read_lexicon(dictionary, htk=True) if dictionary else (None, {})
    quiet = {units for units in silent.values()} | ({(silence,)} if silence else set())
    if len(quiet) > 1 or any(len(units) != 1 for units in quiet):
        raise MargoError(f"{dictionary}: words without output are {sorted(map(' '.join, quiet))}, expected one model")
    silence = next(iter(quiet))[0] if quiet else None
    hmms = read_hmmdefs(*hmmdefs, lexicon=lexicon, silence=silence)
    table, obligatory = read_net(net, hmms.words, {*silent}) if net else (grammar("loop"), False)
    if obligatory:
        notes.append(f"{net}: silence is obligatory in places; here it is optional, so scores may differ from HTK's")
    kinds = set().union(*map(kinds_told, hmmdefs)) - {"USER"}
    record = feature_record(hcopy, sample_rate, kinds, hmms.pool.dimension)
    kind = kind_of(record) or (kinds.pop() if len(kinds) == 1 else "USER")
    meta = {"features": record, "grammar": table, "criterion": "htk", "htk_kind": kind}
    return hvite_weighed(replace(hmms, meta=meta), **weights), notes


def hvite_weighed(hmms: HmmSet, insertion_penalty: float | None = None, scale: float | None = None) -> HmmSet:
    """The model with HVite's -p and -s: the one comes on top of what stands on a network's arcs, the other scales it,
    also where all arcs of a loop have the same."""
    own = hmms.meta["grammar"].get("insertion_penalty", 0.0)
    if own and (insertion_penalty, scale) != (None, None):
        insertion_penalty, scale = own * (1.0 if scale is None else scale) + (insertion_penalty or 0.0), None
    return with_weights(hmms, insertion_penalty=insertion_penalty, scale=scale)


def feature_record(hcopy, sample_rate: int, kinds: set[str], columns: int) -> dict:
    """The record of features that HCopy's configuration makes; of ready-made ones where there is none."""
    if hcopy is None:
        return describe_given(columns)
    kind, options = read_hcopy(hcopy)
    record = describe(options, sample_rate or options.sample_rate)
    faults = [f"TARGETKIND is {kind}, the models are of {other}" for other in sorted(kinds - {kind})]
    if record["dimension"] != columns:
        faults.append(f"{kind} has {record['dimension']} columns, expected {columns}")
    refuse(faults, str(hcopy))
    return record


def parameter_paths(sources) -> list[Path]:
    """Parameter files of what is given: files, folders of .mfc files, lists (.scp: paths from here or the list)."""
    paths: list[Path] = []
    for source in map(Path, sources):
        if source.is_dir():
            paths += sorted(source.glob("*.mfc"))
        elif source.suffix == ".scp":
            listed = (Path(line.split("=")[-1].strip()) for line in read_text(source).splitlines() if line.strip())
            paths += [path if path.exists() else source.parent / path for path in listed]
        else:
            paths.append(source)
    twice = sorted({path.stem for path in paths if [other.stem for other in paths].count(path.stem) > 1})
    refuse([f"{name}: more than one file" for name in twice] or ["no parameter files"] * (not paths), "--mfc", most=10)
    return paths


def parameters(paths, record: dict, kind: str | None) -> Iterator[tuple[str, np.ndarray]]:
    """``(name, x [T, D])`` of parameter files, once it is sure that they are what ``record`` and ``kind`` say."""
    shift = round(record.get("shift_ms", 10.0) * 1e4)
    for path in paths:
        if not path.is_file():
            raise MargoError(f"{path}: no such file")
        x, found, code = read_parameters(path)
        faults = [f"kind {kind_of_code(code)}, expected {kind}"] * (kind not in (None, "USER", kind_of_code(code)))
        faults += [f"a frame every {found} x 100 ns, expected {shift} (--hcopy tells)"] * (found != shift)
        faults += [f"{x.shape[1]} columns, expected {record['dimension']}"] * (x.shape[1] != record["dimension"])
        refuse(faults, str(path))
        yield path.stem, x


def labels(path, names) -> tuple[dict[str, tuple[str, ...]], list[TimedWord]]:
    """Transcripts of ``names`` from a master label file, and its labels with times where they have them."""
    table = read_mlf(path)
    refuse([f"{name}: no labels" for name in names if not table.get(name)], str(path), most=10)
    timed = [TimedWord(name, label.start * UNIT, (label.end - label.start) * UNIT, label.name)
             for name in names for label in table[name] if label.end is not None]  # fmt: skip
    return {name: tuple(label.name for label in table[name]) for name in names}, timed


def export_model(hmms: HmmSet, kept: Path, place) -> list[str]:
    """Write HTK's files of ``hmms`` to ``place(name)``; returns lines that tell how to use them.

    What is as it was read from the files in the folder ``kept`` is copied from there byte for byte.
    """
    if hmms.meta.get("augmented"):
        raise MargoError("large-margin training has given this model a dimension, which HTK's features do not have")
    if hmms.crossing is not None:
        raise MargoError("units of this model depend on the words around them, which no dictionary can tell")
    record = hmms.meta["features"]
    kind = kind_of(record) or hmms.meta.get("htk_kind", "USER")
    same, (penalty, scale) = unchanged(hmms, kept)
    definitions = [path.name for path in sorted(kept.glob("macros*"))] + ["hmmdefs"] if "hmmdefs" in same else None
    for name in definitions or ():
        copy(kept / name, place(name))
    if not definitions:
        definitions = ["macros", "hmmdefs"]
        write_hmmdefs(place("hmmdefs"), hmms, kind, place("macros"))
    writers = {"dict": lambda path, _: write_lexicon(path, hmms.lexicon, hmms.silence, htk=True), "wdnet": write_net,
               "hcopy.conf": lambda path, _: write_hcopy(path, record)}  # fmt: skip
    for name, writer in writers.items():
        if name in same:
            copy(kept / name, place(name))
        elif name != "hcopy.conf" or kind_of(record):
            writer(place(name), hmms)
    units = [escaped(unit.name) for unit in hmms.units]
    for name, lines in {"words": units, "config": [f"TARGETKIND = {kind}"]}.items():
        with atomic(place(name)) as file:
            file.write("".join(f"{line}\n" for line in lines))
    use = " ".join(f"-H {name}" for name in definitions)
    told = [f"HVite -C config {use} -S files.scp -i rec.mlf -w wdnet -p {penalty} -s {scale} dict words"]
    if kind_of(record):
        return ["HCopy -C hcopy.conf -S hcopy.scp", *told]
    return [*told, f"(HCopy cannot make these features: they are {kind} to HTK)"]


def unchanged(hmms: HmmSet, kept: Path) -> tuple[set[str], tuple[float, float]]:
    """Names of files in ``kept`` that say of the model what is in it still; and the weights -p and -s that HVite needs
    beside the word network, none where that is written anew."""
    files = {role: kept / name for role, name in NAMES.items() if (kept / name).is_file()}
    if not (kept / "hmmdefs").is_file():
        return set(), (0.0, 1.0)
    definitions = [*sorted(kept.glob("macros*")), kept / "hmmdefs"]
    rate = hmms.meta["features"].get("sample_rate", 0)
    was, _ = import_model(definitions, files.get("dict"), files.get("net"), files.get("hcopy"), rate, hmms.silence)
    arrays, others = pack(hmms)[1], pack(was)[1]
    same = {"hmmdefs"} if arrays.keys() == others.keys() and all(
        np.array_equal(arrays[name], others[name]) for name in arrays) else set()  # fmt: skip
    now, before = weights_of(hmms), weights_of(was)
    tables = {"dict": (hmms.lexicon, was.lexicon), "wdnet": (hmms.meta["grammar"], {**was.meta["grammar"], **now}),
              "hcopy.conf": (hmms.meta["features"], was.meta["features"])}  # fmt: skip
    there = {path.name for path in files.values()}
    same |= {name for name, (one, other) in tables.items() if one == other and name in there}
    penalty = now.get("insertion_penalty", 0.0) - before.get("insertion_penalty", 0.0)
    return same, (penalty, now.get("scale", 1.0)) if "wdnet" in same else (0.0, 1.0)


def copy(source: Path, target) -> None:
    with atomic(target, "wb") as file:
        file.write(Path(source).read_bytes())

"""Systems over all their numbers of mixtures at once: what a criterion does whatever the size of the model."""

from pathlib import Path

import numpy as np

from margo.formats.scores import read_per_utt
from margo.formats.systems import Systems
from margo.score.significance import matched_pairs


def pooled_rows(scores: list[tuple[Path, dict]], systems: Systems) -> list[dict]:
    """A row for each system that is scored on the test set of words at every number of mixtures that any is, two or
    more: errors summed over them, and against the baseline's and those of the system it starts from.

    One utterance's errors at several sizes hang together, so that p is of matched pairs of their sums.
    """
    placed: dict[str, dict[int, tuple[Path, dict]]] = {}
    for folder, score in scores:
        if score["set"] == "test" and score["metric"] == "wer" and (folder / "score" / "per_utt").exists():
            placed.setdefault(score["system"], {})[score["mixtures"]] = (folder, score)
    sizes = sorted({size for of in placed.values() for size in of})
    whole = sorted((name for name, of in placed.items() if sorted(of) == sizes), key=systems.rank)
    if len(sizes) < 2 or len(whole) < 2:
        return []
    counts = {name: [read_per_utt(placed[name][size][0]) for size in sizes] for name in whole}
    if len({tuple(sorted(table)) for tables in counts.values() for table in tables}) > 1:
        return []  # not the same utterances: nothing to compare
    names = sorted(counts[whole[0]][0])
    errors = {name: np.array([[sum(table[utt][1][1:]) for utt in names] for table in counts[name]]).sum(axis=0)
              for name in whole}  # fmt: skip
    baseline = next((name for name in whole if name in systems.rows and systems.rows[name].baseline), None)
    rows = []
    for name in whole:
        total = sum(score["total"] for _, score in placed[name].values())
        made = int(errors[name].sum())
        row = {"system": name, "mixtures": " ".join(map(str, sizes)), "metric": "wer", "errors": made, "total": total,
               "percent": 100 * made / total}  # fmt: skip
        start = systems.rows[name].start if name in systems.rows else ""
        for key, other in (("versus", baseline), ("versus_start", start)):
            if other in errors and other != name and errors[other].sum():
                row[key] = {"system": other, **against(errors[other], errors[name])}
        rows.append(row)
    return rows


def against(theirs: np.ndarray, ours: np.ndarray) -> dict:
    """Relative change of errors, per cent, and p, from errors by utterance [N] of two systems."""
    change = 100 * (ours.sum() / theirs.sum() - 1)
    return {"relative": round(float(change), 2), "p": float(f"{matched_pairs(theirs - ours):.3g}"),
            "test": "matched_pairs"}  # fmt: skip

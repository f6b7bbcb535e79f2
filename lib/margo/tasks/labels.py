"""Hand labels: their file beside a corpus, models started from them, and alignments scored with them."""

from functools import partial

import numpy as np

from margo.errors import MargoError, refuse
from margo.estimate import ml
from margo.estimate.labelled import accumulate_segments, frame_segments
from margo.formats.boundary_table import BoundaryRow
from margo.formats.ctm import read_ctm
from margo.model.hmm import HmmSet
from margo.runtime.parallel import map_chunks
from margo.score.boundaries import (
    Boundary,
    Correction,
    boundary_errors,
    boundary_score,
    learn_correction,
    shares_within,
)
from margo.tasks import passes, speech
from margo.tasks.tuning import fold_models

EXAMPLES = 10  # faults named


def read_segments(path) -> dict[str, list[tuple[float, float, str]]]:
    """``(start, end, symbol)`` in seconds of every utterance of a CTM file, in their order."""
    segments: dict[str, list] = {}
    for row in read_ctm(path):
        segments.setdefault(row.utterance, []).append((row.start, row.end, row.word))
    return segments


def labels_for(path, data: speech.Speech) -> dict[str, list[tuple[float, float, str]]]:
    """The hand labels of ``data`` from a CTM file; refuses labels that are not the transcripts."""
    labels = read_segments(path)
    faults = []
    for item in data.items:
        if item.name not in labels:
            faults.append(f"{item.name}: no labels")
        elif tuple(word for _, _, word in labels[item.name]) != item.words:
            faults.append(f"{item.name}: the labels are not the words of the transcript")
    refuse(faults[:EXAMPLES], f"{path}: not the labels of {data.folder}")
    return labels


def frame_times(features: dict, source) -> tuple[float, float]:
    """Seconds from frame to frame, and of a frame's window; ``source`` names the folder in messages."""
    if "shift_ms" not in features or "window_ms" not in features:
        raise MargoError(f"{source}: features that came ready-made, with no times of their frames")
    return features["shift_ms"] / 1000, features["window_ms"] / 1000


def accumulate(hmms: HmmSet, labels: dict, times: tuple[float, float], even: bool, chunk):
    utterances = ((x, frame_segments(labels[name], len(x), *times)) for name, x, _ in speech.load(chunk))
    return accumulate_segments(hmms, utterances, even)


def start_from_labels(hmms: HmmSet, path, data: speech.Speech, where, options, say) -> HmmSet:
    """``hmms`` estimated from labelled segments: shared out evenly, then by best paths within them to convergence."""
    labels, times = labels_for(path, data), frame_times(data.features, data.folder)
    hmms, _ = ml.update(hmms, speech.total(partial(accumulate, hmms, labels, times, True), data, where), options)
    before = None
    for number in range(1, options.iterations + 1):
        stats = speech.total(partial(accumulate, hmms, labels, times, False), data, where)
        hmms, report = ml.update(hmms, stats, options)
        say(f"labels, pass {number}: {report['objective']:.5g} a frame of {report['frames']} in segments")
        if ml.converged(before, report["objective"], options.tolerance):
            break
        before = report["objective"]
    return hmms


def errors_of_alignment(ctm, labels_path, data: speech.Speech) -> tuple[dict[str, list[Boundary]], list[str]]:
    """Boundaries of the aligned utterances of ``data``, by name, and the names of those not aligned."""
    labels, aligned, found = labels_for(labels_path, data), read_segments(ctm), {}
    for item in data.items:
        if item.name in aligned:
            try:
                found[item.name] = boundary_errors(labels[item.name], aligned[item.name])
            except MargoError as error:
                raise MargoError(f"{ctm}: {item.name}: {error}") from None
    return found, [item.name for item in data.items if item.name not in aligned]


def stated_deviations(rows: list[BoundaryRow], found: dict[str, list[Boundary]]) -> np.ndarray | None:
    """The deviations [n] that an alignment states for the boundaries found; None where it does not of all."""
    stated = {(row.utterance, round(row.time, 3)): row.deviation for row in rows}
    values = [stated.get((name, round(each.at, 3))) for name, own in found.items() for each in own]
    return None if None in values else np.array(values)


def boundary_report(
    found: dict[str, list[Boundary]], deviations: np.ndarray | None, missing: list[str], classes: dict, title: str
) -> tuple[dict, str, list[dict]]:
    """The score of boundaries as a JSON object, as text, and as plots: a histogram, and a table by class of
    transition."""
    every = [each for own in found.values() for each in own]
    errors = np.array([each.error for each in every])
    facts = _facts(errors, deviations) | {"missing": missing}
    shares = ", ".join(f"{share:.2f} % within {limit} ms" for limit, share in facts["percent_within_ms"].items())
    text = (f"{shares} of {len(errors)} boundaries\nmean error {facts['mean_ms']:.2f} ms, median "
            f"{facts['median_ms']:.2f} ms, bias {facts['bias_ms']:+.2f} ms\n"
            f"{len(missing)} utterances not aligned\n")  # fmt: skip
    if deviations is not None:
        one, two = facts["percent_within_deviations"]
        text += f"{one:.2f} % within one stated deviation, {two:.2f} % within two\n"
    stated = [] if deviations is None else ["1 deviation %", "2 deviations %"]
    edges = np.arange(-62.5, 63, 5)
    counts, _ = np.histogram(1000 * errors, edges)
    series = [{"name": "boundaries", "edges": edges.tolist(), "counts": counts.tolist()}]
    plot = {"title": f"Boundaries of {title} against hand labels", "kind": "histogram", "x_label": "ms late",
            "y_label": "boundaries", "note": shares, "series": series}  # fmt: skip
    groups = transitions(every, classes)
    facts["by_transition"] = {name: _facts(errors[own], None if deviations is None else deviations[own])
                              for name, own in groups.items()}  # fmt: skip
    told = "; share within one and two of the deviations that the alignment states" if stated else ""
    table = {"title": f"Boundaries of {title} against hand labels, by class of transition", "kind": "table",
             "columns": ["transition", "boundaries", *(f"{limit} ms %" for limit in facts["percent_within_ms"]),
                         "mean ms", "bias ms", *stated],
             "cells": [_cells(name, row) for name, row in [("all", facts), *facts["by_transition"].items()]],
             "note": "Share of boundaries within so many ms of the labels, mean absolute error, and mean error "
                     f"(positive: late){told}."}  # fmt: skip
    return facts, text, [plot, table]


def transitions(found: list[Boundary], classes: dict[str, str]) -> dict[str, np.ndarray]:
    """Places of the boundaries of each pair of classes ("left right"), the most frequent pairs first."""
    pair = Correction(0.0, {}, 1.0, classes).pair
    names = np.array([pair(each.left, each.right) for each in found])
    kinds, counts = np.unique(names, return_counts=True)
    return {str(kinds[n]): np.flatnonzero(names == kinds[n]) for n in np.argsort(-counts, kind="stable")}


def _facts(errors: np.ndarray, deviations: np.ndarray | None) -> dict:
    score = boundary_score(errors)
    within = {f"{1000 * limit:g}": round(100 * share, 2) for limit, share in score["within"].items()}
    means = {f"{name}_ms": round(1000 * score[name], 3) for name in ("mean", "median", "bias")}
    facts = {"boundaries": score["boundaries"], **means, "percent_within_ms": within}
    if deviations is not None:
        facts["percent_within_deviations"] = [round(100 * share, 2) for share in shares_within(errors, deviations)]
    return facts


def _cells(name: str, facts: dict) -> list[str]:
    shares = [*facts["percent_within_ms"].values()]
    return [name.replace(" ", " to "), str(facts["boundaries"]), *(f"{share:.1f}" for share in shares),
            f"{facts['mean_ms']:.1f}", f"{facts['bias_ms']:+.1f}",
            *(f"{share:.1f}" for share in facts.get("percent_within_deviations", ()))]  # fmt: skip


def correction_of(
    hmms: HmmSet, labels_path, data: speech.Speech, scales: tuple[float, float], classes: dict, where
) -> tuple[Correction, int]:
    """What is systematic in the boundaries of ``data`` against hand labels, and how many boundaries there are.

    Utterances are aligned by folds of speakers, each with a model that is updated from all but its own statistics:
    a model that has heard a speaker is closer to their labels than it will be to others'. ``scales``: of confidences
    and of boundaries.
    """
    labels, found, deviations = labels_for(labels_path, data), [], []
    parts = fold_models(hmms, ml.DEFAULTS, data, where)
    if not parts:
        raise MargoError(f"{data.folder}: one utterance; a correction is learnt from two or more")
    for model, fold in parts:
        function = partial(passes.alignments, model, scales[0], boundary_scale=scales[1])
        for done, _ in map_chunks(function, fold.chunks, where):
            for utterance in done:
                rows = passes.times_of(data.features, [utterance], "units")
                segments = [(row.start, row.end, row.word) for row in rows]
                spread = {row.time: row.deviation for row in passes.boundary_rows(data.features, utterance)}
                own = boundary_errors(labels[utterance.name], segments)
                found += own
                deviations += [spread[each.at] for each in own]
    return learn_correction(found, np.array(deviations), classes), len(found)

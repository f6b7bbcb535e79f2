"""Hand labels: their file beside a corpus, models started from them, and alignments scored with them."""

from functools import partial

import numpy as np

from margo.errors import MargoError, refuse
from margo.estimate import ml
from margo.estimate.labelled import accumulate_segments, frame_segments
from margo.formats.ctm import read_ctm
from margo.model.hmm import HmmSet
from margo.score.boundaries import boundary_errors, boundary_score
from margo.tasks import speech

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


def errors_of_alignment(ctm, labels_path, data: speech.Speech) -> tuple[np.ndarray, list[str]]:
    """Boundary errors [n] in seconds of all aligned utterances of ``data``, and the names of those not aligned."""
    labels, aligned = labels_for(labels_path, data), read_segments(ctm)
    errors = []
    for item in data.items:
        if item.name in aligned:
            try:
                errors.append(boundary_errors(labels[item.name], aligned[item.name]))
            except MargoError as error:
                raise MargoError(f"{ctm}: {item.name}: {error}") from None
    return np.concatenate(errors or [np.empty(0)]), [item.name for item in data.items if item.name not in aligned]


def boundary_report(errors: np.ndarray, missing: list[str], title: str) -> tuple[dict, str, dict]:
    """The score of boundary ``errors`` [n] as a JSON object, as text, and as a plot."""
    score = boundary_score(errors)
    within = {f"{1000 * limit:g}": round(100 * share, 2) for limit, share in score["within"].items()}
    means = {f"{name}_ms": round(1000 * score[name], 3) for name in ("mean", "median", "bias")}
    facts = {"boundaries": score["boundaries"], **means, "percent_within_ms": within, "missing": missing}
    shares = ", ".join(f"{share:.2f} % within {limit} ms" for limit, share in within.items())
    text = (f"{shares} of {len(errors)} boundaries\nmean error {facts['mean_ms']:.2f} ms, median "
            f"{facts['median_ms']:.2f} ms, bias {facts['bias_ms']:+.2f} ms\n"
            f"{len(missing)} utterances not aligned\n")  # fmt: skip
    edges = np.arange(-62.5, 63, 5)
    counts, _ = np.histogram(1000 * errors, edges)
    series = [{"name": "boundaries", "edges": edges.tolist(), "counts": counts.tolist()}]
    plot = {"title": f"Boundaries of {title} against hand labels", "kind": "histogram", "x_label": "ms late",
            "y_label": "boundaries", "note": shares, "series": series}  # fmt: skip
    return facts, text, plot

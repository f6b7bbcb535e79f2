"""Score folders: ``score.json`` and, beside it, ``score/`` with the same in text.

=====================  ===============================================================================================
``score.json``         the row of the results table, see :func:`write_score`
``score/wer``          ``%WER 0.42 [ 12 / 2857, 1 ins, 2 del, 9 sub ]`` and ``%SER 1.24 [ 11 / 870 ]``
``score/err``          classification: ``%ERR 38.74 [ 179 / 462 ]``
``score/ci``           ``%WER 0.42 95% Conf Interval [ 0.20, 0.67 ]``, and how it was made
``score/per_utt``      four lines an utterance, as Kaldi's: ``utt ref ...``, ``utt hyp ...`` (aligned, ``***`` for
                       nothing), ``utt op C S I D ...``, ``utt #csid`` and the four counts
``score/per_spk``      a line a speaker: utterances, words, correct, sub, ins, del, errors, wrong utterances, per cent
``score/ops``          ``substitution two three 4`` (also ``correct``, ``insertion``, ``deletion``), commonest first
``score/confusion.csv``  rows reference, columns hypothesis; ``<eps>`` row insertions, ``<eps>`` column deletions
=====================  ===============================================================================================
"""

import csv
import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from margo.errors import MargoError, refuse
from margo.formats.atomic import write_json, write_text
from margo.formats.reading import read_json, read_lines, read_rows, reading
from margo.knobs import brief, whole
from margo.score.interval import Rate

METRICS = ("wer", "err")
RATE = {"percent": float, "errors": int, "total": int, "ci95": [float]}
LAYOUT = {"system": str, "mixtures": int, "set": str, "metric": set(METRICS), **RATE, "ser?": RATE,
          "seconds?": float, "runs?": [float], "missing?": [str],
          "unit?": str, "task?": str, "choice?": str, "interval?": str,
          "parameters?": int}  # fmt: skip
NEEDED = ("system", "mixtures", "set", "metric", "percent", "errors", "total", "ci95")  # in score.json
KINDS = ("ref", "hyp", "op", "#csid")  # lines of an utterance in per_utt
GAP, EPSILON = "***", "<eps>"


def write_score(
    folder, rate: Rate, *, system: str, mixtures: int, set: str, metric: str, ser: Rate | None = None,
    counts: tuple[int, int, int] | None = None, seconds: float | None = None, runs: Sequence[float] | None = None,
    missing: Sequence[str] = (), extra: dict | None = None,
) -> list[str]:  # fmt: skip
    """Write ``score.json``, ``score/{wer or err}`` and ``score/ci`` into ``folder``; return their names there.

    ``metric`` is ``wer`` (strings; ``counts`` are insertions, deletions, substitutions and ``ser`` the string error
    rate) or ``err`` (classification). ``mixtures`` is the number of components per state or class (0: not known),
    ``set`` train, dev, test or what else was decoded, ``seconds`` what training took. A row that averages several runs
    passes the runs' percentages in ``runs`` and :func:`margo.score.interval.pooled_rate` of them as ``rate``. ``extra``
    adds keys to ``score.json`` for readers of that file; the report knows ``unit`` (of strings: word or phone),
    ``task``, ``choice``, ``interval`` and ``parameters`` (how many numbers a classifier holds).
    """
    refuse(_bad(rate, mixtures, set, metric, counts, runs), f"{folder}: not a score")
    folder, label = Path(folder), metric.upper()
    value = {"system": system, "mixtures": mixtures, "set": set, "metric": metric, **_plain(rate)}
    value |= dict(zip(("insertions", "deletions", "substitutions"), counts or ()))
    maybe = {
        "ser": ser and _plain(ser),
        "seconds": None if seconds is None else round(seconds, 3),
        "runs": None if runs is None else [round(float(run), 4) for run in runs],
        "missing": list(missing) or None,
    }
    value |= {key: held for key, held in maybe.items() if held is not None} | (extra or {})
    detail = ", {} ins, {} del, {} sub".format(*counts) if counts is not None else ""
    lines = [f"%{label} {rate.percent:.2f} [ {rate.errors} / {rate.total}{detail} ]"]
    if ser is not None:
        lines.append(f"%SER {ser.percent:.2f} [ {ser.errors} / {ser.total} ]")
        lines.append(f"Scored {ser.total} sentences, {len(missing)} not present in hyp.")
    intervals = [f"%{name} {each.percent:.2f} 95% Conf Interval [ {each.ci95[0]:.2f}, {each.ci95[1]:.2f} ]"
                 for name, each in ((label, rate), ("SER", ser)) if each is not None]  # fmt: skip
    if "interval" in value:
        intervals.append(f"# {value['interval']}")
    write_text(folder / "score" / metric, "\n".join(lines) + "\n")
    write_text(folder / "score" / "ci", "\n".join(intervals) + "\n")
    write_json(folder / "score.json", value)
    return [f"score/{metric}", "score/ci", "score.json"]


def _plain(rate: Rate) -> dict:
    ci95 = [round(float(end), 4) for end in rate.ci95]
    return {"percent": round(rate.percent, 4), "errors": int(rate.errors), "total": int(rate.total), "ci95": ci95}


def _bad(rate, mixtures, set, metric, counts, runs) -> list[str]:
    faults = []
    if metric not in METRICS:
        faults.append(f"metric is {metric!r}, expected {' or '.join(METRICS)}")
    if not set:
        faults.append("set is empty, expected a name such as test")
    if mixtures < 0:
        faults.append(f"mixtures is {mixtures}, expected at least 0 (not known)")
    if rate.total < 1 or rate.errors < 0:
        faults.append(f"{rate.errors} errors of {rate.total}: expected at least one trial")
    if counts is not None and sum(counts) != rate.errors:
        faults.append(f"insertions, deletions and substitutions {counts} do not add up to {rate.errors} errors")
    if runs is not None and (not len(runs) or abs(np.mean(runs) - rate.percent) > 5e-3):
        faults.append(f"percent is {rate.percent:.4f}, but runs are {list(runs)}")
    return faults


def write_details(folder, names: Sequence[str], alignments, speakers: Sequence[str] | None = None) -> list[str]:
    """Write ``score/{per_utt,ops,confusion.csv}`` (and ``per_spk``) of :class:`margo.score.align.Alignments`."""
    from margo.score.rates import by_speaker, confusion_counts

    score = Path(folder) / "score"
    confusions = confusion_counts(alignments)
    write_text(score / "per_utt", _per_utt(names, alignments))
    write_text(score / "ops", _ops(alignments.symbols, confusions))
    write_text(score / "confusion.csv", _confusion_csv(alignments.symbols, confusions))
    written = ["score/per_utt", "score/ops", "score/confusion.csv"]
    if speakers is not None:
        write_text(score / "per_spk", _per_spk(by_speaker(alignments, speakers)))
        written.append("score/per_spk")
    return written


def _per_utt(names, alignments) -> str:
    lines = []
    for n in sorted(range(len(names)), key=lambda n: names[n]):
        pairs = alignments.pairs(n)
        letters = ["I" if r is None else "D" if h is None else "C" if r == h else "S" for r, h in pairs]
        widths = [max(len(r or GAP), len(h or GAP)) for r, h in pairs]
        rows = {"ref": [r or GAP for r, _ in pairs], "hyp": [h or GAP for _, h in pairs], "op": letters}
        for key, row in rows.items():
            cells = [cell.ljust(width) for cell, width in zip(row, widths)]
            lines.append(f"{names[n]} {key:<3} {' '.join(cells)}".rstrip())
        lines.append(f"{names[n]} #csid {' '.join(str(letters.count(letter)) for letter in 'CSID')}")
    return "\n".join(lines) + "\n"


def _ops(symbols, confusions) -> str:
    rows, names, last = [], [*symbols, EPSILON], len(symbols)
    for r, h in np.argwhere(confusions).tolist():
        kind = "insertion" if r == last else "deletion" if h == last else "correct" if r == h else "substitution"
        rows.append((-confusions[r, h], f"{kind} {names[r]} {names[h]} {confusions[r, h]}"))
    return "".join(line + "\n" for _, line in sorted(rows))


def _confusion_csv(symbols, confusions) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = [*symbols, EPSILON]
    writer.writerow(["ref\\hyp", *names])
    writer.writerows([name, *row] for name, row in zip(names, confusions.tolist()))
    return text.getvalue()


def _per_spk(table: dict[str, dict[str, int]]) -> str:
    columns = ("utterances", "words", "correct", "substitutions", "insertions", "deletions", "errors", "wrong")
    width = max(map(len, ("speaker", *table)))
    lines = [" ".join([f"{'speaker':<{width}}", *(f"{name:>13}" for name in (*columns, "percent"))])]
    for speaker, row in table.items():
        rate = f"{100 * row['errors'] / row['words']:13.2f}" if row["words"] else f"{'-':>13}"
        lines.append(" ".join([f"{speaker:<{width}}", *(f"{row[name]:13d}" for name in columns), rate]))
    return "\n".join(lines) + "\n"


def read_score(path) -> dict:
    """The ``score.json`` at ``path``: the file, its folder, or the ``score`` folder beside it."""
    path = Path(path)
    if path.is_dir():
        path = path.parent / "score.json" if path.name == "score" else path / "score.json"
    value = read_json(path, "a score", LAYOUT)
    rates = [value, value.get("ser", value)]
    good = all(each["total"] >= 1 and each["errors"] >= 0 and len(each["ci95"]) == 2 for each in rates)
    if value["mixtures"] < 1 or not good:
        raise MargoError(f"{path}: expected at least 1 in mixtures and total, 0 in errors, and two ends in ci95")
    return value


def read_per_utt(folder) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
    """``utterance -> (reference words, counts of correct, substitutions, insertions, deletions)`` of a score folder."""
    folder = Path(folder)
    path = (folder if folder.name == "score" else folder / "score") / "per_utt"
    told: dict[str, dict[str, list]] = {}
    for number, line in read_lines(path):
        name, kind, *values = line.split() if len(line.split()) > 1 else (line, "")
        own = told.setdefault(name, {})
        if kind not in KINDS or kind in own:
            raise MargoError(f"{path}:{number}: found {brief(line)}, expected one line of each of {', '.join(KINDS)}")
        with reading(f"{path}:{number}"):
            own[kind] = [whole(value) for value in values] if kind == "#csid" else values
    if not told:
        raise MargoError(f"{path}: no utterances")
    return {name: _reference(own, f"{path}: {name[:60]}") for name, own in told.items()}


def _reference(own: dict[str, list], where: str) -> tuple[tuple[str, ...], np.ndarray]:
    """Words and counts of one utterance's lines; what stands over an insertion is a gap, ``***`` elsewhere a word."""
    ref, hyp, op, counts = (own.get(kind, ()) for kind in KINDS)
    alike = counts == [op.count(letter) for letter in "CSID"] and sum(counts) == len(ref) == len(hyp) == len(op)
    if not alike:
        raise MargoError(f"{where}: needs as many words in its ref and hyp lines as letters in its op line, and a "
                         "#csid line that counts each letter")  # fmt: skip
    return tuple(word for word, letter in zip(ref, op) if letter != "I"), np.array(counts, np.int64)


def read_confusions(folder) -> tuple[list[str], np.ndarray]:
    """Symbols [V] and counts [V + 1, V + 1] of ``folder/score/confusion.csv``; the last of both are ``<eps>``."""
    path = Path(folder) / "score" / "confusion.csv"
    with reading(path, "a table of confusions"):
        rows = [row for _, row in read_rows(path)]
        names, counts = rows[0][1:], np.array([[whole(cell) for cell in row[1:]] for row in rows[1:]])
    square = counts.shape == (len(names), len(names)) and not (counts < 0).any()
    if names[-1:] != [EPSILON] or not square or [row[0] for row in rows[1:]] != names:
        raise MargoError(f"{path}: not a table of confusions (rows and columns must be the same, {EPSILON} last)")
    return names[:-1], counts

"""What one system got wrong: which words for which, whose utterances, and some of them to look at and listen to."""

import base64
import struct
import zlib
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

import numpy as np

from margo.errors import MargoError
from margo.formats.scores import EPSILON, read_confusions, read_per_utt
from margo.formats.transcripts import read_transcripts, read_utt2spk
from margo.report.collect import SETS, model_folder

PAIRS = 15  # confusions in the table
SYMBOLS = 45  # in a drawn table of confusions, at most


@dataclass(frozen=True)
class Details:
    """Of the decoding in ``folder``: everything that its page shows beside the rates."""

    folder: Path
    row: dict  # of results.json
    confusions: tuple[list[str], np.ndarray]
    speakers: list[dict]
    wrong: list[tuple[str, tuple[str, ...], tuple[str, ...]]]  # utterance, said, heard; the most errors first
    model: Path | None
    data: Path
    examples: list[dict] = field(default_factory=list)  # of margo.tasks.examples


def details_of(exp, rows: list[dict], places: dict[tuple, Path]) -> Details | None:
    """The details of the system that is best on dev (of the one with fewest errors, where dev was not scored), on the
    test set where there is one; None where no transcripts were scored.

    ``places``: the folder of each score by system, mixtures and set.
    """
    rows = [row for row in rows if row["metric"] == "wer" and "task" not in row and "runs" not in row]
    judged = [row for row in rows if row["set"] == "dev"] or rows
    if not judged:
        return None
    best = min(judged, key=lambda row: row["percent"])
    own = [row for row in rows if (row["system"], row["mixtures"]) == (best["system"], best["mixtures"])]
    row = min(own, key=lambda row: (*SETS, row["set"]).index(row["set"]))
    folder = places[row["system"], row["mixtures"], row["set"]]
    data = Path(exp) / "data" / row["set"]
    try:
        confusions, told = read_confusions(folder), read_per_utt(folder)
    except MargoError:  # scored elsewhere, by others
        return None
    heard = read_transcripts(folder / "hyp") if (folder / "hyp").is_file() else {}
    names = sorted((name for name, (_, counts) in told.items() if counts[1:].sum() and name in heard),
                   key=lambda name: (-told[name][1][1:].sum(), name))  # fmt: skip
    wrong = [(name, told[name][0], heard[name]) for name in names]
    return Details(folder, row, confusions, speaker_rows(told, data), wrong, model_folder(folder), data)


def speaker_rows(told: dict, data: Path) -> list[dict]:
    """Utterances, words, errors and rate of every speaker, the worst first; none where speakers are not known."""
    path = data / "utt2spk"
    speakers = read_utt2spk(path) if path.is_file() else {}
    if not told.keys() <= speakers.keys():
        return []
    sums: dict[str, np.ndarray] = {}
    for name, (words, counts) in told.items():
        own = np.array([1, len(words), counts[1:].sum(), counts[1:].any()])
        sums[speakers[name]] = sums.get(speakers[name], 0) + own
    keys = ("utterances", "words", "errors", "wrong")
    rows = [{"speaker": speaker, **dict(zip(keys, own.tolist())), "percent": 100 * own[2] / max(own[1], 1)}
            for speaker, own in sums.items()]  # fmt: skip
    return sorted(rows, key=lambda row: (-row["percent"], row["speaker"]))


def pairs(details: Details) -> list[list[str]]:
    """Head and rows of the commonest errors."""
    symbols, counts = details.confusions
    wrong = counts.copy()
    np.fill_diagonal(wrong, 0)
    names = [*symbols, EPSILON]
    places = sorted(np.argwhere(wrong).tolist(), key=lambda place: (-wrong[*place], place))
    rows = [["(nothing)" if names[r] == EPSILON else names[r], "(nothing)" if names[h] == EPSILON else names[h],
             str(wrong[r, h]), f"{100 * wrong[r, h] / max(counts[r].sum(), 1):.1f}" if r < len(symbols) else ""]
            for r, h in places[:PAIRS]]  # fmt: skip
    return [["said", "heard", "times", "% of it said"], *rows]


def confusion_plot(details: Details) -> dict | None:
    """The errors as a heat map; none where there are too many symbols, or no errors."""
    symbols, counts = details.confusions
    wrong = counts.copy()
    np.fill_diagonal(wrong, 0)
    if not wrong.any() or len(symbols) > SYMBOLS:
        return None
    return {"title": "Errors, right ones left out", "kind": "heatmap", "x_label": "heard", "y_label": "said",
            "rows": [*symbols, "nothing"], "columns": [*symbols, "nothing"], "values": wrong.tolist()}  # fmt: skip


def example(shown: dict) -> str:
    """One utterance: what was said and what was heard under its waveform and spectrogram, and its sound."""
    seconds, wave = shown["seconds"], shown["wave"].astype(float)
    loudest = max(1.0, np.abs(wave).max())
    tops, bottoms = (50 - 48 * wave[:, side] / loudest for side in (1, 0))
    places = (f"M{n} {top:.1f}V{bottom + 0.5:.1f}" for n, (top, bottom) in enumerate(zip(tops, bottoms)))
    outline = f'<path d="{"".join(places)}"/>'
    lanes = "".join(
        f'<div class="lane {kind}"><b>{kind}</b><div>{"".join(box(word, seconds) for word in shown[kind])}</div></div>'
        for kind in ("said", "heard")
    )
    sound, lead = base64.b64encode(shown["flac"]).decode(), shown["lead"]
    score = f"scores {abs(lead):.1f} nats {'less' if lead < 0 else 'more'}"
    return (
        f'<figure class="example"><h3>{escape(shown["name"])}</h3>'
        f'<audio controls preload="none" src="data:audio/flac;base64,{sound}"></audio>'
        f'<div class="lane"><b>wave</b><div class="wave"><svg viewBox="0 0 {len(wave)} 100" preserveAspectRatio="none" '
        f'role="img" aria-label="waveform" xmlns="http://www.w3.org/2000/svg">{outline}</svg></div></div>'
        f'<div class="lane"><b>0 to {shown["rate"] / 2000:g} kHz</b><div class="shades"><img alt="spectrogram" '
        f'src="data:image/png;base64,{base64.b64encode(png(shown["spectrogram"])).decode()}"></div></div>{lanes}'
        f'<p class="soft">{seconds:.2f} s; what was heard {score} than what was said</p>'
        "</figure>"
    )


def box(word: dict, seconds: float) -> str:
    left, width = 100 * word["start"] / seconds, 100 * word["duration"] / seconds
    kind, name = "" if word["right"] else ' class="off"', escape(word["word"])
    hint = f"{name} from {word['start']:.2f} s for {word['duration']:.2f} s"
    return f'<span{kind} style="left: {left:.2f}%; width: {width:.2f}%" title="{hint}">{name}</span>'


def png(shades: np.ndarray) -> bytes:
    """A grey picture of shades uint8 [rows, columns], row 0 at the bottom, 255 black."""
    rows, columns = shades.shape
    lines = b"".join(b"\0" + line.tobytes() for line in np.ascontiguousarray(255 - shades[::-1]))

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    head = struct.pack(">IIBBBBB", columns, rows, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines, 9)) + chunk(b"IEND", b"")

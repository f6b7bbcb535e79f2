"""Alignment of long recordings: ten minutes and an hour of connected digits, from audio and words to a TextGrid.

The speech is the embedded TIDIGITS stand-in (synthetic), strings of its test speakers one behind the other, again and
again; the model has whole words of one Gaussian a state, of two iterations. ``margo align`` runs as people call it, in
a process of its own, whose peak of memory and whose CPU seconds (one thread, compiled code, start and files included)
are given beside the seconds of the recording: the ratio is how many times faster than real time it is.
"""

import json
import runpy
import subprocess
import sys
import tempfile
import time
from itertools import cycle
from pathlib import Path

from scale import entry

MINUTES = (10, 60)
QUICK = "[train_ml]\niterations = 2\npenalties = [-20, 0]\n"


def entries():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "quick.toml").write_text(QUICK)
        margo(folder, "mini-corpus", "tidigits", "--size", "tiny", "--out", "corpus")
        margo(folder, "recipe", "tidigits", "--corpus", "corpus", "--mix", "1", "--criteria", "ml", "--nj", "1",
              "--conf", "quick.toml", "--stop-stage", "2")  # fmt: skip
        join(folder, 5.0, "short")
        apart(folder, "short")  # compiles
        for minutes in MINUTES:
            seconds, words = join(folder, 60.0 * minutes, "long")
            found = apart(folder, "long")
            yield entry(f"align {minutes} minutes, {words} words of 11 whole-word models, 1 mixture",
                        found["seconds"], "real time", seconds, peak_megabytes=round(found["megabytes"]))  # fmt: skip


def margo(folder: Path, *words: str) -> None:
    subprocess.run([sys.executable, "-m", "margo", *words], cwd=folder, check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)  # fmt: skip


def join(folder: Path, seconds: float, name: str) -> tuple[float, int]:
    """Write NAME.wav of at least so many seconds and NAME.txt of its words; ``(seconds, words)``."""
    import numpy as np
    import soundfile

    data = folder / "exp" / "tidigits" / "data" / "test"
    said = dict(line.split(maxsplit=1) for line in (data / "text").read_text().splitlines())
    parts, words, left = [], [], seconds
    for utterance, path in cycle([line.split() for line in (data / "wav.scp").read_text().splitlines()]):
        samples, rate = soundfile.read(folder / path, dtype="int16")
        parts.append(samples)
        words += said[utterance].split()
        left -= len(samples) / rate
        if left <= 0:
            break
    soundfile.write(folder / f"{name}.wav", np.concatenate(parts), rate)
    (folder / f"{name}.txt").write_text(" ".join(words))
    return seconds - left, len(words)


def apart(folder: Path, name: str) -> dict:
    """CPU seconds and peak of megabytes of an alignment in a process of its own."""
    command = [sys.executable, str(Path(__file__).resolve()), name]
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def measure(name: str) -> dict:
    """``margo align`` in this process."""
    from margo import cli
    from margo.runtime.record import own_peak

    step = cli.verbs()["align"]
    sys.argv = [str(step), "--model", "exp/tidigits/ml_1", f"{name}.wav", "--textgrid", f"{name}.TextGrid"]
    runpy.run_path(str(step), run_name="__main__")
    return {"seconds": time.process_time(), "megabytes": own_peak()}


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1])))

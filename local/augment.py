"""More data from a data folder: copies of every utterance at other speeds and pitches, in noise, in rooms.

Each value makes a copy: --speed 0.9 1.1 --snr 10 makes three. Names and speakers of copies begin with what was done,
sp0.9-, as in Kaldi: a changed voice is another speaker's. What is drawn at random depends on --seed and the utterance
alone. Augment what is trained on, never what is tested on.

Example: local/augment.py --data data/train --out data/noisy --snr 10 20 --speed 0.9 1.1
"""

from dataclasses import dataclass, replace
from pathlib import Path

from margo.runtime.step import Seeded, knob, main


@dataclass(frozen=True)
class Options(Seeded):
    data: Path = knob(help="data folder")
    out: Path = knob(help="data folder to write, with its audio in wav/")
    speed: tuple[float, ...] = knob((), "factors of tempo and pitch together, as 0.9 1.1", least=0.25, most=4)
    pitch: tuple[float, ...] = knob((), "semitones up or down (librosa)", least=-24, most=24)
    snr: tuple[float, ...] = knob((), "ratios of speech to noise, in dB", least=-20, most=60)
    noise: Path | None = knob(None, "folder of recordings of noise; without it, pink noise", needs={"snr": True})
    reverb: tuple[float, ...] = knob((), "rooms: seconds in which sound falls by 60 dB", above=0, most=10)
    direct: float = knob(3.0, "dB of direct sound over the room's", least=-20, most=40, needs={"reverb": True})
    keep: bool = knob(True, "the utterances as they are, too")
    allow_pipes: bool = knob(False, "run the commands in wav.scp")

    def faults(self):
        some = self.speed or self.pitch or self.snr or self.reverb
        return super().faults() + ["expected some of --speed --pitch --snr --reverb"] * (not some)


def run(options: Options, step):
    from margo.errors import MargoError
    from margo.formats import audio, datadir
    from margo.formats.atomic import file_name

    data = datadir.read(step.input(options.data, made_by="data"), allow_pipes=options.allow_pipes)
    if any(row.audio is None for row in data):
        raise MargoError(f"{options.data}: has features and no audio, expected wav.scp")
    noises = noise_of(options.noise, audio)
    rows = []
    for row in step.progress(data, len(data), "augment"):
        samples, rate = audio.read_recording(row.audio, options.allow_pipes)
        if row.start is not None:
            length = None if row.end is None else row.end - row.start
            samples = audio.cut(samples, rate, row.start, length, row.audio)
        made = copies(options, row.name, samples, rate, noises)
        for mark, changed in [("", samples)] * options.keep + made:
            path = step.output(f"wav/{file_name(mark + row.name)}.wav")
            audio.write_wave(path, changed, rate)
            rows.append(replace(row, name=mark + row.name, speaker=mark + row.speaker, audio=str(path.resolve()),
                                recording=None, start=None, end=None, feats=None))  # fmt: skip
    datadir.write(options.out, rows)
    for table in ("wav.scp", "text", "utt2spk", "spk2utt", *(["spk2gender"] if rows[0].gender else [])):
        step.output(table)
    step.say(f"augment: {len(rows)} utterances of {len(data)}")


def noise_of(folder: Path | None, audio) -> list:
    """``(name, samples, rate)`` of the recordings of a folder."""
    from margo.formats.corpora import files_below

    paths = [path for path, _ in files_below(folder, (".wav", ".flac"))] if folder else []
    if folder and not paths:
        from margo.errors import MargoError

        raise MargoError(f"{folder}: no .wav or .flac there")
    return [(path, *audio.read_audio(path)) for path in paths]


def copies(options: Options, name: str, samples, rate: int, noises: list) -> list[tuple]:
    """``(mark, samples)`` of every copy of an utterance."""
    import zlib

    import numpy as np

    from margo.errors import MargoError
    from margo.signal import perturb

    generator = np.random.default_rng([options.seed, zlib.crc32(name.encode())])
    made = [(f"sp{factor:g}-", perturb.fast(samples, rate, factor)) for factor in options.speed]
    made += [(f"pitch{steps:+g}-", perturb.pitched(samples, rate, steps)) for steps in options.pitch]
    for decibels in options.snr:
        noise = perturb.pink(len(samples), generator)
        if noises:
            path, recorded, own = noises[generator.integers(len(noises))]
            if own != rate:
                raise MargoError(f"{path}: sample rate is {own} Hz, the data's is {rate} Hz")
            noise = perturb.piece_of(recorded, len(samples), generator)
        made.append((f"snr{decibels:g}-", perturb.noisy(samples, decibels, noise)))
    for room in options.reverb:
        made.append((f"rvb{room:g}-", perturb.in_a_room(samples, rate, room, options.direct, generator)))
    return made


if __name__ == "__main__":
    main(__doc__, Options, run)

"""How far it goes: reading many utterances, workers, large-margin programs, and growth over two decades; passes over
long corpora, of which benchmarks/memory.py compares the memory.

Everything is synthetic: utterances of ten seconds drawn from a model of connected words, an hour of them, listed again
and again under other names where more hours are asked for. Each measurement runs in a process of its own, so that its
peak of memory is its own. ``python benchmarks/scale.py`` prints the entries; ``python benchmarks/scale.py memory lme
100`` one of them. Seconds of passes and workers are by the clock, since processes are what is measured; on a machine
that has other work they say little. What the simulation is, docs/scale.md tells.
"""

import heapq
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from margo.runtime.record import own_peak

HOURS = (1, 100)
SECONDS, FRAMES, DIMENSION, SPOKEN = 10, 1000, 39, 4  # of an utterance; words that are spoken slowly
MINUTES, MIXTURES = 60, 8  # of the pass that workers share, and of its model
WORKERS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
PAIRS, MEMORY_OF_PAIRS = 1_000_000, 4000  # and megabytes
NETWORK = 1e9 / 8  # bytes a second of a cluster's network, 1 Gbit/s, for the simulation beyond this machine


def entries():
    yield reading(100_000)
    yield from workers()
    yield million()
    yield from growth()


def entry(name: str, seconds: float, peer: str = "none", theirs: float | None = None, **more) -> dict:
    ratio = None if theirs is None else theirs / seconds
    return {"name": name, "ours_seconds": seconds, "peer": peer, "peer_seconds": theirs, "ratio": ratio, **more}


def apart(*arguments) -> dict:
    """What ``measure_*`` of this file finds in a process of its own, with its peak of memory in megabytes."""
    command = [sys.executable, str(Path(__file__).resolve()), *map(str, arguments)]
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    done = subprocess.run(command, env=os.environ | threads, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


# -- synthetic speech --------------------------------------------------------------------------------------------------
def model(mixtures: int = 1, words: int = 5, states: int = 4):
    """Connected words, far enough apart to be told."""
    from margo.gaussian.pool import GaussianPool
    from margo.gaussian.splitting import split
    from margo.model.grammar import grammar
    from margo.model.hmm import flat_start, whole_words

    rng = np.random.default_rng(0)
    names = [f"w{number}" for number in range(words)]
    hmms = flat_start(whole_words(names), states, np.zeros(DIMENSION), np.ones(DIMENSION),
                      meta={"grammar": grammar("loop", -20.0), "features": {}})  # fmt: skip
    number = hmms.pool.n_states
    pool = GaussianPool(rng.normal(0, 0.7, (number, DIMENSION)), np.ones((number, DIMENSION)), np.zeros(number),
                        np.arange(number + 1))  # fmt: skip
    return replace(hmms, pool=split(pool, mixtures))


def corpus(folder: Path, hours: float):
    """A feature folder of so many hours: an hour of features at most, listed under as many names as it takes."""
    from margo.formats import datadir, features

    hmms, rng = model(), np.random.default_rng(1)
    count, distinct = round(3600 * hours / SECONDS), round(3600 * min(hours, 1) / SECONDS)
    words, matrices = [], []
    for number in range(distinct):
        spoken = [hmms.words[index] for index in rng.integers(0, len(hmms.words), SPOKEN)]
        states = np.concatenate([hmms.units[hmms.unit_index[word]].states for word in spoken])
        states = np.sort(np.concatenate([np.arange(len(states)), rng.integers(0, len(states), FRAMES - len(states))]))
        path = np.concatenate([hmms.units[hmms.unit_index[word]].states for word in spoken])[states]
        x = hmms.pool.means[path] + 1.3 * rng.normal(size=(FRAMES, DIMENSION))
        words.append(tuple(spoken))
        matrices.append((f"u{number}", x.astype(np.float32)))
    folder.mkdir(parents=True)
    offsets = features.write_ark(folder / "feats.ark", folder / "feats.scp", matrices)
    rows = [datadir.Utterance(f"u{n:07d}", f"s{n % 100:02d}", words[n % distinct],
                              feats=f"feats.ark:{offsets[f'u{n % distinct}']}") for n in range(count)]  # fmt: skip
    datadir.write(folder, rows)
    return folder


def criterion_of(name: str):
    from margo.estimate.lme.region import Lme, LmeOptions
    from margo.estimate.mce import Mce, MceOptions
    from margo.estimate.ml import Ml, MlOptions
    from margo.estimate.mmi import Mmi, MmiOptions

    kinds = {"ml": (Ml, MlOptions), "mce": (Mce, MceOptions), "mmi": (Mmi, MmiOptions), "lme": (Lme, LmeOptions)}
    kind, options = kinds[name]
    return kind(options())


def train_pass(name: str, folder: Path, where=None, mixtures: int = 1) -> float:
    """Seconds of a pass of a criterion and of the step after it (of LME without the search that judges the step)."""
    from margo.tasks import speech

    hmms, criterion = model(mixtures), criterion_of(name)
    data = speech.read(folder)
    step = SimpleNamespace(say=print, log=print, name=name, out=folder)
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as scratch:
        step.out = scratch
        corpus = speech.Corpus(data, where, step)
        stats, memory = criterion.measure(hmms, criterion.begin(hmms), corpus, 0, False)
        if name == "lme":
            from margo.estimate.lme.tokens import make_problem

            number = hmms.pool.n_gaussians
            criterion.solve(make_problem(stats.select(criterion.support(stats)), number, 0.1 * number, 0.3), 1.0)
        else:
            criterion.update(hmms, stats, memory, corpus)
    return time.perf_counter() - began


# -- measurements ------------------------------------------------------------------------------------------------------
def reading(count: int) -> dict:
    found = apart("reading", count)
    return entry(f"{count} utterances read and validated", found["seconds"], megabytes=found["megabytes"])


def measure_reading(count: int) -> dict:
    """Tables, archives and every matrix; utterances of ten frames."""
    from margo.formats import datadir, features
    from margo.tasks import speech

    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        x = np.zeros((10, DIMENSION), np.float32)
        features.write_ark(folder / "feats.ark", folder / "feats.scp", ((f"u{n:07d}", x) for n in range(count)))
        lines = {
            "text": "".join(f"u{n:07d} one two {n % 10}\n" for n in range(count)),
            "utt2spk": "".join(f"u{n:07d} s{n % 100}\n" for n in range(count)),
        }
        for name, text in lines.items():
            (folder / name).write_text(text)
        before, began = own_peak(), time.process_time()
        faults = datadir.validate(folder)
        assert len(speech.read(folder).items) == count and not faults, faults
        return {"seconds": time.process_time() - began, "megabytes": own_peak(), "before": before}


def memory(name: str) -> dict:
    """Peak of a pass over many hours beside that over one."""
    found = [apart("memory", name, hours) for hours in HOURS]
    one, many = (each["megabytes"] for each in found)
    times = HOURS[1] / HOURS[0]
    return entry(f"{name.upper()} over {HOURS[1]} hours", found[1]["seconds"], f"{times:g} times one hour",
                 found[0]["seconds"] * times, megabytes=many, megabytes_of_an_hour=one, growth_of_memory=many / one)


def measure_memory(name: str, hours: float) -> dict:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "data"
        apart("corpus", folder, hours)
        seconds = train_pass(name, folder)
        return {"seconds": seconds, "megabytes": own_peak()}


def workers() -> list[dict]:
    """One and two workers, processes and Dask, on a pass of ML over an hour; and what the simulation says of them."""
    with tempfile.TemporaryDirectory() as place:
        folder = corpus(Path(place) / "data", MINUTES / 60)
        facts = apart("chunks", folder)
        taken = {f"{kind} {jobs}": apart("jobs", kind, jobs, folder)["seconds"]
                 for kind in ("nj", "dask") for jobs in (1, 2)}  # fmt: skip
    guess = {1: simulate(facts["chunk"], 1, 0.0, facts["reduce"]),  # without a process, nothing is sent
             2: simulate(facts["chunk"], 2, facts["send"], facts["reduce"])}  # fmt: skip
    wide = facts["bytes"] / NETWORK
    name = f"ML over {MINUTES} minutes, {MIXTURES} mixtures"
    found = [entry(f"{name}, {kind} 2", taken[f"{kind} 2"], f"{kind} 1", taken[f"{kind} 1"]) for kind in ("nj", "dask")]
    for jobs in (1, 2):
        found.append(entry(f"simulation of nj {jobs}", guess[jobs], f"measured, nj {jobs}", taken[f"nj {jobs}"]))
    more = simulate_all(facts, 100, wide)
    speed_up = {jobs: round(more[1] / more[jobs], 1) for jobs in WORKERS}
    return [*found, entry("simulation, 100 hours of ML on 256 workers at 1 Gbit/s", more[256], "1 worker", more[1],
                          speed_up=speed_up, facts=facts)]  # fmt: skip


def measure_chunks(folder: str) -> dict:
    """Seconds of each chunk of a pass, of sending a result through a pipe, of adding one; bytes of a result."""
    import pickle
    from multiprocessing import Pipe
    from threading import Thread

    from margo.tasks import speech

    data, criterion, hmms = speech.read(folder), criterion_of("ml"), model(MIXTURES)
    work = partial(speech.on_chunk, partial(criterion.accumulate, criterion.begin(hmms)), hmms)
    work((data.chunks[0],))
    chunk, stats = [], []
    for each in data.chunks:
        began = time.perf_counter()
        stats.append(work((each,)))
        chunk.append(time.perf_counter() - began)
    near, far = Pipe()
    began = time.perf_counter()
    sender = Thread(target=lambda: [near.send((each, None)) for each in stats])
    sender.start()
    for _ in stats:
        far.recv()
    send = (time.perf_counter() - began) / len(stats)
    sender.join()
    began, whole = time.perf_counter(), stats[0]
    for each in stats[1:]:
        whole = whole + each
    reduce = (time.perf_counter() - began) / max(len(stats) - 1, 1)
    return {"chunk": chunk, "send": send, "reduce": reduce, "bytes": len(pickle.dumps(stats[0]))}


def measure_jobs(kind: str, jobs: int, folder: str) -> dict:
    """The pass on so many workers that are there already: the best of five, since it takes but seconds."""
    from margo.runtime.parallel import place

    def run(where):
        train_pass("ml", Path(folder), where, MIXTURES)  # workers start, code is compiled
        return min(train_pass("ml", Path(folder), where, MIXTURES) for _ in range(5))

    if kind == "nj":
        with place(jobs) as where:
            return {"seconds": run(where)}
    from distributed import LocalCluster

    with (
        LocalCluster(n_workers=jobs, threads_per_worker=1, dashboard_address=None) as cluster,
        place(cluster=cluster.scheduler_address, say=lambda words: None) as where,
    ):
        return {"seconds": run(where)}


def simulate(chunks: list[float], workers: int, send: float, reduce: float) -> float:
    """Seconds until all ``chunks`` (seconds of work each) are summed by one parent.

    Workers take the next chunk when they are idle; a result is on its way ``send`` seconds, during which the parent
    does nothing else; results are added in the order of the chunks, ``reduce`` seconds each; at most four chunks a
    worker are ahead of what was added (:mod:`margo.runtime.parallel`).
    """
    idle, parent, done, added, given = [0.0] * workers, 0.0, {}, 0, 0
    at_work: list[tuple[float, int]] = []
    while added < len(chunks):
        while idle and given < len(chunks) and given < added + 4 * workers:
            began = max(heapq.heappop(idle), parent)
            heapq.heappush(at_work, (began + chunks[given], given))
            given += 1
        if at_work:
            finished, number = heapq.heappop(at_work)
            parent = max(parent, finished) + send
            done[number] = parent
            heapq.heappush(idle, parent)
        while added in done:
            parent += reduce
            added += 1
    return parent


def simulate_all(facts: dict, hours: float, send: float) -> dict[int, float]:
    """The same pass over so many hours, a result ``send`` seconds on the network, for each number of workers."""
    chunks = facts["chunk"] * round(hours * 60 / MINUTES)
    return {jobs: simulate(chunks, jobs, send, facts["reduce"]) for jobs in WORKERS}


def million() -> dict:
    found = apart("pairs", PAIRS)
    return entry(f"LME, {PAIRS} soft pairs, gap 1e-3", found["seconds"], megabytes=found["megabytes"],
                 entries=found["entries"], gap=found["gap"])  # fmt: skip


def measure_pairs(count: int) -> dict:
    """A program of so many pairs as a corpus's pass leaves it: drawn ones, again and again with others' lengths."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
    from lme_instances import draw_many
    from margo.estimate.lme import solve
    from margo.estimate.lme.tokens import Pairs, make_problem
    from margo.formats.scratch import Scratch

    base = draw_many(np.random.default_rng(7), min(count, 5000), DIMENSION, 1.0, None, words=11)
    rng = np.random.default_rng(8)
    start = np.concatenate([[0], np.cumsum(np.bincount(base.pair, minlength=base.n_pairs))])
    with tempfile.TemporaryDirectory() as place:
        pairs = Pairs.none(DIMENSION, Scratch(place).rows)
        for _ in range(count // base.n_pairs):
            scale = rng.uniform(0.5, 1.5, base.n_pairs)
            of_entry = np.repeat(scale, np.diff(start))
            pairs += Pairs(
                base.margins * scale + rng.normal(0, 20, base.n_pairs), np.arange(base.n_pairs),
                np.full(base.n_pairs, 48), start, base.gaussian.astype(np.int32), base.counts * of_entry,
                (base.gradients * of_entry[:, None]).astype(np.float32),
            )  # fmt: skip
        began = time.process_time()
        number = base.n_gaussians
        solution = solve(make_problem(pairs.settled(), number, 0.1 * number, 0.3), "auto", 1e-3)
        return {"seconds": time.process_time() - began, "megabytes": own_peak(),
                "entries": int(pairs.entry_start[-1]), "gap": solution.gap, "notes": solution.notes}  # fmt: skip


def growth() -> list[dict]:
    """Exponents of seconds over two decades of size: 1 is linear."""
    measured = {
        "reading utterances": {n: apart("reading", n)["seconds"] for n in (1_000, 10_000, 100_000)},
        "LME, pairs": {n: apart("pairs", n)["seconds"] for n in (5_000, 50_000, 500_000)},
        "ML, minutes": {n: apart("memory", "ml", n / 60)["seconds"] for n in (6, 60, 600)},
    }
    found = []
    for name, seconds in measured.items():
        sizes = list(seconds)
        slope = float(np.polyfit(np.log(sizes), np.log(list(seconds.values())), 1)[0])
        found.append(entry(f"growth: {name}, {sizes[0]:g} to {sizes[-1]:g}", seconds[sizes[-1]],
                           exponent=round(slope, 3), by_size=seconds))  # fmt: skip
    return found


def run(name: str, *arguments: str) -> dict:
    if name == "corpus":
        corpus(Path(arguments[0]), float(arguments[1]))
        return {}
    measures = {
        "reading": lambda count: measure_reading(int(count)),
        "memory": lambda criterion, hours: measure_memory(criterion, float(hours)),
        "chunks": measure_chunks,
        "jobs": lambda kind, jobs, folder: measure_jobs(kind, int(jobs), folder),
        "pairs": lambda count: measure_pairs(int(count)),
    }
    return measures[name](*arguments)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(run(*sys.argv[1:])))
    else:
        for each in entries():
            print(json.dumps(each), flush=True)

"""The main program of every step: options from a dataclass, step.log, step.json, exit codes, one-line errors.

A step is a file in ``steps/`` with an ``Options`` dataclass and ``run(options, step)``; see :func:`main`. Exit codes:
0 done, 1 failed (one clear line; the traceback is in ``step.log``), 2 wrong command line, 130 interrupted.
"""

import dataclasses
import inspect
import os
import signal
import sys
import time
import traceback
from contextlib import contextmanager, suppress
from pathlib import Path

from margo.errors import MargoError
from margo.formats.atomic import SUFFIX, open_own
from margo.formats.systems import HOME, models_in, read_systems
from margo.knobs import Knobs, knob
from margo.runtime import lock, record
from margo.runtime.options import RUNNING, parse

EXTRAS = {"classify": "sklearn optuna h5py", "solvers": "cvxpy clarabel scs", "mosek": "mosek", "sphere": "av",
          "cluster": "distributed dask_jobqueue threadpoolctl", "corpora": "espeakng_loader", "pandas": "pandas",
          "elan": "pympi", "augment": "librosa", "lhotse": "lhotse", "serve": "starlette uvicorn",
          "live": "sounddevice", "geotiff": "tifffile"}  # fmt: skip
WANTED = {  # the file that a folder of such a step must have, whoever made it
    "make_mfcc": "feats.scp", "train_ml": "model.npz", "train_gmm": "model.npz", "nbest": "nbest.jsonl",
    "decode": "hyp", "align": "ali.ctm",
}  # fmt: skip
BARE = ("model.npz", "hyp")  # those that will do without their folder

ABSENT, EMPTY = "no such folder", "an empty folder"
BESIDE = "../score.json"  # the one file that is written beside its folder, score

__all__ = ["Knobs", "Parallel", "Seeded", "Step", "Trainer", "knob", "main"]


@dataclasses.dataclass(frozen=True)
class Parallel(Knobs):
    """Options of steps that work through a corpus in chunks; none of them changes the result."""

    GROUP = RUNNING
    nj: int = knob(1, "local processes to use", least=1)
    cluster: str = knob("", "Dask scheduler (tcp://host:port), slurm, or a TOML file with [cluster] (docs/scale.md)")
    cluster_timeout: float = knob(600.0, "how long to wait for workers of a cluster that has none", unit="seconds",
                                  above=0, needs={"cluster": True})  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Seeded(Knobs):
    """Option of steps that draw random numbers."""

    GROUP = RUNNING
    seed: int = knob(0, "seed of everything random", least=0)


@dataclasses.dataclass(frozen=True)
class Trainer(Knobs):
    """Option of steps that train in epochs (:mod:`margo.runtime.epochs`) and so refuse to undo other work."""

    GROUP = RUNNING
    overwrite: bool = knob(False, "start anew where --out holds a model made with other settings")


def _in_a_run(folder: Path) -> bool:
    """Whether ``folder`` is, or should be, in the folder of a recipe's run, all of which begin with ``data``."""
    return any((above / "data" / "step.log").is_file() for above in folder.parents[:3])


def _advice(folder: Path, made_by: str, lacks: str) -> str:
    """What to run, for ``folder`` to be what it is not: in a recipe's run a stage, elsewhere the step itself."""
    ours, maker = _in_a_run(folder), record.maker(folder)  # the latter knows better than what made such a folder once
    maker = made_by if not maker or ours and made_by == "data" else maker
    stage = read_systems().stage_of(folder.parent if folder.is_file() else folder, maker)
    when = "first" if lacks and (stage is not None or maker == made_by) else "again"
    if stage is None:
        return f"run {maker} {when}"
    staged = f"run stage {stage} {when} (--stage {stage})"
    if ours:
        return staged
    own = f"give a folder with {WANTED.get(made_by) or 'data'}" if lacks in (ABSENT, EMPTY) else f"run {maker} {when}"
    return f"{own}, or in a recipe {staged}"


class Step:
    """One run of a step: where it writes, what it reads, what it says."""

    def __init__(self, name: str, options, argv: list[str]):
        self.name, self.options, self.argv = name, options, argv
        self.out: Path | None = getattr(options, "out", None)
        self.inputs: dict[str, str] = {}
        self.outputs: list[str] = []
        self.extra: dict = {}
        self._started = time.perf_counter()
        self._log = self._lock = None

    def say(self, text: str) -> None:
        """Tell the user, on standard error and in ``step.log``."""
        print(text, file=sys.stderr, flush=True)
        self.log(text)

    def log(self, text: str) -> None:
        """Tell ``step.log`` only."""
        if self._log:
            stamp = time.strftime("%Y-%m-%d %H:%M:%S")
            self._log.write("".join(f"{stamp} {line}\n" for line in text.rstrip().splitlines()))
            self._log.flush()

    def log_failure(self) -> None:
        """Tell ``step.log`` where the error at hand was raised, unless that is what there is no room for."""
        with suppress(OSError):
            self.log(traceback.format_exc())

    def progress(self, items, total: int | None = None, what: str = ""):
        """Iterate over ``items`` with a bar on a terminal, or a plain line every ten seconds elsewhere."""
        total = len(items) if total is None and hasattr(items, "__len__") else total
        if sys.stderr.isatty():
            from tqdm import tqdm

            yield from tqdm(items, total=total, desc=what, leave=False)
            return
        said = time.perf_counter()
        for count, item in enumerate(items, 1):
            yield item
            if time.perf_counter() - said > 10:
                said = time.perf_counter()
                self.say(f"{what}: {count}" + (f" of {total}" if total else ""))

    def input(self, folder, made_by: str, current: bool = True) -> Path:
        """``folder``, or a bare file instead, once it is sure that it may be read.

        That is, the step ``made_by`` (or another trainer) ended well there and nothing has changed since, nor (where it
        must be ``current``) what that step read; or no step of ours made it, and it has the file which is wanted.
        """
        folder, wanted = Path(folder), WANTED.get(made_by, "")
        if whose := record.busy(folder, self.out):
            raise MargoError(f"{folder}: {whose} is at work there: wait for it")
        lacks = record.unfinished(folder)
        if not folder.exists():
            lacks = ABSENT
        elif folder.is_file() and wanted not in BARE:
            lacks = "a file, expected a folder"
        elif folder.is_dir() and wanted and not (folder / wanted).is_file():
            lacks = lacks or f"no file {wanted}"
        elif folder.is_dir() and not any(folder.iterdir()):
            lacks = lacks or EMPTY
        inside = sorted(path.parent.name for path in folder.glob(f"*/{wanted}")) if lacks == f"no file {wanted}" else []
        if inside:  # the folder above was named: no stage is wanting
            raise MargoError(f"{folder}: {lacks}; there is one in each of its folders {' '.join(inside)}")
        made = record.owner_of(folder) if lacks == f"no file {wanted}" else None
        if made and not any(Path(each).name == wanted for each in record.of(made).get("outputs", ())):
            maker = record.maker(folder)
            raise MargoError(f"{folder}: {lacks}; expected a folder of {made_by}, this is one of {maker}")
        changed = "" if lacks else record.altered(folder, current)
        if lacks or changed:
            fault = f"is not complete ({lacks}): " if lacks else f"{changed}, or "
            others = [] if folder.exists() or not made_by.startswith("train") else models_in(folder.parent)
            there = f"; models there: {' '.join(others)}" * bool(others)
            raise MargoError(f"{folder} {fault}{_advice(folder, made_by, lacks)}{there}")
        return self.remember(folder)

    def input_file(self, path) -> Path:
        """``path``, a file that may be anybody's: a configuration, a list, a table."""
        path = Path(path)
        if not path.is_file():
            raise MargoError(f"{path}: no such file")
        if fault := record.unfinished(path) or record.altered(path):
            raise MargoError(f"{path}: {fault}")
        return self.remember(path)

    def remember(self, path: Path) -> Path:
        """Keep a digest of what is read, so that a resumed run can tell that its inputs are still the same."""
        place = os.path.abspath(path)
        if record.owner_of(path) is None:
            self.extra.setdefault("seen", {})[place] = record.stamp(path)
        self.inputs[place] = record.content(path)
        return path

    def output(self, name: str) -> Path:
        """Place of the output file ``name`` in the step's own folder; it is recorded as this step's."""
        if name != BESIDE and (Path(name).is_absolute() or ".." in Path(name).parts):
            raise MargoError(f"{name}: leads out of {self.out}, where nothing is written")
        if name not in self.outputs:
            self.outputs.append(name)
        path = self.out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def place(self):
        """Where chunks are worked on, from ``--nj`` and ``--cluster``; use as a context manager."""
        from margo.runtime.parallel import place

        return place(self.options.nj, self.options.cluster, self.say, self.options.cluster_timeout)

    def begin(self) -> None:
        if self.out is None:
            return
        if self.out.exists() and not self.out.is_dir():
            raise MargoError(f"{self.out}: is a file, expected a folder to write")
        other = (record.read(self.out) or {}).get("step", self.name)
        if other != self.name:
            raise MargoError(f"{self.out}: holds what {other} made; give another --out")
        self.out.mkdir(parents=True, exist_ok=True)
        self._lock = lock.take(self.out, self.name, self.argv)
        self.remove_leftovers()
        # A folder whose contents are about to change is not complete until step.json is written again. Trainers first
        # ask whether they may (margo.runtime.epochs).
        if not isinstance(self.options, Trainer):
            record.forget(self.out)
        self._log = open_own(self.out / "step.log")
        self.log(f"{self.name} {' '.join(self.argv)}")

    def remove_leftovers(self) -> None:
        """Remove what an earlier run here was writing when it was killed; folders of other steps are left alone."""
        for folder, inner, names in os.walk(self.out):
            others = [each for each in inner if {record.NAME, lock.NAME} & {*os.listdir(Path(folder, each))}]
            inner[:] = [each for each in inner if each not in others]
            for name in names:
                if name.startswith(".") and name.endswith(SUFFIX):
                    Path(folder, name).unlink()

    def finish(self) -> None:
        """Write the record, unless what was read is not what it was at the beginning: who knows what was read then. A
        folder that the step writes into changes by that."""
        if self.out is not None:
            here = Path(os.path.abspath(self.out))
            held = {"folder": str(here), "seen": self.extra.get("seen", {})}
            foreign = {place: hashed for place, hashed in self.inputs.items() if not here.is_relative_to(place)}
            changed = [place for place, hashed in foreign.items() if not record.fresh(place, hashed, held, here)]
            if changed:
                raise MargoError(f"{', '.join(changed)} changed while {self.name} read it: run the same command again")
            seconds = time.perf_counter() - self._started
            record.write(self.out, self.name, self.argv, self.options, self.inputs, self.outputs, seconds, self.extra)
            self.log(f"done in {seconds:.1f} s")
            self.release()

    def release(self) -> None:
        """Leave the folder to others, where it is complete."""
        if self._lock and record.of(self.out):
            lock.release(self.out, self._lock)
            self._lock = None


@contextmanager
def interruptible(step: Step):
    """Let Ctrl-C end the process there and then.

    An exception would wait for chunks under way, and be lost where it meets a callback of the compiler. Files are whole
    or absent at any instant, so there is nothing to put in order first.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:  # as under nohup: not to be interrupted
        yield
        return
    here = os.getpid()

    def end(number, frame):
        if os.getpid() == here:  # and not a worker just forked
            os.write(2, f"{step.name}: interrupted\n".encode())
            with suppress(RuntimeError, OSError):  # a stream that is just being written to, a full disk
                step.log("interrupted")
            with suppress(RuntimeError, OSError):
                sys.stdout.flush()
            if "multiprocessing" in sys.modules:
                for worker in sys.modules["multiprocessing"].active_children():
                    worker.kill()
        os._exit(130)

    signal.signal(signal.SIGINT, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def needed(error: ModuleNotFoundError) -> str:
    """What to install where a package of an extra is not there."""
    module = (error.name or "").partition(".")[0]
    extra = next((extra for extra, modules in EXTRAS.items() if module in modules.split()), None)
    return f"needs {module}: pip install 'margo-speech[{extra}]'" if extra else f"internal error: {error}"


def programs(script: Path) -> dict[str, Path]:
    """Files of all steps, of the local programs and of what stands beside ``script``, by name."""
    folders = (HOME / "local", HOME / "steps", script.parent)
    return {path.stem: path for folder in folders for path in folder.glob("*.py")}


def main(description: str, options_class, run) -> None:
    """Parse the command line into ``options_class``, call ``run(options, step)``, and exit.

    Every step also takes ``--conf FILE``, a TOML file whose table of the step's name (``[train_ml]``) sets options;
    the command line wins over it. Its other tables are for other steps, and are checked against them.
    """
    name, argv = Path(sys.argv[0]).stem, sys.argv[1:]
    options = parse(name, description, options_class, argv, programs(Path(inspect.getfile(options_class))))
    step = Step(name, options, argv)
    if getattr(sys.stdout, "errors", "") == "strict":  # what the terminal has no letters for is shown as numbers
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        with interruptible(step):
            step.begin()
            run(options, step)
            step.finish()
    except MargoError as error:
        step.log_failure()
        step.release()  # a refusal to touch what is there
        sys.exit(f"{name}: {error}")
    except ModuleNotFoundError as error:
        step.log_failure()
        sys.exit(f"{name}: {needed(error)}")
    except KeyboardInterrupt:
        with suppress(OSError):
            step.log("interrupted")
        print(f"{name}: interrupted", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:  # the reader of our output went away, as in `show.py ... | head`
        sys.stderr.close()
        sys.exit(1)
    except OSError as error:  # a folder that may not be written, a full disk
        step.log_failure()
        where = step.out if error.filename is None else error.filename
        sys.exit(f"{name}: {where}: {error.strerror or error}")
    except Exception as error:
        step.log_failure()
        details = f"details in {step.out / 'step.log'}" if step._log else traceback.format_exc()
        sys.exit(f"{name}: internal error: {type(error).__name__}: {error} ({details})")

"""Workers of a Dask cluster: a running scheduler's, or jobs of Slurm.

Dask sends pickles: whoever reaches a scheduler's port can run code there and on its workers. TLS (``[cluster]`` in a
TOML file) lets in only those that have a certificate; without it the user is told.
"""

import os
import re
import shutil
import socket
import threading
import time
from collections import deque
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from margo.errors import MargoError, refuse
from margo.formats.reading import read_toml
from margo.knobs import Knobs, knob
from margo.runtime.options import read_table

TICK = 1.0  # seconds between looks at the workers
TOLD = 10.0  # seconds between lines that say what is waited for
AHEAD = 4  # chunks a worker that are under way or wait to be taken
PACKAGES = ("margo-speech", "numba", "scipy", "numpy", "python")  # sums depend on them
BUSY = threading.Lock()  # a worker does one chunk at a time, however many threads it was given


@dataclass(frozen=True)
class ClusterOptions(Knobs):
    """The table ``[cluster]`` of the file that ``--cluster`` names."""

    address: str = knob("slurm", "of a running scheduler, tls://host:port or tcp://host:port; or slurm")
    workers: int = knob(16, "most jobs of Slurm at a time", least=1)
    cores: int = knob(1, "of a job, which has so many workers", least=1)
    memory: str = knob("4GB", "of a job")
    queue: str = knob("", "Slurm's partition")
    account: str = knob("", "that the jobs are charged to")
    walltime: str = knob("", "longest time of a job, as 08:00:00")
    interface: str = knob("", "network interface that workers reach this machine by, as ib0")
    tls_ca: Path | None = knob(None, "certificate of who signs the others", needs={"tls_cert": True, "tls_key": True})
    tls_cert: Path | None = knob(None, "certificate of this side", needs={"tls_ca": True, "tls_key": True})
    tls_key: Path | None = knob(None, "its key", needs={"tls_ca": True, "tls_cert": True})

    def faults(self) -> list[str]:
        """In words of the file."""
        faults = [fault.replace("--", "") for fault in super().faults()]
        forms = {
            "address": (r"slurm|(tcp|tls)://[^\s/]+:\d+", "slurm, tcp://host:port or tls://host:port"),
            "memory": (r"\d+(\.\d+)? ?[kMGT]i?B", "a size as 4GB"),
            "walltime": (r"(\d+-)?\d\d?:\d\d:\d\d|", "a time as 08:00:00"),
            "queue": (r"[\w.,-]*", "a name"),
            "account": (r"[\w.-]*", "a name"),
            "interface": (r"[\w.:-]*", "a name"),
        }
        faults += [f"{name} is {getattr(self, name)}, expected {expected}" for name, (form, expected) in forms.items()
                   if not re.fullmatch(form, getattr(self, name))]  # fmt: skip
        given = [path for path in (self.tls_ca, self.tls_cert, self.tls_key) if path]
        if len(given) in (1, 2):
            faults.append("tls_ca, tls_cert and tls_key are needed together")
        if self.address.startswith("tls://") and not given:
            faults.append(f"address is {self.address}, which needs tls_ca, tls_cert and tls_key")
        if self.address.startswith("tcp://") and given:
            faults.append(f"address is {self.address}, expected tls:// with certificates")
        return faults + [f"{path}: no such file" for path in given if not path.is_file()]


def options_of(cluster: str) -> ClusterOptions:
    """From ``--cluster``: an address, slurm, or a TOML file."""
    try:
        if not cluster.endswith(".toml"):
            return ClusterOptions(address=cluster)
        tables = read_toml(cluster, {"cluster": dict})
        values, faults = read_table(Path(cluster), "cluster", tables["cluster"], ClusterOptions)
        faults += [f"{cluster}: [{name}] is not [cluster]" for name in tables if name != "cluster"]
        refuse(faults, "--cluster")
        return ClusterOptions(**values)
    except ValueError as error:
        more = "" if cluster.endswith(".toml") else ", or a TOML file"
        raise MargoError(f"--cluster {cluster}: {error}{more}") from None


def on_worker(function, chunk):
    """``function(chunk)`` on one thread of a worker; what is wrong there is told with the name of its machine."""
    from threadpoolctl import threadpool_limits

    with BUSY, threadpool_limits(1):
        try:
            return function(chunk)
        except FileNotFoundError as error:
            raise MargoError(f"on {socket.gethostname()}: {error.filename}: no such file") from None
        except MargoError as error:
            raise MargoError(f"on {socket.gethostname()}: {error}") from None


class Dask:
    """A place to work on chunks (:mod:`margo.runtime.parallel`), which must have workers again within ``timeout``."""

    def __init__(self, cluster: str, timeout: float, say):
        options = options_of(cluster)
        self.name, self.timeout, self.say, self.known = f"--cluster {cluster}", timeout, say, set()
        try:
            from distributed import Client, Security
        except ImportError:
            raise MargoError("--cluster needs Dask: pip install 'margo-speech[cluster]'") from None
        security = None
        if options.tls_ca:
            files = {f"tls_{side}_{what}": str(getattr(options, f"tls_{what}"))
                     for side in ("client", "scheduler", "worker") for what in ("cert", "key")}  # fmt: skip
            security = Security(tls_ca_file=str(options.tls_ca), require_encryption=True, **files)
        else:
            say(f"{self.name}: not encrypted: whoever reaches its port can run code as its owner; "
                "tls_ca, tls_cert and tls_key in a TOML file keep others out")  # fmt: skip
        self.jobs = slurm(options, self.name, security) if options.address == "slurm" else None
        try:
            self.client = Client(self.jobs or options.address, timeout=min(timeout, 10), security=security)
        except (OSError, ValueError) as error:
            raise MargoError(f"{self.name}: no scheduler answers ({error})") from None
        try:
            self.wait_for_workers()
        except BaseException:
            self.close()
            raise

    def workers(self) -> dict:
        """What the scheduler knows of its workers, by address; none where it is gone."""
        try:
            return self.client.sync(self.client.scheduler.identity, callback_timeout=10)["workers"]
        except Exception:  # it does not answer, or not any more
            return {}

    def wait_for_workers(self) -> None:
        """Wait until there is a worker, with progress; check those that are new."""
        began, told = time.monotonic(), float("-inf")
        while not (workers := self.workers()):
            now = time.monotonic()
            if refused := getattr(self.jobs, "refused", ""):
                raise MargoError(f"{self.name}: Slurm does not take the job: {refused}")
            if now - began >= self.timeout:
                gone = "all its workers are gone" if self.known else "it has no workers"
                raise MargoError(f"{self.name}: {gone}, after {self.timeout:g} s (--cluster-timeout): start some, or "
                                 "use --nj, and run the same command again; what is finished is kept")  # fmt: skip
            if now - told >= min(TOLD, self.timeout / 3):
                told = now
                self.say(f"{self.name}: waiting for workers, {now - began:.0f} of {self.timeout:g} s")
            time.sleep(min(TICK, self.timeout / 10))
        if new := workers.keys() - self.known:
            self.known |= new
            self.check_versions(workers, new)

    def check_versions(self, workers: dict, new: set) -> None:
        """Refuse workers whose packages are not ours: results would depend on who made them."""
        try:
            found = self.client.get_versions(packages=PACKAGES[:3])
        except Exception as error:  # a worker that went away meanwhile
            self.say(f"{self.name}: versions of the workers are not known ({error})")
            return
        ours, faults = dict(found["client"]["packages"]), []
        for address in sorted(new & found["workers"].keys()):
            theirs = dict((found["workers"][address] or {}).get("packages", {}))
            differing = [f"{name} {theirs.get(name) or 'missing'}, here {ours[name]}" for name in PACKAGES
                         if theirs.get(name) != ours[name]]  # fmt: skip
            if differing:
                faults.append(f"the worker {address} has {', '.join(differing)}")
        refuse(faults, self.name, 5)
        threads = {address: workers[address].get("nthreads", 1) for address in new if address in workers}
        if many := [address for address, number in sorted(threads.items()) if number > 1]:
            self.say(f"{self.name}: of the {threads[many[0]]} threads of {many[0]} one is used: start workers with "
                     "--nthreads 1, and as many as there are cores")  # fmt: skip

    def map(self, function, chunks):
        waiting, futures, more = iter(chunks), deque(), True
        submit = partial(self.client.submit, on_worker, function, pure=False)
        try:
            while True:
                while more and len(futures) < AHEAD * max(len(self.known), 1):
                    try:
                        futures.append(submit(next(waiting)))
                    except StopIteration:
                        more = False
                if not futures:
                    return
                yield self.result(futures[0])
                futures.popleft()
        finally:
            for future in futures:
                future.cancel()

    def result(self, future):
        """Of a chunk, once it is there; workers may die and others come meanwhile."""
        from concurrent.futures import CancelledError

        from distributed import KilledWorker, TimeoutError

        while True:
            try:
                return future.result(timeout=TICK)
            except TimeoutError:
                if future.status == "error":  # it is the chunk's own
                    raise
                self.wait_for_workers()
            except KilledWorker as error:
                raise MargoError(f"{self.name}: {error.allowed_failures + 1} workers died on one chunk, as when memory "
                                 "runs out: run the same command again with more memory; what is finished is kept"
                                 ) from None  # fmt: skip
            except CancelledError:
                raise MargoError(f"{self.name}: the scheduler is gone: start it again and run the same command again; "
                                 "what is finished is kept") from None  # fmt: skip

    def close(self):
        self.client.close()
        if self.jobs is not None:
            self.jobs.close()


def slurm(options: ClusterOptions, name: str, security):
    """Workers as jobs of Slurm, as many as there is work for."""
    if shutil.which("sbatch") is None:
        raise MargoError(f"{name}: no sbatch on {socket.gethostname()}: run this where jobs of Slurm are submitted, or "
                         "use --nj")  # fmt: skip
    try:
        from dask_jobqueue.slurm import SLURMCluster, SLURMJob
    except ImportError:
        raise MargoError(f"{name} needs dask-jobqueue: pip install 'margo-speech[cluster]'") from None
    from distributed import Status

    class Jobs(SLURMCluster):
        refused = ""  # what sbatch said of the last job that it did not take

        class job_cls(SLURMJob):
            async def start(self):
                try:
                    await super().start()
                except RuntimeError as error:  # Dask alone would print it again and again, and fail to close
                    self.status = Status.running  # as Dask expects of all; its workers never come
                    Jobs.refused = " ".join(str(error).rpartition("stderr:")[2].split())

    given = {key: getattr(options, key) for key in ("queue", "account", "walltime", "interface")}
    cluster = Jobs(cores=options.cores, processes=options.cores, memory=options.memory, security=security,
                   local_directory=os.environ.get("TMPDIR"), protocol="tls://" if security else None,
                   **{key: value for key, value in given.items() if value})  # fmt: skip
    cluster.adapt(minimum_jobs=1, maximum_jobs=options.workers)
    return cluster

"""One map over chunks of a corpus, here, in local processes, or on a Dask cluster.

Chunks are fixed by the data and results come back in chunk order, so what is made of them is the same wherever they
were worked on. A worker that dies costs another try of its chunk. ``function`` must be importable (a module's
function, or a ``functools.partial`` of one).
"""

import multiprocessing
import signal
import sys
from collections import deque
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice

from margo.errors import MargoError

TRIES = 3  # of one chunk, when workers die under it


def begin_worker() -> None:
    """Leave Ctrl-C, which reaches the whole group, to the parent; and ask Linux to kill this worker when its parent is
    killed: orphans would hold memory and open files."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # 1 is PR_SET_PDEATHSIG


def succeeded(future) -> bool:
    return future.done() and not future.cancelled() and future.exception() is None


class Processes:
    """``count`` local processes."""

    def __init__(self, count: int, say):
        self.count, self.say, self.pool = count, say, None
        # Forked workers share what is already imported; the parent runs no threads of its own.
        self.context = multiprocessing.get_context("fork")

    def open(self):
        if self.pool is None:
            self.pool = ProcessPoolExecutor(self.count, mp_context=self.context, initializer=begin_worker)
        return self.pool

    def close(self):
        if self.pool is not None:
            self.pool.shutdown(cancel_futures=True)
            self.pool = None

    def map(self, function, chunks):
        def submit(index, chunk, tries=1):
            try:
                return index, chunk, tries, self.open().submit(function, chunk)
            except BrokenProcessPool:  # a worker died while idle
                self.close()
                return index, chunk, tries, self.open().submit(function, chunk)

        waiting = enumerate(chunks)
        ahead = deque(submit(*each) for each in islice(waiting, 4 * self.count))  # bounded: results do not pile up
        while ahead:
            index, chunk, tries, future = ahead[0]
            try:
                result = future.result()
            except BrokenProcessPool:
                if tries == TRIES:
                    raise MargoError(f"a worker died {TRIES} times on chunk {index}: out of memory?") from None
                self.say(f"a worker died; trying chunk {index} again")
                self.close()
                ahead[0] = (index, chunk, tries + 1, future)
                ahead = deque(each if succeeded(each[3]) else submit(*each[:3]) for each in ahead)
                continue
            ahead.popleft()
            ahead.extend(submit(*each) for each in islice(waiting, 1))
            yield result


class Dask:
    """Workers of a Dask cluster: ``tcp://host:port`` of a running scheduler, or ``slurm``."""

    def __init__(self, address: str):
        try:
            from distributed import Client
        except ImportError:
            raise MargoError("--cluster needs Dask: pip install 'margo-speech[cluster]'") from None
        if address == "slurm":
            from dask_jobqueue import SLURMCluster

            cluster = SLURMCluster(cores=1, processes=1, memory="4GB")
            cluster.adapt(minimum=1, maximum=64)
            self.client = Client(cluster)
        else:
            try:
                self.client = Client(address, timeout=10)
            except (OSError, ValueError) as error:
                raise MargoError(f"--cluster {address}: no scheduler answers ({error})") from None

    def map(self, function, chunks):
        futures = deque(self.client.submit(function, chunk, pure=False, retries=TRIES - 1) for chunk in chunks)
        while futures:
            yield futures.popleft().result()

    def close(self):
        self.client.close()


@contextmanager
def place(nj: int = 1, cluster: str = "", say=print):
    """Where chunks are worked on, None for this process; closed at the end."""
    if nj < 1:
        raise MargoError(f"--nj is {nj}, expected 1 or more")
    if not cluster and nj == 1:
        yield None
        return
    where = Dask(cluster) if cluster else Processes(nj, say)
    try:
        yield where
    finally:
        where.close()


def map_chunks(function, chunks, where=None):
    """Results of ``function(chunk)``, in chunk order."""
    return where.map(function, chunks) if where else map(function, chunks)

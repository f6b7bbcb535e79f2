"""One map over chunks of a corpus, here, in local processes, or on a Dask cluster.

Chunks are fixed by the data and results come back in chunk order, so what is made of them is the same wherever they
were worked on. A worker that dies costs another try of its chunk. ``function`` must be importable (a module's
function, or a ``functools.partial`` of one).
"""

import multiprocessing
import os
import signal
import sys
import traceback
from collections import deque
from contextlib import contextmanager, suppress
from multiprocessing.connection import wait

from margo.errors import MargoError

TRIES = 3  # of one chunk, when workers die under it
AHEAD = 4  # chunks a worker that may be under way or wait to be taken: results do not pile up


def work(pipe, others, parent: int) -> None:
    """The life of a worker: functions and chunks come through its pipe, results go back; until the pipe is closed.

    Ctrl-C, which reaches the whole group, is left to the parent; Linux is asked to kill this worker when its parent is
    killed: orphans would hold memory and open files.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for other in others:  # of the parent's ends of pipes, which came with the fork
        other.close()
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # 1 is PR_SET_PDEATHSIG
        if os.getppid() != parent:
            return
    function = None
    with suppress(EOFError, ConnectionError):  # the parent has what it wants, or is gone
        while True:
            new, chunk = pipe.recv()
            function = function if new is None else new
            answer(pipe, function, chunk)


def answer(pipe, function, chunk) -> None:
    """Send ``(result, None)`` or ``(None, error)``; an error tells where it was raised."""
    try:
        outcome = function(chunk), None
    except BaseException as error:
        error.add_note(f"in a worker:\n{traceback.format_exc()}")
        outcome = None, error
    try:
        pipe.send(outcome)
    except OSError:  # the parent is gone
        raise
    except Exception:  # what cannot be sent is told in words
        pipe.send((None, RuntimeError(f"{outcome[1] or 'a result'} cannot be sent: {traceback.format_exc()}")))


class Worker:
    """A process and the pipe to it, which no other process has the far end of: whatever kills it closes the pipe, and
    who waits for its answer is told, even in the middle of it."""

    def __init__(self, context, others):
        self.pipe, far = context.Pipe()
        ends = [other.pipe for other in others] + [self.pipe]
        self.process = context.Process(target=work, args=(far, ends, os.getpid()), daemon=True)
        self.process.start()
        far.close()
        self.function = self.task = None

    def give(self, function, task) -> bool:
        """Have it work on ``task = (index, chunk, tries)``; False where it is dead. A function is sent once."""
        try:
            self.pipe.send((None if function is self.function else function, task[1]))
        except (BrokenPipeError, ConnectionResetError):
            return False
        finally:
            self.function, self.task = function, task
        return True

    def take(self):
        """``(result, error)`` of its task, or None where it died before it was whole."""
        try:
            return self.pipe.recv()
        except (EOFError, OSError):
            return None
        except Exception as error:
            return None, RuntimeError(f"a worker's answer cannot be read ({type(error).__name__}: {error})")

    def end(self) -> str:
        """Kill it, if it is not dead already; what it died of, in words."""
        self.pipe.close()
        self.process.join(0.1)  # of one that was killed, the code is about to come
        self.process.kill()
        self.process.join()
        code = self.process.exitcode
        why = ", as the system does when memory runs out" * (code == -signal.SIGKILL)
        return f"killed by signal {-code}{why}" if code < 0 else f"exit code {code}"


class Processes:
    """``count`` local processes, each with a pipe of its own."""

    def __init__(self, count: int, say):
        self.count, self.say, self.workers = count, say, []
        # Forked workers share what is already imported; the parent runs no threads of its own.
        self.context = multiprocessing.get_context("fork")

    @property
    def busy(self) -> list[Worker]:
        return [worker for worker in self.workers if worker.task]

    def close(self):
        for worker in self.workers:
            worker.end()
        self.workers = []

    def map(self, function, chunks):
        if self.busy:
            raise RuntimeError("one map at a time")
        waiting, again, results, begun, following = enumerate(chunks), deque(), {}, 0, 0
        try:
            while True:
                again.extend(self.collect(results, patient=following not in results))
                while len(self.busy) < self.count and (again or begun < following + AHEAD * self.count):
                    task = again.popleft() if again else next(waiting, None)
                    if task is None:
                        break
                    begun += len(task) == 2
                    self.give(function, (*task, 1)[:3])
                if following in results:
                    result, error = results.pop(following)
                    following += 1
                    if error:
                        raise error
                    yield result
                elif not self.busy:
                    return
        finally:
            if self.busy:  # nobody waits for what they do
                self.close()

    def give(self, function, task) -> None:
        """Have an idle worker, or a new one, work on ``task``; those that died while idle are done with."""
        for worker in [worker for worker in self.workers if not worker.task]:
            if worker.give(function, task):
                return
            self.workers.remove(worker)
            worker.end()
        worker = Worker(self.context, self.workers)
        self.workers.append(worker)
        worker.give(function, task)  # if it is dead already, its pipe says so

    def collect(self, results: dict, patient: bool) -> list[tuple]:
        """Put what is done into ``results`` by index, waiting for something if ``patient``; tasks to be tried again."""
        again, pipes = [], {worker.pipe: worker for worker in self.busy}
        for pipe in wait(pipes, None if patient else 0) if pipes else ():
            worker, (index, chunk, tries) = pipes[pipe], pipes[pipe].task
            outcome, worker.task = worker.take(), None
            if outcome is not None:
                results[index] = outcome
                continue
            self.workers.remove(worker)
            why = worker.end()
            if tries == TRIES:
                raise MargoError(f"a worker died {TRIES} times on chunk {index} ({why}): run the same command again "
                                 "with a smaller --nj or more memory; what is finished is kept")  # fmt: skip
            self.say(f"a worker died ({why}); trying chunk {index} again")
            again.append((index, chunk, tries + 1))
        return again


@contextmanager
def place(nj: int = 1, cluster: str = "", say=print, timeout: float = 600.0):
    """Where chunks are worked on, None for this process; closed at the end. ``timeout`` is that of a cluster."""
    if nj < 1:
        raise MargoError(f"--nj is {nj}, expected 1 or more")
    if not cluster and nj == 1:
        yield None
        return
    if cluster:
        from margo.runtime.cluster import Dask
    where = Dask(cluster, timeout, say) if cluster else Processes(nj, say)
    try:
        yield where
    finally:
        where.close()


def map_chunks(function, chunks, where=None):
    """Results of ``function(chunk)``, in chunk order."""
    return where.map(function, chunks) if where else map(function, chunks)

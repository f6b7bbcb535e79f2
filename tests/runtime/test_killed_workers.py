"""The same model to the byte for any number of workers, whether or not some of them are killed meanwhile.

``MARGO_KILL_RUNS=50`` has that many runs with workers that are killed at random; with ``-s`` their kills are told.
"""

import os
import random
import signal
import threading
import time
from contextlib import contextmanager, suppress

import psutil
import pytest

from contests import feature_folders
from margo.tasks import speech
from runs import go

KILL_RUNS = int(os.environ.get("MARGO_KILL_RUNS", "2"))
SHORT = {"ml": {"iterations": 3}, "mce": {"iterations": 3}, "lme": {"epochs": 3}}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return feature_folders(tmp_path_factory.mktemp("folders"))


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(speech, "CHUNK", 8)


@contextmanager
def killer(seed, pids, most=2, least=0.0):
    """Kills one of ``pids()`` at random moments, at most ``most`` of them: fewer than a chunk may cost."""
    ended, killed, draw = threading.Event(), [], random.Random(seed)

    def kill():
        while len(killed) < most and not ended.wait(draw.uniform(least, least + 0.1)):
            if there := [pid for pid in pids() if pid not in killed]:
                with suppress(ProcessLookupError):
                    os.kill(victim := draw.choice(there), signal.SIGKILL)
                    killed.append(victim)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield killed
    finally:
        ended.set()
        thread.join()


def children():
    mine = psutil.Process().children()
    return [process.pid for process in mine if "resource_tracker" not in " ".join(cmdline(process))]


def cmdline(process):
    with suppress(psutil.Error):
        return process.cmdline()
    return ["resource_tracker"]


def model(folders, out, name, **where):
    go(folders, out, name, **SHORT[name], **where)
    return (out / "model.npz").read_bytes()


@pytest.fixture(scope="module")
def alone(folders, tmp_path_factory):
    """Models of one process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(speech, "CHUNK", 8)
        return {name: model(folders, tmp_path_factory.mktemp("alone") / name, name) for name in SHORT}


@pytest.mark.parametrize("name", SHORT)
@pytest.mark.parametrize("jobs", [2, 3])
def test_workers_that_are_killed_do_not_change_a_byte(folders, alone, tmp_path, name, jobs):
    with killer(jobs, children) as killed:
        assert model(folders, tmp_path / "out", name, nj=jobs) == alone[name]
    assert killed, "nothing was killed: this shows nothing"


def test_large_margin_training_neither_hangs_nor_changes_with_random_kills(folders, alone, tmp_path):
    kills = []
    for seed in range(KILL_RUNS):
        began = time.monotonic()
        with killer(100 + seed, children) as killed:
            assert model(folders, tmp_path / str(seed), "lme", nj=2 + seed % 2) == alone["lme"], seed
        assert time.monotonic() - began < 300, seed
        kills.append(len(killed))
    print(f"{KILL_RUNS} runs, {sum(kills)} workers killed, in {sum(map(bool, kills))} of the runs: the same bytes")
    assert sum(kills), "nothing was killed: this shows nothing"


@pytest.mark.parametrize("name", SHORT)
def test_a_worker_of_a_cluster_that_is_killed_does_not_change_a_byte(folders, alone, tmp_path, name, cluster):
    def pids():
        return [worker.pid for worker in cluster.workers.values() if worker.pid]

    with killer(7, pids, most=1, least=0.3) as killed:
        assert model(folders, tmp_path / "out", name, cluster=cluster.scheduler_address) == alone[name]
    assert killed


@pytest.fixture(scope="module")
def cluster():
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as made:
        yield made

"""Clusters: waits that end, workers that are refused or told of, Slurm (a stand-in for sbatch) and TLS."""

import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from functools import partial

import pytest
from distributed import LocalCluster

from margo.errors import MargoError
from margo.runtime import cluster as clusters
from margo.runtime.parallel import map_chunks, place


def square(number):
    return number * number


def slow(number):
    time.sleep(0.2)
    return number * number


def open_nowhere(number):
    with open("/nowhere/feats.ark") as file:
        return file.read()


def die_once(folder, number):
    mark = folder / "died"
    if number == 3 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number


AT_WORK = []


def crowd(number):
    AT_WORK.append(number)
    time.sleep(0.02)
    busy = len(AT_WORK)
    AT_WORK.remove(number)
    return busy


def here(workers, **settings):
    """A scheduler and its workers in threads of this process."""
    settings = {"threads_per_worker": 1, "protocol": "tcp://", **settings}
    return LocalCluster(n_workers=workers, processes=False, dashboard_address=None, **settings)


@pytest.fixture
def local():
    """A scheduler with a worker of four threads, all in this process."""
    with here(1, threads_per_worker=4) as cluster:
        yield cluster.scheduler_address


def on(address, said=None, timeout=20.0):
    return place(cluster=address, say=(said if said is not None else []).append, timeout=timeout)


def test_a_cluster_without_workers_is_waited_for_a_while_and_then_left():
    said, began = [], time.monotonic()
    with (
        here(0) as cluster,
        pytest.raises(MargoError, match="it has no workers, after 1 s .*run the same command again"),
        on(cluster.scheduler_address, said, timeout=1.0),
    ):
        pass
    assert time.monotonic() - began < 15
    assert any("waiting for workers" in line for line in said)


def test_workers_that_are_all_gone_end_the_run():
    with here(1) as cluster:
        threading.Timer(0.5, cluster.scale, (0,)).start()
        with (
            pytest.raises(MargoError, match="all its workers are gone, after 2 s"),
            on(cluster.scheduler_address, timeout=2.0) as where,
        ):
            list(map_chunks(slow, range(200), where))


def test_a_scheduler_that_does_not_answer_is_one_line():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(MargoError, match="no scheduler answers"), on(f"tcp://127.0.0.1:{port}", timeout=1.0):
        pass


def test_a_killed_worker_costs_a_retry(tmp_path):
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        on(cluster.scheduler_address) as where,
    ):
        assert list(map_chunks(partial(die_once, tmp_path), range(9), where)) == [n * n for n in range(9)]
    assert (tmp_path / "died").exists()


def test_results_come_in_order_however_many_there_are_and_one_chunk_at_a_time(local):
    said = []
    with on(local, said) as where:
        assert list(map_chunks(square, range(100), where)) == [n * n for n in range(100)]
        assert set(map_chunks(crowd, range(12), where)) == {1}
    assert any("of the 4 threads" in line for line in said)
    assert any("not encrypted" in line for line in said)


def test_a_worker_that_cannot_see_a_file_says_which_and_where(local):
    wanted = f"on {socket.gethostname()}: /nowhere/feats.ark: no such file"
    with on(local) as where, pytest.raises(MargoError, match=wanted):
        list(map_chunks(open_nowhere, range(2), where))


def test_a_worker_with_other_packages_is_refused(local, monkeypatch):
    from distributed import Client

    versions = Client.get_versions

    def other(self, **how):
        found = versions(self, **how)
        for worker in found["workers"].values():
            worker["packages"] = dict(worker["packages"]) | {"numpy": "1.0", "numba": None}
        return found

    monkeypatch.setattr(Client, "get_versions", other)
    with pytest.raises(MargoError, match="has numba missing, here .*, numpy 1.0, here "), on(local):
        pass


BAD = {
    'memory = "lots"': "memory is lots, expected a size as 4GB",
    "cores = 0": "cores is 0, expected at least 1",
    'queue = "a; rm -rf"': "queue is a; rm -rf, expected a name",
    'walltime = "long"': "walltime is long, expected a time",
    'account = "x y"': "account is x y, expected a name",
    "memry = 3": "has no option memry \\(nearest: memory\\)",
    'memory = 4\ncores = "two"': "cores is 'two', expected a whole number",
    'tls_ca = "ca.pem"': "needed together",
    'address = "tls://host:1"': "needs tls_ca",
    'address = "host"': "address is host, expected slurm",
}


@pytest.mark.parametrize("text, says", BAD.items())
def test_settings_of_a_cluster_are_checked_before_anything_is_started(tmp_path, text, says):
    (tmp_path / "c.toml").write_text(f"[cluster]\n{text}\n")
    with pytest.raises(MargoError, match=says):
        clusters.options_of(str(tmp_path / "c.toml"))


def test_an_address_that_is_none_is_refused():
    for address in ("localhost:8786", "slurmx", "http://host:3"):
        with pytest.raises(MargoError, match="expected slurm, tcp://host:port or tls://host:port, or a TOML file"):
            clusters.options_of(address)


def test_slurm_without_sbatch_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MargoError, match="--cluster slurm: no sbatch on .*--nj"), on("slurm"):
        pass


def stand_in(folder, monkeypatch, **programs):
    """Programs of Slurm's names, as lines of bash that run in ``folder``."""
    for name, text in programs.items():
        (folder / name).write_text(f"#!/bin/bash\ncd {folder}\n{text}\n")
        (folder / name).chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def test_jobs_that_slurm_does_not_take_are_one_line(tmp_path, monkeypatch, caplog):
    stand_in(tmp_path, monkeypatch, sbatch="echo 'sbatch: error: Invalid account' >&2\nexit 1", scancel="")
    began = time.monotonic()
    with pytest.raises(MargoError, match="Slurm does not take the job: sbatch: error: Invalid account$"), on("slurm"):
        pass
    assert time.monotonic() - began < 15, "what Slurm refuses is not waited for"
    assert "Exception" not in caplog.text


def test_jobs_of_slurm_have_the_settings_of_the_file(tmp_path, monkeypatch):
    """With stand-ins for sbatch, which keeps the job's script and starts nothing, and for scancel."""
    stand_in(tmp_path, monkeypatch, sbatch='cp "$1" job.sh\necho "Submitted batch job 17"', scancel='echo "$1" > ended')
    (tmp_path / "slurm.toml").write_text(
        '[cluster]\nworkers = 1\nmemory = "500MB"\nqueue = "short"\naccount = "speech"\nwalltime = "00:10:00"\n'
        'interface = "lo"\n'
    )
    with pytest.raises(MargoError, match="it has no workers, after 3 s"), on(str(tmp_path / "slurm.toml"), timeout=3.0):
        pass
    script = (tmp_path / "job.sh").read_text()
    for directive in ("-p short", "-A speech", "--mem=477M", "-t 00:10:00", "--cpus-per-task=1"):
        assert f"#SBATCH {directive}" in script, script
    assert (tmp_path / "ended").read_text() == "17\n", "a job that is not waited for any more is taken back"


def test_tls_lets_in_who_has_the_certificates_and_nobody_else(tmp_path):
    if not shutil.which("openssl"):
        pytest.skip("needs openssl")
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=margo",
            "-keyout", "key.pem", "-out", "cert.pem"]  # fmt: skip
    subprocess.run(make, cwd=tmp_path, check=True, capture_output=True)
    from distributed import Security

    files = {f"tls_{side}_{what}": str(tmp_path / f"{what}.pem")
             for side in ("client", "scheduler", "worker") for what in ("cert", "key")}  # fmt: skip
    security = Security(tls_ca_file=str(tmp_path / "cert.pem"), require_encryption=True, **files)
    with here(1, protocol="tls://", security=security) as cluster:
        address, said = cluster.scheduler_address, []
        (tmp_path / "c.toml").write_text(
            f'[cluster]\naddress = "{address}"\n'
            + "".join(f'tls_{key} = "{tmp_path / name}.pem"\n'
                      for key, name in (("ca", "cert"), ("cert", "cert"), ("key", "key")))
        )  # fmt: skip
        with on(str(tmp_path / "c.toml"), said) as where:
            assert list(map_chunks(square, range(3), where)) == [0, 1, 4]
        assert not said, "nothing to warn of"
        with pytest.raises(MargoError, match="no scheduler answers"), on(address.replace("tls", "tcp"), timeout=2.0):
            pass


def test_a_scheduler_that_is_killed_ends_the_run(tmp_path):
    place_file = tmp_path / "scheduler.json"
    common = ["--no-dashboard", "--scheduler-file", str(place_file)]
    settings = {"scheduler": ["--host", "127.0.0.1", "--port", "0"], "worker": ["--nthreads", "1", "--no-nanny"]}
    scheduler, worker = (
        subprocess.Popen([sys.executable, "-m", f"distributed.cli.dask_{name}", *common, *more], cwd=tmp_path,
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for name, more in settings.items()
    )  # fmt: skip
    try:
        while not place_file.exists():
            time.sleep(0.1)
        with on(json.loads(place_file.read_text())["address"], timeout=60.0) as where:
            began = time.monotonic()
            with pytest.raises(MargoError, match="the scheduler is gone|all its workers are gone"):
                for n, _ in enumerate(map_chunks(time.sleep, [0.05] * 400, where)):
                    if n == 3:
                        scheduler.kill()
            assert time.monotonic() - began < 90
    finally:
        for process in (worker, scheduler):
            process.kill()
            process.wait()

"""A model trained by jobs of a real Slurm, one node that the test starts for itself (needs slurm-wlm and root)."""

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager

import pytest

from contests import feature_folders
from margo.errors import MargoError
from margo.runtime.parallel import place

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scancel", "squeue", "sinfo")
NO_JOB = r"NODELIST\(REASON\)\n\Z"
pytestmark = pytest.mark.skipif(os.geteuid() != 0 or not all(map(shutil.which, PROGRAMS)),
                                reason="needs slurm-wlm, and root to start it")  # fmt: skip


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@contextmanager
def daemon(*command):
    process = subprocess.Popen([str(each) for each in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def settings(folder):
    host = socket.gethostname()
    return f"""ClusterName=private
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmctldPort={free_port()}
SlurmdPort={free_port()}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 RealMemory=1000
PartitionName=short Nodes=ALL Default=YES State=UP
"""


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    """A folder in which a cluster of one node was started; its settings are in the environment."""
    folder = tmp_path_factory.mktemp("slurm")
    for name in ("state", "spool"):
        (folder / name).mkdir()
    (folder / "key").write_bytes(os.urandom(1024))
    (folder / "key").chmod(0o600)
    (folder / "slurm.conf").write_text(settings(folder))
    files = [f"--{name}-file={folder / name}" for name in ("key", "pid", "log", "seed")]
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLURM_CONF", str(folder / "slurm.conf"))
        patch.chdir(folder)  # Slurm keeps what jobs say where they were submitted
        stack.enter_context(daemon("munged", "-F", "--force", f"--socket={folder / 'munge.socket'}", *files))
        stack.enter_context(daemon("slurmctld", "-D", "-f", folder / "slurm.conf"))
        stack.enter_context(daemon("slurmd", "-D", "-f", folder / "slurm.conf"))
        awaited("sinfo", "idle")
        (folder / "c.toml").write_text(
            '[cluster]\nworkers = 1\nmemory = "500MB"\nqueue = "short"\nwalltime = "00:10:00"\n'
        )
        yield folder


def awaited(program, words, seconds=60):
    """Waits until ``program`` says ``words`` (a pattern)."""
    ended = time.monotonic() + seconds
    while time.monotonic() < ended:
        said = subprocess.run([program], capture_output=True, text=True).stdout
        if re.search(words, said):
            return
        time.sleep(0.3)
    raise AssertionError(f"{program} says {said!r}, not {words!r}")


@pytest.mark.parametrize("name, more", [("train_ml", ["--iterations", "2", "--mixtures", "2"]),
                                        ("train_lme", ["--epochs", "2"])])  # fmt: skip
def test_jobs_of_slurm_train_the_same_model(slurm, root, tmp_path, name, more):
    """By the programs themselves: workers have nothing but what is sent and what is installed."""
    folders, models = feature_folders(tmp_path), []
    for out, where in (("alone", []), ("jobs", ["--cluster", slurm / "c.toml"])):
        command = [sys.executable, root / "steps" / f"{name}.py", "--init", folders / "ml", "--data", folders / "train",
                   "--dev", folders / "dev", "--out", tmp_path / out, *more, *where]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        models.append((tmp_path / out / "model.npz").read_bytes())
    assert models[0] == models[1]
    assert any("Start worker" in said.read_text() for said in slurm.glob("slurm-*.out")), "a job did the work"
    awaited("squeue", NO_JOB)


def on(folder, settings):
    (folder / "x.toml").write_text(f"[cluster]\nworkers = 1\n{settings}\n")
    return place(cluster=str(folder / "x.toml"), say=lambda words: None, timeout=5.0)


@pytest.mark.parametrize("settings, words", [
    ('memory = "900GB"', "Slurm does not take the job: sbatch: error: .*[Mm]emory"),
    ('queue = "nobody"', "Slurm does not take the job: sbatch: error: .*partition"),
])  # fmt: skip
def test_what_slurm_says_of_a_job_that_it_does_not_take_is_told(slurm, settings, words):
    with pytest.raises(MargoError, match=words), on(slurm, settings):
        pass


def test_jobs_that_wait_in_vain_are_taken_back(slurm):
    subprocess.run(["scontrol", "update", "PartitionName=short", "State=DOWN"], check=True)
    try:
        with pytest.raises(MargoError, match="it has no workers, after 5 s"), on(slurm, 'memory = "500MB"'):
            pass
        awaited("squeue", NO_JOB)
    finally:
        subprocess.run(["scontrol", "update", "PartitionName=short", "State=UP"], check=True)

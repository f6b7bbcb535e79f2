"""A disk that is full, fills up, or cannot be written: a real one of its own (tmpfs), which only root may make."""

import os
import shutil
import subprocess
import sys

import pytest

from contests import feature_folders

# The disk, a change of it before each run of the command, and what the command says then.
WITHIN = """
mount -t tmpfs none "$1" && cd "$2" || exit 99
shift 2
for change in {changes}; do
    mount -o "remount,$change" none disk || exit 98
    "$@" > /dev/null 2> "said_$change"
    echo $? > "code_$change"
done
cp disk/out/model.npz kept.npz
"""
FULL, SHUT = "No space left on device", "Read-only file system"
CHANGES = {"size=4k": FULL, "size=20m,ro": SHUT, "rw,size=24k": FULL, "size=20m,rw": ""}


def privileged() -> bool:
    """Whether a disk can be mounted here, out of everybody else's sight."""
    if os.geteuid() or not shutil.which("unshare"):
        return False
    command = ["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"]
    return subprocess.run(command, capture_output=True).returncode == 0


def test_a_full_or_read_only_disk_is_one_line_and_the_same_command_goes_on(root, tmp_path):
    """Full at once, where not even step.log has room; not to be written; full later; and then there is room."""
    if not privileged():
        pytest.skip("only root may mount a disk that can be filled")
    (tmp_path / "folders").mkdir()
    folders = feature_folders(tmp_path / "folders", train=30)
    command = [sys.executable, root / "steps" / "train_ml.py", "--data", folders / "train", "--init", folders / "ml",
               "--iterations", "2", "--tolerance", "0", "--mixtures", "2", "--out"]  # fmt: skip
    subprocess.run([*command, tmp_path / "whole"], check=True, capture_output=True)
    (tmp_path / "disk").mkdir()
    given = [tmp_path / "disk", tmp_path, *command, tmp_path / "disk" / "out"]
    script = WITHIN.format(changes=" ".join(CHANGES))
    subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", *map(str, given)], check=True, capture_output=True)
    for change, says in CHANGES.items():
        said = (tmp_path / f"said_{change}").read_text().splitlines()
        assert (tmp_path / f"code_{change}").read_text() == ("1\n" if says else "0\n"), (change, said)
        assert all(line.startswith("train_ml") for line in said), "no traceback"
        if says:
            assert said[-1].startswith(f"train_ml: {tmp_path}/disk/out") and said[-1].endswith(f": {says}")
    assert (tmp_path / "kept.npz").read_bytes() == (tmp_path / "whole" / "model.npz").read_bytes()

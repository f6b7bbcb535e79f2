"""One run at a time in a folder: ``started.json`` is locked while a step is at work there, and gone once it ended well.

Who holds a folder can be read there. The lock is the system's: it ends with its process, however that ends. The file
stays where a step did not end well, and so tells that the folder is not complete.
"""

import fcntl
import json
import os
import socket
import time
from contextlib import suppress
from pathlib import Path

from margo.errors import MargoError
from margo.formats.atomic import open_own
from margo.formats.reading import open_file, read_json

NAME = "started.json"


def take(folder: Path, step: str, argv: list[str]):
    """The open file that holds ``folder`` for this process; refuses, and names the holder, where another has it."""
    path = folder / NAME
    while True:
        file = open_own(path)
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            file.close()
            whose = told(holder(folder))
            raise MargoError(f"{folder}: {whose} is at work there: wait for it, or give another --out") from None
        except OSError:  # a file system without locks
            pass
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
                break
        file.close()  # its holder has just ended well, and removed it
    file.truncate(0)
    facts = {"step": step, "command": " ".join([step, *argv]), "pid": os.getpid(), "host": socket.gethostname()}
    file.write(json.dumps(facts | {"since": time.strftime("%Y-%m-%d %H:%M:%S")}) + "\n")
    file.flush()
    return file


def holder(folder) -> dict | None:
    """What ``started.json`` of ``folder`` says; {} where it says nothing, None where there is none."""
    path = Path(folder) / NAME
    try:
        return read_json(path, shape=dict)
    except MargoError:
        return {} if os.path.lexists(path) else None


def at_work(folder: Path) -> bool:
    """Does another process hold ``folder``? Not to be asked of one's own: to look at its file gives it up."""
    with suppress(MargoError, OSError), open_file(folder / NAME) as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            return True
    return False


def told(facts: dict | None) -> str:
    """A holder in words."""
    facts = {"command": "another run", "pid": "unknown", "host": "unknown", "since": "unknown"} | (facts or {})
    return "{command} (process {pid} on {host}, since {since})".format(**facts)


def release(folder: Path, file) -> None:
    """Give the folder up; call while the lock is held."""
    (folder / NAME).unlink(missing_ok=True)
    file.close()

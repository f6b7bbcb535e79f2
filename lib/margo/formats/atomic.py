"""Files appear whole or not at all: written beside their place, synced, then renamed."""

import hashlib
import json
import os
import re
import tempfile
from contextlib import contextmanager
from pathlib import Path

from margo.errors import MargoError

SUFFIX = ".margo-tmp"  # of files that are being written
LONGEST = 200  # bytes of a name; systems take 255, with what is put around it


def file_name(text: str) -> str:
    """``text``, a name from data, as the name of a file in one folder: what could lead elsewhere becomes %XX.

    >>> file_name("s1-a"), file_name("../../x"), file_name("*")
    ('s1-a', '%2E.%2F..%2Fx', '%2A')
    """
    name = re.sub(r'[%/\\\x00-\x1f\x7f:*?"<>|]|^\.', lambda match: f"%{ord(match[0]):02X}", text)
    if len(name.encode()) <= LONGEST:
        return name
    mark = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
    return f"{name.encode()[: LONGEST - len(mark) - 1].decode(errors='ignore')}-{mark}"


@contextmanager
def atomic(path, mode: str = "w"):
    """Open a temporary file in ``path``'s folder; on success sync it and rename it to ``path``."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", suffix=SUFFIX, dir=path.parent)
    try:
        with os.fdopen(handle, mode, **({} if "b" in mode else {"encoding": "utf-8", "newline": "\n"})) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def write_text(path, text: str) -> None:
    with atomic(path) as file:
        file.write(text)


def write_json(path, value) -> None:
    write_text(path, json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def write_npz(path, meta: dict, arrays: dict) -> None:
    """Named arrays and a JSON ``meta``; the same content always gives the same bytes (no time stamps)."""
    import numpy as np  # here and below: --help of a step must not wait for it

    packed = {"meta": np.frombuffer(json.dumps(meta, sort_keys=True).encode(), np.uint8), **arrays}
    with atomic(path, "wb") as file:
        np.savez(file, allow_pickle=False, **packed)


def read_npz(path) -> tuple[dict, dict]:
    """``(meta, arrays)`` of a file of :func:`write_npz`; pickled content is refused."""
    import numpy as np

    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        return json.loads(arrays.pop("meta").tobytes()), arrays
    except FileNotFoundError:
        raise MargoError(f"{path}: no such file") from None
    except OSError as error:
        raise MargoError(f"{path}: cannot be read ({error.strerror or error})") from None
    except Exception as error:
        raise MargoError(f"{path}: not an archive of margo ({error})") from None

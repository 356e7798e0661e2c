"""Whose scratch folder is it, and is that process dead? Folders that are being written lie beside what they will become
and are named .<name>.<machine>-<process>.<random>."""

import os
import re
import socket
import tempfile
import time
from functools import cache
from hashlib import blake2b
from pathlib import Path

STALE = 24 * 3600  # seconds after which a process that cannot be asked is taken for dead

OWNER = re.compile(r"^\..+\.([0-9a-f]{8})-(\d+)\.\w+$")  # machine and process in the name of a scratch folder


def new_scratch(folder: Path, name: str) -> Path:
    """A new folder of this process in `folder`, in which `name` is made."""
    return Path(tempfile.mkdtemp(prefix=f".{name}.{machine()}-{os.getpid()}.", dir=folder))


def abandoned(scratch: Path, *, by_age: bool) -> bool:
    """Is the process that made this folder dead?

    Parameters:
        scratch: the folder.
        by_age: a process that runs elsewhere (another machine, another container) cannot be asked; True takes it for
            dead when nothing in its folder has changed for a day.
    """
    owner = OWNER.search(scratch.name)
    if owner and owner[1] == machine():
        return not _alive(int(owner[2]))
    return by_age and _is_stale(scratch)


def outside_scratch(folder: Path) -> Path:
    """The folder in which something will lie once it is complete: the one around all scratch folders."""
    for place in reversed((folder, *folder.parents)):
        if OWNER.search(place.name):
            return place.parent
    return folder


@cache
def machine() -> str:
    """A name for the place in which a process number means one process: this machine since it started, this
    container."""
    words = [socket.gethostname()]
    for place in ("/proc/sys/kernel/random/boot_id", "/proc/self/ns/pid"):
        try:
            words.append(os.readlink(place) if place.endswith("ns/pid") else Path(place).read_text())
        except OSError:  # not Linux
            continue
    return blake2b("".join(words).encode(), digest_size=4).hexdigest()


def _is_stale(scratch: Path) -> bool:
    try:
        return time.time() - max(file.stat().st_mtime for file in (scratch, *scratch.rglob("*"))) > STALE
    except OSError:  # gone in the meantime
        return False


def _alive(pid: int) -> bool:
    if os.name == "nt":  # there os.kill(pid, 0) would end the process
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True

"""Bounds of hyper-parameters, checked where they are stored: `above(0, alpha=alpha, beta=beta)`; and of memory."""

import re
from pathlib import Path

from nearkin.errors import NearkinError

GIB = 2**30


def at_least(bound: float, **values: float) -> None:
    """Refuse a value below the bound: `at_least(0, margin=margin)`."""
    for name, value in values.items():
        if not value >= bound:  # NaN fails too
            raise NearkinError(f"{name}={value}: must be at least {bound}")


def above(bound: float, **values: float) -> None:
    """Refuse a value that is not above the bound."""
    for name, value in values.items():
        if not value > bound:
            raise NearkinError(f"{name}={value}: must be above {bound}")


def between(low: float, high: float, **values: float) -> None:
    """Refuse a value outside [low, high]."""
    for name, value in values.items():
        if not low <= value <= high:
            raise NearkinError(f"{name}={value}: must lie between {low} and {high}")


def one_of(*known: str, **values: str) -> None:
    """Refuse a value that is none of the known ones."""
    for name, value in values.items():
        if value not in known:
            raise NearkinError(f"{name}={value!r}: choices: {', '.join(known)}")


def known_device(name: str) -> None:
    """Refuse an unknown name of a device: auto, cpu, cuda, cuda:1, mps, or one that a package adds to torch."""
    if re.fullmatch(r"auto|cpu|mps|cuda(:\d+)?", name):
        return
    import torch

    try:
        if torch.device(name).type not in ("cpu", "cuda", "mps", "meta"):
            return
    except RuntimeError:
        pass
    raise NearkinError(
        f"device={name}: no such device; choices: auto, cpu, cuda, cuda:N, mps (`nearkin doctor` says "
        "what this machine has)"
    )


def room_for(rows: int, dim: int, what: str, instead: str) -> None:
    """`what` keeps float32 embeddings: does the machine have memory for them?"""
    check_memory(rows * dim * 4, f"{what}: {rows} embeddings x {dim} dimensions x 4 bytes", f"use {instead}")


def room_for_images(count: int, side: int, what: str) -> None:
    """`what` makes images this large: does the machine have memory for as many of them as are read at a time?"""
    images = f"{count} images" if count > 1 else "an image"
    check_memory(count * side * side * 3, f"{what}: {images} of {side} x {side} pixels x 3 bytes", "take smaller ones")


def check_memory(needed: int, what: str, instead: str) -> None:
    """Refuse what takes more bytes than the machine has left."""
    room = available_memory()
    if room is not None and needed > room:
        raise NearkinError(f"{what} = {needed / GIB:.2f} GiB, {room / GIB:.2f} GiB are available; {instead}")


def available_memory() -> int | None:
    """The bytes of free memory of the system, or of the container if that is less. None: not known."""
    limits = []
    try:
        limits.append(_field(Path("/proc/meminfo"), "MemAvailable:") * 1024)
        group = Path("/sys/fs/cgroup")
        used = int((group / "memory.current").read_text()) - _field(group / "memory.stat", "inactive_file")
        limits.append(int((group / "memory.max").read_text()) - used)
    except (OSError, ValueError):  # not Linux; no limit ("max")
        pass
    return min(limits, default=None)


def _field(path: Path, name: str) -> int:
    words = path.read_text().split()
    return int(words[words.index(name) + 1])

"""Keep memory between steps: by default a third to a half of the CPU time goes into requesting it again.

A tensor of some megabytes is mapped when it is made and unmapped when it is freed, and the kernel hands out zeroed
pages again and again; `tune_allocator` tells the C library to keep them. And while torch is deterministic it fills all
new memory with NaN, so that a read of memory that was never written is noticed; `skip_memory_fill` leaves that out.
Neither changes a bit of any result.
"""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD, M_MMAP_MAX = -1, -2, -3, -4  # of glibc's malloc.h

CHOSEN = ("MALLOC_MMAP_THRESHOLD_", "MALLOC_MMAP_MAX_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_TOP_PAD_")


@cache
def tune_allocator() -> bool:
    """Keep freed memory for the next tensors, in this process and until its end; returns whether that was done.

    The process then holds on to the most memory that it ever needed at once; `release` gives back what is free. Calling
    it again does nothing. It needs glibc: elsewhere, and where the user has set malloc by the environment
    (MALLOC_TRIM_THRESHOLD_ and similar variables, or GLIBC_TUNABLES), it does nothing.
    """
    if any(name in os.environ for name in CHOSEN) or "glibc.malloc" in os.environ.get("GLIBC_TUNABLES", ""):
        return False
    if (libc := _glibc()) is None:
        return False
    done = libc.mallopt(M_TRIM_THRESHOLD, 2**31 - 1) and libc.mallopt(M_TOP_PAD, 256 * 2**20)
    # older versions limit the threshold: then nothing is mapped, whatever its size
    done = done and (libc.mallopt(M_MMAP_THRESHOLD, 2**30) or libc.mallopt(M_MMAP_MAX, 0))
    return bool(done)


def release() -> None:
    """Return free memory to the system after a piece of work; does nothing without glibc."""
    if (libc := _glibc()) is not None:
        libc.malloc_trim(0)


@contextmanager
def skip_memory_fill() -> Iterator[None]:
    """Inside, torch does not fill new memory even while it is deterministic; afterwards as before."""
    from torch.utils import deterministic  # here: `nearkin --help` tunes the allocator, and needs no torch

    before = deterministic.fill_uninitialized_memory  # type: ignore[attr-defined]
    deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    try:
        yield
    finally:
        deterministic.fill_uninitialized_memory = before  # type: ignore[attr-defined]


def _glibc() -> ctypes.CDLL | None:
    """The C library of this process, if it is glibc."""
    try:
        if not (os.confstr("CS_GNU_LIBC_VERSION") or "").startswith("glibc"):
            return None
        libc = ctypes.CDLL(None)
        libc.mallopt, libc.malloc_trim  # noqa: B018
    except (AttributeError, ValueError, OSError):  # another system, another C library
        return None
    return libc

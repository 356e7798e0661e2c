"""How time and memory grow with the number of rows: `OMP_NUM_THREADS=1 python bench/scale.py`.

Made-up rows without pixels, as many as 10⁴, 10⁵ and 1.3·10⁶, in 1000 classes (as ImageNet) and in N/5 classes (as SOP).
Each step is measured in a process of its own: CPU time of one call, and how much the peak of its resident memory grew
at the largest size. One that grows more than twice as fast as N·log N is marked. Of samplers with a bank ten batches
are planned, in 64 dimensions, and the time is that of one: a pass has N/B, so it grows as N if this is constant.
"""

import argparse
import ctypes
import gc
import math
import os
import pickle
import re
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from nearkin.data import Table, hashing
from nearkin.protocols import FixedVal
from nearkin.registry import PROTOCOLS, SAMPLERS
from nearkin.units import BYTES

SIZES = (10_000, 100_000, 1_300_000)
LAYOUTS = {"1000 classes": lambda n: 1000, "N/5 classes": lambda n: n // 5}
BATCH, DIM, SOME = 120, 64, 10
ROOT = Path("/data/imagenet/train")
CLEARLY = 0.02  # seconds below which a growth says nothing


def made_up(n: int, classes: int) -> Table:
    """N rows in classes of three sizes."""
    mean = n // classes
    sizes = np.resize([mean, mean - mean * 3 // 5, mean + mean * 3 // 5], classes)  # 5, 2 and 8 images
    labels = np.resize(np.repeat(np.arange(classes), sizes), n)
    names = tuple(f"n{c:08d}" for c in range(classes))
    folders = [ROOT / name for name in names]
    paths = tuple(folders[c] / f"{names[c]}_{i}.JPEG" for i, c in enumerate(labels.tolist()))
    return Table(labels, names, paths=paths, root=ROOT.parent)


def divided(table: Table, split: str | None) -> Table:
    """With an official division: by class (as SOP), by image (as ImageNet) or none."""
    if split is None:
        return table
    tests = table.labels % 2 == 1 if split == "class" else np.arange(len(table)) % 5 == 0
    return replace(table, columns={"split": np.where(tests, "test", "train")})


def split_by(name: str) -> Callable[[Table], Callable[[], Any]]:
    return lambda table: lambda: PROTOCOLS[name]().split(table)


def described(table: Table) -> Callable[[], Any]:
    split = FixedVal().split(table)
    return lambda: (split.hash(), split.describe(table))


def bookkeeping(table: Table) -> Callable[[], Any]:
    """data_hash with files that are not there: what it costs beside reading them."""
    hashing._fingerprint = lambda path: [len(path), 1, 1]
    hashing._content = lambda path: f"{hash(path):032x}"[-32:]
    os.environ["NEARKIN_CACHE"] = tempfile.mkdtemp()
    return lambda: hashing.data_hash(table)


def remembered(table: Table) -> Callable[[], Any]:
    call = bookkeeping(table)
    call()
    return call


def pass_of(name: str) -> Callable[[Table], Callable[[], Any]]:
    def prepared(table: Table) -> Callable[[], Any]:
        return lambda: SAMPLERS[name](table.labels, BATCH, 0).plan(np.random.default_rng(0))

    return prepared


def batches_of(name: str) -> Callable[[Table], Callable[[], Any]]:
    def prepared(table: Table) -> Callable[[], Any]:
        cls = type("Some", (SAMPLERS[name],), {"__len__": lambda self: SOME, "name": name})
        sampler = cls(table.labels, BATCH, 0)
        sampler.fill(torch.randn(len(table), DIM, generator=torch.Generator().manual_seed(0)))
        return lambda: sampler.plan(np.random.default_rng(0))

    return prepared


def filled(table: Table) -> Callable[[], Any]:
    sampler = SAMPLERS["ddm"](table.labels, BATCH, 0)
    z = torch.randn(len(table), DIM, generator=torch.Generator().manual_seed(0))
    return lambda: sampler.fill(z)


Step = tuple[str, str | None, Callable[[Table], Callable[[], Any]]]
STEPS: list[Step] = [
    ("Table.take of half", None, lambda t: lambda: t.take(np.arange(0, len(t), 2))),
    ("data_hash, files new", None, bookkeeping),
    ("data_hash, files known", None, remembered),
    *((f"split: {name}", "class", split_by(name)) for name in PROTOCOLS.names() if name not in ("file", "within")),
    ("split: fixed_val, no official one", None, split_by("fixed_val")),
    ("split: within, no official one", None, split_by("within")),
    ("split: within, official images", "image", split_by("within")),
    ("split: hash and description", "class", described),
    ("labels 0 to C - 1", None, lambda t: lambda: np.unique(t.labels, return_inverse=True)),
    *((f"pass: {name}", None, pass_of(name)) for name in SAMPLERS.names() if not SAMPLERS[name].needs_bank),
    ("bank: fill", None, filled),
    *((f"batch: {name}", None, batches_of(name)) for name in SAMPLERS.names() if SAMPLERS[name].needs_bank),
]


def measured(work: Callable[[], Callable[[], Any]]) -> tuple[float, int]:
    """Seconds and bytes of what `work` prepares, in a process of its own."""
    read, write = os.pipe()
    if os.fork() == 0:
        try:
            call = work()
            before = fresh_peak()
            began = time.process_time()
            kept = call()  # not freed before the clock is read
            taken = time.process_time() - began
            os.write(write, pickle.dumps((taken, peak() - before)))
            del kept
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        told = pickle.loads(pipe.read())
    os.wait()
    return told


def fresh_peak() -> int:
    """Give free memory back, and begin a new peak of the resident memory (Linux)."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    return peak()


def peak() -> int:
    """The peak of the resident memory in bytes."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(re.search(r"VmHWM:\s+(\d+)", status)[1])  # type: ignore[index]


def row(name: str, layout: str, found: list[tuple[float, int]], sizes: list[int]) -> str:
    per_batch = name.startswith("batch")
    seconds = [s / SOME if per_batch else s for s, _ in found]
    growth = max(
        (
            later / max(earlier, CLEARLY / 10) / (1 if per_batch else m * math.log(m) / (n * math.log(n)))
            for earlier, later, n, m in zip(seconds, seconds[1:], sizes, sizes[1:], strict=False)
            if later > (CLEARLY / 4 if per_batch else CLEARLY)
        ),
        default=0.0,
    )
    times = [f"{1000 * s:.1f} ms" if per_batch else f"{s:.3f} s" for s in seconds]
    mark = "  worse than N log N" if growth > 2 else ""
    return f"{name:<34} {layout:<13}" + "".join(f"{t:>11}" for t in times) + f"{BYTES.text(found[-1][1]):>12}" + mark


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--only", default="", help="steps whose names begin so")
    given = parser.parse_args()
    torch.set_num_threads(1)
    heads = "".join(f"{n:>11,}" for n in given.sizes)
    print(f"{'rows':<48}{heads}{'most memory':>12}")
    for layout, classes in LAYOUTS.items():
        tables = [made_up(n, classes(n)) for n in given.sizes]
        if "Table".startswith(given.only):
            found = [measured(lambda n=n, c=classes: lambda: made_up(n, c(n))) for n in given.sizes]
            print(row("Table: made, paths included", layout, found, given.sizes), flush=True)
        for name, split, prepare in STEPS:
            if name.startswith(given.only):
                found = [measured(lambda t=t, p=prepare, s=split: p(divided(t, s))) for t in tables]
                print(row(name, layout, found, given.sizes), flush=True)
    print(f"\nThe bank holds N x D x 4 bytes: {BYTES.text(1.3e6 * 512 * 4)} for 1,300,000 rows of 512 dimensions.")


if __name__ == "__main__":
    main()

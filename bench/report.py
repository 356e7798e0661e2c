"""What a report costs: seconds and memory for 200 runs with 10,000 queries each, without the map.

    python bench/report.py        (make bench-report)

A made-up store of 20 losses x 10 seeds: embeddings of 10,000 x 128 and values of every query, as runs leave them. The
bar: 60 seconds and 2 GiB.
"""

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "pages"))

from stored import write_run, write_study

RUNS, SEEDS, QUERIES, DIM, CLASSES = 200, 10, 10_000, 128, 500
MADE = 4  # test sets that are written; the other runs share them by links


def make(root: Path) -> None:
    """The store: every run has files of its own; equal test sets are hard links, to spare the disk."""
    cells, kept = [], []
    names = tuple(f"class {i}" for i in range(CLASSES))
    for i in range(RUNS):
        method, seed = i // SEEDS, i % SEEDS
        words = {"loss": "margin", "loss.beta": round(0.5 + 0.02 * method, 2)}
        whole = len(kept) < MADE
        run = write_run(
            root,
            words,
            0.3 + 0.02 * method,
            seed=seed,
            queries=QUERIES,
            dim=DIM,
            classes=names,
            curve=True,
            per_query=whole,
        )
        if whole:
            kept.append(run)
        else:
            for file in ("embeddings.npz", "test.parquet", "per_query.parquet"):
                (root / run / file).hardlink_to(root / kept[i % MADE] / file)
        cells.append(((f"margin, beta {words['loss.beta']}",), seed, run, None))
    write_study(root, "large", cells)


def main() -> None:
    """Make the store, report it in a process of its own, and print what that took."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "runs"
        make(root)
        began = time.perf_counter()
        command = [
            sys.executable,
            "-m",
            "nearkin",
            "report",
            "large",
            "--runs",
            str(root),
            "-o",
            f"{folder}/report.html",
            "--no-map",
        ]
        subprocess.run(command, check=True)
        seconds = time.perf_counter() - began
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        peak, cpu = used.ru_maxrss / 2**20, used.ru_utime + used.ru_stime
        size = Path(folder, "report.html").stat().st_size / 1e6
        print(f"{RUNS} runs x {QUERIES:,} queries: {seconds:.1f} s (bar 60; {cpu:.1f} s of CPU), ", end="")
        print(f"peak {peak:.2f} GiB (bar 2), page {size:.1f} MB")
        if seconds > 60 or peak > 2:
            sys.exit(1)


if __name__ == "__main__":
    main()

"""What the runner of a study costs: wall time with 2 workers against the CPU time of its runs.

    python bench/study.py        (make bench-study)

6 losses x 3 seeds on glyphs, untrained rows left out. The bar: at most 1.15 times the sum of the runs' CPU time divided
by 2, on two idle cores. CPU time is that of the same runs in one process, one after the other.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
import yaml
from rich.console import Console
from rich.table import Table

import nearkin
from nearkin.studies.grid import read_study

LOSSES = ["triplet", "contrastive", "margin", "multi_similarity", "proxy_anchor", "norm_softmax"]
STUDY = {
    "name": "bench",
    "base": {"dataset": "glyphs", "backbone": "convnet", "dim": 64, "epochs": 4},
    "axes": {"loss": LOSSES},
    "seeds": [0, 1, 2],
    "baselines": "none",
}
WORKERS = 2


def main():
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "bench.yaml"
        file.write_text(yaml.safe_dump(STUDY))
        cells = read_study(file).cells
        nearkin.train(cells[0].spec, runs=Path(folder) / "warm")  # the glyphs are drawn
        began = time.process_time()
        for cell in cells:
            nearkin.train(cell.spec, runs=Path(folder) / "one")
        cpu = time.process_time() - began
        load = os.getloadavg()[0]
        began = time.monotonic()
        words = ["study", str(file), "--workers", str(WORKERS), "--runs", str(Path(folder) / "two")]
        subprocess.run([sys.executable, "-m", "nearkin", *words], check=True, capture_output=True)
        wall = time.monotonic() - began
    table = Table("runs", "CPU time, s", "wall time, s", "ratio", "bar", "load before")
    ratio = wall / (cpu / WORKERS)
    table.add_row(str(len(cells)), f"{cpu:.1f}", f"{wall:.1f}", f"{ratio:.2f}", "1.15", f"{load:.1f}")
    Console().print(table)


if __name__ == "__main__":
    main()

"""What checksums cost a list of 1,000 runs: `python bench/runs.py [--old SRC]` (make bench-runs).

A made-up store of 1,000 tested runs. `nearkin runs list --json` is called in processes of its own, in turn with their
files.json and without; `--old SRC`, the folder src of another version, is called in turn with this one. Printed is the
least CPU time of the rows alone, and of the whole command. The bar: at most 1.2 times what it took without checksums.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from stores import add_run

from nearkin.runs.sums import Sums, resealed, write_sums

RUNS, TURNS = 1000, 5
SOURCE = Path(__file__).parents[1] / "src"
ROWS = """
import sys, time
from nearkin.runs.listing import row
from nearkin.runs.store import Store
times = []
for _ in range(4):
    began = time.process_time()
    states = [row(run)["state"] for run in Store(sys.argv[1]).runs()]
    times.append(time.process_time() - began)
assert states == ["tested"] * 1000, states[0]
print(min(times))
"""
COMMAND = """
import contextlib, io, sys, time
from nearkin.cli.app import app
began = time.process_time()
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    app(["runs", "list", "--json", "--runs", sys.argv[1]])
print(time.process_time() - began)
"""


def make(root: Path) -> None:
    """The store: specs and results of their own for all runs, each with its checksums."""
    for i in range(RUNS):
        path = add_run(root, f"{i:012x}", {"loss": "margin"}, {"map_at_r": i / RUNS, "recall@1": 0.5}, seed=i)
        write_sums(resealed(path, Sums()), path)


def seconds(program: str, source: Path, root: Path) -> float:
    """The CPU time that a process of its own tells."""
    environment = os.environ | {"PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", program, str(root)], env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return float(done.stdout.split()[-1])


def main() -> None:
    """Make the store, call the versions in turn, print the least time of each."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--old", type=Path, help="the folder src of another version")
    asked = parser.parse_args()
    os.environ["NEARKIN_FSYNC"] = "0"
    with tempfile.TemporaryDirectory() as folder:
        root, bare = Path(folder) / "runs", Path(folder) / "bare"
        make(root)
        shutil.copytree(root, bare, ignore=shutil.ignore_patterns("files.json"))
        cases = {"with checksums": (SOURCE, root), "without files.json": (SOURCE, bare)}
        if asked.old is not None:
            cases[str(asked.old)] = (asked.old, root)
        for what, program in (("rows", ROWS), ("the command", COMMAND)):
            times: dict[str, list[float]] = {name: [] for name in cases}
            for _ in range(TURNS):
                for name, (source, store) in cases.items():
                    times[name].append(seconds(program, source, store))
            least = {name: min(each) for name, each in times.items()}
            for name, each in least.items():
                ratio = least["with checksums"] / each
                print(f"{what:12} {name:24} {1000 * each:6.0f} ms   with checksums: {ratio:.2f}x of it")


if __name__ == "__main__":
    main()

"""CPU seconds of commands that should start at once: `python bench/cli.py [--turns N]` (make bench-cli).

Each command runs in a process of its own, as the console script starts it. Printed is the least CPU time (user and
system) of all turns, beside its bar; exit code 1 when a command is above it.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from stores import add_run

from nearkin.runs.sums import Sums, resealed, write_sums

RUNS, TURNS = 100, 5
SOURCE = Path(__file__).parents[1] / "src"
SCRIPT = "import sys; sys.argv[0] = 'nearkin'; from nearkin.cli.app import main; main()"
COMPLETION = {"_NEARKIN_COMPLETE": "complete_bash", "COMP_WORDS": "nearkin ", "COMP_CWORD": "1"}


def commands(runs: Path) -> dict[str, tuple[list[str], dict[str, str], float]]:
    """Name -> the words after `python`, variables of the environment, and the CPU seconds that it may take."""

    def nearkin(*words: str) -> list[str]:
        return ["-c", SCRIPT, *words]

    return {
        "import nearkin": (["-c", "import nearkin"], {}, 0.3),
        "nearkin --help": (nearkin("--help"), {}, 0.5),
        "nearkin --version": (nearkin("--version"), {}, 0.5),
        "nearkin <TAB>": (nearkin(), COMPLETION, 0.5),
        "nearkin list losses": (nearkin("list", "losses"), {}, 0.5),
        "nearkin explain multi_similarity": (nearkin("explain", "multi_similarity"), {}, 0.5),
        "nearkin published": (nearkin("published"), {}, 0.5),
        "nearkin published --claims": (nearkin("published", "--claims"), {}, 0.5),
        f"nearkin runs list ({RUNS} runs)": (nearkin("runs", "list", "--runs", str(runs)), {}, 1.0),
    }


def make_store(root: Path) -> None:
    """A store of tested runs, each with its checksums."""
    for i in range(RUNS):
        path = add_run(root, f"{i:012x}", {"loss": "margin"}, {"map_at_r": i / RUNS, "recall@1": 0.5}, seed=i)
        write_sums(resealed(path, Sums()), path)


def cpu_seconds(words: list[str], variables: dict[str, str]) -> float:
    """User and system time of one process."""
    environment = os.environ | {"PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1"} | variables
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, *words], env=environment, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"{' '.join(words)}: {done.stderr}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Make a store, run every command, print its least time."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--turns", type=int, default=TURNS, help=f"how often each command runs; default {TURNS}")
    turns = parser.parse_args().turns
    os.environ["NEARKIN_FSYNC"] = "0"
    slow = []
    with tempfile.TemporaryDirectory() as folder:
        runs = Path(folder) / "runs"
        make_store(runs)
        print(f"{'command':34} CPU seconds  at most")
        for name, (words, variables, bar) in commands(runs).items():
            least = min(cpu_seconds(words, variables) for _ in range(turns))
            print(f"{name:34} {least:11.2f}  {bar:7.1f}", flush=True)
            if least > bar:
                slow.append(name)
    if slow:
        sys.exit(f"above the bar: {', '.join(slow)}")


if __name__ == "__main__":
    main()

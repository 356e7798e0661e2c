"""What Ray costs over local processes: the wall time of 50 short runs with 2 workers.

    python bench/cluster.py        (make bench-cluster)

2 losses x 25 seeds on glyphs, by an executor of each kind: two processes of this machine, and two workers of a local
Ray cluster that runs already. Turns alternate; the ratio is that of the medians. The bar: 1.15. Joining the cluster and
the start of its workers are inside; beginning a cluster is not, and stands beside it.
"""

import os
import statistics
import tempfile
import time
import uuid
from pathlib import Path

import yaml
from rich.console import Console
from rich.table import Table

from nearkin.runs.store import Store
from nearkin.studies._local import LocalProcesses
from nearkin.studies._ray import RayExecutor
from nearkin.studies.grid import read_study
from nearkin.studies.runner import jobs_of, note, tasks_of
from nearkin.studies.scheduler import schedule

STUDY = {
    "name": "bench",
    "base": {"dataset": "glyphs", "data.classes": 60, "backbone": "convnet", "dim": 64, "epochs": 2},
    "axes": {"loss": ["triplet", "proxy_anchor"]},
    "seeds": list(range(25)),
    "baselines": "none",
}
WORKERS, TURNS = 2, 3


def timed(study, folder, make):
    """Seconds from an executor's beginning to its end, all runs of the study in between."""
    with tempfile.TemporaryDirectory(dir=folder) as runs:
        began = time.monotonic()
        with make() as executor:
            jobs = jobs_of(study, Store(runs))
            for look in schedule(executor, tasks_of(jobs)):
                note(jobs, look)
        seconds = time.monotonic() - began
        assert [job.state for job in jobs] == ["done"] * len(jobs), [job.error for job in jobs]
    return seconds


def main():
    folder = tempfile.TemporaryDirectory()
    token = Path(folder.name) / "token"
    token.write_text(uuid.uuid4().hex)
    os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(token), "RAY_USAGE_STATS_ENABLED": "0"}
    file = Path(folder.name) / "bench.yaml"
    file.write_text(yaml.safe_dump(STUDY))
    study = read_study(file)
    jobs_of(study, Store(folder.name))  # the glyphs are drawn
    from ray.cluster_utils import Cluster

    began = time.monotonic()
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": WORKERS, "include_dashboard": False})
    begun = time.monotonic() - began
    kinds = {"local processes": lambda: LocalProcesses(WORKERS), "Ray": lambda: RayExecutor(WORKERS, cluster.address)}
    spent = {kind: [] for kind in kinds}
    load = os.getloadavg()[0]
    for _ in range(TURNS):
        for kind, make in kinds.items():
            spent[kind].append(timed(study, folder.name, make))
            print(f"{kind}: {spent[kind][-1]:.1f} s", flush=True)
    cluster.shutdown()
    table = Table("50 runs, 2 workers", "seconds of each turn", "ratio", "bar")
    base = statistics.median(spent["local processes"])
    for kind, turns in spent.items():
        ratio = f"{statistics.median(turns) / base:.2f}"
        table.add_row(kind, ", ".join(f"{s:.1f}" for s in turns), ratio, "1.15" if kind == "Ray" else "")
    Console().print(table)
    print(f"beginning the cluster: {begun:.1f} s; load before: {load:.1f}")


if __name__ == "__main__":
    main()

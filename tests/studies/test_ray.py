"""Runs on a Ray cluster of two local nodes: the same bits as in local processes, also when workers and nodes die."""

import importlib.util
import json
import logging
import os
import signal
import subprocess
import sys
import time
import uuid

import pytest
import yaml
from stores import contents

from nearkin.cli.options import with_address
from nearkin.errors import NearkinError
from nearkin.runs.store import Store
from nearkin.studies import errand
from nearkin.studies.cluster import check
from nearkin.studies.executors import LocalProcesses, Task
from nearkin.studies.grid import read_study
from nearkin.studies.on_ray import RayExecutor
from nearkin.studies.parcels import unpack
from nearkin.studies.runner import jobs_of, run_jobs

pytestmark = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="nearkin[ray] is not installed")

EVERY = 0.3                         # seconds between parcels, and so between checkpoints


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Two nodes of one core each, with a token of their own: nothing is read from the user's home, or left there."""
    token = tmp_path_factory.mktemp("ray") / "token"
    token.write_text(uuid.uuid4().hex)
    own = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(token), "RAY_USAGE_STATS_ENABLED": "0"}
    before = {name: os.environ.get(name) for name in own}
    os.environ.update(own)                                          # Ray reads them when it is imported
    import ray
    from ray.cluster_utils import Cluster

    logging.getLogger("ray").setLevel(logging.ERROR)
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    made.second = made.add_node(num_cpus=1)
    yield made
    ray.shutdown()
    made.shutdown()
    for name, value in before.items():
        os.environ.pop(name) if value is None else os.environ.update({name: value})


@pytest.fixture(scope="module")
def executor(cluster):
    """Two workers that copy files; what it says is in `said`."""
    said = []
    with RayExecutor(2, cluster.address, every=EVERY, in_place=False, say=said.append) as made:
        made.said = said
        yield made


@pytest.fixture
def study(tmp_path, tiny):
    file = tmp_path / "small.yaml"
    axes = {"loss": ["triplet", "proxy_anchor"]}
    base = tiny | {"epochs": 30}
    file.write_text(yaml.safe_dump({"base": base, "axes": axes, "seeds": [0], "baselines": "none", "metrics": ["nmi"]}))
    return read_study(file)


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    return {}


def local(study, tmp_path, known):
    """What local processes give; computed once."""
    if not known:
        for _ in run_jobs(jobs_of(study, Store(tmp_path / "local")), LocalProcesses(2)):
            pass
        known |= contents(tmp_path / "local")
    return known


def on_ray(study, runs, executor, meanwhile=lambda jobs: None):
    """The same on the cluster; `meanwhile` is called at every look."""
    executor.said.clear()
    jobs = jobs_of(study, Store(runs))
    for _ in run_jobs(jobs, executor):
        meanwhile(jobs)
    return jobs, list(executor.said)


def openings(runs):
    """Lines for each run: one of the customary metrics, one of nmi."""
    lines = [json.loads(line) for line in (runs / "openings.jsonl").read_text().splitlines()]
    return sorted((line["run"], line["metrics"][0]) for line in lines)


def check_whole(study, tmp_path, straight, jobs):
    runs = tmp_path / "ray"
    assert [job.state for job in jobs] == ["done", "done"], [job.error for job in jobs]
    assert contents(runs) == local(study, tmp_path, straight)
    assert openings(runs) == sorted((job.run.hash, name) for job in jobs for name in ("the customary ones", "nmi"))
    for job in jobs:
        left = {file.name for file in job.run.path.iterdir()}
        assert not left & {"checkpoint.pt", "error.txt"}, left
        assert not [name for name in left if name.startswith((".", "model-"))]


@pytest.mark.parametrize("in_place", [True, False])
def test_the_same_bits_as_in_local_processes(executor, study, tmp_path, straight, monkeypatch, in_place):
    monkeypatch.setattr(executor, "in_place", in_place)
    copied = []
    monkeypatch.setattr(errand, "unpack", lambda parcel, path: (copied.append(path), unpack(parcel, path)))
    jobs, said = on_ray(study, tmp_path / "ray", executor)
    check_whole(study, tmp_path, straight, jobs)
    assert bool(copied) is not in_place
    assert said == []


class Killer:
    """Once the second checkpoint of a run is in the caller's store: `kill` its worker."""

    def __init__(self, kill):
        self.kill, self.seen, self.struck, self.log = kill, set(), None, b""

    def __call__(self, jobs):
        file = jobs[0].run.path / "checkpoint.pt"
        if self.struck or jobs[0].working is None or not jobs[0].working.worker or not file.exists():
            return
        self.seen.add(file.stat().st_mtime_ns)
        if len(self.seen) > 1:
            self.struck = jobs[0].working.worker
            size = jobs[0].run.load("checkpoint.pt")["log_size"]
            self.log = (jobs[0].run.path / "log.jsonl").read_bytes()[:size]
            self.kill(self.struck)


def test_a_killed_worker_costs_nothing_but_time(executor, study, tmp_path, straight):
    killer = Killer(lambda worker: os.kill(int(worker["process"]), signal.SIGKILL))
    jobs, said = on_ray(study, tmp_path / "ray", executor, killer)
    assert killer.struck
    assert len(said) == 1
    assert f"run {jobs[0].run.hash} lost its worker" in said[0]
    assert (jobs[0].run.path / "log.jsonl").read_bytes().startswith(killer.log)     # it went on, and did not begin anew
    assert len(killer.log) > 0
    check_whole(study, tmp_path, straight, jobs)


def test_it_is_not_begun_elsewhere_for_ever(executor, study, tmp_path, monkeypatch):
    monkeypatch.setattr(errand, "RETRIES", 1)
    job = jobs_of(study, Store(tmp_path / "ray"))[0]
    executor.said.clear()
    working = executor.start(Task(job.cell.spec.whole(), job.run.path), 0)
    killed = set()
    while working.alive:
        process = working.worker.get("process")
        if process and process not in killed:
            killed.add(process)
            os.kill(int(process), signal.SIGKILL)
        executor.wait([working], 0.05)
    assert len(killed) == 2
    assert working.ended().startswith(f"2 workers of run {job.run.hash} were lost, the last on ")
    assert len(executor.said) == 1


def test_data_of_a_node_that_are_not_the_callers_are_told(executor, study, tmp_path):
    job = jobs_of(study, Store(tmp_path / "ray"))[0]
    spec = job.cell.spec.whole()
    spec["data"] = spec["data"] | {"per_class": 9}
    working = executor.start(Task(spec, job.run.path), 0)
    while working.alive:
        executor.wait([working], 5)
    assert "the data there are not those here" in working.ended()
    assert not job.run.begun


def steps(run):
    """Of the checkpoint that is in the caller's store."""
    return (run.load("checkpoint.pt") or {"progress": {"step": 0}})["progress"]["step"]


def test_stopped_it_brings_a_checkpoint_back_and_goes_on_from_it(executor, study, tmp_path, straight):
    job = jobs_of(study, Store(tmp_path / "ray"))[0]
    working = executor.start(Task(job.cell.spec.whole(), job.run.path, ("nmi",)), 0)
    while not steps(job.run):
        time.sleep(0.05)
    with pytest.raises(NearkinError, match="is being trained by process"), job.run.lock():
        pass                                                        # the caller holds the lock meanwhile
    working.stop()
    assert not working.alive
    assert not job.run.final
    with job.run.lock():                                            # and no longer
        log = (job.run.path / "log.jsonl").read_bytes()
        assert job.run.load("checkpoint.pt")["log_size"] == len(log)    # to the last step: it was written on purpose
    jobs, _ = on_ray(study, tmp_path / "ray", executor)
    assert (job.run.path / "log.jsonl").read_bytes().startswith(log)
    check_whole(study, tmp_path, straight, jobs)


def test_a_paused_run_goes_on(executor, study, tmp_path, straight):
    job = jobs_of(study, Store(tmp_path / "ray"))[0]
    for until in (10, 15, None):
        working = executor.start(Task(job.cell.spec.whole(), job.run.path, ("nmi",), until=until), 0)
        while working.alive:
            executor.wait([working], 5)
        assert working.ended() is None
        state = job.run.load("checkpoint.pt")
        assert (state and state["progress"]["epoch"]) == until
    assert contents(tmp_path / "ray")[job.run.hash] == local(study, tmp_path, straight)[job.run.hash]


def test_a_runs_own_error_is_told_once_and_not_tried_again(executor, study, tmp_path):
    job = jobs_of(study, Store(tmp_path / "ray"))[0]
    spec = job.cell.spec.whole()
    spec["train"] = spec["train"] | {"batch": 4000}
    executor.said.clear()
    working = executor.start(Task(spec, tmp_path / "ray" / "other"), 0)
    while working.alive:
        executor.wait([working], 5)
    assert "train.batch=4000 is larger than" in working.ended()
    assert "Traceback" in (tmp_path / "ray" / "other" / "error.txt").read_text()
    assert executor.said == []


def test_data_lie_elsewhere_on_a_node(monkeypatch, tmp_path):
    from nearkin.config.parts import DataSpec
    from nearkin.runs.prepare import root_of

    data = DataSpec(name="cub", root=tmp_path / "here")
    (tmp_path / "there").mkdir()
    monkeypatch.setenv("NEARKIN_ROOT_CUB", str(tmp_path / "there"))
    assert root_of(data) == tmp_path / "here"                       # no node: what the caller says
    monkeypatch.setenv("NEARKIN_NODE", "n7")
    assert root_of(data) == tmp_path / "there"
    monkeypatch.delenv("NEARKIN_ROOT_CUB")
    with pytest.raises(NearkinError, match=r"node n7 has no .*here: .* there, or .*NEARKIN_ROOT_CUB=DIR"):
        root_of(data)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("127.0.0.1:1", "--ray 127.0.0.1:1: nobody answers there"),
        ("nowhere.invalid:6379", "--ray nowhere.invalid:6379: nobody answers"),
        ("127.0.0.1:99999", "--ray 127.0.0.1:99999: nobody answers"),
        ("localhost", "--ray localhost: HOST:PORT"),
        ("ray://localhost:10001", "HOST:PORT"),
    ],
)
def test_bad_addresses(address, said):
    with pytest.raises(NearkinError, match=said):                   # Ray alone would try for minutes
        check(address)


def test_the_command_says_it_in_one_line(study, tmp_path):
    command = [sys.executable, "-m", "nearkin", "study", str(tmp_path / "small.yaml"), "--runs", str(tmp_path / "runs")]
    told = subprocess.run([*command, "--ray", "127.0.0.1:1"], capture_output=True, text=True)
    assert told.returncode == 2
    assert told.stderr.startswith("nearkin: --ray 127.0.0.1:1: nobody answers there")
    assert told.stderr.count("\n") == 1


def test_an_address_may_be_left_out():
    assert with_address(["study", "--ray", "a.yaml", "root=c:1"]) == ["study", "--ray", "auto", "a.yaml", "root=c:1"]
    assert with_address(["study", "a.yaml", "--ray"]) == ["study", "a.yaml", "--ray", "auto"]
    assert with_address(["study", "--ray", "--workers", "2"]) == ["study", "--ray", "auto", "--workers", "2"]
    for address in ("auto", "10.0.0.1:6379", "ray://head:10001"):
        assert with_address(["--ray", address, "a.yaml"]) == ["--ray", address, "a.yaml"]


def test_a_lost_node_costs_nothing_but_time(cluster, executor, study, tmp_path, straight):
    """The last test: afterwards the cluster has one node, whose only worker serves both runs."""
    killer = Killer(lambda worker: cluster.remove_node(cluster.second, allow_graceful=False))
    jobs, said = on_ray(study, tmp_path / "ray", executor, killer)
    assert killer.struck
    assert 1 <= len(said) <= errand.RETRIES
    check_whole(study, tmp_path, straight, jobs)

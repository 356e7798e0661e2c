"""Runs on a Ray cluster of two local nodes: the same bits as in local processes, also when workers and nodes die."""

import importlib.util
import json
import logging
import os
import signal
import socket
import sys
import time
import uuid
from pathlib import Path

import pytest
import yaml
from stores import contents
from typer.testing import CliRunner

from nearkin.cli.app import app
from nearkin.cli.options import with_address
from nearkin.errors import NearkinError
from nearkin.runs.run import RunLocked
from nearkin.runs.store import Store
from nearkin.studies import _ray as ray_module
from nearkin.studies import cluster as cluster_module
from nearkin.studies._local import LocalProcesses
from nearkin.studies._ray import RayExecutor
from nearkin.studies.cluster import ClusterLost, Watch, check, join
from nearkin.studies.grid import read_study
from nearkin.studies.runner import jobs_of, note, tasks_of
from nearkin.studies.scheduler import Task, schedule

pytestmark = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="nearkin[ray] is not installed")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Two nodes of one core each, with a token of their own: nothing is read from the user's home, or left there."""
    token = tmp_path_factory.mktemp("ray") / "token"
    token.write_text(uuid.uuid4().hex)
    own = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(token), "RAY_USAGE_STATS_ENABLED": "0"}
    before = {name: os.environ.get(name) for name in own}
    os.environ.update(own)  # Ray reads them when it is imported
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
    """Two workers; what it says is in `said`."""
    said = []
    with RayExecutor(2, cluster.address, say=said.append) as made:
        made.said = said
        yield made


@pytest.fixture
def study(tmp_path, tiny):
    """Two runs of seconds: none ends between a look at it and a signal to it."""
    file = tmp_path / "small.yaml"
    axes = {"loss": ["triplet", "proxy_anchor"]}
    base = tiny | {"epochs": 4, "train.batches_per_epoch": 25}
    file.write_text(yaml.safe_dump({"base": base, "axes": axes, "seeds": [0], "baselines": "none", "metrics": ["nmi"]}))
    return read_study(file)


@pytest.fixture(scope="module")
def straight():
    return {}


def carried_out(study, runs, executor, meanwhile=lambda jobs: None, **options):
    """The jobs of a study after an executor had them; `meanwhile` is called at every look."""
    jobs = jobs_of(study, Store(runs))
    for look in schedule(executor, tasks_of(jobs), **options):
        note(jobs, look)
        meanwhile(jobs)
    return jobs


def failure_of(executor, task):
    (ended,) = [ended for look in schedule(executor, [task]) for ended in look.ended]
    return ended.failure


def openings(runs):
    """Lines for each run: one of the customary metrics, one of nmi."""
    lines = [json.loads(line) for line in (runs / "openings.jsonl").read_text().splitlines()]
    return sorted((line["run"], line["metrics"][0]) for line in lines)


def check_whole(study, tmp_path, straight, jobs):
    """All is as local processes leave it; those run once in this module."""
    if not straight:
        with LocalProcesses(2) as processes:
            assert [job.state for job in carried_out(study, tmp_path / "local", processes)] == ["done", "done"]
        straight |= contents(tmp_path / "local")
    runs = tmp_path / "ray"
    assert [job.state for job in jobs] == ["done", "done"], [job.error for job in jobs]
    assert contents(runs) == straight
    assert openings(runs) == sorted((job.run.hash, name) for job in jobs for name in ("the customary ones", "nmi"))
    for job in jobs:
        left = {file.name for file in job.run.path.iterdir()}
        assert not left & {"checkpoint.pt", "error.txt"}, left
        assert not [name for name in left if name.startswith((".", "model-"))]


def trainer_of(run):
    """The process that has the log of a run open; None: there is none."""
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if os.readlink(link) == str(run.path / "log.jsonl") and int(link.parts[2]) != os.getpid():
                return int(link.parts[2])
        except OSError:  # it was just closed
            continue
    return None


def parent_of(process):
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


class Killer:
    """Once a run has a checkpoint and is being trained by a process that `whom` says True of: `kill` that process."""

    def __init__(self, kill, whom=lambda process: True):
        self.kill, self.whom, self.run, self.log = kill, whom, None, b""

    def __call__(self, jobs):
        for run in [job.run for job in jobs if self.run is None and job.run.begun]:
            if (process := trainer_of(run)) is not None and self.whom(process):
                self.run, self.log = run, known_log(run)
                self.kill(process)

    def check(self):
        """It has struck, and the run went on from its checkpoint: it did not begin anew."""
        assert self.run is not None
        assert len(self.log) > 0
        assert (self.run.path / "log.jsonl").read_bytes().startswith(self.log)


def known_log(run):
    """What the log held at the checkpoint that is there."""
    size = run.load("checkpoint.pt")["log_size"]
    return (run.path / "log.jsonl").read_bytes()[:size]


def test_the_same_bits_as_in_local_processes(executor, study, tmp_path, straight):
    jobs = carried_out(study, tmp_path / "ray", executor)
    check_whole(study, tmp_path, straight, jobs)
    assert executor.said == []


def test_a_killed_worker_costs_nothing_but_time(executor, study, tmp_path, straight):
    killer = Killer(lambda process: os.kill(process, signal.SIGKILL))
    jobs = carried_out(study, tmp_path / "ray", executor, killer)
    killer.check()
    check_whole(study, tmp_path, straight, jobs)


def test_a_worker_that_is_lost_for_good_is_a_passing_failure(executor, study, tmp_path, monkeypatch):
    monkeypatch.setattr(ray_module, "RETRIES", 0)
    job = jobs_of(study, Store(tmp_path / "ray"))[0]
    with RayExecutor(1) as impatient:  # it shares the connection of the other one
        working = impatient.start(next(tasks_of([job])), 0)
        while (trainer := trainer_of(job.run)) is None:
            assert working.alive, working.ended()
            impatient.wait([working], 0.05)
        os.kill(trainer, signal.SIGKILL)
        while working.alive:
            impatient.wait([working], 5)
    assert working.ended().why.startswith("Ray lost its worker (0 retries): ")
    assert working.ended().passing
    with job.run.lock():
        pass  # the caller has given it back


def test_stopped_it_leaves_checkpoints_and_goes_on_from_them(executor, study, tmp_path, straight):
    """As Ctrl-C does it: what is under way is stopped at the end of its step."""
    begun, trainers = [], []

    def look_at_locks(jobs):
        for run in [job.run for job in jobs if job.run.begun and job.running]:
            with pytest.raises(RunLocked, match=f"being trained by process {os.getpid()}"), run.lock():
                pass
            begun.append(run)
            trainers.append(trainer_of(run))

    carried_out(study, tmp_path / "ray", executor, look_at_locks, stop=lambda: bool(begun))
    assert not any(run.final for run in begun)
    until = time.monotonic() + 60
    while alive := [process for process in trainers if Path(f"/proc/{process}").exists()]:
        assert time.monotonic() < until, alive  # half an import may be in one: it serves no more
        time.sleep(0.05)
    logs = {}
    for run in begun:
        with run.lock():  # the caller no longer has it
            logs[run] = (run.path / "log.jsonl").read_bytes()
            assert run.load("checkpoint.pt")["log_size"] == len(logs[run])  # to the last step: made on purpose
    jobs = carried_out(study, tmp_path / "ray", executor)
    for run, log in logs.items():
        assert (run.path / "log.jsonl").read_bytes().startswith(log)
    check_whole(study, tmp_path, straight, jobs)


def test_a_paused_run_goes_on(executor, study, tmp_path, straight):
    job = jobs_of(study, Store(tmp_path / "ray"))[0]
    (task,) = tasks_of([job])
    for until in (2, None):
        assert failure_of(executor, Task(task.spec, task.path, task.metrics, until=until)) is None
        state = job.run.load("checkpoint.pt")
        assert (state and state["progress"]["epoch"]) == until
    assert contents(tmp_path / "ray")[job.run.hash] == straight[job.run.hash]


def test_a_run_that_another_process_has_is_waited_for(executor, study, tmp_path):
    job = jobs_of(study, Store(tmp_path / "ray"))[0]
    (task,) = tasks_of([job])
    with job.run.lock():
        working = executor.start(Task(task.spec, task.path, until=1), 0)
        executor.wait([working], 0.1)
        assert working.alive
        assert working.ref is None
    while working.alive:
        executor.wait([working], 5)
    assert working.ended() is None
    assert job.run.begun


def test_a_worker_waits_for_one_that_ray_gave_up(tmp_path):
    store = ray_module.LentStore(tmp_path)
    store.run("0" * 12).path.mkdir()
    with store.run("0" * 12).lock():
        with pytest.raises(RunLocked, match="another worker"), store.run("0" * 12).lock():
            pass
        with Store(tmp_path).run("0" * 12).lock():  # which is the caller's
            pass


def test_a_node_must_see_the_folder_of_runs(executor, study, tmp_path, monkeypatch):
    job = jobs_of(study, Store(tmp_path / "ray"))[0]
    monkeypatch.setitem(executor._marks, tmp_path / "ray", tmp_path / "ray" / "absent")
    failure = failure_of(executor, next(tasks_of([job])))
    assert failure.passing
    assert failure.why == (
        f"node {socket.gethostname()} does not see {tmp_path / 'ray'} as the caller does: the folder of runs must lie "
        "on a disk that all nodes see"
    )
    assert {file.name for file in job.run.path.iterdir()} == {"lock"}


def test_data_of_a_node_that_are_not_the_callers_are_told(executor, study, tmp_path):
    job = jobs_of(study, Store(tmp_path / "ray"))[0]
    spec = job.cell.spec.whole()
    spec["data"] = spec["data"] | {"per_class": 9}
    failure = failure_of(executor, Task(spec, job.run.path))
    assert f"run {job.run.hash} is run " in failure.why
    assert "data, weights or code are not those that it was planned with" in failure.why
    assert not failure.passing
    assert not job.run.begun


def test_a_runs_own_error_is_told(executor, study, tmp_path):
    spec = jobs_of(study, Store(tmp_path / "ray"))[0].cell.spec.whole()
    spec["train"] = spec["train"] | {"batch": 4000}
    failure = failure_of(executor, Task(spec, tmp_path / "ray" / "other"))
    assert "train.batch=4000 is larger than" in failure.why
    assert not failure.passing
    assert "Traceback" in (tmp_path / "ray" / "other" / "error.txt").read_text()


def test_other_versions_of_a_node_are_said_once(executor):
    about = ray_module.versions() | {"node": "n7", "torch": "1.0"}
    for _ in range(2):
        executor.meet(about)
    assert executor.said == [f"node n7 has torch 1.0 (here {ray_module.versions()['torch']}): numbers may differ"]
    executor.said.clear()


def test_a_search_over_ray(executor, cluster, tiny, tmp_path):
    file, runs = tmp_path / "t.yaml", tmp_path / "runs"
    content = {"name": "t", "base": tiny | {"protocol": "fixed_val"}, "axes": {"loss": ["contrastive"]}, "seeds": [0]}
    file.write_text(yaml.safe_dump(content | {"baselines": "none", "tune": {"trials": 2}}))
    told = CliRunner().invoke(app, ["study", str(file), "--tune-only", "--runs", str(runs), "--ray", cluster.address])
    assert told.exit_code == 0, (told.output, told.exception)
    purposes = sorted(run.purpose for run in Store(runs).runs())
    assert purposes == ["final", "trial", "trial"]
    assert all((run.path / "worker.lock").exists() for run in Store(runs).runs())  # workers of Ray had them
    shown = CliRunner().invoke(app, ["study", str(file), "--show-trials", "--runs", str(runs)])
    assert "2 of 2" in shown.stdout


def test_data_lie_elsewhere_on_a_node(monkeypatch, tmp_path):
    from nearkin.config.parts import DataSpec
    from nearkin.runs.data import root_of

    data = DataSpec(name="cub", root=tmp_path / "here")
    (tmp_path / "there").mkdir()
    monkeypatch.setenv("NEARKIN_ROOT_CUB", str(tmp_path / "there"))
    assert root_of(data) == tmp_path / "here"  # no node: what the caller says
    monkeypatch.setenv("NEARKIN_NODE", "n7")
    assert root_of(data) == tmp_path / "there"
    monkeypatch.delenv("NEARKIN_ROOT_CUB")
    with pytest.raises(NearkinError, match=r"node n7 has no .*here: .* there, or .*NEARKIN_ROOT_CUB=DIR"):
        root_of(data)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("127.0.0.1:1", "address=127.0.0.1:1: nothing answers there"),
        ("nowhere.invalid:6379", "address=nowhere.invalid:6379: nothing answers"),
        ("127.0.0.1:99999", "address=127.0.0.1:99999: nothing answers"),
        ("localhost", "address=localhost: HOST:PORT"),
        ("ray://localhost:10001", "HOST:PORT"),
    ],
)
def test_bad_addresses(address, said):
    with pytest.raises(NearkinError, match=said):  # Ray alone would try for minutes
        check(address)


def test_without_ray(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(NearkinError, match=r"Ray is not installed; pip install 'nearkin\[ray\]'"):
        join("auto")


def test_a_lost_head_is_noticed(monkeypatch):
    monkeypatch.setattr(cluster_module, "PATIENCE", 0.02)
    with socket.create_server(("127.0.0.1", 0)) as head:
        watch = Watch(f"127.0.0.1:{head.getsockname()[1]}")
        time.sleep(0.2)
        watch.check()
    while not watch.lost:
        time.sleep(0.02)
    with pytest.raises(ClusterLost, match="no longer answers; the same command goes on once it is back"):
        watch.check()


def test_an_address_may_be_left_out():
    assert with_address(["study", "--ray", "a.yaml", "root=c:1"]) == ["study", "--ray", "auto", "a.yaml", "root=c:1"]
    assert with_address(["study", "a.yaml", "--ray"]) == ["study", "a.yaml", "--ray", "auto"]
    assert with_address(["study", "--ray", "--workers", "2"]) == ["study", "--ray", "auto", "--workers", "2"]
    for address in ("auto", "10.0.0.1:6379", "ray://head:10001"):
        assert with_address(["--ray", address, "a.yaml"]) == ["--ray", address, "a.yaml"]


@pytest.mark.slow
def test_a_lost_node_costs_nothing_but_time(cluster, executor, study, tmp_path, straight):
    """The last test: afterwards the cluster has one node, whose only worker serves both runs."""
    raylet = cluster.second.all_processes["raylet"][0].process.pid
    killer = Killer(
        lambda process: cluster.remove_node(cluster.second, allow_graceful=False),
        whom=lambda process: parent_of(process) == raylet,
    )
    jobs = carried_out(study, tmp_path / "ray", executor, killer)
    killer.check()
    check_whole(study, tmp_path, straight, jobs)

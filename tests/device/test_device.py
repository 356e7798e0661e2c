"""Any device: the checks on a device made in Python, in a process of their own, and how a device is chosen."""

import subprocess
import sys
from multiprocessing import Pipe
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
import torch

import nearkin
from nearkin.config.spec import make_spec
from nearkin.engine import doctor
from nearkin.engine.batches import generator_on, seed_default
from nearkin.engine.device import devices, pick_device
from nearkin.errors import NearkinError
from nearkin.numerics import generator_device
from nearkin.runs.prepare import prepare
from nearkin.studies import _local
from nearkin.studies.scheduler import Task, schedule

HERE = Path(__file__).parent


def test_on_a_device_of_its_own(tmp_path):
    """A process that has a device cannot fork after its first backward, as other tests do (toy.py)."""
    own = ["-p", "no:cacheprovider", f"--basetemp={tmp_path / 'own'}"]
    command = [sys.executable, "-m", "pytest", "-x", "--assert=plain", *own, *map(str, sorted(HERE.glob("check_*.py")))]
    done = subprocess.run(command, capture_output=True, text=True, cwd=HERE.parents[1])
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


# -- which device --------------------------------------------------------------------------------------------


@pytest.fixture
def two_gpus(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)


def test_a_device_by_its_name(two_gpus):
    assert devices() == ["cuda", "cuda:0", "cuda:1", "cpu"]
    assert pick_device("auto") == torch.device("cuda")  # the current one: a worker of a study sets it
    assert pick_device("cuda:1") == torch.device("cuda", 1)
    assert pick_device("cpu") == torch.device("cpu")
    for absent in ("cuda:2", "mps", "xpu"):
        said = rf"device={absent} is not available; choices: auto, cuda, cuda:0, cuda:1, cpu \(`nearkin doctor`"
        with pytest.raises(NearkinError, match=said):
            pick_device(absent)


@pytest.mark.parametrize("name", ["gpu", "cuda:", "cuda:one", "cpu:1", "meta", "CPU"])
def test_an_unknown_device_is_refused_before_anything_is_read(name, tiny, tmp_path):
    said = rf"device={name}: no such device; choices: auto, cpu, cuda, cuda:N, mps \(`nearkin doctor`"
    with pytest.raises(NearkinError, match=said):
        make_spec(tiny | {"train.device": name})
    with pytest.raises(NearkinError, match=said):
        pick_device(name)


def test_an_absent_device_is_refused_in_a_sentence(tiny, tmp_path):
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(NearkinError, match=r"device=cuda:1 is not available; choices: auto, .*cpu"):
        nearkin.train(tiny | {"train.device": "cuda:1"}, runs=tmp_path)


def test_the_device_does_not_name_a_run(tiny):
    names = ("auto", "cpu", "cuda:3", "mps")
    assert len({prepare(make_spec(tiny | {"train.device": name})).hash for name in names}) == 1


def test_the_doctor_names_every_gpu(two_gpus, monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: f"Card of {device}")
    assert "cuda:1 (Card of cuda:1)" in doctor._device().detail


# -- chance --------------------------------------------------------------------------------------------------


def test_generators_live_on_cuda_and_never_on_apples_gpu():
    assert generator_device(torch.device("cuda", 1)) == torch.device("cuda", 1)
    for name in ("cpu", "mps", "xpu"):
        assert generator_device(torch.device(name)) == torch.device("cpu")
        assert generator_on(torch.device(name)).device == torch.device("cpu")


def test_dropout_is_seeded_on_the_device_too(monkeypatch):
    seeds = []
    monkeypatch.setattr(torch.mps, "manual_seed", seeds.append)
    seed_default(7, torch.device("mps"))
    seed_default(8, torch.device("cpu"))
    assert seeds == [7]
    assert torch.default_generator.initial_seed() == 8


# -- the workers of a study ----------------------------------------------------------------------------------


class Worker:
    """A process that ends at once; it notes its arguments. Its sentinel is a pipe whose other end is closed: ready."""

    seen: ClassVar[list[Any]] = []
    exitcode = 0

    def __init__(self, target, args):
        self.seen.append(args[1])
        self.sentinel, other = Pipe(duplex=False)
        other.close()

    def start(self): ...
    def join(self): ...
    def terminate(self): ...
    def is_alive(self):
        return False


def test_workers_spread_over_the_gpus(tiny, two_gpus, monkeypatch, tmp_path):
    context = SimpleNamespace(set_forkserver_preload=lambda modules: None, Process=Worker)
    monkeypatch.setattr(_local.multiprocessing, "get_context", lambda kind: context)

    def given(device: str, gpus: int) -> list[Any]:
        monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
        task = Task(make_spec(tiny | {"train.device": device}).whole(), tmp_path)
        Worker.seen.clear()
        for _ in schedule(_local.LocalProcesses(3), [task] * 3, poll=0):
            pass
        return list(Worker.seen)

    assert given("auto", 2) == given("cuda", 2) == [0, 1, 0]
    assert given("auto", 1) == given("auto", 0) == given("cuda:1", 2) == given("cpu", 2) == [None] * 3

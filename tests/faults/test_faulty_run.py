"""A disk that fails at the n-th operation of a small run: one line, and the same command again gives the same bits."""

import random

import pytest
from faulty_disk import FAULTS, FaultyDisk, needs_compiler
from stores import contents

from nearkin.runs.store import Store
from nearkin.runs.verify import verify

pytestmark = needs_compiler

WORDS = [
    "train",
    "dataset=glyphs",
    "data.classes=12",
    "data.per_class=6",
    "data.size=16",
    "backbone=convnet",
    "dim=8",
    "train.batch=12",
    "sampler.per_class=3",
    "epochs=2",
    "train.batches_per_epoch=2",
    "train.curve=true",
    "train.device=cpu",
]


@pytest.fixture(scope="module")
def disk(tmp_path_factory):
    disk = FaultyDisk(tmp_path_factory.mktemp("faulty"))
    yield disk
    disk.close()


def command(disk):
    return [*WORDS, "--no-baseline", "--runs", str(disk.root / "runs")]


@pytest.fixture(scope="module")
def straight(disk):
    """What a run holds that no fault met, and how many operations of each kind it takes."""
    disk.fine()
    ended = disk.run(command(disk))
    assert ended.code == 0, ended.said
    operations = {name: ended.operations[fault.kind] for name, fault in FAULTS.items()}
    return contents(disk.root / "runs"), names(disk), operations


def names(disk):
    """Every file in the store; what is left of a failure would be among them."""
    return sorted(str(path.relative_to(disk.root)) for path in disk.root.rglob("*") if path.suffix != ".lock")


def check(disk, straight, name, at):
    expected, files, _ = straight
    disk.clear()
    disk.fail(FAULTS[name], at)
    ended = disk.run(command(disk))
    where = f"{name} at operation {at}: {ended.said}"
    assert "Traceback" not in ended.said, where
    assert ended.code == 0 if name == "short" else ended.code in (0, 1), where
    if ended.code == 1:
        said = [line for line in ended.said.splitlines() if line.startswith("nearkin: ")]
        assert len(said) == 1, where
        assert ended.said.splitlines()[-1] == said[0], where
        assert "damaged" not in said[0], where  # the disk failed, the run did not
    disk.fine()
    again = disk.run(command(disk))
    assert again.code == 0, f"{where}\nand then: {again.said}"
    assert contents(disk.root / "runs") == expected, where
    assert names(disk) == files, where
    for run in Store(disk.root / "runs").runs():
        found = verify(run, deep=True)
        assert (found.problems, found.notes) == ([], []), where


@pytest.mark.parametrize("name", FAULTS)
def test_a_few_operations(disk, straight, name):
    operations = straight[2][name]
    rng = random.Random(name)
    for at in [round(operations * (part + rng.random()) / 2) + 1 for part in range(2)]:
        check(disk, straight, name, at)


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_every_operation(disk, straight, name):
    for at in range(1, straight[2][name] + 1):
        check(disk, straight, name, at)

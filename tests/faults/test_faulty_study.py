"""A disk that fails during a small study: its lines and exit code 1, and the same command again ends as it should."""

import pytest
import yaml
from faulty_disk import FAULTS, FaultyDisk, needs_compiler
from stores import contents

pytestmark = needs_compiler

BASE = {
    "dataset": "glyphs",
    "data.classes": 12,
    "data.per_class": 6,
    "data.size": 16,
    "backbone": "convnet",
    "dim": 8,
    "train.batch": 12,
    "epochs": 2,
    "train.device": "cpu",
}
BEGINNINGS = ("nearkin: ", "failed: ")


@pytest.fixture(scope="module")
def disk(tmp_path_factory):
    disk = FaultyDisk(tmp_path_factory.mktemp("faulty"))
    yield disk
    disk.close()


@pytest.fixture(scope="module")
def command(disk):
    file = disk.root.with_name("study.yaml")
    file.write_text(yaml.safe_dump({"base": BASE, "axes": {"loss": ["proxy_anchor"]}, "seeds": [0]}))
    return ["study", str(file), "--workers", "1", "--runs", str(disk.root / "runs")]


def held(disk):
    """Weights, embeddings and results of all runs, and the study's tables."""
    runs = disk.root / "runs"
    return contents(runs), {file.name: file.read_text() for file in runs.glob("*.csv")}


@pytest.fixture(scope="module")
def straight(disk, command):
    """What a study holds that no fault met, and how many operations of each kind it takes."""
    disk.fine()
    ended = disk.run(command)
    assert ended.code == 0, ended.said
    return held(disk), {name: ended.operations[fault.kind] for name, fault in FAULTS.items()}


def strike(disk, command, name, at):
    disk.fail(FAULTS[name], at)
    ended = disk.run(command)
    where = f"{name} at operation {at}: {ended.said}"
    assert "Traceback" not in ended.said, where
    assert ended.code == 0 if name == "short" else ended.code in (0, 1), where
    if ended.code == 1:
        assert any(line.startswith(BEGINNINGS) for line in ended.said.splitlines()), where
    return where


def check_again(disk, command, straight, where):
    disk.fine()
    ended = disk.run(command)
    assert ended.code == 0, f"{where}\nand then: {ended.said}"
    assert held(disk) == straight[0], where


def test_one_fault_after_the_other(disk, command, straight):
    """Every call goes on from what the one before left."""
    disk.clear()
    said = [
        strike(disk, command, name, at=round(share * straight[1][name]))
        for name, share in (("EIO", 0.15), ("full", 0.4))
    ]
    check_again(disk, command, straight, "\n".join(said))


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_every_tenth_operation(disk, command, straight, name):
    for at in range(1, straight[1][name] + 1, 10):
        disk.clear()
        check_again(disk, command, straight, strike(disk, command, name, at))

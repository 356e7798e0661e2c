"""`nearkin doctor --weights`: what is in the folder, what is wrong with it, how to get the rest."""

import json
from hashlib import sha256

import pytest
import torch
from models import architectures
from typer.testing import CliRunner

from nearkin.cli.app import app
from nearkin.models.checkpoints import KNOWN, Checkpoint


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("NEARKIN_WEIGHTS", str(tmp_path))
    return tmp_path


def listed():
    told = json.loads(CliRunner().invoke(app, ["doctor", "--weights", "--json"]).stdout)
    return told["folder"], {entry["file"]: entry for entry in told["files"]}


def small(state):
    return {k: torch.zeros(()).expand(shape) for k, shape in state.items()}


def test_without_a_folder(monkeypatch):
    monkeypatch.delenv("NEARKIN_WEIGHTS", raising=False)
    place, files = listed()
    assert place is None
    known = {each.file for several in KNOWN.values() for each in several}
    assert known <= set(files)
    assert all(files[file]["state"] == "absent" and files[file]["get"].endswith(file) for file in known)
    shown = CliRunner().invoke(app, ["doctor", "--weights"])
    assert shown.exit_code == 0
    assert "NEARKIN_WEIGHTS is not set" in shown.stdout


def test_what_is_there(folder, monkeypatch):
    torch.save(small(architectures.googlenet()), folder / "file")
    content = (folder / "file").read_bytes()
    digest = sha256(content).hexdigest()
    right, wrong = f"googlenet-{digest[:8]}.pth", "googlenet-01234567.pth"
    monkeypatch.setitem(KNOWN, "googlenet", tuple(Checkpoint(f, "http://x/", "a net") for f in (right, wrong)))
    for name in (right, wrong):
        (folder / name).write_bytes(content)
    (folder / "resnet50-19c8e357.pth").write_bytes(content)  # of another network
    (folder / "bn_inception-52deb4733.pth").write_bytes(content[:-9])
    place, files = listed()
    assert place == str(folder)
    entry = files[right]
    assert (entry["state"], entry["path"], entry["size"]) == ("taken", str(folder / right), len(content))
    assert entry["sha256"] == digest
    assert files[wrong]["state"] == "wrong"
    assert f"begins with {digest[:8]}, its name says 01234567" in files[wrong]["problem"]
    problem = files["resnet50-19c8e357.pth"]["problem"]
    assert "resnet50-19c8e357.pth is not a checkpoint of resnet50" in problem
    assert "missing (" in problem
    assert "unexpected (" in problem
    assert "not a readable checkpoint" in files["bn_inception-52deb4733.pth"]["problem"]
    assert files["resnet50-0676ba61.pth"]["state"] == "absent"
    shown = CliRunner().invoke(app, ["doctor", "--weights"])
    assert shown.exit_code == 0
    assert digest[:12] in shown.stdout
    assert "is not a checkpoint of resnet50" in " ".join(shown.stdout.split())

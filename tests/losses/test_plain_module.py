"""A researcher's plain `nn.Module` with `forward(embeddings, labels)` is a loss."""

import subprocess
import sys

import pytest
import torch
from torch import nn

import nearkin
from nearkin.engine.objective import Objective, build_objective
from nearkin.errors import NearkinError
from nearkin.losses import ForeignLoss, Loss

MODULE = """
import torch
from torch import nn


class Pull(nn.Module):
    def __init__(self, power: float = 2.0):
        super().__init__()
        self.power = power

    def forward(self, embeddings, labels):
        same = labels[:, None] == labels[None, :]
        return ((torch.cdist(embeddings, embeddings) + 1e-3)[same] ** self.power).mean()


class Vector(Pull):
    def forward(self, embeddings, labels):
        return embeddings.norm(dim=1)
"""


class Pull(nn.Module):
    """The mean squared distance within classes."""

    def forward(self, embeddings, labels):
        return ((embeddings[:, None] - embeddings[None]) ** 2).sum(2)[labels[:, None] == labels[None]].mean()


class Vector(nn.Module):
    def forward(self, embeddings, labels):
        return embeddings.norm(dim=1)


@pytest.fixture
def batch():
    generator = torch.Generator().manual_seed(0)
    return torch.randn(6, 4, generator=generator, requires_grad=True), torch.tensor([0, 0, 1, 1, 2, 2])


@pytest.fixture
def written(tmp_path, monkeypatch):
    (tmp_path / "plain_losses.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop("plain_losses", None)


def test_in_an_objective(batch):
    value = Objective(Pull())(*batch)
    assert value.item() == pytest.approx(Pull()(*batch).item())
    value.backward()
    assert batch[0].grad.abs().sum() > 0


def test_behind_the_interface(batch):
    assert ForeignLoss(Pull())(batch[0], ["a", "a", "b", "b", "c", "c"]).item() > 0
    assert ForeignLoss(Pull())(batch[0][:0], batch[1][:0]).item() == 0


def test_by_its_import_path(tiny, tmp_path, written):
    words = {**tiny, "loss": "plain_losses.Pull", "loss.power": 1.5, "epochs": 1, "sampler": "balanced"}
    assert nearkin.train(words, runs=tmp_path / "runs").metrics()["recall@1"] > 0


def test_on_the_command_line(tiny, written):
    words = [f"{k}={v}" for k, v in {**tiny, "epochs": 1, "sampler": "balanced"}.items()]
    command = [sys.executable, "-m", "nearkin", "train", *words, "--no-baseline", "loss=plain_losses.Vector"]
    done = subprocess.run(command, cwd=written, capture_output=True, text=True)
    assert done.returncode == 2
    assert "Vector returned a tensor of shape (16,)" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("call", [Objective(Vector()), ForeignLoss(Vector())], ids=["objective", "loss"])
def test_a_vector_is_refused(call, batch):
    with pytest.raises(NearkinError) as raised:
        call(*batch)
    assert (
        str(raised.value) == "Vector returned a tensor of shape (6,); a loss is one number: return its mean or its sum"
    )


def test_a_vector_of_a_loss_of_ones_own(batch):
    class Own(Loss):
        def compute(self, pairs, tuples=None):
            return pairs.z

    with pytest.raises(NearkinError, match=r"Own returned a tensor of shape \(6, 4\)"):
        Own()(*batch)


def test_what_is_no_tensor(batch):
    class Number(nn.Module):
        def forward(self, embeddings, labels):
            return 1.0

    with pytest.raises(NearkinError, match="Number returned a float; a loss is one number, a tensor"):
        Objective(Number())(*batch)


def test_no_miner_memory_or_reference_beside_it(batch):
    with pytest.raises(NearkinError, match="gives Triplets, which Pull does not take"):
        Objective(Pull(), nearkin.miners.Semihard())
    with pytest.raises(NearkinError, match="Pull takes embeddings and labels alone"):
        ForeignLoss(Pull())(*batch, ref_emb=batch[0], ref_labels=batch[1])
    with pytest.raises(NearkinError, match="Pull takes embeddings and labels alone"):
        ForeignLoss(Pull())(*batch, (batch[1], batch[1], batch[1]))
    with pytest.raises(NearkinError, match=r"memory\.size does not go with"):
        Objective(Pull()).check_memory()


def test_what_is_no_module():
    with pytest.raises(NearkinError, match=r"a loss is a torch\.nn\.Module, not a function"):
        Objective(lambda embeddings, labels: embeddings.sum())
    with pytest.raises(NearkinError, match=r"a loss is a torch\.nn\.Module, not the class Pull: call it"):
        Objective(Pull)


def test_a_registered_one(batch):
    objective = build_objective(loss=("torch.nn.CosineEmbeddingLoss", {}), num_classes=3, dim=4)
    assert isinstance(objective.loss, ForeignLoss)  # its own three arguments are its author's affair

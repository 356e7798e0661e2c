"""Two passes give the gradient of the whole batch, in the memory of a chunk."""

import pytest
import torch
from losses.loss_cases import CASES, case_id, make
from memory import peak_bytes
from ranks import gradients
from torch import nn

import nearkin
from nearkin.engine.distributed import Ranks
from nearkin.engine.objective import Objective
from nearkin.errors import NearkinError
from nearkin.memory import Memory
from nearkin.models import build_model
from nearkin.pairs import Embedded

B = 11


class Net(nn.Module):
    """Dropout and no BatchNorm: what happens to an image depends on chance, not on its neighbours."""

    def __init__(self):
        super().__init__()
        self.one, self.drop, self.two = nn.Linear(9, 32), nn.Dropout(0.5), nn.Linear(32, 6)

    def forward(self, x, mix=None):
        return Embedded(self.two(self.drop(torch.relu(self.one(x)))))


@pytest.mark.parametrize(("name", "settings"), CASES, ids=case_id)
def test_two_passes_equal_the_whole_batch(name, settings):
    """For every loss, with the dropout of each chunk replayed."""
    torch.manual_seed(0)
    net, x, labels = Net().double(), torch.randn(B, 9, dtype=torch.float64), torch.arange(B) % 4
    objective = Objective(make(name, settings).double())
    found = gradients(net, objective, Ranks(), x, labels, chunk=4)

    def chunkwise(images, mix=None):  # one graph over all chunks, the same chance
        parts = []
        for number, part in enumerate(images.split(4)):
            torch.manual_seed(100 + number)
            parts.append(net(part).z)
        return Embedded(torch.cat(parts))

    chunkwise.parameters = net.parameters
    expected = gradients(chunkwise, objective, Ranks(), x, labels)
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-11)


def test_two_passes_beside_a_memory():
    torch.manual_seed(0)
    net, x, labels = Net().double().eval(), torch.randn(B, 9, dtype=torch.float64), torch.arange(B) % 4
    memory = Memory(20, 6)
    memory.add(torch.randn(15, 6), torch.arange(15) % 4, 0)
    whole, chunked = (gradients(net, Objective(make("nt_xent")), Ranks(), x, labels, c, memory) for c in (None, 3))
    for a, b in zip(whole, chunked, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-11)


def test_the_memory_of_a_large_batch_is_that_of_a_chunk():
    """The ConvNet on 256 images: chunks of 32 hold at a time about what a batch of 32 holds, not what 256 do."""
    torch.manual_seed(0)
    net = build_model(backbone="convnet", dim=16, freeze_bn=True)
    objective = Objective(make("multi_similarity", dim=16))

    def peak(batch, chunk):
        x, labels = torch.randint(0, 255, (batch, 3, 32, 32), dtype=torch.uint8), torch.arange(batch) % 4
        return peak_bytes(lambda: gradients(net, objective, Ranks(), x, labels, chunk))

    peak(32, None)  # first-call buffers of the libraries
    small, large, chunked = peak(32, None), peak(256, None), peak(256, 32)
    matrices = 16 * 4 * 256 * 256  # the loss's own, B x B
    assert chunked < 1.2 * small + matrices < large / 2


def test_a_run_in_chunks_is_the_run_of_whole_batches(tiny, tmp_path):
    words = tiny | {"loss": "nt_xent", "model.freeze_bn": True, "train.optimiser": "sgd", "lr": 1e-3, "epochs": 1}
    whole, chunked = (nearkin.train(words | more, runs=tmp_path) for more in ({}, {"train.chunk": 5}))
    assert whole.hash != chunked.hash
    one, two = (run.load("model.pt")["model"] for run in (whole, chunked))
    for key, value in one.items():
        torch.testing.assert_close(two[key], value, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"model.freeze_bn": False}, "train.chunk=4: the network's BatchNorm takes statistics of the whole batch"),
        ({"model.freeze_bn": True, "regulariser": "mixup"}, "train.chunk=4 does not go with mixup"),
        ({"train.chunk": 0}, "train.chunk=0: input should be greater than or equal to 1"),
    ],
)
def test_what_chunks_cannot_do_is_said(words, said, tiny, tmp_path):
    with pytest.raises(NearkinError, match=said):
        nearkin.train(tiny | {"loss": "contrastive", "train.chunk": 4} | words, runs=tmp_path)

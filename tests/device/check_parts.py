"""Every loss, miner, regulariser and method on a device that is not the CPU: equal numbers, one device, few waits.

Not collected by itself: test_device.py runs it in a process of its own; so does `pytest tests/device/check_parts.py`.
"""

from collections import Counter
from typing import Any

import pytest
import torch
from device.toy import TOY, Shell, on_toy, waited, without_float64
from losses.loss_cases import CASES, batch, case_id, make, miners_for
from torch import Tensor, nn

from nearkin import numerics
from nearkin.engine.gradient import batch_loss
from nearkin.engine.objective import Objective, build_objective
from nearkin.errors import NearkinError
from nearkin.memory import Memory
from nearkin.methods import DRML
from nearkin.pairs import Embedded, draw_one
from nearkin.registry import METHODS, MINERS, REGULARISERS
from nearkin.regularisers import Mixup

# Waits for the device in one call. The training loop itself has one, to read the value for the log (check_runs.py):
# a loss has at most 2 (the places of distances that cancel; the number of positives, of classes in the batch, or of
# samples that count), so that a step has at most 3.
LOSS_WAITS = 2
# A miner that lists triplets waits for their number, and where it reads the matrix of distances for the places of those
# that cancel. `all` lists the triplets of the first, second, ... positive one after another, so that nothing larger
# than (B, M) is in memory: it waits for each of these lists, for the positives and for their largest number.
MINER_WAITS = {"semihard": 2, "hard_floor": 2, "multi_similarity": 0}
POSITIVES = 3  # at most, in the batch of these tests


def many(classes: int = 4, dim: int = 6) -> tuple[Tensor, Tensor]:
    """16 samples of 4 classes, two of them equal."""
    z, _ = batch(16, dim, classes, dtype=torch.float32)
    z[5] = z[4]
    return z, torch.arange(16) // 4


def value_and_gradients(loss: nn.Module, call: Any, z: Tensor) -> list[Tensor | None]:
    """The value, then the gradients of embeddings and parameters, on the CPU."""
    z = z.clone().requires_grad_()
    value = call(z)
    gradients = torch.autograd.grad(value, [z, *loss.parameters()], allow_unused=True)
    assert all(g is None or g.device == z.device for g in gradients)
    return [None if x is None else x.detach().cpu() for x in (value, *gradients)]


def equal(found: list[Tensor | None], expected: list[Tensor | None]) -> bool:
    return all(
        (x is None and y is None) or (x is not None and y is not None and torch.equal(x, y))
        for x, y in zip(found, expected, strict=True)
    )


# -- the device ----------------------------------------------------------------------------------------------


def test_the_device_refuses_what_a_gpu_refuses():
    with on_toy():
        x = torch.ones(3, 2, device=TOY)
        assert isinstance(x, Shell)
        assert x.device == TOY
        cpu, index = torch.ones(3, 2), torch.zeros(1, dtype=torch.long, device=TOY)
        for mixed in (lambda: x + cpu, lambda: cpu.T @ x, lambda: torch.cat([x, cpu]), lambda: cpu[index]):
            with pytest.raises(RuntimeError, match="one device"):
                mixed()
        with pytest.raises(TypeError):
            x.numpy()
        with pytest.raises(RuntimeError, match="generator"):
            torch.rand(3, device=TOY, generator=torch.Generator())
        with without_float64(), pytest.raises(RuntimeError, match="no float64"):
            x.double()
        assert not waited()
        assert (x + torch.tensor(1.0)).sum().item() == 12  # a single number may come from the CPU
        assert x[torch.tensor([0, 2])].shape == (2, 2)  # and indices
        _ = x[x > 0], x.nonzero(), x.unique(), x.cpu(), bool(x.any()), x.tolist()
    assert waited() == {"_local_scalar_dense": 2, "mask as index": 1, "nonzero": 1, "_unique2": 1, "copy to the CPU": 2}


# -- losses and miners ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [6, 24])  # listed distances one by one, or from the matrix
@pytest.mark.parametrize(("name", "settings"), CASES, ids=case_id)
def test_a_loss_and_its_miners(name, settings, dim):
    z, y = many(dim=dim)
    for miner_name, miner in [("none", None), *miners_for(make(name, settings))]:

        def run(device: Any, miner: Any = miner) -> tuple[list[Tensor | None], Counter[str], Counter[str]]:
            loss = make(name, settings, dim=dim).to(device)
            here, labels = z.to(device), y.to(device)
            for _ in range(2):  # the first call of a loss checks the labels
                generator = torch.Generator().manual_seed(1)
                waited()
                tuples = miner(here, labels, generator=generator) if miner else None
                mined = waited()
                z_ = here.clone().requires_grad_()
                value = loss(z_, labels, tuples, generator=generator)
                gradients = torch.autograd.grad(value, [z_, *loss.parameters()], allow_unused=True)
                waits = waited()
            assert loss.active is None or loss.active.device == value.device
            everything = (value, loss.active, *gradients, *(tuples or ()))
            return [None if x is None else x.detach().cpu() for x in everything], mined, waits

        with on_toy():
            found, mined, waits = run(TOY)
        assert equal(found, run("cpu")[0]), miner_name
        assert waits.total() <= LOSS_WAITS, (miner_name, waits)
        bound = 2 + POSITIVES if miner_name == "all" else MINER_WAITS.get(miner_name, 1)
        assert mined.total() <= (bound if miner else 0), (miner_name, mined)


@pytest.mark.parametrize(("name", "settings"), CASES, ids=case_id)
def test_without_float64(name, settings, monkeypatch):
    """As on Apple's GPU: no float64 is made on the device. Draws that are float64 elsewhere come out the same."""
    monkeypatch.setattr(numerics, "WITHOUT_FLOAT64", {"toy"})
    z, y = many()
    for miner_name, miner in [("none", None), *miners_for(make(name, settings))]:

        def run(device: Any, miner: Any = miner) -> list[Tensor | None]:
            objective = Objective(make(name, settings), miner).to(device)
            generator, labels = torch.Generator().manual_seed(2), y.to(device)
            return value_and_gradients(objective, lambda z: objective(z, labels, generator), z.to(device))

        with on_toy(), without_float64():
            found = run(TOY)
        assert equal(found, run("cpu")), miner_name


def test_draws_come_from_the_generator_on_every_device():
    mask = torch.rand(50, 20, generator=torch.Generator().manual_seed(0)) < 0.2
    expected = draw_one(mask, torch.Generator().manual_seed(3))
    with on_toy():
        found = draw_one(mask.to(TOY), torch.Generator().manual_seed(3))
        assert not waited()
        assert torch.equal(found.cpu(), expected)
        torch.manual_seed(4)
        without = draw_one(mask.to(TOY), None).cpu()
    torch.manual_seed(4)
    assert torch.equal(without, draw_one(mask, None))


def test_labels_are_checked_once_per_loss():
    with on_toy():
        loss = make("softmax", classes=4).to(TOY)
        z = torch.ones(3, 6, device=TOY)
        with pytest.raises(NearkinError, match="labels run from 0 to 4"):
            loss(z, torch.tensor([0, 1, 4], device=TOY))
        loss(z, torch.tensor([0, 1, 3], device=TOY))
        waited()
        loss(z, torch.tensor([0, 1, 2], device=TOY))
        assert not waited()


# -- what stands around a loss -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", REGULARISERS.names())
def test_a_regulariser(name):
    z, y = many()
    needs = REGULARISERS[name].needs
    miner = next((m for m in MINERS.names() if MINERS[m].gives is needs and m != "all"), None)

    def run(device: Any) -> list[Tensor | None]:
        objective = build_objective(
            loss=("triplet", {}), miner=miner and (miner, {}), regularisers=[(name, {})], num_classes=4, dim=6
        ).to(device)
        generator, labels = torch.Generator().manual_seed(5), y.to(device)
        mix = objective.mix(len(z), 1, generator)
        assert (mix is not None) == issubclass(REGULARISERS[name], Mixup)
        return value_and_gradients(
            objective, lambda z: objective(Embedded(mix(0, z) if mix else z, mix=mix), labels, generator), z.to(device)
        )

    with on_toy():
        found = run(TOY)
    assert equal(found, run("cpu"))


@pytest.mark.parametrize("name", METHODS.names())
def test_a_method(name):
    assert METHODS[name] is DRML, "a new method: say here what it reads"
    z, y = many()
    generator = torch.Generator().manual_seed(6)
    parts, nodes = torch.randn(16, 3, 5, generator=generator), torch.randn(16, 3, 4, generator=generator)

    def run(device: Any) -> list[Tensor | None]:
        torch.manual_seed(0)
        branches = [build_objective(loss=("proxy_anchor", {}), num_classes=4, dim=4) for _ in range(3)]
        method = DRML(build_objective(loss=("proxy_anchor", {}), num_classes=4, dim=6), branches, 5, 4).to(device)
        extras, labels = {"nodes": nodes.to(device), "parts": parts.to(device)}, y.to(device)
        for _ in range(2):
            waited()
            method(Embedded(z.to(device), extras), labels)
            waits = waited()
        assert waits.total() <= 1 + 4, waits  # the sizes of the branches; four losses
        found = value_and_gradients(method, lambda z: method(Embedded(z, extras), labels), z.to(device))
        return [*found, method.filled.cpu()]

    with on_toy():
        found = run(TOY)
    assert equal(found, run("cpu"))


@pytest.mark.parametrize(("name", "settings"), [c for c in CASES if not make(*c).why_no_references], ids=case_id)
def test_a_memory(name, settings):
    z, y = many()

    def run(device: Any) -> list[Tensor | None]:
        objective = Objective(make(name, settings)).to(device)
        memory, labels = Memory(24, 6, device=device), y.to(device)
        for step in range(3):
            memory.add(z.to(device) * (step + 1) + step, labels, step)
        here = value_and_gradients(
            objective, lambda z: objective(z, labels, torch.Generator().manual_seed(7), memory), z.to(device)
        )
        told = memory.describe(4)
        return [*here, torch.tensor([told["rows"], told["classes"], told["balance"], told["age"]])]

    with on_toy():
        found = run(TOY)
    assert equal(found, run("cpu"))


@pytest.mark.parametrize("chunk", [None, 5])
def test_chunks(chunk):
    images, y = torch.randn(16, 6, generator=torch.Generator().manual_seed(8)), torch.arange(16) // 4

    def run(device: Any) -> list[Tensor | None]:
        torch.manual_seed(0)
        network = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 6)).to(device)
        objective = Objective(make("multi_similarity")).to(device)
        loss, _, finish = batch_loss(
            lambda x, mix: Embedded(network(x)),
            objective,
            images.to(device),
            y.to(device),
            chunk=chunk,
            mix=None,
            generator=torch.Generator(),
            memory=None,
            reseed=lambda number: None,
        )
        loss.backward()
        finish()
        return [loss.detach().cpu(), *(p.grad.cpu() for p in network.parameters())]

    with on_toy():
        found = run(TOY)
    assert equal(found, run("cpu"))

"""Cross-batch memory: only more references. Shapes: B anchors, M rows of memory."""

import pytest
import torch
from losses.loss_cases import CASES, batch, case_id, make, miners_for

import nearkin
from nearkin.engine.objective import Objective, build_objective
from nearkin.errors import NearkinError
from nearkin.memory import Memory
from nearkin.pairs import Pairs
from nearkin.registry import LOSSES

TAKES = [case for case in CASES if not make(*case).why_no_references]
REFUSES = [case for case in CASES if case not in TAKES]
takers = pytest.mark.parametrize(("name", "settings"), TAKES, ids=case_id)


def seeded():
    return torch.Generator().manual_seed(7)


def objectives(name, settings):
    """The loss alone, and with every miner that fits it."""
    loss = make(name, settings).double()
    return [Objective(loss), *(Objective(loss, miner) for _, miner in miners_for(loss))]


@takers
def test_an_empty_memory_changes_nothing(name, settings):
    z, y = batch()
    for objective in objectives(name, settings):
        assert torch.equal(objective(z, y, seeded(), Memory(20, 6)), objective(z, y, seeded()))


@takers
def test_memory_is_a_longer_reference_set(name, settings):
    """The rest of an epoch remembered = the loss of the batch against batch and rest, in value and gradient; the
    remembered rows have no gradient."""
    z, y = batch(30)
    here, rest = slice(0, 12), slice(12, 30)
    for objective in objectives(name, settings):
        memory = Memory(18, 6)
        memory.z = memory.z.double()
        memory.add(z[rest], y[rest], step=1)
        anchors, twin = (z[here].clone().requires_grad_() for _ in range(2))
        found = objective(anchors, y[here], seeded(), memory)
        longer = Pairs(
            twin, y[here], references=torch.cat([twin, z[rest]]), reference_labels=y, self_index=torch.arange(12)
        )
        expected = objective(longer, y[here], seeded())
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
        slopes = torch.autograd.grad(found, anchors), torch.autograd.grad(expected, twin)
        torch.testing.assert_close(*slopes, rtol=1e-10, atol=1e-12)
    alone = objectives(name, settings)[0]
    assert alone(z[here], y[here], seeded(), memory) != alone(z[here], y[here], seeded())  # it is not left unread


@pytest.mark.parametrize(("name", "settings"), REFUSES, ids=case_id)
def test_the_reason_of_a_refusal_is_true(name, settings):
    """A loss with class vectors of its own gives the same whatever the references are; the others need a square."""
    z, y = batch()
    loss = make(name, settings).double()
    referring = Pairs(z, y, references=torch.cat([z, 3 - z]), reference_labels=torch.cat([y, y]))
    with pytest.raises(NearkinError, match="takes neither a memory nor ref_emb"):
        loss(z, y, ref_emb=z + 1, ref_labels=y)
    if loss.needs_square:
        with pytest.raises(NearkinError, match="takes neither a memory nor ref_emb"):
            loss(referring)
    else:
        assert "class vectors of its own" in loss.why_no_references
        assert torch.equal(loss(referring), loss(z, y))


REFUSED = [n for n in LOSSES.names() if (n, {}) not in TAKES]


@pytest.mark.parametrize("name", REFUSED)
def test_a_loss_without_use_for_it_says_so_when_the_run_is_built(name, tiny, tmp_path):
    why = "with each other" if LOSSES[name].needs_square else "class vectors of its own"
    with pytest.raises(NearkinError, match=rf"memory.size does not go with .*{why}.*; losses that take .*: angular"):
        nearkin.train(tiny | {"loss": name, "memory.size": 10}, runs=tmp_path)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ({"loss": "npair", "loss.pairing": "class"}, "from the batch"),
        ({"loss": "proxy_repel"}, "loss.relations above 0"),
        ({"loss": "contrastive", "regulariser": "mixup"}, "no one label"),
        ({"loss": "contrastive", "method": "drml"}, "method drml"),
        ({"loss": "pytorch_metric_learning.losses.NTXentLoss"}, "another library"),
        ({"loss": "contrastive", "miner": "pytorch_metric_learning.miners.MultiSimilarityMiner"}, "another library"),
    ],
)
def test_other_combinations_that_make_no_sense(words, why, tiny, tmp_path):
    with pytest.raises(NearkinError, match=rf"memory.size does not go with .*{why}"):
        nearkin.train(tiny | words | {"memory.size": 10}, runs=tmp_path)


def test_a_memory_larger_than_the_machine_is_refused_with_the_sum(tiny, tmp_path):
    with pytest.raises(NearkinError, match=r"memory.size=10+: 10+ embeddings x 16 dimensions x 4 bytes = [\d.]+ GiB, "):
        nearkin.train(tiny | {"loss": "contrastive", "memory.size": 10**13}, runs=tmp_path)


def test_a_negative_size_is_refused(tiny, tmp_path):
    with pytest.raises(NearkinError, match=r"memory.size=-1: .*greater than or equal to 0"):
        nearkin.train(tiny | {"loss": "contrastive", "memory.size": -1}, runs=tmp_path)


@pytest.mark.parametrize("batches", [[3], [3, 3], [3, 3, 3], [5, 1, 4], [12], [2, 12], [5, 5, 5, 5]])
def test_the_oldest_rows_go_first(batches):
    """Against a list that drops from its front."""
    memory, kept, number = Memory(7, 2), [], 0
    for step, size in enumerate(batches):
        rows = list(range(number, number + size))
        number += size
        memory.add(torch.tensor([[r, -r] for r in rows]).float(), torch.tensor(rows) % 3, step)
        kept = (kept + [(r, r % 3, step) for r in rows])[-7:]
    held = sorted(
        zip(
            memory.z[: len(memory), 0].tolist(),
            memory.labels[: len(memory)].tolist(),
            memory.step[: len(memory)].tolist(),
            strict=True,
        )
    )
    assert held == kept


def test_what_the_log_says():
    memory = Memory(8, 2)
    assert memory.describe(step=3) == {"rows": 0}
    memory.add(torch.zeros(4, 2), torch.tensor([0, 0, 1, 1]), step=1)
    memory.add(torch.zeros(2, 2), torch.tensor([2, 2]), step=4)
    assert memory.describe(step=4) == {"rows": 6, "classes": 3, "balance": 1.0, "age": 2.0}
    memory.add(torch.zeros(2, 2), torch.tensor([2, 2]), step=4)
    assert memory.describe(step=4)["balance"] < 1


class Stop(Exception):
    pass


@pytest.mark.parametrize(
    "words",
    [
        {"loss": "margin", "miner": "distance_weighted", "sampler": "ddm"},
        {"loss": "proxy_repel", "loss.scale": "mean", "loss.relations": 1.0, "sampler": "balanced"},
    ],
)
def test_a_run_with_memory_and_bank_resumes_to_the_bit(words, tiny, tmp_path, monkeypatch):
    monkeypatch.setattr("nearkin.engine.loop.CHECKPOINT_SECONDS", 0)
    words = tiny | words | {"memory.size": 40}
    straight = nearkin.train(words, runs=tmp_path / "straight")
    stopped = tmp_path / "stopped"
    steps = max(line.get("step", 0) for line in straight.log_lines())
    for stop in (2, steps // 2 + 1):  # in the warm-up, and with the memory in use

        def watch(entry, stop=stop):
            if entry.get("step") == stop:
                raise Stop

        with pytest.raises(Stop):
            nearkin.train(words, runs=stopped, watch=watch)
    resumed = nearkin.train(words, runs=stopped)
    one, two = (run.load("model.pt") for run in (straight, resumed))
    for part in ("model", "objective"):
        assert all(torch.equal(one[part][k], two[part][k]) for k in one[part])
    logged = [line["memory"] for line in resumed.log_lines() if "memory" in line]
    assert [m["rows"] for m in logged] == [40, 40]
    plain = nearkin.train(words | {"memory.size": 0}, runs=tmp_path / "plain")
    with_memory, without = ([line["loss"] for line in run.log_lines() if "step" in line] for run in (straight, plain))
    assert [a == b for a, b in zip(with_memory, without, strict=True)][: steps // 2] == [True] * (steps // 2)
    assert with_memory[-1] != without[-1]  # used after the warm-up of one epoch


def test_memory_waits_for_its_warm_up(tiny, tmp_path):
    words = tiny | {"loss": "contrastive", "epochs": 1}
    late, never = (nearkin.train(words | {"memory.size": size}, runs=tmp_path).load("model.pt") for size in (40, 0))
    assert all(torch.equal(late["model"][k], never["model"][k]) for k in never["model"])


def test_every_loss_is_on_one_side():
    assert {"contrastive", "triplet", "margin", "multi_similarity", "npair", "nt_xent", "fastap"}.isdisjoint(REFUSED)
    assert {"proxy_anchor", "proxy_repel", "softmax", "hist", "lifted_structure", "quadruplet"} <= set(REFUSED)
    assert [settings for name, settings in TAKES if name == "proxy_repel"] == [
        settings for name, settings in CASES if name == "proxy_repel" and "relations" in settings
    ]
    assert build_objective(loss=("margin", {}), num_classes=4, dim=6).mixes is False

"""N processes give the gradient, the embeddings and the run that one process gives (contract 9)."""

import pytest
import torch
from ranks import spawn
from torch import nn

import nearkin
from nearkin.engine.distributed import Ranks, SyncedBatchNorm, acting_as, synchronise
from nearkin.errors import NearkinError


@pytest.mark.parametrize("world", [2, 3])
def test_every_loss_has_the_gradient_of_one_process(world, tmp_path):
    """float64; slices of different sizes; BatchNorm synchronised; in one pass and in two. Two processes have every
    variant and miner, three have every loss."""
    found = spawn("every_gradient", world, tmp_path)
    assert found["codes"] == [0] * world
    for worst in found["answers"]:
        assert "error" not in worst, worst["error"]
        assert len(worst) > 3 * len(nearkin.registry.LOSSES.names())
        assert {name: error for name, error in worst.items() if not error < 1e-6} == {}


def test_embedding_is_shared_out_and_the_same_to_the_bit(tmp_path):
    counts = [1, 255, 256, 700]  # fewer batches than processes, and more
    found = spawn("sharded", 2, tmp_path, counts)
    assert found["answers"] == [dict.fromkeys(counts, True)] * 2


def test_batch_norm_in_half_precision_has_the_statistics_of_all_slices(tmp_path):
    for answer in spawn("half_norm", 2, tmp_path)["answers"]:
        assert "error" not in answer, answer["error"]
        assert answer["values"] < 0.02  # the digits of bfloat16
        assert answer["mean"] < 1e-5
        assert answer["var"] < 1e-4


def test_only_batch_norm_that_trains_is_synchronised_and_unknown_kinds_are_refused():
    class WithActivation(nn.BatchNorm2d):
        pass

    frozen = nn.Sequential(WithActivation(3).eval(), nn.BatchNorm2d(3).eval(), nn.BatchNorm2d(3))
    with acting_as(Ranks(0, 2)):
        synchronise(frozen)
    assert [type(norm) for norm in frozen] == [WithActivation, nn.BatchNorm2d, SyncedBatchNorm]
    said = r"WithActivation is a BatchNorm that cannot be synchronised.*freeze_bn"
    with acting_as(Ranks(0, 2)), pytest.raises(NearkinError, match=said):
        synchronise(nn.Sequential(WithActivation(3)))


def weights(runs, run_hash):
    return nearkin.runs.store.Store(runs).run(run_hash).load("model.pt")["model"]


def test_a_run_of_two_processes_is_that_of_one_also_when_one_dies(tiny, tmp_path):
    words = tiny | {
        "loss": "nt_xent",
        "train.optimiser": "sgd",
        "lr": 1e-3,
        "epochs": 1,
        "train.batch": 20,
        "memory.size": 32,
        "memory.warmup": 0,
        "train.average": 0.5,
        "train.blend": 0.7,
    }
    alone = nearkin.train(words, runs=tmp_path / "one")
    died = spawn("trained", 2, tmp_path, words, str(tmp_path / "two"), 4)
    assert died["codes"][1] == 9
    assert "another process of this job has ended" in died["answers"][0]["error"]
    assert not nearkin.runs.store.Store(tmp_path / "two").run(alone.hash).done
    resumed = spawn("trained", 2, tmp_path, words, str(tmp_path / "two"), None)
    straight = spawn("trained", 2, tmp_path, words, str(tmp_path / "three"), None)
    assert [a["hash"] for a in resumed["answers"] + straight["answers"]] == [alone.hash] * 4
    one, two, three = (weights(tmp_path / name, alone.hash) for name in ("one", "two", "three"))
    assert all(torch.equal(two[key], three[key]) for key in one)  # resumed = never stopped, to the bit
    start = nearkin.train(words | {"epochs": 0}, runs=tmp_path / "start")
    before = weights(tmp_path / "start", start.hash)
    moved = torch.cat([(one[key] - before[key]).flatten().double() for key in one]).norm()
    apart = torch.cat([(one[key] - two[key]).flatten().double() for key in one]).norm()
    assert apart < 1e-3 * moved  # float32 sums in another order
    assert resumed["answers"][0]["test"] == straight["answers"][0]["test"]
    lines = nearkin.runs.store.Store(tmp_path / "two").run(alone.hash).log_lines()
    steps = [line["step"] for line in lines if "step" in line]
    assert steps == list(range(1, len(steps) + 1))  # one process writes the log


@pytest.mark.parametrize("world", [1, 2, 3, 7])
@pytest.mark.parametrize("count", [1, 5, 7, 21])
def test_slices_are_the_whole_in_order(world, count):
    slices = [list(range(count))[Ranks(r, world).mine(count)] for r in range(world)]
    assert [row for part in slices for row in part] == list(range(count))
    assert max(map(len, slices)) - min(map(len, slices)) <= 1
    assert [len(s) for s in slices] == Ranks(0, world).sizes(count)


def test_more_processes_than_images_of_a_batch_are_refused():
    Ranks(0, 16).check(16)
    with pytest.raises(NearkinError, match="17 processes share batches of 16 images"):
        Ranks(0, 17).check(16)

"""Whole runs with the method DRML: resuming, the cut, chunks, what is refused; and the ready specs."""

from pathlib import Path

import pytest
import torch

import nearkin
from nearkin.config.spec import make_spec, read_spec
from nearkin.engine.objective import build_objective
from nearkin.errors import NearkinError
from nearkin.registry import LOSSES
from nearkin.runs.defaults import resolve


class Stop(Exception):
    pass


def weights(run):
    state = run.load("model.pt")
    return {f"{part}.{k}": v for part in ("model", "objective") for k, v in state[part].items()}


@pytest.mark.parametrize(
    "words",
    [
        {"loss": "proxy_anchor"},
        {"loss": "margin", "miner": "distance_weighted", "model.parts": 2, "cut": "all", "method.w_rep": 1.0},
        {"loss": "triplet", "miner": "random", "train.schedule": "cosine"},
    ],
    ids=lambda words: words["loss"],
)
def test_a_run_stopped_and_resumed_equals_one_that_was_not(tiny, tmp_path, words, monkeypatch):
    monkeypatch.setattr("nearkin.engine.loop.CHECKPOINT_SECONDS", 0)  # a checkpoint after every step
    words = tiny | {"method": "drml"} | words
    straight = nearkin.train(words, runs=tmp_path / "straight")
    steps = max(line.get("step", 0) for line in straight.log_lines())

    def watch(entry):
        if entry.get("step") == steps // 2 + 1:
            raise Stop

    with pytest.raises(Stop):
        nearkin.train(words, runs=tmp_path / "stopped", watch=watch)
    resumed = nearkin.train(words, runs=tmp_path / "stopped")
    expected, found = weights(straight), weights(resumed)
    assert expected.keys() == found.keys()
    assert all(torch.equal(expected[k], found[k]) for k in expected)
    assert resumed.result["test"] == straight.result["test"]
    branches = {k.split(".")[2] for k in found if k.startswith("objective.branches")}
    assert branches == ({str(k) for k in range(words.get("model.parts", 4))} if words["loss"] != "triplet" else set())


@pytest.mark.parametrize("name", LOSSES.names())
def test_every_loss_can_be_its_base(name, tiny, tmp_path):
    words = tiny | {"method": "drml", "loss": name, "epochs": 1, "train.batches_per_epoch": 2}
    run = nearkin.train(words, runs=tmp_path)
    assert all(torch.isfinite(value).all() for value in weights(run).values())
    (end,) = [line for line in run.log_lines() if "epoch_end" in line]
    assert len(end["branches"]) == 4
    assert sum(end["branches"]) == pytest.approx(1, abs=1e-3)


def test_every_part_of_a_run_is_trained(tiny, tmp_path):
    words = tiny | {"method": "drml", "loss": "proxy_anchor", "model.parts": 2}
    trained, start = (weights(nearkin.train(words | more, runs=tmp_path, epochs=1)) for more in ({}, {"lr": 1e-30}))
    still = {k for k in start if k.startswith("model.head.") and torch.equal(start[k], trained[k])}
    assert not still
    for name in ("whole.loss.proxies", "branches.0.loss.proxies", "branches.1.loss.proxies", "decoder.weight"):
        assert not torch.equal(start[f"objective.{name}"], trained[f"objective.{name}"])
    fresh = resolve(make_spec(words))
    assert (fresh.model.head, fresh.method.name) == ("drml", "drml")


def test_chunks_give_the_run_of_the_whole_batch(tiny, tmp_path):
    plain = {"train.optimiser": "sgd", "epochs": 1}  # Adam would blow rounding up to whole steps
    words = tiny | plain | {"method": "drml", "loss": "proxy_anchor", "cut": "all"}
    whole, cut = (weights(nearkin.train(words | more, runs=tmp_path)) for more in ({}, {"train.chunk": 5}))
    for name, expected in whole.items():
        torch.testing.assert_close(cut[name], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"model.parts": 3}, r"model\.parts=3 must divide the \d+ features .* model\.dim=16; nearest that do: 2, 4"),
        ({"dim": 18}, r"model\.parts=4 must divide .* or model\.dim=16"),
        ({"model.head": "linear"}, "drml"),
        ({"loss": "triplet", "memory.size": 64}, r"memory\.size does not go with method drml"),
        ({"regulariser": "mixup"}, "mixup does not go with method drml"),
        ({"method.w_rap": 1.0}, "did you mean w_rep"),
    ],
    ids=str,
)
def test_bad_words_of_a_run_are_refused(tiny, tmp_path, words, message):
    with pytest.raises(NearkinError, match=message):
        nearkin.train(tiny | {"method": "drml"} | words, runs=tmp_path)


STUDIES = Path(__file__).parents[2] / "studies" / "drml"


@pytest.mark.parametrize(
    ("name", "loss", "rates"),
    [
        ("cub_proxy_anchor", {"alpha": 64, "delta": 0.2}, (5e-5, 1e-3, 1e-2)),
        ("cub_proxy_anchor_baseline", {"alpha": 32, "delta": 0.1}, (1e-4, 1e-4, 1e-2)),
        ("cub_margin", {"margin": 0.2, "beta": 1.2}, (1e-5, 1e-4, 1e-2)),
        ("cub_triplet", {"margin": 1.0, "squared": False, "reduction": "mean_active"}, (1e-5, 1e-4, None)),
        ("cub_cosface", {"margin": 0.35, "scale": 64}, (1e-5, 1e-4, 1e-2)),
    ],
)
def test_ready_specs_have_the_published_settings(name, loss, rates):
    spec = read_spec(STUDIES / f"{name}.yaml")
    train, model = spec.train, spec.model
    groups = {group: settings.lr for group, settings in train.groups.items()}
    assert spec.loss.params == loss
    assert (train.lr, groups["head"], groups.get("loss")) == rates
    assert (train.optimiser, train.weight_decay, train.warmup) == ("adamw", 1e-4, 1)
    assert (train.schedule, train.step, train.gamma, train.clip, train.clip_by) == ("step", 10, 0.5, 10, "norm")
    assert (model.backbone, model.dim, model.pool, model.freeze_bn) == ("bn_inception", 512, "both", True)
    if name.endswith("baseline"):
        assert spec.method is None
    else:
        assert (spec.method.name, model.head, model.parts, groups["decoder"]) == ("drml", "drml", 4, rates[1])
        built = build_objective(
            loss=(spec.loss.name, spec.loss.params),
            miner=(spec.miner.name, spec.miner.params) if spec.miner else None,
            num_classes=100,
            dim=128,
        )
        assert bool(built.parameter_groups()) == (rates[2] is not None)

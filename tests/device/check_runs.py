"""Whole runs on a device that is not the CPU: the loop with every sampler, embedding, evaluation; equal numbers.

Not collected by itself: test_device.py runs it in a process of its own; so does `pytest tests/device/check_runs.py`.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from device.toy import on_toy, waited, without_float64
from tiny import TINY

import nearkin
from nearkin import numerics
from nearkin.engine.precision import trap
from nearkin.registry import SAMPLERS

WORDS = {k: v for k, v in TINY.items() if k != "sampler.per_class"}
WORDS |= {
    "data.classes": 12,
    "data.per_class": 8,
    "data.size": 16,
    "dim": 8,
    "epochs": 1,
    "train.batches_per_epoch": 3,
    "loss": "multi_similarity",
}


def trained(device: str, words: dict[str, Any], folder: Path, **settings: Any) -> Any:
    return nearkin.train(WORDS | {"train.device": device} | words, runs=folder / device, **settings)


def numbers(run: Any) -> dict[str, Any]:
    """What a run has to tell, without times."""
    log = run.path / "log.jsonl"  # of an untrained run there is none
    entries = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    for entry in entries:
        entry.pop("images_per_s", None)
    final = run.read_json("final.json")
    space = {key: value for key, value in final["train"].items() if key != "rho"}  # of eigenvalues near 0: last digits
    return {
        "log": entries,
        "validation": final["validation"],
        "train": space,
        "test": run.result["test"],
        "embeddings": np.load(run.path / "validation.npz")["embeddings"].tolist(),
    }


def check(words: dict[str, Any], folder: Path) -> None:
    with on_toy():
        found = numbers(trained("toy", words, folder))
    assert found == numbers(trained("cpu", words, folder))


@pytest.mark.parametrize("name", SAMPLERS.names())
def test_every_sampler(name, tmp_path):
    check({"sampler": name}, tmp_path)


@pytest.mark.parametrize(
    "words",
    [
        {"loss": "contrastive", "memory.size": 40, "memory.warmup": 0},
        {"model.freeze_bn": True, "train.chunk": 5},
        {"loss": "hist"},
        {"loss": "margin", "miner": "distance_weighted", "regulariser": "rho"},
        {"loss": "triplet", "miner": "semihard", "regulariser": "mixup", "train.clip": 1.0, "train.clip_by": "norm"},
        {"method": "drml", "loss": "proxy_anchor", "model.parts": 2, "train.optimiser": "sgd"},
        {"model.cut": "block2", "train.optimiser": "rmsprop", "train.curve": True},
        {"model.init": "pca", "loss": "proxy_anchor"},
        {"epochs": 0},
    ],
    ids=lambda words: ",".join(words),
)
def test_a_run(words, tmp_path):
    check(words, tmp_path)


def waits_of(words: dict[str, Any], folder: Path) -> tuple[Any, set[int]]:
    """A run, and how often its steps wait for the device, but for the first and the last of an epoch."""
    told = []

    def watch(entry: dict[str, Any]) -> None:
        if "step" in entry:
            told.append((entry["step"] % entry["steps_per_epoch"], waited().total()))

    with on_toy():
        run = trained("toy", words, folder, watch=watch)
    return run, {count for place, count in told if place > 1}


def test_a_step_waits_once_for_the_log(tmp_path):
    """Beside what its loss and miner wait for (check_parts.py): also with a clipped gradient and a memory."""
    assert waits_of({}, tmp_path / "plain")[1] == {1}
    words = {"train.clip": 1.0, "train.clip_by": "norm", "loss": "contrastive", "memory.size": 30, "memory.warmup": 0}
    assert waits_of(words, tmp_path / "more")[1] == {2}  # one is contrastive's


@pytest.mark.skipif(trap("fp16") is not None, reason="fp16 does not work on this CPU")
def test_fp16(tmp_path):
    """The scaler waits to learn whether a gradient overflowed, and the log for the scale."""
    found, waits = waits_of({"train.amp": "fp16"}, tmp_path)
    assert waits == {3}
    assert numbers(found) == numbers(trained("cpu", {"train.amp": "fp16"}, tmp_path))
    assert all("scale" in entry for entry in numbers(found)["log"] if "step" in entry)


def test_no_float64_is_made_where_there_is_none(tmp_path, monkeypatch):
    monkeypatch.setattr(numerics, "WITHOUT_FLOAT64", {"toy"})
    words = {"loss": "margin", "miner": "distance_weighted", "sampler": "frd", "memory.size": 40, "memory.warmup": 0}
    with on_toy(), without_float64():
        found = numbers(trained("toy", words, tmp_path))
    assert found == numbers(trained("cpu", words, tmp_path))


def test_it_goes_on_on_another_device(tmp_path, monkeypatch):
    """Begun on one, stopped, ended on the other: as if it had never moved."""

    def stop(entry: dict[str, Any]) -> None:
        if entry.get("step") == 4:
            raise KeyboardInterrupt

    words = {
        "train.batches_per_epoch": 5,
        "memory.size": 30,
        "memory.warmup": 0,
        "loss": "contrastive",
        "sampler": "gc",
    }
    whole = numbers(trained("cpu", words, tmp_path))
    for first, second in (("cpu", "toy"), ("toy", "cpu")):
        with on_toy():
            runs = tmp_path / f"from {first}"
            with pytest.raises(KeyboardInterrupt):
                nearkin.train(WORDS | words | {"train.device": first}, runs=runs, watch=stop)
            assert numbers(nearkin.train(WORDS | words | {"train.device": second}, runs=runs)) == whole


def test_embedding_and_evaluation(tmp_path):
    run = trained("cpu", {}, tmp_path)
    z = torch.randn(40, 8, generator=torch.Generator().manual_seed(0))
    labels = torch.arange(40) // 4
    images = torch.zeros(3, 32, 32, dtype=torch.uint8).numpy().transpose(1, 2, 0)
    with on_toy():
        found = nearkin.evaluate(z.to("toy"), labels.to("toy")).metrics
        embedded = nearkin.load(run.path, device="toy").embed([images] * 3)
    assert found == nearkin.evaluate(z, labels).metrics
    assert np.array_equal(embedded, nearkin.load(run.path, device="cpu").embed([images] * 3))

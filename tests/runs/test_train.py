"""One run end to end: what is stored, what is chosen, and that stopping changes nothing (contracts 7, 8, 12)."""

import json
import os
import random
import signal
import subprocess
import sys

import numpy as np
import pytest
import torch

import nearkin
from nearkin.config.settings import TrainSpec
from nearkin.config.spec import make_spec
from nearkin.engine.batches import seed_of
from nearkin.engine.loop import mean_cosine_distance
from nearkin.engine.objective import build_objective
from nearkin.engine.optimise import make_optimiser, schedule
from nearkin.errors import NearkinError
from nearkin.numerics import unit
from nearkin.runs.defaults import resolve, spare_few
from nearkin.runs.embed import load_model, rebuild
from nearkin.runs.prepare import prepare, read_data
from nearkin.runs.store import Run


def weights(run):
    state = run.load("model.pt")
    return {f"{part}.{k}": v for part in ("model", "objective") for k, v in state[part].items()}


def same(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[k], b[k]) for k in a)


def test_a_run_is_stored_whole(tiny, tmp_path):
    run = nearkin.train(tiny, runs=tmp_path)
    files = {
        "spec.yaml",
        "split.json",
        "environment.json",
        "log.jsonl",
        "model.pt",
        "validation.npz",
        "final.json",
        "embeddings.npz",
        "test.parquet",
        "per_query.parquet",
        "result.json",
        "files.json",
        "lock",
    }
    assert {p.name for p in run.path.iterdir()} == files
    assert run.spec.hash(run.result["data_hash"], prepare(run.spec).split.hash()) == run.hash
    with np.load(run.path / "embeddings.npz") as stored:
        again = nearkin.evaluate(stored["embeddings"], stored["labels"]).metrics
    assert again == pytest.approx(run.result["test"])
    assert run.result["rule"].startswith("best epoch on held-out training classes")
    best = max((line for line in run.log_lines() if "validation" in line), key=lambda x: x["validation"]["map_at_r"])
    assert run.result["epoch"] == best["epoch_end"]
    assert run.result["validation"] == best["validation"]


def test_the_same_command_twice_is_skipped(tiny, tmp_path):
    first = nearkin.train(tiny, runs=tmp_path)
    before = first.path.stat().st_mtime_ns, (first.path / "result.json").stat().st_mtime_ns
    second = nearkin.train(tiny, runs=tmp_path)
    assert second.path == first.path
    assert (second.path.stat().st_mtime_ns, (second.path / "result.json").stat().st_mtime_ns) == before


def test_two_runs_of_one_seed_are_equal_and_of_two_seeds_are_not(tiny, tmp_path):
    a, b = (nearkin.train(tiny, runs=tmp_path / name) for name in "ab")
    c = nearkin.train(tiny, runs=tmp_path, seed=1)
    assert same(weights(a), weights(b))
    assert not same(weights(a), weights(c))


def test_training_leaves_no_global_trace(tiny, tmp_path):
    torch.manual_seed(5)
    np.random.seed(5)
    random.seed(5)
    before = torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate()
    nearkin.train(tiny, runs=tmp_path)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (np.random.get_state()[1] == before[1]).all()
    assert random.getstate() == before[2]
    assert not torch.are_deterministic_algorithms_enabled()


class Stop(Exception):
    pass


@pytest.mark.parametrize(
    "method",
    [
        {"loss": "proxy_anchor"},
        {"loss": "triplet", "miner": "random"},
        {"loss": "hist", "train.warmup": 1, "train.warmup_counts": False},
        {"loss": "multi_similarity", "miner": "multi_similarity", "train.schedule": "cosine"},
    ],
    ids=lambda words: words["loss"],
)
def test_stopped_at_any_step_equals_never_stopped(tiny, tmp_path, method, monkeypatch):
    monkeypatch.setattr("nearkin.engine.loop.CHECKPOINT_SECONDS", 0)  # a checkpoint after every step
    words = tiny | method
    straight = nearkin.train(words, runs=tmp_path / "straight")
    steps = max(line.get("step", 0) for line in straight.log_lines())
    for stop in (steps // 2 - 1, steps):  # inside and at the end of an epoch

        def watch(entry, stop=stop):
            if entry.get("step") == stop:
                raise Stop

        runs = tmp_path / f"stop{stop}"
        with pytest.raises(Stop):
            nearkin.train(words, runs=runs, watch=watch)
        resumed = nearkin.train(words, runs=runs)
        assert same(weights(resumed), weights(straight))
        assert resumed.result["test"] == straight.result["test"]
        numbers = [line["step"] for line in resumed.log_lines() if "step" in line]
        assert numbers == list(range(1, steps + 1))  # the log was cut back to the checkpoint


KILLED = """
import sys, torch
torch.set_num_threads(1)
import nearkin, nearkin.engine.loop
nearkin.engine.loop.CHECKPOINT_SECONDS = 0.05
nearkin.train(eval(sys.argv[1]), runs=sys.argv[2])
"""


@pytest.mark.slow
def test_killed_at_twenty_random_moments(tmp_path):
    """In processes of their own, from the start of Python on; tests/runs/test_kills.py strikes at chosen moments."""
    words = {"dataset": "glyphs", "dim": 64, "epochs": 24, "train.device": "cpu"}
    straight = nearkin.train(words, runs=tmp_path / "straight")
    command = [sys.executable, "-c", KILLED, repr(words), str(tmp_path / "killed")]
    rng = random.Random(0)
    for _ in range(20):
        child = subprocess.Popen(command)
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(rng.uniform(0, 6))
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
    subprocess.run(command, check=True)
    killed = Run(tmp_path / "killed" / straight.hash)
    assert same(weights(killed), weights(straight))


def test_untrained_networks_have_their_words(tiny, tmp_path):
    random_head = nearkin.train(tiny | {"epochs": 0}, runs=tmp_path)
    pooled = nearkin.train(tiny | {"epochs": 0, "model.head": "none"}, runs=tmp_path)
    widths = [np.load(run.path / "embeddings.npz")["embeddings"].shape[1] for run in (random_head, pooled)]
    assert widths == [16, rebuild(pooled.spec).backbone.features]
    assert random_head.result["epochs_trained"] == 0


def test_patience_stops_early(tiny, tmp_path):
    run = nearkin.train(tiny | {"epochs": 12, "lr": 1e-9, "train.patience": 2}, runs=tmp_path)
    assert run.result["epochs_trained"] == run.result["epoch"] + 2 < 12


def test_standard_protocol_takes_the_last_epoch(tiny, tmp_path):
    run = nearkin.train(tiny, protocol="standard", runs=tmp_path)
    assert run.result["epoch"] == run.result["epochs_trained"] == 2
    assert run.result["select"] is None


def test_a_fixed_number_of_batches_is_an_epoch(tiny, tmp_path):
    run = nearkin.train(tiny | {"train.batches_per_epoch": 3, "epochs": 3}, runs=tmp_path)
    assert max(line.get("step", 0) for line in run.log_lines()) == 9


@pytest.mark.parametrize("cut", ["all", "block3"])
def test_behind_a_cut_the_front_stays_and_the_rest_learns(tiny, tmp_path, cut):
    run = nearkin.train(tiny, cut=cut, runs=tmp_path)
    torch.manual_seed(0)
    start = nearkin.train(tiny | {"epochs": 0}, cut=cut, runs=tmp_path)
    before, after = weights(start), weights(run)
    changed = {k.split(".")[1] for k in before if not torch.equal(before[k], after[k])}
    assert "head" in changed
    frozen = rebuild(run.spec).frozen_stages
    front = [k for k in before if any(k.startswith(f"model.backbone.{stage}.") for stage in frozen)]
    assert front
    assert all(torch.equal(before[k], after[k]) for k in front)


def test_warm_up_trains_only_what_is_new(tiny, tmp_path):
    """A backbone from given weights waits; head and proxies train at once."""
    start = nearkin.train(tiny | {"epochs": 0}, runs=tmp_path)
    path = tmp_path / "weights.pt"
    torch.save(
        {
            k.removeprefix("backbone."): v
            for k, v in start.load("model.pt")["model"].items()
            if k.startswith("backbone.")
        },
        path,
    )
    words = tiny | {"weights": str(path)}
    warm = nearkin.train(words | {"epochs": 1, "train.warmup": 1}, runs=tmp_path)
    cold = nearkin.train(words | {"epochs": 1, "train.warmup": 0}, runs=tmp_path)
    given = weights(start)
    backbone = [k for k in given if k.startswith("model.backbone.") and k.endswith("weight")]
    assert all(torch.equal(given[k], weights(warm)[k]) for k in backbone)
    assert not all(torch.equal(given[k], weights(cold)[k]) for k in backbone)


class TestOptimiser:
    def groups(self, **words):
        spec = resolve(make_spec({"dim": 8, "lr": 0.01, **words}))
        model = rebuild(spec)
        objective = build_objective(loss=("proxy_anchor", {}), num_classes=5, dim=8)
        return {g["name"]: g for g in make_optimiser(spec.train, model, objective).param_groups}

    def test_the_loss_has_its_own_rate(self):
        groups = self.groups()
        assert {name: g["lr"] for name, g in groups.items()} == {"backbone": 0.01, "head": 0.01, "loss": 1.0}

    def test_any_group_can_be_set(self):
        groups = self.groups(
            **{"train.groups.loss.lr": 0.5, "train.groups.head.weight_decay": 0.3, "train.groups.backbone.eps": 1.0}
        )
        assert groups["loss"]["lr"] == 0.5
        assert groups["head"]["weight_decay"] == 0.3
        assert groups["backbone"]["eps"] == 1.0

    def test_an_unknown_group_is_refused(self):
        with pytest.raises(NearkinError, match="no such group; choices: backbone, head, loss"):
            self.groups(**{"train.groups.neck.lr": 1})

    @pytest.mark.parametrize("optimiser", ["sgd", "rmsprop", "adam", "adamw"])
    def test_every_optimiser_learns(self, tiny, tmp_path, optimiser):
        run = nearkin.train(tiny | {"train.optimiser": optimiser, "train.clip": 10, "epochs": 1}, runs=tmp_path)
        assert run.done


def test_schedules():
    step = TrainSpec(schedule="step", step=2, gamma=0.5)
    assert [schedule(step, e, 6) for e in (0, 1.9, 2, 3.5, 4)] == [1, 1, 0.5, 0.5, 0.25]
    cosine = TrainSpec(schedule="cosine")
    assert [round(schedule(cosine, e, 4), 6) for e in (0, 2, 4)] == [1, 0.5, 0]
    assert schedule(TrainSpec(), 5, 6) == 1


def test_nan_is_said_in_a_sentence(tiny, tmp_path):
    with pytest.raises(NearkinError, match=r"the loss became (nan|inf) at step \d+ .*lower train.lr"):
        nearkin.train(tiny | {"lr": 1e30, "train.optimiser": "sgd"}, runs=tmp_path)


def test_collapse_is_noticed():
    assert mean_cosine_distance(torch.ones(8, 4) + 1e-4 * torch.rand(8, 4)) < 0.01
    assert mean_cosine_distance(torch.randn(64, 16)) > 0.5


def test_a_truncated_checkpoint_is_said(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr("nearkin.engine.loop.CHECKPOINT_SECONDS", 0)

    def watch(entry):
        if entry.get("epoch") == 2:
            raise Stop

    with pytest.raises(Stop):
        nearkin.train(tiny, runs=tmp_path, watch=watch)
    (path,) = tmp_path.glob("*/checkpoint.pt")
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(NearkinError, match=r"damaged: checkpoint.pt cannot be read .*nearkin runs rm"):
        nearkin.train(tiny, runs=tmp_path)


def test_a_checkpoint_of_another_model_is_said(tiny, tmp_path):
    run, other = (nearkin.train(tiny | {"dim": dim}, runs=tmp_path) for dim in (16, 8))
    (run.path / "model.pt").write_bytes((other.path / "model.pt").read_bytes())
    (run.path / "files.json").unlink()
    with pytest.raises(NearkinError, match=r"model.pt does not fit the model of its spec"):
        nearkin.load(run)


def test_a_full_disk_leaves_nothing_half_written(tiny, tmp_path, monkeypatch):
    import errno

    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("torch.save", full)
    with pytest.raises(NearkinError, match="the disk is full"):
        nearkin.train(tiny, runs=tmp_path)
    left = {p.name for p in next(tmp_path.iterdir()).iterdir()}
    assert left <= {"spec.yaml", "split.json", "environment.json", "files.json", "lock", "log.jsonl"}


def test_one_process_a_run(tiny, tmp_path):
    run = Run(tmp_path / prepare(make_spec(tiny)).hash)
    with run.lock(), pytest.raises(NearkinError, match=f"being trained by process {os.getpid()}"):
        nearkin.train(tiny, runs=tmp_path)


def test_the_model_embeds_new_images_as_it_was_tested(tiny, tmp_path):
    run = nearkin.train(tiny, runs=tmp_path)
    prepared = prepare(run.spec)
    rows = prepared.split.test.images
    fresh = nearkin.load(run).embed(list(read_data(prepared.spec.data).table.images[rows]))
    with np.load(run.path / "embeddings.npz") as stored:
        assert np.abs(fresh - unit(torch.from_numpy(stored["embeddings"])).numpy()).max() < 1e-5


def test_users_bring_their_own_loss_and_data(tiny, tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text("""
import torch
from nearkin.losses import PairLoss

class Pull(PairLoss):
    def __init__(self, *, weight: float = 1.0):
        super().__init__()
        self.weight = weight

    def compute(self, pairs, triplets=None):
        return self.weight * (pairs.d2 * pairs.positive).mean() - (pairs.d2 * pairs.negative).mean()
""")
    monkeypatch.syspath_prepend(tmp_path)
    run = nearkin.train(tiny | {"loss": "mine.Pull", "loss.weight": 2.0, "epochs": 1}, runs=tmp_path / "runs")
    assert run.spec.loss.params == {"weight": 2.0}
    assert json.loads((run.path / "result.json").read_text())["hash"] == run.hash
    load_model(rebuild(run.spec), run)


def test_weights_from_a_file_are_known_by_content(tiny, tmp_path):
    path = tmp_path / "weights.pt"
    hashes = set()
    for content in (b"a", b"b"):
        path.write_bytes(content)
        hashes.add(make_spec(tiny, {"weights": str(path)}).hash("d", "s"))
    (tmp_path / "same.pt").write_bytes(b"b")
    hashes.add(make_spec(tiny, {"weights": str(tmp_path / "same.pt")}).hash("d", "s"))
    assert len(hashes) == 2


def test_seeds_of_steps_and_streams_are_all_different():
    seeds = {seed_of(seed, step, stream) for seed in range(5) for step in range(2000) for stream in range(4)}
    assert len(seeds) == 5 * 2000 * 4
    assert all(0 <= s < 2**63 for s in seeds)


@pytest.mark.parametrize("cut", ["none", "all"])
def test_mixup_mixes_at_every_depth(tiny, tmp_path, cut):
    words = tiny | {"loss": "norm_softmax", "regulariser": "mixup", "cut": cut, "epochs": 1}
    runs = [nearkin.train(words, runs=tmp_path)]
    runs += [nearkin.train(words | {"regulariser.depth": d}, runs=tmp_path) for d in range(2 if cut == "none" else 1)]
    runs.append(nearkin.train({k: v for k, v in words.items() if k != "regulariser"}, runs=tmp_path))
    heads = [weights(run)["model.head.weight"] for run in runs]
    distinct = {tuple(head.flatten().tolist()) for head in heads}
    assert len(distinct) == len(runs)


def test_mixup_beyond_the_network_is_refused(tiny, tmp_path):
    with pytest.raises(NearkinError, match="depth=9"):
        nearkin.train(tiny | {"loss": "norm_softmax", "regulariser": "mixup", "regulariser.depth": 9}, runs=tmp_path)


def test_a_loss_and_a_miner_of_another_library(tiny, tmp_path):
    pml = "pytorch_metric_learning"
    words = tiny | {"loss": f"{pml}.losses.CircleLoss", "loss.m": 0.3, "miner": f"{pml}.miners.MultiSimilarityMiner"}
    run = nearkin.train(words | {"epochs": 1}, runs=tmp_path)
    assert run.spec.loss.params == {"m": 0.3}
    other = nearkin.train(words | {"epochs": 1, "loss.m": 0.4}, runs=tmp_path)
    assert not same(weights(run), weights(other))


class TestRecipes:
    def test_open_settings_are_filled_and_given_ones_stay(self):
        scratch = resolve(make_spec({"dim": 7}))
        assert (scratch.model.dim, scratch.model.pool, scratch.train.lr) == (7, "avg", 1e-3)
        given = resolve(make_spec({"backbone": "efficientnet_lite0", "weights": "imagenet", "lr": 0.5}))
        assert (given.model.dim, given.model.freeze_bn, given.train.lr, given.data.crop) == (1280, True, 0.5, 112)

    @pytest.mark.parametrize(
        ("words", "classes", "images", "steps"),
        [
            ({}, 9, 150, 4),  # 4 · 12 epochs · 96 images: 512 per class
            ({}, 8, 40, None),  # all of them are 480
            ({}, 32, 150, None),  # not few
            ({"epochs": 8}, 9, 150, None),
            ({"train.batches_per_epoch": 20}, 9, 150, 20),
            ({"weights": None}, 9, 150, None),
        ],
    )
    def test_few_classes_are_not_shown_too_often(self, words, classes, images, steps):
        requested = make_spec({"backbone": "efficientnet_lite0", "weights": "imagenet"}, words)
        labels = np.repeat(np.arange(classes), images)
        assert spare_few(requested, resolve(requested), labels).train.batches_per_epoch == steps

    def test_proxy_losses_take_random_batches(self):
        assert resolve(make_spec({"loss": "proxy_anchor"})).sampler.name == "random"
        assert resolve(make_spec({"loss": "triplet"})).sampler.name == "balanced"
        assert resolve(make_spec({"loss": "proxy_anchor", "sampler.per_class": 2})).sampler.name == "balanced"

    def test_an_open_batch_shrinks_to_the_data(self, tiny):
        few = {k: v for k, v in tiny.items() if k != "train.batch"}
        assert prepare(make_spec(few)).spec.train.batch == 40  # 10 classes of 4
        del few["sampler.per_class"]
        assert prepare(make_spec(few, {"loss": "proxy_anchor"})).spec.train.batch == 100

    def test_a_size_scales_the_record(self):
        spec = resolve(make_spec({"backbone": "resnet50", "data.size": 112}))
        assert (spec.data.size, spec.data.resize, spec.data.crop) == (112, 128, 112)

    def test_drawn_images_are_drawn_to_measure(self, tiny):
        assert read_data(resolve(make_spec(tiny, {"data.size": 48})).data).table.images.shape[1:] == (48, 48, 3)

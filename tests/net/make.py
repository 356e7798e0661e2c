"""Makes the fixture of test_net.py with commit b077f9d: hashes of specs, a store of tiny runs, a balanced study.

    git worktree add ../old b077f9d
    PYTHONPATH=../old/src OMP_NUM_THREADS=1 python tests/net/make.py ../old

It is kept to show where the fixture comes from, and refuses every other commit: what is stored here is what that commit
did, and must not be made again with a later one.
"""

import hashlib
import itertools
import json
import lzma
import os
import platform
import random
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from types import NoneType
from typing import Literal, get_args, get_origin

import numpy as np
import torch
import yaml
from typer.testing import CliRunner

import nearkin
from nearkin.cli.app import app
from nearkin.comparison.compare import compare
from nearkin.comparison.gather import gather
from nearkin.comparison.verdicts import all_pairs
from nearkin.config.parts import REGISTRIES, DataSpec
from nearkin.config.recipes import Recipe
from nearkin.config.recipes import names as recipe_names
from nearkin.config.settings import MemorySpec, ModelSpec, TrainSpec
from nearkin.config.spec import make_spec, read_spec, stored_spec
from nearkin.errors import NearkinError
from nearkin.models import convnet
from nearkin.registry import BACKBONES, HEADS, LOSSES, hyperparameters
from nearkin.runs.defaults import resolve
from nearkin.runs.prepare import check_network
from nearkin.runs.run import SCHEMA
from nearkin.runs.store import Store
from nearkin.studies.cells import Cell
from nearkin.studies.grid import KEYS, read_study
from nearkin.studies.runner import Job, write_study
from nearkin.studies.summary import rows_of, write_summary

COMMIT = "b077f9d"
HERE = Path(__file__).parent
DATA, SPLIT = "d" * 12, "5" * 12  # made up: what is pinned is what a spec adds to them


# -- hashes ------------------------------------------------------------------------------------------------


def of_studies(checkout):
    """Every cell of every ready study, in its small form and on real data: the whole resolved spec, as a run is stored
    with it, but for its seed and fold; cells that differ in nothing else share one entry. A hash is listed once."""
    seen, entries = set(), {}
    for file in [*sorted((checkout / "studies").rglob("*.yaml")), checkout / "src/nearkin/studies/demo.yaml"]:
        for form, words in (("small", {}), ("real", {"root": "anywhere"})):
            for cell in cells_of(file, words):
                spec = resolve(cell.spec)
                name = spec.hash(DATA, SPLIT)
                if name in seen:
                    continue
                seen.add(name)
                tree = json.loads(json.dumps(spec.whole() | {"recipe": None}))
                tree["data"]["root"] = None
                seed, fold = tree["train"].pop("seed"), tree["protocol"].pop("fold", None)
                where = f"{file.relative_to(checkout)} {form}: {', '.join(cell.labels)}"
                entry = entries.setdefault(json.dumps(tree), {"where": where, "spec": tree, "hashes": []})
                entry["hashes"].append([seed, fold, name])
    for entry in entries.values():  # each can be rebuilt from what is stored
        for seed, fold, name in entry["hashes"]:
            tree = entry["spec"] | {"train": entry["spec"]["train"] | {"seed": seed}}
            tree |= {"protocol": tree["protocol"] | ({} if fold is None else {"fold": fold})}
            assert stored_spec(tree).hash(DATA, SPLIT) == name, entry
    return list(entries.values())


def cells_of(file, words):
    """The cells of a study; a file of a single run is one cell, with weights on real data, as its first line says."""
    if set(yaml.safe_load(file.read_text())) <= set(KEYS):
        return read_study(file, words).cells
    return [Cell((), 0, make_spec(read_spec(file), words | ({"weights": "imagenet"} if words else {})))]


def of_words(entries):
    """(where, words) with the hash of what they resolve to."""
    found = []
    for where, words in entries:
        spec = resolve(make_spec(words))
        found.append({"where": where, "spec": words, "hashes": [[spec.train.seed, None, spec.hash(DATA, SPLIT)]]})
    return found


def of_recipes():
    """Every recipe with every loss on CUB; on other data with the losses that it has rules for; with other networks,
    miners, regularisers and methods."""
    for recipe in recipe_names():
        rules = Recipe.named(recipe).rules
        named = {
            loss
            for rule in rules
            if (own := rule.case.get("loss.name"))
            for loss in (own if isinstance(own, list) else [own])
        }
        for loss in LOSSES.names():
            yield f"recipe {recipe} loss {loss}", {"recipe": recipe, "dataset": "cub", "loss": loss}
        for data, loss in itertools.product(("cars196", "sop", "imagenet"), sorted(named)):
            if data != "imagenet" or recipe == "drml2021":
                yield f"recipe {recipe} {data} loss {loss}", {"recipe": recipe, "dataset": data, "loss": loss}
        for data, network in itertools.product(("cub", "cars196", "sop", "glyphs"), BACKBONES.names()):
            yield f"recipe {recipe} {data} {network}", {"recipe": recipe, "dataset": data, "backbone": network}
        beside = [{"miner": "multi_similarity"}, {"regulariser": "rho"}, {"method": "drml"}, {"method": "none"}]
        for loss, more in itertools.product(("multi_similarity", "margin", "contrastive", "snr_triplet"), beside):
            words = {"recipe": recipe, "dataset": "cub", "loss": loss, **more}
            if possible(words):
                yield f"recipe {recipe} loss {loss} {more}", words


# values of settings whose type does not tell what is possible
NAMED = {
    "model.backbone": BACKBONES.names(),
    "model.weights": ["imagenet"],
    "model.head": HEADS.names(),
    "model.parts": [2],
    "model.cut": ["block2", "all"],
    "train.select": ["recall@1", "nmi", "hubness@10"],
    "train.device": ["cpu"],
    "train.batch": [64],
    "data.size": [64],
    "data.resize": [72],
    "data.keep": [96],
    "data.crop": [48],
    "data.crop_scale": [[0.25, 0.75], "0.16-1"],
    "data.crop_ratio": [[0.5, 2]],
    "miner.upper": [1.4],
}


def values_of(key, annotation, default):
    """Values of a setting other than its default."""
    if key in NAMED:
        return NAMED[key]
    kinds = [annotation, *get_args(annotation)]
    literal = [value for kind in kinds if get_origin(kind) is Literal for value in get_args(kind)]
    if literal:
        return [value for value in literal if value is not default]
    if bool in kinds:
        return [not default] if default is not None else [True, False]
    if int in kinds:
        found = [3 if default is None else default - 1 if default > 1 else default + 1]
    elif float in kinds:
        found = [0.375 if default is None else default / 2 or 0.125]
        found += [round(default) + 1] if default is not None and default >= 1 else []  # a float as a whole number
    else:
        found = ["somewhere"]
    return found + ([None] if NoneType in kinds and default is not None else [])


def possible(words):
    """Can such a run begin?"""
    try:
        check_network(resolve(make_spec(words)))
    except NearkinError:
        return False
    return True


def fitting(words):
    """The words, with as little more as makes a run of them possible: a miner needs a loss that takes what it gives."""
    losses = ("triplet", "multi_similarity", "contrastive", "hist", "margin")
    mined = {"loss": "triplet", "miner": "random"}
    more = [{}, {"model.freeze_bn": True}, *({"loss": loss} for loss in losses), mined, {"epochs": 0}]
    return next(words | each for each in more if possible(words | each))


def of_settings():
    """Every setting by itself, at values other than its default; every hyper-parameter of every part likewise."""
    for section, model in (("model", ModelSpec), ("memory", MemorySpec), ("train", TrainSpec), ("data", DataSpec)):
        for name, field in model.model_fields.items():
            key = f"{section}.{name}"
            if key not in ("train.groups", "data.name"):
                for value in values_of(key, field.annotation, field.default):
                    yield f"{key}={value}", fitting({key: value})
    for group, name in itertools.product(("backbone", "head", "loss", "hgnn"), ("lr", "weight_decay", "eps")):
        yield f"train.groups.{group}.{name}", fitting({f"train.groups.{group}.{name}": 0.375})
    for part, registry in REGISTRIES.items():
        for name in registry.names():
            yield f"{part} {name}", fitting({f"{part}.name": name})
            for key, value in hyperparameters_of(part, name):
                yield f"{part} {name} {key}={value}", fitting({f"{part}.name": name, f"{part}.{key}": value})


def hyperparameters_of(part, name):
    """(key, value): of every hyper-parameter of a part, values other than its default."""
    for key, parameter in hyperparameters(REGISTRIES[part][name]).items():
        for value in values_of(f"{part}.{key}", parameter.annotation, parameter.default):
            yield key, value


# what the odd specs below name; a test writes them into the folder that it runs in
FILES = {
    "net_weights.pt": "no weights, but content that counts\n",
    "net_outside.py": '''"""A loss from outside nearkin: it counts by this text."""

from nearkin.losses import PairLoss


class Mine(PairLoss):
    def __init__(self, *, margin: float = 0.2):
        super().__init__()
        self.margin = margin

    def compute(self, pairs, tuples=None):
        return (pairs.d - self.margin).mean()
''',
}
PRETRAINED = {"dataset": "cub", "backbone": "efficientnet_lite0", "weights": "imagenet"}
ODD = [
    {},
    {"epochs": 0},
    {"epochs": 0, "loss": "hist", "miner": "hard", "lr": 5, "train.clip": 1, "sampler": "gc", "data.flip": True},
    {"epochs": 0, "model.head": "none", "dim": None},
    {"epochs": 0, "model.head": "none", "dim": 7, "purpose": "trial", "seed": 3},
    {"epochs": 0, "model.head": "pca_whitening", "dim": 32, "protocol": "kfold", "protocol.fold": 3},
    {**PRETRAINED, "epochs": 0, "model.head": "none", "data.crop_scale": "0.5-1"},
    {**PRETRAINED, "cut": "all", "model.views": 4},
    {**PRETRAINED, "cut": "block10", "model.views": 1, "lr": 1},
    {**PRETRAINED, "model.freeze_bn": False, "model.pool": "max"},
    {**PRETRAINED, "model.bn_affine": False, "data.size": 64},
    {**PRETRAINED, "weights": None},
    {**PRETRAINED, "weights": "net_weights.pt"},
    {"dataset": "sop", "backbone": "resnet50", "weights": "net_weights.pt", "loss": "hist", "dim": 8},
    {"loss": "net_outside.Mine", "loss.margin": 3},
    {"loss": "net_outside.Mine", "memory.size": 8},
    {"loss": "nearkin.losses.MultiSimilarity", "loss.alpha": 3},
    {"loss": "multi_similarity", "loss.alpha": 2, "loss.beta": 40, "train.weight_decay": 0},  # floats as whole
    {"loss": "multi_similarity", "loss.alpha": "18", "lr": "1e-4"},  # numbers as words
    {"loss": {"name": "margin", "beta": 0.6, "per_class": False}, "train": {"groups": {"loss": {"lr": 1}}}},
    {"train.groups.head.lr": None, "train.groups.loss.weight_decay": 0},
    {"miner": "none", "sampler": "none", "regulariser": "none", "method": "none"},
    {"method": "drml", "model.parts": 2, "loss": "cosface"},
    {"method": "drml", "model.head": "linear", "method.w_rep": 1},
    {"model.head": "drml", "model.init": "torch"},  # init is idle here
    {"model.init": "torch", "model.pre_norm": "layer", "model.norm": "layer"},
    {"loss": "hist", "model.norm": "none"},
    {"loss": "proxy_anchor", "sampler": "balanced"},
    {"train.warmup_counts": False},  # idle without a warm-up
    {"train.warmup_counts": False, "train.warmup": 2},
    {"data.size": 64},
    {"data.size": 64, "data.crop": 32},
    {"data.resize": 48, "data.keep": 48},
    {"data.cache": "none", "data.root": "a", "data.exclude": "b"},
    {"data.cache": "decoded"},
    {"data.cache": "packed"},
    {"train.amp": "bf16"},
    {"train.amp": True},
    {"train.amp": "fp16"},
    {"train.amp": "false"},
    {"train.patience": 3, "train.eval_every": 3},
    {"train.clip": 10, "train.clip_by": "norm"},
    {"train.clip_by": "norm"},
    {"train.schedule": "cosine", "train.step": 3},
    {"train.optimiser": "sgd", "train.momentum": 0},
    {"train.chunk": 8, "model.freeze_bn": True, "train.batch": 2},
    {"train.batches_per_epoch": 1, "epochs": 1},
    {"memory.warmup": 5},
    {"memory.size": 1, "memory.warmup": 0, "loss": "nt_xent"},
    {"protocol": "file", "protocol.path": "anywhere.csv", "protocol.seed": 2},
    {"protocol": "mlrc", "protocol.fold": 1, "protocol.folds": 2, "seed": 2**31},
    {"dataset": "inshop", "protocol": "query_gallery", "protocol.queries": 1},
    {"train.device": "cpu", "train.loaders": 2, "train.curve": True},
    {"recipe": "psomas2020", "dataset": "glyphs", "backbone": "convnet", "weights": None, "dim": 64},
]


def of_odd():
    """Corners by hand, then settings drawn at random from all that there are: a hundred together."""
    yield from ((f"odd {i}", words) for i, words in enumerate(ODD))
    rng, count = random.Random(0), len(ODD)
    plain = [words for where, words in of_settings() if "=" in where and " " not in where and "epochs" not in words]
    while count < 100:
        words = {}
        for part, registry in REGISTRIES.items():
            if part in ("loss", "sampler", "protocol") or rng.random() < 0.4:
                name = rng.choice(registry.names())
                words[f"{part}.name"] = name
                own = [{f"{part}.{key}": value} for key, value in hyperparameters_of(part, name)]
                for more in rng.sample(own, (len(own) + 1) // 2):
                    words |= more
        for more in rng.sample(plain, rng.randint(2, 9)):
            words |= more
        if possible(words):  # else draw again
            yield f"odd {count}", words
            count += 1


def make_hashes(checkout):
    for name, text in FILES.items():
        Path(name).write_text(text)
    groups = {
        "studies": of_studies(checkout),
        "recipes": of_words(of_recipes()),
        "settings": of_words(of_settings()),
        "odd": of_words(of_odd()),
    }
    for entry in groups["odd"]:  # in both forms: as words, and as a run is stored
        entry["stored"] = json.loads(json.dumps(resolve(make_spec(entry["spec"])).whole()))
    told = {"commit": COMMIT, "data": DATA, "split": SPLIT, "files": FILES, **groups}
    assert all(possible(words) for words in ODD if "net_weights.pt" not in words.values())
    (HERE / "hashes.json.xz").write_bytes(lzma.compress(json.dumps(told).encode(), preset=9))
    for name, entries in groups.items():
        print(name, len(entries), "specs,", sum(len(entry["hashes"]) for entry in entries), "hashes")


# -- a store of tiny runs ----------------------------------------------------------------------------------

WIDTHS = (4, 8, 8, 16)  # convnet with few channels: a checkpoint takes kilobytes, not megabytes
TINY = {
    "dataset": "glyphs",
    "data.classes": 24,
    "data.per_class": 10,
    "data.size": 16,
    "backbone": "convnet",
    "dim": 8,
    "train.batch": 16,
    "train.batches_per_epoch": 4,
    "epochs": 3,
}
HIST = {"loss": "hist", "loss.hidden": 8, "sampler": "balanced", "train.warmup": 1, "train.warmup_counts": False}
DRML = {"method": "drml", "loss": "margin", "miner": "distance_weighted", "train.groups.decoder.lr": 0.01}
# stopped in the first of two passes: the second is planned from the bank in the checkpoint
BANK = {"sampler": "ddm", "sampler.big_batch": 32, "sampler.candidates": 4, "loss": "triplet", "miner": "semihard"}
MEMORY = {"loss": "nt_xent", "memory.size": 24, "train.optimiser": "rmsprop"}
# name -> words; how it is left: finished, or stopped after an epoch or a step
RUNS = {
    "finished": ({"loss": "proxy_anchor"}, {}),
    "trial": ({"loss": "proxy_anchor", "purpose": "trial"}, {}),
    "curve": ({"loss": "margin", "train.curve": True, "epochs": 2}, {}),
    "memory": (MEMORY, {}),
    "hist": (HIST, {}),
    "drml": (DRML, {}),
    "paused": ({"loss": "multi_similarity", "miner": "multi_similarity", "train.schedule": "cosine"}, {"epoch": 1}),
    "interrupted": (
        {"loss": "arcface", "train.optimiser": "sgd", "lr": 0.1, "train.clip": 1, "protocol": "standard"},
        {"step": 6},
    ),
    "trial paused": (
        {"loss": "contrastive", "regulariser": "rho", "miner": "random", "loss.form": "distance", "purpose": "trial"},
        {"epoch": 1},
    ),
    "bank interrupted": (BANK, {"step": 5}),
    "memory interrupted": (MEMORY | {"seed": 1}, {"step": 10}),
    "hist interrupted": (HIST | {"seed": 1, "protocol": "standard"}, {"step": 11}),
    "drml interrupted": (DRML | {"seed": 1, "train.curve": True}, {"step": 5}),
}


def machine():
    """What the last bits of a result depend on."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    told = dict(reversed([[side.strip() for side in line.split(":", 1)] for line in lines if ":" in line]))
    cpu = " ".join(told.get(key, "") for key in ("model name", "cpu family", "model", "stepping"))
    return {
        "cpu": cpu if told else platform.processor(),
        "torch": torch.__version__,
        "instructions": torch.backends.cpu.get_cpu_capability(),
    }


def bits(run):
    """The loss of every step; SHA-256 of the final weights, of model and objective, and of the raw embeddings of the
    test images; of a trial, which is never tested, those of the validation images."""
    weights, state = hashlib.sha256(), run.load("model.pt")
    for part in ("model", "objective"):
        for value in state[part].values():
            weights.update(value.numpy().tobytes())
    with np.load(run.path / ("embeddings.npz" if run.tested else "validation.npz")) as held:
        embeddings = hashlib.sha256(held["embeddings"].tobytes())
    losses = [line["loss"] for line in run.log_lines() if "step" in line]
    return {"losses": losses, "weights": weights.hexdigest(), "embeddings": embeddings.hexdigest()}


def make_store(folder):
    convnet.WIDTHS, convnet.ConvNet.features = WIDTHS, WIDTHS[-1]
    told = {}
    for name, (own, stop) in RUNS.items():
        words = TINY | own
        whole = nearkin.train(words, runs=folder / "whole")
        run = stopped(words, folder / "runs", whole.hash, **stop)
        assert run.hash == whole.hash
        assert run.done is not bool(stop)
        if stop:  # what is chosen comes after the stop, or resuming would prove nothing
            assert max(line.get("epoch_end", 0) for line in run.log_lines()) < whole.read_json("final.json")["epoch"]
        told[name] = {
            "words": words,
            "stopped": stop,
            "hash": run.hash,
            "final": whole.read_json("final.json"),
            "result": whole.result if whole.tested else None,
            **bits(whole),
        }
        if not stop:  # the stored run itself, with its own clock
            assert bits(run) == bits(whole)
            told[name] |= {"final": run.read_json("final.json"), "result": run.result if run.tested else None}
    (HERE / "store.json").write_text(
        json.dumps({"commit": COMMIT, "machine": machine(), "widths": WIDTHS, "runs": told}, indent=1) + "\n"
    )
    pack(folder / "runs", HERE / "store.tar.xz")


def stopped(words, runs, name, epoch=None, step=None):
    """The run as it is after an epoch, or after Ctrl-C in a step, of which the loop writes a checkpoint first."""

    def watch(entry):
        if step is not None and entry.get("step") == step:
            raise KeyboardInterrupt

    try:
        return nearkin.train(words, runs=runs, watch=watch, until=epoch)
    except KeyboardInterrupt:
        return Store(runs).find(name)


def pack(folder, file):
    """Without locks, owners and times."""

    def plain(member):
        member.uid = member.gid = member.mtime = 0
        member.uname = member.gname = ""
        return None if member.name.endswith("/lock") else member

    with tarfile.open(file, "w:xz", preset=9) as archive:
        archive.add(folder, folder.name, filter=plain)


# -- a balanced study --------------------------------------------------------------------------------------

STUDY = """\
name: balanced
base: {dataset: glyphs, backbone: convnet, epochs: 4, protocol: kfold, protocol.folds: 5}
axes:
  loss:
    contrastive: {loss: contrastive}
    margin: {loss: margin, miner: distance_weighted}
    multi_similarity: {loss: multi_similarity, miner: multi_similarity}
    proxy_anchor: {loss: proxy_anchor}
    triplet: {loss: triplet, miner: semihard}
  dim: [32, 64]
seeds: [0, 1, 2, 3, 4]
folds: [0, 1]
metrics: [recall@1, map_at_r]
"""
COMPARED = [("map_at_r", "loss"), ("map_at_r", None), ("recall@1", "loss"), ("recall@1", None)]  # metric, rows


def make_balanced(folder):
    """Every loss on all seeds, folds and dimensions, and two untrained networks. Nothing is trained: results are drawn,
    with an effect of the method, the dimension, the seed and the fold."""
    (folder / "runs").mkdir()
    (folder / "runs/study.yaml").write_text(STUDY)
    study, store = read_study(folder / "runs/study.yaml"), Store(folder / "runs")
    rng = np.random.default_rng(0)
    effects = {}

    def effect(*what, size):
        return effects.setdefault(what, rng.normal(0, size))

    jobs = []
    for cell in study.cells:
        spec = resolve(cell.spec)
        run = store.run(spec.hash(DATA, SPLIT))
        level = 0.2 if cell.baseline else 0.4
        level += sum(effect(label, size=0.01) for label in cell.labels)
        level += effect("seed", cell.seed, size=0.02) + effect("fold", cell.fold, size=0.03)
        drawn = {
            metric: float(level * share + rng.normal(0, 0.005))
            for metric, share in (("recall@1", 1.5), ("map_at_r", 1), ("validation", 1.1))
        }
        write_result(run.path, spec, drawn)
        jobs.append(Job(cell, run, study.asked_on()))
    write_study(study, jobs, store)
    out = HERE / "balanced"
    out.mkdir(exist_ok=True)
    pack(folder / "runs", out / "store.tar.xz")
    (out / "expected.json").write_text(json.dumps(measured(folder / "runs"), indent=1) + "\n")
    write_summary(study, rows_of(study, jobs), jobs, out / "summary.csv")
    for metric in ("map_at_r", "recall@1"):  # what the commands said, for people: words and format may change
        command = ["compare", "balanced", "--runs", str(folder / "runs"), "--by", "loss", "--metric", metric]
        stem = out / f"compare-{metric.replace('@', '_at_')}"
        told = CliRunner().invoke(app, [*command, "--json", "--csv", f"{stem}.csv"])
        assert told.exit_code == 0, told.output
        stem.with_suffix(".json").write_text(json.dumps(json.loads(told.stdout), indent=1) + "\n")


def write_result(path, spec, drawn):
    """A run that looks final and tested, with these metrics."""
    path.mkdir()
    head = {"schema": SCHEMA, "spec": spec.whole(), "data_hash": DATA, "split_hash": SPLIT}
    (path / "spec.yaml").write_text(yaml.safe_dump(head, sort_keys=False))
    final = {
        "epoch": spec.train.epochs,
        "epochs_trained": spec.train.epochs,
        "steps": 100 * spec.train.epochs,
        "rule": spec.protocol.cls.rule,
        "select": "map_at_r" if spec.train.epochs else None,
        "validation": {"recall@1": drawn["validation"], "map_at_r": drawn["validation"]},
        "train": {"rho": 0.5, "pi_intra": 0.3, "pi_inter": 0.6, "pi_ratio": 0.5},
        "seconds": 10.0,
        "split": "made up",
        "skipped_images": 0,
    }
    (path / "final.json").write_text(json.dumps(final))
    test = {metric: drawn[metric] for metric in ("recall@1", "map_at_r")}
    (path / "result.json").write_text(json.dumps(final | {"hash": path.name, "test": test, "data_hash": DATA}))


def measured(store):
    """What must stay to the last digit, of every comparison: values by seed, means, and differences of all pairs."""
    found = {}
    for metric, by in COMPARED:
        (comparison,) = compare(gather(["balanced"], store), by=by and [by], metric=metric)
        rows = {
            m.name: {"values": {str(seed): value for seed, value in m.values.items()}, "mean": m.interval.mean}
            for m in comparison.methods
        }
        pairs = [
            {
                "first": p.first,
                "second": p.second,
                "mean": p.difference.mean,
                "std": p.difference.std,
                "seeds": p.difference.n,
            }
            for p in all_pairs(comparison)
        ]
        found[f"{metric} by {by or 'all axes'}"] = {"rows": rows, "pairs": pairs}
    return found


def main():
    checkout = Path(sys.argv[1]).resolve()
    commit = subprocess.run(["git", "-C", str(checkout), "rev-parse", "HEAD"], capture_output=True, text=True).stdout
    assert commit.startswith(COMMIT), f"{checkout} is at {commit.strip()}"
    assert Path(nearkin.__file__).is_relative_to(checkout), f"PYTHONPATH={checkout}/src is needed"
    torch.set_num_threads(1)
    platform.platform = lambda: "Linux"  # which kernel it was is nobody's business
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        os.environ["NEARKIN_CACHE"] = f"{scratch}/cache"
        make_hashes(checkout)
        for make, name in ((make_store, "store"), (make_balanced, "balanced")):
            (Path(scratch) / name).mkdir()
            make(Path(scratch) / name)


if __name__ == "__main__":
    main()

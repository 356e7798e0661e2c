"""Programs that are wrong without looking it: each test here fails for one of them.

Where training matters it is the real loop that runs, with parts that write down what they are given.
"""

from dataclasses import replace
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans

import nearkin
from nearkin.config.parts import REGISTRIES, DataSpec
from nearkin.config.settings import MemorySpec, ModelSpec, TrainSpec
from nearkin.config.spec import UNHASHED, make_spec
from nearkin.data.glyphs import Glyphs
from nearkin.data.table import Augment
from nearkin.engine.objective import Objective
from nearkin.evaluation.metrics import kmeans, nmi
from nearkin.losses import Triplet
from nearkin.miners import Hard, Random
from nearkin.models.convnet import ConvNet
from nearkin.numerics import unit
from nearkin.pairs import Pairs, Triplets
from nearkin.registry import BACKBONES, DATASETS, LOSSES, SAMPLERS, hyperparameters
from nearkin.regularisers import Rho
from nearkin.runs.embed import load_model, rebuild
from nearkin.runs.prepare import prepare
from nearkin.samplers import BatchSampler, HardNeighbours

TINY = {
    "dataset": "glyphs",
    "data.classes": 24,
    "data.per_class": 10,
    "backbone": "convnet",
    "dim": 16,
    "train.batch": 16,
    "epochs": 2,
}
SEEN: dict[str, list[Any]] = {}  # what the parts below were given, in the run that came last
KINDS = ("sampler", "filled", "rows", "train", "eval", "z", "triplets")


class CroppedGlyphs(Glyphs):
    """Glyphs that training crops and flips, unlike the real ones."""

    def load(self):
        return replace(super().load(), augment=Augment())


class OneBatch(BatchSampler):
    """The same images at every step."""

    def plan(self, rng):
        return [np.arange(self.batch)] * 4


class WatchedNeighbours(HardNeighbours):
    def __init__(self, labels, batch, seed):
        super().__init__(labels, batch, seed)
        SEEN["sampler"].append(self)

    def fill(self, z):
        super().fill(z)
        SEEN["filled"].append(self.bank.clone())

    def next(self):
        SEEN["rows"].append(super().next())
        return SEEN["rows"][-1]


class WatchedNet(ConvNet):
    def run_stage(self, name, x):
        if name == self.stages[0]:
            SEEN["train" if self.training else "eval"].append(x.clone())
        return super().run_stage(name, x)


class WatchedLoss(Triplet):
    def compute(self, pairs, triplets=None):
        SEEN["z"].append(pairs.z.detach().clone())
        SEEN["triplets"].append(torch.stack(list(triplets)))  # (3, T)
        return super().compute(pairs, triplets)


PARTS = [
    (DATASETS, "cropped_glyphs", CroppedGlyphs),
    (SAMPLERS, "one_batch", OneBatch),
    (LOSSES, "watched", WatchedLoss),
    (SAMPLERS, "watched_neighbours", WatchedNeighbours),
    (BACKBONES, "watched", WatchedNet),
]


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    """watched(words) trains a tiny run of these parts, anew; gives the run and what they were given."""
    for registry, name, cls in PARTS:
        registry.register(name)(cls)

    def train(words):
        SEEN.clear()
        SEEN.update({kind: [] for kind in KINDS})
        ours = {"dataset": "cropped_glyphs", "backbone": "watched", "loss": "watched", "miner": "random"}
        run = nearkin.train(TINY | ours | words, runs=tmp_path_factory.mktemp("runs"), test=False)
        return run, dict(SEEN)

    yield train
    for registry, name, _ in PARTS:
        del registry._classes[name]


REPEATED = {"sampler": "one_batch", "train.batches_per_epoch": 4}


@pytest.fixture(scope="module")
def repeated(watched):
    """Two epochs of one batch: what differs from step to step is chance, and the weights."""
    return watched(REPEATED)


def all_different(things):
    return all(not torch.equal(a, b) for i, a in enumerate(things) for b in things[:i])


def test_the_miner_draws_anew_at_every_step(repeated, watched):
    drawn = repeated[1]["triplets"]
    assert len(drawn) == 8
    assert all_different(drawn)
    again = watched(REPEATED)[1]["triplets"]
    assert all(torch.equal(a, b) for a, b in zip(again, drawn, strict=True))
    other = watched(REPEATED | {"seed": 1})[1]["triplets"]
    assert all_different([*drawn, *other])


def test_images_are_augmented_anew_at_every_step(repeated, watched):
    shown = repeated[1]["train"]
    assert len(shown) == 8
    for image in range(16):  # each of them, not only some
        assert all_different([x[image] for x in shown])
    other = watched(REPEATED | {"seed": 1})[1]["train"]
    assert all_different([*shown, *other])


def test_a_run_validates_on_images_as_they_are(repeated):
    """In eval mode the network sees centre crops, never an augmented image; and the logged figure is that of these."""
    run, seen = repeated
    prepared = prepare(run.spec)
    everything = WatchedNet.record.normalise(prepared.pixels.test(np.arange(len(prepared.pixels))))
    known = {image.numpy().tobytes() for image in everything}
    shown = {image.numpy().tobytes() for x in seen["eval"] for image in x}
    assert {everything[row].numpy().tobytes() for row in prepared.split.val} <= shown <= known
    assert not {image.numpy().tobytes() for x in seen["train"] for image in x} & known  # it would be noticed

    model = rebuild(run.spec)
    load_model(model, run)
    with torch.no_grad():
        z = model.eval()(prepared.pixels.test(prepared.split.val)).z
    wanted = nearkin.evaluate(z, prepared.val_labels, metrics=["map_at_r", "recall@1"], k=(1,)).metrics
    chosen = run.read_json("final.json")["epoch"]
    (logged,) = [line["validation"] for line in run.log_lines() if line.get("epoch_end") == chosen]
    assert logged == pytest.approx(wanted)


def test_the_loop_refreshes_the_bank_of_a_sampler(watched):
    """After every step the rows of its batch are what the loss saw; the rest stays."""
    _, seen = watched({"sampler": "watched_neighbours"})
    (sampler,), (bank,) = seen["sampler"], seen["filled"]
    first = bank.clone()
    assert len(seen["rows"]) > len(sampler)  # more than a pass
    for rows, z in zip(seen["rows"], seen["z"], strict=True):
        bank[torch.from_numpy(rows)] = unit(z)
    assert torch.equal(sampler.bank, bank)
    assert not torch.equal(bank, first)


class TestClipping:
    """One step of plain SGD moves the weights by the gradient times the rate."""

    LR = 0.5

    @pytest.fixture(scope="class")
    @classmethod
    def moved(cls, tmp_path_factory):
        def flat(words):
            run = nearkin.train(TINY, runs=tmp_path_factory.mktemp("clip"), test=False, **words)
            state = run.load("model.pt")["model"]
            return torch.cat([state[name].flatten() for name, _ in rebuild(run.spec).named_parameters()]).double()

        words = {
            "loss": "lifted_similarity",
            "train.optimiser": "sgd",
            "train.momentum": 0,
            "lr": cls.LR,
            "train.weight_decay": 0,
            "epochs": 1,
            "train.batches_per_epoch": 1,
        }
        start = flat(words | {"epochs": 0})
        return lambda **clip: (start - flat(words | {f"train.{k}": v for k, v in clip.items()})) / cls.LR

    def test_by_value_and_by_norm(self, moved):
        gradient = moved()
        bound = round(float(gradient.abs().max()) / 4, 4)
        assert 0 < bound < gradient.norm()
        by_value, by_norm = gradient.clamp(-bound, bound), gradient * bound / gradient.norm()
        assert (by_value - by_norm).abs().max() > bound / 2
        torch.testing.assert_close(moved(clip=bound, clip_by="value"), by_value, atol=1e-6, rtol=1e-4)
        torch.testing.assert_close(moved(clip=bound, clip_by="norm"), by_norm, atol=1e-6, rtol=1e-4)

    def test_a_bound_above_the_gradient_changes_nothing(self, moved):
        torch.testing.assert_close(moved(clip=1e6, clip_by="norm"), moved(), atol=1e-6, rtol=1e-4)


SPECIAL = {
    "model.backbone": "resnet50",
    "model.weights": "imagenet",
    "model.head": "none",
    "model.cut": "all",
    "train.groups": {"head": {"lr": 1.0}},
    "train.select": "recall@1",
    "train.momentum": 0.5,
    "data.name": "cub",
    "data.crop_scale": "0.16-1",
    "data.crop_ratio": "0.75-1.33",
}


READ_BESIDE = {  # settings that are read only beside others
    "model.views": {"model.cut": "all"},
    "memory.warmup": {"memory.size": 64},
    "train.momentum": {"train.optimiser": "sgd"},
    "train.step": {"train.schedule": "step"},
    "train.gamma": {"train.schedule": "step"},
    "train.clip_by": {"train.clip": 1.0},
    "train.warmup": {"model.weights": "imagenet"},
    "train.warmup_counts": {"model.weights": "imagenet", "train.warmup": 1},
}


def another(annotation, default):
    """A value of the same type that is not the default."""
    kinds = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    for kind in kinds:
        if get_origin(kind) is Literal:
            return [value for value in get_args(kind) if value != default][-1]
        if kind in (bool, int, float):
            return {bool: not default, int: (default or 0) + 9, float: (default or 0.0) + 0.125}[kind]
    raise AssertionError(f"no other value of {annotation} is known: add it to SPECIAL")


def every_setting():
    """(words, further words): every field of a spec, and every hyper-parameter of every part, with another value."""
    for space, model in (("model", ModelSpec), ("memory", MemorySpec), ("train", TrainSpec), ("data", DataSpec)):
        for key, field in model.model_fields.items():
            word = f"{space}.{key}"
            if word not in UNHASHED:
                yield READ_BESIDE.get(word, {}), {word: SPECIAL.get(word) or another(field.annotation, field.default)}
    for part, registry in REGISTRIES.items():
        for name in registry.names():
            for key, parameter in hyperparameters(registry[name]).items():
                if registry[name].__module__.startswith("nearkin.") and f"{part}.{key}" not in UNHASHED:
                    changed = another(parameter.annotation, parameter.default)
                    yield {f"{part}.name": name}, {f"{part}.{key}": changed}


@pytest.mark.parametrize(("base", "words"), list(every_setting()), ids=str)
def test_the_name_of_a_run_covers_every_setting(base, words):
    assert make_spec(base, words).hash("d", "s") != make_spec(base).hash("d", "s")


def test_k_means_stops_after_twenty_iterations():
    """On data without clusters Lloyd's algorithm is far from its end by then."""
    z = np.random.default_rng(0).normal(size=(1500, 5)).astype(np.float32)
    labels = np.arange(1500) % 30

    def clusters(vectors, iterations):
        return KMeans(30, init="random", n_init=1, max_iter=iterations, random_state=0).fit(vectors).labels_

    e = unit(torch.from_numpy(z)).numpy()
    for vectors, distance in ((z, "euclid"), (e, "cosine")):
        few, one_less, one_more, many = (clusters(vectors, n) for n in (20, 19, 21, 300))
        assert all((few != others).any() for others in (one_less, one_more, many))
        assert (kmeans(vectors, 30) == few).all()
        figures = nearkin.evaluate(z, labels, metrics=["nmi"], distance=distance).metrics
        assert figures["nmi"] == pytest.approx(nmi(labels, few), abs=1e-12)
        assert nmi(labels, many) != pytest.approx(nmi(labels, few), abs=1e-6)


class TestRho:
    """The p' that is pushed away is any member of the class but the anchor, whatever positive the miner has chosen."""

    LABELS = torch.tensor([0] * 6 + [1] * 6)
    Z = torch.randn(12, 4, generator=torch.Generator().manual_seed(0))

    def joint(self, positives):
        """How often p' (column) meets the miner's positive (row) for anchor 2."""
        count = len(positives)
        given = Triplets(torch.full((count,), 2), positives, torch.full((count,), 8))
        pairs = Pairs.of(self.Z, self.LABELS)
        changed = Rho(p_switch=1.0).change(given, pairs, torch.Generator().manual_seed(1))
        assert (changed.anchor == 2).all()
        assert (changed.positive == 2).all()
        return torch.bincount(positives * 12 + changed.negative, minlength=144).view(12, 12)

    def test_it_is_uniform_when_the_miner_always_gives_one(self):
        seen = self.joint(torch.full((5000,), 4))[4]
        assert seen[[2, *range(6, 12)]].sum() == 0
        assert seen[[0, 1, 3, 4, 5]].tolist() == pytest.approx([1000] * 5, abs=113)  # 4 standard deviations

    def test_it_does_not_depend_on_the_positive(self):
        others = torch.tensor([0, 1, 3, 4, 5])
        positives = others[torch.randint(5, (25000,), generator=torch.Generator().manual_seed(2))]
        table = self.joint(positives)[others][:, others].double()
        assert table.sum() == 25000
        shares = table / table.sum(1, keepdim=True)
        assert (shares - 0.2).abs().max() < 4 * (0.2 * 0.8 / 5000) ** 0.5

    @pytest.mark.parametrize("miner", [Hard, Random])
    def test_inside_an_objective(self, miner):
        """What the loss gets at the end, over many steps of one batch."""
        got = []

        class Listener(Triplet):
            def compute(self, pairs, triplets=None):
                got.append(triplets)
                return super().compute(pairs, triplets)

        objective = Objective(Listener(), miner(), [Rho(p_switch=1.0)])
        for step in range(1500):
            objective(self.Z, self.LABELS, torch.Generator().manual_seed(step))
        of_two = torch.cat([t.negative[t.anchor == 2] for t in got])
        seen = torch.bincount(of_two, minlength=12)
        assert seen[[2, *range(6, 12)]].sum() == 0
        mean = len(of_two) / 5
        assert seen[[0, 1, 3, 4, 5]].tolist() == pytest.approx([mean] * 5, abs=4 * (mean * 0.8) ** 0.5)

"""The lock is real: nothing that training is given leads to a label, path, column or class name of a test row."""

import gc
import sys
from pathlib import Path
from types import FunctionType, ModuleType

import numpy as np
import pytest
import torch
from PIL import Image

import nearkin
from nearkin.config.spec import make_spec
from nearkin.data import Table
from nearkin.registry import BACKBONES, LOSSES, SAMPLERS
from nearkin.runs.prepare import prepare

FOUND = {}


def reachable(*roots, limit=200_000):
    """All objects that can be reached from these by attributes, items, closures and the like."""
    seen, queue = set(), list(roots)
    while queue and len(seen) < limit:
        each = queue.pop()
        if id(each) in seen or isinstance(each, type | ModuleType):
            continue
        seen.add(id(each))
        yield each
        if isinstance(each, FunctionType):  # its closure, not the globals of its module
            queue.extend(cell.cell_contents for cell in each.__closure__ or ())
        else:
            queue.extend(gc.get_referents(each))


def secrets_in(objects, names):
    """Tables, and strings and paths that tell a test image's class."""
    told = set()
    for each in objects:
        if isinstance(each, Table):
            told.add("a table")
        elif isinstance(each, str | Path) and any(name in str(each) for name in names):
            told.add(str(each))
        elif isinstance(each, np.ndarray) and each.dtype.kind == "U":
            told |= {str(x) for x in each.ravel() if any(name in str(x) for name in names)}
    return told


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    for c in range(12):
        side = "train" if c < 7 else "test"
        where = tmp_path / "data" / side / f"{side}class{c:02d}"
        where.mkdir(parents=True)
        for i in range(6):
            Image.fromarray(rng.integers(0, 255, (32, 32, 3), dtype=np.uint8)).save(where / f"{i}.png")
    return tmp_path / "data"


def words(folder, **more):
    return {
        "dataset": "folder",
        "root": str(folder),
        "dim": 8,
        "epochs": 1,
        "train.batch": 8,
        "sampler.per_class": 2,
        **more,
    }


@pytest.mark.parametrize("cache", ["decoded", "packed", "none"])
def test_what_training_is_given_does_not_lead_to_them(folder, cache):
    prepared = prepare(make_spec(words(folder, **{"data.cache": cache})))
    held = [v for k, v in vars(prepared).items() if k != "spec"]  # the spec names the root, and no class
    assert secrets_in(reachable(*held), ["testclass"]) == set()
    labels = np.repeat(np.arange(7, 12), 6)  # of the test rows, as the table numbers them
    arrays = [x for x in reachable(*held) if isinstance(x, np.ndarray) and x.ndim == 1 and x.dtype.kind == "i"]
    assert arrays
    for array in arrays:
        assert not (len(array) >= 30 and any((array[i : i + 30] == labels).all() for i in range(len(array) - 29)))


@pytest.fixture
def spies():
    """A loss, a sampler and a backbone that look for test labels while they train."""

    def look(what, *given):
        FOUND[what] = secrets_in(reachable(*given), ["testclass"])
        FOUND[f"{what}, tables alive"] = (
            {"a table"} if any(issubclass(type(x), Table) for x in gc.get_objects()) else set()
        )

    class SpyLoss(nearkin.losses.Contrastive):
        def compute(self, pairs, triplets=None):
            look("loss", self, pairs)
            frame = sys._getframe()  # and up the stack
            seen = []
            while frame is not None:
                if "nearkin" in frame.f_code.co_filename and "runs" in frame.f_code.co_filename:
                    seen += [v for k, v in frame.f_locals.items() if k not in ("spec", "words")]
                frame = frame.f_back
            FOUND["the stack"] = {"a table"} if any(isinstance(x, Table) for x in reachable(*seen)) else set()
            return super().compute(pairs, triplets)

    class SpySampler(nearkin.samplers.Balanced):
        def plan(self, rng):
            look("sampler", self)
            return super().plan(rng)

    class SpyNet(nearkin.models.ConvNet):
        def forward(self, x):
            look("backbone", self, x)
            return super().forward(x)

        def run_stage(self, name, x):
            look("backbone", self, x)
            return super().run_stage(name, x)

    for registry, cls in ((LOSSES, SpyLoss), (SAMPLERS, SpySampler), (BACKBONES, SpyNet)):
        registry.register("spy")(cls)
    FOUND.clear()
    yield look
    for registry in (LOSSES, SAMPLERS, BACKBONES):
        del registry._classes["spy"]


def test_nor_can_parts_of_the_users_own_find_them(folder, tmp_path, spies):
    gc.collect()

    def watch(entry):
        spies("callback", entry)

    run = nearkin.train(
        words(folder, loss="spy", sampler="spy", backbone="spy") | {"train.batches_per_epoch": 2},
        runs=tmp_path / "runs",
        test=False,
        watch=watch,
    )
    assert {"loss", "sampler", "backbone", "callback", "the stack"} <= FOUND.keys()
    assert {what: found for what, found in FOUND.items() if found} == {}
    assert not (run.path / "test.parquet").exists()
    assert "testclass" not in "".join(p.read_text(errors="ignore") for p in run.path.glob("*.*") if p.suffix != ".pt")
    nearkin.test(run)  # now they are read
    assert "testclass" in (run.path / "test.parquet").read_bytes().decode(errors="ignore")


def test_the_search_would_find_them(folder):
    """The test of the test: a table given to a part is found."""
    table = nearkin.data.load_table("folder", folder)
    holder = torch.nn.Identity()
    holder.secret = {"deep": [table]}
    assert "a table" in secrets_in(reachable(holder), ["testclass"])
    holder.secret = lambda: table.classes
    assert any("testclass" in x for x in secrets_in(reachable(holder), ["testclass"]))

"""Equal hash, equal meaning: what a new name drops, what a changed default does, what counts by its content."""

import importlib
import sys

import pytest
import torch
import yaml
from pydantic import BaseModel

from nearkin.config import identity
from nearkin.config.born import born, original_defaults, original_defaults_of, unset
from nearkin.config.spec import RunSpec, make_spec, read_spec
from nearkin.errors import NearkinError
from nearkin.losses import MultiSimilarity, PairLoss
from nearkin.registry import LOSSES, METRICS
from nearkin.runs.defaults import resolve


def hashed(*sources):
    return resolve(make_spec(*sources)).hash("d", "s")


class TestAnotherName:
    """A new name begins with that part's own defaults."""

    BASE = {"loss": "multi_similarity", "loss.alpha": 18, "dim": 64}  # noqa: RUF012

    def test_in_words(self):
        spec = make_spec(self.BASE, {"loss": "proxy_anchor"})
        assert spec.loss.params == {}
        assert spec.model.dim == 64
        assert spec == make_spec({"loss": "proxy_anchor", "dim": 64})

    def test_in_trees_yaml_and_specs(self, tmp_path):
        tree = {"loss": {"name": "multi_similarity", "alpha": 18}}
        (tmp_path / "base.yaml").write_text(yaml.safe_dump(tree))
        for base in (tree, read_spec(tmp_path / "base.yaml"), resolve(make_spec(tree))):
            assert "alpha" not in make_spec(base, {"loss": "contrastive"}).loss.params
            assert make_spec(base, {"loss": {"name": "proxy_anchor", "alpha": 3}}).loss.params == {"alpha": 3}

    def test_the_same_name_keeps_them(self):
        spec = make_spec(self.BASE, {"loss": "multi_similarity", "loss.beta": 3})
        assert spec.loss.params == {"alpha": 18, "beta": 3}

    def test_settings_of_the_part_that_nobody_named_belong_to_the_default(self):
        assert make_spec({"loss.alpha": 18}, {"loss": "multi_similarity"}).loss.params == {}
        assert make_spec({"sampler.per_class": 2}, {"sampler": "spc"}).sampler.params == {"per_class": 2}

    def test_another_data_set_drops_root_and_keeps_the_size_of_images(self):
        base = {"dataset": "cub", "root": "birds", "data.size": 64, "data.on_error": "skip"}
        spec = make_spec(base, {"dataset": "cars196"})
        assert spec.data.root is None
        assert (spec.data.size, spec.data.on_error) == (64, "skip")

    def test_another_backbone_drops_the_weights_of_the_old_one(self):
        base = {"backbone": "efficientnet_lite0", "weights": "imagenet", "cut": "block14"}
        spec = make_spec(base, {"backbone": "resnet50"})
        assert (spec.model.weights, spec.model.cut) == (None, "none")
        assert make_spec(base, {"backbone": "efficientnet_lite0"}).model.weights == "imagenet"

    def test_miner_none_drops_its_settings(self):
        assert make_spec({"loss": "triplet", "miner": "semihard", "miner.margin": 0.1}, {"miner": "none"}).miner is None


class TestDefaultsThatChange:
    class Old(BaseModel):
        decay: float = born(1e-4)
        pool: str | None = unset("avg")

    class New(BaseModel):
        decay: float = born(1e-4, now=5e-4)
        pool: str | None = unset("avg")
        added: int = born(3)

    def changes(self, model, **values):
        return identity.changes(model(**values).model_dump(), model, {}, set())

    def test_a_field_drops_out_at_the_value_it_was_born_with(self):
        assert self.changes(self.Old) == {}
        assert self.changes(self.New) == {"decay": 5e-4}
        assert self.changes(self.New, decay=1e-4) == {}

    def test_null_is_a_value_unless_it_leaves_the_field_open(self):
        class Stops(BaseModel):
            patience: int | None = born(5)

        assert self.changes(Stops, patience=None) == {"patience": None}
        assert self.changes(self.Old, pool=None) == {}

    def test_a_hyperparameter_whose_default_changed_is_noted_where_the_class_is_registered(self):
        class Changed(PairLoss):
            def __init__(self, *, margin: float = 0.5):
                super().__init__()

        LOSSES.register("changed_default", born={"margin": 0.2})(Changed)
        try:
            assert original_defaults_of(Changed) == {"margin": 0.2}
            new, old = (resolve(make_spec({"loss": "changed_default", **w})) for w in ({}, {"loss.margin": 0.2}))
            assert new.changes()["loss.margin"] == 0.5
            assert "loss.margin" not in old.changes()
        finally:
            del LOSSES._classes["changed_default"]

    def test_every_field_of_a_spec_has_a_birth(self):
        spec = resolve(make_spec({"miner": "random", "loss": "triplet"}))
        known = original_defaults(RunSpec)
        for key in identity.flatten(spec.whole()):
            assert key in known or key.split(".")[0] in ("miner", "regulariser", "method", *spec.classes()), key

    def test_the_resolved_spec_holds_everything(self):
        whole = resolve(make_spec({"loss": "multi_similarity"})).whole()
        assert whole["loss"] == {"name": "multi_similarity", "alpha": 2.0, "beta": 40.0, "base": 0.5, "divisor": "kept"}
        assert whole["miner"] is None
        assert whole["train"]["clip"] is None


class TestStoredAgainstAsked:
    def test_a_difference_is_named(self):
        asked = resolve(make_spec({"loss": "multi_similarity"}))
        stored = asked.whole()
        assert asked.differences(stored) == []
        stored["loss"]["alpha"] = 3.0
        assert asked.differences(stored) == ["loss.alpha=3.0 is stored, loss.alpha=2.0 is asked for"]

    def test_a_field_that_an_older_run_lacks_reads_as_it_was_born(self):
        asked = resolve(make_spec({"loss": "multi_similarity"}))
        stored = asked.tree()
        del stored["loss"]["alpha"], stored["train"]["gamma"], stored["purpose"]
        assert asked.differences(stored) == []
        assert resolve(make_spec({"loss": "multi_similarity", "loss.alpha": 3})).differences(stored) != []

    def test_where_it_runs_is_not_compared(self):
        asked = make_spec({"root": "a", "train.device": "cpu"})
        assert asked.differences(make_spec({"root": "b"}).whole()) == []


MODULE = """
from nearkin.losses import PairLoss

def scale():
    return {factor}

class Mine(PairLoss):
    def __init__(self, *, margin: float = 0.2):
        super().__init__()
        self.margin = margin

    def compute(self, pairs, tuples=None):
        return scale() * pairs.d.mean()
"""


@pytest.fixture
def outside(tmp_path, monkeypatch):
    """Writes a module of the user's own, and imports it anew."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(text):
        (tmp_path / "own_losses.py").write_text(text)
        sys.modules.pop("own_losses", None)
        importlib.invalidate_caches()

    yield write
    sys.modules.pop("own_losses", None)


class TestFromOutside:
    def test_an_edited_loss_has_another_name(self, outside):
        outside(MODULE.format(factor=1))
        first = hashed({"loss": "own_losses.Mine"})
        assert hashed({"loss": "own_losses.Mine"}) == first
        outside(MODULE.format(factor=2))  # in a helper of the module, not in the class
        assert hashed({"loss": "own_losses.Mine"}) != first

    def test_one_that_is_registered_counts_by_its_source_too(self, outside):
        outside("from nearkin.registry import LOSSES\n" + MODULE.format(factor=1))
        mine = importlib.import_module("own_losses").Mine
        LOSSES.register("registered_outside")(mine)
        try:
            assert identity.source_of(mine) is not None
            first = hashed({"loss": "registered_outside"})
            outside("from nearkin.registry import LOSSES\n" + MODULE.format(factor=3))
            LOSSES._classes["registered_outside"] = importlib.import_module("own_losses").Mine
            assert hashed({"loss": "registered_outside"}) != first
        finally:
            del LOSSES._classes["registered_outside"]

    def test_one_of_a_notebook_counts_by_its_methods(self):
        def cell(factor):
            space = {"__name__": "__main__", "PairLoss": PairLoss}
            exec(f"class Mine(PairLoss):\n    def compute(self, pairs, tuples=None):\n        return {factor}", space)
            return space["Mine"]

        assert identity.source_of(cell(1)) == identity.source_of(cell(1))
        assert identity.source_of(cell(1)) != identity.source_of(cell(2))

    def test_ours_do_not(self):
        assert identity.source_of(MultiSimilarity) is None

    def test_our_names_stay_ours(self):
        class MultiSimilarity(PairLoss):
            pass

        with pytest.raises(NearkinError, match=r"loss 'multi_similarity' is already registered by nearkin\.losses"):
            LOSSES.register("multi_similarity")(MultiSimilarity)
        MultiSimilarity.__qualname__ = "MultiSimilarity"  # even when it is called the same
        with pytest.raises(NearkinError, match="take another name"):
            LOSSES.register("multi_similarity")(MultiSimilarity)


def test_weights_in_the_home_folder_count_by_content(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    torch.save({"a": torch.zeros(1)}, tmp_path / "w.pth")
    first = hashed({"weights": "~/w.pth"})
    assert hashed({"weights": str(tmp_path / "w.pth")}) == first
    torch.save({"a": torch.ones(1)}, tmp_path / "w.pth")
    assert hashed({"weights": "~/w.pth"}) != first


@pytest.mark.parametrize(
    "words",
    [
        {"loss": "triplet", "miner": "random"},
        {"loss": "contrastive", "sampler": "spc"},
        {"train.optimiser": "sgd", "lr": 3},
        {"train.select": "recall@1"},
        {"memory.size": 50, "loss": "nt_xent"},
        {"regulariser": "norm"},
    ],
    ids=str,
)
def test_an_untrained_run_is_the_same_whatever_it_is_compared_with(words):
    assert hashed({"epochs": 0}, words) == hashed({"epochs": 0})


@pytest.mark.parametrize(
    "words",
    [{"dim": 8}, {"model.head": "none"}, {"seed": 1}, {"protocol": "standard"}, {"data.classes": 20}, {"loss": "hist"}],
    ids=str,
)
def test_but_not_whatever_network_and_data(words):
    """HIST has a LayerNorm behind its head, which belongs to the network."""
    assert hashed({"epochs": 0}, words) != hashed({"epochs": 0})


@pytest.mark.parametrize(
    "words",
    [
        {"memory.size": 64, "loss": "nt_xent"},
        {"loss": "margin", "loss.beta": 1.1},
        {"purpose": "trial"},
        {"train.clip": 1},
        {"miner": "random", "loss": "margin"},
        {"train.groups.loss.lr": 1},
    ],
    ids=str,
)
def test_the_hash_covers(words):
    rest = {k: v for k, v in words.items() if k == "loss"}
    assert hashed(words) != hashed(rest)


def test_versions_of_loop_and_of_the_metric_that_selects_count(monkeypatch):
    spec = resolve(make_spec({}))
    before = spec.hash("d", "s")
    assert spec.hash("d", "s", loop=1, transforms=1) == before
    assert len({before, spec.hash("d", "s", loop=2), spec.hash("d", "s", transforms=2)}) == 3
    monkeypatch.setattr(METRICS["recall"], "version", 2)
    assert spec.hash("d", "s") == before
    monkeypatch.setattr(METRICS["map_at_r"], "version", 2)
    assert spec.hash("d", "s") != before


def test_patience_below_eval_every_is_refused():
    with pytest.raises(NearkinError, match=r"train\.patience=2 is below train\.eval_every=3"):
        make_spec({"train.patience": 2, "train.eval_every": 3})


@pytest.mark.parametrize(
    ("words", "same"),
    [
        ({"data.keep": 32}, {}),  # the convnet's own size
        ({"train.warmup_counts": False}, {}),
        ({"model.head": "none", "model.init": "torch"}, {"model.head": "none"}),
        ({"epochs": 0, "data.crop": 24, "train.amp": True}, {"epochs": 0}),
        ({"data.cache": "none"}, {"data.cache": "decoded"}),
    ],
)
def test_what_nothing_reads_has_no_name(words, same):
    one, other = (resolve(make_spec({"dataset": "cub", "root": "anywhere", **each})) for each in (words, same))
    assert one.hash("d", "s") == other.hash("d", "s")

"""The name that a run is stored under: former names are found, edited helpers give another, curves are whole."""

import importlib
import sys

import pytest
import yaml
from typer.testing import CliRunner

import nearkin
from nearkin.cli.app import app
from nearkin.config import identity, sources
from nearkin.config.spec import make_spec
from nearkin.errors import NearkinError
from nearkin.models.timm import named
from nearkin.runs.names import former, names_of, run_of
from nearkin.runs.prepare import prepare, recipe_of
from nearkin.runs.reproduce import reproduce
from nearkin.runs.store import Store
from nearkin.runs.verify import fits_name

TINY = {
    "dataset": "glyphs",
    "data.classes": 12,
    "data.per_class": 8,
    "data.size": 16,
    "backbone": "convnet",
    "dim": 8,
    "train.batch": 8,
    "train.batches_per_epoch": 2,
    "epochs": 2,
    "train.device": "cpu",
}
IDLE = {"train.momentum": 0.3, "train.gamma": 0.1, "data.flip": False, "train.groups.head.lr": 1e-3}


def trained(words, runs, **more):
    """A run, and the steps that were trained for it."""
    steps = []
    run = nearkin.train(
        words, runs=runs, watch=lambda entry: steps.append(entry["step"]) if "step" in entry else None, **more
    )
    return run, steps


def as_stored_before(words, runs, **more):
    """The run as an older nearkin left it: under its former name, with the spec as it was resolved then."""
    run, _ = trained(words, runs, **more)
    prepared = prepare(make_spec(words))
    name = names_of(prepared)[1]
    path = run.path.rename(runs / name)
    head = yaml.safe_load((path / "spec.yaml").read_text()) | {"spec": former(prepared).whole()}
    (path / "files.json").unlink()
    (path / "spec.yaml").write_text(yaml.safe_dump(head, sort_keys=False))
    return Store(runs).run(name)


class TestFormerNames:
    def test_a_finished_run_is_found(self, tmp_path):
        before = as_stored_before(TINY | IDLE, tmp_path)
        again, steps = trained(TINY | IDLE, tmp_path)
        assert (again.hash, steps) == (before.hash, [])
        assert fits_name(again)
        assert trained(TINY, tmp_path)[0].hash == prepare(make_spec(TINY | IDLE)).hash  # one run for both

    def test_a_paused_one_goes_on(self, tmp_path):
        before = as_stored_before(TINY | IDLE, tmp_path, until=1)
        again, steps = trained(TINY | IDLE, tmp_path)
        assert (again.hash, steps) == (before.hash, [3, 4])
        assert again.done

    def test_an_untrained_one_is_found(self, tmp_path):
        words = TINY | {"epochs": 0, "model.head": "none", "lr": 3}
        before = as_stored_before(words, tmp_path)
        assert before.hash != prepare(make_spec(words)).hash
        assert trained(words, tmp_path)[0].hash == before.hash

    def test_it_can_be_reproduced(self, tmp_path):
        before = as_stored_before(TINY | IDLE | {"epochs": 1}, tmp_path)
        assert reproduce(before, runs=tmp_path).ok

    def test_todays_name_comes_first(self, tmp_path):
        as_stored_before(TINY | IDLE, tmp_path)
        run, _ = trained(TINY, tmp_path)
        assert run_of(Store(tmp_path), prepare(make_spec(TINY | IDLE))).hash == run.hash

    def test_one_that_is_not_what_is_asked_for_is_refused(self, tmp_path):
        before = as_stored_before(TINY | IDLE, tmp_path)
        head = yaml.safe_load((before.path / "spec.yaml").read_text())
        head["spec"]["train"]["weight_decay"] = 0.5
        (before.path / "spec.yaml").write_text(yaml.safe_dump(head))
        with pytest.raises(NearkinError, match=r"train\.weight_decay=0\.5 is stored, train\.weight_decay=0\.0001"):
            trained(TINY | IDLE, tmp_path)

    def test_the_data_tell_what_else_nothing_reads(self):
        words = TINY | {"protocol": "standard", "train.select": "recall@1", "data.on_error": "skip", "data.flip": False}
        assert prepare(make_spec(words)).hash == prepare(make_spec(TINY | {"protocol": "standard"})).hash
        words["data.flip"] = True
        assert prepare(make_spec(words)).hash != prepare(make_spec(TINY | {"protocol": "standard"})).hash

    def test_the_recipe_is_not_said_to_be_overridden_by_what_nothing_reads(self):
        spec = make_spec({"recipe": "drml2021", "dataset": "cub", "method": "none"})
        assert spec.train.groups["head"].lr == spec.train.lr  # null stands for it
        assert "train.groups.head.lr" not in recipe_of(spec)["recipe"]["overridden"]


class TestCurve:
    def test_one_that_would_begin_in_the_middle_is_refused(self, tmp_path):
        run, _ = trained(TINY, tmp_path, until=1)
        with pytest.raises(NearkinError, match=f"run {run.hash} was trained to epoch 1 without a test curve.*runs rm"):
            trained(TINY | {"train.curve": True}, tmp_path)
        assert trained(TINY, tmp_path)[0].done

    def test_one_that_would_end_in_the_middle_is_refused(self, tmp_path):
        run, _ = trained(TINY | {"train.curve": True}, tmp_path, until=1)
        with pytest.raises(NearkinError, match=f"run {run.hash} was trained to epoch 1 with a test curve.*curve=true"):
            trained(TINY, tmp_path)
        run, _ = trained(TINY | {"train.curve": True}, tmp_path)
        assert [point["epoch"] for point in run.read_json("curve.json")["epochs"]] == [1, 2]

    def test_a_finished_run_is_shown_with_and_without(self, tmp_path):
        run, _ = trained(TINY, tmp_path)
        again, steps = trained(TINY | {"train.curve": True}, tmp_path)
        assert (again.hash, steps) == (run.hash, [])


MINE = """
from nearkin.losses import PairLoss
from mended_helper import scale

class Mine(PairLoss):
    def compute(self, pairs, tuples=None):
        return scale() * pairs.d.mean()
"""
HELPER = "import mended_package.inner\n\ndef scale():\n    return 1 + mended_package.inner.more()\n"
FILES = {
    "mended_loss.py": MINE,
    "mended_helper.py": HELPER,
    "mended_package/__init__.py": "",
    "mended_package/inner.py": "def more():\n    from . import last\n    return last.NUMBER\n",
    "mended_package/last.py": "NUMBER = 0\n",
    "mended_package/other.py": "UNUSED = 1\n",
}


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Writes modules of the user's own; they are imported anew."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def files(**edited):
        for name, text in (FILES | {key: value for key, value in edited.items() if key in FILES}).items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(text)
        forget()

    def forget():
        for name in [name for name in sys.modules if name.startswith("mended_")]:
            del sys.modules[name]
        importlib.invalidate_caches()

    yield files
    forget()


class TestHelpers:
    def name(self):
        return make_spec({"loss": "mended_loss.Mine"}).hash("d", "s")

    @pytest.mark.parametrize(
        ("file", "counts"),
        [
            ("mended_helper.py", True),
            ("mended_package/__init__.py", True),
            ("mended_package/inner.py", True),
            ("mended_package/last.py", True),
            ("mended_package/other.py", False),
        ],
    )
    def test_an_edited_module_counts_if_it_is_imported_by_any_way(self, write, file, counts):
        write()
        before = self.name()
        assert self.name() == before
        write(**{file: FILES[file] + "# edited\n"})
        assert (self.name() != before) is counts

    def test_the_same_command_after_an_edit_trains_anew(self, write, tmp_path):
        write()
        words = TINY | {"loss": "mended_loss.Mine", "epochs": 1}
        first, steps = trained(words, tmp_path / "runs")
        assert steps
        assert trained(words, tmp_path / "runs")[1] == []
        write(**{"mended_helper.py": HELPER.replace("1 +", "2 +")})
        second, steps = trained(words, tmp_path / "runs")
        assert steps
        assert second.hash != first.hash

        said = CliRunner().invoke(app, ["runs", "show", first.hash, "--runs", str(tmp_path / "runs")]).output
        assert (
            "part of its hash, from outside nearkin: mended_helper, mended_loss, mended_package, mended_package.inner, "
            "mended_package.last" in said.replace("\n", " ")
        )
        modules = [run.read_json("final.json")["modules"] for run in (first, second)]
        assert [key for key in modules[0] if modules[0][key] != modules[1][key]] == ["mended_helper"]

    def test_a_part_without_helpers_keeps_its_hash(self, write):
        """Of a part that imports nothing but nearkin and installed packages its own text counts, as ever."""
        from hashlib import sha256

        alone = "import numpy\nimport yaml\nfrom nearkin.losses import PairLoss\n\nclass Mine(PairLoss):\n    pass\n"
        write(**{"mended_loss.py": alone})
        mine = importlib.import_module("mended_loss").Mine
        assert identity.source_of(mine) == sha256(alone.encode()).hexdigest()[:16]
        assert list(identity.modules_of(mine)) == ["mended_loss"]

    def test_one_of_ours_has_none(self):
        assert identity.modules_of(nearkin.losses.Margin) == {}
        assert "modules" not in prepare(make_spec(TINY)).about

    def test_of_a_notebook_what_the_class_uses_by_name(self, write):
        write()
        space = {"__name__": "__main__"}
        exec(
            "import mended_helper, mended_package.other\nclass Mine:\n"
            "    def compute(self):\n        return [mended_helper.scale() for _ in range(3)]",
            space,
        )
        assert list(sources.helpers_of([space["Mine"]])) == [
            "mended_helper",
            "mended_package",
            "mended_package.inner",
            "mended_package.last",
        ]


def test_the_version_of_timm_counts_where_a_network_is_timms(monkeypatch):
    versions = {"timm": "1.0"}
    monkeypatch.setattr(identity.metadata, "version", lambda package: versions[package])
    assert identity.package_of(named("resnet18")) == "timm 1.0"
    assert identity.package_of(nearkin.models.ResNet50) is None
    spec, plain = make_spec({"backbone": "timm/resnet18"}), make_spec({"backbone": "convnet"})
    before = [each.hash("d", "s") for each in (spec, plain)]
    old = spec.hash("d", "s", former=True)
    versions["timm"] = "1.1"
    assert [each.hash("d", "s") == name for each, name in zip((spec, plain), before, strict=True)] == [False, True]
    assert spec.hash("d", "s", former=True) == old  # runs that were stored before are found

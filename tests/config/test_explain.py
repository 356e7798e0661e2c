"""Every setting is explained beside its field; `nearkin explain` and the pages settings.md and studies.md show it."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from nearkin.cli.explain import explain_command
from nearkin.config.born import original_defaults
from nearkin.config.catalogue import Catalogue, Entry, read_catalogue
from nearkin.config.describe import CLASSES, classes, described, parameter_lines, settings
from nearkin.config.parse import parse_words
from nearkin.config.parts import PARTS
from nearkin.config.spec import ALIASES, RunSpec, make_spec
from nearkin.errors import NearkinError
from nearkin.registry import BACKBONES, LOSSES
from nearkin.runs.defaults import resolve
from nearkin.studies.grid import read_study

CATALOGUE = described()
DOCS = Path(__file__).parents[2] / "docs"
SETTINGS, STUDIES = ((DOCS / name).read_text() for name in ("settings.md", "studies.md"))
OPEN = [key for key, entry in settings().items() if entry.filled and not key.endswith(".name")]


def said(*words):
    """What the command prints."""
    app = typer.Typer()
    app.command()(explain_command)
    done = CliRunner(env={"COLUMNS": "200"}).invoke(app, list(words))
    assert done.exit_code == 0, (done.output, done.exception)
    return done.stdout


def explain(key) -> list[Entry]:
    return CATALOGUE.explain(key)


def one(key) -> Entry:
    [found] = explain(key)
    return found


class TestEverySetting:
    def test_every_field_of_a_spec_is_a_setting(self):
        known = {key.replace(".NAME", "") for key in settings()}
        assert set(original_defaults(RunSpec)) <= known
        assert {"miner.name", "train.groups", "purpose"} <= known

    @pytest.mark.parametrize("key", settings())
    def test_says_what_it_means(self, key):
        entry = settings()[key]
        assert entry.about.endswith("."), f"{key}: give its field about='...' (config/born.py), whole sentences"
        assert entry.allowed, f"{key}: its type has no words yet (config/describe.py, TYPES or ALLOWED)"
        assert not entry.source or entry.source.endswith(".")

    def test_one_of_several_types_has_its_bounds(self):
        assert settings()["train.blend"].allowed == "auto, or number, at least 0 and at most 1"

    @pytest.mark.parametrize("part", PARTS)
    def test_every_hyperparameter_has_a_meaning(self, part):
        assert [(each.key, own.key) for each in classes(part) for own in each.settings if not own.about] == []

    def test_what_is_left_open_says_what_it_becomes(self):
        assert set(OPEN) == {key for key, (_, is_open) in original_defaults(RunSpec).items() if is_open}

    @pytest.mark.parametrize(
        "words",
        [
            {},
            {"backbone": "efficientnet_lite0", "weights": "imagenet"},
            {"loss": "hist"},
            {"method": "drml"},
            {"backbone": "efficientnet_lite0", "weights": "imagenet", "cut": "all"},
        ],
        ids=str,
    )
    def test_which_is_true(self, words):
        spec = resolve(make_spec(words)).whole()
        for key in OPEN:
            group, name = key.split(".")
            value = spec[group][name]
            text = str(value).lower()
            if isinstance(value, float):
                text = f"{value:.0e}".replace("e-0", "e-") if 0 < value < 0.01 else f"{value:g}"
            assert re.search(rf"\b{re.escape(text)}\b", settings()[key].filled), (key, value)

    @pytest.mark.parametrize(
        "name", ["convnet", "efficientnet_lite0", "efficientnet_lite1", "bn_inception", "googlenet", "resnet50"]
    )
    def test_of_every_backbone(self, name):
        spec = resolve(make_spec({"backbone": name})).data
        named = name if name in ("convnet", "efficientnet_lite0", "efficientnet_lite1") else "built-in ones"
        for key in ("size", "resize", "crop"):
            assert f"{named} {getattr(spec, key)}" in settings()[f"data.{key}"].filled


class TestExplain:
    def test_a_setting(self):
        entry = one("train.gamma")
        assert (entry.default, entry.allowed) == (0.5, "number, above 0 and at most 1")
        assert "ProxyAnchor" in entry.source
        assert one("train.momentum").allowed == "number, at least 0 and below 1"
        assert one("train.optimiser").choices == ("sgd", "rmsprop", "adam", "adamw")
        assert one("train.patience").allowed == "whole number, at least 1; or null"
        assert one("train.amp").shown == "false"

    def test_aliases(self):
        for alias, key in ALIASES.items():
            entry = one(alias)
            assert entry.key == (key.removesuffix(".name") if key.endswith(".name") else key)
            assert alias in entry.aliases

    def test_a_group_of_parameters(self):
        assert one("train.groups.head.lr").key == "train.groups.head.lr"
        assert one("train.groups.head.lr").allowed == "number, at least 0; or null"

    def test_a_part(self):
        entry = one("loss")
        assert (entry.kind, entry.default) == ("part", "proxy_anchor")
        assert "multi_similarity" in entry.choices
        assert "nearkin list losses" in said("loss")
        assert one("loss.name") == entry
        assert "balanced" in one("sampler").shown
        assert one("miner").shown == "none"
        assert [own.key for own in one("data").settings][:2] == ["data.root", "data.size"]

    def test_a_group_of_settings(self):
        assert [own.key for own in one("memory").settings] == ["memory.size", "memory.warmup"]
        assert "train.eval_every" in said("train")

    def test_a_hyperparameter_of_every_class_that_has_it(self):
        found = explain("loss.alpha")
        assert {entry.of for entry in found} >= {"angular", "multi_similarity", "proxy_anchor"}
        assert {entry.key for entry in found} == {"loss.alpha"}
        assert "how strongly the least similar positives" in said("loss.alpha")

    def test_a_hyperparameter_of_one_class(self):
        entry = one("multi_similarity.alpha")
        assert (entry.key, entry.of, entry.default) == ("loss.alpha", "multi_similarity", 2.0)
        assert entry.source.startswith("Wang et al. 2019")
        assert entry.about.startswith("α, how strongly")
        assert "above 0" in " ".join(said("multi_similarity.alpha").split())
        assert one("contrastive.form").choices == ("distance", "cosine", "similarity")
        assert one("data.classes").of == "glyphs"

    def test_a_class_is_shown_with_its_docstring(self):
        assert [entry.kind for entry in explain("multi_similarity")] == ["loss", "miner"]
        text = said("multi_similarity")
        for line in (LOSSES["multi_similarity"].__doc__ or "").split("\n"):
            assert line.strip() in text
        assert "loss=multi_similarity loss.alpha=2 loss.beta=40 loss.base=0.5" in text
        assert one("miner.random").kind == "miner"
        assert one("resnet50").choices == BACKBONES["resnet50"].stages

    @pytest.mark.parametrize("name", [name for kind in CLASSES for name in CLASSES[kind].names()])
    def test_every_name(self, name):
        assert any(entry.key == name and entry.doc for entry in explain(name)) or name in ALIASES

    def test_the_last_word_of_a_setting(self):
        assert [entry.key for entry in explain("warmup")] == ["memory.warmup", "train.warmup"]
        assert one("patience").key == "train.patience"
        assert {entry.key for entry in explain("alpha")} == {"loss.alpha", "regulariser.alpha"}

    @pytest.mark.parametrize(
        ("key", "near"),
        [
            ("train.lrr", "did you mean train.lr"),
            ("los", "did you mean loss"),
            ("loss.alhpa", "did you mean loss.alpha"),
            ("multi_similarty", "did you mean multi_similarity"),
            ("patiance", "did you mean patience"),
            ("multi_similarity.gamma", "choices: multi_similarity.alpha"),
            ("foo.bar", "choices: backbone, cut, data"),
            ("train.groups.head.decay", "train.groups"),
            ("", "choices"),
        ],
    )
    def test_unknown_keys_name_the_near_ones(self, key, near):
        with pytest.raises(NearkinError, match=f"^unknown key {key!r}: ") as caught:
            explain(key)
        assert near in str(caught.value)
        assert "\n" not in str(caught.value)

    def test_json(self):
        [told] = json.loads(said("dim", "--json"))
        assert (told["key"], told["default"], told["aliases"]) == ("model.dim", None, ["dim"])
        assert told["allowed"] == "whole number, at least 1"
        for key in ("loss", "train", "multi_similarity", "loss.alpha"):
            assert all({"key", "kind", "about"} <= told.keys() for told in json.loads(said(key, "--json")))
        assert json.loads(said("multi_similarity", "--json"))[0]["settings"][0]["default"] == 2.0


def test_parameter_lines():
    doc = "What it is.\n\nParameters:\n    a, b: two of\n        them; a: c\n    d: one\n\nShapes: e: f"
    assert parameter_lines(doc) == {"a": "two of them; a: c", "b": "two of them; a: c", "d": "one"}


class TestCatalogue:
    def test_is_what_the_code_says(self):
        stored, now = json.loads(read_catalogue().to_json()), json.loads(CATALOGUE.to_json())
        assert stored.keys() == now.keys()
        stale = [what for what in now if stored[what] != now[what]]
        assert stale == [], "config/catalogue.json is stale: make catalogue"

    def test_comes_back_from_its_text(self):
        assert Catalogue.from_json(CATALOGUE.to_json()) == CATALOGUE


class TestSettingsPage:
    def test_is_what_the_code_says(self):
        made = subprocess.run([sys.executable, "-m", "nearkin.config.page"], capture_output=True, check=True)
        stale = set(SETTINGS.splitlines()) - set(made.stdout.decode().splitlines())
        assert not stale, "docs/settings.md is stale: make settings"  # a part that is new may be missing there

    @pytest.mark.parametrize("key", settings())
    def test_has_every_key(self, key):
        assert f"\n| `{key}` |" in SETTINGS

    def test_its_commands_are_right(self):
        lines = re.findall(r"^    nearkin train (.*?)(?:  .*)?$", SETTINGS, re.M)
        assert lines
        for line in lines:
            make_spec(parse_words([word for word in line.split() if not word.endswith(".yaml")]))
        for key in re.findall(r"^    nearkin explain (\S+)", SETTINGS, re.M):
            assert explain(key)


class TestStudiesPage:
    def test_its_example_is_a_study(self, tmp_path):
        [text] = re.findall(r"```yaml\n(name: .*?)```", STUDIES, re.S)
        (tmp_path / "example.yaml").write_text(text)
        study = read_study(tmp_path / "example.yaml", {"data.classes": 40})
        assert study.axes == ("method", "dim")
        places = list(dict.fromkeys(cell.labels for cell in study.cells))
        assert len(places) == 9
        assert [place for place in places if "untrained" in place[0]] == [
            ("pooled (untrained)", "any"),
            ("random_head (untrained)", "32"),
            ("random_head (untrained)", "64"),
        ]
        assert len(study.cells) == 9 * 2
        trained = [cell for cell in study.cells if cell.spec.train.epochs]
        margins = {cell.labels[0]: cell.spec.loss.params.get("margin") for cell in trained}
        assert margins == {"random triplets": 0.1, "semihard triplets": 0.1, "contrastive": None}
        assert {cell.spec.data.params["classes"] for cell in study.cells} == {40}

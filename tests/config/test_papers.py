"""The settings of five papers beside the resolved spec of a run with their words.

`fixtures/papers.json` has one line for each setting: recipe and words, the symbol and the value as printed or as the
public code has it, the key and the value here (angles in radians, patience one more, and so on).
"""

import json
from itertools import groupby
from pathlib import Path

import pytest

import nearkin
from nearkin.config.parse import flatten
from nearkin.config.recipes import Recipe, names
from nearkin.config.spec import make_spec, stored_spec
from nearkin.errors import NearkinError
from nearkin.runs.defaults import complete, fill, resolve
from nearkin.runs.result import result_words

PAPERS = json.loads((Path(__file__).parents[1] / "fixtures" / "papers.json").read_text())


def setup(line):
    return " ".join([line["recipe"], *(f"{key}={value}" for key, value in line["words"].items())])


SETUPS = {name: list(lines) for name, lines in groupby(sorted(PAPERS, key=setup), setup)}


@pytest.mark.parametrize("name", list(SETUPS))
def test_the_spec_has_what_the_paper_has(name):
    lines = SETUPS[name]
    spec = make_spec({"recipe": lines[0]["recipe"], **lines[0]["words"]})
    found = flatten(complete(fill(spec)).whole())  # a resolved spec has null where that means the same
    for line in lines:
        here = f"{line['where']}: {line['symbol']} = {line['printed']}"
        value = found.get(line["key"])
        expected = line["value"]
        if isinstance(expected, float):
            expected = pytest.approx(expected, rel=1e-3)  # angles and reciprocals are rounded
        assert (list(value) if isinstance(value, (list, tuple)) else value) == expected, here


def test_every_recipe_is_in_the_list():
    assert {line["recipe"] for line in PAPERS} == set(names())


@pytest.mark.parametrize("name", names())
def test_every_rule_is_read_by_some_run(name):
    """A rule whose case never comes, or whose key nobody knows, is a slip."""
    for rule in Recipe.named(name).rules:
        case = {key: value[0] if isinstance(value, list) else value for key, value in rule.case.items()}
        loss = {} if name in ("hist2022", "proxy_nca_pp2020") else {"loss": "triplet"}
        spec = make_spec({"dataset": "cub", **loss, "recipe": name}, case)
        words = flatten(spec.whole())
        for key, value in rule.use.items():
            assert key in words or value is None or key.partition(".")[0] in ("method", "loss", "sampler", "miner"), key


class TestWords:
    def test_what_is_asked_for_wins(self):
        spec = make_spec({"recipe": "roth2020", "dataset": "cub", "loss": "margin", "epochs": 3, "miner": "random"})
        assert spec.train.epochs == 3
        assert spec.miner.name == "random"
        assert spec.miner.params == {}
        assert spec.loss.params["beta"] == 1.2
        assert spec.train.batch == 112

    def test_what_was_overridden_can_be_told(self):
        spec = make_spec({"recipe": "roth2020", "dataset": "cub", "loss": "margin", "epochs": 3, "miner": "random"})
        told = Recipe.named("roth2020").overridden(flatten(resolve(spec).whole()))
        assert told == {"train.epochs": (150, 3), "miner.name": ("distance_weighted", "random")}

    def test_what_a_rule_for_no_method_says_is_not_overridden(self):
        words = {"recipe": "drml2021", "dataset": "cub", "method": "none", "model.head": "linear"}
        told = Recipe.named("drml2021").overridden(flatten(resolve(make_spec(words)).whole()))
        assert told["method.name"] == ("drml", None)
        assert "train.lr" not in told  # the rule says 1e-4, another rule 1e-5 with DRML

    def test_without_the_recipe_it_is_the_same_run(self):
        recipe = make_spec({"recipe": "roth2020", "dataset": "cub", "loss": "margin"})
        words = {key: value for key, value in recipe.tree().items() if key != "recipe"}
        assert resolve(recipe).hash("d", "s") == resolve(make_spec(words)).hash("d", "s")
        assert resolve(recipe).differences(resolve(make_spec(words)).whole()) == []

    def test_a_spec_that_is_made_again_stays_as_it_is(self):
        spec = make_spec({"recipe": "roth2020", "dataset": "cub", "loss": "margin", "miner": "none"})
        assert spec.miner is None
        assert make_spec(spec, {"seed": 1}).miner is None
        assert make_spec(spec.whole()).miner is None

    def test_the_result_says_so(self, tiny, tmp_path):
        words = {"recipe": "hist2022", "dim": 8, "loss.hidden": 8, "epochs": 1, "lr": 1e-3}
        del tiny["sampler.per_class"]
        run = nearkin.train({**tiny, **words, "protocol": "fixed_val"}, runs=tmp_path)
        told = run.result["recipe"]
        assert told["name"] == "hist2022"
        assert told["overridden"]["model.backbone"] == ["resnet50", "convnet"]
        assert told["overridden"]["loss.hidden"] == [512, 8]
        assert "train.batch" in told["overridden"]
        assert "train.gamma" not in told["overridden"]
        assert any("recipe: hist2022; otherwise: " in line for line in result_words(run))

    def test_a_stored_spec_is_not_filled_in_anew(self):
        first = make_spec({"recipe": "roth2020", "dataset": "cub", "loss": "triplet"})
        spec = resolve(make_spec(first, {"loss": "arcface", "miner": "none"}))
        again = resolve(stored_spec(spec.whole()))
        assert again.hash("d", "s") == spec.hash("d", "s")
        assert again.recipe == "roth2020"

    def test_an_unknown_one_is_named_with_its_neighbours(self):
        with pytest.raises(NearkinError, match="unknown recipe 'roth': did you mean roth2020"):
            make_spec({"recipe": "roth"})

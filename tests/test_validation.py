"""What predicts the test: how it is measured, and that docs/validation.md says what was measured."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from nearkin.evaluation import evaluate
from nearkin.studies.grid import read_study

ROOT = Path(__file__).parents[1]
STUDY = """
name: tiny
base: {dataset: glyphs, data.classes: 24, data.per_class: 4, data.size: 16, dim: 8, epochs: 1, train.batch: 8}
axes:
  setting:
    contrastive 0: {loss: contrastive}
    triplet 0: {loss: triplet}
  division:
    all: {protocol: standard}
    "2 folds: 0": {protocol: kfold, protocol.folds: 2, protocol.fold: 0}
    "2 folds: 1": {protocol: kfold, protocol.folds: 2, protocol.fold: 1}
baselines: none
"""


def example(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def validation():
    return example("validation")


@pytest.fixture(scope="module")
def tables():
    return example("validation_tables")


def test_the_page_says_what_was_measured(tables):
    text = tables.PAGE.read_text()
    assert {match[1] for match in tables.TABLE.findall(text)} == {f.stem for f in tables.RESULTS.glob("*.json")}
    assert tables.rendered(text) == text, "make validation"


def test_values_by_class_are_those_of_evaluate(validation):
    random = torch.Generator().manual_seed(0)
    z, labels = torch.randn(30, 4, generator=random), np.repeat([2, 5, 9], 10)
    queries = labels[:20]
    whole = evaluate(z, labels, metrics=["recall@1", "map_at_r"]).per_query
    for row, label in zip(validation.means(z, labels, queries), (2, 5), strict=True):
        mask = labels == label
        assert row == pytest.approx([whole["recall@1"][mask].mean(), whole["map_at_r"][mask].mean(), 10], abs=1e-5)


def test_a_study_is_measured_once_and_recorded(validation, tables, tmp_path):
    file, out = tmp_path / "tiny.yaml", tmp_path / "tiny.jsonl"
    file.write_text(STUDY)
    validation.measure(file, {}, out)
    before = out.read_text()
    validation.measure(file, {}, out)
    assert out.read_text() == before
    lines = [json.loads(line) for line in before.splitlines()]
    assert [(line["setting"], line["division"]) for line in lines] == [c.labels for c in read_study(file).cells]
    (test,), fold = lines[0]["points"]["1"]["test"], lines[1]["points"]["1"]
    assert np.shape(test) == (12, 3)
    assert {key: np.shape(parts) for key, parts in fold.items()} == {
        "all": (1, 6, 3),
        "6 classes": (1, 6, 3),
        "5 classes": (1, 5, 3),
    }
    assert np.all(np.array(fold["all"])[..., :2] <= np.array(fold["6 classes"])[..., :2] + 1e-9)  # more to confuse with


def made_up(random, agree):
    """Lines of four settings of two losses at two epochs; validation is the test, or its opposite."""
    lines = []
    for number, setting in enumerate(("a 0", "b 0", "a 1", "b 1")):
        values = {epoch: (number + epoch / 10) / 10 for epoch in (1, 2)}
        row = {e: [[v, v, 3]] * 12 for e, v in values.items()}
        seen = {e: [[v if agree else 1 - v] * 2 + [3]] * 12 for e, v in values.items()}
        divisions = {"all": {e: {"test": [row[e]]} for e in row}}
        for fold in range(2):
            table = {e: {"all": [seen[e]], "12 classes": [seen[e]], "10 classes": [seen[e][:10]]} for e in row}
            divisions[f"2 folds: {fold}"] = table
        lines += [
            {"setting": setting, "division": name, "seconds": 2.0, "points": points}
            for name, points in divisions.items()
        ]
    return lines


@pytest.mark.parametrize("agree", [True, False])
def test_correlation_regret_and_cost(tables, agree):
    recorded = tables.record(made_up(np.random.default_rng(0), agree))
    assert {row["way"] for row in recorded["rows"]} == {"10 classes", "12 classes", "2 folds"}
    for row in recorded["rows"]:
        assert row["map_at_r"]["r"][0] == (1 if agree else -1)
        assert row["map_at_r"]["regret of epoch"] == pytest.approx(0 if agree else 0.01)
        assert (row["map_at_r"]["regret"] == 0) == agree
    rows = {row["protocol"]: row for row in recorded["protocols"]}
    assert rows["nothing chosen"]["map_at_r"] == pytest.approx((0.02 + 0.12) / 2)  # the first settings, last epoch
    assert rows["nothing chosen"]["seconds"] == 2
    chosen = (0.22 + 0.32) / 2 if agree else (0.01 + 0.11) / 2  # of each loss the best, or the worst
    assert rows["2 folds"]["map_at_r"] == pytest.approx(chosen)
    assert (rows["2 folds"]["runs"], rows["2 folds"]["seconds"]) == (2 * 2 + 1, 2 * 4 + 2)


def test_a_setting_that_lacks_a_fold_does_not_count(tables):
    lines = made_up(np.random.default_rng(0), agree=True)
    assert tables.Measured(lines[:-1]).settings == ["a 0", "b 0", "a 1"]

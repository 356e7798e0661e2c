"""A spec.yaml that lacks a key: the run is damaged, in words, in every command, and the others are shown. A run that is
final and not tested: one line with the command that tests it, or a page without it."""

import shutil

import pytest
import yaml
from stores import add_run, said

import nearkin
from nearkin.runs.shapes import SPEC

TINY = {
    "dataset": "glyphs",
    "data.classes": 12,
    "data.per_class": 6,
    "data.size": 16,
    "backbone": "convnet",
    "dim": 8,
    "train.batch": 8,
    "sampler.per_class": 2,
    "epochs": 1,
    "train.batches_per_epoch": 2,
}
GOOD, OTHER = "a" * 12, "b" * 12
KEYS = [*((part, key) for part, kinds in SPEC.items() for key in kinds), *((part, None) for part in SPEC)]


def edit(path, change):
    head = yaml.safe_load((path / "spec.yaml").read_text())
    change(head)
    (path / "spec.yaml").write_text(yaml.safe_dump(head))


def without(part, key):
    return lambda head: head["spec"].pop(part) if key is None else head["spec"][part].pop(key)


@pytest.mark.parametrize(("part", "key"), KEYS)
def test_a_key_is_missing(tmp_path, part, key):
    for name, loss in ((GOOD, "triplet"), ("c" * 12, "margin"), (OTHER, "contrastive")):
        add_run(tmp_path, name, {"loss": loss}, {"map_at_r": 0.5, "recall@1": 0.6})
    edit(tmp_path / OTHER, without(part, key))
    reason = f"damaged: spec.yaml has no {part}" + (f".{key}" if key else "")
    where = ("--runs", tmp_path)
    for words in (("runs", "list"), ("compare", tmp_path), ("compare", tmp_path, "--ranks"), ("runs", "verify")):
        code, told = said(*words, *where)
        assert code == (words[-1] == "verify"), told
        assert words[-1] == "list" or reason in told or "--ranks" in words, told
    assert reason in said("runs", "list", "--json", *where)[1]
    for words in (("runs", "show"), ("compare",), ("report",), ("test",), ("embed",)):
        code, told = said(*words, OTHER, *(["."] if words == ("embed",) else []), *where)
        assert (code != 0, reason in told) == (True, True), (words, told)


def test_hashes_and_kinds_are_looked_at_too(tmp_path):
    changes = {
        "has no data_hash": lambda head: head.pop("data_hash"),
        "has no split_hash": lambda head: head.pop("split_hash"),
        "holds a string under train.seed": lambda head: head["spec"]["train"].update(seed="one"),
        "has no model": lambda head: head["spec"].update(model=[1]),
    }
    for i, (reason, change) in enumerate(changes.items()):
        edit(add_run(tmp_path, f"{i:012}", {}, {"map_at_r": 0.5}), change)
        assert f"damaged: spec.yaml {reason}" in said("runs", "list", "--json", "--runs", tmp_path)[1]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A tested run, an untrained network that is tested, and a run that is final and not tested."""
    root = tmp_path_factory.mktemp("trained")
    return {
        "root": root,
        "tested": nearkin.train(TINY, runs=root).hash,
        "network": nearkin.train(TINY, runs=root, epochs=0).hash,
        "final": nearkin.train(TINY, runs=root, seed=1, test=False).hash,
    }


def test_report_and_analyse_name_the_damaged_run_and_go_on(trained, tmp_path):
    runs = shutil.copytree(trained["root"], tmp_path / "runs")
    (runs / trained["network"] / "files.json").unlink()
    edit(runs / trained["network"], without("data", "size"))
    page = tmp_path / "page.html"
    code, told = said("report", runs, "-o", page, "--no-map", "--runs", runs)
    assert code == 0, told
    assert "spec.yaml has no data.size" in page.read_text()
    code, told = said("analyse", "spectrum", runs, "-o", tmp_path / "found", "--runs", runs)
    assert (code, "spec.yaml has no data.size" in told) == (0, True), told


def test_what_is_not_tested_is_one_line_with_the_command(trained, tmp_path):
    runs = tmp_path / "runs"
    shutil.copytree(trained["root"] / trained["final"], runs / trained["final"])
    for words in (("report", trained["final"]), ("report", runs), ("compare", trained["final"]), ("compare", runs)):
        code, told = said(*words, "--runs", runs)
        assert code
        assert told == f"run {trained['final']} is not tested (final, untested): `nearkin test {trained['final']}`"


def test_beside_an_untrained_network_it_is_one_page(trained, tmp_path):
    runs, page = tmp_path / "runs", tmp_path / "page.html"
    for name in ("final", "network"):
        shutil.copytree(trained["root"] / trained[name], runs / trained[name])
    code, told = said("report", runs, "-o", page, "--no-map", "--runs", runs)
    assert code == 0, told
    assert "no trained run is tested" in page.read_text()
    assert "1 of 2 runs have no result" in page.read_text()

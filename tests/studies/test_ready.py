"""Every file under studies/ resolves, on glyphs and on the real data that it names."""

import pytest
import yaml
from ready import FOLDER, name, real

from nearkin.config.spec import read_spec
from nearkin.registry import LOSSES
from nearkin.runs.defaults import resolve
from nearkin.studies.grid import KEYS, read_study
from nearkin.studies.propose import planned
from nearkin.studies.search import searches_of

FILES = sorted(FOLDER.rglob("*.yaml"))
STUDIES = [file for file in FILES if set(yaml.safe_load(file.read_text())) <= set(KEYS)]
PROMISED = [
    "roth2020/cub",
    "roth2020/cars196",
    "roth2020/sop",
    "roth2020/samplers",
    "roth2020/samplers_sop",
    "roth2020/p_switch",
    "roth2020/mixup",
    "psomas2020/tournament",
    "psomas2020/cars196",
    "psomas2020/sop",
    "psomas2020/kfold",
    "psomas2020/validation",
    "psomas2020/own_losses",
    "psomas2020/search",
    "mlrc/cub",
    "mlrc/cars196",
    "hist/ablations",
    "hist/proxies",
    "hist/dims",
    "hist/batches",
    "hist/dim64",
    "hist/px256",
    "drml/table",
    "drml/imagenet",
    "kobs2021",
]


def test_there_is_one_for_every_published_table():
    assert set(PROMISED) <= {name(file) for file in STUDIES}


@pytest.mark.parametrize("file", STUDIES, ids=name)
def test_it_resolves_on_glyphs(file):
    content = yaml.safe_load(file.read_text())
    words = {"root": "anywhere"} if "cub" in file.stem and "real" not in content else {}
    study = read_study(file, words)
    assert study.cells
    for cell in study.cells:
        resolve(cell.spec)
    if name(file) in PROMISED:
        assert study.twin
        assert {cell.spec.data.name for cell in study.cells} == {"glyphs"}
        assert {cell.spec.model.backbone for cell in study.cells} == {"convnet"}


@pytest.mark.parametrize("file", [file for file in STUDIES if name(file) in PROMISED], ids=name)
def test_a_root_takes_it_to_the_real_data(file):
    study = real(yaml.safe_load(file.read_text()))
    resolved = [resolve(cell.spec) for cell in study.cells]
    assert {spec.data.name for spec in resolved} <= {"cub", "cars196", "sop", "imagenet"}
    assert all(spec.model.weights == "imagenet" for spec in resolved)
    recipes = {spec.recipe for spec in resolved if spec.train.epochs}
    assert recipes < {"roth2020", "psomas2020", "mlrc2020", "hist2022", "drml2021"}


@pytest.mark.parametrize("file", [file for file in FILES if file not in STUDIES], ids=name)
def test_single_runs_resolve(file):
    resolve(read_spec(file))


def test_the_search_of_the_thesis_is_one_pass_over_its_table():
    """11 + 50 + 50 + 11 values, 50 + 10 + 11 + 11 + 10, and 50 + 11, each with the row's own; no rate of proxies."""
    file = FOLDER / "psomas2020/search.yaml"
    few = {"data.classes": 40, "data.per_class": 4, "train.batch": 20}
    searches = searches_of(read_study(file, few, tune=yaml.safe_load(file.read_text())["real"]["tune"]))
    assert [(search.name, planned(search)) for search in searches] == [
        ("MultiSimilarity", 123),
        ("SoftTriple", 93),
        ("ProxyAnchor", 62),
    ]
    assert [list(search.space) for search in searches][2] == ["loss.alpha", "loss.delta"]
    assert {search.rungs for search in searches} == {(20,)}


def test_protocols_with_and_without_folds_stand_in_one_table():
    study = read_study(FOLDER / "psomas2020/validation.yaml")
    folds = {cell.labels[1]: set() for cell in study.cells if cell.baseline is None}
    for cell in study.cells:
        if cell.baseline is None:
            folds[cell.labels[1]].add(cell.fold)
    assert folds.pop("10 folds") == set(range(10))
    assert set(folds) == {"default", "95/5", "90/10", "80/20", "70/30"}
    assert all(numbers == {None} for numbers in folds.values())


def test_every_loss_is_searched_with_the_same_budget():
    """The thesis's chapter 7: one fixed validation, one budget, all losses."""
    study = read_study(FOLDER / "tune_losses.yaml")
    trained = [cell.spec for cell in study.cells if cell.spec.train.epochs]
    assert {spec.loss.name for spec in trained} == set(LOSSES.names())
    assert {spec.protocol.name for spec in trained} == {"fixed_val"}
    assert all(0 < study.tune["epochs"] < spec.train.epochs for spec in trained)

"""Every file under studies/ resolves, on glyphs and on the real data that it names."""

from pathlib import Path

import pytest
import yaml

from nearkin.config.spec import read_spec
from nearkin.registry import LOSSES
from nearkin.runs.defaults import resolve
from nearkin.studies.grid import KEYS, read_study

FOLDER = Path(__file__).parents[2] / "studies"
FILES = sorted(FOLDER.rglob("*.yaml"))
STUDIES = [file for file in FILES if set(yaml.safe_load(file.read_text())) <= set(KEYS)]
PROMISED = [
    "roth2020/cub",
    "roth2020/cars196",
    "roth2020/sop",
    "roth2020/samplers",
    "roth2020/p_switch",
    "roth2020/mixup",
    "psomas2020/tournament",
    "psomas2020/cars196",
    "psomas2020/sop",
    "psomas2020/kfold",
    "psomas2020/validation",
    "psomas2020/own_losses",
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


def name(file):
    return str(file.relative_to(FOLDER).with_suffix(""))


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
    study = read_study(file, {"root": "anywhere"})
    resolved = [resolve(cell.spec) for cell in study.cells]
    assert {spec.data.name for spec in resolved} <= {"cub", "cars196", "sop", "imagenet"}
    assert all(spec.model.weights == "imagenet" for spec in resolved)
    recipes = {spec.recipe for spec in resolved if spec.train.epochs}
    assert recipes < {"roth2020", "psomas2020", "mlrc2020", "hist2022", "drml2021"}


@pytest.mark.parametrize("file", [file for file in FILES if file not in STUDIES], ids=name)
def test_single_runs_resolve(file):
    resolve(read_spec(file))


def test_every_loss_is_searched_with_the_same_budget():
    """The thesis's chapter 7: one fixed validation, one budget, all losses."""
    study = read_study(FOLDER / "tune_losses.yaml")
    trained = [cell.spec for cell in study.cells if cell.spec.train.epochs]
    assert {spec.loss.name for spec in trained} == set(LOSSES.names())
    assert {spec.protocol.name for spec in trained} == {"fixed_val"}
    assert all(0 < study.tune["epochs"] < spec.train.epochs for spec in trained)

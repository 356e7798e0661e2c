"""One file over several data sets: their folders, the columns of each, and a table for each."""

import json

import pytest
import yaml
from stores import carried_out

from nearkin.errors import NearkinError
from nearkin.runs.store import Store
from nearkin.studies._local import LocalProcesses
from nearkin.studies.grid import read_study
from nearkin.studies.runner import jobs_of
from nearkin.studies.summary import rows_of, write_summary

SMALL = {"dataset": "glyphs", "backbone": "convnet", "loss": "triplet"}
FILE = {
    "name": "several",
    "base": SMALL,
    "axes": {"dim": [8, 16]},
    "baselines": "random_head",
    "metrics": ["recall@1"],
    "real": {
        "base": {"backbone": "convnet", "loss": "triplet"},
        "bases": {"CUB": {"dataset": "cub"}, "Cars": {"dataset": "cars196"}, "SOP": {"dataset": "sop"}},
        "metrics": {
            "cub": ["recall@1", "recall@2"],
            "cars196": ["recall@1", "recall@2"],
            "sop": ["recall@1", "recall@10"],
        },
    },
}
ROOTS = {"root.cub": "birds", "root.cars196": "cars", "root.sop": "things"}


def refused(words, **changes):
    with pytest.raises(NearkinError) as caught:
        read_study({**FILE, **changes}, words)
    return str(caught.value)


class TestRoots:
    def test_every_data_set_has_its_own(self):
        study = read_study(FILE, ROOTS)
        trained = [cell for cell in study.cells if cell.baseline is None]
        assert [(cell.labels, cell.spec.data.name, str(cell.spec.data.root)) for cell in trained[::2]] == [
            (("CUB", "8"), "cub", "birds"),
            (("Cars", "8"), "cars196", "cars"),
            (("SOP", "8"), "sop", "things"),
        ]
        assert len(study.cells) == 3 * 2 * 2  # each size of each data set has its random head

    def test_one_that_has_none_is_left_out(self):
        study = read_study(FILE, {"root.cub": "birds", "root.sop": "things"})
        assert study.data_sets == ["cub", "sop"]
        assert study.without == ("cars196",)

    def test_without_any_the_file_runs_in_small(self):
        study = read_study(FILE)
        assert (study.data_sets, study.axes) == (["glyphs"], ("dim",))

    def test_one_folder_is_not_enough(self):
        words = refused({"root": "anywhere"})
        assert words == "root=anywhere: several has several data sets; write root.cub=DIR root.cars196=DIR root.sop=DIR"

    def test_one_that_the_file_does_not_have(self):
        assert "root.imagenet: several has no such data set; choices: cars196, cub, sop" in refused(
            {"root.imagenet": "x"}
        )

    def test_a_study_on_one_data_set_takes_either_form(self):
        file = {"name": "one", "base": SMALL, "real": {"base": {**SMALL, "dataset": "cub"}}}
        forms = [read_study(file, words) for words in ({"root": "birds"}, {"root.cub": "birds"})]
        assert forms[0].cells == forms[1].cells


class TestColumns:
    def test_each_data_set_has_its_own(self):
        study = read_study(FILE, ROOTS)
        assert study.metrics == ("recall@1", "recall@2", "recall@10")
        assert study.asked_on("sop") == ["recall@1", "recall@10"]
        assert study.asked_on("cub") == ["recall@1", "recall@2"]

    def test_one_that_has_none(self):
        real = {**FILE["real"], "metrics": {"cub": ["recall@1"]}}
        assert "metrics=None of cars196 in several: must be a list" in refused(ROOTS, real=real)


def test_one_command_writes_a_table_for_each(tiny, tmp_path):
    """Drawn characters, and a list of ten of their images as another data set."""
    small = {**tiny, "loss": "triplet", "epochs": 0}
    other = {"dataset": "folder", "root": str(pictures(tmp_path / "pictures")), "data.size": 32}
    file = {
        "name": "both",
        "base": {key: value for key, value in small.items() if not key.startswith("data")},
        "bases": {"drawn": {k: v for k, v in small.items() if k.startswith("data")}, "written": other},
        "baselines": "none",
        "metrics": {"glyphs": ["recall@1"], "folder": ["recall@1", "recall@2"]},
    }
    study, store = read_study(yaml.safe_load(yaml.safe_dump(file))), Store(tmp_path / "runs")
    jobs = jobs_of(study, store)
    carried_out(jobs, LocalProcesses(1))
    assert [job.error for job in jobs] == [None, None]
    assert [set(json.loads((job.run.path / "result.json").read_text())["test"]) >= {"recall@2"} for job in jobs][1]
    files = write_summary(study, rows_of(study, jobs), jobs, tmp_path / "both.csv")
    assert [path.name for path in files] == ["both-glyphs.csv", "both-folder.csv", "both-seeds.csv"]
    headings = [path.read_text().splitlines()[0] for path in files[:2]]
    assert ["recall@2" in heading for heading in headings] == [False, True]
    assert [path.read_text().splitlines()[1].split(",")[0] for path in files[:2]] == ["drawn", "written"]


def pictures(root):
    """Eight classes of four images."""
    from PIL import Image

    for label in range(8):
        (root / f"class{label}").mkdir(parents=True)
        for image in range(4):
            Image.new("RGB", (32, 32), (30 * label, 60 * image, 99)).save(root / f"class{label}" / f"{image}.png")
    return root

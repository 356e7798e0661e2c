"""One file over several data sets: their folders, the columns of each, and a table for each."""

import pytest
from stores import carried_out

from nearkin.analysis import analyse_study
from nearkin.comparison.gather import gather
from nearkin.errors import NearkinError
from nearkin.pages._members import missing
from nearkin.runs.store import Store
from nearkin.studies._local import LocalProcesses
from nearkin.studies.grid import read_study
from nearkin.studies.runner import jobs_of, write_study
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


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """Drawn characters, and plain pictures as another data set: the study, its runs, its store."""
    folder = tmp_path_factory.mktemp("both")
    drawn = {"dataset": "glyphs", "data.classes": 24, "data.per_class": 10}
    file = {
        "name": "both",
        "base": {"backbone": "convnet", "loss": "triplet", "epochs": 0, "dim": 8},
        "bases": {
            "drawn": drawn,
            "plain": {"dataset": "folder", "root": str(pictures(folder / "pictures")), "data.size": 32},
        },
        "baselines": "none",
        "metrics": {"glyphs": ["recall@1"], "folder": ["recall@1", "recall@3"]},
        "analyses": ["spectrum"],
    }
    study, store = read_study(file), Store(folder / "runs")
    jobs = jobs_of(study, store)
    carried_out(jobs, LocalProcesses(1))
    write_study(study, jobs, store)
    return study, jobs, store


def test_one_command_writes_a_table_for_each(both, tmp_path):
    study, jobs, _ = both
    assert [job.error for job in jobs] == [None, None]
    assert ["recall@3" in job.run.metrics() for job in jobs] == [False, True]
    files = write_summary(study, rows_of(study, jobs), jobs, tmp_path / "both.csv")
    assert [path.name for path in files] == ["both-glyphs.csv", "both-folder.csv", "both-seeds.csv"]
    assert ["recall@3" in path.read_text().splitlines()[0] for path in files[:2]] == [False, True]
    assert [path.read_text().splitlines()[1].split(",")[0] for path in files[:2]] == ["drawn", "plain"]


def test_a_page_asks_no_data_set_for_the_columns_of_another(both):
    study, _, store = both
    assert not missing(gather(["both"], store.root), study.metrics)


class TestAnalyses:
    def test_the_file_names_them_and_each_data_set_has_its_own(self, both):
        study, jobs, store = both
        for analysed, job in zip(analyse_study(study, store.root), jobs, strict=True):
            assert {file.parents[1].name for file in analysed.files} == {job.run.hash}

    def test_options_stand_beside_their_names(self):
        study = read_study({**FILE, "analyses": {"saliency": {"images": None}, "spectrum": None}})
        assert study.analyses == {"saliency": {"images": None}, "spectrum": {}}

    @pytest.mark.parametrize(
        ("asked", "words"), [(["salency"], "did you mean saliency"), ("saliency", "must be a list, such as")]
    )
    def test_what_there_is_not(self, asked, words):
        with pytest.raises(NearkinError, match=words):
            read_study({**FILE, "analyses": asked})


def pictures(root):
    """Eight classes of four images."""
    from PIL import Image

    for label in range(8):
        (root / f"class{label}").mkdir(parents=True)
        for image in range(4):
            Image.new("RGB", (32, 32), (30 * label, 60 * image, 99)).save(root / f"class{label}" / f"{image}.png")
    return root

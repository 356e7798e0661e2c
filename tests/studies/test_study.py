"""Studies: the grid, workers, what is skipped, and the table over seeds (contract 11: the unit is the seed)."""

import csv
import statistics

import pytest
import yaml

from nearkin.errors import NearkinError
from nearkin.runs.store import Store
from nearkin.studies.grid import read_study
from nearkin.studies.runner import jobs_of, run_jobs
from nearkin.studies.summary import rows_of, write_csv


def write(tmp_path, tiny, **content):
    file = tmp_path / "small.yaml"
    file.write_text(yaml.safe_dump({"base": tiny, **content}, sort_keys=False))
    return file


def test_the_grid_is_the_product_of_its_axes(tiny, tmp_path):
    axes = {"method": {"a": {"loss": "triplet"}, "b": {"loss": "contrastive"}}, "dim": [8, 16]}
    study = read_study(write(tmp_path, tiny, axes=axes, seeds=[0, 5]))
    places = [(cell.labels, cell.seed) for cell in study.cells]
    assert places[:3] == [(("a", "8"), 0), (("a", "8"), 5), (("a", "16"), 0)]
    assert len(study.cells) == 8
    assert {(c.spec.loss.name, c.spec.model.dim, c.spec.train.seed) for c in study.cells} == {
        (loss, dim, seed) for loss in ("triplet", "contrastive") for dim in (8, 16) for seed in (0, 5)
    }


def test_a_study_runs_skips_and_averages(tiny, tmp_path):
    axes = {"method": {"untrained": {"epochs": 0}, "trained": {"epochs": 1}, "broken": {"train.batch": 400}}}
    file = write(tmp_path, tiny, axes=axes, seeds=[0, 1], metrics=["recall@1", "train.rho"])
    study = read_study(file)
    store = Store(tmp_path / "runs")
    jobs = jobs_of(study, store)
    for _ in run_jobs(jobs, runs=store.root, workers=2):
        pass
    assert [job.state for job in jobs] == ["done"] * 4 + ["failed"] * 2
    assert "train.batch=400 is larger than" in jobs[-1].error
    rows = rows_of(study, jobs)
    recalls = [job.run.result["test"]["recall@1"] for job in jobs[2:4]]
    assert rows[1].mean["recall@1"] == pytest.approx(statistics.fmean(recalls))
    assert rows[1].std["recall@1"] == pytest.approx(statistics.stdev(recalls))
    assert (rows[2].seeds, rows[2].failed) == (0, 2)
    assert rows[1].mean["train.rho"] == pytest.approx(statistics.fmean(j.run.result["train"]["rho"] for j in jobs[2:4]))
    write_csv(study, rows, tmp_path / "small.csv")
    with open(tmp_path / "small.csv") as table:
        first = next(csv.DictReader(table))
    assert first["method"] == "untrained"
    assert float(first["recall@1 mean"]) == pytest.approx(rows[0].mean["recall@1"], abs=1e-6)

    times = [(job.run.path / "result.json").stat().st_mtime_ns for job in jobs[:4]]
    again = jobs_of(read_study(file), store)
    for _ in run_jobs(again[:4], runs=store.root, workers=2):
        raise AssertionError("finished runs are skipped")
    assert [(job.run.path / "result.json").stat().st_mtime_ns for job in again[:4]] == times


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"axis": {}}, "unknown key 'axis'.*did you mean axes"),
        ({"axes": {"dim": 8}}, "a list of values or a mapping"),
        ({"seeds": 3}, "a list of whole numbers"),
        ({"axes": {"los": ["triplet"]}}, "unknown key 'los'"),
    ],
)
def test_bad_study_files_are_refused(tiny, tmp_path, content, said):
    with pytest.raises(NearkinError, match=said):
        read_study(write(tmp_path, tiny, **content))

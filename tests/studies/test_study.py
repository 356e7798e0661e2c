"""Studies: the grid, workers, what is skipped, and the table over seeds (contract 11: the unit is the seed)."""

import csv
import json
import statistics

import pytest
import yaml
from stores import carried_out, said

from nearkin.errors import NearkinError
from nearkin.runs.store import Store
from nearkin.studies._local import LocalProcesses
from nearkin.studies.grid import read_study
from nearkin.studies.runner import jobs_of, take_part, tasks_of, write_study
from nearkin.studies.summary import rows_of, tables_of, write_summary


def write(tmp_path, tiny, **content):
    file = tmp_path / "small.yaml"
    file.write_text(yaml.safe_dump({"base": tiny, "baselines": "none", **content}, sort_keys=False))
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
    carried_out(jobs, LocalProcesses(2))
    assert [job.state for job in jobs] == ["done"] * 4 + ["failed"] * 2
    assert "train.batch=400 is larger than" in jobs[-1].error
    rows = {row.labels[0]: row for row in rows_of(study, jobs)}
    rows = [rows[name] for name in ("untrained", "trained", "broken")]
    recalls = [job.run.result["test"]["recall@1"] for job in jobs[2:4]]
    assert rows[1].mean["recall@1"] == pytest.approx(statistics.fmean(recalls))
    assert rows[1].std["recall@1"] == pytest.approx(statistics.stdev(recalls))
    assert (rows[2].seeds, rows[2].failed) == (0, 2)
    assert rows[1].mean["train.rho"] == pytest.approx(statistics.fmean(j.run.result["train"]["rho"] for j in jobs[2:4]))
    write_summary(study, rows, jobs, tmp_path / "small.csv")
    with open(tmp_path / "small.csv") as table:
        first = next(csv.DictReader(table))
    assert first["method"] == "untrained"
    assert float(first["recall@1"]) == rows[0].mean["recall@1"]
    (table,) = tables_of(study, rows)
    shown = dict(zip([c.title for c in table.shown], table.texts()[0], strict=True))
    assert shown["recall@1 %"].startswith(f"{100 * rows[0].mean['recall@1']:.2f} ± ")
    with open(tmp_path / "small-seeds.csv") as table:  # and every run's own values
        own = [line for line in csv.DictReader(table) if line["method"] == "trained"]
    assert [float(line["recall@1"]) for line in own] == recalls
    assert [line["run"] for line in own] == [job.run.hash for job in jobs[2:4]]

    times = [(job.run.path / "result.json").stat().st_mtime_ns for job in jobs[:4]]
    again = jobs_of(read_study(file), store)
    assert list(tasks_of(again[:4])) == []  # finished runs are skipped
    assert [(job.run.path / "result.json").stat().st_mtime_ns for job in again[:4]] == times


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"axis": {}}, "unknown key 'axis'.*did you mean axes"),
        ({"axes": {"dim": 8}}, "a list of values or a mapping"),
        ({"seeds": 3}, "a list of whole numbers"),
        ({"axes": {"los": ["triplet"]}}, "unknown key 'los'"),
        ({"axes": {"loss": ["triplet", "triplet"]}}, "axis 'loss' in .*: triplet is listed twice"),
        ({"seeds": [0, 1, 0]}, "seeds in .*: 0 is listed twice"),
        ({"seeds": [True]}, "a list of whole numbers"),
        ({"axes": {"seed": [1, 2]}}, "seeds cannot be an axis"),
        ({"name": "../../x"}, "it names files"),
        ({"name": "/etc/x"}, "it names files"),
        ({"baselines": "poold"}, "did you mean pooled"),
        ({"axes": {"method": {"a": "triplet"}}}, "is not a mapping"),
        ({"base": "glyphs"}, "a mapping of words"),
    ],
)
def test_bad_study_files_are_refused(tiny, tmp_path, content, said):
    with pytest.raises(NearkinError, match=said):
        read_study(write(tmp_path, tiny, **content))


def run_all(study, store, workers=2):
    jobs = jobs_of(study, store)
    carried_out(jobs, LocalProcesses(workers))
    return jobs


def test_metrics_that_no_run_has_are_tested_not_trained(tiny, tmp_path):
    """A study that asks for nmi or recall@10 gets it, also of runs that are stored without."""
    store = Store(tmp_path / "runs")
    axes = {"dim": [8]}
    [job] = run_all(read_study(write(tmp_path, tiny, axes=axes)), store)
    trained = (job.run.path / "model.pt").stat().st_mtime_ns
    study = read_study(write(tmp_path, tiny, axes=axes, metrics=["nmi", "recall@10", "map@1000"]))
    assert study.metrics == ("nmi", "recall@10", "map_at_1000")
    [job] = run_all(study, store)
    assert job.state == "done"
    assert (job.run.path / "model.pt").stat().st_mtime_ns == trained
    assert rows_of(study, [job])[0].mean.keys() == {"validation map_at_r", "nmi", "recall@10", "map_at_1000"}


@pytest.mark.parametrize(
    ("metrics", "said"),
    [
        (["nmii"], "unknown metric 'nmii'"),
        (["recall"], "which k"),
        ("nmi", "a list of names"),
        (["train.rh"], "did you mean train.rho"),
        (["train.nmi"], "choices: train.pi_inter"),
    ],
)
def test_unknown_metrics_are_refused_before_training(tiny, tmp_path, metrics, said):
    with pytest.raises(NearkinError, match=said):
        read_study(write(tmp_path, tiny, metrics=metrics))


def test_two_cells_of_one_hash_run_once(tiny, tmp_path):
    axes = {"method": {"a": {"epochs": 0, "loss": "triplet"}, "b": {"epochs": 0, "loss": "nt_xent"}}}
    study = read_study(write(tmp_path, tiny, axes=axes))
    jobs = run_all(study, Store(tmp_path / "runs"))
    assert jobs[0].run.hash == jobs[1].run.hash
    assert [job.state for job in jobs] == ["done", "done"]
    rows = rows_of(study, jobs)
    assert rows[0].mean == rows[1].mean


BROKEN = """
from nearkin.losses import PairLoss
class Broken(PairLoss):
    def compute(self, pairs, tuples=None):
        raise ZeroDivisionError("a bug of the user's")
"""


def test_any_error_of_a_worker_is_kept_with_its_traceback(tiny, tmp_path, monkeypatch):
    (tmp_path / "broken_losses.py").write_text(BROKEN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    axes = {"loss": ["broken_losses.Broken", "triplet"]}
    jobs = run_all(read_study(write(tmp_path, tiny, axes=axes)), Store(tmp_path / "runs"))
    assert [job.state for job in jobs] == ["failed", "done"]
    assert jobs[0].error == "ZeroDivisionError: a bug of the user's"
    assert "Traceback" in (jobs[0].run.path / "error.txt").read_text()


def test_a_base_under_an_axis_of_losses_leaves_no_setting_behind(tiny, tmp_path):
    base = tiny | {"loss": "multi_similarity", "loss.alpha": 18}
    study = read_study(write(tmp_path, base, axes={"loss": ["proxy_anchor", "multi_similarity"]}))
    assert [cell.spec.loss.params for cell in study.cells] == [{}, {"alpha": 18}]


def test_a_study_is_stored_with_its_file_and_its_runs(tiny, tmp_path):
    file = write(tmp_path, tiny, axes={"dim": [8, 16]}, seeds=[0, 1])
    study, store = read_study(file), Store(tmp_path / "runs")
    jobs = jobs_of(study, store)
    told = json.loads(write_study(study, jobs, store).read_text())
    assert told["file"] == file.read_text()
    assert [(cell["labels"], cell["seed"], cell["run"]) for cell in told["cells"]] == [
        (list(job.cell.labels), job.cell.seed, job.run.hash) for job in jobs
    ]


def test_rows_are_sorted_by_validation(tiny, tmp_path):
    axes = {"method": {"untrained": {"epochs": 0}, "trained": {"epochs": 3, "loss": "contrastive"}}}
    study = read_study(write(tmp_path, tiny, axes=axes))
    rows = rows_of(study, run_all(study, Store(tmp_path / "runs")))
    validation = [row.mean["validation map_at_r"] for row in rows]
    assert validation == sorted(validation, reverse=True)
    assert rows[0].labels == ("trained",)


class TestBaselines:
    def labels(self, study):
        return [(cell.labels, cell.seed) for cell in study.cells if cell.spec.train.epochs == 0]

    def test_one_for_each_network(self, tiny, tmp_path):
        axes = {"loss": ["triplet", "margin"], "dim": [8, 16]}
        study = read_study(write(tmp_path, tiny, axes=axes, baselines="customary"))
        assert self.labels(study) == [
            (("pooled (untrained)", "any"), 0),
            (("random_head (untrained)", "8"), 0),
            (("random_head (untrained)", "16"), 0),
        ]

    def test_not_where_the_study_has_it_already_nor_where_it_is_not_wanted(self, tiny, tmp_path):
        axes = {"method": {"plain": {"epochs": 0}, "trained": {"loss": "triplet"}}}
        study = read_study(write(tmp_path, tiny, axes=axes, baselines="customary"))
        assert [labels for labels, _ in self.labels(study)] == [("plain",), ("pooled (untrained)",)]
        assert len(read_study(write(tmp_path, tiny, axes={"dim": [8]}, baselines="none")).cells) == 1


def test_parts_keep_what_the_others_noted(tiny, tmp_path):
    """Two processes, each with its part: neither erases why runs of the other failed."""
    file = tmp_path / "parts.yaml"
    file.write_text(yaml.safe_dump({"base": tiny, "axes": {"loss": ["triplet", "margin"]}, "baselines": "none"}))
    study, store = read_study(file), Store(tmp_path / "runs")

    def noted(part, failure):
        jobs = jobs_of(study, store)
        take_part(jobs, part)
        for job in jobs:
            job.error = failure if job.part else None
        path = write_study(study, jobs, store)
        return [cell["error"] for cell in json.loads(path.read_text())["cells"]]

    assert noted("1/2", "out of memory") == ["out of memory", None]
    assert noted("2/2", "a bad margin") == ["out of memory", "a bad margin"]
    assert noted("1/2", None) == [None, "a bad margin"]  # it was mended


def test_a_cluster_that_does_not_answer_is_one_line(tiny, tmp_path):
    """Here, not in test_ray.py, whose process has joined a cluster."""
    pytest.importorskip("ray")
    file = write(tmp_path, tiny, axes={"loss": ["triplet"]})
    code, told = said("study", file, "--runs", tmp_path / "runs", "--ray", "127.0.0.1:1")
    assert code == 1
    assert "address=127.0.0.1:1: nothing answers there" in told

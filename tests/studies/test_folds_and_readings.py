"""Folds, readings of a test curve, baselines, budgets, parts: what a study makes of its runs."""

import csv
import dataclasses
import json
import statistics

import numpy as np
import pytest
import torch
import yaml
from stores import carried_out
from typer.testing import CliRunner

import nearkin
from nearkin.cli.app import app
from nearkin.errors import NearkinError
from nearkin.runs.defaults import resolve
from nearkin.runs.store import Store
from nearkin.studies._local import LocalProcesses
from nearkin.studies.baselines import BASELINES, baseline_of, is_fitted
from nearkin.studies.grid import read_study
from nearkin.studies.readings import PICKED, read
from nearkin.studies.runner import Job, jobs_of, take_part, write_study
from nearkin.studies.summary import notes_of, rows_of, write_summary


def write(tmp_path, base, content=None, **more):
    file = tmp_path / "small.yaml"
    whole = {"base": base, "baselines": "none", **(content or {}), **more}
    file.write_text(yaml.safe_dump(whole, sort_keys=False))
    return file


def run_all(study, store, workers=2):
    jobs = jobs_of(study, store)
    carried_out(jobs, LocalProcesses(workers))
    assert [job.error for job in jobs] == [None] * len(jobs)
    return jobs


@pytest.fixture(scope="module")
def folded(tmp_path_factory):
    """Two losses x two seeds x three folds, with test curves; trained once for all tests here."""
    folder = tmp_path_factory.mktemp("folded")
    base = {
        "dataset": "glyphs",
        "data.classes": 24,
        "data.per_class": 8,
        "backbone": "convnet",
        "dim": 8,
        "train.batch": 16,
        "epochs": 2,
        "protocol": "kfold",
        "protocol.folds": 3,
    }
    file = write(
        folder,
        base,
        axes={"loss": ["triplet", "proxy_anchor"]},
        seeds=[0, 1],
        folds="all",
        evaluations="all",
        readings="all",
        metrics=["recall@1", "map_at_r", "train.rho"],
    )
    study = read_study(file)
    store = Store(folder / "runs")
    return study, run_all(study, store), store


class TestFolds:
    def test_every_fold_of_every_seed_is_a_run(self, folded):
        study, jobs, _ = folded
        assert len(jobs) == len({job.run.hash for job in jobs}) == 2 * 2 * 3
        assert {(c.seed, c.fold) for c in study.cells} == {(s, f) for s in (0, 1) for f in (0, 1, 2)}

    def test_folds_are_averaged_before_seeds(self, folded):
        study, jobs, _ = folded
        row = next(r for r in rows_of(study, jobs) if r.labels[0] == "triplet" and r.reading == "chosen")
        own = [job.run.result["test"]["recall@1"] for job in jobs if job.cell.labels == ("triplet",)]
        seeds = [job.cell.seed for job in jobs if job.cell.labels == ("triplet",)]
        means = [statistics.fmean(v for v, s in zip(own, seeds, strict=True) if s == seed) for seed in (0, 1)]
        assert row.mean["recall@1"] == pytest.approx(statistics.fmean(means))
        assert row.std["recall@1"] == pytest.approx(statistics.stdev(means))  # of seeds, not of runs
        assert row.seeds == 2

    def test_a_fold_that_no_seed_has_is_left_out_and_said(self, folded, tmp_path):
        """Joined folds are another thing where one is missing: there is no row of them."""
        study, jobs, _ = folded
        part = [Job(job.cell, job.run if job.cell.fold else Store(tmp_path).run("none")) for job in jobs]
        rows = rows_of(study, part, tmp_path)
        assert {row.labels[1] for row in rows} == {"separated"}
        for row in rows:
            own = [job for job in part if job.cell.labels == row.labels[:1] and job.cell.seed == 1 and job.cell.fold]
            mean = statistics.fmean(read(job.run, row.reading, study.select)["recall@1"] for job in own)
            assert row.values[1]["recall@1"] == pytest.approx(mean)
        names = "proxy_anchor separated, triplet separated"
        notes = [note for note in notes_of(study, rows) if note.startswith("means without fold 0: ")]
        assert [sorted(note.partition(": ")[2].split(", ")) for note in notes] == [names.split(", ")]

    def test_the_deviation_of_one_seed_is_that_of_its_folds(self, folded, tmp_path):
        study, jobs, _ = folded
        one = [job for job in jobs if job.cell.seed == 0]
        rows = rows_of(study, one, tmp_path)
        row = next(r for r in rows if r.labels[:2] == ("triplet", "separated") and r.reading == "chosen")
        own = [job.run.result["test"]["recall@1"] for job in one if job.cell.labels == ("triplet",)]
        assert row.std["recall@1"] == pytest.approx(statistics.stdev(own))
        assert any("over folds" in note for note in notes_of(study, rows))

    def test_joined_folds_equal_a_computation_by_hand(self, folded, tmp_path):
        study, jobs, _ = folded
        rows = rows_of(study, jobs, tmp_path)
        row = next(r for r in rows if r.labels[:2] == ("proxy_anchor", "concatenated"))
        for seed in (0, 1):
            runs = [job.run for job in jobs if job.cell.labels == ("proxy_anchor",) and job.cell.seed == seed]
            held = [np.load(run.path / "embeddings.npz") for run in runs]
            raw = [h["embeddings"] for h in held]
            z = np.concatenate([part / np.linalg.norm(part, axis=1, keepdims=True) for part in raw], 1)
            assert z.shape[1] == 3 * 8
            hits = 0
            for i, vector in enumerate(z):
                s = z @ vector / np.linalg.norm(z, axis=1) / np.linalg.norm(vector)
                s[i] = -2
                hits += held[0]["labels"][s.argmax()] == held[0]["labels"][i]
            assert row.values[seed]["recall@1"] == pytest.approx(hits / len(z))
        stored = [json.loads(file.read_text()) for file in tmp_path.glob("*.json")]
        assert len(stored) == 4  # two losses x two seeds, computed once
        assert rows_of(study, jobs, tmp_path)[0].mean == rows[0].mean

    def test_runs_of_different_test_images_are_not_joined(self, folded, tiny, tmp_path):
        _, jobs, _ = folded
        other = nearkin.train(tiny | {"epochs": 0}, runs=tmp_path)
        from nearkin.studies.joined import concatenated

        with pytest.raises(NearkinError, match="were tested on different images"):
            concatenated([jobs[0].run, other])


class TestReadings:
    def test_they_are_read_from_the_curve(self, folded):
        study, jobs, _ = folded
        rows = {r.reading: r for r in rows_of(study, jobs) if r.labels[:2] == ("triplet", "separated")}
        for metric, reading, of in (
            ("recall@1", "test_best", max),
            ("map_at_r", "test_best_each", max),
            ("map_at_r", "last", lambda values: values[-1]),
        ):
            for seed in (0, 1):
                curves = [
                    job.run.read_json("curve.json")["epochs"]
                    for job in jobs
                    if job.cell.labels == ("triplet",) and job.cell.seed == seed
                ]
                wanted = statistics.fmean(of([point["metrics"][metric] for point in curve]) for curve in curves)
                assert rows[reading].values[seed][metric] == pytest.approx(wanted)

    def test_the_chosen_epoch_is_on_its_curve_what_it_is_in_the_result(self, folded):
        """To the last digit, for every metric: a difference would be told as a gain of the other reading."""
        study, jobs, _ = folded
        last = 0
        for job in jobs:
            result, curve = job.run.result, job.run.read_json("curve.json")["epochs"]
            (chosen,) = [point["metrics"] for point in curve if point["epoch"] == result["epoch"]]
            assert chosen == result["test"]
            if curve[-1]["epoch"] == result["epoch"]:
                last += 1
                told = read(job.run, "chosen", study.select)
                assert read(job.run, "last", study.select) == {key: told[key] for key in result["test"]}
        assert last

    def test_so_it_is_after_a_further_test(self, folded):
        _, jobs, _ = folded
        run = jobs[-1].run
        further = nearkin.test(run, metrics=["nmi", "hubness@5"])
        (chosen,) = [
            point["metrics"] for point in run.read_json("curve.json")["epochs"] if point["epoch"] == run.result["epoch"]
        ]
        assert chosen == run.result["test"] | further

    def test_the_curve_is_kept_as_precisely_as_the_test(self, folded):
        """Any epoch of the curve has the numbers that a test of its model would have: here that of the chosen one,
        computed from the curve's file instead of being taken from the test."""
        _, jobs, _ = folded
        for job in jobs[:3]:
            with np.load(job.run.path / "embeddings.npz") as stored:
                z, labels = stored["embeddings"], stored["labels"]
            kept = np.load(job.run.path / "curve" / f"epoch-{job.run.result['epoch']:04d}.npy")
            np.testing.assert_allclose(kept, z, rtol=1e-4, atol=1e-6)
            on_curve, tested = (nearkin.evaluate(vectors, labels).metrics for vectors in (kept, z))
            assert on_curve == pytest.approx(tested, abs=1e-9)

    def test_what_was_picked_on_test_images_is_branded_everywhere(self, folded, tmp_path):
        study, jobs, _ = folded
        rows = rows_of(study, jobs, tmp_path / "joined")
        notes = notes_of(study, rows)
        assert sum(f"{PICKED}' is no result" in note for note in notes) == 2
        for ending in (".csv", ".md", ".tex"):
            for file in write_summary(study, rows, jobs, tmp_path / f"table{ending}"):
                assert "no result" in file.read_text(), file
        with open(tmp_path / "table.csv") as table:
            for line in csv.DictReader(table):
                assert (PICKED in line["epoch"]) == line["epoch"].startswith("best")

    def test_alone_they_are_branded_too_and_have_every_metric(self, tiny, tmp_path):
        study = read_study(write(tmp_path, tiny, axes={"dim": [8]}, readings=["test_best"], metrics=["recall@1"]))
        store = Store(tmp_path / "runs")
        [job] = run_all(study, store)
        [row] = rows_of(study, [job])
        assert PICKED in row.labels[1]
        assert any("is no result" in note for note in notes_of(study, [row]))
        more = read_study(write(tmp_path, tiny, axes={"dim": [8]}, readings=["last"], metrics=["nmi", "recall@10"]))
        weights = (job.run.path / "model.pt").stat().st_mtime_ns
        [row] = rows_of(more, run_all(more, store))
        assert row.mean.keys() == {"nmi", "recall@10"}
        assert (job.run.path / "model.pt").stat().st_mtime_ns == weights

    def test_asking_for_them_changes_no_name_of_a_run(self, tiny, tmp_path):
        plain = read_study(write(tmp_path, tiny, axes={"dim": [8]}))
        told = read_study(write(tmp_path, tiny, axes={"dim": [8]}, readings=["chosen", "last"]))
        store = Store(tmp_path / "runs")
        assert [j.run.hash for j in jobs_of(plain, store)] == [j.run.hash for j in jobs_of(told, store)]


class TestBaselines:
    def labels(self, study):
        return [(cell.labels, cell.spec.model.head) for cell in study.cells if cell.baseline]

    def test_pooled_and_random_head_are_customary(self, tiny, tmp_path):
        file = write(tmp_path, tiny, axes={"loss": ["triplet", "margin"]}, seeds=[0, 1])
        content = yaml.safe_load(file.read_text())
        del content["baselines"]
        file.write_text(yaml.safe_dump(content))
        study = read_study(file)
        assert self.labels(study) == [
            (("pooled (untrained)",), "none"),
            (("pooled (untrained)",), "none"),
            (("random_head (untrained)",), None),
            (("random_head (untrained)",), None),
        ]

    def test_pooled_is_one_for_all_widths(self, tiny, tmp_path):
        study = read_study(write(tmp_path, tiny, axes={"dim": [8, 16]}, baselines="customary"))
        assert [labels for labels, _ in self.labels(study)] == [
            ("pooled (untrained)",),
            ("8, random_head (untrained)",),
            ("16, random_head (untrained)",),
        ]

    def test_a_random_head_is_random_where_trained_heads_begin_at_pca(self, tiny, tmp_path):
        study = read_study(write(tmp_path, tiny, axes={"model.init": ["kaiming", "pca"]}, baselines="customary"))
        untrained = [cell for cell in study.cells if cell.baseline]
        assert [(cell.labels, cell.spec.model.init) for cell in untrained] == [
            (("pooled (untrained)",), "kaiming"),
            (("random_head (untrained)",), "kaiming"),
        ]

    def test_a_random_head_is_random_where_given_weights_begin_at_pca(self, tmp_path):
        words = {"dataset": "glyphs", "backbone": "efficientnet_lite0", "weights": "imagenet", "loss": "triplet"}
        study = read_study(write(tmp_path, words, baselines="random_head"))
        trained, untrained = (resolve(cell.spec).model for cell in study.cells)
        assert (trained.init, untrained.init) == ("pca", "kaiming")
        assert trained.dim == untrained.dim

    def test_which_untrained_network_it_is(self):
        assert [baseline_of("none"), baseline_of("linear"), baseline_of("lda"), baseline_of("linear", "torch")] == [
            "pooled",
            "random_head",
            "lda",
            "random_head",
        ]
        assert baseline_of("linear", "pca") == "pca"
        assert is_fitted("linear", "pca")
        assert not is_fitted("linear", "torch")

    def test_of_several_folds_one_serves(self, folded, tmp_path):
        base = {"dataset": "glyphs", "protocol": "mlrc"}
        study = read_study(write(tmp_path, base, axes={"loss": ["triplet"]}, folds="all", baselines="random_head"))
        assert [cell.fold for cell in study.cells] == [0, 1, 2, 3, 0]


class TestBudgets:
    def test_rows_that_were_given_more_are_named(self, tiny, tmp_path):
        axes = {
            "method": {
                "short": {"loss": "triplet"},
                "long": {"loss": "triplet", "epochs": 3},
                "wide": {"loss": "triplet", "dim": 24, "train.average": 0.9, "train.blend": 0.5},
                "untrained": {"epochs": 0},
            }
        }
        study = read_study(write(tmp_path, tiny, axes=axes))
        jobs = run_all(study, Store(tmp_path / "runs"))
        rows = rows_of(study, jobs)
        notes = notes_of(study, rows)
        assert [note.partition(":")[0] for note in notes] == [
            "unequal epochs",
            "unequal steps",
            "unequal images seen",
            "unequal size",
            "unequal stored weights",
        ]
        assert "averaged 0.9, blended 0.5 (wide)" in notes[4]
        assert "3 (long)" in notes[0]
        assert "24 (wide)" in notes[3]
        for ending in (".csv", ".md", ".tex"):
            for file in write_summary(study, rows, jobs, tmp_path / f"table{ending}"):
                assert "unequal" in file.read_text().lower()

    def test_equal_rows_need_no_word_but_joined_folds_are_larger(self, folded, tmp_path):
        study, jobs, _ = folded
        found = [note for note in notes_of(study, rows_of(study, jobs, tmp_path)) if "unequal" in note]
        assert len(found) == 1
        assert found[0].startswith("unequal size: 8 (")
        assert "24 (" in found[0]
        alone = dataclasses.replace(study, evaluations=("separated",))
        assert not any("unequal" in note for note in notes_of(alone, rows_of(alone, jobs)))

    def test_a_missing_seed_is_said(self, folded, tmp_path):
        study, jobs, _ = folded
        fewer = [job for job in jobs if job.cell.labels == ("triplet",) or job.cell.seed == 0]
        assert any(note.startswith("unequal seeds: ") for note in notes_of(study, rows_of(study, fewer, tmp_path)))


class TestParts:
    def test_parts_are_disjoint_and_together_all(self, tiny, tmp_path):
        study = read_study(write(tmp_path, tiny, axes={"dim": [4, 8, 16, 32, 64]}, seeds=[0, 1]))
        taken = []
        for number in (1, 2, 3):
            jobs = jobs_of(study, Store(tmp_path / "runs"))
            take_part(jobs, f"{number}/3")
            taken.append([job.run.hash for job in jobs if job.state == "waiting"])
        assert sorted(len(part) for part in taken) == [3, 3, 4]
        assert len({run for part in taken for run in part}) == 10

    @pytest.mark.parametrize("part", ["17/16", "0/4", "3", "3/", "a/b", "-1/4", "³/16"])
    def test_a_part_that_there_is_not(self, part):
        with pytest.raises(NearkinError, match=rf"part={part}: must be PART/PARTS, such as 3/16"):
            take_part([], part)

    def test_a_dry_run_lists_and_runs_nothing(self, tiny, tmp_path):
        file = write(tmp_path, tiny, axes={"dim": [8, 16]})
        told = CliRunner().invoke(app, ["study", str(file), "--dry-run", "--runs", str(tmp_path / "runs")])
        assert told.exit_code == 0, told.output
        assert told.output.count("waiting") == 2
        assert "2 runs; about" in told.output
        assert not (tmp_path / "runs").exists() or not Store(tmp_path / "runs").runs()

    def test_a_dry_run_with_all_baselines(self, tiny, tmp_path):
        file = write(tmp_path, tiny, axes={"dim": [8]}, baselines="all")
        told = CliRunner().invoke(app, ["study", str(file), "--dry-run", "--runs", str(tmp_path / "runs")])
        assert told.exit_code == 0, told.output
        assert told.output.count("waiting") == 1 + len(BASELINES)

    def test_one_reason_for_all_is_one_line(self, tmp_path):
        file = write(tmp_path, {"dataset": "cub", "root": str(tmp_path / "none")}, axes={"dim": [8, 16]})
        with pytest.raises(NearkinError, match="none") as error:
            CliRunner().invoke(app, ["study", str(file), "--runs", str(tmp_path)], catch_exceptions=False)
        assert "\n" not in str(error.value)


class TestFiles:
    @pytest.mark.parametrize(
        ("content", "said"),
        [
            ({"folds": "all"}, "protocol=fixed_val has no folds; kfold and mlrc have them"),
            ({"folds": [0, 9], "base": {"protocol": "mlrc"}}, "protocol.fold=9: must be 0 to 3"),
            ({"evaluations": ["concatenated"]}, "but the study has none; add folds: all"),
            ({"readings": ["best"]}, "readings='best'"),
            ({"base": None}, "neither base nor axes"),
            ({"real": 3}, "keys of the study"),
            ({"axes": 3, "bases": {"a": {}}}, "a list of values or a mapping"),
            ({"readings": [[1]]}, "readings="),
            ({"baselines": [[1]]}, "baselines="),
            ({3: 4}, "unknown key 3"),
            ({"metrics": ["recall@1", "recall@1"]}, "recall@1 is listed twice"),
            ({"axes": {"epoch": {"a": {}}}}, "epoch is listed twice"),
            ({"base": {"train": 3, "train.epochs": 2}}, "not both"),
            ({"bases": ["a"]}, "a mapping from labels to words"),
            (
                {"base": {"protocol": "kfold", "protocol.folds": 1}, "folds": "all"},
                "protocol.folds=1: must be at least 2",
            ),
        ],
    )
    def test_bad_ones_are_refused(self, tiny, tmp_path, content, said):
        with pytest.raises(NearkinError, match=said):
            read_study(write(tmp_path, tiny, content))

    def test_a_root_brings_the_real_data(self, tmp_path):
        real = {"base": {"recipe": "roth2020", "dataset": "cub"}, "seeds": [3, 4]}
        file = write(
            tmp_path,
            {"recipe": "roth2020", "dataset": "glyphs", "backbone": "convnet", "epochs": 1},
            axes={"loss": ["triplet"]},
            real=real,
        )
        assert [c.spec.data.name for c in read_study(file).cells] == ["glyphs"]
        cells = read_study(file, {"root": "/data/cub"}).cells
        assert [(c.spec.data.name, c.seed, c.spec.train.epochs) for c in cells] == [("cub", 3, 150), ("cub", 4, 150)]

    def test_several_bases_are_the_first_axis_and_lie_under_the_words(self, tiny, tmp_path):
        file = write(
            tmp_path,
            tiny,
            bases={"narrow": {"dim": 8, "epochs": 5}, "wide": {"dim": 32}},
            axes={"loss": ["triplet", "margin"]},
        )
        study = read_study(file, {"epochs": 1})
        assert study.axes == ("base", "loss")
        assert {(c.labels, c.spec.model.dim, c.spec.train.epochs) for c in study.cells} == {
            ((base, loss), dim, 1) for base, dim in (("narrow", 8), ("wide", 32)) for loss in ("triplet", "margin")
        }

    def test_what_failed_is_kept_with_its_reason(self, tiny, tmp_path):
        store = Store(tmp_path / "runs")
        study = read_study(write(tmp_path, tiny, axes={"train.batch": [16, 400]}))
        jobs = jobs_of(study, store)
        carried_out(jobs, LocalProcesses(2))
        told = json.loads(write_study(study, jobs, store).read_text())
        assert [cell["error"] is None for cell in told["cells"]] == [True, False]
        assert "train.batch=400 is larger than" in told["cells"][1]["error"]


def test_torch_is_left_alone():
    assert torch.get_num_threads() == 1

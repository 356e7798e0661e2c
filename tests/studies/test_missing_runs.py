"""Tables of studies in which runs are missing: the numbers of `nearkin compare`, and what was averaged is said."""

import dataclasses
import itertools
import math
import statistics

import pytest
from stores import add_run

from nearkin.comparison.compare import compare
from nearkin.comparison.gather import gather
from nearkin.config.spec import make_spec
from nearkin.runs.store import Store
from nearkin.studies.cells import Cell, Study
from nearkin.studies.readings import READINGS, read
from nearkin.studies.runner import Job, write_study
from nearkin.studies.summary import notes_of, rows_of

LEVEL = [0.3, 0.5, 0.9]  # folds differ by far more than methods do
GAIN = {"triplet": 0.0, "margin": 0.02}


def value_of(loss, seed, fold):
    return LEVEL[fold] + GAIN[loss] + seed**2 / 100 + fold * seed / 200


def made(root, *, seeds=(0, 1, 2), folds=(0, 1, 2), missing=(), curve=None, select="map_at_r", **more):
    """A study of two losses with made-up results; `missing` runs (loss, seed, fold) were never trained."""
    store, cells, jobs = Store(root), [], []
    for loss, seed, fold in itertools.product(GAIN, seeds, folds):
        words = {
            "dataset": "glyphs",
            "backbone": "convnet",
            "dim": 64,
            "epochs": 4,
            "loss": loss,
            "train.seed": seed,
            "protocol": "kfold",
            "protocol.fold": fold,
            "train.select": select,
        }
        cell = Cell((loss,), seed, make_spec(words), fold)
        name = f"{loss}{seed}{fold}".ljust(12, "0")
        if (loss, seed, fold) not in missing:
            value, points = value_of(loss, seed, fold), None if curve is None else curve(loss, seed, fold)
            add_run(
                root,
                name,
                words,
                {"recall@1": value, "map_at_r": value / 2},
                seed=seed,
                validation={select: value / 4},
                curve=points,
            )
        cells.append(cell)
        jobs.append(Job(cell, store.run(name)))
    return Study("made", ("loss",), tuple(cells), ("recall@1", "map_at_r"), **more), jobs, store


MISSING = {
    "nothing": (),
    "one fold of one seed": (("triplet", 1, 2),),
    "one fold of every seed": (("triplet", 0, 2), ("triplet", 1, 2), ("triplet", 2, 2)),
    "another fold of every seed": (("triplet", 0, 0), ("triplet", 1, 1), ("triplet", 2, 2)),
    "one fold of both": tuple((loss, seed, 0) for loss in GAIN for seed in range(3)),
    "a seed": tuple(("margin", 0, fold) for fold in range(3)),
    "all but one run": tuple(("margin", *key) for key in itertools.product(range(3), range(3)) if key != (1, 1)),
}


@pytest.mark.parametrize("name", MISSING)
def test_a_study_and_its_comparison_print_one_number(tmp_path, name):
    study, jobs, store = made(tmp_path, missing=MISSING[name])
    write_study(study, jobs, store)
    for metric in ("recall@1", "map_at_r", "validation map_at_r"):
        (compared,) = compare(gather(["made"], tmp_path), metric=metric)
        table = {row.labels[0]: row for row in rows_of(study, jobs)}
        methods = {method.name: method for method in compared.methods}
        for loss, row in table.items():
            values = {seed: own[metric] for seed, own in row.values.items() if metric in own}
            assert values == (methods[loss].values if loss in methods else {})
            if values:
                assert row.mean[metric] == pytest.approx(methods[loss].interval.mean, abs=1e-15)


def test_one_fold_missing_costs_its_seed(tmp_path):
    """Without fold 2, the easiest one, the mean of seed 1 would stand 16 points too low."""
    study, jobs, _ = made(tmp_path, missing=MISSING["one fold of one seed"])
    rows = rows_of(study, jobs)
    row = next(row for row in rows if row.labels == ("triplet",))
    means = {seed: statistics.fmean(value_of("triplet", seed, fold) for fold in range(3)) for seed in (0, 2)}
    assert {seed: own["recall@1"] for seed, own in row.values.items()} == pytest.approx(means)
    assert row.mean["recall@1"] == pytest.approx(statistics.fmean(means.values()))
    assert row.std["recall@1"] == pytest.approx(statistics.stdev(means.values()))
    assert row.lacks == ()
    assert notes_of(study, rows) == ["unequal seeds: 3 (margin); 2 (triplet)"]


def test_a_fold_that_no_seed_has_is_said(tmp_path):
    study, jobs, _ = made(tmp_path, missing=MISSING["one fold of every seed"])
    rows = rows_of(study, jobs)
    row = next(row for row in rows if row.labels == ("triplet",))
    assert row.values[1]["recall@1"] == pytest.approx(statistics.fmean(value_of("triplet", 1, f) for f in (0, 1)))
    assert notes_of(study, rows) == ["unequal folds: 3 (margin); 2 (triplet)", "means without fold 2: triplet"]
    both, jobs, _ = made(tmp_path / "both", missing=MISSING["one fold of both"])
    assert notes_of(both, rows_of(both, jobs)) == ["means without fold 0: margin, triplet"]


def test_seeds_without_a_common_fold_give_no_number(tmp_path):
    missing = [key for key in itertools.product(["triplet"], range(2), range(2)) if key[1] != key[2]]
    study, jobs, _ = made(tmp_path, seeds=(0, 1), folds=(0, 1), missing=missing)
    row = next(row for row in rows_of(study, jobs) if row.labels == ("triplet",))
    assert (row.seeds, row.mean, row.std, row.budget) == (0, {}, {}, {})


def test_the_deviation_of_one_seed_is_that_of_its_own_folds(tmp_path):
    """Seed 1 lacks a fold, so seed 0 is left; the folds of seed 1 do not count."""
    study, jobs, _ = made(tmp_path, seeds=(0, 1), missing=[("triplet", 1, 0)])
    rows = rows_of(study, jobs)
    row = next(row for row in rows if row.labels == ("triplet",))
    assert row.seeds == 1
    assert row.std["recall@1"] == pytest.approx(statistics.stdev(LEVEL))
    assert "with one seed, ± is the standard deviation over folds" in notes_of(study, rows)


def test_a_value_that_is_no_number_is_none(tmp_path):
    study, jobs, _ = made(tmp_path)
    add = {"dataset": "glyphs", "loss": "triplet", "protocol": "kfold", "protocol.fold": 0}
    add_run(tmp_path, "undefined000", add, {"recall@1": math.nan, "map_at_r": 0.4})
    jobs[0].run = Store(tmp_path).run("undefined000")
    row = next(row for row in rows_of(study, jobs) if row.labels == ("triplet",))
    assert [("recall@1" in own, "map_at_r" in own) for own in row.values.values()].count((False, True)) == 1
    assert math.isfinite(row.mean["recall@1"])


CURVE = [
    {"recall@1": 0.2, "map_at_r": 0.5, "hubness@10": 3.0, "pi_intra": 0.1},
    {"recall@1": 0.4, "map_at_r": 0.3, "hubness@10": 1.0, "pi_intra": 0.9},
    {"recall@1": 0.4, "map_at_r": 0.1, "hubness@10": 2.0, "pi_intra": 0.5},
]


def test_the_best_by_validation_stands_first_where_low_is_better_too(tmp_path):
    for select, order in (("map_at_r", ["margin", "triplet"]), ("hubness@10", ["triplet", "margin"])):
        study, jobs, _ = made(tmp_path / select, select=select)
        assert [row.labels[0] for row in rows_of(study, jobs)] == order


def test_what_was_searched_is_part_of_the_budget(tmp_path):
    study, jobs, _ = made(tmp_path)
    for job in jobs:
        if job.cell.labels == ("margin",):
            job.cell = dataclasses.replace(job.cell, trials=7)
    assert notes_of(study, rows_of(study, jobs)) == ["unequal trials: 7 (margin); 0 (triplet)"]


class TestReadings:
    def test_each_is_what_it_says(self, tmp_path):
        """Low hubness is good; of a density neither end is, so that it has no best epoch."""
        add_run(tmp_path, "curve0000000", {}, {"recall@1": 0.3}, curve=CURVE)
        run = Store(tmp_path).run("curve0000000")
        assert read(run, "last", "map_at_r") == CURVE[2]
        assert read(run, "test_best", "map_at_r") == CURVE[1]  # all of one epoch: of two equal ones the first
        assert read(run, "test_best_each", "map_at_r") == {"recall@1": 0.4, "map_at_r": 0.5, "hubness@10": 1.0}
        assert read(run, "chosen", "map_at_r")["recall@1"] == 0.3

    def test_flattery_is_told_on_common_seeds_and_folds(self, tmp_path):
        """The curve lies above the chosen epoch by 1, 2 and 3 points in seeds 0, 1 and 2, of margin by twice that: by 3
        points on the average. That of the hardest fold is not kept of triplet."""

        def curve(loss, seed, fold):
            value = value_of(loss, seed, fold) + (1 + seed) / 100 * (2 if loss == "margin" else 1)
            return None if (loss, fold) == ("triplet", 0) else [{"recall@1": value, "map_at_r": value / 2}]

        study, jobs, _ = made(tmp_path, curve=curve, readings=tuple(READINGS))
        notes = [note for note in notes_of(study, rows_of(study, jobs)) if "is no result" in note]
        assert len(notes) == 2
        for note in notes:
            assert note.endswith("against the chosen epoch, in points: recall@1 +3.00, map_at_r +1.50")

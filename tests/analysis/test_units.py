"""The unit of every number of an analysis: seeds with all their folds for methods, classes for images, methods for a
correlation over methods."""

import itertools

import numpy as np
import pytest
from scipy import stats
from stores import add_run, add_study

from nearkin.analysis.corruptions import CorruptionsOfStudy
from nearkin.analysis.over_runs import methods_of, one_fold
from nearkin.analysis.properties import PropertiesOfStudy
from nearkin.analysis.spectrum_study import SpectrumOfStudy
from nearkin.comparison.compare import compare
from nearkin.comparison.gather import gather
from nearkin.errors import NearkinError
from nearkin.statistics.correlation import least_methods, rank_correlation
from nearkin.statistics.intervals import class_interval

METRIC = "recall@1"


def folds_study(root, missing=(), losses=("margin", "triplet"), seeds=4, folds=3):
    """Losses x seeds x folds, all values different; the runs in `missing` (loss, seed, fold) are not there."""
    cells, value = [], np.random.default_rng(0)
    for loss, seed, fold in itertools.product(losses, range(seeds), range(folds)):
        score = value.uniform(0.3, 0.6)
        if (loss, seed, fold) in missing:
            continue
        name = f"{loss[:5]}{seed}{fold}".ljust(12, "0")
        words = {"loss": loss, "protocol": "kfold", "protocol.fold": fold}
        add_run(root, name, words, {METRIC: score, "map_at_r": score / 2}, seed=seed)
        cells.append({"labels": [loss], "seed": seed, "fold": fold, "run": name})
    add_study(root, "folds", ["loss"], cells)
    return gather(["folds"], root)


def test_a_study_with_a_fold_missing_has_the_numbers_of_compare(tmp_path):
    """Seed 3 of margin lacks a fold: its other folds are no seed of their own."""
    gathered = folds_study(tmp_path, missing=[("margin", 3, 1)])
    (compared,) = compare(gathered, metric=METRIC)
    expected = {method.name: method for method in compared.methods}
    methods = methods_of(gathered)
    assert {method.name for method in methods} == set(expected) == {"margin", "triplet"}
    assert len(expected["margin"].values) == 3
    values = {member.run.hash: member.value(METRIC) for member in gathered.tested}
    for method in methods:
        assert method.row(lambda member: values[member.run.hash]).values == expected[method.name].values

    measured = {"recall@1": 0.5, "map_at_r": 0.5}
    corrupted = CorruptionsOfStudy(methods, {
        name: {"clean": {METRIC: value, "map_at_r": value}, "mean": {"all": measured, "queries": measured},
               "drop": {"all": measured, "queries": measured},
               "corruptions": {each: {"all": measured, "queries": measured} for each in CORRUPTIONS}}
        for name, value in values.items()
    }, {}).summary["methods"]  # fmt: skip
    shared = PropertiesOfStudy(methods, {name: {"properties": {"face": {"nr_precision": value}}}
                                         for name, value in values.items()}).summary["methods"]  # fmt: skip
    spectra = SpectrumOfStudy(methods, {name: spectrum_of(value) for name, value in values.items()}).summary["methods"]
    for name, method in expected.items():
        found = method.interval
        told = {"mean": found.mean, "low": found.low, "high": found.high, "seeds": found.n}
        assert spectra[name][METRIC].items() >= told.items()
        assert spectra[name]["rho"]["mean"] == found.mean
        assert corrupted[name]["all"][METRIC]["clean"].items() >= told.items()
        assert shared[name]["properties"]["face"]["mean"] == pytest.approx(found.mean)
        assert shared[name]["properties"]["face"]["seeds"] == {str(s): v for s, v in method.values.items()}


from nearkin.analysis.corrupt import CORRUPTIONS  # noqa: E402


def spectrum_of(rho):
    from nearkin.analysis.spectrum import Spectrum

    told = {"rho": rho, "rho_all": rho, "pi_intra": 0.2, "pi_inter": 0.4, "pi_ratio": 0.5}
    return Spectrum(told, np.ones(4), np.ones(4))

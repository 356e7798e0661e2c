"""The unit of every number of an analysis: seeds with all their folds for methods, classes for images, methods for a
correlation over methods."""

import itertools

import numpy as np
import pytest
from scipy import stats
from stores import add_run, add_study

from nearkin.analysis._corrupt import CORRUPTIONS
from nearkin.analysis._over_runs import methods_of, one_fold
from nearkin.analysis._relations import correlation_table, correlations, regularised, regulariser_table, twins_of
from nearkin.analysis.corruptions import CorruptionsOfStudy
from nearkin.analysis.properties import PropertiesOfStudy
from nearkin.analysis.spectrum import Spectrum, SpectrumOfStudy
from nearkin.comparison.compare import compare
from nearkin.comparison.gather import gather
from nearkin.errors import NearkinError
from nearkin.statistics.correlation import least_methods, rank_correlation
from nearkin.statistics.intervals import class_interval, mean_interval
from nearkin.statistics.unit import Row
from nearkin.statistics.verdict import judge

METRIC = "recall@1"


def folds_study(root, missing=(), losses=("margin", "triplet"), seeds=4, folds=3):
    """Losses x seeds x folds, all values different; the runs in `missing` (loss, seed, fold) are not there."""
    cells, random = [], np.random.default_rng(0)
    for loss, seed, fold in itertools.product(losses, range(seeds), range(folds)):
        score = random.uniform(0.3, 0.6)
        if (loss, seed, fold) in missing:
            continue
        name = f"{loss[:5]}{seed}{fold}".ljust(12, "0")
        words = {"loss": loss, "protocol": "kfold", "protocol.fold": fold}
        add_run(root, name, words, {METRIC: score, "map_at_r": score / 2}, seed=seed)
        cells.append({"labels": [loss], "seed": seed, "fold": fold, "run": name})
    add_study(root, "folds", ["loss"], cells)
    return gather(["folds"], root)


def spectrum_of(rho):
    told = {"rho": rho, "rho_all": rho, "pi_intra": 0.2, "pi_inter": 0.4, "pi_ratio": 0.5}
    return Spectrum(told, np.full(4, rho), np.ones(4))


def test_a_study_with_a_fold_missing_has_the_numbers_of_compare(tmp_path):
    """Seed 3 of margin lacks a fold: its other folds are no seed of their own."""
    gathered = folds_study(tmp_path, missing=[("margin", 3, 1)])
    (compared,) = compare(gathered, metric=METRIC)
    expected = {method.name: method for method in compared.methods}
    methods = methods_of(gathered)
    assert {method.name for method in methods} == set(expected) == {"margin", "triplet"}
    assert list(expected["margin"].values) == [0, 1, 2]
    values = {member.run.hash: member.value(METRIC) for member in gathered.tested}
    for method in methods:
        assert method.row(lambda member: values[member.run.hash]).values == expected[method.name].values
        assert len(method.whole) == 3 * len(expected[method.name].values)

    both = {"all": {METRIC: 0.5, "map_at_r": 0.5}, "queries": {METRIC: 0.5, "map_at_r": 0.5}}
    corrupted = CorruptionsOfStudy(
        methods,
        {
            name: {
                "clean": {METRIC: value, "map_at_r": value},
                "mean": both,
                "drop": both,
                "corruptions": dict.fromkeys(CORRUPTIONS, both),
            }
            for name, value in values.items()
        },
        {},
    ).numbers["methods"]
    neighbours = PropertiesOfStudy(
        methods, {name: {"properties": {"face": {"nr_precision": value}}} for name, value in values.items()}
    ).numbers["methods"]
    study = SpectrumOfStudy(methods, {name: spectrum_of(value) for name, value in values.items()})
    spectra = study.numbers["methods"]
    assert {row["method"]: row["seeds"] for row in study.tables[0]} == {"margin": 3, "triplet": 4}
    for name, method in expected.items():
        interval = method.interval
        told = {"mean": interval.mean, "low": interval.low, "high": interval.high, "seeds": interval.n}
        assert spectra[name][METRIC].items() >= told.items()
        assert spectra[name]["rho"]["mean"] == interval.mean
        assert corrupted[name]["all"][METRIC]["clean"].items() >= told.items()
        assert neighbours[name]["properties"]["face"]["mean"] == pytest.approx(interval.mean)
        assert neighbours[name]["properties"]["face"]["seeds"] == {str(s): v for s, v in method.values.items()}


def test_runs_that_differ_in_a_setting_are_methods_of_their_own(tmp_path):
    for epochs, seed in itertools.product((4, 40), (0, 1)):
        words = {"loss": "margin", "epochs": epochs}
        add_run(tmp_path, f"margin{epochs:02d}{seed}000", words, {METRIC: 0.5, "map_at_r": 0.5}, seed=seed)
    methods = methods_of(gather([str(tmp_path)], tmp_path))
    assert {method.name: len(method.members) for method in methods} == {"margin, epochs 4": 2, "margin, epochs 40": 2}
    add_run(tmp_path, "other0000000", {"loss": "triplet"}, {METRIC: 0.5}, seed=0)
    add_run(tmp_path, "other1000000", {"loss": "triplet"}, {METRIC: 0.5}, seed=1, data_hash="d1")
    names = {method.name for method in methods_of(gather([str(tmp_path)], tmp_path))}
    assert {"triplet, data d0", "triplet, data d1"} <= names  # other images: no second seed


def test_losses_on_two_data_sets_are_not_compared(tmp_path):
    cells = []
    for data, loss, seed in itertools.product(("d0", "d1"), ("margin", "triplet", "arcface"), range(3)):
        name = f"{data}{loss[:4]}{seed}".ljust(12, "0")
        add_run(tmp_path, name, {"loss": loss}, {METRIC: 0.5, "map_at_r": 0.5}, seed=seed, data_hash=data)
        cells.append({"labels": [data, loss], "seed": seed, "run": name})
    add_study(tmp_path, "two", ["data", "loss"], cells)
    gathered = gather(["two"], tmp_path)
    hashes = [member.run.hash for member in gathered.tested]
    study = SpectrumOfStudy(methods_of(gathered), {name: spectrum_of(0.1 * i) for i, name in enumerate(hashes)})
    assert study.numbers["correlations"] == {}
    assert "the runs are of 2 data sets: losses are not compared over them" in study.tables[0].notes
    values = {name: {"properties": {"face": {"nr_precision": 1.0}}} for name in hashes}
    assert PropertiesOfStudy(methods_of(gathered), values).numbers["kinds"] == {}


def test_models_of_one_fold_are_compared(tmp_path):
    """The first fold that all methods have; without one a sentence."""
    lacking = [("margin", seed, 0) for seed in range(4)]
    taken = one_fold(methods_of(folds_study(tmp_path / "a", missing=lacking)))
    assert {(method.name, len(method.members)) for method in taken} == {("margin", 4), ("triplet", 4)}
    assert {member.fold for method in taken for member in method.members} == {1}
    apart = [("margin", seed, fold) for seed in range(4) for fold in (0, 1)]
    apart += [("triplet", seed, 2) for seed in range(4)]
    with pytest.raises(NearkinError, match=r"no fold in common, .*margin has 2; triplet has 0, 1"):
        one_fold(methods_of(folds_study(tmp_path / "b", missing=apart)))


# -- classes --------------------------------------------------------------------------------------------------------


def test_images_of_one_class_are_one_unit():
    random = np.random.default_rng(0)
    means = random.normal(size=12)
    values, classes = np.repeat(means, 9), np.repeat([f"class {i}" for i in range(12)], 9)
    copied, plain = class_interval(values, classes), mean_interval(means)
    assert (copied.mean, copied.low, copied.high) == pytest.approx((plain.mean, plain.low, plain.high))
    assert copied.n == 12
    uneven = np.concatenate([values, np.full(91, means[0])])
    grown = class_interval(uneven, np.concatenate([classes, np.repeat("class 0", 91)]))
    assert grown.mean == pytest.approx(uneven.mean())
    share = np.array([100, *[9] * 11]) / 199
    error = np.sqrt(12 / 11 * (share**2 * (means - uneven.mean()) ** 2).sum())
    assert grown.high - grown.mean == pytest.approx(stats.t.ppf(0.975, 11) * error)
    assert class_interval([0.2, 0.4], ["a", "a"]).low is None


def test_the_interval_over_classes_covers_other_classes():
    """Images of a class have much in common: an interval over images would cover the truth in half of the samples."""
    random = np.random.default_rng(1)
    classes = np.repeat(np.arange(15), 8)
    hits = {"classes": 0, "images": 0}
    for _ in range(400):
        values = random.normal(size=15)[classes] + random.normal(size=120)
        for unit, interval in (("classes", class_interval(values, classes)), ("images", mean_interval(values))):
            hits[unit] += interval.low < 0 < interval.high
    assert hits["classes"] / 400 > 0.95 - 3 * np.sqrt(0.05 * 0.95 / 400)
    assert hits["images"] / 400 < 0.8


# -- correlations over methods --------------------------------------------------------------------------------------


def rows_of(x, y, seeds=3, noise=0.0, random=None):
    """Two rows for each of the methods with these true values."""
    random = random or np.random.default_rng(0)

    def row(i, value):
        return Row.of_seeds(str(i), {s: value + noise * random.normal() for s in range(seeds)})

    return [(row(i, a), row(i, b)) for i, (a, b) in enumerate(zip(x, y, strict=True))]


def test_rank_correlation_is_exact_and_needs_enough_methods():
    assert rank_correlation([0, 1, 2, 3], [0, 1, 2, 4]).p == pytest.approx(2 / 24)  # of 4! orders
    assert rank_correlation(np.arange(4.0), np.ones(4)) is None
    x, y = np.random.default_rng(0).normal(size=(2, 12))
    expected = stats.spearmanr(x, y)
    found = rank_correlation(x, y)
    assert found.value == pytest.approx(expected.statistic)
    assert found.p == pytest.approx(expected.pvalue, abs=0.03)
    assert [least_methods(tests) for tests in (1, 8, 100)] == [5, 6, 7]
    for methods in (5, 6):
        p = rank_correlation(range(methods), range(methods)).p
        assert (8 * p < 0.05) == (methods >= least_methods(8))
    with pytest.raises(NearkinError, match=r"shapes \(3,\) and \(2,\)"):
        rank_correlation([1, 2, 3], [1, 2])


def test_correlations_are_one_family():
    line, wave = np.arange(7.0), np.array([3, 0, 6, 1, 5, 2, 4.0])
    found = correlations({("rho", "recall@1"): rows_of(line, -line), ("rho", "map_at_r"): rows_of(line, wave)})
    strong, weak = found["rho"]["recall@1"], found["rho"]["map_at_r"]
    assert strong["p_holm"] == pytest.approx(2 * strong["p"]) == pytest.approx(2 * 2 / 5040)
    assert (strong["verdict"], weak["verdict"]) == ("falls with it", "undecided")
    sheet = correlation_table(found)
    assert any("one family of 2 tests" in note and "Holm" in note for note in sheet.notes)
    assert sheet.rows[0][-1] == strong["p_holm"]
    assert sheet.texts()[0][-1] == "< 0.001"


def test_no_verdict_on_a_correlation_of_few_seeds_or_few_methods():
    line = np.arange(7.0)
    few = correlations({("rho", "map_at_r"): rows_of(line, line, seeds=2)})["rho"]["map_at_r"]
    assert few["verdict"] == "no verdict: 2 common seeds, at least three seeds are needed"
    assert (few["spearman"], few["p_holm"], few["family"]) == (pytest.approx(1), None, 0)
    four = correlations({("rho", "map_at_r"): rows_of(line[:4], line[:4])})["rho"]["map_at_r"]
    assert four["verdict"] == "no verdict: 4 methods, at least 5 are needed"
    assert correlations({("rho", "map_at_r"): rows_of(line[:2], line[:2])}) == {}
    rows = [*rows_of(line, line), (Row.of_seeds("x", {9: 1.0}), Row.of_seeds("x", {9: 1.0}))]
    apart = correlations({("rho", "map_at_r"): rows})["rho"]["map_at_r"]
    assert apart["spearman"] is None
    assert apart["verdict"].startswith("no common seeds")


def test_a_correlation_takes_the_seeds_that_all_methods_have():
    """A method's lucky seed that others lack does not move it."""
    rows = rows_of(range(6), range(6))
    lucky = Row.of_seeds("0", {0: 0.0, 1: 0.0, 2: 0.0, 3: 100.0})
    rows[0] = (lucky, lucky)
    cell = correlations({("rho", "map_at_r"): rows})["rho"]["map_at_r"]
    assert (cell["spearman"], cell["seeds"]) == (pytest.approx(1), 3)


@pytest.mark.parametrize("studies", [100, pytest.param(400, marks=pytest.mark.slow)])
def test_correlations_of_nothing_are_decided_in_five_of_a_hundred_studies(studies):
    """Methods differ, in both numbers, independently; seeds differ little, which says nothing about other methods."""
    random, wrong = np.random.default_rng(2), 0
    keys = list(itertools.product(("rho", "pi_intra", "pi_inter", "pi_ratio"), ("recall@1", "map_at_r")))
    for _ in range(studies):
        numbers = {key: random.normal(size=7) for key in {name for pair in keys for name in pair}}
        asked = {pair: rows_of(*(numbers[key] for key in pair), noise=0.01, random=random) for pair in keys}
        cells = [cell for others in correlations(asked).values() for cell in others.values()]
        assert cells[0]["family"] == 8
        wrong += any(cell["p_holm"] < 0.05 for cell in cells)
    assert wrong / studies <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / studies)


# -- with a regulariser and without ---------------------------------------------------------------------------------


def regularisers_study(root, seeds, folds=(None,), gain=0.05):
    """Margin and triplet without and with mixup, which raises every score, and π, by about `gain`."""
    cells, random = [], np.random.default_rng(0)
    for loss, kind, seed, fold in itertools.product(("margin", "triplet"), ("none", "mixup"), range(seeds), folds):
        name = f"{loss[:4]}{kind[:3]}{seed}{fold or 0}".ljust(12, "0")
        score = 0.5 + 0.02 * seed + (gain + 0.001 * random.normal()) * (kind == "mixup")
        words = {"loss": loss} | ({"regulariser": "mixup"} if kind == "mixup" else {})
        words |= {} if fold is None else {"protocol": "kfold", "protocol.fold": fold}
        add_run(root, name, words, {METRIC: score, "map_at_r": score}, seed=seed)
        cells.append({"labels": [loss, kind], "seed": seed, "fold": fold, "run": name})
    add_study(root, "reg", ["loss", "regulariser"], cells)
    methods = methods_of(gather(["reg"], root))

    def row(method, metric):
        return method.metric(metric) if metric == METRIC else method.row(lambda member: member.value(METRIC))

    return regularised(twins_of(methods), ["pi_ratio", METRIC], row)


def test_no_verdict_on_a_regulariser_from_two_seeds(tmp_path):
    found = regularisers_study(tmp_path, seeds=2)
    told = found[0].numbers()[METRIC]
    assert told["mean"] == pytest.approx(0.05, abs=0.002)
    assert (told["n"], told["p_holm"], told["outcome"]) == (2, None, "none")
    assert told["verdict"] == "no verdict: 2 common seeds, at least three seeds are needed"


def test_a_regulariser_is_judged_in_one_family(tmp_path):
    found = regularisers_study(tmp_path, seeds=4)
    assert [(each.loss, each.regulariser) for each in found] == [("margin", "mixup"), ("triplet", "mixup")]
    pairs = [pair for each in found for pair in each.pairs.values()]
    assert {pair.family for pair in pairs} == {4}
    alone = judge([(pair.first, pair.second) for pair in (each.pairs[METRIC] for each in found)])
    assert [each.pairs[METRIC].p for each in found] == pytest.approx([2 * pair.p for pair in alone])
    assert found[0].pairs["pi_ratio"].spread == found[0].pairs[METRIC].spread  # of its own unit, not of all
    sheet = regulariser_table(found)
    assert any("one family of 4 comparisons" in note for note in sheet.notes)
    verdicts = {(row["method"], row["by"]): row["verdict"] for row in sheet}
    assert verdicts["margin, mixup", "recall@1, points"].startswith("distinguishable: margin, mixup is ahead by")
    assert verdicts["margin, mixup", "pi_ratio"].startswith("distinguishable: margin, mixup is higher by")


def test_folds_of_a_regulariser_are_one_row(tmp_path):
    found = regularisers_study(tmp_path, seeds=3, folds=(0, 1))
    assert len(found) == 2
    assert found[0].pairs[METRIC].shared.folds == [0, 1]
    assert found[0].pairs[METRIC].difference.n == 3

"""What tuning was worth: the number and the verdict of `nearkin compare` for the same two rows."""

import itertools

import pytest
from stores import add_run, add_study

from nearkin.comparison.compare import compare
from nearkin.comparison.gather import gather
from nearkin.comparison.verdicts import all_pairs, verdict_words
from nearkin.statistics.verdict import Outcome
from nearkin.tuning._tables import gains_table
from nearkin.tuning._tuned import gains_of

LEVEL = [0.2, 0.4, 0.9]  # folds differ by far more than settings do
LUCK = [0.000, 0.013, 0.004, 0.021, 0.009]


def searched(root, gain, *, seeds=5, folds=1, missing=(), metric="map_at_r", classes=None):
    """A study of rows (loss -> what tuning is worth) with default and tuned runs; `missing` are (loss, settings, seed,
    fold). `classes` gives what a class adds to the tuned row."""
    cells = []
    for loss, settings, seed, fold in itertools.product(gain, ("default", "tuned"), range(seeds), range(folds)):
        if (loss, settings, seed, fold) in missing:
            continue
        tuned = settings == "tuned"
        value = LEVEL[fold] + LUCK[seed] + (gain[loss] * (1 + seed / 10) if tuned else 0.0)
        words = {"loss": loss, "train.lr": 0.01 if tuned else 0.001, "protocol": "kfold", "protocol.fold": fold}
        name = f"{loss}{settings}{seed}{fold}".replace("_", "")
        per_query = None
        if classes is not None:
            by_class = {c: [value + (more if tuned else 0.0)] * 4 for c, more in classes.items()}
            per_query, value = {metric: by_class}, sum(values[0] for values in by_class.values()) / len(by_class)
        add_run(root, name, words, {"recall@1": value, metric: value}, seed=seed, queries=400, per_query=per_query)
        fold_told = fold if folds > 1 else None
        cells.append({"labels": [loss, settings], "seed": seed, "run": name, "fold": fold_told, "trials": 5 * tuned})
    add_study(root, "tune", ["loss", "settings"], cells)
    return gather(["tune"], root)


def compared(gathered, metric, loss):
    """The same pair as `nearkin compare` has it, and the sign of tuned less default in it."""
    (found,) = compare(gathered, metric=metric)
    names = {f"{loss}, tuned", f"{loss}, default"}
    (pair,) = [each for each in all_pairs(found).pairs if {each.first.name, each.second.name} == names]
    return pair, 1 if pair.first.name.endswith("tuned") else -1


BOTH = {"triplet": 0.03, "margin": -0.001}


@pytest.mark.parametrize(
    "missing",
    [
        (),
        [("triplet", "tuned", 0, 2)],
        [("triplet", "tuned", seed, 2) for seed in range(5)],
        [("triplet", "default", 0, fold) for fold in range(3)],
    ],
    ids=["nothing", "a fold of a seed", "a fold", "a seed"],
)
def test_it_is_the_number_that_compare_prints(tmp_path, missing):
    gathered = searched(tmp_path, BOTH, folds=3, missing=missing)
    for gain in gains_of(gathered, ["map_at_r", "recall@1"]):
        pair, sign = compared(gathered, gain.metric, gain.name)
        d, other = gain.pair.difference, pair.difference
        assert (d.mean, d.n, d.std, d.p) == pytest.approx((sign * other.mean, other.n, other.std, other.p))
        assert [d.low, d.high] == pytest.approx(sorted([sign * other.low, sign * other.high]))
        assert d.mean == pytest.approx(BOTH[gain.name] * (1 + sum(gain.pair.shared.seeds) / d.n / 10))


def test_folds_are_matched_between_tuned_and_default(tmp_path):
    """Tuned runs have the easiest fold alone; the mean over three folds would stand 40 points lower."""
    missing = [("triplet", "tuned", seed, fold) for seed in range(5) for fold in (0, 1)]
    (gain,) = gains_of(searched(tmp_path, {"triplet": 0.0}, folds=3, missing=missing), ["map_at_r"])
    assert gain.pair.difference.mean == 0
    assert verdict_words(gain.pair, "map_at_r") == "equivalent within ±1.00 points"
    assert gain.pair.shared.folds == [2]


def test_what_is_shown_is_the_difference_of_what_is_shown(tmp_path):
    """Seed 4 of the default row is missing: it counts in neither mean."""
    gathered = searched(tmp_path, {"triplet": 0.03}, missing=[("triplet", "default", 4, 0)])
    table = gains_table(gains_of(gathered, ["map_at_r"]))
    (row,) = table.records()
    assert (row["row"], row["seeds"]) == ("triplet", 4)
    assert row["tuned"] - row["default"] == pytest.approx(row["difference"], abs=1e-12)
    assert row["default"] == pytest.approx(LEVEL[0] + sum(LUCK[:4]) / 4, abs=1e-12)
    assert row["verdict"] == "distinguishable: triplet, tuned is ahead by 3.45 points"
    assert row["half_over_classes"] is None
    assert row["low"] < row["difference"] < row["high"]
    shown = dict(zip([column.title for column in table.shown], table.texts()[0], strict=True))
    assert shown["tuned - default"] == "+3.45"


@pytest.mark.parametrize("seeds", [1, 2])
def test_no_verdict_below_three_seeds(tmp_path, seeds):
    """Two equal differences would look certain."""
    gains = gains_of(searched(tmp_path, {"triplet": 0.3}, seeds=seeds), ["map_at_r"])
    assert gains[0].pair.outcome is Outcome.NONE
    (row,) = gains_table(gains).rows
    assert "at least three seeds are needed" in row[2]
    assert "distinguishable" not in row[2]


def test_low_is_better_where_it_is(tmp_path):
    (gain,) = gains_of(searched(tmp_path, {"triplet": 0.3}, metric="hubness@10"), ["hubness@10"])
    assert gain.pair.decided
    assert gain.pair.winner.name == "triplet, default"
    assert verdict_words(gain.pair, "hubness@10").startswith("distinguishable: triplet, default is ahead by 0.3")


def test_the_rows_of_a_metric_are_one_family(tmp_path):
    gain = {"triplet": 0.02, "margin": 0.01, "contrastive": 0.0, "arcface": 0.005}
    gains = gains_of(searched(tmp_path, gain), ["map_at_r", "recall@1"])
    assert [g.name for g in gains] == [*gain, *gain]
    for metric in ("map_at_r", "recall@1"):
        own = [g.pair for g in gains if g.metric == metric]
        assert [pair.family for pair in own] == [4] * 4
    assert "one family of 4 comparisons" in " ".join(gains_table(gains).notes)


def test_other_classes_might_not_agree(tmp_path):
    """All seeds agree that tuning helps, but only one class of four gains by it."""
    classes = {"a": 0.2, "b": -0.01, "c": 0.0, "d": -0.01}
    (gain,) = gains_of(searched(tmp_path, {"triplet": 0.03}, classes=classes), ["map_at_r"])
    assert gain.pair.difference.p < 0.05  # over the seeds alone
    assert gain.pair.p > 0.05  # over seeds and classes
    assert gain.pair.difference.class_count == 4
    assert gain.pair.outcome is Outcome.UNDECIDED
    (row,) = gains_table([gain]).rows
    assert row[10] > 0  # over the classes


def test_rows_without_a_partner_and_untrained_networks_are_left_out(tmp_path):
    missing = [("margin", "tuned", seed, 0) for seed in range(5)]
    gathered = searched(tmp_path, BOTH, missing=missing)
    assert [gain.name for gain in gains_of(gathered, ["map_at_r"])] == ["triplet"]
    for member in gathered.members:
        member.baseline = "pooled"
    assert gains_of(gathered, ["map_at_r"]) == []


def test_no_common_seed_is_a_sentence(tmp_path):
    missing = [
        ("triplet", settings, seed, 0)
        for settings, seeds in (("tuned", (0, 1, 2)), ("default", (3, 4)))
        for seed in seeds
    ]
    gains = gains_of(searched(tmp_path, {"triplet": 0.03}, missing=missing), ["map_at_r"])
    (row,) = gains_table(gains).rows
    assert row[2] == "no common seeds (3; 4 against 0; 1; 2): nothing to compare"
    assert set(row[3:-1]) == {None}

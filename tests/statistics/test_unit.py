"""Who is compared on what: common seeds, settings and folds, against loops and by hand."""

import itertools
import statistics

import numpy as np
import pytest

from nearkin.statistics.paired import class_variance, joint_half, paired
from nearkin.statistics.unit import ByClass, Key, Nothing, Place, Row, by_class, class_differences, common

SMALL, LARGE = ("64",), ("512",)


def row(name, values, **more):
    """(seed, setting, fold) -> value."""
    return Row(name, {Key(s, Place(setting, fold)): v for (s, setting, fold), v in values.items()}, **more)


def grid(name, base, seeds=range(3), settings=((),), folds=(None,), without=()):
    """Values that tell where they come from: base + seed/10 + fold + 10 for each further setting."""
    return row(
        name,
        {
            (s, b, f): base + s / 10 + (f or 0) + 10 * i
            for s in seeds
            for i, b in enumerate(settings)
            for f in folds
            if (s, b, f) not in without
        },
    )


def test_folds_are_averaged_in_each_setting_and_settings_after_them():
    found = row("a", {(0, SMALL, 0): 1.0, (0, SMALL, 1): 3.0, (0, LARGE, 0): 10.0})
    assert found.values == {0: statistics.fmean([2.0, 10.0])}  # not the mean of three runs


def test_a_seed_counts_when_it_has_all_settings_and_folds_of_its_row():
    found = grid("a", 0, folds=(0, 1), without=[(2, (), 1)])
    assert found.values == {0: 0.5, 1: pytest.approx(0.6)}
    assert grid("a", 0, seeds=[0, 1], folds=(0, 1), without=[(0, (), 1), (1, (), 0)]).values == {}


def test_where_no_seed_is_whole_settings_and_folds_are_given_up():
    found = grid("a", 0, seeds=[0, 1], folds=(0, 1, 2), without=[(0, (), 1), (1, (), 2)])
    assert found.values == {0: 0.0, 1: 0.1}  # fold 0 is what both have


def test_two_rows_are_compared_on_the_folds_that_both_have():
    """margin has fold 3 alone; fold by fold the two are equal."""
    margin, triplet = grid("margin", 0, folds=(3,)), grid("triplet", 0, folds=(0, 1, 2, 3))
    shared = common([margin, triplet])
    assert (shared.seeds, shared.folds) == ((0, 1, 2), [3])
    assert np.array_equal(shared.values[0], shared.values[1])


def test_a_missing_run_costs_its_seed_while_three_are_left_and_its_fold_below():
    whole = grid("a", 0, seeds=range(4), folds=(0, 1))
    less = grid("b", 0, seeds=range(4), folds=(0, 1), without=[(3, (), 1)])
    assert common([whole, less]).seeds == (0, 1, 2)
    assert common([whole, less]).folds == [0, 1]
    whole, less = grid("a", 0, folds=(0, 1)), grid("b", 0, folds=(0, 1), without=[(2, (), 1)])
    assert common([whole, less]).seeds == (0, 1, 2)
    assert common([whole, less]).folds == [0]


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        (grid("a", 0, seeds=[0, 1]), grid("b", 0, seeds=[2, 3]), "no common seeds (0; 1 against 2; 3)"),
        (grid("a", 0, folds=[0]), grid("b", 0, folds=[1, 2]), "no common folds (0 against 1; 2)"),
        (grid("a", 0, settings=[SMALL]), grid("b", 0, settings=[LARGE]), "no common settings (64 against 512)"),
        (grid("a", 0, seeds=[]), grid("b", 0), "no values"),
        (
            row("a", {(0, (), 0): 1, (1, (), 1): 1}),
            row("b", {(1, (), 0): 1, (0, (), 1): 1}),
            "no common seed with the same settings and folds",
        ),
    ],
)
def test_without_anything_in_common_there_is_a_sentence(first, second, words):
    found = common([first, second])
    assert isinstance(found, Nothing)
    assert found.reason == words


def test_what_is_common_is_that_of_a_loop():
    """On random holes: every run that counts is there in both rows, and the value is the mean of means."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        rows = []
        for name in "ab":
            keys = list(itertools.product(range(4), (SMALL, LARGE), (0, 1, 2)))
            rows.append(row(name, {k: rng.random() for k in keys if rng.random() < 0.9}))
        shared = common(rows)
        if isinstance(shared, Nothing):
            continue
        for i, each in enumerate(rows):
            for j, seed in enumerate(shared.seeds):
                means = []
                for setting in (SMALL, LARGE):
                    folds = [each.members[Key(seed, p)] for p in shared.places if p.setting == setting]
                    means += [sum(folds) / len(folds)] if folds else []
                assert shared.values[i, j] == pytest.approx(sum(means) / len(means))


def test_values_by_class_leave_out_what_is_not_defined():
    found = by_class(["b", "a", "a", "b", "c"], [1.0, 0.0, 0.5, float("nan"), float("nan")])
    assert found.classes == ("a", "b")
    assert (found.means.tolist(), found.queries.tolist()) == ([0.25, 1.0], [2, 1])
    assert by_class(["a"], [float("nan")]) is None


def classed(name, values):
    """seed -> fold -> class -> values of its queries, as a row with its values by class."""
    runs = {Key(s, Place((), f)): classes for s, folds in values.items() for f, classes in folds.items()}
    numbers = {key: float(np.mean([v for values in classes.values() for v in values])) for key, classes in runs.items()}

    def of(key):
        classes = runs[key]
        counts = np.array([len(v) for v in classes.values()])
        return ByClass(tuple(classes), np.array([np.mean(v) for v in classes.values()]), counts)

    return Row(name, numbers, 10, of)


def test_differences_by_class_add_up_to_the_difference_and_vary_as_the_loop_says():
    rng = np.random.default_rng(1)
    sizes = {"a": 5, "b": 2, "c": 3}

    def draw():
        return {s: {f: {c: rng.random(n) for c, n in sizes.items()} for f in (0, 1)} for s in range(4)}

    first, second = draw(), draw()
    rows = classed("x", first), classed("y", second)
    shared = common(rows)
    d = class_differences(*rows, shared)
    assert d.values.shape == (4, 3)
    assert (d.values @ d.weights).tolist() == pytest.approx((shared.values[0] - shared.values[1]).tolist())
    means = []
    for c in sizes:  # the mean over seeds and folds of each class
        means.append(np.mean([np.mean(first[s][f][c]) - np.mean(second[s][f][c]) for s in range(4) for f in (0, 1)]))
    weights = [n / 10 for n in sizes.values()]
    mean = sum(w * m for w, m in zip(weights, means, strict=True))
    wanted = 3 / 2 * sum(w**2 * (m - mean) ** 2 for w, m in zip(weights, means, strict=True))
    assert class_variance(d) == pytest.approx(wanted)
    found = paired(*shared.values, classes=d)
    seeds = np.std(shared.values[0] - shared.values[1], ddof=1) ** 2 / 4
    assert found.high - found.mean == pytest.approx(joint_half(seeds, 4, wanted, 3))


def test_runs_that_were_tested_on_other_queries_have_no_differences_by_class():
    first = classed("x", {0: {None: {"a": [1.0], "b": [0.0]}}})
    second = classed("y", {0: {None: {"a": [1.0], "c": [0.0]}}})
    assert class_differences(first, second, common([first, second])) is None
    plain = Row.of_seeds("z", {0: 0.5})
    assert class_differences(first, Row("z", {Key(0): 0.5}), common([first, plain])) is None

"""The protocols of `nearkin fit`: every class is tested once, and then all of them train."""

import numpy as np
import pytest

from nearkin.data.table import Table
from nearkin.errors import NearkinError
from nearkin.protocols import All, Cross


def table(classes, per_class=3, split=None):
    labels = np.repeat(np.arange(classes), per_class)
    images = np.zeros((len(labels), 1, 1, 3), np.uint8)
    columns = {} if split is None else {"split": split}
    return Table(labels=labels, classes=tuple(map(str, range(classes))), images=images, columns=columns)


@pytest.mark.parametrize(("classes", "folds", "share"), [(6, 3, 0.0), (9, 4, 0.0), (20, 4, 0.2), (81, 4, 0.2)])
def test_every_class_is_tested_once_and_is_on_one_side(classes, folds, share):
    data = table(classes)
    tested = []
    for fold in range(folds):
        split = Cross(fold=fold, folds=folds, share=share).split(data)
        sides = [set(data.labels[rows]) for rows in (split.train, split.val, split.test.images)]
        assert sum(map(len, sides)) == classes == len(set.union(*sides))
        assert sum(len(rows) for rows in (split.train, split.val, split.test.images)) == len(data.labels)
        assert (len(sides[1]) == 0) if not share else (len(sides[1]) >= 2)
        tested += sides[2]
    assert sorted(tested) == list(range(classes))


def test_the_rule_says_whether_anything_was_selected():
    assert Cross(share=0).rule == "last epoch (no validation)"
    assert Cross().rule == "best epoch on held-out training classes"


def test_a_division_that_comes_with_the_data_is_not_read():
    given = table(12, split=np.where(np.arange(36) < 18, "train", "test"))
    assert Cross().split(given).hash() == Cross().split(table(12)).hash()


@pytest.mark.parametrize(
    ("words", "classes", "reason"),
    [
        ({"folds": 1}, 20, "must be at least 2"),
        ({"fold": 4}, 20, "must be 0 to 3"),
        ({"share": 1.0}, 20, "at least 0, below 1"),
        ({}, 7, "7 classes are too few for protocol.folds=4.*at least 8"),
        ({"folds": 2, "share": 0.5}, 6, "3 classes are too few to hold out 2"),
    ],
)
def test_what_cannot_be_divided_is_refused(words, classes, reason):
    with pytest.raises(NearkinError, match=reason):
        Cross(**words).split(table(classes))


def test_all_trains_on_everything():
    split = All().split(table(3))
    assert len(split.train) == 9
    assert len(split.val) == len(split.test.images) == 0

"""Folds of the training classes, against lists written by hand."""

import numpy as np
import pytest

from nearkin.data import Table
from nearkin.errors import NearkinError
from nearkin.protocols import MLRC, KFold


def make_table(trainval, test=10, per_class=2):
    labels = np.repeat(np.arange(trainval + test), per_class)
    return Table(
        labels=labels,
        classes=tuple(f"c{c:05d}" for c in range(trainval + test)),
        images=np.zeros((len(labels), 1, 1, 3), np.uint8),
        columns={"split": np.where(labels < trainval, "train", "test")},
    )


def classes_of(table, rows):
    return np.unique(table.labels[rows]).tolist()


@pytest.mark.parametrize(
    ("classes", "train", "val", "starts"),
    [
        (100, 75, 25, [0, 25, 50, 75]),  # CUB
        (98, 74, 24, [0, 24, 49, 73]),  # Cars196
        (11318, 8489, 2829, [0, 2829, 5659, 8488]),  # SOP
    ],
)
def test_the_reality_checks_folds(classes, train, val, starts):
    table = make_table(classes, test=3, per_class=1)
    for fold, start in enumerate(starts):
        split = MLRC(fold=fold).split(table)
        around = [(start + k) % classes for k in range(classes)]
        assert classes_of(table, split.train) == sorted(around[:train])
        assert classes_of(table, split.val) == sorted(around[train:])
        assert len(around[train:]) == val
        assert classes_of(table, split.test.query) == [classes, classes + 1, classes + 2]


def test_random_folds_are_disjoint_and_together_all():
    table = make_table(43)
    splits = [KFold(fold=fold, folds=10).split(table) for fold in range(10)]
    held_out = [classes_of(table, split.val) for split in splits]
    assert sorted(len(part) for part in held_out) == [4] * 7 + [5] * 3
    assert sorted(c for part in held_out for c in part) == list(range(43))
    for split, part in zip(splits, held_out, strict=True):
        assert classes_of(table, split.train) == [c for c in range(43) if c not in part]
        assert classes_of(table, split.test.query) == list(range(43, 53))
    assert held_out != [sorted(part) for part in np.array_split(np.arange(43), 10)]  # drawn, not in order


def test_every_fold_has_its_own_hash_and_keeps_it():
    table = make_table(40)
    hashes = [form(fold=fold).split(table).hash() for form in (KFold, MLRC) for fold in range(4)]
    assert len(set(hashes)) == 8
    assert hashes == [form(fold=fold).split(table).hash() for form in (KFold, MLRC) for fold in range(4)]
    assert KFold(seed=1).split(table).hash() != KFold().split(table).hash()
    assert MLRC(seed=1).split(table).hash() == MLRC().split(table).hash()  # the official test classes


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: KFold(fold=10), r"protocol\.fold=10: must be 0 to 9"),
        (lambda: MLRC(fold=-1), r"protocol\.fold=-1: must be 0 to 3"),
        (lambda: KFold(folds=1), r"protocol\.folds=1: must be at least 2"),
        (lambda: KFold().split(make_table(12)), r"12 training classes are too few for protocol\.folds=10"),
    ],
)
def test_what_cannot_be_done_is_said(make, said):
    with pytest.raises(NearkinError, match=said):
        make()

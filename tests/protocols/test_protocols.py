"""Splits: disjoint classes, the official halves (contract 7; the lock is tested in runs/)."""

import json

import numpy as np
import pytest

from nearkin.data import Table
from nearkin.errors import NearkinError
from nearkin.protocols import Few, FixedVal, Split, Standard, Within


def make_table(classes=20, per_class=7, split=None):
    labels = np.repeat(np.arange(classes), per_class)
    images = np.zeros((len(labels), 2, 2, 3), np.uint8)
    columns = {} if split is None else {"split": np.array([split(c) for c in labels])}
    return Table(labels=labels, classes=tuple(f"c{c}" for c in range(classes)), images=images, columns=columns)


@pytest.mark.parametrize("protocol", [Standard(), FixedVal(), FixedVal(seed=3, share=0.3)], ids="abc")
@pytest.mark.parametrize("split", [None, lambda c: "train" if c < 11 else "test"])
def test_classes_are_disjoint_and_all_images_used(protocol, split):
    table = make_table(split=split)
    parts = protocol.split(table)
    sides = [set(table.labels[parts.train]), set(table.labels[parts.val]), set(table.labels[parts.test.images])]
    assert not sides[0] & sides[1]
    assert not sides[0] & sides[2]
    assert not sides[1] & sides[2]
    together = np.concatenate([parts.train, parts.val, parts.test.images])
    assert sorted(together) == list(range(len(table)))
    if split is not None:
        assert sides[2] == set(range(11, 20))


def test_fixed_val_holds_out_the_share_but_at_least_two():
    table = make_table(100)
    assert len(np.unique(table.labels[FixedVal().split(table).val])) == 5
    assert len(np.unique(table.labels[FixedVal().split(make_table(10)).val])) == 2


def test_the_seed_draws_the_split_and_the_hash_tells():
    table = make_table()
    assert FixedVal(seed=1).split(table).hash() == FixedVal(seed=1).split(table).hash()
    assert FixedVal(seed=1).split(table).hash() != FixedVal(seed=2).split(table).hash()
    assert FixedVal().split(table).hash() != Standard().split(table).hash()


def test_given_validation_classes_are_taken():
    table = make_table(split=lambda c: "train" if c < 8 else "val" if c < 11 else "test")
    assert set(table.labels[FixedVal().split(table).val]) == {8, 9, 10}
    assert set(table.labels[Standard().split(table).train]) == set(range(11))


def test_query_and_gallery_stay_apart():
    labels = np.repeat(np.arange(10), 4)
    split = np.where(labels < 5, "train", np.where(np.arange(40) % 2, "query", "gallery"))
    table = Table(
        labels=labels, classes=tuple("abcdefghij"), images=np.zeros((40, 2, 2, 3), np.uint8), columns={"split": split}
    )
    test = Standard().split(table).test
    assert (split[test.query] == "query").all()
    assert (split[test.gallery] == "gallery").all()


def test_within_splits_the_images_of_each_class():
    table = make_table(3, 10)
    parts = Within().split(table)
    for rows in (parts.train, parts.val, parts.test.images):
        assert set(table.labels[rows]) == {0, 1, 2}
    assert len(set(parts.train) | set(parts.val) | set(parts.test.images)) == 30
    assert len(parts.train) + len(parts.val) + len(parts.test.images) == 30


def test_a_split_is_rows_alone_and_goes_through_json():
    labels = np.repeat(np.arange(10), 4)
    sides = np.where(labels < 5, "train", np.where(np.arange(40) % 2, "query", "gallery"))
    queried = Table(
        labels=labels, classes=tuple("abcdefghij"), images=np.zeros((40, 2, 2, 3), np.uint8), columns={"split": sides}
    )
    for split in (FixedVal().split(make_table()), Standard().split(queried)):
        again = Split.from_dict(json.loads(json.dumps(split.to_dict())))
        assert again.hash() == split.hash() == split.to_dict()["hash"]
        assert (again.test.roles == split.test.roles).all()
        assert set(vars(split.test)) == {"query", "gallery"}  # no label is reachable from it


@pytest.mark.parametrize(
    ("protocol", "table", "said"),
    [
        (FixedVal(), lambda: make_table(7), "7 classes are too few.*protocol=within"),
        (Standard(), lambda: make_table(split=lambda c: "trian"), "split 'trian' is unknown"),
        (Within(), lambda: make_table(3, 4), "at least one class of 6 images"),
        (FixedVal(), lambda: make_table(split=lambda c: "train" if c < 3 else "test"), "too few to hold out"),
        (Within(val_share=0.45, test_share=0.45), lambda: make_table(3, 6), "leave no image of class .* 3 and 3 of"),
    ],
)
def test_bad_tables_are_refused(protocol, table, said):
    with pytest.raises(NearkinError, match=said):
        protocol.split(table())  # made here: one among the parameters would live on, and test_lock.py find it


def test_a_class_on_both_sides_is_refused():
    table = make_table()
    mixed = np.array(["train", "test"] * (len(table) // 2))
    table.columns["split"] = mixed
    for protocol in (Standard(), FixedVal()):
        with pytest.raises(NearkinError, match=r"20 classes .*are in train and in test.* keeps the given split"):
            protocol.split(table)


# -- a split whose classes are known ----------------------------------------------------------------------------


def closed(*sides, classes=3):
    """A table in which every class has these sides, one image each."""
    labels = np.repeat(np.arange(classes), len(sides))
    return Table(
        labels=labels,
        classes=tuple("abc"[:classes]),
        images=np.zeros((len(labels), 2, 2, 3), np.uint8),
        columns={"split": np.tile(sides, classes)},
    )


def test_within_keeps_a_given_split():
    table = closed("train", "train", "train", "val", "test", "test")
    for seed in (0, 1):
        split = Within(seed=seed).split(table)
        assert (table.split[split.train] == "train").all()
        assert (table.split[split.val] == "val").all()
        assert (table.split[split.test.images] == "test").all()
        assert len(split.train) + len(split.val) + len(split.test.images) == len(table)
        assert split.test.gallery is None
        assert "the given split, its test classes known from training" in split.describe(table)


def test_within_keeps_query_and_gallery():
    table = closed("train", "train", "val", "val", "query", "gallery")
    test = Within().split(table).test
    assert (table.split[test.query] == "query").all()
    assert (table.split[test.gallery] == "gallery").all()


def test_within_draws_the_validation_that_is_not_given():
    table = closed(*["train"] * 10, "test", "test")
    split, other = Within(seed=0).split(table), Within(seed=1).split(table)
    assert np.bincount(table.labels[split.val]).tolist() == [2, 2, 2]
    assert np.bincount(table.labels[split.train]).tolist() == [8, 8, 8]
    assert (table.split[np.concatenate([split.train, split.val])] == "train").all()
    assert (table.split[split.test.query] == "test").all()
    assert split.hash() != other.hash()
    assert (split.test.query == other.test.query).all()
    labels, sides = np.array([0, 0, 0, 0, 1, 1, 1, 0, 1]), np.array(["train"] * 7 + ["test"] * 2)
    few = Table(labels, ("a", "b"), images=np.zeros((9, 2, 2, 3), np.uint8), columns={"split": sides})
    assert few.labels[Within().split(few).val].tolist() == [0, 0]  # two images on each side, or the class trains


@pytest.mark.parametrize(
    ("protocol", "table", "said"),
    [
        (Within(), lambda: closed("train", "train", "train", "test"), r"no class has 4 training images.*val"),
        (Within(val_share=0.69), lambda: closed(*["train"] * 4, "test"), None),
        (Within(val_share=0.9, test_share=0.05), lambda: closed(*["train"] * 4, "test"), "leaves no image of class"),
        (Within(), lambda: closed("val", "val", "test"), "0 training"),
        (Within(), lambda: closed("train", "val", "gallery"), "0 test"),
        (Within(), lambda: closed("train", "val", "test", "trian"), "split 'trian' is unknown"),
    ],
)
def test_what_within_cannot_keep(protocol, table, said):
    if said is None:
        assert len(protocol.split(table()).train) == 3
        return
    with pytest.raises(NearkinError, match=said):
        protocol.split(table())


def test_within_draws_as_ever_where_no_class_is_shared():
    """Hashes of before splits were kept."""
    free, official = make_table(3, 10), make_table(6, 8, split=lambda c: "train" if c < 3 else "test")
    assert [Within(seed=s).split(t).hash() for s in (0, 1) for t in (free, official)] == [
        "3f19f953c076",
        "17ca1f2892a6",
        "c6f8bb480891",
        "820b33c3d790",
    ]
    assert "given" not in Within().split(official).describe(official)


def test_a_split_without_test_is_told():
    table = make_table(split=lambda c: "train" if c < 11 else "val")
    with pytest.raises(NearkinError, match=r"0 test images: the data have the splits train, val"):
        FixedVal().split(table)


def test_validation_classes_that_train_are_refused_with_advice():
    table = closed("train", "val", classes=2)
    table = Table(
        labels=np.concatenate([table.labels, [2, 2]]),
        classes=tuple("abc"),
        columns={"split": np.concatenate([table.split, ["test", "test"]])},
        images=np.zeros((6, 2, 2, 3), np.uint8),
    )
    with pytest.raises(NearkinError, match=r"2 classes are in train and in val.*protocol=standard"):
        FixedVal().split(table)


def test_few_classes_are_nested_and_tested_as_by_standard():
    table = make_table(split=lambda c: "train" if c < 11 else "test")
    drawn = {count: Few(classes=count, seed=2).split(table) for count in (2, 5, 11)}
    sides = {count: set(table.labels[parts.train]) for count, parts in drawn.items()}
    assert [len(side) for side in sides.values()] == [2, 5, 11]
    assert sides[2] < sides[5] < sides[11] == set(range(11))
    assert sides[2] != set(table.labels[Few(classes=2, seed=3).split(table).train])
    for parts in drawn.values():
        assert (parts.test.images == Standard().split(table).test.images).all()
        assert len(parts.val) == 0
    with pytest.raises(NearkinError, match=r"protocol.classes=12: at most 11, the training classes"):
        Few(classes=12).split(table)
    with pytest.raises(NearkinError, match=r"protocol.classes=1: must be at least 2"):
        Few(classes=1)

import json

import numpy as np
import pytest

from nearkin.data import CUB, Table, load_table, verify


@pytest.fixture
def root(tmp_path, picture):
    for i, name in enumerate(("a/0.jpg", "a/1.jpg", "b/2.jpg", "b/3.jpg")):
        picture(tmp_path / "pictures" / name, seed=i)
    return tmp_path / "pictures"


def report_on(root, official=None):
    return verify(load_table("folder", root), official)


def test_all_is_well(root):
    report = report_on(root)
    assert report.ok
    assert report.problems == report.warnings == []
    assert report.counts == {"all": (4, 2)}
    assert len(report.data_hash) == 16
    assert json.loads(json.dumps(report.to_dict()))["ok"] is True


def test_unreadable(root):
    (root / "a" / "text.jpg").write_text("this is text")
    whole = (root / "a" / "0.jpg").read_bytes()
    (root / "b" / "short.jpg").write_bytes(whole[: len(whole) // 2])
    report = report_on(root)
    assert not report.ok
    assert [path for path, _ in report.unreadable] == ["a/text.jpg", "b/short.jpg"]
    assert "not an image" in report.unreadable[0][1]
    assert len(report.problems) == 1
    assert report.problems[0].startswith("2 files unreadable: a/text.jpg (it is not an image")


def test_missing(root):
    table = load_table("folder", root)
    (root / "b" / "3.jpg").unlink()
    report = verify(table)
    assert not report.ok
    assert report.missing == ["b/3.jpg"]
    assert report.unreadable == []
    assert report.problems == ["1 file missing: b/3.jpg"]


def test_duplicates(root):
    data = (root / "a" / "0.jpg").read_bytes()
    (root / "a" / "copy.jpg").write_bytes(data)
    (root / "b" / "copy.jpg").write_bytes(data)
    report = report_on(root)
    assert report.duplicates == [["a/0.jpg", "a/copy.jpg", "b/copy.jpg"]]
    assert report.problems == [
        "1 group of files with equal content, 1 group across classes: a/0.jpg = a/copy.jpg = b/copy.jpg"
    ]


def test_duplicates_across_splits(tmp_path, picture):
    for name, seed in (("train/a/0.png", 0), ("train/a/1.png", 1), ("test/b/2.png", 2), ("test/b/3.png", 0)):
        picture(tmp_path / "p" / name, seed=seed)
    (problem,) = report_on(tmp_path / "p").problems
    assert "1 group across classes, 1 group across splits: test/b/3.png = train/a/0.png" in problem


def test_missing_files_are_no_duplicates_of_each_other(root):
    table = load_table("folder", root)
    for name in ("b/2.jpg", "b/3.jpg"):
        (root / name).unlink()
    assert verify(table).duplicates == []


def test_a_class_of_one_image(root, picture):
    picture(root / "c" / "only.png", seed=9)
    report = report_on(root)
    assert report.one_image_classes == ["c"]
    assert not report.ok
    assert report.problems == ["1 class of one image, which can never be retrieved: c"]


def test_in_official_data_these_are_warnings(root, picture):
    picture(root / "c" / "only.png", seed=9)
    (root / "a" / "copy.jpg").write_bytes((root / "a" / "0.jpg").read_bytes())
    report = report_on(root, {"all": (6, 3)})
    assert report.ok
    assert len(report.warnings) == 2


def test_official_counts(root):
    report = report_on(root, {"all": (5, 2), "test": (1, 1)})
    assert not report.ok
    assert report.problems == [
        "all: 4 images, officially 5",
        "test: 0 images, officially 1",
        "test: 0 classes, officially 1",
    ]


def test_long_lists_are_cut_in_words_only(root, picture):
    for i in range(8):
        picture(root / f"lone{i}" / "x.png", seed=20 + i)
    report = report_on(root)
    assert len(report.one_image_classes) == 8
    assert report.problems[0].endswith("lone3, lone4 and 3 more")


def test_arrays():
    images = np.zeros((3, 4, 4, 3), np.uint8)
    images[2] = 1
    report = verify(Table(np.array([0, 0, 1]), ("a", "b"), images=images))
    assert report.duplicates == [["image 0", "image 1"]]
    assert report.one_image_classes == ["b"]
    assert verify(load_table("glyphs", classes=4, per_class=3)).ok


@pytest.mark.cub
def test_the_real_cub(cub_root):
    report = verify(load_table("cub", cub_root), CUB.official)
    assert report.ok
    assert report.counts == CUB.official
    # a pair of pigeon guillemots is published twice: a reason for duplicates to be warnings here
    assert any("058.Pigeon_Guillemot" in path for group in report.duplicates for path in group)

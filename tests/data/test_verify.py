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
    assert report.duplicates == report.leaks == [["a/0.jpg", "a/copy.jpg", "b/copy.jpg"]]
    (problem,) = report.problems
    assert problem.startswith(
        "1 group of equal images in different classes: a/0.jpg = a/copy.jpg = b/copy.jpg; nearkin data dedupe"
    )
    assert report.warnings == []


def test_duplicates_within_a_class_are_a_warning(root):
    (root / "a" / "copy.jpg").write_bytes((root / "a" / "0.jpg").read_bytes())
    report = report_on(root)
    assert report.ok
    assert report.leaks == []
    assert report.duplicates == [["a/0.jpg", "a/copy.jpg"]]
    (warning,) = report.warnings
    assert warning.startswith("1 group of equal images: a/0.jpg = a/copy.jpg; nearkin data dedupe")
    assert "data.exclude=FILE" in warning


def test_duplicates_across_splits(tmp_path, picture):
    for name, seed in (("train/a/0.png", 0), ("train/a/1.png", 1), ("test/b/2.png", 2), ("test/b/3.png", 0)):
        picture(tmp_path / "p" / name, seed=seed)
    (problem,) = report_on(tmp_path / "p").problems
    assert problem.startswith(
        "1 group of equal images in different splits, 1 of them in different classes: "
        "test/b/3.png = train/a/0.png; nearkin data dedupe"
    )


def test_duplicates_within_a_split_are_a_warning(tmp_path, picture):
    names = ("train/a/0.png", "train/a/1.png", "train/b/2.png", "train/b/3.png", "test/c/4.png", "test/c/5.png")
    for name, seed in zip(names, (0, 0, 0, 1, 2, 2), strict=True):
        picture(tmp_path / "p" / name, seed=seed)
    report = report_on(tmp_path / "p")
    assert report.ok
    (warning,) = report.warnings
    assert warning.startswith("2 groups of equal images, 1 of them in different classes: test/c/4.png = test/c/5.png, ")


def test_duplicates_of_a_csv(tmp_path, picture):
    for i in range(4):
        picture(tmp_path / f"{i}.png", seed=i // 2)
    (tmp_path / "list.csv").write_text("path,label,split\n0.png,a,train\n1.png,a,test\n2.png,b,train\n3.png,b,train\n")
    report = verify(load_table("csv", tmp_path))
    assert report.leaks == [["0.png", "1.png"]]
    assert len(report.warnings) == 1
    assert any("in different splits: 0.png = 1.png" in problem for problem in report.problems)


def test_leaks_of_official_data_are_warnings(tmp_path, picture):
    for name, seed in (("train/a/0.png", 0), ("train/a/1.png", 1), ("test/b/2.png", 2), ("test/b/3.png", 0)):
        picture(tmp_path / "p" / name, seed=seed)
    report = report_on(tmp_path / "p", {"train": (2, 1), "test": (2, 1)})
    assert report.ok
    (warning,) = report.warnings
    assert "in different splits" in warning
    assert "dedupe" not in warning  # repaired data could not be compared with the published


# -- classes in several splits ----------------------------------------------------------------------------------


def splits(root, picture, *names):
    for seed, name in enumerate(names):
        picture(root / f"{name}/{seed}.png", seed=seed)
    return report_on(root)


def test_classes_shared_by_train_and_test(tmp_path, picture):
    names = ("train/a", "train/a", "train/b", "train/b", "valid/a", "valid/a", "test/a", "test/a", "test/c", "test/c")
    report = splits(tmp_path / "p", picture, *names)
    assert report.shared_classes == ["a"]
    assert not report.ok
    assert report.problems == [
        "1 class in train and in test: a; only protocol=within takes such data: it keeps the given split"
    ]
    assert report.warnings == []
    assert json.loads(json.dumps(report.to_dict()))["shared_classes"] == ["a"]


def test_classes_shared_by_train_and_val(tmp_path, picture):
    report = splits(tmp_path / "p", picture, *("train/a", "train/b", "valid/a", "valid/b", "test/c", "test/d") * 2)
    assert report.ok
    assert report.shared_classes == []
    assert report.warnings == [
        "2 classes in train and in val: a, b; protocol=fixed_val refuses them, protocol=standard trains on both"
    ]


def test_classes_shared_by_query_and_gallery_are_meant(tmp_path, picture):
    report = splits(tmp_path / "p", picture, "train/a", "train/a", "query/b", "gallery/b")
    assert report.problems == report.warnings == []


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


@pytest.mark.slow
@pytest.mark.cub
def test_the_real_cub(cub_root):
    report = verify(load_table("cub", cub_root), CUB.official)
    assert report.ok
    assert report.counts == CUB.official
    # a pair of pigeon guillemots is published twice: a reason for duplicates to be warnings here
    assert any("058.Pigeon_Guillemot" in path for group in report.duplicates for path in group)

"""ImageNet's official folders, on a tiny copy; and `within` with its official images."""

import shutil

import numpy as np
import pytest

import nearkin
from nearkin.data import Table, load_table, verify
from nearkin.data.imagenet import ImageNet
from nearkin.errors import NearkinError
from nearkin.protocols import FixedVal, Standard, Within

CLASSES = ("n01440764", "n01443537", "n02012849")


@pytest.fixture
def root(tmp_path, picture):
    """Three classes with 7, 8 and 9 training images and two validation images each, in class folders."""
    root = tmp_path / "imagenet"
    for c, name in enumerate(CLASSES):
        for i in range(7 + c):
            picture(root / "train" / name / f"{name}_{i}.JPEG", seed=20 * c + i)
        for i in range(2):
            picture(root / "val" / name / f"ILSVRC2012_val_{3 * i + c:08d}.JPEG", seed=100 + 20 * c + i)
    return root


def flat(root):
    """Its validation images in one folder; which class each is of."""
    found = {}
    for path in sorted((root / "val").glob("*/*.JPEG")):
        found[path.stem] = path.parent.name
        path.rename(root / "val" / path.name)
    for name in CLASSES:
        (root / "val" / name).rmdir()
    return found


def listed(found):
    boxes = [f"{image},{name} 85 1 499 272 {name} 1 2 3 4 " for image, name in sorted(found.items())]
    return "\n".join(["ImageId,PredictionString", *boxes]) + "\n"


def told(table):
    return [
        (path.relative_to(table.root).as_posix(), table.classes[label], split)
        for path, label, split in zip(table.paths, table.labels, table.split, strict=True)
    ]


def test_class_folders(root):
    table = load_table("imagenet", root)
    assert table.classes == CLASSES
    assert (table.split == "train").sum() == 24
    assert (table.split == "test").sum() == 6
    assert told(table)[0] == ("train/n01440764/n01440764_0.JPEG", "n01440764", "train")
    assert told(table)[-1] == ("val/n02012849/ILSVRC2012_val_00000005.JPEG", "n02012849", "test")
    for path, name, split in told(table):
        assert path.split("/")[1] == name
        assert path.startswith("train/" if split == "train" else "val/")
    assert np.bincount(table.labels).tolist() == [9, 10, 11]


def test_kaggles_copy(root, tmp_path):
    expected = {(path.split("/")[-1], name, split) for path, name, split in told(load_table("imagenet", root))}
    found = flat(root)
    (tmp_path / "kaggle" / "ILSVRC" / "Data").mkdir(parents=True)
    root.rename(tmp_path / "kaggle" / "ILSVRC" / "Data" / "CLS-LOC")
    (tmp_path / "kaggle" / "LOC_val_solution.csv").write_text(listed(found))
    for given in (tmp_path / "kaggle", tmp_path / "kaggle" / "ILSVRC" / "Data" / "CLS-LOC"):
        table = load_table("imagenet", given)
        assert {(path.split("/")[-1], name, split) for path, name, split in told(table)} == expected
        assert all(path.is_file() for path in table.paths)


def test_the_closed_set_trains_on_train_and_tests_on_val(root):
    table = load_table("imagenet", root)
    split = Within(val_share=0.3).split(table)
    assert split.test.gallery is None
    assert split.test.query.tolist() == list(range(24, 30))  # all official test images
    assert sorted([*split.train, *split.val]) == list(range(24))
    assert set(table.labels[split.val]) == {0, 1, 2}  # drawn from training images
    assert len(split.val) == 2 + 2 + 3
    assert "the given split, its test classes known from training" in split.describe(table)
    for protocol in (Standard(), FixedVal()):
        with pytest.raises(NearkinError, match="protocol=within keeps the given split"):
            protocol.split(table)


def test_it_trains_and_is_tested_the_same_decoded_and_from_files(root, tmp_path):
    words = {
        "dataset": "imagenet",
        "root": str(root),
        "protocol": "within",
        "epochs": 1,
        "dim": 4,
        "train.batch": 6,
        "sampler.per_class": 2,
        "data.size": 16,
        "data.keep": 20,
    }
    runs = [nearkin.train({**words, "data.cache": form}, runs=tmp_path / form) for form in ("decoded", "none")]
    assert runs[0].hash == runs[1].hash
    assert runs[0].metrics() == runs[1].metrics()
    decoded, files = (run.load("model.pt")["model"] for run in runs)
    assert all((decoded[key] == files[key]).all() for key in decoded)
    table = load_table("imagenet", root)
    stored = np.load(runs[1].path / "embeddings.npz")["embeddings"]
    assert stored.shape == (6, 4)
    unit = stored / np.linalg.norm(stored, axis=1, keepdims=True)
    embedded = nearkin.load(runs[1]).embed([table.paths[row] for row in range(24, 30)])
    np.testing.assert_allclose(embedded, unit, atol=1e-5)  # of images kept at the same size


def test_verify_knows_that_its_test_classes_are_known(root):
    report = verify(load_table("imagenet", root), {"train": (24, 3), "test": (6, 3)})
    assert report.ok, report.problems
    assert any("in train and in test" in line for line in report.warnings)
    short = verify(load_table("imagenet", root), ImageNet.official)
    assert "train: 24 images, officially 1,281,167" in short.problems


def spoil_empty(root):
    shutil.rmtree(root / "train" / CLASSES[1])
    (root / "train" / CLASSES[1]).mkdir()


def spoil_strange_class(root):
    (root / "val" / CLASSES[0]).rename(root / "val" / "n09999999")


def spoil_class_without_test(root):
    shutil.rmtree(root / "val" / CLASSES[2])


def spoil_no_classes(root):
    shutil.rmtree(root / "train")
    (root / "train").mkdir()


def spoil_no_val_images(root):
    shutil.rmtree(root / "val")
    (root / "val").mkdir()


def spoil_list(root):
    flat(root)
    (root / "LOC_val_solution.csv").write_text("ImageId,PredictionString\nILSVRC2012_val_00000001,\n")


def spoil_columns(root):
    flat(root)
    (root / "LOC_val_solution.csv").write_text("image,class\na,b\n")


def spoil_empty_list(root):
    flat(root)
    (root / "LOC_val_solution.csv").write_text("ImageId,PredictionString\n")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (spoil_empty, r"train: 1 class folder holds no image: n01443537"),
        (lambda root: shutil.rmtree(root / "val"), r"not the official layout of imagenet: val/ is missing"),
        (lambda root: shutil.rmtree(root / "train"), r"not the official layout of imagenet: train/ is missing"),
        (spoil_no_classes, r"train holds no class folder, such as n01440764"),
        (spoil_no_val_images, r"val holds no images; it should hold the 50,000 validation images"),
        (spoil_strange_class, r"1 class stands in val and not in train: n09999999"),
        (spoil_class_without_test, r"1 class stands in train and not in val: n02012849"),
        (flat, r"no class folders, and LOC_val_solution\.csv is not beside them: sort them.*is not read"),
        (spoil_list, r"LOC_val_solution\.csv, line 2: ImageId and PredictionString are needed"),
        (spoil_columns, r"LOC_val_solution\.csv, line 2: ImageId and PredictionString are needed"),
        (spoil_empty_list, r"lists no image"),
    ],
)
def test_what_is_wrong_is_said(root, spoil, message):
    spoil(root)
    with pytest.raises(NearkinError, match=message) as error:
        load_table("imagenet", root)
    assert "\n" not in str(error.value)


def test_the_folder_above_is_asked_about(root):
    with pytest.raises(NearkinError, match=rf"did you mean root={root}\?"):
        load_table("imagenet", root.parent)
    with pytest.raises(NearkinError, match=r"needs root=DIR"):
        load_table("imagenet")


def rows_by_loop(labels, seed, val_share, given):
    """What `within` draws, by looking for every class in all rows."""
    rng = np.random.default_rng([seed, 2])
    val = []
    for label in sorted(set(labels[given].tolist())):
        rows = rng.permutation(np.array([row for row in given if labels[row] == label]))
        val += rows[: max(2, round(val_share * len(rows))) if len(rows) >= 4 else 0].tolist()
    return sorted(val)


@pytest.mark.parametrize("seed", [0, 5])
def test_within_draws_the_rows_that_a_slow_loop_draws(seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 12, 200) * 3
    split = np.where(rng.random(200) < 0.7, "train", "test")
    table = Table(
        labels,
        tuple("abcdefghijklmnopqrstuvwxyzABCDEFGHIJ"),
        images=np.zeros((200, 2, 2, 3), np.uint8),
        columns={"split": split},
    )
    found = Within(seed=seed).split(table)
    assert found.val.tolist() == rows_by_loop(labels, seed, 0.2, np.flatnonzero(split == "train"))
    assert sorted([*found.train, *found.val]) == np.flatnonzero(split == "train").tolist()

"""Every adapter on a tiny copy of its official layout, and on what people hand it instead."""

import numpy as np
import pytest
from scipy.io import savemat

from nearkin.data import load_table
from nearkin.errors import NearkinError
from nearkin.registry import DATASETS


def rows_of(table):
    split = table.split if table.split is not None else [None] * len(table)
    return [
        (path.relative_to(table.root).as_posix(), table.classes[label], s)
        for path, label, s in zip(table.paths, table.labels, split, strict=True)
    ]


# -- CUB --------------------------------------------------------------------------------------------------------


@pytest.fixture
def cub(tmp_path):
    root = tmp_path / "cub"
    (root / "images").mkdir(parents=True)
    (root / "images.txt").write_text("1 001.Albatross/a.jpg\n2 100.Pelican/b.jpg\n3 101.Gull/c.jpg\n4 200.Wren/d.jpg\n")
    (root / "image_class_labels.txt").write_text("1 1\n2 100\n3 101\n4 200\n")
    return root


def test_cub(cub):
    table = load_table("cub", cub)
    assert rows_of(table) == [
        ("images/001.Albatross/a.jpg", "001.Albatross", "train"),
        ("images/100.Pelican/b.jpg", "100.Pelican", "train"),
        ("images/101.Gull/c.jpg", "101.Gull", "test"),
        ("images/200.Wren/d.jpg", "200.Wren", "test"),
    ]
    assert table.labels.tolist() == [0, 99, 100, 199]
    assert len(table.classes) == 200


def test_cub_is_found_one_folder_down(cub):
    cub.rename(cub.parent / "CUB_200_2011")
    assert len(load_table("cub", cub.parent)) == 4


@pytest.mark.parametrize("missing", ["images.txt", "image_class_labels.txt"])
def test_cub_names_the_missing_file(cub, missing):
    (cub / missing).unlink()
    with pytest.raises(NearkinError, match=f"{missing} is missing"):
        load_table("cub", cub)


@pytest.mark.parametrize(
    ("labels", "message"),
    [("1 1\n2 100\n3 101\n", "no class for image 4"), ("1 1\n2 100\n3 101\n4 201\n", "'201'"), ("1 1\n2\n", "line 2")],
)
def test_cub_with_bad_labels(cub, labels, message):
    (cub / "image_class_labels.txt").write_text(labels)
    with pytest.raises(NearkinError, match=message):
        load_table("cub", cub)


@pytest.mark.cub
def test_the_real_cub(cub_root):
    table = load_table("cub", cub_root)
    assert (table.split == "train").sum() == 5864
    assert (table.split == "test").sum() == 5924
    assert set(table.labels[table.split == "train"]) == set(range(100))
    assert all(path.is_file() for path in table.paths)


# -- Cars196 ----------------------------------------------------------------------------------------------------

NAMES = np.array([f"Car {c}" for c in range(1, 197)], dtype=object)


def structs(name_field, rows):
    """The 1 x N struct array that MATLAB writes."""
    kind = [(name_field, object), ("bbox_x1", object), ("class", object)]
    array = np.empty((1, len(rows)), dtype=kind)
    for i, (name, c) in enumerate(rows):
        array[0, i] = (name, 1, c)
    return array


def test_cars196_in_one_folder(tmp_path):
    rows = [("car_ims/1.jpg", 1), ("car_ims/2.jpg", 98), ("car_ims/3.jpg", 99), ("car_ims/4.jpg", 196)]
    content = {"annotations": structs("relative_im_path", rows), "class_names": NAMES}
    savemat(tmp_path / "cars_annos.mat", content)
    assert rows_of(load_table("cars196", tmp_path)) == [
        ("car_ims/1.jpg", "Car 1", "train"),
        ("car_ims/2.jpg", "Car 98", "train"),
        ("car_ims/3.jpg", "Car 99", "test"),
        ("car_ims/4.jpg", "Car 196", "test"),
    ]


@pytest.mark.parametrize("place", ["devkit", "."])
def test_cars196_in_two_folders(tmp_path, place):
    for folder in ("devkit", "cars_train", "cars_test"):
        (tmp_path / folder).mkdir()
    train = structs("fname", [("1.jpg", 1), ("2.jpg", 99)])
    test = structs("fname", [("1.jpg", 98), ("2.jpg", 196)])
    savemat(tmp_path / "devkit" / "cars_train_annos.mat", {"annotations": train})
    savemat(tmp_path / place / "cars_test_annos_withlabels.mat", {"annotations": test})
    savemat(tmp_path / "devkit" / "cars_meta.mat", {"class_names": NAMES})
    # their train and test divide images, ours divides classes
    assert rows_of(load_table("cars196", tmp_path)) == [
        ("cars_train/1.jpg", "Car 1", "train"),
        ("cars_train/2.jpg", "Car 99", "test"),
        ("cars_test/1.jpg", "Car 98", "train"),
        ("cars_test/2.jpg", "Car 196", "test"),
    ]
    (tmp_path / place / "cars_test_annos_withlabels.mat").unlink()
    with pytest.raises(NearkinError, match=r"cars_test_annos_withlabels\.mat is missing"):
        load_table("cars196", tmp_path)


def test_cars196_with_bad_files(tmp_path):
    with pytest.raises(NearkinError, match="cars_annos"):
        load_table("cars196", tmp_path)
    (tmp_path / "cars_annos.mat").write_text("not MATLAB")
    with pytest.raises(NearkinError, match="cannot be read as a MATLAB file"):
        load_table("cars196", tmp_path)
    savemat(tmp_path / "cars_annos.mat", {"other": 1})
    with pytest.raises(NearkinError, match="no annotations"):
        load_table("cars196", tmp_path)


# -- SOP and In-Shop --------------------------------------------------------------------------------------------


def test_sop(tmp_path):
    header = "image_id class_id super_class_id path\n"
    (tmp_path / "Ebay_train.txt").write_text(header + "1 1 1 bicycle_final/a.JPG\n2 1 1 bicycle_final/b.JPG\n")
    (tmp_path / "Ebay_test.txt").write_text(header + "3 11319 2 cabinet_final/c.JPG\n")
    table = load_table("sop", tmp_path)
    assert rows_of(table) == [
        ("bicycle_final/a.JPG", "1", "train"),
        ("bicycle_final/b.JPG", "1", "train"),
        ("cabinet_final/c.JPG", "11319", "test"),
    ]
    assert table.columns["super_class"].tolist() == ["bicycle", "bicycle", "cabinet"]
    (tmp_path / "Ebay_test.txt").unlink()
    with pytest.raises(NearkinError, match=r"Ebay_test\.txt is missing"):
        load_table("sop", tmp_path)


@pytest.mark.parametrize(("lists", "images"), [(".", "."), ("Eval", "Img")])
def test_inshop(tmp_path, lists, images):
    (tmp_path / images / "img").mkdir(parents=True)
    (tmp_path / lists).mkdir(exist_ok=True)
    (tmp_path / lists / "list_eval_partition.txt").write_text(
        "3\nimage_name item_id evaluation_status\n"
        "img/W/1.jpg      id_2   train\nimg/W/2.jpg id_1 query\nimg/M/3.jpg id_1 gallery\n"
    )
    prefix = "" if images == "." else f"{images}/"
    assert rows_of(load_table("inshop", tmp_path)) == [
        (f"{prefix}img/W/1.jpg", "id_2", "train"),
        (f"{prefix}img/W/2.jpg", "id_1", "query"),
        (f"{prefix}img/M/3.jpg", "id_1", "gallery"),
    ]


def test_inshop_with_an_unknown_status(tmp_path):
    (tmp_path / "img").mkdir()
    (tmp_path / "list_eval_partition.txt").write_text("1\nheader\nimg/1.jpg id_1 trian\n")
    with pytest.raises(NearkinError, match=r"'trian'.*train, query, gallery"):
        load_table("inshop", tmp_path)


# -- folder -----------------------------------------------------------------------------------------------------


def test_folder(tmp_path):
    for path in ("b/2.PNG", "b/10.jpg", "a/deep/x.webp", "a/notes.txt", "a/._x.jpg", ".git/y.jpg", "empty/.keep"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    table = load_table("folder", tmp_path)
    assert rows_of(table) == [("a/deep/x.webp", "a", None), ("b/10.jpg", "b", None), ("b/2.PNG", "b", None)]
    assert table.classes == ("a", "b")


def test_folder_with_splits(tmp_path):
    for path in ("train/cat/1.jpg", "train/dog/2.jpg", "test/cat/3.jpg"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    assert rows_of(load_table("folder", tmp_path)) == [
        ("test/cat/3.jpg", "cat", "test"),
        ("train/cat/1.jpg", "cat", "train"),
        ("train/dog/2.jpg", "dog", "train"),
    ]


def laid(root, *paths):
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).touch()
    return root


@pytest.mark.parametrize(
    ("train", "val", "test"),
    [
        ("train", "valid", "test"),
        ("Training", "Validation", "Testing"),
        ("TRAIN", "dev", "Test"),
        ("train", "VAL", "test"),
    ],
)
def test_splits_have_several_names(tmp_path, cache_folder, train, val, test):
    root = laid(tmp_path / "flowers", f"{train}/rose/1.jpg", f"{val}/rose/deep/2.jpg", f"{test}/tulip/3.jpg")
    (root / "annotations").mkdir()  # a folder without images is neither split nor class
    (root / "annotations" / "list.txt").touch()
    table = load_table("folder", root)
    assert table.classes == ("rose", "tulip")
    found = {path: (name, split) for path, name, split in rows_of(table)}
    assert found == {
        f"{train}/rose/1.jpg": ("rose", "train"),
        f"{val}/rose/deep/2.jpg": ("rose", "val"),
        f"{test}/tulip/3.jpg": ("tulip", "test"),
    }


def test_two_folders_for_one_split_are_refused(tmp_path, cache_folder):
    root = laid(tmp_path / "x", "train/a/1.jpg", "val/a/2.jpg", "valid/a/3.jpg")
    with pytest.raises(NearkinError, match=r"x: the folders val and valid both mean val; keep one"):
        load_table("folder", root)


@pytest.mark.parametrize("paths", [("train/1.jpg", "test/2.jpg"), ("train/a/1.jpg", "test/2.jpg"), ("Valid/1.jpg",)])
def test_images_directly_in_split_folders_are_refused(tmp_path, paths):
    root = laid(tmp_path / "x", *paths)
    with pytest.raises(NearkinError, match=r"x: .*lie directly in .*one folder per class is needed inside") as error:
        load_table("folder", root)
    assert ("train" in str(error.value)) == ("train/1.jpg" in paths)


@pytest.mark.parametrize(
    "paths",
    [
        ("train/1.jpg", "test/2.jpg", "rose/3.jpg"),
        ("train/rose/1.jpg", "test/rose/2.jpg", "rose/3.jpg"),
        ("train/rose/1.jpg", "tulip/3.jpg", "rose/3.jpg"),
    ],
)
def test_splits_beside_classes_are_refused(tmp_path, paths):
    root = laid(tmp_path / "x", *paths)
    with pytest.raises(NearkinError, match=r"train looks? like") as error:
        load_table("folder", root)
    assert "rose" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_train_among_vehicles_is_a_class(tmp_path):
    table = load_table("folder", laid(tmp_path / "x", "bus/1.jpg", "car/2.jpg", "train/3.jpg"))
    assert table.classes == ("bus", "car", "train")
    assert table.split is None


@pytest.mark.parametrize(
    "paths", [("inner/rose/1.jpg", "inner/tulip/2.jpg"), ("inner/train/rose/1.jpg", "inner/train/tulip/2.jpg")]
)
def test_a_root_one_level_too_high(tmp_path, paths):
    root = laid(tmp_path / "x", *paths, "papers/readme.txt")
    with pytest.raises(NearkinError, match=rf"did you mean root={root}/inner\?"):
        load_table("folder", root)
    assert len(load_table("folder", root / "inner")) == 2


def test_one_class_with_one_folder_in_it_is_a_class(tmp_path):
    assert load_table("folder", laid(tmp_path / "x", "cat/2021/1.jpg", "cat/2.jpg")).classes == ("cat",)


def test_folder_without_images(tmp_path, cache_folder):
    (tmp_path / "x").mkdir()
    with pytest.raises(NearkinError, match="holds no images"):
        load_table("folder", tmp_path / "x")
    (tmp_path / "x" / "1.jpg").touch()
    with pytest.raises(NearkinError, match="its 1 images lie in no class folder"):
        load_table("folder", tmp_path / "x")
    with pytest.raises(NearkinError, match="is a file"):
        load_table("folder", tmp_path / "x" / "1.jpg")


# -- csv --------------------------------------------------------------------------------------------------------


def test_csv(tmp_path):
    text = "\ufefflabel,path,split,age,colour\ndog, a/1.jpg,train,3,red\n\ncat,/x/2.jpg,test,4.5,blue\n"
    (tmp_path / "list.csv").write_text(text, encoding="utf-8")
    for root in (tmp_path, tmp_path / "list.csv"):
        table = load_table("csv", root)
        assert [str(path) for path in table.paths] == [str(tmp_path / "a/1.jpg"), "/x/2.jpg"]
        assert [table.classes[label] for label in table.labels] == ["dog", "cat"]
        assert table.split.tolist() == ["train", "test"]
        assert table.columns["age"].tolist() == [3.0, 4.5]
        assert table.columns["colour"].tolist() == ["red", "blue"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("path,class\na.jpg,1\n", r"no column 'label' \(columns, separated by commas: path, class\)"),
        ("", "no column 'path'"),
        ("path,label\n", "lists no image"),
        ("path,label\na.jpg\n", "row 1: 1 fields"),
        ("path,label\na.jpg,x\n,y\n", "row 2: an empty path"),
        ("path,label\na.jpg,\n", "row 1: an empty label"),
        ("path,label,split\na.jpg,1,trian\n", "split 'trian'"),
        ("path,label,path\na.jpg,1,b.jpg\n", "two columns of the same name"),
    ],
)
def test_csv_that_is_wrong(tmp_path, text, message):
    (tmp_path / "list.csv").write_text(text)
    with pytest.raises(NearkinError, match=message):
        load_table("csv", tmp_path)


def test_splits_of_a_csv_have_several_names_too(tmp_path):
    (tmp_path / "list.csv").write_text("path,label,split\na,x,Training\nb,x,valid\nc,y,TEST\n")
    assert load_table("csv", tmp_path).split.tolist() == ["train", "val", "test"]


def test_csv_must_be_one(tmp_path):
    with pytest.raises(NearkinError, match=r"holds 0 \.csv files"):
        load_table("csv", tmp_path)
    (tmp_path / "list.csv").write_bytes(b"path,label\n\xff\xfe,1\n")
    with pytest.raises(NearkinError, match="cannot be read as CSV"):
        load_table("csv", tmp_path)


# -- all of them ------------------------------------------------------------------------------------------------

ROOTED = [name for name in DATASETS.names() if name != "glyphs"]


@pytest.mark.parametrize("name", ROOTED)
def test_a_root_is_needed(name, tmp_path):
    with pytest.raises(NearkinError, match=f"dataset={name} needs root="):
        load_table(name)
    with pytest.raises(NearkinError, match="does not exist"):
        load_table(name, tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(NearkinError) as error:
        load_table(name, tmp_path / "empty")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "marker"),
    [
        ("cub", "images.txt"),
        ("cars196", "cars_annos.mat"),
        ("cars196", "devkit/cars_train_annos.mat"),
        ("sop", "Ebay_train.txt"),
        ("inshop", "Eval/list_eval_partition.txt"),
        ("inshop", "list_eval_partition.txt"),
    ],
)
def test_an_official_root_one_level_off(tmp_path, name, marker):
    for file in (f"x/there/{marker}", "x/other/notes.txt"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    (tmp_path / "x" / "there" / "pictures").mkdir()
    told = rf"is not the official layout of {name}: .*; did you mean root={tmp_path}/x/there\?"
    for wrong in ("x", "x/there/pictures"):
        with pytest.raises(NearkinError, match=told):
            load_table(name, tmp_path / wrong)


def test_unknown_names_and_parameters():
    with pytest.raises(NearkinError, match="did you mean cub"):
        load_table("cubb")
    with pytest.raises(NearkinError, match=r"'pre_class'.*did you mean per_class"):
        load_table("glyphs", pre_class=3)


def test_a_data_set_from_outside(tmp_path, monkeypatch):
    monkeypatch.setattr(DATASETS, "_registered", dict(DATASETS._classes))

    @DATASETS.register("mine")
    class Mine:
        def __init__(self, root, *, times: int = 1):
            self.times = times

        def load(self):
            from nearkin.data import Table

            return Table(np.arange(self.times), tuple("abc"), images=np.zeros((self.times, 4, 4, 3), np.uint8))

    assert len(load_table("mine", times=3)) == 3

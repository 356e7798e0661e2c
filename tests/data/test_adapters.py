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


def test_classes_may_be_named_like_splits(tmp_path):
    for path in ("train/1.jpg", "test/2.jpg"):
        (tmp_path / path).parent.mkdir()
        (tmp_path / path).touch()
    table = load_table("folder", tmp_path)
    assert table.split is None
    assert table.classes == ("test", "train")


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
        ("path,class\na.jpg,1\n", r"no column 'label' \(columns: path, class\)"),
        ("", "no column 'path'"),
        ("path,label\n", "lists no image"),
        ("path,label\na.jpg\n", "row 1: 1 fields"),
        ("path,label\na.jpg,x\n,y\n", "row 2: an empty path"),
        ("path,label\na.jpg,\n", "row 1: an empty label"),
        ("path,label,split\na.jpg,1,trian\n", "split 'trian'"),
        ("path,label,path\na.jpg,1,b.jpg\n", "two columns of one name"),
    ],
)
def test_csv_that_is_wrong(tmp_path, text, message):
    (tmp_path / "list.csv").write_text(text)
    with pytest.raises(NearkinError, match=message):
        load_table("csv", tmp_path)


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


def test_unknown_names_and_parameters():
    with pytest.raises(NearkinError, match="did you mean cub"):
        load_table("cubb")
    with pytest.raises(NearkinError, match=r"'pre_class'.*did you mean per_class"):
        load_table("glyphs", pre_class=3)


def test_a_data_set_from_outside(tmp_path, monkeypatch):
    monkeypatch.setattr(DATASETS, "_classes", dict(DATASETS._classes))

    @DATASETS.register("mine")
    class Mine:
        def __init__(self, root, *, times: int = 1):
            self.times = times

        def load(self):
            from nearkin.data import Table

            return Table(np.arange(self.times), tuple("abc"), images=np.zeros((self.times, 4, 4, 3), np.uint8))

    assert len(load_table("mine", times=3)) == 3

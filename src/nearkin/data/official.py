"""The four public benchmarks, read from their official layouts. Nothing is ever downloaded.

`official` of each class holds the published counts, split -> (images, classes), for `verify`.
"""

from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from nearkin.data.layout import home, misplaced, needed, rooted, rows, whole_number
from nearkin.data.table import Table
from nearkin.errors import NearkinError
from nearkin.registry import DATASETS

Counts = dict[str, tuple[int, int]]


@DATASETS.register("cub")
class CUB:
    """Caltech-UCSD Birds 200-2011 (Wah et al. 2011): 11,788 photographs of 200 bird species.

    Classes 1-100 train, 101-200 test. The train_test_split.txt that comes with the data is not used: it divides the
    images within each class. Layout:

        images.txt                  lines of: image number, path below images/
        image_class_labels.txt      lines of: image number, class number
        images/

    Parameters:
        root: the folder that holds images.txt, or the folder above, where that one is named CUB_200_2011

    Example:
        table = nearkin.data.load_table("cub", "CUB_200_2011")
        (table.split == "train").sum()                          # 5864
    """

    official: ClassVar[Counts] = {"train": (5864, 100), "test": (5924, 100)}

    def __init__(self, root: Path | None):
        self.root = root

    def load(self) -> Table:
        """The table in the order of images.txt; a NearkinError when a file is missing or an image has no class."""
        root = home("cub", self.root, "images.txt", "CUB_200_2011")
        labels_file = needed("cub", root / "image_class_labels.txt")
        images = needed("cub", root / "images")
        class_of = {number: whole_number(c, 1, 200, labels_file) for number, c in rows(labels_file, 2)}
        listed = rows(root / "images.txt", 2)
        for number, path in listed:
            if number not in class_of:
                raise NearkinError(f"{labels_file} has no class for image {number} ({path})")
        classes = np.array([class_of[number] for number, _ in listed])  # 1-200
        names = {c: Path(path).parts[0] for c, (_, path) in zip(classes.tolist(), listed, strict=True)}
        return Table(
            labels=classes - 1,
            classes=tuple(names.get(c, f"{c:03d}") for c in range(1, 201)),
            paths=tuple(images / path for _, path in listed),
            root=root,
            columns={"split": np.where(classes <= 100, "train", "test")},
            name="cub",
        )


@DATASETS.register("cars196")
class Cars196:
    """Stanford Cars (Krause et al. 2013): 16,185 photographs of 196 models of cars.

    Classes 1-98 train, 99-196 test; the split that comes with the data is not used. Two layouts are in circulation:

        cars_annos.mat, car_ims/
        devkit/cars_train_annos.mat, cars_train/, cars_test/, and cars_test_annos_withlabels.mat in devkit/ or the root

    Class names come from cars_annos.mat or devkit/cars_meta.mat; without them a class is named by its number.

    Parameters:
        root: the folder that holds cars_annos.mat or devkit/

    Example:
        table = nearkin.data.load_table("cars196", "cars196")
        (table.split == "train").sum()                          # 8054
    """

    official: ClassVar[Counts] = {"train": (8054, 98), "test": (8131, 98)}

    def __init__(self, root: Path | None):
        self.root = root

    def load(self) -> Table:
        """The table in the order of the annotations; a NearkinError when a file is missing or is not what it should
        be."""
        root = rooted("cars196", self.root)
        if (root / "cars_annos.mat").is_file():
            images, names = _annotations(root / "cars_annos.mat", root, "relative_im_path")
        elif (root / "devkit").is_dir():
            labelled = "cars_test_annos_withlabels.mat"
            beside = root / labelled if (root / labelled).is_file() else needed("cars196", root / "devkit" / labelled)
            train = needed("cars196", root / "devkit" / "cars_train_annos.mat")
            images, names = _annotations(train, needed("cars196", root / "cars_train"), "fname")
            images += _annotations(beside, needed("cars196", root / "cars_test"), "fname")[0]
            meta = root / "devkit" / "cars_meta.mat"
            names = _class_names(_mat(meta), meta) if meta.is_file() else names
        else:
            missing = "cars_annos.mat (beside car_ims/) is missing, and so is devkit/ (beside cars_train/, cars_test/)"
            raise misplaced("cars196", root, missing, "cars_annos.mat", "devkit/cars_train_annos.mat")
        classes = np.array([c for _, c in images])  # 1-196
        return Table(
            labels=classes - 1,
            classes=tuple(names) if len(names) == 196 else tuple(f"{c:03d}" for c in range(1, 197)),
            paths=tuple(path for path, _ in images),
            root=root,
            columns={"split": np.where(classes <= 98, "train", "test")},
            name="cars196",
        )


@DATASETS.register("sop")
class SOP:
    """Stanford Online Products (Song et al. 2016): 120,053 photographs of 22,634 products, with the official split.

    Layout: Ebay_train.txt and Ebay_test.txt, each with a header and lines of image_id, class_id, super_class_id, path;
    beside them the folders of the images. The kind of product (bicycle, cabinet, ...), which is the folder in the path,
    is the column `super_class`.

    Parameters:
        root: the folder that holds Ebay_train.txt, or the one above, where it is named Stanford_Online_Products

    Example:
        table = nearkin.data.load_table("sop", "Stanford_Online_Products")
        table.columns["super_class"]                            # (120053,)
    """

    official: ClassVar[Counts] = {"train": (59551, 11318), "test": (60502, 11316)}
    ks: ClassVar[tuple[int, ...]] = (1, 10, 100, 1000)  # customary k of Recall@k (Song et al. 2016)

    def __init__(self, root: Path | None):
        self.root = root

    def load(self) -> Table:
        """The table, training images first, each part in the order of its list; classes in the order in which they
        appear. A NearkinError when a list is missing or malformed."""
        root = home("sop", self.root, "Ebay_train.txt", "Stanford_Online_Products")
        train = rows(root / "Ebay_train.txt", 4, skip=1)
        test = rows(needed("sop", root / "Ebay_test.txt"), 4, skip=1)
        listed = train + test
        classes = list(dict.fromkeys(c for _, c, _, _ in listed))  # in official order
        number = {c: i for i, c in enumerate(classes)}
        return Table(
            labels=np.array([number[c] for _, c, _, _ in listed]),
            classes=tuple(classes),
            paths=tuple(root / path for *_, path in listed),
            root=root,
            columns={
                "split": np.repeat(["train", "test"], [len(train), len(test)]),
                "super_class": np.array([path.split("/")[0].removesuffix("_final") for *_, path in listed]),
            },
            name="sop",
        )


@DATASETS.register("inshop")
class InShop:
    """DeepFashion In-Shop Clothes Retrieval (Liu et al. 2016): 52,712 photographs of 7,982 items of clothing, with the
    official split into train, query and gallery.

    Layout: list_eval_partition.txt in the root or in Eval/, with a count, a header and lines of image, item, status;
    the images in img/, in the root or in Img/. An item is a class.

    Parameters:
        root: the folder that holds list_eval_partition.txt or Eval/, and img/ or Img/

    Example:
        table = nearkin.data.load_table("inshop", "In-shop")
        (table.split == "query").sum()                          # 14218
    """

    official: ClassVar[Counts] = {"train": (25882, 3997), "query": (14218, 3985), "gallery": (12612, 3985)}
    ks: ClassVar[tuple[int, ...]] = (1, 10, 20, 30)  # customary k of Recall@k (Liu et al. 2016)

    def __init__(self, root: Path | None):
        self.root = root

    def load(self) -> Table:
        """The table in the order of the list; a NearkinError when a file is missing or a status is unknown."""
        root = rooted("inshop", self.root)
        file = home("inshop", self.root, "list_eval_partition.txt", "Eval") / "list_eval_partition.txt"
        images = root if (root / "img").is_dir() else needed("inshop", root / "Img")
        listed = rows(file, 3, skip=2)
        for path, _, status in listed:
            if status not in self.official:
                raise NearkinError(f"{file}: status {status!r} of {path}; choices: {', '.join(self.official)}")
        classes = sorted({item for _, item, _ in listed})
        number = {item: i for i, item in enumerate(classes)}
        return Table(
            labels=np.array([number[item] for _, item, _ in listed]),
            classes=tuple(classes),
            paths=tuple(images / path for path, _, _ in listed),
            root=root,
            columns={"split": np.array([status for _, _, status in listed])},
            name="inshop",
        )


def _annotations(file: Path, folder: Path, name_field: str) -> tuple[list[tuple[Path, int]], list[str]]:
    """(path, class 1-196) of each annotation, and the class names when the file has them."""
    content = _mat(file)
    annotations = np.atleast_1d(content.get("annotations", np.empty(0)))
    fields = (name_field, "class")
    if annotations.size == 0 or not all(hasattr(annotations[0], field) for field in fields):
        raise NearkinError(f"{file} has no annotations with the fields {' and '.join(fields)}")
    images = [
        (folder / getattr(a, name_field), whole_number(str(getattr(a, "class")), 1, 196, file)) for a in annotations
    ]
    return images, _class_names(content, file) if "class_names" in content else []


def _class_names(content: dict[str, Any], file: Path) -> list[str]:
    if "class_names" not in content:
        raise NearkinError(f"{file} has no class_names")
    return [str(name) for name in np.atleast_1d(content["class_names"])]


def _mat(file: Path) -> dict[str, Any]:
    from scipy.io import loadmat

    try:
        return loadmat(file, squeeze_me=True, struct_as_record=False)
    except Exception as error:  # scipy raises many unrelated kinds of error for a damaged file
        raise NearkinError(f"{file} cannot be read as a MATLAB file: {error}") from error

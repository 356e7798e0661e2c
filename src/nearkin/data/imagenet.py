"""ImageNet (ILSVRC 2012), read from its official folders. Nothing is ever downloaded."""

import csv
import os
from pathlib import Path
from typing import ClassVar

import numpy as np

from nearkin.data.layout import misplaced, rooted
from nearkin.data.scan import folders, images_in
from nearkin.data.table import Table
from nearkin.errors import NearkinError, and_more
from nearkin.registry import DATASETS

LIST = "LOC_val_solution.csv"
KAGGLE = Path("ILSVRC", "Data", "CLS-LOC")


@DATASETS.register("imagenet")
class ImageNet:
    """ImageNet, ILSVRC 2012 (Russakovsky et al. 2015): 1,281,167 training and 50,000 validation images, 1,000 classes.

    The official training images train, the official validation images test, so that test classes are known from
    training: a closed set, as in DRML's (Zheng et al. 2021) experiment. It goes with protocol=within, which draws the
    images that choose the epoch from the training images. Layout:

        train/n01440764/*.JPEG
        val/n01440764/*.JPEG        or val/*.JPEG beside LOC_val_solution.csv, which comes with Kaggle's copy

    A class is named by its WordNet number. Fewer classes will do; each needs images in train and in val.

    Parameters:
        root: the folder that holds train/ and val/, or the one that holds ILSVRC/Data/CLS-LOC/, as Kaggle's copy does

    Example:
        table = nearkin.data.load_table("imagenet", "imagenet")
        (table.split == "test").sum()                           # 50000
    """

    official: ClassVar[dict[str, tuple[int, int]]] = {"train": (1281167, 1000), "test": (50000, 1000)}

    def __init__(self, root: Path | None):
        self.root = root

    def load(self) -> Table:
        """The table: training images, then test images, both by class and name. A NearkinError when a folder is
        missing or empty, or a class stands in one of the two alone."""
        top = rooted("imagenet", self.root)
        root = next((folder for folder in (top, top / KAGGLE) if os.path.isdir(folder / "train")), None)
        if root is None:
            raise misplaced("imagenet", top, "train/ is missing", "train", str(KAGGLE / "train"))
        if not os.path.isdir(root / "val"):
            raise misplaced("imagenet", root, "val/ is missing; its images are the test", "val")
        train, test = _sorted_images(root / "train"), self._tested(root)
        if not train:
            raise NearkinError(f"{root / 'train'} holds no class folder, such as n01440764; unpack each class into one")
        for here, there, alone in (("val", "train", set(test) - set(train)), ("train", "val", set(train) - set(test))):
            if alone:
                who = f"{len(alone):,} class{'es stand' if len(alone) > 1 else ' stands'}"
                raise NearkinError(f"root={root}: {who} in {here} and not in {there}: {and_more(sorted(alone))}")
        classes = sorted(train)
        images = [[paths for name in classes for paths in side[name]] for side in (train, test)]
        sizes = [len(side[name]) for side in (train, test) for name in classes]
        return Table(
            labels=np.repeat(np.tile(np.arange(len(classes)), 2), sizes),
            classes=tuple(classes),
            paths=tuple(images[0] + images[1]),
            root=root,
            columns={"split": np.repeat(["train", "test"], [len(images[0]), len(images[1])])},
            name="imagenet",
        )

    def _tested(self, root: Path) -> dict[str, list[Path]]:
        if folders(root / "val"):
            return _sorted_images(root / "val")
        if not images_in(root / "val"):
            raise NearkinError(f"{root / 'val'} holds no images; it should hold the 50,000 validation images")
        for place in (root, *root.parents[: len(KAGGLE.parts)], root / "val"):
            if os.path.isfile(place / LIST):
                return _listed(place / LIST, root / "val")
        raise NearkinError(
            f"the images in {root / 'val'} lie in no class folders, and {LIST} is not beside them: sort them into "
            f"folders as in train/, or add the list (Kaggle's copy has it; ILSVRC2012_validation_ground_truth.txt, "
            f"which numbers classes otherwise, is not read)"
        )


def _sorted_images(folder: Path) -> dict[str, list[Path]]:
    """Class -> its images, by the class folders."""
    images_of = {inner.name: images_in(inner) for inner in folders(folder)}
    if empty := [name for name, images in images_of.items() if not images]:
        who = f"{len(empty):,} class folder{'s hold' if len(empty) > 1 else ' holds'}"
        raise NearkinError(f"{folder}: {who} no image: {and_more(empty)}; unpack or remove what is empty")
    return images_of


def _listed(file: Path, folder: Path) -> dict[str, list[Path]]:
    """Class -> its images, by Kaggle's list: ImageId, PredictionString, which begins with the class."""
    images_of: dict[str, list[Path]] = {}
    try:
        with open(file, newline="", encoding="utf-8-sig") as lines:
            for number, row in enumerate(csv.DictReader(lines), start=2):
                image, words = row.get("ImageId"), (row.get("PredictionString") or "").split()
                if not image or not words:
                    values = list(row.values())
                    raise NearkinError(f"{file}, line {number}: ImageId and PredictionString are needed, got {values}")
                images_of.setdefault(words[0], []).append(folder / f"{image}.JPEG")
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise NearkinError(f"{file} cannot be read as CSV: {error}") from error
    if not images_of:
        raise NearkinError(f"{file} lists no image")
    return {name: sorted(paths) for name, paths in images_of.items()}

"""Your own images, `folder`: one folder per class, in one level or in several."""

import os
from collections import defaultdict
from pathlib import Path

import numpy as np

from nearkin.data.classes import check_rule, class_folders, class_names, decided
from nearkin.data.layout import numbered, rooted, split_of
from nearkin.data.scan import EXTENSIONS, Survey, folders, images_in, others_in, survey
from nearkin.data.table import Table, Tree
from nearkin.errors import NearkinError, and_more
from nearkin.registry import DATASETS

LOOSE = "image in no class folder"


@DATASETS.register("folder", born={"classes_from": "top"})
class Folder:
    """Your own images, one folder per class: root/class/image, or root/split/class/image; class folders may be nested.

    Splits are assumed when all top folders with images are named like them: train (or training), val (valid,
    validation, dev), test (testing), query or gallery, in any case; the table then has the column `split`. Splits
    beside classes, and splits without class folders, are refused; but one folder without folders in it, such as a train
    among vehicles, is a class.

    The name of a class is that of its folder; where two class folders of a nested tree have the same one, all classes
    are named by their paths below the root or the split (Fruit/Apple). Classes and images are sorted by name. Images
    are recognised by the ending of their names; what is not read is counted by `verify`. Links to files and folders
    are followed; files and folders whose names begin with a dot are ignored.

    Parameters:
        root: the folder that holds the class folders or the split folders
        classes_from: which folder is a class: leaf, that which an image lies in; top, the one below the root or the
            split, to which all folders inside it belong; depth:N, the N-th on the way down. null: leaf where images lie
            in leaves only; top where some lie in a folder and some in folders inside it, which is then said. It is not
            part of a run's name, which covers the classes themselves. Runs of an older nearkin were read with top.

    Example:
        table = nearkin.data.load_table("folder", "my_images")
        table.classes                                           # ("cat", "dog")
    """

    def __init__(self, root: Path | None, *, classes_from: str | None = None):
        check_rule(classes_from)
        self.root, self.classes_from = root, classes_from

    def load(self) -> Table:
        """The table of the images found; a NearkinError when there are none, they lie in no class folder, or splits and
        classes cannot be told apart."""
        root = rooted("folder", self.root)
        if not os.path.isdir(root):
            raise NearkinError(f"root={root} is a file; dataset=folder needs a folder with one folder per class")
        surveys = {top: survey(top) for top in folders(root)}
        tops = {top: found.images for top, found in surveys.items() if found.images}
        if not tops:
            raise _no_classes(root, surveys)
        divided = _divided(root, tops, self.classes_from)
        above = len(root.parts) + divided  # names of a path that stand above the class folders
        loose = [path for images in tops.values() for path in images if len(path.parts) <= above + 1]
        images = [path for images in tops.values() for path in images if len(path.parts) > above + 1]
        parents = [path.parts[above:-1] for path in images]
        rule, doubt = decided(self.classes_from, parents, root)
        chosen = class_folders(rule, parents)
        name_of = class_names(chosen)
        labels, classes = numbered([name_of[folder] for folder in chosen])
        splits = [split_of(path.parts[above - 1]) for path in images]
        return Table(
            labels=labels,
            classes=classes,
            paths=tuple(images),
            root=root,
            columns={"split": np.array(splits)} if divided else {},
            name="folder",
            tree=Tree(rule, divided, doubt, *_left(root, surveys, images_in(root) + loose)),
        )


def _left(root: Path, surveys: dict[Path, Survey], loose: list[Path]) -> tuple[dict[str, list[str]], list[str]]:
    """What was not read: kind of file -> files, `loose` images among them, and the folders without an image."""
    unread = defaultdict(list, {LOOSE: loose} if loose else {})
    for path in others_in(root) + [path for found in surveys.values() for path in found.others]:
        unread[path.suffix.lower() or "file without an ending"].append(path)
    bare = [path for found in surveys.values() for path in found.bare]
    shown = {kind: [path.relative_to(root).as_posix() for path in paths] for kind, paths in unread.items()}
    return shown, [path.relative_to(root).as_posix() for path in bare]


def left_in(root: Path) -> str:
    """In words, what is not read of a folder whose images are read wherever they lie; "" if nothing is left."""
    return Tree("leaf", False, "", *_left(root, {top: survey(top) for top in folders(root)}, [])).sentence


def _no_classes(root: Path, surveys: dict[Path, Survey]) -> NearkinError:
    """What to say of a root without images in class folders."""
    loose, left = len(images_in(root)), Tree("top", False, "", *_left(root, surveys, [])).sentence
    what = f"its {loose:,} images lie in no class folder" if loose else "it holds no images"
    beside = f" ({left})" if left and not loose else ""
    kinds = ", ".join(sorted(EXTENSIONS))
    return NearkinError(f"root={root}: {what}{beside}; one folder per class is needed, with images ({kinds}) in it")


def _divided(root: Path, tops: dict[Path, list[Path]], rule: str | None) -> bool:
    """Whether the top folders, with the images below each, are splits; a NearkinError when that is not clear, or when
    all images lie in one of them and no rule says which folders are classes."""
    inner = {top.name: _inner(top, images) for top, images in tops.items()}  # top folder -> folders in it
    named = [name for name in inner if split_of(name)]
    classes = [name for name in inner if not split_of(name)]
    if not named:
        of_splits = len(inner) == 1 and any(map(split_of, inner[classes[0]]))
        if of_splits or (len(inner) == 1 and rule is None and len(inner[classes[0]]) > 1):
            raise NearkinError(
                f"root={root} holds one folder of images, {classes[0]}; did you mean root={root / classes[0]}? "
                "Otherwise say which folders are classes: data.classes_from=leaf, top or depth:N"
            )
        return False
    if classes:
        if len(named) == 1 and not inner[named[0]]:  # a train among vehicles
            return False
        raise NearkinError(
            f"root={root}: {_names(named, 'looks like a split', 'look like splits')} "
            f"beside classes ({and_more(classes)}); put all images into split folders, or give classes names that are "
            "no splits"
        )
    if loose := [name for name in named if not inner[name]]:
        raise NearkinError(
            f"root={root}: the images in {and_more(loose)} lie directly in a split folder; one folder per class is "
            f"needed inside, as in {loose[0]}/CLASS/1.jpg (classes themselves need names that are no splits)"
        )
    folders_of = defaultdict(list)
    for name in named:
        folders_of[split_of(name)].append(name)
    for split, same in folders_of.items():
        if len(same) > 1:
            raise NearkinError(f"root={root}: the folders {' and '.join(same)} both mean {split}; keep one")
    return True


def _inner(top: Path, images: list[Path]) -> list[str]:
    """The names of the folders in `top` that these images lie in."""
    depth = len(top.parts)
    return list(dict.fromkeys(path.parts[depth] for path in images if len(path.parts) > depth + 1))


def _names(names: list[str], one: str, several: str) -> str:
    return f"{and_more(names)} {one if len(names) == 1 else several}"

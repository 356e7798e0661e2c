"""Your own images: `folder` (one folder per class) and `csv` (a list with the columns path and label)."""

import csv
import os
from collections import defaultdict
from pathlib import Path

import numpy as np

from nearkin.data.layout import SPLITS, rooted, split_of
from nearkin.data.scan import EXTENSIONS, folders, images_below, images_in
from nearkin.data.table import Table
from nearkin.errors import NearkinError, and_more
from nearkin.registry import DATASETS

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}  # of a .csv file; the first of equals


@DATASETS.register("folder")
class Folder:
    """Your own images, one folder per class: root/class/image, or root/split/class/image.

    The second layout is assumed when all top folders with images are named like splits: train (or training), val
    (valid, validation, dev), test (testing), query or gallery, in any case; the table then has the column `split`.
    Splits beside classes, and splits without class folders, are refused; but one folder without folders in it, such as
    a train among vehicles, is a class. The name of a class folder is the class. Folders inside a class folder belong to
    the class. Classes and images are sorted by name. Images are recognised by the ending of their names. Links to files
    and folders are followed; files and folders whose names begin with a dot are ignored.

    Parameters:
        root: the folder that holds the class folders or the split folders

    Example:
        table = nearkin.data.load_table("folder", "my_images")
        table.classes                                           # ("cat", "dog")
    """

    def __init__(self, root: Path | None):
        self.root = root

    def load(self) -> Table:
        """The table of the images found; a NearkinError when there are none, they lie in no class folder, or splits and
        classes cannot be told apart."""
        root = rooted("folder", self.root)
        if not os.path.isdir(root):
            raise NearkinError(f"root={root} is a file; dataset=folder needs a folder with one folder per class")
        tops = {top: images for top in folders(root) if (images := images_below(top))}
        if not tops:
            loose = len(images_in(root))
            what = f"its {loose} images lie in no class folder" if loose else "it holds no images"
            kinds = ", ".join(sorted(EXTENSIONS))
            raise NearkinError(f"root={root}: {what}; one folder per class is needed, with images ({kinds}) in it")
        divided = _divided(root, tops)
        paths: list[Path] = []
        names: list[str] = []
        splits: list[str | None] = []
        for top, images in tops.items():
            depth = len(top.parts)
            chosen = [path for path in images if len(path.parts) > depth + 1] if divided else images
            paths += chosen
            names += [path.parts[depth] for path in chosen] if divided else [top.name] * len(chosen)
            splits += [split_of(top.name)] * len(chosen)
        labels, classes = _numbered(names)
        return Table(
            labels=labels,
            classes=classes,
            paths=tuple(paths),
            root=root,
            columns={"split": np.array(splits)} if divided else {},
            name="folder",
        )


def _divided(root: Path, tops: dict[Path, list[Path]]) -> bool:
    """Whether the top folders, with the images below each, are splits; a NearkinError when that is not clear."""
    inner = {top.name: _inner(top, images) for top, images in tops.items()}  # top folder -> folders in it
    named = [name for name in inner if split_of(name)]
    classes = [name for name in inner if not split_of(name)]
    if not named:
        if len(inner) == 1 and (len(inner[classes[0]]) > 1 or any(map(split_of, inner[classes[0]]))):
            raise NearkinError(
                f"root={root} holds one folder of images, {classes[0]}, which would be the only class; "
                f"did you mean root={root / classes[0]}?"
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


@DATASETS.register("csv")
class CSV:
    """Your own images, listed in a .csv file with a header and the columns path and label.

    Paths are relative to the file's folder, or absolute. A column `split` (train, val, test, query, gallery, or the
    other names that `folder` knows) divides the images. Further columns are kept in `table.columns`, as numbers where
    all values are numbers. Classes are sorted by name, images stay in the order of the file. The file is UTF-8; commas,
    semicolons or tabs separate its columns.

    Parameters:
        root: the .csv file, or a folder that holds exactly one

    Example:
        table = nearkin.data.load_table("csv", "my_images/list.csv")
        table.columns["age"]                                    # (N,), if there is such a column
    """

    def __init__(self, root: Path | None):
        self.root = root

    def load(self) -> Table:
        """The table of the images listed; a NearkinError names the row that is wrong. The images are not opened."""
        file = self._file()
        header, records = _records(file)
        columns = {name: np.array([record[i] for record in records]) for i, name in enumerate(header)}
        paths, names = columns.pop("path"), columns.pop("label")
        for number, (path, name) in enumerate(zip(paths, names, strict=True), start=1):
            if not path or not name:
                raise NearkinError(f"{file}, row {number}: an empty {'label' if path else 'path'}")
        if "split" in columns:
            columns["split"] = np.array([_known_split(name, file) for name in columns["split"].tolist()])
        labels, classes = _numbered(names.tolist())
        return Table(
            labels=labels,
            classes=classes,
            paths=tuple(file.parent / path for path in paths.tolist()),
            root=file.parent,
            columns={name: column if name == "split" else _numbers(column) for name, column in columns.items()},
            name="csv",
        )

    def _file(self) -> Path:
        root = rooted("csv", self.root, "FILE.csv")
        if root.is_file():
            return root
        files = sorted(root.glob("*.csv"))
        if len(files) != 1:
            raise NearkinError(
                f"root={root} holds {len(files)} .csv files, exactly one is needed; or name the file: root=FILE.csv"
            )
        return files[0]


def _records(file: Path) -> tuple[list[str], list[list[str]]]:
    """The names of the columns, and the rows below them."""
    try:
        with open(file, newline="", encoding="utf-8-sig") as lines:
            separator = _separator(next((line for line in lines if line.strip()), ""))
            lines.seek(0)
            rows = csv.reader(lines, delimiter=separator)
            table = [[field.strip() for field in row] for row in rows if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise NearkinError(f"{file} cannot be read as CSV: {error}") from error
    header = table[0] if table else []
    separated = f"separated by {SEPARATORS[separator]}"
    for name in ("path", "label"):
        if name not in header:
            there = f"columns, {separated}: {', '.join(header)}" if header else "it is empty"
            raise NearkinError(f"{file} has no column {name!r} ({there}); path and label are needed")
    if len(set(header)) != len(header):
        raise NearkinError(f"{file} has two columns of the same name (columns: {', '.join(header)})")
    if len(table) == 1:
        raise NearkinError(f"{file} lists no image")
    for number, record in enumerate(table[1:], start=1):
        if len(record) != len(header):
            fields = f"{len(record)} fields {separated}"
            raise NearkinError(f"{file}, row {number}: {fields}, the header has {len(header)}")
    return header, table[1:]


def _separator(header: str) -> str:
    """What separates the columns: the one that gives most of them. A spreadsheet writes semicolons where the comma
    stands in numbers."""
    return max(SEPARATORS, key=lambda separator: len(next(csv.reader([header], delimiter=separator), [])))


def _known_split(name: str, file: Path) -> str:
    split = split_of(name)
    if split is None:
        raise NearkinError(f"{file}: split {name!r}; choices: {', '.join(SPLITS)}")
    return split


def _numbered(names: list[str]) -> tuple[np.ndarray, tuple[str, ...]]:
    classes, labels = np.unique(np.array(names), return_inverse=True)
    return labels.astype(np.int64), tuple(classes.tolist())


def _numbers(column: np.ndarray) -> np.ndarray:
    """The column as float64 when all its values are numbers, else as it is."""
    try:
        return column.astype(np.float64)
    except ValueError:
        return column

"""Your own images: `folder` (one folder per class) and `csv` (a list with the columns path and label)."""

import csv
from pathlib import Path

import numpy as np

from nearkin.data.images import EXTENSIONS, is_image
from nearkin.data.layout import SPLITS, rooted
from nearkin.data.table import Table
from nearkin.errors import NearkinError
from nearkin.registry import DATASETS


@DATASETS.register("folder")
class Folder:
    """Your own images, one folder per class: root/class/image, or root/split/class/image.

    The second layout is assumed when all top folders are named train, val, test, query or gallery and have folders in
    them; the table then has the column `split`. The name of a class folder is the class. Folders inside a class folder
    belong to the class. Classes and images are sorted by name. Images are recognised by the ending of their names.
    Hidden images, and class or split folders whose names begin with a dot, are ignored.

    Parameters:
        root: the folder that holds the class folders or the split folders

    Example:
        table = nearkin.data.load_table("folder", "my_images")
        table.classes                                           # ("cat", "dog")
    """

    def __init__(self, root: Path | None):
        self.root = root

    def load(self) -> Table:
        """The table of the images found; a NearkinError when there are none or they lie in no class folder."""
        root = rooted("folder", self.root)
        if not root.is_dir():
            raise NearkinError(f"root={root} is a file; dataset=folder needs a folder with one folder per class")
        tops = _folders(root)
        divided = bool(tops) and all(top.name in SPLITS and _folders(top) for top in tops)
        found: list[tuple[Path, str, str]] = []                         # path, class, split
        for top in tops:
            for folder in _folders(top) if divided else [top]:
                images = sorted(path for path in folder.rglob("*") if is_image(path))
                found += [(path, folder.name, top.name) for path in images]
        if not found:
            loose = sum(is_image(path) for path in root.iterdir())
            what = f"its {loose} images lie in no class folder" if loose else "it holds no images"
            kinds = ", ".join(sorted(EXTENSIONS))
            raise NearkinError(f"root={root}: {what}; one folder per class is needed, with images ({kinds}) in it")
        labels, classes = _numbered([c for _, c, _ in found])
        return Table(
            labels=labels,
            classes=classes,
            paths=tuple(path for path, _, _ in found),
            root=root,
            columns={"split": np.array([split for _, _, split in found])} if divided else {},
            name="folder",
        )


@DATASETS.register("csv")
class CSV:
    """Your own images, listed in a .csv file with a header and the columns path and label.

    Paths are relative to the file's folder, or absolute. A column `split` (train, val, test, query, gallery) divides
    the images. Further columns are kept in `table.columns`, as numbers where all values are numbers. Classes are sorted
    by name, images stay in the order of the file. The file is UTF-8.

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
        for split in np.unique(columns.get("split", np.empty(0, str))):
            if split not in SPLITS:
                raise NearkinError(f"{file}: split {str(split)!r}; choices: {', '.join(SPLITS)}")
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
    try:
        with open(file, newline="", encoding="utf-8-sig") as lines:
            table = [[field.strip() for field in row] for row in csv.reader(lines) if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise NearkinError(f"{file} cannot be read as CSV: {error}") from error
    header = table[0] if table else []
    for name in ("path", "label"):
        if name not in header:
            there = ", ".join(header) or "none"
            raise NearkinError(f"{file} has no column {name!r} (columns: {there}); path and label are needed")
    if len(set(header)) != len(header):
        raise NearkinError(f"{file} has two columns of one name (columns: {', '.join(header)})")
    if len(table) == 1:
        raise NearkinError(f"{file} lists no image")
    for number, record in enumerate(table[1:], start=1):
        if len(record) != len(header):
            raise NearkinError(f"{file}, row {number}: {len(record)} fields, the header has {len(header)}")
    return header, table[1:]


def _folders(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))


def _numbered(names: list[str]) -> tuple[np.ndarray, tuple[str, ...]]:
    classes, labels = np.unique(np.array(names), return_inverse=True)
    return labels.astype(np.int64), tuple(classes.tolist())


def _numbers(column: np.ndarray) -> np.ndarray:
    """The column as float64 when all its values are numbers, else as it is."""
    try:
        return column.astype(np.float64)
    except ValueError:
        return column

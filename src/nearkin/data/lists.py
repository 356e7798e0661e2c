"""Your own images, `csv`: a list with the columns path and label."""

import csv
from pathlib import Path

import numpy as np

from nearkin.data.layout import SPLITS, numbered, rooted, split_of
from nearkin.data.table import Table
from nearkin.errors import NearkinError
from nearkin.registry import DATASETS

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}  # of a .csv file; the first of equals


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
        labels, classes = numbered(names.tolist())
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


def _numbers(column: np.ndarray) -> np.ndarray:
    """The column as float64 when all its values are numbers, else as it is."""
    try:
        return column.astype(np.float64)
    except ValueError:
        return column

"""`Table`: the one form that every data set takes, and `Augment`: what training may do to its images."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np

from nearkin.errors import NearkinError, and_more
from nearkin.units import counted


@dataclass(frozen=True)
class Augment:
    """What training may do to the images of a data set; a `Table` carries one and a `PixelSource` does it.

    Parameters:
        crop_scale: smallest and largest area of a random resized crop, as a share of the image; None: no random crops
        crop_ratio: smallest and largest ratio of width to height of such a crop
        flip: whether left and right may be exchanged
        kind: resized_crop, a part of any size and shape, resized; or resize_crop, a part of the wanted size from the
            image with its shorter side at a fixed length, for which scale and ratio are not read; a run has the kind
            that `data.augment` says
    """

    crop_scale: tuple[float, float] | None = (0.08, 1.0)
    crop_ratio: tuple[float, float] = (3 / 4, 4 / 3)
    flip: bool = True
    kind: Literal["resized_crop", "resize_crop"] = "resized_crop"

    @property
    def crops(self) -> bool:
        """Whether training images are random parts of the images."""
        return self.kind == "resize_crop" or self.crop_scale is not None


@dataclass(frozen=True)
class Tree:
    """How `folder` read nested folders, and what it left unread.

    Fields:
        rule: which folders are classes: leaf, top or depth:N
        divided: whether the top folders are splits
        doubt: why other folders may have been meant, in words; "" where that is clear
        unread: kind of file -> the files of that kind that are no images by their names, or lie in no class folder
        bare: folders without an image in or below them
    """

    rule: str
    divided: bool
    doubt: str
    unread: dict[str, list[str]]
    bare: list[str]

    @property
    def sentence(self) -> str:
        """What was not read, in words; "" when everything was."""
        kinds = [f"{counted(len(files), of_kind(kind))} ({and_more(files, 2)})" for kind, files in self.unread.items()]
        if self.bare:
            kinds.append(f"{counted(len(self.bare), 'folder')} without an image ({and_more(self.bare, 2)})")
        return f"not read: {', '.join(kinds)}" if kinds else ""


def of_kind(kind: str) -> str:
    """A kind of file in words: `.txt` is a .txt file."""
    return f"{kind} file" if kind.startswith(".") else kind


@dataclass(frozen=True)
class Table:
    """The one form that every data set takes: N images, one label per image, further columns.

    `load_table` makes it, or your own code. The images are files (`paths`) or arrays in memory (`images`), never both.
    Protocols divide its rows, `decoded` and `PixelSource` give its pixels, `verify` checks it.

    Parameters:
        labels: (N,) int64, one label per image: an index into `classes`
        classes: the names of the classes
        paths: N image files; or None
        images: (N, H, W, 3) uint8, RGB; or None
        root: the folder below which messages and the data hash name the files
        columns: name -> (N,), one value per image; `split` (train, val, test, query, gallery) is the official division
        augment: what training may do to the images
        name: of the data set, for messages
        tree: how nested folders were read, and what was left unread; None: the images were listed, not looked for

    A NearkinError unless exactly one of `paths` and `images` is given and every column has N values.

    Example:
        table = Table(labels=np.array([0, 0, 1]), classes=("cat", "dog"), images=np.zeros((3, 32, 32, 3), np.uint8))
        table.take([2]).labels                                  # array([1])
    """

    labels: np.ndarray
    classes: tuple[str, ...]
    paths: tuple[Path, ...] | None = None
    images: np.ndarray | None = None
    root: Path | None = None
    columns: dict[str, np.ndarray] = field(default_factory=dict)
    augment: Augment = field(default_factory=Augment)
    name: str = "table"
    tree: Tree | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if (self.paths is None) == (self.images is None):
            raise NearkinError("a Table holds either paths or images")
        size = len(self.paths) if self.paths is not None else len(self.images)  # type: ignore[arg-type]
        for what, column in {"labels": self.labels, **self.columns}.items():
            if len(column) != size:
                raise NearkinError(f"{size} images but {len(column)} values in {what!r}")

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def split(self) -> np.ndarray | None:
        """The column `split` (N,), or None when the data set has no official division."""
        return self.columns.get("split")

    def shared(self, some: Sequence[str], others: Sequence[str]) -> np.ndarray:
        """The labels that stand in rows of the splits `some` and in rows of the splits `others`, sorted; none where the
        data set has no split."""
        if self.split is None:
            return np.empty(0, np.int64)
        first, second = (self.labels[np.isin(self.split, splits)] for splits in (some, others))
        return np.intersect1d(first, second)

    def take(self, indices: np.ndarray) -> "Table":
        """The table of the rows at `indices`, in that order. `classes` and the numbers of the labels stay as they
        are."""
        indices = np.asarray(indices)
        return replace(
            self,
            labels=self.labels[indices],
            paths=None if self.paths is None else tuple(self.paths[i] for i in indices),
            images=None if self.images is None else self.images[indices],
            columns={name: column[indices] for name, column in self.columns.items()},
        )

    def shown(self, index: int) -> str:
        """The name of an image for messages: its path below the root, its whole path where it lies elsewhere, or its
        number when it is an array."""
        if self.paths is None:
            return f"image {index}"
        path = self.paths[index]
        if self._above is not None and (whole := str(path)).startswith(self._above):
            return whole[len(self._above) :]  # as below, and ten times as fast
        return path.relative_to(self.root).as_posix() if self.root and path.is_relative_to(self.root) else str(path)

    @cached_property
    def _above(self) -> str | None:
        """What the paths of all files below the root begin with; None where text does not tell."""
        return f"{self.root}/" if self.root and self.root.name and os.sep == "/" else None

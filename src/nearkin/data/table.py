"""`Table`: the one form that every data set takes. N images, a label each, further columns.

Images are files (`paths`) or arrays already in memory (`images`, uint8 RGB). Labels are integers into
`classes`. A column `split` (train, val, test, query, gallery) carries an official division when there is one.
"""

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from nearkin.errors import NearkinError


@dataclass(frozen=True)
class Augment:
    """What training may do to an image of this data set."""

    crop_scale: tuple[float, float] | None = (0.08, 1.0)    # area of a random resized crop; None: no cropping
    crop_ratio: tuple[float, float] = (3 / 4, 4 / 3)
    flip: bool = True


@dataclass(frozen=True)
class Table:
    labels: np.ndarray                                      # (N,) int64, indices into classes
    classes: tuple[str, ...]
    paths: tuple[Path, ...] | None = None                   # N files, or
    images: np.ndarray | None = None                        # (N, H, W, 3) uint8
    root: Path | None = None                                # what paths are told relative to
    columns: dict[str, np.ndarray] = field(default_factory=dict)
    augment: Augment = field(default_factory=Augment)
    name: str = "table"

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
        return self.columns.get("split")

    def take(self, indices: np.ndarray) -> "Table":
        """The rows at `indices`, in that order; classes and label numbers stay."""
        indices = np.asarray(indices)
        return replace(
            self,
            labels=self.labels[indices],
            paths=None if self.paths is None else tuple(self.paths[i] for i in indices),
            images=None if self.images is None else self.images[indices],
            columns={name: column[indices] for name, column in self.columns.items()},
        )

    def shown(self, index: int) -> str:
        """The image's name: its path below the root, or its number."""
        if self.paths is None:
            return f"image {index}"
        path = self.paths[index]
        return path.relative_to(self.root).as_posix() if self.root and path.is_relative_to(self.root) else str(path)

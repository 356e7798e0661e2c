"""The training images sorted by class: what samplers draw from."""

import numpy as np

from nearkin.errors import NearkinError


class Classes:
    """The training images sorted by class. Classes are numbered 0 to C - 1 here, whatever the labels are.

    `of` (N,) is the class of each image, `size` (C,) the number of images of each class.

    Parameters:
        labels: the class of each training image, (N,).
    """

    def __init__(self, labels: np.ndarray):
        _, self.of, self.size = np.unique(labels, return_inverse=True, return_counts=True)      # (N,), (C,)
        self.rows = np.argsort(self.of, kind="stable")              # (N,) all images, class after class
        self.start = np.cumsum(self.size) - self.size               # (C,)

    def __len__(self) -> int:
        return len(self.size)

    def members(self, c: int) -> np.ndarray:
        """The positions of all images of class c, (size of c,)."""
        return self.rows[self.start[c] : self.start[c] + self.size[c]]

    def draw(self, rng: np.random.Generator, classes: np.ndarray) -> np.ndarray:
        """One image of each of the given classes, uniform, with replacement; the result has the shape of `classes`."""
        return self.rows[self.start[classes] + rng.integers(self.size[classes])]

    def draw_groups(self, rng: np.random.Generator, groups: int, per_class: int) -> np.ndarray:
        """Classes uniform with replacement, then images of each uniform with replacement: (groups·per_class,)."""
        classes = rng.integers(len(self), size=groups)
        return self.draw(rng, np.repeat(classes, per_class))        # (groups·per_class,)

    def group(self, rng: np.random.Generator, row: int, size: int) -> np.ndarray:
        """The image `row` and size - 1 random others of its class; a short class repeats as little as it can."""
        members = self.members(self.of[row])
        others = rng.permutation(members[members != row])
        return np.resize(np.append(row, others), size)              # np.resize begins again when the images run out


def check_per_class(batch: int, per_class: int) -> None:
    """Raise an error if per_class is below 1 or does not divide the batch."""
    if per_class < 1:
        raise NearkinError(f"sampler.per_class={per_class}: at least 1 image per class")
    if batch % per_class:
        below = batch // per_class * per_class
        nearest = f"the nearest are {below} and {below + per_class}" if below else f"the smallest is {per_class}"
        raise NearkinError(f"train.batch={batch} is not divisible by sampler.per_class={per_class}; {nearest}")

"""The training images sorted by class: what samplers draw from."""

import numpy as np

from nearkin.errors import NearkinError


class Classes:
    """The training images sorted by class. Classes are numbered 0 to C - 1 here, whatever the labels are.

    `of` (N,) is the class of each image, `size` (C,) the number of images of each class, `labels` (C,) its label.

    Parameters:
        labels: the class of each training image, (N,).
    """

    def __init__(self, labels: np.ndarray):
        self.labels, self.of, self.size = np.unique(labels, return_inverse=True, return_counts=True)
        self.rows = np.argsort(self.of, kind="stable")  # (N,) all images, class after class
        self.start = np.cumsum(self.size) - self.size  # (C,)

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
        return self.draw(rng, np.repeat(classes, per_class))  # (groups·per_class,)

    def group(self, rng: np.random.Generator, row: int, size: int) -> np.ndarray:
        """The image `row` and size - 1 random others of its class; a short class repeats as little as it can."""
        members = self.members(self.of[row])
        others = rng.permutation(members[members != row])
        return np.resize(np.append(row, others), size)  # np.resize starts again when the images run out

    def draw_different(self, rng: np.random.Generator, classes: np.ndarray, number: int) -> np.ndarray:
        """`number` images of each of the given classes (G,), different ones where the class has enough of them; a
        shorter class repeats as few as it can: (G, number)."""
        size = self.size[classes]  # (G,)
        chosen = draw_different(rng, np.maximum(size, number), number)  # (G, number) places in a class
        for g in np.flatnonzero(size < number):
            chosen[g] = np.resize(rng.permutation(size[g]), number)
        return self.rows[self.start[classes, None] + chosen]


def draw_different(rng: np.random.Generator, size: np.ndarray, number: int) -> np.ndarray:
    """For each g, `number` different ones of 0 ... size[g] - 1, all sets equally likely: (G, number).

    Floyd's algorithm: the j-th pick is uniform up to size - number + j, and that bound itself where the pick is taken.
    """
    chosen = np.full((len(size), number), -1)
    for j in range(number):
        bound = size - number + j  # (G,)
        pick = rng.integers(bound + 1)
        chosen[:, j] = np.where((chosen == pick[:, None]).any(1), bound, pick)
    return chosen


def check_classes(classes: Classes, batch: int, per_class: int) -> None:
    """Raise an error if there are too few classes for a batch, or classes without a positive pair."""
    check_per_class(batch, per_class)
    if batch // per_class > len(classes):
        raise NearkinError(
            f"train.batch={batch} with sampler.per_class={per_class} needs {batch // per_class} classes, "
            f"training has {len(classes)}; the largest batch is {per_class * len(classes)}"
        )
    lone = np.flatnonzero(classes.size < 2)
    if len(lone) and per_class > 1:
        raise NearkinError(
            f"{len(lone)} training classes (label {classes.labels[lone[0]]}, ...) have one image, balanced batches "
            f"need two: remove them, or use sampler=random"
        )


def check_per_class(batch: int, per_class: int) -> None:
    """Raise an error if per_class is below 1 or does not divide the batch."""
    if per_class < 1:
        raise NearkinError(f"sampler.per_class={per_class}: must be at least 1")
    if batch % per_class:
        below = batch // per_class * per_class
        nearest = f"the nearest are {below} and {below + per_class}" if below else f"the smallest is {per_class}"
        raise NearkinError(f"train.batch={batch} is not divisible by sampler.per_class={per_class}; {nearest}")

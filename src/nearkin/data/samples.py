"""Which images stand for a data set in a sheet of samples."""

import numpy as np

CLASSES, PER_CLASS = 6, 8


def sample_rows(labels: np.ndarray, classes: int = CLASSES, per_class: int = PER_CLASS) -> list[np.ndarray]:
    """Rows of some images of some classes, one array per class; both are spread evenly, the first and the last are in.

    Parameters:
        labels: (N,) the class of each image.
        classes: at most so many classes.
        per_class: at most so many images of each.
    """
    chosen = spread(np.unique(labels), classes)
    return [spread(np.flatnonzero(labels == label), per_class) for label in chosen]


def spread(values: np.ndarray, most: int) -> np.ndarray:
    """At most so many of the values, evenly spread."""
    return values if len(values) <= most else values[np.linspace(0, len(values) - 1, most).round().astype(int)]

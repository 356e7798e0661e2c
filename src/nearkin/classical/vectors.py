"""Four small data sets of vectors, on which the classical methods are compared."""

import numpy as np

from nearkin.config.bounds import one_of

NAMES = ("iris", "wine", "balance", "digits")


def vectors(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows (N, F), each column of mean 0 and variance 1 (or 0), and their classes (N,).

    iris (150 × 4), wine (178 × 13) and digits (1,797 × 64) come with scikit-learn. balance (625 × 4) is generated:
    weights and distances of both sides of a scale, each 1 to 5, and to which side it tips.
    """
    one_of(*NAMES, name=name)
    if name == "balance":
        x = np.stack(np.meshgrid(*[np.arange(1.0, 6)] * 4, indexing="ij"), -1).reshape(-1, 4)
        y = np.sign(x[:, 0] * x[:, 1] - x[:, 2] * x[:, 3]).astype(int) + 1
    else:
        from sklearn import datasets

        x, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    spread = x.std(0)
    return (x - x.mean(0)) / np.where(spread > 0, spread, 1), y

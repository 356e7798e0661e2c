"""Every member as a scikit-learn estimator, on odd input, and the order of things that it promises."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from nearkin.classical import MEMBERS, GeneralMetric, KernelMap, KernelNeighbours, PairLearner, TripletLearner
from nearkin.errors import NearkinError


def few(member, **settings):
    """With so few constraints that all checks together take seconds."""
    return member(**settings, **({"constraints": 20} if "constraints" in member().get_params() else {}))


NAMED = {member.__name__: few(member) for member in MEMBERS} | {
    "GeneralMetric, triplets": few(GeneralMetric, relations="triplets", regulariser="scatter"),
    "GeneralMetric, trace": few(GeneralMetric, regulariser="trace"),
}
EVERY = pytest.mark.parametrize("learner", NAMED.values(), ids=NAMED.keys())


def rows(n=60, width=5, classes=3, seed=0):
    random = np.random.default_rng(seed)
    y = np.arange(n) % classes
    return random.normal(size=(classes, width))[y] * 2 + random.normal(size=(n, width)), y


ODD = {
    "constant columns": lambda: (np.concatenate([rows()[0], np.ones((60, 2))], 1), rows()[1]),
    "more dimensions than rows": lambda: rows(n=8, width=20, classes=2),
    "one class": lambda: (rows()[0], np.zeros(60, dtype=int)),
    "one row per class": lambda: (rows(n=6)[0], np.arange(6)),
    "duplicates": lambda: tuple(np.concatenate([side, side]) for side in rows(n=20)),
    "the same rows in two classes": lambda: (np.concatenate([rows(n=20)[0]] * 2), np.repeat([0, 1], 20)),
    "one point": lambda: (np.ones((6, 3)), np.array([0, 0, 0, 1, 1, 1])),
    "two rows": lambda: (np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([0, 1])),
    "large numbers": lambda: (rows()[0] * 1e6, rows()[1]),
}


LONG = ("KwokTsang", "GeneralMetric", "GeneralMetric, triplets", "GeneralMetric, trace")  # thousands of steps in all
CHECKED = NAMED | {"KernelMap": KernelMap(), "KernelNeighbours": KernelNeighbours()}


@pytest.mark.parametrize(
    "estimator",
    [pytest.param(e, id=name, marks=pytest.mark.slow if name in LONG else ()) for name, e in CHECKED.items()],
)
@pytest.mark.filterwarnings("ignore:Skipping check:sklearn.exceptions.SkipTestWarning")  # pandas, other arrays
def test_scikit_learn_agrees(estimator):
    check_estimator(estimator)


@EVERY
@pytest.mark.parametrize("case", ODD.values(), ids=ODD.keys())
def test_the_matrix_is_semi_definite_and_finite(learner, case):
    x, y = case()
    learner.fit(x, y)
    a = learner.matrix_
    assert np.isfinite(a).all()
    assert np.isfinite(learner.objective_)
    np.testing.assert_array_equal(a, a.T)
    assert np.linalg.eigvalsh(a).min() >= -1e-9 * max(np.abs(a).max(), 1e-300)
    z = learner.transform(x)
    i, j = 0, len(x) - 1
    np.testing.assert_allclose(((z[i] - z[j]) ** 2).sum(), (x[i] - x[j]) @ a @ (x[i] - x[j]), rtol=1e-6, atol=1e-9)


@EVERY
def test_learning_helps_and_repeats(learner):
    random = np.random.default_rng(3)
    y = np.arange(150) % 3
    x = np.concatenate([np.eye(3)[y] * 3 + random.normal(size=(150, 3)), random.normal(size=(150, 6)) * 2], 1)

    def error(z):
        d = ((z[:, None] - z) ** 2).sum(2) + np.diag(np.full(len(z), np.inf))
        return (y[d.argmin(1)] != y).mean()

    learner = clone(learner).set_params(**({"constraints": 300} if "constraints" in learner.get_params() else {}))
    assert error(learner.fit(x, y).transform(x)) < error(x) - 0.02
    first = learner.matrix_
    np.testing.assert_array_equal(learner.fit(x, y).matrix_, first)


@EVERY
def test_a_kernel_is_a_step_before(learner):
    """Corners of a square: what no linear map can do, the products of a polynomial can."""
    corners = np.array([[-1.0, -1], [1, 1], [-1, 1], [1, -1]])
    y = np.repeat([0, 0, 1, 1], 10)
    x = np.repeat(corners, 10, 0) + np.random.default_rng(0).normal(size=(40, 2)) * 0.1
    more = {"k": 15, "constraints": 200, "similar": 20.0, "dissimilar": 20.0}
    learner = clone(learner).set_params(**{k: more[k] for k in more.keys() & learner.get_params().keys()})

    def near(z):
        """The share of rows whose nearest row at another corner is of their class."""
        d = np.square(z[:, None] - z).sum(2)
        d[np.arange(40)[:, None] // 10 == np.arange(40) // 10] = np.inf
        return (y[d.argmin(1)] == y).mean()

    kernel = KernelMap(kernel="polynomial", degree=2, constant=2)  # 1 would tie the axes
    assert near(make_pipeline(kernel, learner).fit(x, y).transform(x)) > 0.9
    assert near(learner.fit(x, y).transform(x)) < 0.7


@pytest.mark.parametrize("member", [m for m in MEMBERS if issubclass(m, PairLearner)])
def test_pairs_are_another_way_in(member):
    x, y = rows()
    pairs = np.stack(np.triu_indices(60, 1), 1)
    same = y[pairs[:, 0]] == y[pairs[:, 1]]
    learner = member().fit_pairs(x, pairs[same], pairs[~same])
    assert learner.transform(x).shape == (60, len(learner.components_))
    nothing = member().fit_pairs(x, [], []).matrix_
    assert np.isfinite(nothing).all()
    with pytest.raises(NearkinError, match=r"similar of shape \(3,\): must be \(number, 2\)"):
        member().fit_pairs(x, [1, 2, 3], [])
    with pytest.raises(NearkinError, match="dissimilar names row 60: X has 0 to 59"):
        member().fit_pairs(x, [(0, 3)], [(1, 60)])


@pytest.mark.parametrize("member", [m for m in MEMBERS if issubclass(m, TripletLearner)])
def test_triplets_are_another_way_in(member):
    x, _ = rows()
    learner = member().fit_triplets(x, [(0, 3, 1), (1, 4, 2)])
    assert learner.transform(x).shape == (60, len(learner.components_))
    with pytest.raises(NearkinError, match="triplets of float64: must be whole numbers"):
        member().fit_triplets(x, [(0.0, 3.0, 1.0)])

"""Where no method is better, at most 5 % of choices may call a lead believable: 100 simulated choices each,
and 400 in `make test-slow`.

The winner is picked by the validation results that it is then judged by, and the untrained network, which is run once,
stands beside every seed with the same values. No method is better over all classes that there might have been; in those
of the validation they differ by chance.
"""

import math

import numpy as np
import pytest

from nearkin.statistics.unit import ByClass, Row
from nearkin.tuning.verdict import leads

CHOICES = [100, pytest.param(400, marks=pytest.mark.slow)]
QUERIES = 20  # of each class


def row_of(name, values):
    """A row with these values by seed and class, (S, C)."""
    names = tuple(map(str, range(values.shape[1])))

    def by_class(key):
        return ByClass(names, values[key.seed], np.full(len(names), QUERIES))

    scores = dict(enumerate(values.mean(axis=1).tolist()))
    return Row.of_seeds(name, scores, queries=QUERIES * len(names), by_class=by_class)


def choice(rng, *, finalists=3, seeds=3, spread=0.02, classes=0.05, count=10, noisy=1.0, below=0.0):
    """Finalists of which none is better, and the untrained network: as good as they are, or `below` them."""
    hard = rng.normal(0.5, 0.1, count)  # (C,) the same for all
    by_seed = rng.normal(0, 0.02, (seeds, 1))
    rows = []
    for i in range(finalists):
        luck = rng.normal(0, spread * (noisy if i == 0 else 1), (seeds, 1))
        values = hard + rng.normal(0, classes, count) + by_seed + luck + rng.normal(0, 0.02, (seeds, count))
        rows.append(row_of(f"m{i}", values))
    once = hard + rng.normal(0, classes, count) - below
    return rows, row_of("untrained", np.tile(once, (seeds, 1)))


def false_verdicts(choices, **condition):
    """The share of choices in which a lead that there is not is believed."""
    rng, wrong = np.random.default_rng(23), 0
    for _ in range(choices):
        rows, untrained = choice(rng, **condition)
        pairs = leads(rows, untrained, sign=1)
        false = [pair for pair in pairs if not condition.get("below") or untrained not in (pair.first, pair.second)]
        wrong += any(pair.decided for pair in false)
    return wrong / choices


CONDITIONS = {
    "three seeds": {},
    "three seeds, methods are alike in every class": {"classes": 0.0},
    "five seeds": {"seeds": 5},
    "five seeds, one method is noisy": {"seeds": 5, "noisy": 4.0},
    "two finalists": {"finalists": 2},
    "all are better than the untrained network": {"below": 0.3},
    "five classes": {"count": 5, "seeds": 5},
    "two seeds": {"seeds": 2},
    "one seed": {"seeds": 1},
}


@pytest.mark.parametrize("choices", CHOICES)
@pytest.mark.parametrize("name", CONDITIONS)
def test_choose_is_calibrated(name, choices, record_property):
    condition = CONDITIONS[name]
    bound = 0.05 + 3 * math.sqrt(0.05 * 0.95 / choices)  # three standard deviations above 5 %
    share = false_verdicts(choices, **condition)
    record_property("false verdicts", f"{100 * share:.1f} %")
    assert share <= (bound if condition.get("seeds", 3) >= 3 else 0.0)


def test_a_lead_that_there_is_is_found():
    """The rule is not calibrated by saying nothing."""
    rng, right = np.random.default_rng(5), 0
    for _ in range(100):
        rows, untrained = choice(rng, seeds=5, spread=0.005, classes=0.01, count=20, below=0.1)
        best = row_of("best", np.array([rows[0].by_class(key).means + 0.05 for key in rows[0].members]))
        pairs = leads([best, *rows], untrained, sign=1)
        right += all(pair.decided and pair.winner is best for pair in pairs)
    assert right > 80

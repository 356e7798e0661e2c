"""Which values come next: each sampler against what its rule gives by hand."""

import itertools

import numpy as np
import pytest

from nearkin.config.search import declared
from nearkin.config.spec import make_spec
from nearkin.errors import NearkinError
from nearkin.registry import LOSSES, MINERS
from nearkin.spaces import Choice, Log, Uniform, Whole
from nearkin.tuning.plan import Search
from nearkin.tuning.propose import (
    Tried,
    begins_with_own,
    decoded,
    distributions,
    drawn,
    encoded,
    grid,
    planned,
    propose,
    scans,
)

SPACE = {"loss.alpha": Uniform(2, 20, 2), "loss.beta": Uniform(10, 100, 10), "loss.base": Uniform(0, 1, 0.1)}
OWN = {"loss.alpha": 2.0, "loss.beta": 40.0, "loss.base": 0.5}


def search(sampler="coordinate", trials=31, space=None, **more):
    spec = make_spec({"loss": "multi_similarity", "epochs": 9, **OWN})
    return Search("toy", ("ms",), (spec,), space or SPACE, trials, sampler, (9,), 1, 3, **more)


def worth(values):
    """A toy with one best place; the keys matter together."""
    a, b, base = values["loss.alpha"], values["loss.beta"], values["loss.base"]
    return -((a - 12) ** 2) / 40 - ((b - 70) ** 2) / 900 - 3 * (base - 0.8) ** 2 + 0.002 * a * b * base


def go(own, trials=None):
    """All trials of a search, one after the other."""
    tried = []
    for number in range(trials or planned(own)):
        values = propose(own, tried)
        tried.append(Tried(number, values, worth(values), True))
    return tried


def test_coordinate_search_is_the_procedure_by_hand():
    """Psomas 2020: one setting after the other over its grid, each time the best value is kept."""
    own = search()
    best = dict(OWN)
    expected = [dict(best)]
    for key, space in SPACE.items():                                # 10 values of each
        values = space.values(10)
        results = []
        for value in values:
            expected.append(best | {key: value})
            results.append(worth(best | {key: value}))
        candidates = [(worth(best), best[key]), *zip(results, values, strict=True)]
        best[key] = max(candidates, key=lambda pair: pair[0])[1]
    tried = go(own)
    assert [t.values for t in tried] == expected
    found = max(tried, key=lambda t: t.score)
    assert found.values == best
    assert found.score == max(worth(values) for values in expected)


def test_coordinate_search_waits_for_a_scan_before_the_next():
    own = search(trials=7)
    assert [len(values) for values in scans(own)] == [2, 2, 2]
    first = Tried(0, OWN, 1.0, True)
    second = Tried(1, propose(own, [first]), None, False)
    third = propose(own, [first, second])                           # of the same scan: independent of the second
    assert third["loss.alpha"] == 20
    assert propose(own, [first, second, Tried(2, third, 5.0, True)]) is None
    over = [first, Tried(1, second.values, None, True), Tried(2, third, 5.0, True)]     # the second has failed
    assert propose(own, over) == {"loss.alpha": 20.0, "loss.beta": 10.0, "loss.base": 0.5}


def test_grid_has_every_combination_once():
    own = search("grid", trials=30)
    assert planned(own) == 27                                       # 3 x 3 x 3
    values = [SPACE[key].values(3) for key in SPACE]
    assert [(v[0], v[-1]) for v in values] == [(2, 20), (10, 100), (0, 1)]
    expected = [dict(zip(SPACE, point, strict=True)) for point in itertools.product(*values)]
    assert grid(own) == expected == [t.values for t in go(own)]
    with pytest.raises(NearkinError, match=r"7 trials for 3 keys .*at least 8 are needed"):
        grid(search("grid", trials=7))


def test_random_draws_are_a_function_of_seed_and_number():
    own = search("random", trials=200)
    tried = go(own)
    assert tried[0].values == OWN                                   # the row's own values first
    assert [t.values for t in go(own, 5)] == [t.values for t in tried[:5]]
    alphas = [t.values["loss.alpha"] for t in tried[1:]]
    assert set(alphas) == set(SPACE["loss.alpha"].points())
    assert len({tuple(t.values.values()) for t in tried}) > 150


def test_draws_lie_in_their_spaces_and_are_short():
    random = np.random.default_rng(0)
    for space in (Uniform(0.1, 2), Log(1e-6, 1), Whole(5, 50), Whole(1, 1000, log=True), Choice(["a", "b"])):
        values = [drawn(space, random) for _ in range(300)]
        assert all(space.contains(value) for value in values)
        assert all(len(f"{value:.10g}".replace("-", "")) <= 10 for value in values if isinstance(value, float))
    logs = np.log10([drawn(Log(1e-6, 1), random) for _ in range(2000)])
    assert np.histogram(logs, 6, (-6, 0))[0].min() > 250            # evenly in the logarithm


def spaces():
    for registry in (LOSSES, MINERS):
        for name in registry.names():
            for key, space in declared(registry[name]).items():
                yield pytest.param(space, id=f"{name}.{key}")


@pytest.mark.parametrize("space", list(spaces()))
def test_what_optuna_sees_leads_back_to_the_value(space):
    own = search(space={"loss.alpha": space})
    distribution = distributions(own)["loss.alpha"]
    for value in space.values(7):
        code = encoded(space, value)
        assert distribution._contains(distribution.to_internal_repr(code))
        assert decoded(space, code) == pytest.approx(value, rel=1e-3) if isinstance(value, float) else value
        if space.points() is not None:
            assert decoded(space, code) == value                    # exactly: equal values, equal hash


def test_a_value_outside_is_the_nearest_for_optuna():
    assert encoded(Uniform(2, 100, 2), 1.0) == 0
    assert encoded(Uniform(2, 100, 2), 41.2) == 20                  # 42
    assert encoded(Log(1e-6, 1), 3.0) == 1
    assert encoded(Choice(["a", "b"]), "c") == 0


def test_a_search_without_own_values_has_no_such_trial():
    own = search("random", space={"train.clip": Uniform(1, 10)})
    assert own.start == {"train.clip": None}
    assert not begins_with_own(own)
    assert 1 <= propose(own, [])["train.clip"] <= 10

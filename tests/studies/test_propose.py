"""Which values come next: each sampler against what its rule gives by hand."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from nearkin.config.search import declared
from nearkin.config.spec import make_spec
from nearkin.errors import NearkinError
from nearkin.registry import LOSSES, MINERS
from nearkin.spaces import Space
from nearkin.studies.propose import (
    COMPLETE,
    FAILED,
    Trial,
    begins_with_own,
    drawn,
    grid,
    groups,
    planned,
    propose,
    scans,
)
from nearkin.studies.search import Search

SPACE = {"loss.alpha": Space(2, 20, 2), "loss.beta": Space(10, 100, 10), "loss.base": Space(0, 1, 0.1)}
OWN = {"loss.alpha": 2.0, "loss.beta": 40.0, "loss.base": 0.5}


def search(sampler="coordinate", trials=31, space=None, **more):
    spec = make_spec({"loss": "multi_similarity", "epochs": 9, **OWN})
    return Search("toy", ("ms",), (spec,), ("0" * 12,), space or SPACE, trials, sampler, (9,), 1, 3, **more)


def worth(values):
    """A toy with one best place; the keys matter together."""
    a, b, base = values["loss.alpha"], values["loss.beta"], values["loss.base"]
    return -((a - 12) ** 2) / 40 - ((b - 70) ** 2) / 900 - 3 * (base - 0.8) ** 2 + 0.002 * a * b * base


def go(own, trials=None):
    """All trials of a search, one after the other."""
    tried = []
    for number in range(trials or planned(own)):
        values = propose(own, tried, [])
        tried.append(Trial(number, values, (worth(values),), COMPLETE))
    return tried


def test_coordinate_search_is_the_procedure_by_hand():
    """Psomas 2020: one setting after the other over its grid, each time the best value is kept."""
    own = search()
    best = dict(OWN)
    expected = [dict(best)]
    for key, space in SPACE.items():  # 10 values of each
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
    first = Trial(0, OWN, (1.0,), COMPLETE)
    second = Trial(1, propose(own, [first], []))
    third = propose(own, [first, second], [])  # of the same scan: independent of the second
    assert third["loss.alpha"] == 20
    assert propose(own, [first, second, Trial(2, third, (5.0,), COMPLETE)], []) is None
    over = [first, Trial(1, second.values, state=FAILED), Trial(2, third, (5.0,), COMPLETE)]
    assert propose(own, over, []) == {"loss.alpha": 20.0, "loss.beta": 10.0, "loss.base": 0.5}


def test_scans_compete_each_by_itself():
    assert groups(search(trials=8)) == [1, 3, 2, 2]
    assert groups(search("random", trials=8)) == [8]
    few = {"loss.alpha": Space(options=[2, 4]), "loss.base": Space(0, 1, 0.1)}
    assert groups(search(trials=12, space=few)) == [1, 2, 9]  # the first key has two values: the rest is the other's
    assert groups(search(trials=99, space=few)) == [1, 2, 11]  # and no more than there are


def test_grid_has_every_combination_once():
    own = search("grid", trials=30)
    assert planned(own) == 27  # 3 x 3 x 3
    values = [SPACE[key].values(3) for key in SPACE]
    assert [(v[0], v[-1]) for v in values] == [(2, 20), (10, 100), (0, 1)]
    expected = [dict(zip(SPACE, point, strict=True)) for point in itertools.product(*values)]
    assert grid(own) == expected == [t.values for t in go(own)]
    with pytest.raises(NearkinError, match=r"7 trials for 3 keys .*at least 8 are needed"):
        grid(search("grid", trials=7))


def test_random_draws_are_a_function_of_seed_and_number():
    own = search("random", trials=200)
    tried = go(own)
    assert tried[0].values == OWN  # the row's own values first
    assert [t.values for t in go(own, 5)] == [t.values for t in tried[:5]]
    alphas = [t.values["loss.alpha"] for t in tried[1:]]
    assert set(alphas) == set(SPACE["loss.alpha"].values(99))
    assert len({tuple(t.values.values()) for t in tried}) > 150


def spaces():
    for registry in (LOSSES, MINERS):
        for name in registry.names():
            for key, space in declared(registry[name]).items():
                yield pytest.param(space, id=f"{name}.{key}")
    for space in (Space(5, 50, whole=True), Space(1, 1000, log=True, whole=True), Space(options=["a", "b"])):
        yield pytest.param(space, id=str(space))


@pytest.mark.parametrize("space", list(spaces()))
def test_draws_lie_in_their_space_and_are_short(space):
    own = search("random", space={"loss.alpha": space})
    values = [drawn(own, number)["loss.alpha"] for number in range(12)]
    assert all(space.contains(value) for value in values)
    assert all(
        len(f"{value:.10g}".replace("-", "")) <= 10
        for value in values
        if isinstance(value, float) and not space.options
    )
    if space.count is not None:  # exactly: equal values, equal hash
        assert set(values) <= set(space.values(10**6))
    distribution = space.distribution()
    for value in space.values(7):
        assert distribution._contains(distribution.to_internal_repr(space.nearest(value)))


def test_a_logarithmic_space_is_drawn_evenly_in_the_logarithm():
    own = search("random", space={"train.lr": Space(1e-6, 1, log=True)})
    logs = np.log10([drawn(own, number)["train.lr"] for number in range(300)])
    assert np.histogram(logs, 3, (-6, 0))[0].min() > 70


def test_a_search_without_own_values_has_no_such_trial():
    own = search("random", space={"train.clip": Space(1, 10)})
    assert own.start == {"train.clip": None}
    assert not begins_with_own(own)
    assert 1 <= propose(own, [], [])["train.clip"] <= 10


def test_equal_searches_have_one_key_and_others_another():
    own = search("random")
    assert own.key == search("random", trials=60).key  # more of the same
    assert own.key != search("grid").key
    assert search("grid").key != search("grid", trials=60).key
    assert own.key != search("random", space={**SPACE, "loss.alpha": Space(2, 40, 2)}).key
    assert own.key != replace(own, starts=("1" * 12,)).key
    assert own.key == replace(own, study="another", labels=("x",)).key

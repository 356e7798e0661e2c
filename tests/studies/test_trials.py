"""Trials in the storage: none is lost, none is done twice, and the best go on; without any training."""

import json
from contextlib import suppress

import optuna
import pytest

from nearkin.config.spec import make_spec
from nearkin.errors import NearkinError
from nearkin.spaces import Space
from nearkin.studies.propose import COMPLETE, FAILED, PRUNED, RUNNING
from nearkin.studies.search import Search
from nearkin.studies.trials import Ledger, open_storage

SPACE = {"loss.alpha": Space(2, 100, 2), "loss.base": Space(0, 1, 0.1)}


def search(sampler="random", trials=9, rungs=(9,), keep=1, space=SPACE, seed=3, select="map_at_r", starts=("0" * 12,)):
    spec = make_spec({"loss": "multi_similarity", "epochs": rungs[-1], "train.select": select})
    return Search("toy", ("ms",), (spec,), starts, space, trials, sampler, rungs, keep, seed)


@pytest.fixture
def storage(tmp_path):
    return open_storage(f"sqlite:///{tmp_path}/tune.db")


def worth(values, rung=0):
    return -abs(values["loss.alpha"] - 60) / 100 + values["loss.base"] / 10 + rung


def carried_on(ledger):
    """All claims that can be had, each reported at once."""
    found = []
    while (claim := ledger.claim()) is not None:
        found.append((claim.number, claim.rung))
        ledger.report(claim, worth(claim.values, claim.rung), [])
    return found


@pytest.mark.parametrize("sampler", ["random", "tpe", "coordinate"])
def test_every_trial_is_claimed_once(storage, tmp_path, sampler):
    ledger = Ledger(search(sampler), storage, tmp_path / "locks")
    assert carried_on(ledger) == [(i, 0) for i in range(9)]
    assert ledger.over()
    trials = ledger.trials()
    assert {t.state for t in trials} == {COMPLETE}
    assert trials[0].values == {"loss.alpha": 2.0, "loss.base": 0.5}  # the row's own
    best = max(trials, key=lambda t: worth(t.values))
    assert ledger.best() == best
    assert best.score == pytest.approx(worth(best.values))


@pytest.mark.parametrize("sampler", ["random", "tpe", "coordinate"])
def test_a_search_that_is_opened_again_goes_on_as_if_it_had_not_stopped(tmp_path, sampler):
    def values(name, stops):
        own = open_storage(f"sqlite:///{tmp_path}/{name}.db")
        for stop in (*stops, 6):
            ledger = Ledger(search(sampler, trials=6), own, tmp_path / name)
            for _ in range(stop - len(ledger.trials())):
                claim = ledger.claim()
                ledger.report(claim, worth(claim.values), [])
        return [t.values for t in ledger.trials()]

    assert values("whole", []) == values("stopped", [1, 4])


def test_two_processes_share_trials_and_a_dead_ones_are_taken_over(storage, tmp_path):
    first, second = (Ledger(search(trials=4), storage, tmp_path / "locks") for _ in range(2))
    claims = [first.claim(), second.claim(), first.claim()]
    assert [c.number for c in claims] == [0, 1, 2]
    claims[1].lock.release()  # what the system does when a process dies
    again = first.claim()
    assert (again.number, again.values) == (1, claims[1].values)  # the same trial, the same values
    last = first.claim()
    assert last.number == 3
    assert second.claim() is None  # all are under way
    assert not second.over()
    assert len(second.trials()) == 4


def test_a_failed_trial_counts_and_is_no_result(storage, tmp_path):
    ledger = Ledger(search(trials=2), storage, tmp_path / "locks")
    ledger.fail(ledger.claim(), "the loss became nan")
    claim = ledger.claim()
    ledger.report(claim, -5.0, ["abc"])
    assert ledger.over()
    assert [t.state for t in ledger.trials()] == [FAILED, COMPLETE]
    assert ledger.trials()[0].error == "the loss became nan"
    assert ledger.best().number == 1


def test_where_low_is_better_the_lowest_wins(storage, tmp_path):
    ledger = Ledger(search(trials=3, select="hubness@10"), storage, tmp_path / "locks")
    for score in (0.5, 0.2, 0.7):
        ledger.report(ledger.claim(), score, [])
    assert (ledger.best().number, ledger.best().score) == (1, 0.2)
    assert [t.score for t in ledger.trials()] == [0.5, 0.2, 0.7]


def test_halving_against_a_loop(storage, tmp_path):
    """9 trials at epoch 1; the best 3 go on to epoch 3, the best one to epoch 9."""
    own = search(trials=9, rungs=(1, 3, 9), keep=3)
    ledger = Ledger(own, storage, tmp_path / "locks")
    claims = carried_on(ledger)
    alive, expected = list(range(9)), []
    values = {t.number: t.values for t in ledger.trials()}
    for rung in range(3):
        expected += [(n, rung) for n in sorted(alive)]
        alive = sorted(alive, key=lambda n: (-worth(values[n], rung), n))[: 9 // 3 ** (rung + 1)]
    assert claims == expected
    assert ledger.over()
    states = {t.number: t.state for t in ledger.trials()}
    assert sum(state == COMPLETE for state in states.values()) == 1
    assert sum(state == PRUNED for state in states.values()) == 8
    assert ledger.best().values == max(values.values(), key=worth)
    assert ledger.epochs() == 6 * 1 + 2 * 3 + 1 * 9  # of 81


@pytest.mark.parametrize(("lower", "best"), [(False, 3), (True, 0)])
def test_halving_goes_by_the_last_rung_and_by_the_metric(storage, tmp_path, lower, best):
    """At the second rung the two that went on change places; where low is better the other half goes on."""
    scores = [[0.2, 0.1, 0.5, 0.4], [0.1, 0.2, 0.4, 0.5], [0.3, 0.3, 0.3, 0.3]]  # rung, trial
    own = search(trials=4, rungs=(1, 2, 4), keep=2, select="hubness@10" if lower else "map_at_r")
    ledger = Ledger(own, storage, tmp_path / "locks")
    claims = []
    while (claim := ledger.claim()) is not None:
        claims.append((claim.number, claim.rung))
        ledger.report(claim, scores[claim.rung][claim.number], [])
    half = [0, 1] if lower else [2, 3]
    assert claims == [*((n, 0) for n in range(4)), *((n, 1) for n in half), (best, 2)]
    assert ledger.best().number == best


def test_halving_waits_for_all_trials_of_a_rung(storage, tmp_path):
    first, second = (Ledger(search(trials=3, rungs=(1, 3), keep=3), storage, tmp_path / "locks") for _ in range(2))
    held = second.claim()
    for _ in range(2):
        claim = first.claim()
        first.report(claim, worth(claim.values), [])
    assert first.claim() is None  # one of them is not there yet
    second.report(held, 9.0, [])
    claim = first.claim()
    assert (claim.number, claim.rung) == (held.number, 1)  # the best of the three goes on
    assert [t.state for t in first.trials()].count(PRUNED) == 2


def test_another_search_has_trials_of_its_own(storage, tmp_path):
    assert len(carried_on(Ledger(search(), storage, tmp_path / "locks"))) == 9
    wider = {**SPACE, "loss.alpha": Space(2, 200, 2)}
    others = [search(space=wider), search("tpe"), search(starts=("1" * 12,)), search(seed=4), search(rungs=(8,))]
    for other in others:
        assert Ledger(other, storage, tmp_path / "locks").trials() == []
    more = Ledger(search(trials=12), storage, tmp_path / "locks")  # more of the same is the same search
    assert len(carried_on(more)) == 3


class Killed(BaseException):
    """As kill -9: nothing of ours is done after it."""


@pytest.mark.parametrize("sampler", ["random", "tpe", "grid", "coordinate"])
def test_killed_at_any_call_of_optuna(tmp_path, monkeypatch, sampler):
    """A kill before the n-th thing that is told to Optuna's storage, for every n: the trials are those of a search that
    was never killed, and so is the best one."""

    def whole(name, kill_at=None):
        own = search(sampler, trials=7, rungs=(1, 3) if sampler != "tpe" else (3,), keep=2 if sampler != "tpe" else 1)
        calls = 0

        def counted(method):
            def call(*args, **more):
                nonlocal calls
                calls += 1
                if calls == kill_at:
                    raise Killed
                return method(*args, **more)

            return call

        storage = optuna.storages.InMemoryStorage()  # it is quicker, and is told the same things
        with monkeypatch.context() as patch:
            for method in (
                "create_new_trial",
                "set_trial_param",
                "set_trial_user_attr",
                "set_trial_intermediate_value",
                "set_trial_state_values",
            ):
                patch.setattr(type(storage), method, counted(getattr(type(storage), method)))
            for _ in range(3):
                with suppress(Killed):
                    ledger = Ledger(own, storage, tmp_path / name)
                    carried_on(ledger)
        assert ledger.over()
        return [(t.number, t.values, t.scores, t.state) for t in ledger.trials()], ledger.best().number, calls

    trials, best, calls = whole("straight")
    assert calls > 15
    for kill_at in range(1, calls + 1):
        assert whole(f"killed{kill_at}", kill_at)[:2] == (trials, best), kill_at


def test_halving_of_a_coordinate_search_is_scan_by_scan(storage, tmp_path):
    """The row's own values, then of each scan of 4 the best two to the second rung, the best one to the third."""
    own = search("coordinate", trials=9, rungs=(1, 2, 4), keep=2)
    ledger = Ledger(own, storage, tmp_path / "locks")
    claims = carried_on(ledger)
    values = {t.number: t.values for t in ledger.trials()}
    expected = [(0, 0), (0, 1), (0, 2)]
    for first in (1, 5):
        scan = list(range(first, first + 4))
        for rung in range(3):
            expected += [(n, rung) for n in sorted(scan)]
            scan = sorted(scan, key=lambda n: (-worth(values[n], rung), n))[: max(1, 4 // 2 ** (rung + 1))]
    assert claims == expected
    first = max((values[n] for n in range(5)), key=worth)["loss.alpha"]
    assert {values[n]["loss.alpha"] for n in range(5, 9)} == {first}
    assert ledger.best().values == max(values.values(), key=worth)


@pytest.mark.parametrize("url", ["sqlite:////nowhere/at/all/tune.db", "nosuchdatabase://here", "words"])
def test_a_storage_that_cannot_be_reached_is_one_sentence(url):
    with pytest.raises(NearkinError, match=r"storage=.* cannot be reached"):
        open_storage(url)


def test_what_is_stored_can_be_read_without_nearkin(storage, tmp_path):
    ledger = Ledger(search(trials=2), storage, tmp_path / "locks")
    carried_on(ledger)
    plain = optuna.load_study(study_name=ledger.name, storage=storage)
    assert [t.state.name for t in plain.trials] == ["COMPLETE"] * 2
    assert plain.best_value == ledger.best().score
    json.dumps(plain.user_attrs)
    assert RUNNING not in {t.state for t in ledger.trials()}

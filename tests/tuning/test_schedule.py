"""The time of `nearkin choose`: what is planned fits, and more time is never worse."""

from itertools import pairwise

import pytest

from nearkin.tuning._schedule import FINALISTS, LEAST, MOST_SEEDS, START, UNITS, Costs, halved, plan

COSTS = Costs(batch=0.1, validate=0.5, finish=1.0, test=2.0, spent=3.0)


def by_hand(found, costs, workers):
    """Seconds to wait: every run goes to the worker that is free first, and a stage begins when the last is over."""
    unit = found.batches * costs.batch + costs.validate
    stages = [[START + unit] * found.methods]
    if found.methods > FINALISTS:
        stages.append([START + unit] * halved(found.methods))
    stages += [[START + UNITS * unit + costs.finish] * found.finalists] * found.seeds
    total = 0.0
    for runs in stages:
        free = [0.0] * workers
        for run in runs:
            free[free.index(min(free))] += run
        total += max(free)
    return total


@pytest.mark.parametrize("workers", [1, 2, 8])
@pytest.mark.parametrize("seconds", [15, 30, 60, 180, 600, 1800, 36000])
def test_it_fits_and_no_step_more_would(seconds, workers):
    found = plan(seconds, workers, COSTS, methods=8, per_pass=40)
    time = 0.75 * seconds - COSTS.spent - COSTS.test
    assert by_hand(found, COSTS, workers) <= time + 1e-9 or found.batches == 0
    if found.batches and not found.whole:
        longer = type(found)(found.batches + 1, found.methods, found.finalists, found.seeds, False)
        assert by_hand(longer, COSTS, workers) > time
    if found.whole and found.seeds < MOST_SEEDS:
        more = type(found)(found.batches, found.methods, found.finalists, found.seeds + 1, True)
        assert by_hand(more, COSTS, workers) > time


def test_more_time_is_never_worse():
    plans = [plan(s, 2, COSTS, methods=8, per_pass=40) for s in range(10, 3000, 10)]
    keys = [(p.methods, p.batches, p.seeds) for p in plans]
    assert all(a[0] <= b[0] for a, b in pairwise(keys))
    whole = [k for k in keys if k[0] == 8]
    assert whole == sorted(whole)
    assert (plans[-1].seeds, plans[-1].batches) == (MOST_SEEDS, 100)  # 20 passes of 40 batches in 8 units
    assert plan(0.5, 2, COSTS, methods=8, per_pass=40).batches == 0


@pytest.mark.parametrize("workers", [1, 2])
def test_no_method_is_dropped_after_a_step_or_two(workers):
    """Rather fewer methods, each for long enough to say something."""
    for seconds in range(5, 600, 5):
        found = plan(seconds, workers, COSTS, methods=8, per_pass=40)
        assert found.methods <= 1 or found.batches >= LEAST
    tiny = plan(600, workers, COSTS, methods=8, per_pass=2)  # 20 passes are 5 steps per unit
    assert (tiny.methods, tiny.batches, tiny.whole) == (8, 5, True)

"""Which values a trial tries next. Every proposal is a function of the search and of the trials before it: a search
that is killed and begun again goes on as if nothing had happened.

    tpe           Bergstra et al. 2011, by Optuna; the first quarter at random
    random        independent draws
    grid          all combinations of as many values of each key as the trials allow
    coordinate    one key after the other, the others at the best values so far (Psomas 2020, section 5.2)

The first trial has the row's own values, inside its space or not, so that a search never ends below them on validation.
A grid is what it is and has no such trial.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nearkin.errors import NearkinError
from nearkin.spaces import Log, Space, Uniform, Whole
from nearkin.tuning.plan import Search


@dataclass(frozen=True)
class Tried:
    """A trial: its values, and the result of its last rung; None while there is none, or where it failed."""

    number: int
    values: Mapping[str, Any]
    score: float | None = None                  # the larger the better
    over: bool = False                          # has it ended?


def planned(search: Search) -> int:
    """How many trials the search has: `trials`, or as many as the grid has points."""
    return len(grid(search)) if search.sampler == "grid" else search.trials


def begins_with_own(search: Search) -> bool:
    """Does the first trial have the row's own values?"""
    return search.sampler != "grid" and None not in search.start.values()


def propose(search: Search, tried: Sequence[Tried]) -> dict[str, Any] | None:
    """The values of the next trial; None while it depends on trials that are under way, or when Optuna decides."""
    number = len(tried)
    if search.sampler == "grid":
        return grid(search)[number]
    if number == 0 and begins_with_own(search):
        return search.start
    if search.sampler == "coordinate":
        return coordinate(search, tried)
    if search.sampler == "random":
        random = np.random.default_rng((search.seed, number))
        return {key: drawn(space, random) for key, space in search.space.items()}
    raise NearkinError(f"sampler {search.sampler} proposes nothing by itself")


def grid(search: Search) -> list[dict[str, Any]]:
    """All combinations of n values of each key, n as large as the trials allow."""
    n = int(search.trials ** (1 / len(search.space)) + 1e-9)
    if n < 2:
        raise NearkinError(
            f"sampler grid, row {search.name}: {search.trials} trials for {len(search.space)} keys "
            f"({', '.join(search.space)}): at least {2 ** len(search.space)} are needed, or another sampler"
        )
    values = [space.values(n) for space in search.space.values()]
    return [dict(zip(search.space, point, strict=True)) for point in itertools.product(*values)]


def scans(search: Search) -> list[list[Any]]:
    """The values that a coordinate search tries of each key: the trials are shared out evenly among the keys."""
    left = search.trials - begins_with_own(search)
    keys = len(search.space)
    if left < 2 * keys:
        raise NearkinError(
            f"sampler coordinate, row {search.name}: {search.trials} trials for {keys} keys "
            f"({', '.join(search.space)}): at least {2 * keys + begins_with_own(search)} are needed"
        )
    shares = [left // keys + (i < left % keys) for i in range(keys)]
    return [space.values(n) for space, n in zip(search.space.values(), shares, strict=True)]


def coordinate(search: Search, tried: Sequence[Tried]) -> dict[str, Any] | None:
    """The next value of the key that is being scanned, the keys before it at their best, those after it as they began.
    A new scan waits until the trials of the last one are over."""
    best = {key: value if value is not None else space.values(1)[0]
            for (key, value), space in zip(search.start.items(), search.space.values(), strict=True)}  # fmt: skip
    first = int(begins_with_own(search))
    before = list(tried[:first])
    place = first
    for key, values in zip(search.space, scans(search), strict=True):
        scan = list(tried[place : place + len(values)])
        if len(scan) < len(values):
            return best | {key: values[len(scan)]} if all(t.over for t in before) else None
        before = before + scan
        if not all(t.over for t in before):
            return None
        known = [t for t in before if t.score is not None and all(t.values[k] == best[k] for k in best if k != key)]
        if known:
            best[key] = max(known, key=lambda t: (t.score, -t.number)).values[key]
        place += len(values)
    random = np.random.default_rng((search.seed, len(tried)))       # a space had fewer values than its share
    return {key: drawn(space, random) for key, space in search.space.items()}


def drawn(space: Space, random: np.random.Generator) -> Any:
    """One value of a space at random."""
    points = space.points()
    if points is not None and not (isinstance(space, Whole) and space.log):
        return points[int(random.integers(len(points)))]
    if isinstance(space, Uniform):
        return rounded(space, float(random.uniform(space.low, space.high)))
    assert isinstance(space, Log | Whole)
    value = float(np.exp(random.uniform(np.log(space.low), np.log(space.high))))
    return round(value) if isinstance(space, Whole) else rounded(space, value)


def rounded(space: Space, value: float) -> float:
    """Four digits are enough to find a value and short enough to write down; none leaves the space."""
    low, high = space.ends()
    return min(max(float(f"{value:.4g}"), low), high)


def distributions(search: Search) -> dict[str, Any]:
    """The space as Optuna has it. Of a space that can be counted it sees places, not values: its own sums of floats
    would give one value two names."""
    from optuna import distributions as optuna

    found: dict[str, Any] = {}
    for key, space in search.space.items():
        points = space.points()
        if isinstance(space, Whole) and space.log:
            found[key] = optuna.IntDistribution(space.low, space.high, log=True)
        elif points is not None and all(isinstance(p, int | float) and not isinstance(p, bool) for p in points):
            found[key] = optuna.IntDistribution(0, len(points) - 1)
        elif points is not None:                                    # words have no order
            found[key] = optuna.CategoricalDistribution(list(range(len(points))))
        else:
            assert isinstance(space, Log | Uniform)
            found[key] = optuna.FloatDistribution(space.low, space.high, log=isinstance(space, Log))
    return found


def encoded(space: Space, value: Any) -> Any:
    """A value as Optuna has it; of one that lies outside, the nearest."""
    points = space.points()
    if points is None or (isinstance(space, Whole) and space.log):
        low, high = space.ends()
        return min(max(value, low), high)
    if value in points or not isinstance(value, int | float):
        return points.index(value) if value in points else 0
    return min(range(len(points)), key=lambda i: abs(points[i] - value))


def decoded(space: Space, code: Any) -> Any:
    """Back from what Optuna has."""
    points = space.points()
    if isinstance(space, Whole) and space.log:
        return code
    return rounded(space, code) if points is None else points[code]

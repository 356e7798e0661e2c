"""Which values a trial tries next. Every proposal is a function of the search and of the trials before it: a search
that is killed and begun again goes on as if nothing had happened.

    tpe           Bergstra et al. 2011, by Optuna; the first quarter at random
    random        independent draws, by Optuna
    grid          all combinations of as many values of each key as the trials allow
    coordinate    one key after the other, the others at the best values so far (Psomas 2020, section 5.2); it ends with
                  the last key

The first trial has the row's own values, inside its space or not, so that a search never ends below them on validation.
A grid is what it is and has no such trial.
"""

import itertools
import logging
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from nearkin.errors import NearkinError
from nearkin.studies.search import Search

RUNNING, COMPLETE, PRUNED, FAILED = "running", "complete", "stopped early", "failed"


@dataclass(frozen=True)
class Trial:
    """One trial as it is stored.

    Parameters:
        number: 0, 1, ...
        values: what it tries.
        scores: rung -> the validation metric there, mean over folds, as it is.
        state: running, complete, stopped early or failed.
        error: why it failed.
    """

    number: int
    values: Mapping[str, Any]
    scores: tuple[float, ...] = ()
    state: str = RUNNING
    error: str = ""

    @property
    def score(self) -> float | None:
        """At its last rung."""
        return self.scores[-1] if self.scores else None


def optuna_module() -> Any:
    """Optuna, quiet; a NearkinError where it is not installed."""
    try:
        import optuna
    except ImportError as error:
        raise NearkinError("tuning needs optuna: pip install 'nearkin[tune]'") from error
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    logging.getLogger("alembic").setLevel(logging.ERROR)
    return optuna


def planned(search: Search) -> int:
    """How many trials the search has: `trials`, or as many as the grid or the pass over the keys has points."""
    if search.sampler == "grid":
        return len(grid(search))
    return sum(groups(search)) if search.sampler == "coordinate" else search.trials


def begins_with_own(search: Search) -> bool:
    """Does the first trial have the row's own values?"""
    return search.sampler != "grid" and None not in search.start.values()


def groups(search: Search) -> list[int]:
    """How many trials compete with each other in successive halving: all of them; of a coordinate search each scan,
    because the next one begins at its best value."""
    if search.sampler != "coordinate":
        return [planned(search)]
    return [1] * begins_with_own(search) + [len(values) for values in scans(search)]


def propose(search: Search, trials: Sequence[Trial], stored: Sequence[Any]) -> dict[str, Any] | None:
    """The values of the next trial; None while it depends on trials that are under way. `stored` are the trials as
    Optuna has them."""
    if search.sampler == "grid":
        return grid(search)[len(trials)]
    if not trials and begins_with_own(search):
        return search.start
    if search.sampler == "coordinate":
        return coordinate(search, trials)
    return drawn(search, len(trials), stored)


def drawn(search: Search, number: int, stored: Sequence[Any] = ()) -> dict[str, Any]:
    """What Optuna's sampler draws as trial `number`: it is asked on a copy in memory, so that nothing is stored of a
    trial that is not whole."""
    optuna = optuna_module()
    seed = int.from_bytes(sha256(f"{search.seed} {number}".encode()).digest()[:4], "little") % 2**31
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of experimental options
        if search.sampler == "tpe":
            startup = max(2, search.trials // 4)
            sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=startup, constant_liar=True)
        else:
            sampler = optuna.samplers.RandomSampler(seed=seed)
        copy = optuna.create_study(sampler=sampler, direction="maximize")
        copy.add_trials(stored)
        asked = copy.ask({key: space.distribution() for key, space in search.space.items()})
    return {key: space.short(asked.params[key]) for key, space in search.space.items()}


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
    """The values that a coordinate search tries of each key: the trials are shared out evenly among the keys, but for
    keys that have fewer values than that."""
    left = search.trials - begins_with_own(search)
    keys = len(search.space)
    if left < 2 * keys:
        raise NearkinError(
            f"sampler coordinate, row {search.name}: {search.trials} trials for {keys} keys "
            f"({', '.join(search.space)}): at least {2 * keys + begins_with_own(search)} are needed"
        )
    spaces = list(search.space.values())
    tried: dict[int, list[Any]] = {}
    for i in sorted(range(keys), key=lambda i: search.trials if (count := spaces[i].count) is None else count):
        tried[i] = spaces[i].values(-(-left // (keys - len(tried))))
        left -= len(tried[i])
    return [tried[i] for i in range(keys)]


def coordinate(search: Search, trials: Sequence[Trial]) -> dict[str, Any] | None:
    """The next value of the key that is being scanned, the keys before it at their best, those after it as they began.
    A new scan waits until the trials of the last one are over; None after the last one, too."""
    best = {
        key: value if value is not None else space.values(1)[0]
        for (key, value), space in zip(search.start.items(), search.space.values(), strict=True)
    }
    place = int(begins_with_own(search))
    before = list(trials[:place])
    for key, values in zip(search.space, scans(search), strict=True):
        scan = list(trials[place : place + len(values)])
        if len(scan) < len(values):
            return best | {key: values[len(scan)]} if all(t.state != RUNNING for t in before) else None
        before = before + scan
        if any(t.state == RUNNING for t in before):
            return None
        whole = [t for t in before if t.state == COMPLETE and all(t.values[k] == best[k] for k in best if k != key)]
        if whole:
            best[key] = max(whole, key=lambda t: (search.sign * (t.score or 0.0), -t.number)).values[key]
        place += len(values)
    return None

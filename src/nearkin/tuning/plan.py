"""What is searched: for every row of a study its space, and how it is gone through.

    tune: {trials: 20}                          # in a study's file; the rest are defaults
    tune:
      trials: 20                                # for every row alike
      sampler: tpe                              # or random, grid, coordinate
      halving: 3                                # successive halving: of three trials one goes on
      seed: 1000                                # of all trials; the study's own seeds stay fresh
      search: {train.lr: {low: 1.0e-5, high: 1.0e-2, log: true}}        # over what loss and miner declare
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from nearkin.config.search import given_spaces, search_space
from nearkin.config.spec import RunSpec, make_spec
from nearkin.errors import NearkinError, choices
from nearkin.runs.spaces import check_spaces, value_now
from nearkin.spaces import Space
from nearkin.studies.cells import Study

SAMPLERS = ("tpe", "random", "grid", "coordinate")
KEYS = ("trials", "sampler", "halving", "seed", "search")
TRIALS = 20                                     # ours; Musgrave et al. 2020 have 50
SEED = 1000                                     # of trials: no seed that people give to final runs


@dataclass(frozen=True)
class Search:
    """The search of one row.

    Parameters:
        study: the name of its study.
        labels: its row.
        specs: one for each fold, of purpose trial, with the row's own settings.
        space: key -> space.
        trials: how many.
        sampler: tpe, random, grid or coordinate.
        rungs: the epochs after which trials are compared, the last one is all of them.
        keep: of so many trials one goes on; 1: all do.
        seed: what is drawn.
    """

    study: str
    labels: tuple[str, ...]
    specs: tuple[RunSpec, ...]
    space: dict[str, Space]
    trials: int
    sampler: str
    rungs: tuple[int, ...]
    keep: int
    seed: int

    @property
    def name(self) -> str:
        """Its row in words."""
        return ", ".join(self.labels) or self.study

    @property
    def select(self) -> str:
        """The validation metric that decides."""
        return self.specs[0].train.select

    @cached_property
    def start(self) -> dict[str, Any]:
        """The row's own value of every key of the space."""
        return {key: value_now(self.specs[0], key) for key in self.space}

    def specs_with(self, values: Mapping[str, Any]) -> list[RunSpec]:
        """The specs of a trial, one for each fold."""
        return [make_spec(spec, dict(values)) for spec in self.specs]


def searches_of(study: Study) -> list[Search]:
    """One search for each row of a study that is trained; whatever is wrong is said before anything is trained."""
    told = checked(study.tune or {}, study.name)
    seeds = {cell.seed for cell in study.cells}
    if told["seed"] in seeds:
        raise NearkinError(
            f"tune.seed={told['seed']} is a seed of study {study.name}: its final runs would repeat what chose their "
            "settings; take another"
        )
    rows: dict[tuple[str, ...], list[RunSpec]] = {}
    for cell in study.cells:
        if cell.baseline is None and cell.spec.train.epochs != 0 and cell.seed == study.cells[0].seed:
            trial = make_spec(cell.spec, {"purpose": "trial", "train.seed": told["seed"], "train.curve": False})
            rows.setdefault(cell.labels[: len(study.axes) - 1], []).append(trial)
    found = [_search(study.name, labels, tuple(specs), told) for labels, specs in rows.items()]
    unused = set(given_spaces(found[0].specs[0], told["search"])) if found else set()
    for each in found:
        unused -= each.space.keys()
    if unused:
        raise NearkinError(f"tune.search of study {study.name}: no row has a setting {sorted(unused)[0]}")
    return found


def checked(tune: Mapping[str, Any], where: str) -> dict[str, Any]:
    """`tune:` of a study's file with its defaults."""
    if not isinstance(tune, Mapping):
        raise NearkinError(f"tune={tune!r} of study {where}: a mapping, as {{trials: 20}}")
    for key in tune:
        if key not in KEYS:
            raise NearkinError(f"tune.{key} of study {where}: {choices(str(key), KEYS)}")
    told = {"trials": TRIALS, "sampler": "tpe", "halving": None, "seed": SEED, "search": {}} | dict(tune)
    if type(told["trials"]) is not int or told["trials"] < 1:
        raise NearkinError(f"tune.trials={told['trials']!r} of study {where}: a whole number, at least 1")
    if type(told["seed"]) is not int:
        raise NearkinError(f"tune.seed={told['seed']!r} of study {where}: a whole number")
    if told["sampler"] not in SAMPLERS:
        known = choices(str(told["sampler"]), SAMPLERS)
        raise NearkinError(f"tune.sampler={told['sampler']!r} of study {where}: {known}")
    if told["halving"] is not None:
        if type(told["halving"]) is not int or told["halving"] < 2:
            raise NearkinError(
                f"tune.halving={told['halving']!r} of study {where}: of how many trials one goes on; 2 or more"
            )
        if told["sampler"] not in ("random", "grid"):
            if "sampler" in tune:
                raise NearkinError(
                    f"tune.halving with sampler {told['sampler']}: what was stopped early is no result to learn from; "
                    "random or grid"
                )
            told["sampler"] = "random"
    if not isinstance(told["search"], Mapping):
        given = told["search"]
        raise NearkinError(f"tune.search={given!r} of study {where}: key -> space, as {{train.lr: [0.001, 0.01]}}")
    return told


def _has(spec: RunSpec, key: str) -> bool:
    """Is there such a setting? Another row's loss may have it."""
    try:
        value_now(spec, key)
    except NearkinError:
        return False
    return True


def _search(study: str, labels: tuple[str, ...], specs: tuple[RunSpec, ...], told: Mapping[str, Any]) -> Search:
    spec = specs[0]
    given = {key: space for key, space in given_spaces(spec, told["search"]).items() if _has(spec, key)}
    space = search_space(spec) | given
    row = ", ".join(labels) or study
    if not space:
        raise NearkinError(f"row {row} of study {study}: its parts declare no search space; give tune.search")
    check_spaces(spec, space)
    epochs = spec.train.epochs or 0
    rungs = [epochs]
    every = spec.train.eval_every                                   # a rung needs a validation result
    while told["halving"] and (first := rungs[0] // told["halving"] // every * every) >= 1:
        rungs.insert(0, first)
    return Search(study, labels, specs, space, told["trials"], told["sampler"], tuple(rungs), told["halving"] or 1,
                  told["seed"])  # fmt: skip

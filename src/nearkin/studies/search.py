"""What is searched: for every row of a study its space, and how it is gone through.

tune: {trials: 20}                          # in a study's file; the rest are defaults
tune:
  trials: 20                                # for every row alike
  epochs: 10                                # of a trial; else as many as the row has
  sampler: tpe                              # or random, grid, coordinate
  halving: 3                                # successive halving: of three trials one goes on
  seed: 1000                                # of all trials; the study's own seeds stay fresh
  source: Psomas 2020, table 15             # of what loss and miner declare only what this source has published
  search: {train.lr: {low: 1.0e-5, high: 1.0e-2, log: true}}        # over what loss and miner declare
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

from nearkin.config.search import given_spaces, search_space
from nearkin.config.spec import RunSpec, make_spec
from nearkin.errors import NearkinError, choices
from nearkin.evaluation.metrics.base import metric_of
from nearkin.runs.prepare import Data, prepare
from nearkin.runs.spaces import check_spaces, value_now
from nearkin.spaces import TABLE_15, Space
from nearkin.studies.cells import Study

SAMPLERS = ("tpe", "random", "grid", "coordinate")
VERSIONS = {"coordinate": 2}  # of what a sampler proposes; 2: keys with few values leave their share to the others
DEFAULTS: dict[str, Any] = {
    "trials": 20,  # ours; Musgrave et al. 2020 have 50
    "epochs": None,  # Psomas 2020, chapter 5: "not until full convergence"
    "sampler": "tpe",
    "halving": None,
    "seed": 1000,  # no seed that people give to final runs
    "source": None,
    "search": {},
}


@dataclass(frozen=True)
class Search:
    """The search of one row.

    Parameters:
        study: the name of its study.
        labels: its row.
        specs: one for each fold, of purpose trial, with the row's own settings.
        starts: the hashes of those runs as they are prepared here: data, split, weights and code count in them.
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
    starts: tuple[str, ...]
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

    @cached_property
    def key(self) -> str:
        """What its trials are stored under: equal for the same search, and for no other. More trials of those that are
        drawn one by one are the same search."""
        fixed = self.sampler in ("grid", "coordinate") or self.keep > 1
        sampler = f"{self.sampler} {VERSIONS[self.sampler]}" if self.sampler in VERSIONS else self.sampler
        parts = [
            self.starts,
            {key: str(space) for key, space in self.space.items()},
            sampler,
            self.rungs,
            self.keep,
            self.seed,
            self.trials if fixed else None,
        ]
        return sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:8]

    @property
    def select(self) -> str:
        """The validation metric that decides."""
        return self.specs[0].train.select

    @property
    def sign(self) -> int:
        """1 where a high value of the metric is better, -1 where a low one is."""
        return -1 if metric_of(self.select).sign < 0 else 1

    @cached_property
    def start(self) -> dict[str, Any]:
        """The row's own value of every key of the space."""
        return {key: value_now(self.specs[0], key) for key in self.space}

    def specs_with(self, values: Mapping[str, Any]) -> list[RunSpec]:
        """The specs of a trial, one for each fold."""
        return [make_spec(spec, dict(values)) for spec in self.specs]


def searches_of(study: Study, known: dict[str, Data] | None = None) -> list[Search]:
    """One search for each row of a study that is trained; whatever is wrong is said before anything is trained.
    `known` remembers data that were read."""
    settings = checked(study.tune or {}, study.name)
    known = {} if known is None else known
    if settings["seed"] in {cell.seed for cell in study.cells}:
        raise NearkinError(
            f"tune.seed={settings['seed']} is also a seed of study {study.name}: its final runs would repeat the "
            "trials that chose their settings; use another"
        )
    words = {"purpose": "trial", "train.seed": settings["seed"], "train.curve": False}
    words |= {} if settings["epochs"] is None else {"train.epochs": settings["epochs"]}
    rows: dict[tuple[str, ...], list[RunSpec]] = {}
    for cell in study.cells:
        if cell.baseline is None and cell.spec.train.epochs != 0 and cell.seed == study.cells[0].seed:
            rows.setdefault(cell.labels[: len(study.axes) - 1], []).append(make_spec(cell.spec, words))
    searches = [_search(study.name, labels, tuple(specs), settings, known) for labels, specs in rows.items()]
    unused = set(given_spaces(searches[0].specs[0], settings["search"])) if searches else set()
    for search in searches:
        unused -= search.space.keys()
    if unused:
        raise NearkinError(f"tune.search of study {study.name}: no row has a setting {sorted(unused)[0]}")
    return searches


def checked(tune: Mapping[str, Any], where: str) -> dict[str, Any]:
    """`tune:` of a study's file with its defaults."""
    if not isinstance(tune, Mapping):
        raise NearkinError(f"tune={tune!r} of study {where}: must be a mapping, such as {{trials: 20}}")
    for key in tune:
        if key not in DEFAULTS:
            raise NearkinError(f"tune.{key} of study {where}: {choices(str(key), DEFAULTS)}")
    settings = DEFAULTS | dict(tune)
    for key in ("trials", "epochs"):
        if (value := settings[key]) is not None and (type(value) is not int or value < 1):
            raise NearkinError(f"tune.{key}={value!r} of study {where}: must be a whole number of at least 1")
    if type(settings["seed"]) is not int:
        raise NearkinError(f"tune.seed={settings['seed']!r} of study {where}: must be a whole number")
    if (source := settings["source"]) is not None and not isinstance(source, str):
        raise NearkinError(
            f"tune.source={source!r} of study {where}: must name who published the spaces, such as {TABLE_15!r}"
        )
    if settings["sampler"] not in SAMPLERS:
        known = choices(str(settings["sampler"]), SAMPLERS)
        raise NearkinError(f"tune.sampler={settings['sampler']!r} of study {where}: {known}")
    if (halving := settings["halving"]) is not None:
        if type(halving) is not int or halving < 2:
            raise NearkinError(
                f"tune.halving={halving!r} of study {where}: one trial in this many goes on, so it must be 2 or more"
            )
        if "sampler" not in tune:
            settings["sampler"] = "random"
        if settings["sampler"] == "tpe":
            raise NearkinError(
                "tune.halving does not go with sampler tpe, which cannot learn from trials that were stopped early; "
                "use random, grid or coordinate"
            )
    if not isinstance(settings["search"], Mapping):
        given = settings["search"]
        raise NearkinError(
            f"tune.search={given!r} of study {where}: must map settings to spaces, as in {{train.lr: [0.001, 0.01]}}"
        )
    return settings


def _search(
    study: str, labels: tuple[str, ...], specs: tuple[RunSpec, ...], settings: Mapping[str, Any], known: dict[str, Data]
) -> Search:
    spec = specs[0]
    given = {key: space for key, space in given_spaces(spec, settings["search"]).items() if _has(spec, key)}
    space = {key: one for key, one in search_space(spec).items() if one.source.startswith(settings["source"] or "")}
    space |= given
    row = ", ".join(labels) or study
    if not space:
        of = f" of source {settings['source']!r}" if settings["source"] else ""
        raise NearkinError(f"row {row} of study {study}: its parts declare no search space{of}; give tune.search")
    check_spaces(spec, space)
    epochs, every = spec.train.epochs or 0, spec.train.eval_every  # a rung needs a validation result
    if epochs < every:
        raise NearkinError(
            f"row {row} of study {study}: trials of {epochs} epochs are never validated, because "
            f"train.eval_every={every}"
        )
    rungs = [epochs]
    while settings["halving"] and (first := rungs[0] // settings["halving"] // every * every) >= 1:
        rungs.insert(0, first)
    starts = tuple(prepare(spec, known).hash for spec in specs)
    return Search(
        study,
        labels,
        specs,
        starts,
        space,
        settings["trials"],
        settings["sampler"],
        tuple(rungs),
        settings["halving"] or 1,
        settings["seed"],
    )


def _has(spec: RunSpec, key: str) -> bool:
    """Is there such a setting? Another row's loss may have it."""
    try:
        value_now(spec, key)
    except NearkinError:
        return False
    return True

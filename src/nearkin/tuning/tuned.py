"""What a search gives: tuned rows beside the default ones of a study, and what tuning was worth on the test."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from nearkin.comparison.gather import Gathered
from nearkin.config.spec import make_spec
from nearkin.statistics.paired import Difference, holm, paired
from nearkin.studies.cells import Study
from nearkin.tuning.ledger import Ledger, Trial
from nearkin.tuning.propose import planned


@dataclass(frozen=True)
class Best:
    """The best trial of one row; None where none was trained to its end."""

    labels: tuple[str, ...]
    trial: Trial | None
    trials: int


def bests_of(ledgers: Sequence[Ledger]) -> list[Best]:
    """The best trial of every search."""
    return [Best(ledger.search.labels, ledger.best(), planned(ledger.search)) for ledger in ledgers]


def with_tuned(study: Study, bests: Sequence[Best], *, alone: bool = False) -> Study:
    """The study with a row `tuned` for each row that was searched: the same seeds and folds, the best trial's values.

    Parameters:
        study: the study, whose rows are `default`.
        bests: what the searches gave.
        alone: without the default rows.
    """
    values = {best.labels: best for best in bests if best.trial is not None}
    tuned = []
    for cell in study.cells:
        own = None if cell.baseline is not None else values.get(cell.labels[:-1])
        if own is not None and own.trial is not None:
            spec = make_spec(cell.spec, dict(own.trial.values))
            tuned.append(replace(cell, labels=(*cell.labels[:-1], "tuned"), spec=spec, trials=own.trials))
    kept = [cell for cell in study.cells if cell.baseline is not None] if alone else list(study.cells)
    return replace(study, cells=tuple([*kept, *tuned]))


@dataclass(frozen=True)
class Gain:
    """What tuning was worth for one row: tuned minus default, seed by seed."""

    name: str
    metric: str
    default: float
    tuned: float
    difference: Difference
    p_holm: float | None = None


def gains_of(gathered: Gathered, metrics: Sequence[str]) -> list[Gain]:
    """Tuned minus default on the test, over the seeds that both have, folds averaged first; Holm's correction is over
    the rows, for each metric."""
    rows: dict[tuple[str, ...], dict[str, dict[int, list[dict[str, Any]]]]] = {}
    for member in gathered.tested:
        *labels, settings = member.labels.values()
        if settings in ("default", "tuned") and member.baseline is None:
            own = rows.setdefault(tuple(labels), {"default": {}, "tuned": {}})
            own[settings].setdefault(member.seed, []).append(member.numbers("chosen", gathered.select))
    found: list[Gain] = []
    for metric in metrics:
        own_metric = []
        for row, both in rows.items():
            means = {kind: {seed: value for seed, folds in seeds.items() if (value := _mean(folds, metric)) is not None}
                     for kind, seeds in both.items()}  # fmt: skip
            seeds = [seed for seed in means["tuned"] if seed in means["default"]]
            if seeds:
                a, b = ([means[kind][seed] for seed in seeds] for kind in ("tuned", "default"))
                name = ", ".join(row) or gathered.name
                own_metric.append(Gain(name, metric, sum(b) / len(b), sum(a) / len(a), paired(a, b)))
        known = [gain for gain in own_metric if gain.difference.p is not None]
        for gain, p in zip(known, holm([g.difference.p or 0.0 for g in known]), strict=True):
            own_metric[own_metric.index(gain)] = replace(gain, p_holm=float(p))
        found += own_metric
    return found


def _mean(folds: list[dict[str, Any]], metric: str) -> float | None:
    values = [fold.get(metric) for fold in folds]
    return None if None in values or not values else sum(values) / len(values)  # type: ignore[arg-type]

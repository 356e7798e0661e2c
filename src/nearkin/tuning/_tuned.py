"""What a search gives: tuned rows beside the default ones of a study, and what tuning was worth on the test."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from nearkin.comparison.compare import WITHIN
from nearkin.comparison.gather import Gathered, Member
from nearkin.comparison.rows import row_of
from nearkin.config.spec import make_spec
from nearkin.evaluation.metrics.base import metric_of
from nearkin.statistics.verdict import Pair, judge
from nearkin.studies.cells import Study
from nearkin.studies.propose import Trial, planned
from nearkin.studies.trials import Ledger

SETTINGS = ("tuned", "default")  # labels of the last axis of a study that is searched


@dataclass(frozen=True)
class Best:
    """The best trial of one row; None where none was trained to its end."""

    labels: tuple[str, ...]
    trial: Trial | None
    trials: int
    epochs: int  # that the trials were trained for, all together


def bests_of(ledgers: Sequence[Ledger]) -> list[Best]:
    """The best trial of every search."""
    return [Best(ledger.search.labels, ledger.best(), planned(ledger.search), ledger.epochs()) for ledger in ledgers]


def with_tuned(study: Study, bests: Sequence[Best]) -> Study:
    """The study, whose rows are `default`, with a row `tuned` for each row that was searched: the same seeds and folds,
    the best trial's values."""
    values = {best.labels: best for best in bests if best.trial is not None}
    tuned = []
    for cell in study.cells:
        own = None if cell.baseline is not None else values.get(cell.labels[:-1])
        if own is not None and own.trial is not None:
            spec = make_spec(cell.spec, dict(own.trial.values))
            tuned.append(
                replace(
                    cell, labels=(*cell.labels[:-1], "tuned"), spec=spec, trials=own.trials, searched_epochs=own.epochs
                )
            )
    return replace(study, cells=(*study.cells, *tuned))


@dataclass(frozen=True)
class Gain:
    """What tuning was worth for one row of a study: tuned less default, and what may be said of it."""

    name: str
    metric: str
    pair: Pair  # the tuned row, then the default one


def gains_of(gathered: Gathered, metrics: Sequence[str]) -> list[Gain]:
    """Tuned less default on the test, on the seeds and folds that both have, as `nearkin compare` takes the difference
    of the two. The rows of a metric are one family."""
    members: dict[tuple[str, ...], dict[str, list[Member]]] = {}
    for member in gathered.tested:
        *words, settings = member.labels.values()
        if member.baseline is None and settings in SETTINGS:
            members.setdefault(tuple(words), {side: [] for side in SETTINGS})[settings].append(member)
    searched = {labels: sides for labels, sides in members.items() if all(sides.values())}
    gains = []
    for metric in metrics:
        pairs = []
        for labels, sides in searched.items():
            tuned, default = (row_of(", ".join([*labels, side]), sides[side], metric) for side in SETTINGS)
            pairs.append((tuned, default))
        within = WITHIN if metric_of(metric).is_share else None
        judged = judge(pairs, sign=metric_of(metric).sign, within=within)
        gains += [
            Gain(", ".join(labels) or gathered.name, metric, pair)
            for labels, pair in zip(searched, judged, strict=True)
        ]
    return gains

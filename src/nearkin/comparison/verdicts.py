"""Verdicts: which differences between methods can be believed, in plain words."""

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from nearkin.comparison.compare import Comparison
from nearkin.comparison.method import Method
from nearkin.evaluation.metrics.base import difference_unit, metric_of
from nearkin.statistics.groups import Groups, groups
from nearkin.statistics.intervals import ALPHA
from nearkin.statistics.unit import FEW, LEAST_SEEDS, Nothing
from nearkin.statistics.verdict import Outcome, Pair, judge
from nearkin.units import GAP


@dataclass(frozen=True)
class Family:
    """Pairs that stand in one table and are corrected together, and what they are, in words."""

    pairs: list[Pair]
    words: str


def first_family(comparison: Comparison) -> Family:
    """Every trained row against the one that was asked for, else the one that validation ranks first; without
    validation all pairs of trained rows, because a row that is picked by the test would be compared with its own
    luck."""
    reference = comparison.reference
    if reference is None or (len(comparison.trained) < 2 and reference.trained):
        return all_pairs(comparison)
    why = "as asked" if comparison.against else "which validation ranks first"
    return Family(pairs_with(comparison, reference), f"every trained row against {reference.name}, {why}")


@lru_cache(maxsize=16)  # ranks, tables and files all ask for them
def all_pairs(comparison: Comparison) -> Family:
    """Every two trained rows, corrected over all of them: one may pick any of them to talk about."""
    return Family(_judged(comparison, itertools.combinations(comparison.trained, 2)), "all pairs of trained rows")


def pairs_with(comparison: Comparison, reference: Method, *, trained: bool = True) -> list[Pair]:
    """The trained rows, or the untrained ones, less a reference."""
    methods = [method for method in comparison.methods if method.trained == trained and method is not reference]
    return _judged(comparison, ((method, reference) for method in methods))


def untrained_pairs(comparison: Comparison) -> list[Pair]:
    """The untrained rows less the one that validation ranks first (else the best trained one): beside the family, not
    tested."""
    first = comparison.reference or next(iter(comparison.trained), None)
    return [] if first is None else pairs_with(comparison, first, trained=False)


def ranks(comparison: Comparison) -> dict[str, tuple[int, int]]:
    """The ranks that each trained row may have: from 1 + the rows that are distinguishably better to N - those that are
    distinguishably worse, over all pairs. Empty where neither end of the metric is the good one."""
    if comparison.sign == 0:
        return {}
    pairs, rows = all_pairs(comparison).pairs, [method.row for method in comparison.trained]
    return {
        row.name: (1 + sum(pair.loser is row for pair in pairs), len(rows) - sum(pair.winner is row for pair in pairs))
        for row in rows
    }


def tied_for_first(comparison: Comparison) -> list[str]:
    """The rows that may be the best: no row is distinguishably better."""
    return [name for name, (low, _) in ranks(comparison).items() if low == 1]


def kinds(comparison: Comparison) -> tuple[Groups, list[str], list[str]] | Nothing | None:
    """Ranking against classification losses on what all have; None without both kinds, `Nothing` without anything in
    common."""
    sides = [[m for m in comparison.methods if m.kind == kind] for kind in ("ranking", "classification")]
    if not sides[0] or not sides[1]:
        return None
    compared = groups(*([method.row for method in side] for side in sides))
    ranking, classification = ([method.name for method in side] for side in sides)
    return compared if isinstance(compared, Nothing) else (compared, ranking, classification)


def _judged(comparison: Comparison, pairs: Iterable[tuple[Method, Method]]) -> list[Pair]:
    rows = [(first.row, second.row) for first, second in pairs]
    return judge(rows, sign=comparison.sign, within=comparison.within)


def amount(metric: str, value: float, *, signed: bool = False) -> str:
    """A difference as people read it: shares in points."""
    return difference_unit(metric).text(value, signed=signed)


def points(metric: str, value: float, *, signed: bool = False) -> str:
    """The same with its unit: 0.35 points."""
    return f"{amount(metric, value, signed=signed)}{' points' * metric_of(metric).is_share}"


def span(metric: str, low: float | None, high: float | None, *, signed: bool = False, cut: bool = False) -> str:
    """An interval in words: 0.21 to 0.95; a dash where there is none; a star where it is cut at the metric's range."""
    if low is None or high is None:
        return GAP
    return f"{amount(metric, low, signed=signed)} to {amount(metric, high, signed=signed)}{'*' if cut else ''}"


def verdict_words(pair: Pair, metric: str) -> str:
    """What may be said of a pair, in a sentence."""
    d = pair.difference
    if isinstance(pair.shared, Nothing):
        return f"{pair.shared.reason}: nothing to compare"
    assert d is not None
    small = "" if pair.within is None else points(metric, pair.within)
    if pair.outcome is Outcome.NONE:
        count = "one common seed" if d.n == 1 else f"{d.n} common seeds"
        return f"no verdict: {count}, {FEW}" if d.n < LEAST_SEEDS else "no verdict"
    if pair.outcome is Outcome.EQUIVALENT:
        return f"equivalent within ±{small}"
    if pair.outcome is Outcome.DISTINGUISHABLE:
        higher = pair.first if d.mean > 0 else pair.second  # where neither end is the good one
        leads = f"{higher.name} is higher" if pair.winner is None else f"{pair.winner.name} is ahead"
        less = f", by less than {small}" if pair.is_small else ""
        return f"distinguishable: {leads} by {points(metric, abs(d.mean))}{less}"
    words = f"undecided: {d.n} seeds could have shown a difference of {points(metric, pair.smallest or 0.0)}"
    if d.excludes_zero and pair.family > 1:
        words += f" (its interval excludes 0, but among {pair.family} comparisons that can be chance)"
    elif d.p is not None and d.p < ALPHA:
        words += " (the seeds agree, but other classes might not)"
    return words


def interval_words(pair: Pair, metric: str) -> str:
    """The two parts of a difference's interval: seeds ±0.41, classes ±0.72."""
    d = pair.difference
    if d is None or d.seeds is None:
        return GAP
    classes = f"classes ±{amount(metric, d.classes)}" if d.classes is not None else "seeds alone"
    return f"seeds ±{amount(metric, d.seeds)}, {classes}"

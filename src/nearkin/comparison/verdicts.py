"""Verdicts: which differences between methods can be believed, in plain words."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nearkin.comparison.compare import Comparison
from nearkin.comparison.method import Method
from nearkin.statistics.groups import Groups, groups
from nearkin.statistics.intervals import LEVEL
from nearkin.statistics.paired import Difference, holm, paired, probability_of_improvement, seeds_needed
from nearkin.studies.summary import is_share

ALPHA = 1 - LEVEL


@dataclass
class Pair:
    """Two methods, the better one first by the mean: their difference on common seeds, and what may be said of it."""

    first: str
    second: str
    difference: Difference | None               # first - second; None without common seeds
    p: float | None                             # after Holm's correction over all pairs that stand beside it
    improvement: float | None                   # the chance that a run of the first is better
    needed: int | None                          # seeds that would decide it; None: too many, or no spread is known
    verdict: str

    @property
    def decided(self) -> bool:
        """Can the two be told apart?"""
        return self.p is not None and self.p < ALPHA


def neighbours(comparison: Comparison) -> list[Pair]:
    """Each method with the next one, best first, after Holm's correction over these pairs."""
    methods = comparison.methods
    return _pairs(list(itertools.pairwise(methods)), comparison)


def all_pairs(comparison: Comparison) -> list[Pair]:
    """Every two methods, after Holm's correction over all of them: one may pick any of them to talk about."""
    return _pairs(list(itertools.combinations(comparison.methods, 2)), comparison)


def kinds(comparison: Comparison) -> tuple[Groups, list[str], list[str]] | None:
    """Ranking against classification losses on the seeds that all have; None without both kinds or common seeds."""
    sides = [[m for m in comparison.methods if m.kind == kind] for kind in ("ranking", "classification")]
    members = [*sides[0], *sides[1]]
    if not sides[0] or not sides[1]:
        return None
    seeds = sorted(set.intersection(*(set(method.values) for method in members)))
    if not seeds:
        return None
    values = [[[m.values[seed] for seed in seeds] for m in side] for side in sides]
    return groups(values[0], values[1]), [m.name for m in sides[0]], [m.name for m in sides[1]]


def _pairs(pairs: Sequence[tuple[Method, Method]], comparison: Comparison) -> list[Pair]:
    differences = [_difference(a, b) for a, b in pairs]
    plain = {i: d.p for i, d in enumerate(differences) if d is not None and d.p is not None}
    tested = list(plain)
    corrected = dict(zip(tested, holm(list(plain.values())), strict=True))
    found = []
    for i, ((a, b), d) in enumerate(zip(pairs, differences, strict=True)):
        p = float(corrected[i]) if i in corrected else None
        needed = None
        if d is not None and d.std is not None and not (p is not None and p < ALPHA):
            needed = seeds_needed(d.mean, d.std, ALPHA / max(len(tested), 1))
        better = _better(a, b, comparison.better)
        found.append(Pair(a.name, b.name, d, p, better, needed, _words(d, p, needed, len(tested), comparison, a, b)))
    return found


def _difference(a: Method, b: Method) -> Difference | None:
    """On the blocks and seeds that both have."""
    blocks = [block for block in a.blocks if block in b.blocks]
    if not blocks:
        return None
    seeds = sorted(set.intersection(*(set(m.blocks[block]) for m in (a, b) for block in blocks)))
    if not seeds:
        return None
    first, second = (np.array([[m.blocks[block][seed] for block in blocks] for seed in seeds]).mean(1) for m in (a, b))
    return paired(first, second)


def _better(a: Method, b: Method, better: str) -> float | None:
    first, second = (list(method.values.values()) for method in (a, b))
    if not first or not second:
        return None
    return probability_of_improvement(first, second) if better == "high" else probability_of_improvement(second, first)


def amount(metric: str, value: float, *, signed: bool = False) -> str:
    """A difference as people read it: shares in points."""
    scale, digits = (100, 2) if is_share(metric) else (1, 3)
    return f"{scale * value:{'+' if signed else ''}.{digits}f}"


def span(metric: str, low: float | None, high: float | None, *, signed: bool = False) -> str:
    """An interval in words: 0.21 to 0.95; a dash where there is none."""
    if low is None or high is None:
        return "–"
    return f"{amount(metric, low, signed=signed)} to {amount(metric, high, signed=signed)}"


def _words(
    d: Difference | None, p: float | None, needed: int | None, family: int, comparison: Comparison, a: Method, b: Method
) -> str:
    if d is None and not set(a.blocks) & set(b.blocks):
        return "no common setting: nothing to compare"
    if d is None:
        seeds = [", ".join(map(str, m.values)) or "none" for m in (a, b)]
        return f"no common seeds ({seeds[0]} against {seeds[1]}): nothing to compare"
    if p is None:
        return "one common seed: no interval, no verdict"
    if d.std == 0 and d.mean == 0:
        return f"the same in all {d.n} seeds"
    if p < ALPHA:
        unit = " points" if is_share(comparison.metric) else ""
        return f"distinguishable: {a.name} is ahead by {amount(comparison.metric, abs(d.mean))}{unit}"
    more = "more than 1,000" if needed is None else f"about {needed:,}"
    chance = ""
    if d.p is not None and d.p < ALPHA:
        chance = f" (alone its interval would exclude 0, but among {family} pairs that happens by chance)"
    return f"not distinguishable with {d.n} seeds; {more} would be needed{chance}"

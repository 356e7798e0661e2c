"""Claims of the literature in a study of one's own: holds, does not hold, or cannot be decided.

Every claim comes to comparisons (comparisons.py): one number per common seed and the bounds that are claimed. A t
interval over seeds that lies inside the bounds is for the claim, one that lies outside is against it. Of several
comparisons all must hold, judged after Holm's correction; one that is against the claim after it settles it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from nearkin.published.claims import Claim
from nearkin.published.comparisons import Comparison, compared
from nearkin.published.matching import OwnRow, fits
from nearkin.statistics.intervals import LEVEL
from nearkin.statistics.paired import holm

HOLDS, FAILS, OPEN = "holds", "does not hold", "cannot be decided"
NAMES = {"CUB200-2011": "cub", "Cars196": "cars196", "SOP": "sop", "ImageNet": "imagenet"}


@dataclass(frozen=True)
class Verdict:
    """What a study says of a claim, by the comparison that decides it."""

    state: str                                  # holds, does not hold, cannot be decided
    reason: str
    measured: float | None = None               # mean over seeds, in `unit`
    low: float | None = None                    # of its 95 % interval
    high: float | None = None
    unit: str = "points"
    differs: str = ""                           # how the study's settings are not the source's


@dataclass(frozen=True)
class _Judged:
    """A comparison with its interval and p value; side +1: within the bounds, -1: outside."""

    comparison: Comparison
    mean: float
    low: float
    high: float
    n: int
    side: int
    p: float


def decide(claim: Claim, rows: Sequence[OwnRow]) -> Verdict:
    """Decide one claim from the rows of a study.

    Parameters:
        claim: one of `nearkin.published.claims.claims()`.
        rows: {"name": ..., "spec": settings with dotted keys, "values": {seed: {metric: value}}}, folds averaged;
            shares are 0 to 1.
    """
    if claim.own is None:
        return Verdict(OPEN, f"it would take {claim.own_needs}" if claim.twin else claim.own_needs)
    rows, differs = _closest(claim, rows)
    parts = [compared(condition, rows) for condition in claim.own["conditions"]]
    comparisons = [each for part in parts for each in part.comparisons]
    lacks = list(dict.fromkeys(word for part in parts for word in part.lacks))
    judged = [_judge(each) for each in comparisons if len(each.values) > 1]
    few = next((each for each in comparisons if len(each.values) < 2), None)
    corrected = holm([each.p for each in judged])
    sides = [each.side if p <= 1 - LEVEL else 0 for each, p in zip(judged, corrected, strict=True)]
    need_any = any(condition.get("need") == "any" for condition in claim.own["conditions"])
    settles, state = (1, HOLDS) if need_any else (-1, FAILS)

    def told(state: str, side: int, pick: int, words: str) -> Verdict:
        """By the comparison of a side that is the clearest (pick 0) or the least clear (pick -1)."""
        clear = sorted((i for i, s in enumerate(sides) if s == side), key=lambda i: judged[i].p)
        each = judged[clear[pick]]
        of = f"; {words} of {len(comparisons)} comparisons (Holm)" if len(comparisons) > 1 else ""
        return Verdict(state, _words(each) + of, each.mean, each.low, each.high, each.comparison.unit, differs)

    if settles in sides:
        return told(state, settles, 0, "the clearest")
    if lacks:
        return Verdict(OPEN, f"the study lacks {'; '.join(lacks)}")
    if few is not None:
        count = "one common seed, so no interval" if few.values else "no common seed"
        return Verdict(OPEN, f"{few.words}: {count}")
    if 0 in sides:
        return told(OPEN, 0, -1, "the least clear")
    return told(FAILS if need_any else HOLDS, -settles, -1, "the closest")


def _closest(claim: Claim, rows: Sequence[OwnRow]) -> tuple[list[OwnRow], str]:
    """The rows with the source's data and settings; where there are none all of them, and what differs, in words."""
    assert claim.own is not None
    kept, differs = list(rows), []
    theirs = [NAMES[name] for name in claim.data]
    for key, wanted in {"data.name": theirs, **claim.own.get("at", {})}.items():
        alike = [row for row in kept if fits(row["spec"], {key: wanted})]
        kept = alike or kept
        ours = sorted({str(row["spec"].get(key)) for row in kept})
        there = wanted if isinstance(wanted, list) else [str(wanted)]
        if ours != sorted(there):
            differs.append(f"{key} {', '.join(ours)}, there {', '.join(there)}")
    return kept, "; ".join(differs)


def _judge(comparison: Comparison) -> _Judged:
    """The interval of the mean, on which side of the bounds it lies, and how clearly: by the nearer bound."""
    values = np.array(comparison.values)
    n, mean = len(values), float(values.mean())
    error = max(float(values.std(ddof=1)), comparison.least_std) / math.sqrt(n)
    half = float(stats.t.ppf((1 + LEVEL) / 2, n - 1)) * error

    def p(bound: float) -> float:
        distance = abs(mean - bound)
        if distance < 1e-9:
            return 1.0
        return float(2 * stats.t.sf(distance / error, n - 1)) if error > 0 else 0.0

    bounds = [(bound, sign) for bound, sign in ((comparison.low, 1), (comparison.high, -1)) if bound is not None]
    outside = [p(bound) for bound, sign in bounds if sign * (mean - bound) < 0]
    if outside:
        return _Judged(comparison, mean, mean - half, mean + half, n, -1, max(outside))
    return _Judged(comparison, mean, mean - half, mean + half, n, 1, max(p(bound) for bound, _ in bounds))


def _words(each: _Judged) -> str:
    low, high = each.comparison.low, each.comparison.high
    if low is not None and high is not None:
        claimed = f"{low:g} to {high:g}"
    else:
        claimed = f"below {high:g}" if low is None else f"above {low:g}"
    unit = f" {each.comparison.unit}" if each.comparison.unit else ""
    interval = f"{each.mean:+.2f}{unit} ({each.low:+.2f} to {each.high:+.2f}) with {each.n} seeds"
    return f"{each.comparison.words}: {interval}; claimed {claimed}"

"""What a comparison says in words."""

from nearkin.comparison.compare import Comparison
from nearkin.comparison.verdicts import FEW, Family, kinds, points, span, tied_for_first
from nearkin.statistics.unit import LEAST_SEEDS, Nothing
from nearkin.units import P, counted

ALL_PAIRS = "differences between all pairs"
NOT_TESTED = "untrained: beside the family, not tested"


def first_words(comparison: Comparison) -> list[str]:
    """Who may be the best, in one sentence; nothing for one row, or where neither end of the metric is the good one."""
    first = tied_for_first(comparison)
    if len(comparison.trained) < 2 or not first:
        return []
    if all(len(method.values) < LEAST_SEEDS for method in comparison.trained):
        return [f"no row is better than another: {FEW} for a verdict"]
    if len(first) == 1:
        return [f"first: {first[0]}, distinguishable from all other trained rows"]
    if len(first) == len(comparison.trained):
        return ["tied for first: all trained rows; none is distinguishably better than another"]
    return [f"tied for first: {'; '.join(first)}"]


def family_words(family: Family) -> list[str]:
    """How many comparisons are corrected together, and what their intervals are over."""
    tested = max((pair.family for pair in family.pairs), default=0)
    differences = [pair.difference for pair in family.pairs if pair.difference is not None]
    words = [f"nothing is tested: {FEW}"] if family.pairs else []
    if tested:
        words = [
            f"one family of {counted(tested, 'comparison')}, {family.words}: p is that of the paired t test over "
            "common seeds, spreads moderated over the family, or over seeds and classes, whichever is the larger, "
            "after Holm's correction"
        ]
    if any(d.classes is not None for d in differences):
        words.append(
            "the interval is over other seeds and other test classes, ± is what each alone would give; "
            "a difference counts when p is below 0.05"
        )
    elif any(d.low is not None for d in differences):
        words.append("the interval is over seeds alone: whether other test classes would agree is not known")
    return words


def kinds_words(comparison: Comparison) -> list[str]:
    """Ranking against classification losses, in one sentence; nothing where one kind is missing."""
    groups = kinds(comparison)
    if groups is None:
        return []
    if isinstance(groups, Nothing):
        return [f"ranking and classification losses cannot be compared: {groups.reason}"]
    result, ranking, classification = groups
    d, metric = result.difference, comparison.metric
    first = counted(len(ranking), "ranking loss", "ranking losses")
    second = counted(len(classification), "classification loss", "classification losses")
    words = f"the {first} minus the {second}: {points(metric, d.mean, signed=True)}"
    if d.n < LEAST_SEEDS or d.low is None:
        return [f"{words} over {counted(d.n, 'common seed')}; {FEW} for a verdict"]
    words += f" ({span(metric, d.low, d.high, signed=True)} over {d.n} common seeds, these losses)"
    p = P.text(result.p_methods, digits=2)
    return [f"{words}; whether the two kinds differ beyond these losses: p = {p} (Mann-Whitney)"]

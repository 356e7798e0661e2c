"""The charts of a comparison."""

import math

from nearkin.comparison.compare import Comparison
from nearkin.comparison.tables import standing_of
from nearkin.comparison.tournament import Standing
from nearkin.comparison.verdicts import pairs_with, untrained_pairs
from nearkin.evaluation.metrics.base import difference_unit, metric_of
from nearkin.present import Chart, Column, Dots, Ranks, Table
from nearkin.units import NUMBER


def charts_of(comparison: Comparison) -> list[Chart]:
    """The differences and, where ranks were tested, the critical differences."""
    ranked = standing_of(comparison)
    drawn = [differences(comparison)] if len(comparison.methods) > 1 else []
    return [*drawn, *([critical_difference(ranked)] if ranked is not None and ranked.test is not None else [])]


def differences(comparison: Comparison) -> Chart:
    """How far every row lies from the one that validation ranks first (without validation: the best trained one), with
    95 % intervals over common seeds and, where they are known, test classes."""
    reference, unit = comparison.reference or comparison.trained[0], difference_unit(comparison.metric)
    pairs = {pair.first.name: pair for pair in (*pairs_with(comparison, reference), *untrained_pairs(comparison))}
    values = []
    for method in comparison.methods:
        pair = pairs.get(method.name)
        if pair is None:
            values.append([method.name, 0.0, None, None, "the reference"])
        elif pair.difference is not None:
            state = f"{'' if pair.decided else 'not '}distinguishable" if method.trained else "untrained"
            values.append([method.name, pair.difference.mean, pair.difference.low, pair.difference.high, state])
    share = metric_of(comparison.metric).is_share
    heading = f"difference to {reference.name}, {'points of ' * share}{comparison.metric}"
    ends = (Column("low", unit=unit), Column("high", unit=unit))
    columns = ["method", Column("difference", heading, unit), *ends, "verdict"]
    over = (
        "seeds and test classes"
        if any(p.difference and p.difference.classes for p in pairs.values())
        else "common seeds"
    )
    return Dots(
        name="differences",
        title="Differences",
        table=Table("differences", columns, values),
        x="method",
        y="difference",
        low="low",
        high="high",
        by="verdict",
        notes=[f"bars: 95 % over {over}"],
        alt=f"difference of every row to {reference.name}",
    )


def critical_difference(standing: Standing) -> Chart:
    """Demšar's diagram: every method at its average rank; bars join what cannot be told apart."""
    rows = [[name, float(rank)] for name, rank in zip(standing.methods, standing.result.average, strict=True)]
    cd = None if standing.test is None else float(standing.test.critical_difference)
    none = cd is not None and math.isinf(cd)  # ranks of so few seeds tell no two apart
    return Ranks(
        name="critical_difference",
        title="Critical differences",
        table=Table("ranks", ["method", Column("average", "average rank", NUMBER, digits=2)], rows),
        x="average",
        y="method",
        joined=[list(group) for group in standing.groups],
        difference=None if none else cd,
        notes=[f"ranks of {standing.seeds} seeds tell no two methods apart"] if none else [],
        alt="methods at their average ranks; bars join those that ranks cannot tell apart",
    )

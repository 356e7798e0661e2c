"""`nearkin.compare`: stored runs side by side, with verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from nearkin.comparison import _charts, tables
from nearkin.comparison.claims import claims_table, measured_claims
from nearkin.comparison.compare import Comparison, canonical_metric, measure_missing
from nearkin.comparison.compare import compare as compare_gathered
from nearkin.comparison.gather import Gathered, gather
from nearkin.comparison.tournament import standing
from nearkin.comparison.verdicts import first_family
from nearkin.errors import NearkinError
from nearkin.evaluation.metrics.base import metric_of
from nearkin.present import Chart, Shown, Table
from nearkin.runs.listing import Where


class Compared(Shown):
    """The result of a comparison: one `Comparison` for each data set, tables, charts.

    Parameters:
        gathered: the stored runs.
        comparisons: one for each data set.
        by_name: the tables by name, the main one first.
    """

    def __init__(self, gathered: Gathered, comparisons: list[Comparison], by_name: dict[str, Table]):
        self.gathered, self.comparisons, self.by_name = gathered, comparisons, by_name

    @property
    def tables(self) -> list[Table]:
        """Leaderboard, differences and, where there is one, the tournament; pairs and values are details."""
        return list(self.by_name.values())

    @property
    def screen(self) -> list[Table]:
        """The tables that are no details; of claims those that could be checked."""
        return [measured_claims(table) if table.name == "claims" else table for table in super().screen]

    @property
    def charts(self) -> list[Chart]:
        """The differences and, where ranks were tested, the critical differences."""
        several = len(self.comparisons) > 1
        return [
            replace(chart, name=f"{chart.name}-{comparison.data}") if several else chart
            for comparison in self.comparisons
            for chart in _charts.charts_of(comparison)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values: every table's rows, and what was compared."""
        compared = [
            {key: getattr(comparison, key) for key in ("data", "metric", "reading", "within", "notes")}
            | {
                "reference": None if comparison.reference is None else comparison.reference.name,
                "family": first_family(comparison).words,
                "tables": _records(tables.tables_of(comparison)),
            }
            for comparison in self.comparisons
        ]
        return {"comparisons": compared, "tables": _records(self.by_name)}


def _records(by_name: dict[str, Table]) -> dict[str, Any]:
    return {name: table.records() for name, table in by_name.items()}


def compare(
    *names: str,
    runs: Path | str = "runs",
    by: Sequence[str] | None = None,
    metric: str | None = None,
    reading: str = "chosen",
    evaluation: str = "separated",
    within: float | None = None,
    against: str = "",
    where: Where = (),
    all_pairs: bool = False,
    ranks: bool = False,
    claims: bool = False,
) -> Compared:
    """Stored runs side by side: means with intervals, differences on what rows have in common, a verdict for each.

    Parameters:
        names: a study, or at least two runs.
        runs: the folder of the stored runs.
        by: what rows are: axes of the study or settings; None: all axes, or the loss.
        metric: a test metric, train.* or `validation ...`; None: map_at_r, of ranks recall@1 (Psomas 2020).
        reading: which epoch: chosen, last, test_best, test_best_each (the last two are no results).
        evaluation: of folds: separated, or concatenated.
        within: a difference that is small enough to be called equivalent, in points of a share; None: one point.
        against: the row that all others are compared with; by default the one that validation ranks first.
        where: only these runs, as {"backbone": "resnet50", "dim": [128, 512]} or "backbone=resnet50".
        all_pairs: are the differences of every two rows shown, not those to one row?
        ranks: only the tournament: total, average and deviation of every method's ranks over experiments.
        claims: also what the literature says, checked against these runs.
    """
    metric = canonical_metric(metric or ("recall@1" if ranks else "map_at_r"))
    gathered = gather(names, runs, where)
    if evaluation not in gathered.evaluations and evaluation != "separated":
        raise NearkinError(f"evaluation={evaluation}: {gathered.name} has {', '.join(gathered.evaluations)}")
    if within is not None and metric_of(metric).is_share:
        within /= 100
    if ranks and by is None and gathered.axes:
        by = [next((axis for axis in gathered.axes if axis != "base"), gathered.axes[0])]
    measure_missing(gathered, metric, evaluation)
    comparisons = compare_gathered(
        gathered, by=by, metric=metric, reading=reading, evaluation=evaluation, within=within, against=against
    )
    by_name: dict[str, Table] = {}
    for comparison in comparisons:
        suffix = f"-{comparison.data}" if len(comparisons) > 1 else ""
        shown = tables.tables_of(comparison)
        if all_pairs and "pairs" in shown:
            shown["differences"].detail, shown["pairs"].detail = True, False
        if ranks:
            title = f"{gathered.name} on {comparison.data}, by {metric}"
            shown = {"tournament": tables.tournament_table(standing(comparison), title)}
        by_name |= {f"{name}{suffix}": replace(table, name=f"{name}{suffix}") for name, table in shown.items()}
    if claims:
        by_name["claims"] = claims_table(gathered, reading)
    return Compared(gathered, comparisons, by_name)

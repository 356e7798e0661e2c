"""Metrics and their intervals as a page writes them."""

from collections.abc import Iterable
from typing import Any

from nearkin.comparison.verdicts import amount, span
from nearkin.evaluation.metrics.base import metric_of
from nearkin.pages.base import Column
from nearkin.statistics.intervals import Interval

ENDS = ("low", "high", "cut")  # what a table has of an interval


def shown_metric(metric: str, value: float | None) -> str:
    """A metric as people read it: shares in per cent."""
    return "–" if value is None else amount(metric, value)


def signed(metric: str, value: float | None) -> str:
    """A difference as people read it: shares in points."""
    return "–" if value is None else amount(metric, value, signed=True)


# as papers write them; others go by their own names
CALLED = {
    "map_at_r": "MAP@R",
    "map_at_c": "MAP@C",
    "map_at_1000": "MAP@1000",
    "r_precision": "R-precision",
    "recall": "Recall",
    "p": "P",
    "mrr": "MRR",
    "nmi": "NMI",
    "ami": "AMI",
    "f1": "F1",
    "rho": "ρ",
}


def called(metric: str) -> str:
    """A metric as papers write it: MAP@R, Recall@1."""
    before = next((start for start in ("validation ", "train.") if metric.startswith(start)), "")
    name, at, k = metric.removeprefix(before).partition("@")
    words = CALLED.get(name, name) + at + k
    return f"{before}{words}" if before != "train." else f"{words} (training images)"


def heading(metric: str) -> str:
    """Its name above a column."""
    return f"{called(metric)} %" if metric_of(metric).is_share else called(metric)


def unit(metric: str) -> str:
    """% for shares."""
    return "%" if metric_of(metric).is_share else ""


def metric_column(metric: str) -> Column:
    """A column of a grid that shows a metric, which its table has under the metric's name."""
    return Column(metric, heading(metric), lambda row: shown_metric(metric, row[metric]))


def interval_column(metric: str) -> Column:
    """The column of a mean's interval; a star where it is cut (`cut_note` explains it)."""
    return Column("low", "95 % interval", lambda row: span(metric, row["low"], row["high"], cut=row["cut"]))


def ends(interval: Interval | None) -> list[Any]:
    """A mean and its ENDS: four cells of a table."""
    return [None] * 4 if interval is None else [interval.mean, interval.low, interval.high, interval.cut]


def cut_note(cut: Iterable[bool | None], mark: str = "") -> list[str]:
    """What is said below intervals some of which are cut; `mark` is how those are marked."""
    return [f"Intervals that would leave the range of the metric{mark} are cut at its end."] if any(cut) else []


def interval_of(metric: str) -> dict[str, Any]:
    """What charts of a metric with its interval share: columns, per cent and the title of the axis."""
    shares = percent(metric, metric, "low", "high")
    return {"y": metric, "low": "low", "high": "high", "percent": shares, "y_title": heading(metric)}


def percent(metric: str, *columns: str) -> tuple[str, ...]:
    """The columns of a chart that are shares: those given, if the metric is one."""
    return columns if metric_of(metric).is_share else ()

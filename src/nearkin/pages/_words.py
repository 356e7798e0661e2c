"""Metrics and their intervals as a page writes them."""

import re
from collections.abc import Iterable
from typing import Any

from nearkin.comparison.gather import Member
from nearkin.evaluation.metrics.base import metric_of
from nearkin.present import Column
from nearkin.statistics.intervals import Interval
from nearkin.units import NUMBER, POINTS, SHARE, Unit

# as papers write them; others go by the names they have here
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
MAP_AT_R = (
    "MAP@R: a query's class has R other images; the score is 100 % when these are the R nearest, and falls with every "
    "wrong image among them, the nearer the more. The more images are searched, the lower it is."
)


def called(metric: str) -> str:
    """A metric as papers write it: MAP@R, Recall@1."""
    before = next((start for start in ("validation ", "train.") if metric.startswith(start)), "")
    name, at, k = metric.removeprefix(before).partition("@")
    words = CALLED.get(name, name) + at + k
    return f"{before}{words}" if before != "train." else f"{words} (training images)"


def about(metric: str) -> str:
    """A metric in a sentence: the first of its description."""
    if metric == "map_at_r":
        return MAP_AT_R
    text = " ".join((metric_of(metric).__doc__ or "").strip().split("\n\n")[0].split())
    words = re.split(r"(?<=\))\.\s|\.\s+(?=[A-Z])", text)[0].rstrip(".")
    return f"{words}." if words.startswith(called(metric).partition("@")[0]) else f"{called(metric)}: {words}."


def unit_of(metric: str) -> Unit:
    """How its values are written: shares in per cent."""
    return SHARE if metric_of(metric).is_share else NUMBER


def points_of(metric: str) -> Unit:
    """How differences and the ends of intervals are written: shares in points."""
    return POINTS if metric_of(metric).is_share else NUMBER


def value_words(metric: str, value: float | None) -> str:
    """A value with its unit: 12.34 %."""
    return f"{unit_of(metric).text(value)} {unit_of(metric).mark}".strip()


def metric_column(metric: str) -> Column:
    """The column of a metric, which its table has under the metric's name."""
    return Column(metric, called(metric), unit_of(metric))


def span_columns(metric: str, heading: str = "95 % interval", **looks: Any) -> list[Column]:
    """The two columns of an interval, shown as one."""
    unit = points_of(metric)
    return [Column("low", heading, unit, to="high", **looks), Column("high", unit=unit)]


def mean_columns(metric: str) -> list[Column]:
    """A mean and its interval, what `ends` gives: four columns, shown as two; a star where the interval is cut
    (`cut_note` explains it)."""
    return [metric_column(metric), *span_columns(metric, star="cut"), Column("cut")]


def ends(interval: Interval | None) -> list[Any]:
    """A mean, the ends of its interval, and whether that is cut."""
    return [None] * 4 if interval is None else [interval.mean, interval.low, interval.high, interval.cut]


def cut_note(cut: Iterable[bool | None], mark: str = "") -> list[str]:
    """What is said below intervals some of which are cut; `mark` is how those are marked."""
    return [f"Intervals that would leave the range of the metric{mark} are cut at its end."] if any(cut) else []


def interval_of(metric: str) -> dict[str, Any]:
    """The columns that charts of a metric with its interval draw."""
    return {"y": metric, "low": "low", "high": "high"}


def method_of(member: Member) -> str:
    """What the study calls a run's method; else its loss."""
    return ", ".join(member.labels.values()) or str(member.settings["loss.name"])

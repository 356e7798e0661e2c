"""Metrics as a page writes them: in sentences, in tables with their intervals, in charts of means."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from nearkin.evaluation.metrics.base import OF_RUNS, difference_unit, metric_of, unit_of
from nearkin.pages._base import Figure
from nearkin.pages._slicing import Slicing
from nearkin.present import Chart, Column, Table
from nearkin.statistics.intervals import Interval

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
    before = next((start for start in OF_RUNS if metric.startswith(start)), "")
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


def value_words(metric: str, value: float | None) -> str:
    """A value with its unit: 12.34 %."""
    return f"{unit_of(metric).text(value)} {unit_of(metric).mark}".strip()


def metric_column(metric: str) -> Column:
    """The column of a metric, which its table has under the metric's name."""
    return Column(metric, called(metric), unit_of(metric))


def span_columns(metric: str, heading: str = "95 % interval", **looks: Any) -> list[Column]:
    """The two columns of an interval, shown as one."""
    unit = difference_unit(metric)
    return [Column("low", heading, unit, to="high", **looks), Column("high", unit=unit)]


def mean_columns(metric: str) -> list[Column]:
    """A mean and its interval, what `ends` gives: four columns, shown as two; a star where the interval is cut
    (`cut_note` explains it)."""
    return [metric_column(metric), *span_columns(metric, star="cut"), Column("cut")]


def ends(interval: Interval | None) -> list[Any]:
    """A mean, the ends of its interval, and whether that is cut."""
    return [None] * 4 if interval is None else [interval.mean, interval.low, interval.high, interval.cut]


def cut_note(table: Table, mark: str = "") -> list[str]:
    """What is said below intervals some of which are cut; `mark` is how those are marked."""
    cut = "cut" in table.header and any(table.column("cut"))
    return [f"Intervals that would leave the range of the metric{mark} are cut at its end."] if cut else []


def means_figure(
    form: type[Chart], table: Table, metric: str, slicing: Slicing, *, notes: Iterable[str] = (), **looks: Any
) -> Figure:
    """A chart of means with their intervals, columns of a table that has `mean_columns`; it is called as the table."""
    looks = {"name": table.name, "y": metric, "low": "low", "high": "high"} | looks
    return Figure(form(table=table, notes=[*notes, *cut_note(table)], **looks), slicing)


def only_value(values: Iterable[Any]) -> Any:
    """The one value that all have; else all of them, in words."""
    distinct: Sequence[Any] = list(dict.fromkeys(values))
    return distinct[0] if len(distinct) == 1 else ", ".join(map(str, distinct))

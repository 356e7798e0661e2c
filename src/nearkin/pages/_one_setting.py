"""Runs that differ in one setting, or in a regulariser: their groups, and the values of a group."""

from collections.abc import Iterable, Sequence
from typing import Any

from nearkin.comparison.alike import NEVER_COUNTS, alike
from nearkin.comparison.gather import Member
from nearkin.comparison.rows import row_of
from nearkin.evaluation.metrics.base import metric_of
from nearkin.pages._words import ends
from nearkin.statistics.intervals import mean_interval
from nearkin.statistics.unit import Row

SWITCH = "regulariser.p_switch"
NEVER = ("model.dim", "model.head")  # they go with no other setting
UNLIKE = (
    "Points that stand beside each other are not all over the same seeds and folds: a part of what they differ by may "
    "be luck. The leaderboard takes differences on common seeds."
)


def groups_of(members: Iterable[Member], key: str, beside: tuple[str, ...] = ()) -> dict[str, list[Member]]:
    """Trained members that differ in nothing but one setting, and in settings that begin with what goes with it."""

    def free(name: str) -> bool:
        return name == key or (name.startswith(beside) and name not in NEVER)

    return alike([member for member in members if not member.untrained], free)


def averaged(name: str, members: Sequence[Member], metric: str) -> Row:
    """Members with one value of the setting that varies. What else differs between them is a setting beside: it is
    averaged for each seed, as folds are."""
    keys = differing(members)
    return row_of(name, members, metric, setting=lambda member: tuple(str(member.settings.get(k)) for k in keys))


def differing(members: Sequence[Member]) -> list[str]:
    """The settings in which members differ; seed, fold and what is in no run's name never count."""
    keys = dict.fromkeys(key for member in members for key in member.settings if key not in NEVER_COUNTS)
    return [key for key in keys if len({str(member.settings.get(key)) for member in members}) > 1]


def cells(row: Row, metric: str) -> list[Any]:
    """Mean, interval and number of seeds."""
    values = list(row.values.values())
    return [*ends(mean_interval(values, bounds=metric_of(metric).bounds) if values else None), len(values)]


def unlike(lines: Iterable[Iterable[Row]]) -> list[str]:
    """What must be said where points of one line stand on different seeds or folds."""
    places = [{(tuple(sorted(row.values)), frozenset(p.fold for p in row.places)) for row in rows} for rows in lines]
    return [UNLIKE] if any(len(place) > 1 for place in places) else []

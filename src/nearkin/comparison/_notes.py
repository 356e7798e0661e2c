"""What a reader of a comparison must know: what was unequal, averaged, missing, or picked on the test images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nearkin.comparison.gather import Gathered
from nearkin.comparison.method import Method
from nearkin.errors import and_more
from nearkin.studies.budgets import differing, unequal
from nearkin.studies.readings import PICKED, READINGS

if TYPE_CHECKING:
    from nearkin.comparison.compare import Comparison


def notes_of(gathered: Gathered, comparison: Comparison) -> list[str]:
    """One sentence each."""
    methods, settings = comparison.methods, comparison.settings
    notes = []
    if PICKED in (epoch := READINGS[comparison.reading][0]):
        notes.append(f"every row is {epoch}: no result")
    if len(settings) > 1:
        words = ", ".join(" ".join(setting) for setting in settings)
        notes.append(
            f"values are means over {len(settings)} settings of {' and '.join(comparison.block_keys)}: {words}"
        )
    notes += _missing_places(comparison.trained)
    named = ("unequal network", "unequal size") if len(settings) > 1 else ()  # settings, which a note names
    budgets = unequal({method.name: method.budget for method in methods})
    notes += [note for note in budgets if not note.startswith((*named, "unequal seeds"))]
    if seeds := differing({method.name: ", ".join(map(str, method.values)) or "none" for method in methods}):
        notes.append(f"unequal seeds: {seeds}; differences are taken on common seeds")
    waiting = [member for member in gathered.members if not member.done]
    if waiting or gathered.absent:
        failed = sum(member.error is not None for member in waiting)
        without = f"{len(waiting) + len(gathered.absent)} of {len(gathered.members) + len(gathered.absent)} runs"
        notes.append(f"{without} have no result{f', {failed} of them failed' if failed else ''}")
    if damaged := [words for words in gathered.absent if " is damaged: " in words]:
        notes.append(f"left out: {and_more(damaged, 3)}")
    return notes


def _missing_places(methods: Sequence[Method]) -> list[str]:
    """Rows whose mean is over other settings or folds than that of the rest."""
    notes = []
    without = [method.name for method in methods if {place.fold for place in method.row.places} == {None}]
    if 0 < len(without) < len(methods):
        notes.append(
            f"{and_more(without, 3)} {'have' if len(without) > 1 else 'has'} no folds: not compared with rows that have"
        )
    for what, part in (("settings", lambda place: " ".join(place.setting)), ("folds", lambda place: str(place.fold))):
        rows = [method for method in methods if what == "settings" or method.name not in without]
        parts = {method.name: dict.fromkeys(map(part, method.row.places)) for method in rows}
        for name, present in parts.items():
            lacking = [
                words for words in dict.fromkeys(p for row in parts.values() for p in row) if words not in present
            ]
            if lacking:
                fold = "" if what == "settings" else f"fold{'s' * (len(lacking) > 1)} "
                notes.append(
                    f"{name} lacks {fold}{and_more(lacking, 3)}: its mean is over other {what} than the rest; "
                    f"differences are taken on common {what}"
                )
    return notes

"""What a reader of a comparison must know: what was unequal, averaged, missing, or picked on the test images."""

from collections.abc import Sequence
from typing import Any

from nearkin.comparison.gather import Gathered
from nearkin.comparison.method import Method
from nearkin.errors import and_more
from nearkin.studies.budgets import budget_of, unequal
from nearkin.studies.readings import PICKED, READINGS


def notes_of(
    gathered: Gathered, methods: list[Method], settings: Sequence[tuple[str, ...]], keys: Sequence[str], reading: str
) -> list[str]:
    """One sentence each. `settings` stand beside the rows, and `keys` name what they are settings of."""
    notes = []
    if PICKED in READINGS[reading][0]:
        notes.append(f"every row is {READINGS[reading][0]}: no result")
    if len(settings) > 1:
        words = ", ".join(" ".join(setting) for setting in settings)
        notes.append(f"values are means over {len(settings)} settings of {' and '.join(keys)}: {words}")
    notes += _missing_places([method for method in methods if method.trained])
    budgets: dict[str, Any] = {}
    for method in methods:
        runs = [m.run for m in method.members if m.baseline is None and not m.untrained]
        folds = len({m.fold for m in method.members})
        trials, epochs = (
            max((getattr(m, name) for m in method.members), default=0) for name in ("trials", "searched_epochs")
        )
        given = budget_of(runs, len(method.values), folds, trials=trials, searched_epochs=epochs) if runs else {}
        budgets[method.name] = given
    words_of = unequal(budgets)
    beside = ("unequal network", "unequal size") if len(settings) > 1 else ()  # settings, which a note names
    notes += [note for note in words_of if not note.startswith((*beside, "unequal seeds"))]
    groups: dict[str, list[str]] = {}
    for method in methods:
        groups.setdefault(", ".join(map(str, method.values)) or "none", []).append(method.name)
    if len(groups) > 1:
        words = "; ".join(f"{seeds} ({and_more(names, 3)})" for seeds, names in groups.items())
        notes.append(f"unequal seeds: {words}; differences are taken on common seeds")
    waiting = [m for m in gathered.members if not m.done]
    if waiting or gathered.absent:
        failed = sum(m.error is not None for m in waiting)
        left = f"{len(waiting) + len(gathered.absent)} of {len(gathered.members) + len(gathered.absent)} runs"
        notes.append(f"{left} have no result{f', {failed} of them failed' if failed else ''}")
    if damaged := [words for words in gathered.absent if " is damaged: " in words]:
        notes.append(f"left out: {and_more(damaged, 3)}")
    return notes


def _missing_places(methods: list[Method]) -> list[str]:
    """Rows whose mean is over other settings or folds than that of the rest."""
    notes = []
    for what, of in (("settings", lambda place: " ".join(place.setting)), ("folds", lambda place: place.fold)):
        every = list(dict.fromkeys(of(place) for method in methods for place in method.row.places))
        for method in methods:
            here = {of(place) for place in method.row.places}
            lacking = [str(each) for each in every if each not in here]
            if lacking:
                named = (
                    and_more(lacking, 3)
                    if what == "settings"
                    else f"fold{'s' * (len(lacking) > 1)} {and_more(lacking, 3)}"
                )
                notes.append(
                    f"{method.name} lacks {named}: its mean is over other {what} than the rest; differences "
                    f"are taken on common {what}"
                )
    return notes

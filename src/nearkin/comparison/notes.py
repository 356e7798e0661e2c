"""What a reader of a comparison must know: what was unequal, averaged, missing, or picked on the test images."""

from typing import Any

from nearkin.comparison.gather import Gathered
from nearkin.comparison.method import Block, Method
from nearkin.errors import some
from nearkin.studies.budgets import budget_of, unequal
from nearkin.studies.readings import PICKED, READINGS


def notes_of(
    gathered: Gathered, methods: list[Method], blocks: list[Block], beside: tuple[str, ...], reading: str
) -> list[str]:
    """One sentence each. `beside` names the settings that tell blocks apart."""
    notes = []
    if PICKED in READINGS[reading][0]:
        notes.append(f"every row is {READINGS[reading][0]}: no result")
    if len(blocks) > 1:
        settings = ", ".join(" ".join(block) for block in blocks)
        notes.append(f"values are means over {len(blocks)} settings of {' and '.join(beside)}: {settings}")
        for method in methods:
            lacking = [" ".join(block) for block in blocks if block not in method.blocks]
            if lacking:
                notes.append(f"{method.name} lacks {some(lacking, 3)}: its mean is over other settings than the rest")
    budgets: dict[str, Any] = {}
    for method in methods:
        runs = [m.run for m in method.members if m.baseline is None and not m.untrained]
        folds = len({m.fold for m in method.members})
        trials = max((m.trials for m in method.members), default=0)
        budgets[method.name] = budget_of(runs, len(method.values), folds, trials=trials) if runs else {}
    told = unequal(budgets)
    notes += [note for note in told if not (len(blocks) > 1 and note.startswith(("unequal network", "unequal size")))]
    groups: dict[str, list[str]] = {}
    for method in methods:
        groups.setdefault(", ".join(map(str, method.values)) or "none", []).append(method.name)
    if len(groups) > 1:
        words = "; ".join(f"{seeds} ({some(names, 3)})" for seeds, names in groups.items())
        notes.append(f"seeds differ: {words}; differences are taken on common seeds")
    waiting = [m for m in gathered.members if not m.done]
    if waiting or gathered.absent:
        failed = sum(m.error is not None for m in waiting)
        left = f"{len(waiting) + len(gathered.absent)} of {len(gathered.members) + len(gathered.absent)} runs"
        notes.append(f"{left} have no result{f', {failed} of them failed' if failed else ''}")
    return notes

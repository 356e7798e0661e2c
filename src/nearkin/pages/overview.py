"""What was compared and how: data, protocol, choice of the epoch, budgets, and how often the test split was opened."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

from nearkin.comparison.gather import Member
from nearkin.comparison.pages import sentence
from nearkin.errors import and_more
from nearkin.evaluation.metrics.base import metric_of
from nearkin.pages.base import Column, Grid, Part, Section, Table, Words
from nearkin.pages.material import Board, Material, final_of
from nearkin.pages.words import called
from nearkin.studies.budgets import BUDGET, budget_of
from nearkin.studies.readings import PICKED, READINGS

MILD = ("values are means over",)  # notes that explain; all others warn


def section(material: Material) -> Section:
    """Facts of every data set, warnings in plain words, budgets."""
    parts: list[Part] = [*_warnings(material), _facts(material)]
    parts += [part for board in material.boards for part in _budgets(board)]
    lead = "Fair is: the same images, the same choice of the epoch, and the same budget for every row."
    return Section("overview", "What was compared, and how", lead, parts)


def _warnings(material: Material) -> list[Part]:
    found: list[Part] = []
    for board in material.boards:
        for note in dict.fromkeys(board.comparison.notes):
            tone = "plain" if note.startswith(MILD) else "warning"
            found.append(Words(f"{board.where}{sentence(note)}", tone))
    picked = [label for name in material.gathered.readings if PICKED in (label := READINGS[name][0])]
    if picked:
        words = f"This study also reads epochs that were {PICKED}. They are no results: the leaderboard has none."
        found.append(Words(words, "warning"))
    unvalidated = [m for m in material.trained if not final_of(m)["validation"]]
    if unvalidated:
        found.append(
            Words(
                f"{len(unvalidated)} of {len(material.trained)} trained runs had no validation images: their epoch is "
                "the last.",
                "warning",
            )
        )
    if not any(isinstance(part, Words) and part.tone == "warning" for part in found):
        equal = "All trained rows had equal budgets, seeds and rules, and no epoch was picked on test images."
        found.insert(0, Words(equal))
    return found


def _facts(material: Material) -> Grid:
    openings = material.gathered.store.openings()
    rows: list[list[Any]] = []
    for board in material.boards:
        members = list({member.run.hash: member for member in board.members}.values())
        trained = [member for member in members if not member.untrained] or members
        finals = [final_of(member) for member in trained]
        splits = {m.head["split_hash"] for m in members}
        times = sum(openings.get(split, 0) for split in splits)
        seeds, folds = len({m.seed for m in members}), len({m.fold for m in members if m.fold is not None})
        told = {
            "metric": _about(material.metric),
            "data": f"{board.data}, data hash {members[0].head['data_hash']}",
            "images and classes": counted([str(final.get("split", "–")).partition("; split")[0] for final in finals]),
            "protocol": counted([protocol(member) for member in trained]),
            "choice of the epoch": counted([rule(final) for final in finals]),
            "networks": counted([network(member) for member in trained]),
            "runs": f"{len(members)} tested, {seeds} seed{'s' * (seeds > 1)}" + f", {folds} folds" * bool(folds),
            "test queries": counted([f"{member.run.result['test_n']:,}" for member in members]),
            "test split": f"{and_more(sorted(splits), 3)}: opened {times:,} times in this store",
        }
        rows += [[board.data, what, value] for what, value in told.items()]
    several = len(material.boards) > 1
    table = Table("overview", ["data", "what", "value"], rows)
    columns = [Column("data"), Column("what"), Column("value")] if several else [Column("what"), Column("value")]
    notes = [
        "Every opening of the test labels is noted, by whichever command; this page opens none. Each run's own "
        "test is one; the more there are, the more the test images have been looked at."
    ]
    return Grid("overview-facts", "", table, columns=columns, notes=notes)


def _about(metric: str) -> str:
    """A metric in a sentence: the first of its description."""
    text = " ".join((metric_of(metric).__doc__ or "").strip().split("\n\n")[0].split())
    words = re.split(r"(?<=\))\.\s|\.\s+(?=[A-Z])", text)[0].rstrip(".")
    return words if words.startswith(called(metric).partition("@")[0]) else f"{called(metric)}: {words}"


def _budgets(board: Board) -> list[Part]:
    """What is equal in all trained rows, as a sentence; the rest as a table."""
    rows = []
    for method in board.methods:
        runs = [m.run for m in method.members if m.done and not m.untrained]
        folds, trials = len({m.fold for m in method.members}), max((m.trials for m in method.members), default=0)
        epochs = max((m.searched_epochs for m in method.members), default=0)
        given = budget_of(runs, len(method.values), folds, trials=trials, searched_epochs=epochs) if runs else {}
        rows.append([method.name, *(given.get(key) for key in BUDGET)])
    table = Table(f"budgets{board.suffix}", ["method", *BUDGET], rows)
    given_to = [row for row in table.records() if row["network"] is not None]
    equal = [key for key in BUDGET if len({row[key] for row in given_to}) == 1]
    told: list[Part] = []
    if given_to and equal:
        words = "; ".join(f"{key} {given_to[0][key]}" for key in equal)
        told.append(Words(f"{board.where}Equal in all trained rows: {words}."))
    grid = Grid(
        f"budgets{board.suffix}",
        f"{board.where}What each row was given",
        table,
        columns=[Column(name) for name in table.header if name not in equal],
        folded=len(rows) > 6 or len(equal) == len(BUDGET),
        notes=["Untrained networks were given nothing. Trials are runs that chose settings on validation images."],
    )
    return [*told, grid]


def protocol(member: Member) -> str:
    """Its name and settings, without the fold."""
    own = {
        key.partition(".")[2]: value
        for key, value in member.settings.items()
        if key.startswith("protocol.") and key not in ("protocol.fold", "protocol.path")
    }
    name = own.pop("name")
    return name + (f" ({', '.join(f'{k} {v}' for k, v in own.items() if v is not None)})" if own else "")


def rule(final: dict[str, Any]) -> str:
    """How the epoch was chosen."""
    return final["rule"] + (f", by {final['select']}" if final.get("select") else "")


def network(member: Member) -> str:
    """Backbone, weights, size of the embedding and of the images."""
    words = member.settings
    weights = words.get("model.weights")
    weights = "random weights" if weights is None else f"weights {Path(str(weights)).name}"
    size = "pooled feature" if words["model.head"] == "none" else f"embedding size {words['model.dim']}"
    return f"{words['model.backbone']}, {weights}, {size}, {words['data.size']} px"


def counted(values: list[str]) -> str:
    """What all have; of several, how many have which."""
    counts = Counter(values)
    if len(counts) == 1:
        return values[0]
    told = [f"{value} ({n} runs)" for value, n in counts.most_common(4)]
    rest = len(counts) - len(told)
    return "; ".join(told) + (f"; and {rest} more" if rest > 0 else "")

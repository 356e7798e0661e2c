"""What was compared and how: data, protocol, choice of the epoch, budgets, and how often the test split was opened."""

from collections import Counter
from pathlib import Path
from typing import Any

from nearkin.comparison.gather import Member
from nearkin.errors import and_more
from nearkin.pages._base import Grid, Part, Section, Words
from nearkin.pages._material import Board, Material, final_of
from nearkin.pages._words import about
from nearkin.present import Table, sentence
from nearkin.studies.budgets import BUDGET, budget_of
from nearkin.studies.readings import PICKED, READINGS
from nearkin.units import counted

MILD = ("values are means over",)  # notes that explain; all others warn


def section(material: Material) -> Section:
    """Facts of every data set, warnings in plain words, budgets."""
    parts: list[Part] = [*_warnings(material), _facts(material)]
    parts += [part for board in material.boards for part in _budgets(board)]
    lead = "A fair comparison has the same images, the same choice of the epoch and the same budget for every row."
    return Section("overview", "What was compared, and how", lead, parts)


def _warnings(material: Material) -> list[Part]:
    words: list[Part] = []
    for board in material.boards:
        for note in dict.fromkeys(board.comparison.notes):
            tone = "plain" if note.startswith(MILD) else "warning"
            words.append(Words(f"{board.where}{sentence(note)}", tone))
    if any(PICKED in READINGS[name][0] for name in material.gathered.readings):
        picked = f"This study also reads epochs that were {PICKED}. They are no results: the leaderboard has none."
        words.append(Words(picked, "warning"))
    unvalidated = sum(not final_of(member)["validation"] for member in material.trained)
    if unvalidated:
        last = (
            f"{unvalidated} of {len(material.trained)} trained runs had no validation images: their epoch is the last."
        )
        words.append(Words(last, "warning"))
    if not any(isinstance(part, Words) and part.tone == "warning" for part in words):
        equal = "All trained rows had equal budgets, seeds and rules, and no epoch was picked on test images."
        words.insert(0, Words(equal))
    return words


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
        facts = {
            "metric": about(material.metric),
            "data": f"{board.data}, data hash {members[0].head['data_hash']}",
            "images and classes": tallied([str(final.get("split", "–")).partition("; split")[0] for final in finals]),
            "protocol": tallied([protocol(member) for member in trained]),
            "choice of the epoch": tallied([rule(final) for final in finals]),
            "networks": tallied([network(member) for member in trained]),
            "runs": f"{len(members)} tested, {counted(seeds, 'seed')}" + f", {counted(folds, 'fold')}" * bool(folds),
            "test queries": tallied([f"{member.run.result['test_n']:,}" for member in members]),
            "test split": f"{and_more(sorted(splits), 3)}: opened {counted(times, 'time')} in this store",
        }
        rows += [[board.data, what, value] for what, value in facts.items()]
    table = Table("overview", ["data", "what", "value"], rows)
    if len(material.boards) == 1:
        table = table.only(["what", "value"])
    table.notes = [
        "Every opening of the test labels is noted, by whichever command; this page opens none. The test of each run "
        "is one; the more there are, the more the test images have been looked at."
    ]
    return Grid(table, "overview-facts")


def _budgets(board: Board) -> list[Part]:
    """What is equal in all trained rows, as a sentence; the rest as a table."""
    rows = []
    for method in board.methods:
        runs = [m.run for m in method.members if m.done and not m.untrained]
        folds, trials = len({m.fold for m in method.members}), max((m.trials for m in method.members), default=0)
        epochs = max((m.searched_epochs for m in method.members), default=0)
        given = budget_of(runs, len(method.values), folds, trials=trials, searched_epochs=epochs) if runs else {}
        rows.append([method.name, *(given.get(key) for key in BUDGET)])
    notes = ["Untrained networks were given nothing. Trials are runs that chose settings on validation images."]
    table = Table(f"budgets{board.suffix}", ["method", *BUDGET], rows, f"{board.where}What each row was given", notes)
    given_to = [row for row in table if row["network"] is not None]
    equal = [key for key in BUDGET if len({row[key] for row in given_to}) == 1]
    shared: list[Part] = []
    if given_to and equal:
        words = "; ".join(f"{key} {given_to[0][key]}" for key in equal)
        shared.append(Words(f"{board.where}Equal in all trained rows: {words}."))
    grid = Grid(
        table.only([name for name in table.header if name not in equal]),
        folded=len(rows) > 6 or len(equal) == len(BUDGET),
        slice=board.grid,
    )
    return [*shared, grid]


def protocol(member: Member) -> str:
    """Its name and settings, without the fold."""
    left_out = ("protocol.fold", "protocol.path")
    settings = {
        key.partition(".")[2]: value
        for key, value in member.settings.items()
        if key.startswith("protocol.") and key not in left_out
    }
    name = settings.pop("name")
    words = ", ".join(f"{key} {value}" for key, value in settings.items() if value is not None)
    return f"{name} ({words})" if settings else name


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


def tallied(values: list[str]) -> str:
    """What all have; of several, how many have which."""
    counts = Counter(values)
    if len(counts) == 1:
        return values[0]
    words = [f"{value} ({counted(n, 'run')})" for value, n in counts.most_common(4)]
    rest = len(counts) - len(words)
    return "; ".join(words) + (f"; and {rest} more" if rest > 0 else "")
